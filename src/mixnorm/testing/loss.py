"""The contract of a loss."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mixnorm.losses import DualLoss, Loss, SmoothLoss
from mixnorm.testing.contract import Contract, differentiate
from mixnorm.testing.loss_case import ROUNDING, LossCase
from mixnorm.testing.loss_dual import DUAL_CHECKS

# Step of central differences, and their error for a function of size one in float64.
_STEP_IN_SCORES = 1e-5
_ERROR_OF_SLOPES = 1e-7


def check_loss(
    loss: object,
    *,
    n_outputs: int = 3,
    n_samples: int = 16,
    y: Any | None = None,
    random_state: int = 0,
) -> None:
    """Check that a loss keeps the promises of :class:`mixnorm.losses.Loss`.

    The check evaluates the loss on random scores and weights. It compares derivatives with finite
    differences, weights with repeated rows, and constants with what they bound. It also tests
    dtypes, probabilities and huge scores. If the loss has the methods of
    :class:`mixnorm.losses.SmoothLoss` or :class:`mixnorm.losses.DualLoss`, their promises are
    checked too: a conjugate, for example, by the inequality of Fenchel and Young.

    Parameters
    ----------
    loss : Loss
        The loss to check.
    n_outputs : int, default=3
        Number of outputs (classes) to try it with.
    n_samples : int, default=16
        Number of rows, if ``y`` is not given.
    y : array-like, optional
        Targets to try, as ``loss.encode`` takes them; by default random labels, signs, or random
        numbers for a regression loss.
    random_state : int, default=0
        Seed of the scores, weights and directions.

    Raises
    ------
    mixnorm.exceptions.ContractError
        At the first promise that is broken.

    Examples
    --------
    >>> from mixnorm.losses import MarginSoftmax
    >>> check_loss(MarginSoftmax(margin=2.0))
    """
    promise = "it has every attribute and method of mixnorm.losses.Loss"
    Contract(loss).require(isinstance(loss, Loss), promise)
    rng = np.random.default_rng(random_state)
    if y is None:
        y = _draw_targets(loss, rng, (n_samples, n_outputs))
    y = np.asarray(y)
    shape = (len(y), n_outputs)
    weight = np.asarray(rng.uniform(0.5, 2.0, size=len(y)))
    case = LossCase(
        loss, y, 2.0 * rng.standard_normal(shape), weight / weight.sum(), rng.standard_normal(shape)
    )
    for check in _CHECKS_OF_LOSSES:
        check(case)
    for protocol, checks in ((SmoothLoss, _SMOOTH_CHECKS), (DualLoss, DUAL_CHECKS)):
        if isinstance(loss, protocol):
            for check in checks:
                check(case)


def _draw_targets(loss: Any, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    if loss.is_classifier:
        return np.asarray(rng.integers(shape[1], size=shape[0]))
    if loss.is_binary:
        return np.asarray(rng.choice([-1.0, 1.0], size=shape))
    return np.asarray(rng.standard_normal(shape))


def _check_parameters(case: LossCase) -> None:
    case.check_copies(lambda loss: replace(case, subject=loss).at(case.scores)[0])


def _check_inputs_untouched(case: LossCase) -> None:
    first = case.call(case.at, case.scores, case.weight, name="value_and_residual")
    second = case.at(case.scores)
    same = first[0] == second[0] and np.array_equal(first[1], second[1])
    case.require(same, "value_and_residual returns the same result when called again")


def _check_gradient(case: LossCase) -> None:
    value, residual = case.at(case.scores)
    if not math.isfinite(case.loss.smoothness):
        for length in (-1e2, -1.0, -1e-3, 1e-3, 1.0, 1e2):
            move = length * case.direction
            rise = case.at(case.scores + move)[0] - value - float(np.sum(residual * move))
            promise = "the residual is a subgradient of the value in the scores"
            case.require(rise >= -ROUNDING * (1.0 + abs(length)), promise, f"{rise:.3g} < 0")
        return
    differences = differentiate(lambda at: case.at(at)[0], case.scores, _STEP_IN_SCORES)
    promise = "the residual is the derivative of the value in the scores"
    case.close(residual, differences, promise, atol=_ERROR_OF_SLOPES)


def _check_weighted_mean(case: LossCase) -> None:
    one = np.ones(1)
    rows = [slice(i, i + 1) for i in range(len(case.weight))]
    values = np.asarray([case.at(case.scores[row], one, row)[0] for row in rows])
    mean, value = float(values @ case.weight), case.at(case.scores)[0]
    promise = "the value is the weighted mean over samples"
    case.close(value, mean, promise, rtol=ROUNDING, atol=ROUNDING)


def _check_repeated_rows(case: LossCase) -> None:
    counts = 1 + np.arange(len(case.weight)) % 3
    share, total = counts / counts.sum(), int(counts.sum())
    index = np.repeat(np.arange(len(counts)), counts)
    value, residual = case.at(case.scores, share)
    repeated, parts = case.at(case.scores[index], np.full(total, 1.0 / total), index)
    summed = np.zeros_like(residual)
    np.add.at(summed, index, parts)
    promise = "whole-number weights equal repeated rows"
    case.close(value, repeated, promise, rtol=ROUNDING)
    case.close(residual, summed, promise, atol=ROUNDING)


def _check_zero_weights(case: LossCase) -> None:
    weight = case.weight.copy()
    weight[::3] = 0.0
    kept = weight > 0
    value, residual = case.at(case.scores, weight)
    fewer, part = case.at(case.scores[kept], weight[kept], kept)
    promise = "rows of weight zero have no effect"
    case.close(value, fewer, promise, rtol=ROUNDING)
    case.close(residual[kept], part, promise, atol=ROUNDING)
    case.require(not np.any(residual[~kept]), promise, "their residual is not zero")


def _check_shift(case: LossCase) -> None:
    if not case.loss.shift_invariant:
        return
    value, residual = case.at(case.scores)
    shifted = case.at(case.scores + case.direction[:, :1])[0]
    promise = "shift_invariant: a constant added to a row's scores changes nothing"
    case.close(shifted, value, promise, rtol=1e-9)
    promise = "shift_invariant: each row of the residual sums to zero"
    case.close(residual.sum(axis=1), np.zeros(len(residual)), promise, atol=ROUNDING)


def _draw_moves(case: LossCase) -> list[tuple[np.ndarray, float, float, np.ndarray]]:
    """Return moves of the scores, each with the rise above the tangent, its slack, and the slope.

    Moves also start from scores of zero, because derivatives may jump at ties.
    """
    found = []
    for start in (case.scores, np.zeros_like(case.scores)):
        value, residual = case.at(start)
        for length in (1e-2, -1e-2, 1.0, -1.0, 1e2, -1e2):
            move = length * case.direction
            reached, slope = case.at(start + move)
            squares = float(case.weight @ np.sum(move * move, axis=1))
            slack = 1e-9 * (abs(reached) + abs(value) + squares)
            found.append((move, reached - value - float(np.sum(residual * move)), slack, slope))
    return found


def _check_constants(case: LossCase) -> None:
    loss = case.loss
    for move, rise, slack, slope in _draw_moves(case):
        if math.isfinite(loss.smoothness):
            squares = float(case.weight @ np.sum(move * move, axis=1))
            bound = 0.5 * loss.smoothness * squares + slack
            case.at_most(rise, bound, f"smoothness={loss.smoothness} bounds the rise")
        slope = slope / case.weight[:, None]
        sizes = np.linalg.norm(slope, axis=1) if loss.is_classifier else np.abs(slope)
        most = loss.lipschitz * (1.0 + 1e-9)
        case.at_most(sizes.max(), most, f"lipschitz={loss.lipschitz} bounds gradients")


def _check_weights_of_entries(case: LossCase) -> None:
    if case.loss.is_classifier:
        return
    value, residual = case.at(case.scores)
    again, entries = case.at(case.scores, np.tile(case.weight[:, None], (1, case.n_outputs)))
    promise = "weights of entries that are those of their rows change nothing"
    case.close(again, value, promise, rtol=ROUNDING)
    case.close(entries, residual, promise, atol=ROUNDING)


def _check_smooth_constants(case: LossCase) -> None:
    loss = case.loss
    promise = "a loss with second derivatives has a finite smoothness"
    case.require(math.isfinite(loss.smoothness), promise)
    for move, rise, slack, _ in _draw_moves(case):
        factor = loss.max_norm_smoothness(case.n_outputs)
        bound = factor * float(case.weight @ np.max(np.abs(move), axis=1) ** 2) + slack
        case.at_most(rise, bound, "max_norm_smoothness bounds the rise")


def _check_zero_weights_of_curvature(case: LossCase) -> None:
    weight, target = case.weight.copy(), case.target
    weight[::3] = 0.0
    residual = case.at(case.scores, weight)[1]
    promise = "rows of weight zero have no effect"
    curvature = np.asarray(case.loss.curvature(residual, target, weight))
    case.require(not np.any(curvature[weight == 0.0]), promise, "their curvature is not zero")
    column = case.direction[:, 0]
    hessian = np.asarray(case.loss.column_hessian(column, residual, target, weight))
    case.require(np.all(np.isfinite(hessian)), promise, "column_hessian is not finite")


def _check_curvature(case: LossCase) -> None:
    shapes = ((len(case.weight), case.n_outputs), (len(case.weight), 1))
    found = []
    for length in (0.0, 1.0, 100.0):
        residual = case.at(case.scores * length)[1]
        curvature = np.asarray(case.loss.curvature(residual, case.target, case.weight))
        promise = f"curvature has shape {shapes[0]} or {shapes[1]}"
        case.require(curvature.shape in shapes, promise, f"got {curvature.shape}")
        # Read off a residual, a curvature of zero may be off by a rounding error.
        least = -8.0 * np.finfo(np.float64).eps * case.weight[:, None]
        case.require(np.all(curvature >= least), "curvature is not negative")
        found.append(curvature)
    if case.loss.constant_curvature:
        same = all(np.array_equal(found[0], other) for other in found[1:])
        case.require(same, "constant_curvature: the scores do not change the curvature")


def _differentiate_residual(case: LossCase, direction: np.ndarray) -> np.ndarray:
    """Return the derivative of the residual along a direction, by central differences."""
    move = _STEP_IN_SCORES * direction
    ahead, behind = case.at(case.scores + move)[1], case.at(case.scores - move)[1]
    return np.asarray((ahead - behind) / (2.0 * _STEP_IN_SCORES))


def _check_hessian_form(case: LossCase) -> None:
    form = case.loss.hessian_form(case.direction, *case.second_order())
    wanted = float(np.sum(case.direction * _differentiate_residual(case, case.direction)))
    promise = "hessian_form is the second derivative along a direction"
    case.close(form, wanted, promise, atol=_ERROR_OF_SLOPES * (1.0 + abs(wanted)))


def _check_column_hessian(case: LossCase) -> None:
    column = case.direction[:, 0].copy()
    hessian = np.asarray(case.loss.column_hessian(column, *case.second_order()))
    wanted = np.empty((case.n_outputs, case.n_outputs))
    for output in range(case.n_outputs):
        direction = np.zeros_like(case.scores)
        direction[:, output] = column
        wanted[output] = column @ _differentiate_residual(case, direction)
    promise = "column_hessian is the derivative of the gradient in the weights of a column"
    case.close(hessian, wanted, promise, atol=_ERROR_OF_SLOPES)


def _check_single_precision(case: LossCase) -> None:
    scores, target, weight, _ = case.single()
    value, residual = case.loss.value_and_residual(scores, target, weight)
    found = {"value_and_residual": residual}
    if not case.loss.is_classifier:
        found["predict"] = case.loss.predict(scores)
    proba = _get_proba(case.loss, scores)
    if proba is not None:
        found["proba"] = proba
    case.require_single(found)
    case.require(type(value) is float, "values are Python floats")
    wanted = case.at(case.scores)
    promise = "float32 agrees with float64"
    case.close(value, wanted[0], promise, rtol=1e-4, atol=1e-4)
    case.close(residual, wanted[1], promise, atol=1e-5)


def _check_single_precision_of_curvature(case: LossCase) -> None:
    scores, target, weight, direction = case.single()
    rest = (case.loss.value_and_residual(scores, target, weight)[1], target, weight)
    found = {
        "curvature": case.loss.curvature(*rest),
        "column_hessian": case.loss.column_hessian(direction[:, 0], *rest),
    }
    case.require_single(found)
    form = case.loss.hessian_form(direction, *rest)
    case.require(type(form) is float, "values are Python floats", "hessian_form is none")


def _check_huge_scores(case: LossCase) -> None:
    for dtype in (np.float32, np.float64):
        scores = (1e4 * np.sign(case.scores)).astype(dtype)
        scores[0, :] = 1e4  # a row of ties
        weight = case.weight.astype(dtype)
        target = case.loss.encode(case.y, case.n_outputs, scores)
        promise = f"scores of 1e4 in {np.dtype(dtype)} do not overflow"
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                value, residual = case.loss.value_and_residual(scores, target, weight)
                parts = [residual, _get_proba(case.loss, scores)]
                if isinstance(case.loss, SmoothLoss):
                    parts.append(case.loss.curvature(residual, target, weight))
        except FloatingPointError as error:
            case.require(False, promise, str(error))
        parts = [part for part in parts if part is not None]
        finite = math.isfinite(value) and all(np.all(np.isfinite(part)) for part in parts)
        case.require(finite, promise, "they give infinity or NaN")


def _get_proba(loss: Any, scores: np.ndarray) -> np.ndarray | None:
    """Return probabilities, or None for a loss without any."""
    try:
        return np.asarray(loss.proba(scores))
    except TypeError:
        return None


def _check_predictions(case: LossCase) -> None:
    loss, predicted = case.loss, np.asarray(case.loss.predict(case.scores))
    shape = case.scores.shape[:1] if loss.is_classifier else case.scores.shape
    case.require(predicted.shape == shape, f"predict returns shape {shape}", str(predicted.shape))
    if loss.is_classifier:
        known = np.isin(predicted, np.arange(case.n_outputs))
        case.require(np.all(known), "predict returns labels")
    if loss.is_binary:
        case.require(np.all(np.abs(predicted) == 1.0), "predict returns -1 and +1")
    proba = _get_proba(loss, case.scores)
    if proba is None:
        return
    case.require(proba.shape == case.scores.shape, "proba has the shape of the scores")
    case.require(np.all(proba >= 0.0), "probabilities are not negative")
    if loss.is_classifier:
        ones = np.ones(len(proba))
        case.close(proba.sum(axis=1), ones, "probabilities sum to one", atol=ROUNDING)
        best = np.argmax(proba, axis=1)
    else:
        case.require(np.all(proba <= 1.0), "probabilities are at most one")
        best = np.where(proba >= 0.5, 1.0, -1.0)
    case.require(np.array_equal(best, predicted), "predict returns the most probable class")


_CHECKS_OF_LOSSES = (
    _check_inputs_untouched,
    _check_parameters,
    _check_gradient,
    _check_weighted_mean,
    _check_repeated_rows,
    _check_zero_weights,
    _check_weights_of_entries,
    _check_shift,
    _check_constants,
    _check_single_precision,
    _check_huge_scores,
    _check_predictions,
)
_SMOOTH_CHECKS = (
    _check_smooth_constants,
    _check_curvature,
    _check_zero_weights_of_curvature,
    _check_hessian_form,
    _check_column_hessian,
    _check_single_precision_of_curvature,
)

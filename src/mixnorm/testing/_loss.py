"""The contract of a loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.losses import Loss
from mixnorm.testing._contract import require, require_close, require_parameters

# Central differences of a function of size one lose about this much in float64.
_STEP = 1e-5
_DIFFERENCES = 1e-7
_ROUNDING = 1e-11


@dataclass(frozen=True)
class _Case:
    """A loss, targets, and scores, weights and a direction to try it with."""

    loss: Any
    y: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    direction: np.ndarray

    @property
    def n_outputs(self) -> int:
        return int(self.scores.shape[1])

    def at(
        self, scores: np.ndarray, weight: np.ndarray | None = None, rows: Any = slice(None)
    ) -> tuple[float, np.ndarray]:
        """Return value and residual at given scores, for some of the targets."""
        target = self.loss.encode(self.y[rows], self.n_outputs, scores)
        weight = self.weight if weight is None else weight
        value, residual = self.loss.value_and_residual(scores, target, weight)
        return float(value), np.asarray(residual)

    def second_order(self) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return what the second-order methods take: residual, target and weight."""
        target = self.loss.encode(self.y, self.n_outputs, self.scores)
        return (
            self.loss.value_and_residual(self.scores, target, self.weight)[1],
            target,
            self.weight,
        )


def check_loss(
    loss: Any,
    *,
    n_outputs: int = 3,
    n_samples: int = 16,
    y: Any | None = None,
    random_state: int = 0,
) -> None:
    """Check that a loss keeps the promises of :class:`mixnorm.losses.Loss`.

    The loss is tried on random scores and weights: derivatives against finite differences, weights
    against repeated rows, constants against what they bound, dtypes, probabilities, huge scores.

    Parameters
    ----------
    loss : Loss
        The loss to check.
    n_outputs : int, default=3
        Number of outputs (classes) to try it with.
    n_samples : int, default=16
        Number of rows, where ``y`` is not given.
    y : array-like, optional
        Targets to try, as ``loss.encode`` takes them; by default random labels, or random numbers
        for a regression loss.
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
    require(
        isinstance(loss, Loss), loss, "it has every attribute and method of mixnorm.losses.Loss"
    )
    rng = np.random.default_rng(random_state)
    if y is None:
        labels = loss.is_classifier
        shape = (n_samples, n_outputs)
        y = rng.integers(n_outputs, size=n_samples) if labels else rng.standard_normal(shape)
    y = np.asarray(y)
    shape = (len(y), n_outputs)
    weight = np.asarray(rng.uniform(0.5, 2.0, size=len(y)))
    case = _Case(
        loss,
        y,
        2.0 * rng.standard_normal(shape),
        weight / weight.sum(),
        rng.standard_normal(shape),
    )
    for check in _CHECKS:
        check(case)
    if loss.is_classifier:
        _check_classification(case)


def _check_parameters(case: _Case) -> None:
    value = case.at(case.scores)[0]
    for copy in require_parameters(case.loss):
        target = copy.encode(case.y, case.n_outputs, case.scores)
        again = copy.value_and_residual(case.scores, target, case.weight)[0]
        require(again == value, case.loss, "a copy gives the same value", f"{again}, not {value}")


def _check_inputs_untouched(case: _Case) -> None:
    scores, weight = case.scores.copy(), case.weight.copy()
    first, second = case.at(scores, weight), case.at(scores, weight)
    same = np.array_equal(scores, case.scores) and np.array_equal(weight, case.weight)
    require(same, case.loss, "value_and_residual leaves scores and weight alone")
    same = first[0] == second[0] and np.array_equal(first[1], second[1])
    require(same, case.loss, "value_and_residual gives the same again when called again")


def _check_gradient(case: _Case) -> None:
    _, residual = case.at(case.scores)
    differences = np.empty_like(residual)
    for entry in np.ndindex(*residual.shape):
        ahead, behind = case.scores.copy(), case.scores.copy()
        ahead[entry] += _STEP
        behind[entry] -= _STEP
        differences[entry] = (case.at(ahead)[0] - case.at(behind)[0]) / (2.0 * _STEP)
    promise = "the residual is the derivative of the value in the scores"
    require_close(residual, differences, case.loss, promise, atol=_DIFFERENCES)


def _check_weighted_mean(case: _Case) -> None:
    one = np.ones(1)
    rows = [slice(i, i + 1) for i in range(len(case.weight))]
    values = np.asarray([case.at(case.scores[row], one, row)[0] for row in rows])
    mean, value = float(values @ case.weight), case.at(case.scores)[0]
    promise = "the value is the weighted mean over samples"
    require_close(value, mean, case.loss, promise, rtol=_ROUNDING, atol=_ROUNDING)


def _check_repeated_rows(case: _Case) -> None:
    counts = 1 + np.arange(len(case.weight)) % 3
    share, total = counts / counts.sum(), int(counts.sum())
    index = np.repeat(np.arange(len(counts)), counts)
    value, residual = case.at(case.scores, share)
    repeated, parts = case.at(case.scores[index], np.full(total, 1.0 / total), index)
    summed = np.zeros_like(residual)
    np.add.at(summed, index, parts)
    promise = "whole-number weights equal repeated rows"
    require_close(value, repeated, case.loss, promise, rtol=_ROUNDING)
    require_close(residual, summed, case.loss, promise, atol=_ROUNDING)


def _check_zero_weights(case: _Case) -> None:
    weight = case.weight.copy()
    weight[::3] = 0.0
    kept = weight > 0
    value, residual = case.at(case.scores, weight)
    fewer, part = case.at(case.scores[kept], weight[kept], kept)
    promise = "rows of weight zero count for nothing"
    require_close(value, fewer, case.loss, promise, rtol=_ROUNDING)
    require_close(residual[kept], part, case.loss, promise, atol=_ROUNDING)
    require(not np.any(residual[~kept]), case.loss, promise, "their residual is not zero")
    target = case.loss.encode(case.y, case.n_outputs, case.scores)
    curvature = np.asarray(case.loss.curvature(residual, target, weight))
    require(not np.any(curvature[~kept]), case.loss, promise, "their curvature is not zero")
    column = case.direction[:, 0]
    hessian = np.asarray(case.loss.column_hessian(column, residual, target, weight))
    require(np.all(np.isfinite(hessian)), case.loss, promise, "column_hessian is not finite")


def _check_shift(case: _Case) -> None:
    shifted = case.scores + case.direction[:, :1]
    value, residual = case.at(case.scores)
    if case.loss.shift_invariant:
        promise = "shift_invariant: a constant added to a row's scores changes nothing"
        require_close(case.at(shifted)[0], value, case.loss, promise, rtol=1e-9)
        promise = "shift_invariant: each row of the residual sums to zero"
        zero = np.zeros(residual.shape[0])
        require_close(residual.sum(axis=1), zero, case.loss, promise, atol=_ROUNDING)


def _check_constants(case: _Case) -> None:
    loss, weight = case.loss, case.weight
    value, residual = case.at(case.scores)
    for length in (1e-2, 1.0, 1e2):
        for sign in (1.0, -1.0):
            move = sign * length * case.direction
            reached = case.at(case.scores + move)[0]
            rise = reached - value - float(np.sum(residual * move))
            squares = float(weight @ np.sum(move * move, axis=1))
            slack = 1e-9 * (abs(reached) + abs(value) + squares)
            bound = 0.5 * loss.smoothness * squares + slack
            found = f"{rise:.6g} is above {bound:.6g}"
            require(rise <= bound, loss, f"smoothness={loss.smoothness} bounds the rise", found)
            factor = loss.max_norm_smoothness(case.n_outputs)
            bound = factor * float(weight @ np.max(np.abs(move), axis=1) ** 2) + slack
            found = f"{rise:.6g} is above {bound:.6g}"
            require(rise <= bound, loss, "max_norm_smoothness bounds the rise", found)
            norms = np.linalg.norm(case.at(case.scores + move)[1], axis=1) / weight
            found = f"a gradient has norm {norms.max():.6g}"
            kept = not math.isfinite(loss.lipschitz) or norms.max() <= loss.lipschitz * (1 + 1e-9)
            require(kept, loss, f"lipschitz={loss.lipschitz} bounds gradients", found)


def _check_curvature(case: _Case) -> None:
    shapes = ((len(case.weight), case.n_outputs), (len(case.weight), 1))
    found = []
    for length in (0.0, 1.0, 100.0):
        scores = case.scores * length
        target = case.loss.encode(case.y, case.n_outputs, scores)
        _, residual = case.loss.value_and_residual(scores, target, case.weight)
        curvature = np.asarray(case.loss.curvature(residual, target, case.weight))
        promise = f"curvature has shape {shapes[0]} or {shapes[1]}"
        require(curvature.shape in shapes, case.loss, promise, f"got {curvature.shape}")
        # Read off a residual, a curvature of zero may be off by a rounding error.
        least = -8.0 * np.finfo(np.float64).eps * case.weight[:, None]
        require(np.all(curvature >= least), case.loss, "curvature is not negative")
        found.append(curvature)
    if case.loss.constant_curvature:
        same = all(np.array_equal(found[0], other) for other in found[1:])
        require(same, case.loss, "constant_curvature: the scores do not change the curvature")


def _check_hessian_form(case: _Case) -> None:
    form = case.loss.hessian_form(case.direction, *case.second_order())
    ahead = case.at(case.scores + _STEP * case.direction)[1]
    behind = case.at(case.scores - _STEP * case.direction)[1]
    wanted = float(np.sum(case.direction * (ahead - behind))) / (2.0 * _STEP)
    promise = "hessian_form is the second derivative along a direction"
    tolerance = _DIFFERENCES * (1.0 + abs(wanted))
    require_close(form, wanted, case.loss, promise, atol=tolerance)


def _check_column_hessian(case: _Case) -> None:
    column = case.direction[:, 0].copy()
    hessian = np.asarray(case.loss.column_hessian(column, *case.second_order()))
    wanted = np.empty((case.n_outputs, case.n_outputs))
    for output in range(case.n_outputs):
        move = np.zeros_like(case.scores)
        move[:, output] = _STEP * column
        ahead, behind = case.at(case.scores + move)[1], case.at(case.scores - move)[1]
        wanted[output] = column @ (ahead - behind) / (2.0 * _STEP)
    promise = "column_hessian is the derivative of the gradient in the weights of a column"
    require_close(hessian, wanted, case.loss, promise, atol=_DIFFERENCES)


def _check_single_precision(case: _Case) -> None:
    scores, weight = case.scores.astype(np.float32), case.weight.astype(np.float32)
    direction = case.direction.astype(np.float32)
    target = case.loss.encode(case.y, case.n_outputs, scores)
    value, residual = case.loss.value_and_residual(scores, target, weight)
    found = {
        "value_and_residual": residual,
        "curvature": case.loss.curvature(residual, target, weight),
        "column_hessian": case.loss.column_hessian(direction[:, 0], residual, target, weight),
        "predict": scores if case.loss.is_classifier else case.loss.predict(scores),
        "proba": case.loss.proba(scores) if case.loss.is_classifier else scores,
    }
    for name, array in found.items():
        promise = f"{name} keeps the dtype float32"
        require(array.dtype == np.float32, case.loss, promise, f"got {array.dtype}")
    form = case.loss.hessian_form(direction, residual, target, weight)
    promise = "the value and hessian_form are Python floats"
    require(type(value) is float and type(form) is float, case.loss, promise)
    wanted = case.at(case.scores)
    promise = "float32 agrees with float64"
    close = {"rtol": 1e-4, "atol": 1e-4}
    require_close(value, wanted[0], case.loss, promise, **close)
    require_close(residual, wanted[1], case.loss, promise, atol=1e-5)


def _check_huge_scores(case: _Case) -> None:
    for dtype in (np.float32, np.float64):
        scores = (1e4 * np.sign(case.scores)).astype(dtype)
        scores[0, :] = 1e4  # a row of ties
        weight = case.weight.astype(dtype)
        target = case.loss.encode(case.y, case.n_outputs, scores)
        promise = f"scores of 1e4 in {np.dtype(dtype)} do not overflow"
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                value, residual = case.loss.value_and_residual(scores, target, weight)
                parts = [residual, case.loss.curvature(residual, target, weight)]
                if case.loss.is_classifier:
                    parts.append(case.loss.proba(scores))
        except FloatingPointError as error:
            require(False, case.loss, promise, str(error))
        finite = math.isfinite(value) and all(np.all(np.isfinite(part)) for part in parts)
        require(finite, case.loss, promise, "they give infinity or NaN")


def _check_classification(case: _Case) -> None:
    proba, predicted = np.asarray(case.loss.proba(case.scores)), case.loss.predict(case.scores)
    require(proba.shape == case.scores.shape, case.loss, "proba has one column per class")
    require(np.all(proba >= 0.0), case.loss, "probabilities are not negative")
    ones = np.ones(len(proba))
    require_close(proba.sum(axis=1), ones, case.loss, "probabilities sum to one", atol=_ROUNDING)
    agree = np.array_equal(np.argmax(proba, axis=1), np.asarray(predicted))
    require(agree, case.loss, "predict returns the most probable class")


_CHECKS = (
    _check_inputs_untouched,
    _check_parameters,
    _check_gradient,
    _check_weighted_mean,
    _check_repeated_rows,
    _check_zero_weights,
    _check_shift,
    _check_constants,
    _check_curvature,
    _check_hessian_form,
    _check_column_hessian,
    _check_single_precision,
    _check_huge_scores,
)

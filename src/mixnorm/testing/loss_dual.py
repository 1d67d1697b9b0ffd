"""The contract of a loss with a conjugate."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize

from mixnorm.testing.loss_case import ROUNDING, LossCase


def _find_dual_points(case: LossCase) -> list[np.ndarray]:
    """Return points of the conjugate's domain: residuals, points between them, and zero."""
    lengths = (1.0, 0.1, -3.0, 30.0)
    found = [case.at(length * case.scores + case.direction)[1] for length in lengths]
    between = [0.5 * (a + b) for a, b in pairwise(found)]
    return [*found, *between, np.zeros_like(case.scores)]


def _compute_inner_product(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Return the inner product of two arrays, and the size of its rounding errors."""
    return float(np.sum(a * b)), 1e-10 * (1.0 + float(np.sum(np.abs(a * b))))


def _check_fenchel_young(case: LossCase) -> None:
    loss, target, weight = case.loss, case.target, case.weight
    outside = weight[:, None] * case.direction
    for theta in [*_find_dual_points(case), outside, outside - outside.mean(axis=1, keepdims=True)]:
        conjugate = case.call(loss.conjugate, theta, target, weight, name="conjugate")
        case.require(type(conjugate) is float, "values are Python floats", "conjugate is not")
        for length in (0.0, 0.3, 1.0, -1.0, 1e2, -1e2, 1e4, -1e4):
            for scores in (case.scores, case.direction, theta / weight[:, None]):
                product, rounding = _compute_inner_product(length * scores, theta)
                least = product - case.at(length * scores)[0] - rounding
                promise = "loss(scores) + conjugate(theta) >= <scores, theta>"
                case.at_most(least, conjugate, promise)


def _check_conjugate_of_residuals(case: LossCase) -> None:
    loss, target = case.loss, case.target
    for length in (0.0, 0.3, 1.0, -1.0, 30.0):
        scores = length * case.scores
        value, theta = case.at(scores)
        product, rounding = _compute_inner_product(scores, theta)
        conjugate = loss.conjugate(theta, target, case.weight)
        promise = "loss(scores) + conjugate(residual) = <scores, residual>"
        case.close(value + conjugate, product, promise, atol=rounding + 1e-9 * abs(value))


def _check_prox(case: LossCase) -> None:
    """Check that the prox is a subgradient at known scores, and better than other points."""
    loss, target, weight = case.loss, case.target, case.weight
    points, start = _find_dual_points(case), 1.5 * weight[:, None] * case.direction
    for factor in (0.05, 1.0, 20.0):
        step = factor * float(weight.mean())
        prox = partial(loss.prox_conjugate, step=step, target=target, weight=weight)
        phi = np.asarray(case.call(prox, start, name="prox_conjugate"))
        promise = "prox_conjugate returns a point of the conjugate's domain"
        case.require(math.isfinite(loss.conjugate(phi, target, weight)), promise)
        scores = (start - phi) / step
        product, rounding = _compute_inner_product(scores, phi)
        total = case.at(scores)[0] + loss.conjugate(phi, target, weight)
        promise = "prox_conjugate returns phi, a subgradient of the loss at (theta - phi) / step"
        case.close(total, product, promise, atol=10.0 * rounding)
        best = _compute_prox_objective(case, phi, start, step)
        for other in points:
            for part in (1.0, 0.1, 1e-2, 1e-3):
                move = part * (other - phi)
                rise = _compute_prox_objective(case, phi + move, start, step) - best
                least = float(np.sum(move * move)) / (2.0 * step)
                promise = "prox_conjugate minimises conjugate(phi) + |phi - theta|^2 / (2 step)"
                what = "the rise to another point, at least "
                case.at_most(least - 1e-10 * (1.0 + abs(best)), rise, promise, what)


def _compute_prox_objective(
    case: LossCase, phi: np.ndarray, theta: np.ndarray, step: float
) -> float:
    value = case.loss.conjugate(phi, case.target, case.weight)
    return float(value + np.sum((phi - theta) ** 2) / (2.0 * step))


def _check_prox_steps(case: LossCase) -> None:
    loss, target, weight = case.loss, case.target, case.weight
    theta = weight[:, None] * case.direction
    steps = weight[::-1, None].copy()
    together = np.asarray(loss.prox_conjugate(theta, steps, target, weight))
    for row in range(len(weight)):
        alone = loss.prox_conjugate(theta, float(steps[row, 0]), target, weight)
        promise = "prox_conjugate takes a step for every row"
        case.close(together[row], np.asarray(alone)[row], promise, atol=ROUNDING)


def _check_balance(case: LossCase) -> None:
    loss, target, weight = case.loss, case.target, case.weight
    residual = case.at(case.scores)[1]
    even = np.asarray(loss.balance(residual, target, weight))
    near = even + 1e-6 * (residual - even)
    for theta in (residual, near, even, _find_balanced_point(case), np.zeros_like(even)):
        found = np.asarray(case.call(loss.balance, theta, target, weight, name="balance"))
        zero = np.zeros(case.n_outputs)
        promise = "balance returns a point that sums to zero in every output"
        case.close(found.sum(axis=0), zero, promise, atol=ROUNDING)
        promise = "balance returns a point of the conjugate's domain"
        case.require(math.isfinite(loss.conjugate(found, target, weight)), promise)
        moved, most = np.abs(found - theta).sum(), 3.0 * np.abs(theta.sum(axis=0)).sum()
        promise = "balance moves a point by little more than its sums"
        case.at_most(moved, most + ROUNDING, promise)


def _find_balanced_point(case: LossCase) -> np.ndarray:
    """Return a point of the domain whose sums are nearly zero, found without ``balance``.

    It is the derivative, at the best intercept, of the loss's Moreau envelope. The envelope is
    smooth for every loss, and its derivative is the prox of the conjugate.
    """
    step = float(case.weight.mean())

    def point(intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = step * (case.scores + intercept)
        phi = case.loss.prox_conjugate(theta, step, case.target, case.weight)
        return theta, np.asarray(phi)

    def envelope(intercept: np.ndarray) -> tuple[float, np.ndarray]:
        theta, phi = point(intercept)
        value = case.at((theta - phi) / step)[0] + float(np.sum(phi * phi)) / (2.0 * step)
        return value, phi.sum(axis=0)

    best = minimize(envelope, np.zeros(case.n_outputs), jac=True, method="BFGS")
    return point(best.x)[1]


def _check_best_constant(case: LossCase) -> None:
    loss = case.loss
    if not loss.is_classifier or math.isfinite(loss.smoothness):
        return
    constant, theta = loss.best_constant(case.target, case.weight)
    promise = "best_constant returns a dual point that sums to zero in every output"
    sums = np.asarray(theta).sum(axis=0)
    case.close(sums, np.zeros(case.n_outputs), promise, atol=ROUNDING)
    value = case.at(np.zeros_like(case.scores) + np.asarray(constant))[0]
    gap = value + float(loss.conjugate(theta, case.target, case.weight))
    promise = "best_constant has the smallest loss, and its dual point proves it"
    case.require(abs(gap) <= 1e-9 * max(abs(value), 1.0), promise, f"a gap of {gap:.3g} is left")


def _check_zero_weights_of_duals(case: LossCase) -> None:
    loss, target, weight = case.loss, case.target, case.weight.copy()
    weight[::3] = 0.0
    theta = case.at(case.scores, weight)[1]
    promise = "rows of weight zero have no effect"
    found = loss.conjugate(theta, target, weight)
    case.require(math.isfinite(found), promise, f"the conjugate is {found}")
    away = theta + case.direction * case.weight[:, None]
    for name, array in (
        ("prox_conjugate", loss.prox_conjugate(away, 0.1, target, weight)),
        ("balance", loss.balance(away, target, weight)),
    ):
        empty = not np.any(np.asarray(array)[::3])
        case.require(empty and np.all(np.isfinite(array)), promise, f"{name} is not zero there")
    theta[0] = away[0]
    found = loss.conjugate(theta, target, weight)
    promise = "the conjugate is infinite where a row of weight zero is not zero"
    case.require(found == math.inf, promise, f"got {found}")


def _check_single_precision_of_duals(case: LossCase) -> None:
    scores, target, weight, direction = case.single()
    theta = case.loss.value_and_residual(scores, target, weight)[1]
    away, step = weight[:, None] * direction, float(weight[0])
    prox = case.loss.prox_conjugate(away, step, target, weight)
    even = case.loss.balance(theta, target, weight)
    case.require_single({"prox_conjugate": prox, "balance": even})
    promise = "float32 agrees with float64"
    wanted = case.loss.prox_conjugate(away.astype(np.float64), step, case.target, case.weight)
    case.close(prox, wanted, promise, atol=1e-5)
    for point in (theta, prox, even):
        found = case.loss.conjugate(point, target, weight)
        case.require(math.isfinite(found), promise, "the conjugate is infinite in float32")


def _check_box_dual(case: LossCase) -> None:
    """Check that ``box_dual`` of a loss describes its conjugate."""
    loss, target, weight = case.loss, case.target, case.weight
    if getattr(loss, "box_dual", None) is None:
        return
    form = loss.box_dual(target, weight)
    low, high = np.maximum(form.low, -1e3), np.minimum(form.high, 1e3)
    for part in (0.0, 0.3, 0.8, 1.0):
        theta = low + part * (high - low)
        parts = form.slope * theta + 0.5 * form.curvature * theta**2 + form.kink * np.abs(theta)
        conjugate = loss.conjugate(theta, target, weight)
        promise = "box_dual is the form of the conjugate"
        case.close(conjugate, float(np.sum(parts)), promise, rtol=1e-9)
    for bound, sign in ((form.low, -1.0), (form.high, 1.0)):
        if np.all(np.isfinite(bound)):
            outside = bound + sign * 0.01 * weight[:, None]
            infinite = loss.conjugate(outside, target, weight) == math.inf
            case.require(infinite, "the conjugate is infinite beyond the bounds of box_dual")


DUAL_CHECKS = (
    _check_conjugate_of_residuals,
    _check_fenchel_young,
    _check_prox,
    _check_prox_steps,
    _check_balance,
    _check_best_constant,
    _check_zero_weights_of_duals,
    _check_single_precision_of_duals,
    _check_box_dual,
)

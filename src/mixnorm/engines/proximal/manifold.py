"""Newton steps on the set of weights where a sum of row norms is smooth.

Near a solution the zeros stay zero, and with them held the norm has derivatives. For the Euclidean
row norm the rows that are not zero move, for the sum of magnitudes the entries that are not zero.
For the largest magnitude the entries that attain it move together, and the others are free.
Conjugate gradients with exact products by the Hessian of the loss solve for the step; a model
preconditions them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mixnorm.data import ColumnSet
from mixnorm.engines.proximal.descent import row_norms
from mixnorm.engines.proximal.preconditioner import Preconditioner
from mixnorm.engines.proximal.problem import NormProblem, Point, SecondOrder


class SmoothPart:
    """Tangent space and derivatives of a sum of row norms at weights without zero rows."""

    def __init__(self, weights: np.ndarray, exponent: float) -> None:
        self._exponent = exponent
        # Every row has a positive norm: the caller leaves rows of zeros out.
        norms = row_norms(weights, exponent)[:, None]
        if exponent == 2.0:
            self.gradient = weights / norms
            self._bend = (1.0 / norms).astype(weights.dtype)
        elif exponent == 1.0:
            self.gradient = np.sign(weights)
        else:
            # Exact comparison: the proximal map cuts the entries of a row to the same number, and
            # ``retract`` puts later ones there too. Entries that are near it are free.
            self._tied = np.abs(weights) == norms
            self._signs = np.where(self._tied, np.sign(weights), 0.0).astype(weights.dtype)
            self._count = np.sum(self._tied, axis=1, keepdims=True).astype(weights.dtype)
            self.gradient = self._signs / self._count

    def tangent(self, step: np.ndarray) -> np.ndarray:
        """Return the part of a step that stays on the manifold, an orthogonal projection."""
        if self._exponent == 2.0:
            return step
        if self._exponent == 1.0:
            return np.asarray(step * np.abs(self.gradient))
        # Tied entries move by the same amount, each along its sign.
        mean = np.sum(self._signs * step, axis=1, keepdims=True) / self._count
        return np.where(self._tied, self._signs * mean, step)

    def bend(self, step: np.ndarray) -> np.ndarray | None:
        """Return the second derivative of the norm (:eq:`row-norm-hessian`) times a step.

        None where it is zero.
        """
        if self._exponent != 2.0:
            return None
        along = np.einsum("ij,ij->i", self.gradient, step)[:, None]
        return np.asarray(self._bend * (step - self.gradient * along))

    def retract(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights with entries that went past a kink held at it.

        An entry whose sign changed becomes zero. An entry that grew beyond those that move together
        joins them.
        """
        if self._exponent == 2.0:
            return weights
        if self._exponent == 1.0:
            return np.asarray(np.where(weights * self.gradient > 0.0, weights, 0.0))
        # A straight step keeps the tied entries equal, but for rounding: they get the largest. If
        # their common magnitude passed zero, the whole row becomes zero.
        shared = np.where(self._tied, self._signs * weights, -np.inf)
        level = np.maximum(np.max(shared, axis=1, keepdims=True), 0.0)
        return np.asarray(np.clip(weights, -level, level))

    def ridge(self) -> np.ndarray | None:
        """Return the largest second derivative of each row's norm; None where it has none."""
        return self._bend[:, 0] if self._exponent == 2.0 else None

    def unknowns(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the directions that span the tangent space; None where that is all weights.

        First the rows they belong to, then how each moves the outputs of its row.
        """
        if self._exponent == 2.0:
            return None
        n_rows, n_outputs = self.gradient.shape
        dtype = self.gradient.dtype
        if self._exponent == 1.0:
            rows, outputs = np.nonzero(self.gradient)
            return rows, np.eye(n_outputs, dtype=dtype)[outputs]
        rows, outputs = np.nonzero(~self._tied)
        free = np.eye(n_outputs, dtype=dtype)[outputs]
        return (np.concatenate([np.arange(n_rows), rows]), np.concatenate([self._signs, free]))


@dataclass(frozen=True)
class Step:
    """A step of weights and intercept, what it does to the scores, and the slope along it."""

    weights: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    slope: float


def newton_step(
    problem: NormProblem,
    block: ColumnSet,
    factor: Preconditioner,
    point: Point,
    weights: np.ndarray,
    smooth: SmoothPart,
) -> Step:
    """Return an inexact Newton step of the rows in ``block``, none of which is zero.

    Conjugate gradients with preconditioner ``factor`` solve the Newton system, projected on the
    tangent space (:eq:`manifold-newton`), until a part ``forcing`` of the gradient is left.
    """
    settings = problem.settings
    alpha = weights.dtype.type(problem.alpha)
    gradient = smooth.tangent(block.gradient(point.residual) + alpha * smooth.gradient)
    # Without an intercept its gradient is zero, and so are all of its steps.
    bias = np.sum(point.residual, axis=0) * problem.fit_intercept
    hessian = SecondOrder(problem, point).product()
    left, left_bias = -gradient, -bias
    step = np.zeros_like(weights)
    step_bias = np.zeros_like(bias)
    # Kept up to date with the step, which saves the line search a product with the data. The order
    # is that of all scores; adding to the other order would take several times as long.
    scores = np.zeros(point.scores.shape, dtype=weights.dtype, order="F")

    def precondition(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Overflow needs no warning: the loop below ends where numbers are not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            found, found_bias = factor.solve(a, b)
        return smooth.tangent(found), found_bias

    ahead, ahead_bias = precondition(left, left_bias)
    # ``size`` is the squared residual in the norm of the preconditioner. The first product is
    # always made; later ones only while more than ``forcing`` of the first residual is left.
    size = first = _inner(left, ahead, left_bias, ahead_bias)
    products, enough = 0, settings.forcing**2
    while products < settings.max_products and size > enough * first * (products > 0) and size > 0:
        along = block.scores(ahead)
        along += ahead_bias
        bent = hessian(along)
        change = block.gradient(bent)
        extra = smooth.bend(ahead)
        if extra is not None:
            change += alpha * extra
        change = smooth.tangent(change)
        change_bias = np.sum(bent, axis=0) * problem.fit_intercept
        # The Hessian is positive semi-definite. A direction without curvature is due to a flat loss
        # or to rounding, and a step along it would have no bound. ``not >`` also stops at NaN.
        curvature = _inner(ahead, change, ahead_bias, change_bias)
        if not curvature > 0.0 or not math.isfinite(size / curvature):
            break
        length = weights.dtype.type(size / curvature)
        step += length * ahead
        step_bias += length * ahead_bias
        scores += length * along
        left = left - length * change
        left_bias = left_bias - length * change_bias
        products += 1
        found, found_bias = precondition(left, left_bias)
        next_size = _inner(left, found, left_bias, found_bias)
        ratio = weights.dtype.type(next_size / size)
        ahead, ahead_bias = found + ratio * ahead, found_bias + ratio * ahead_bias
        size = next_size
    slope = _inner(gradient, step, bias, step_bias)
    return Step(step, step_bias, scores, slope)


def _inner(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> float:
    return float(np.vdot(a, b)) + float(np.vdot(c, d))

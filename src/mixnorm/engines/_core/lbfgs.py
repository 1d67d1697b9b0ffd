"""Limited-memory quasi-Newton directions around a given inverse-Hessian model (:eq:`two-loop`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mixnorm._array import Array, is_numpy, namespace, to_numpy

# Cosine of a step and its change of the gradient below which their product is rounding. A pair with
# a product that is not positive would also make the model indefinite.
_LEAST_COSINE = 1e-10


class History:
    """The last few steps and changes of the gradient, which give the next direction.

    Arrays are flat vectors. ``solve`` applies a model of the inverse Hessian, where L-BFGS usually
    has a scaled identity. The two loops of the recursion run over inner products only, so that a
    direction costs four products with the stacked vectors, however many there are.
    """

    def __init__(self, solve: Callable[[Array], Any], memory: int = 6) -> None:
        self._solve = solve
        self._memory = memory
        self._steps: Any = None
        self._changes: Any = None
        self._inner: list[list[float]] = []  # step_i . change_j
        self._inverse: Any = None  # of the triangle of these, for arrays on a device
        self._diagonal: Any = None
        self._scale = 1.0

    def direction(self, gradient: Array) -> Any:
        """Return the descent step ``H gradient`` of :eq:`two-loop` (to be subtracted)."""
        if self._steps is None:
            return self._solve(gradient)
        if not is_numpy(gradient):
            return self._direction_on_device(gradient)
        inner, count = self._inner, len(self._inner)
        # From the newest pair to the oldest, and back after the model. Python's floats are in
        # double precision whatever the arrays are.
        along = to_numpy(self._steps @ gradient).tolist()
        first = [0.0] * count
        for i in reversed(range(count)):
            used = sum(first[j] * inner[i][j] for j in range(i + 1, count))
            first[i] = (along[i] - used) / inner[i][i]
        reduced = gradient - self._vector(first, gradient) @ self._changes
        vector = self._solve(reduced) * self._scale
        back = to_numpy(self._changes @ vector).tolist()
        second = [0.0] * count
        for i in range(count):
            used = sum(second[j] * inner[j][i] for j in range(i))
            second[i] = first[i] - (back[i] + used) / inner[i][i]
        return vector + self._vector(second, gradient) @ self._steps

    def record(self, step: Array, change: Array) -> None:
        """Add a step and the change of the gradient along it, unless it is lost in rounding."""
        if not is_numpy(step) or not is_numpy(change):
            self._record_on_device(step, change)
            return
        product = float(step @ change)
        if product <= _LEAST_COSINE * math.sqrt(float(step @ step) * float(change @ change)):
            return
        if self._steps is None:
            self._steps = self._changes = np.empty((0, len(step)), step.dtype)
        first = max(0, len(self._inner) + 1 - self._memory)
        # Only the products with the new pair are computed; those of older pairs are kept.
        column, row = (self._steps @ change).tolist(), (self._changes @ step).tolist()
        kept = [[*line[first:], end] for line, end in zip(self._inner, column, strict=True)]
        self._inner = [*kept[first:], [*row[first:], product]]
        self._steps = np.concatenate([self._steps[first:, :], step[None, :]])
        self._changes = np.concatenate([self._changes[first:, :], change[None, :]])
        # The model is scaled so that it is exact along the last change, as the scaled identity is
        # in the usual method.
        model = float(change @ self._solve(change))
        if model > 0.0:
            self._scale = product / model

    # On a device, Python waits for all earlier work whenever it reads a number. The methods below
    # do the same as those above, with one such wait in ``record`` and none in ``direction``.

    def _direction_on_device(self, gradient: Array) -> Any:
        """Return the direction by products with the inverse of a triangle in place of the loops.

        For the upper triangle ``U`` of the inner products and its diagonal ``D``, the loops solve
        ``U a = S g`` and ``U^T b = D a - Y v``.
        """
        first = self._inverse @ (self._steps @ gradient)
        vector = self._solve(gradient - first @ self._changes) * self._scale
        second = self._inverse.T @ (self._diagonal * first - self._changes @ vector)
        return vector + second @ self._steps

    def _record_on_device(self, step: Array, change: Array) -> None:
        """Add a step and the change of the gradient along it, unless it is lost in rounding."""
        xp, steps, changes = namespace(step), step[None, :], change[None, :]
        if self._steps is not None:
            steps, changes = xp.concat([self._steps, steps]), xp.concat([self._changes, changes])
        squares = [steps[-1:, :] @ step, changes[-1:, :] @ change]
        bend = changes[-1:, :] @ self._solve(change)
        found = to_numpy(xp.concat([steps @ change, changes @ step, *squares, bend])).tolist()
        column, row = found[: len(self._inner)], found[len(self._inner) + 1 : -3]
        product, (own, other, model) = row[-1], found[-3:]
        if product <= _LEAST_COSINE * math.sqrt(own * other):
            return
        first = max(0, len(self._inner) + 1 - self._memory)
        kept = [[*line[first:], end] for line, end in zip(self._inner, column, strict=True)]
        self._inner = [*kept[first:], row[first:]]
        self._steps, self._changes = steps[first:, :], changes[first:, :]
        upper = np.triu(np.asarray(self._inner))
        packed = [*np.linalg.inv(upper).tolist(), np.diag(upper).tolist()]
        on_device = self._vector(packed, step)  # in one copy
        self._inverse, self._diagonal = on_device[:-1, :], on_device[-1, :]
        if model > 0.0:
            self._scale = product / model

    @staticmethod
    def _vector(values: list[Any], like: Any) -> Any:
        """Return numbers as an array where ``like`` is."""
        return namespace(like).asarray(values, dtype=like.dtype, device=like.device)

"""Approximate inverses of the Hessian of a loss in weights and intercept, from a model.

The Hessian is taken to be ``G (x) M``, with ``G`` the Gram matrix of the rows, weighted by their
curvature. For joint losses ``M`` is the mean Hessian in the scores, for scalar ones the identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mixnorm.engines.proximal.loss_model import Model

_LARGEST_REDUCED_SYSTEM = 1500  # unknowns of a reduced system that is solved directly
_NULL = 1e-9  # eigenvalues of M below this part of the largest count as zero


class Preconditioner:
    """An approximate inverse Hessian; the intercept is eliminated by the model's means."""

    def __init__(self, model: Model, outputs: np.ndarray | None) -> None:
        self._means = model.means
        self._totals = model.positive_totals
        self._outputs = outputs
        if outputs is not None:
            inverse = np.linalg.pinv(outputs, rcond=_NULL, hermitian=True)
            self._outputs = np.asarray(inverse, dtype=model.gram.dtype)

    def solve(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the inverse applied to gradients in the weights and in the intercept."""
        if self._means is None:
            return self._solve(weights), np.zeros_like(intercept)
        found = self._solve(weights - self._means * intercept)
        own = intercept / self._totals
        if self._outputs is not None:
            own = own @ self._outputs
        return found, own - np.sum(self._means * found, axis=0)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class OutputwisePreconditioner(Preconditioner):
    """One factor per Gram matrix, or per eigenvector of ``M``, and a ridge for each row."""

    def __init__(self, model: Model, outputs: np.ndarray | None, ridge: np.ndarray) -> None:
        super().__init__(model, outputs)
        dtype, self._turn = model.gram.dtype, None
        grams = (gram.copy() for gram in model.gram)
        if outputs is not None:
            values, turn = np.linalg.eigh(outputs)
            self._turn = turn.astype(dtype)
            grams = (model.gram[0] * value for value in np.maximum(values, 0.0).astype(dtype))
        self._factors = [_factorise(gram, ridge) for gram in grams]

    def _solve(self, right: np.ndarray) -> np.ndarray:
        if len(self._factors) == 1 and self._turn is None:
            return np.ascontiguousarray(_solve_with(self._factors[0], right))
        turned = right if self._turn is None else right @ self._turn
        parts = [_solve_with(factor, turned[:, [r]]) for r, factor in enumerate(self._factors)]
        found = np.concatenate(parts, axis=1)
        return found if self._turn is None else np.ascontiguousarray(found @ self._turn.T)


class ReducedPreconditioner(Preconditioner):
    """A factor of the model in few unknowns, each a direction in the outputs of one row.

    ``rows`` says which row an unknown belongs to, ``directions`` how it moves that row's weights.
    """

    def __init__(
        self, model: Model, outputs: np.ndarray | None, rows: np.ndarray, directions: np.ndarray
    ) -> None:
        super().__init__(model, outputs)
        self._rows, self._directions = rows, directions
        self._shape = (model.gram.shape[1], directions.shape[1])
        matrix = np.zeros((len(rows), len(rows)), dtype=model.gram.dtype)
        across = directions if outputs is None else directions @ outputs.astype(directions.dtype)
        if len(model.gram) == 1:
            matrix = model.gram[0][rows[:, None], rows[None, :]] * (across @ directions.T)
        else:
            for gram, column in zip(model.gram, directions.T, strict=True):
                matrix += gram[rows[:, None], rows[None, :]] * np.outer(column, column)
        size = float(np.max(np.diagonal(matrix), initial=0.0))
        ridge = np.full(len(rows), 1e-5 * size, dtype=matrix.dtype)
        self._factor = _factorise(matrix, ridge)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        reduced = np.einsum("ur,ur->u", self._directions, right[self._rows])
        step = _solve_with(self._factor, reduced[:, None])
        found = np.zeros(self._shape, dtype=right.dtype)
        np.add.at(found, self._rows, self._directions * step)
        return found


def precondition(
    model: Model,
    outputs: np.ndarray | None,
    ridge: np.ndarray | None,
    unknowns: tuple[np.ndarray, np.ndarray] | None,
) -> Preconditioner:
    """Return an approximate inverse, in the unknowns where these are few, else in all weights."""
    if len(model.gram) > 1:
        outputs = None
    if unknowns is not None and len(unknowns[0]) <= _LARGEST_REDUCED_SYSTEM:
        return ReducedPreconditioner(model, outputs, *unknowns)
    if ridge is None:
        ridge = np.full(len(model.diagonal), 1e-5 * float(np.max(model.diagonal, initial=0.0)))
    return OutputwisePreconditioner(model, outputs, ridge.astype(model.gram.dtype))


def _factorise(matrix: np.ndarray, ridge: np.ndarray) -> Any:
    """Return a Cholesky factor of ``matrix + diag(ridge)``, with more ridge until there is one.

    The diagonal stands in where no ridge helps.
    """
    index = np.arange(len(matrix))
    eps = 16.0 * float(np.finfo(matrix.dtype).eps) * len(matrix)
    extra = ridge + eps * np.max(np.diagonal(matrix), initial=0.0)
    for _ in range(12):
        matrix[index, index] += extra
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            extra = 10.0 * (extra + float(np.finfo(matrix.dtype).tiny))
    return np.maximum(np.abs(np.diagonal(matrix)), float(np.finfo(matrix.dtype).tiny))


def _solve_with(factor: Any, right: np.ndarray) -> np.ndarray:
    if isinstance(factor, tuple):
        return np.asarray(cho_solve(factor, right, check_finite=False))
    return np.asarray(right / factor[:, None])

"""Approximate inverses of the Hessian of a loss in weights and intercept, from a model.

The Hessian is taken to be ``G (x) M``, with ``G`` the Gram matrix of the rows, weighted by their
curvature. For joint losses ``M`` is the mean Hessian in the scores, for scalar ones the identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.settings import DEFAULT_SETTINGS, ProximalSettings

# Eigenvalues of M below this part of the largest count as zero. For a soft-max one of them is: a
# constant added to all scores changes nothing.
_NULL = 1e-9
# Ridge where the norm has no curvature of its own, relative to the largest diagonal entry. Columns
# may be collinear, and steps along their null space would be without bound.
_LEAST_RIDGE = 1e-5
# Attempts to factor a matrix, each with about ten times the ridge of the last.
_CHOLESKY_ATTEMPTS, _RIDGE_GROWTH = 12, 10.0


class Preconditioner:
    """An approximate inverse Hessian; the intercept is eliminated by the model's means.

    In terms of centred columns (:eq:`loss-model`) the Hessian has no entries between weights and
    intercept. Both are solved for separately, and the centring is undone.
    """

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
        # The transpose of what happens at the end, so that the inverse stays symmetric, as
        # conjugate gradients need it.
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
        # Copies, as factoring overwrites them and the model goes on to be used.
        grams = (gram.copy() for gram in model.gram)
        # In the basis of the eigenvectors of M, G (x) M falls into one matrix for each eigenvalue.
        if outputs is not None:
            values, turn = np.linalg.eigh(outputs)
            self._turn = turn.astype(dtype)
            grams = (model.gram[0] * value for value in np.maximum(values, 0.0).astype(dtype))
        self._factors = [_factorise(gram, ridge) for gram in grams]

    def _solve(self, right: np.ndarray) -> np.ndarray:
        if len(self._factors) == 1 and self._turn is None:
            return np.ascontiguousarray(_solve_with(self._factors[0], right))
        # Into the basis of the eigenvectors, and back at the end.
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
        # Entry (u, v) is d_u' M d_v times the entry of G at the rows of u and v.
        matrix = np.zeros((len(rows), len(rows)), dtype=model.gram.dtype)
        across = directions if outputs is None else directions @ outputs.astype(directions.dtype)
        if len(model.gram) == 1:
            matrix = model.gram[0][rows[:, None], rows[None, :]] * (across @ directions.T)
        else:
            for gram, column in zip(model.gram, directions.T, strict=True):
                matrix += gram[rows[:, None], rows[None, :]] * np.outer(column, column)
        size = float(np.max(np.diagonal(matrix), initial=0.0))
        ridge = np.full(len(rows), _LEAST_RIDGE * size, dtype=matrix.dtype)
        self._factor = _factorise(matrix, ridge)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        reduced = np.einsum("ur,ur->u", self._directions, right[self._rows])
        step = _solve_with(self._factor, reduced[:, None])
        found = np.zeros(self._shape, dtype=right.dtype)
        # ``found[rows] += ...`` would keep one of the unknowns of a row only.
        np.add.at(found, self._rows, self._directions * step)
        return found


def precondition(
    model: Model,
    outputs: np.ndarray | None,
    ridge: np.ndarray | None,
    unknowns: tuple[np.ndarray, np.ndarray] | None,
    settings: ProximalSettings = DEFAULT_SETTINGS,
) -> Preconditioner:
    """Return an approximate inverse, in the unknowns where these are few, else in all weights."""
    # With a matrix for each output, the curvatures of the outputs are in these already.
    if len(model.gram) > 1:
        outputs = None
    if unknowns is not None and len(unknowns[0]) <= settings.largest_reduced_system:
        return ReducedPreconditioner(model, outputs, *unknowns)
    if ridge is None:
        least = _LEAST_RIDGE * float(np.max(model.diagonal, initial=0.0))
        ridge = np.full(len(model.diagonal), least)
    return OutputwisePreconditioner(model, outputs, ridge.astype(model.gram.dtype))


def _factorise(matrix: np.ndarray, ridge: np.ndarray) -> Any:
    """Return a Cholesky factor of ``matrix + diag(ridge)``, with more ridge until there is one.

    If no ridge helps, the diagonal is returned in its place. ``matrix`` is changed.
    """
    # Rounding moves eigenvalues by up to about this much. A ridge of that size makes a singular
    # matrix positive definite, and is too small to matter to a preconditioner.
    index = np.arange(len(matrix))
    eps = 16.0 * float(np.finfo(matrix.dtype).eps) * len(matrix)
    extra = ridge + eps * np.max(np.diagonal(matrix), initial=0.0)
    for _ in range(_CHOLESKY_ATTEMPTS):
        matrix[index, index] += extra  # on top of the ridge of the last attempt
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            extra = _RIDGE_GROWTH * (extra + float(np.finfo(matrix.dtype).tiny))
    return np.maximum(np.abs(np.diagonal(matrix)), float(np.finfo(matrix.dtype).tiny))


def _solve_with(factor: Any, right: np.ndarray) -> np.ndarray:
    """Solve with what :func:`_factorise` returned: a Cholesky factor, or a diagonal."""
    if isinstance(factor, tuple):
        return np.asarray(cho_solve(factor, right, check_finite=False))
    return np.asarray(right / factor[:, None])

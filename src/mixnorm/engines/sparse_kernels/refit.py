"""The models that the engine of sparse kernel learning improves with each chosen kernel.

All three models are ``scores = intercept + sum_j K_j B_j`` over the chosen kernels. The tables
``B_j`` are sums of a few terms, which kernels may share. At the optimum a term is a multiple of the
residual (:eq:`gomp-table`, :eq:`lasso-table`). It is stored so if that is exact, since the error of
the solver is multiplied by the kernels and divided by the penalty there. Otherwise the terms hold
the coefficients of the model in a few rows, the pivots of a factor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

from mixnorm.engines._core.corrective import CorrectionProblem, Outcome, Support
from mixnorm.engines.multikernel.machine import solve_feature_ridge, solve_ridge
from mixnorm.engines.sparse_kernels.settings import DEFAULT_SETTINGS, SparseKernelSettings
from mixnorm.kernels import pivoted_factor
from mixnorm.losses import SmoothLoss

if TYPE_CHECKING:
    from mixnorm.pools import KernelPool

# Steps of the line search that change the length by less than this part of it are the last.
_LAST_MOVE = 1e-10
# Changes of scores outside these bounds are scaled first, so that their squares are finite.
_SMALLEST_CHANGE, _LARGEST_CHANGE = 1e-100, 1e100


class GrowingModel:
    """The model that the rounds of the engine improve; the first one is a constant.

    A model with ``has_gap`` also has ``largest()``, the largest score of the chosen kernels, and
    ``dual_value(largest)``, a lower bound of the objective if that is the largest score of all.
    """

    #: The rule by which a pool scores kernels.
    rule: str
    #: Numbers that shape the refit.
    settings: SparseKernelSettings = DEFAULT_SETTINGS
    #: Whether a kernel may be chosen again.
    repeats = False
    #: Whether the largest score of all kernels gives a duality gap.
    has_gap = False

    def __init__(
        self,
        pool: KernelPool,
        loss: SmoothLoss,
        target: Any,
        weight: np.ndarray,
        n_outputs: int,
    ) -> None:
        self.pool, self.target, self.weight = pool, target, weight
        self.loss: Any = loss
        self.n_outputs = n_outputs
        #: The chosen kernels, in the order in which they came.
        self.support: list[int] = []
        # The best constant, nearly exactly: all scores and gaps are relative to its loss.
        empty = Support(CorrectionProblem(loss, target, weight, n_outputs, 0.0, 1000), True, 1)
        empty.correct(1e-12, 0.0)
        self.intercept = self.null_intercept = np.array(empty.intercept())
        self.null_value = empty.value
        self.noise = empty.noise
        self.set_scores(np.broadcast_to(self.intercept, (len(weight), n_outputs)).copy())
        self.objective = self.value

    def set_scores(self, scores: np.ndarray) -> None:
        """Set the scores, and with them the loss and the residual."""
        self.scores = scores
        value, self.residual = self.loss.value_and_residual(scores, self.target, self.weight)
        self.value = float(value)

    def enough(self) -> float:
        """Return the score that a kernel must exceed to improve the model: by default, rounding."""
        return self.noise

    def add(self, kernel: int) -> Outcome:
        """Add a kernel, or use it again, and improve the model."""
        raise NotImplementedError

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the terms of the last round.

        These are tables ``(n_terms, n_samples, n_outputs)``, their factors in each kernel of the
        support ``(n_kernels, n_terms)``, and whether the terms of earlier rounds stay.
        """
        raise NotImplementedError

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Continue from a model: its kernels, and the table of each."""
        raise NotImplementedError


class RidgeRefit(GrowingModel):
    r"""Group orthogonal matching pursuit: kernel ridge regression on the sum of chosen kernels.

    Minimises the loss plus :math:`\frac\alpha2 \sum_j \|f_j\|^2` after each choice
    (:eq:`gomp-problem`). At the optimum all kernels share one table, the residual divided by
    :math:`-\alpha` (:eq:`gomp-table`).
    """

    rule = "functional"

    def __init__(
        self,
        *given: Any,
        alpha: float,
        tol: float,
        max_iter: int,
        settings: SparseKernelSettings = DEFAULT_SETTINGS,
    ) -> None:
        super().__init__(*given)
        self.settings = settings
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        n = len(self.weight)
        self._by_factors = self.pool.grams.factors is not None
        self._K = np.zeros((0, 0) if self._by_factors else (n, n))
        self._Z = np.zeros((n, 0))
        self._dual = np.zeros((n, self.n_outputs))

    def add(self, kernel: int) -> Outcome:
        """Add a kernel to the sum, and solve."""
        self._add_kernel(kernel)
        if not self.loss.constant_curvature:
            outcome = self._solve()
            self._score_table()
            return outcome
        # Squared errors: one system (:eq:`gomp-system`). The intercept stays the mean of the
        # targets.
        Y, caps = self.target - self.intercept, self.weight / self.alpha
        solve, matrix = (
            (solve_feature_ridge, self._Z) if self._by_factors else (solve_ridge, self._K)
        )
        try:
            self._dual = solve(matrix, caps, Y)
        except ValueError:  # answered below, together with solutions that rounding has spoiled
            self._dual = np.full_like(self._dual, np.nan)
        self._score_table()
        if not self.objective <= self.null_value * (1.0 + 1e-6):
            raise ValueError(
                f"alpha={self.alpha:g} is so small beside the sum of the kernels that rounding "
                "leaves no solution. Raise alpha, or scale the kernels (normalize='trace' in a "
                "bank)."
            )
        return Outcome(1, 0.0, True)

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the table that all kernels share."""
        return self._dual[None], np.ones((len(self.support), 1)), False

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Continue from a model."""
        for kernel in support:
            self._add_kernel(kernel)
        self.intercept, self._dual = intercept, blocks[0]
        self._score_table()

    def _add_kernel(self, kernel: int) -> None:
        self.support.append(kernel)
        if self._by_factors:
            self._Z = np.concatenate([self._Z, self.pool.columns(kernel).T], axis=1)
        else:
            self._K += self.pool.matrix(kernel)

    def _score_table(self) -> None:
        """Set the scores of the stored table."""
        A, Z = self._dual, self._Z
        # At the optimum all functions have the coefficients ``A``: their squared norms sum to
        # ``tr A^T K A`` (:eq:`gomp-table`).
        parts = np.asarray(Z @ (Z.T @ A) if self._by_factors else self._K @ A)
        self.set_scores(self.intercept + parts)
        self.objective = self.value + 0.5 * self.alpha * float(np.sum(parts * self._dual))

    def _solve(self) -> Outcome:
        """Minimise a loss that is not quadratic, over the columns of a factor of the sum.

        This is :eq:`gomp-problem`, and the refit is that of the greedy engine.
        """
        factor, pivots = (self._Z, None) if self._by_factors else pivoted_factor(self._K)
        problem = CorrectionProblem(
            self.loss, self.target, self.weight, self.n_outputs, 0.5 * self.alpha, self.max_iter
        )
        # All columns come in as one atom, from the weights that the last table gives them.
        columns = Support(problem, True, factor.shape[1])
        rows, means = columns.centre(np.ascontiguousarray(factor.T))
        columns.append("kernels", rows, rows @ self._dual, means)
        columns.start_from(self.intercept)
        if not columns.objective < self.null_value:  # the table is that of fewer kernels
            columns.weights = np.zeros_like(columns.weights)
            columns.start_from(self.null_intercept)
        outcome = columns.correct(self.tol, self.null_value)
        self.intercept = np.array(columns.intercept())
        coefs = np.asarray(columns.weights[1:])
        # The penalty is on the columns as they are, with or without their means, as the intercept
        # is free: then the residual sums to zero, and its mean is only the error of the solver.
        residual = -np.asarray(columns.centred_residual()) / self.alpha
        missing = coefs - factor.T @ residual
        exact = norm(factor @ missing) <= self.settings.exact_distance * norm(factor @ coefs)
        self._dual = residual if exact else table_of(factor, pivots, coefs)
        return outcome


class GradientSteps(GrowingModel):
    r"""Algorithm 2: one step against a kernel's part of the gradient (:eq:`gradient-step`).

    ``step="unit"`` takes the step of the paper, :math:`1` for squared losses, which needs kernels
    of at most one between a row and itself; ``"line"`` takes the best step along the line.
    """

    rule = "empirical"
    repeats = True

    def __init__(
        self, *given: Any, step: str, settings: SparseKernelSettings = DEFAULT_SETTINGS
    ) -> None:
        super().__init__(*given)
        self.settings = settings
        self.step = step
        self._factors: dict[int, np.ndarray] = {}

    def add(self, kernel: int) -> Outcome:
        """Take a step in the direction of a kernel."""
        # ``-K G``: by the factor, two thin products in place of one with the matrix.
        phi = self._get_factor(kernel)
        change = -(phi @ (phi.T @ self.residual))
        length = 1.0 / self.loss.smoothness if self.step == "unit" else self._find_length(change)
        self._table = -length * self.residual
        self._last = kernel
        self.set_scores(self.scores + length * change)
        self.objective = self.value
        return Outcome(1, 0.0, math.isfinite(self.value))

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the last step, which belongs to one kernel."""
        mine = np.asarray([[float(kernel == self._last)] for kernel in self.support])
        return self._table[None], mine, True

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Continue from a model."""
        scores = self.scores
        for kernel, block in zip(support, blocks, strict=True):
            phi = self._get_factor(kernel)
            scores = scores + phi @ (phi.T @ block)
        self.set_scores(scores)

    def _get_factor(self, kernel: int) -> np.ndarray:
        """Return the factor of a kernel, which is kept, as a kernel may be chosen again."""
        if kernel not in self._factors:
            self.support.append(kernel)
            self._factors[kernel] = self.pool.columns(kernel).T
        return self._factors[kernel]

    def _find_length(self, change: np.ndarray) -> float:
        """Return the length of the best step (:eq:`line-step`), by Newton's method with safeguards.

        A change whose squares are not finite is first divided by a power of two.
        """
        size = float(np.max(np.abs(change), initial=0.0))
        unit = 1.0
        if size > 0.0 and not _SMALLEST_CHANGE < size < _LARGEST_CHANGE:
            # A power of two, so that the division does not round.
            unit = math.ldexp(1.0, math.frexp(size)[1] - 1)
            change = change / unit
        length, low, high = 0.0, 0.0, math.inf
        for _ in range(self.settings.newton_steps):
            _, residual = self.loss.value_and_residual(
                self.scores + length * change, self.target, self.weight
            )
            slope = float(np.sum(change * residual))
            bend = self.loss.hessian_form(change, residual, self.target, self.weight)
            # The slope grows along the line, so that its sign tells on which side the minimum is.
            if slope < 0.0:
                low = length
            else:
                high = length
            ahead = length - slope / bend if bend > 0.0 else math.inf
            # A step out of the bracket is replaced: by doubling without an upper end, else halving.
            if not low < ahead < high:
                ahead = 2.0 * max(length, 1.0) if high == math.inf else 0.5 * (low + high)
            moved, length = abs(ahead - length), ahead
            if self.loss.constant_curvature or moved <= _LAST_MOVE * length:
                break
        return length / unit


def table_of(factor: np.ndarray, pivots: np.ndarray | None, coefs: np.ndarray) -> np.ndarray:
    """Return a table with ``factor.T @ table`` equal to some coefficients.

    With pivots, at which the rows of the factor are triangular, only these rows of the table are
    not zero. Without pivots it is the smallest table. Functions with these coefficients and with
    this table are the same (:eq:`lasso-table`).
    """
    if pivots is None:
        return np.asarray(np.linalg.lstsq(factor.T, coefs, rcond=None)[0])
    table = np.zeros((len(factor), coefs.shape[1]))
    table[pivots] = linalg.solve_triangular(factor[pivots], coefs, lower=True, trans="T")
    return table


def norm(table: np.ndarray) -> float:
    """Return the root of the sum of squares."""
    return float(np.linalg.norm(table))

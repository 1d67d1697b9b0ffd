"""Machines: solvers of the learning problem for a weighted sum of kernels.

A machine minimises ``|w|^2 / 2 + sum_i cap_i loss_i`` over functions of that kernel. It works on
the dual variables ``A``, of shape ``(n_samples, n_outputs)``. These stay feasible, and are the
start when the weights change. The scores are the kernel times ``A``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg

from mixnorm._chunks import chunks
from mixnorm.engines.multikernel import machine_jit as jit
from mixnorm.engines.multikernel.ascent import Ascent, AscentMemory, find_active_rows
from mixnorm.engines.multikernel.interior import estimate_interior_seconds, solve_interior
from mixnorm.engines.multikernel.newton import score_duals
from mixnorm.engines.multikernel.settings import DEFAULT_SETTINGS, MultikernelSettings
from mixnorm.kernels import Grams, pivoted_factor

# Rows up to which the sum of kernels is kept in double precision: 72 MB. Above, in that of the
# kernels. A constant, because memory is estimated before there is an engine.
_DOUBLE_ROWS = 3000
# Dual variables below this part of the largest are rounding errors of the interior-point method.
_ZERO_DUAL = 1e-13
# Excesses by which these dual variables are raised in turn: rounding leaves margins just below one.
_EXCESSES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
# Columns are not copied if at least this part of them is in use.
_MANY_COLUMNS = 0.8


def estimate_workspace_bytes(n_samples: int, dtype: DTypeLike, squares: bool) -> int:
    """Estimate the memory that a machine needs beside the kernels: three matrices.

    These are the sum of the kernels and temporary arrays of its size. ``squares`` is True for the
    machine of squared losses, which always works in double precision.
    """
    double = squares or n_samples <= _DOUBLE_ROWS
    return 3 * n_samples**2 * (8 if double else np.dtype(dtype).itemsize)


class MachineTarget:
    """Targets and factors of losses; the dual objective has a linear and a bilinear part.

    The part of :eq:`kernel-dual` without the kernels is quadratic for all losses here. As a linear
    and a bilinear form it can be evaluated for combinations of dual variables
    (:eq:`reduced-problem`).
    """

    #: The factor of each sample's loss.
    caps: np.ndarray
    n_outputs: int
    #: Whether multiples of dual variables may be infeasible.
    bounded = False

    def __len__(self) -> int:
        return len(self.caps)

    def linear(self, A: np.ndarray) -> float:
        """Return the linear part of :meth:`gain`."""
        raise NotImplementedError

    def curvature(self, A: np.ndarray, B: np.ndarray) -> float:
        """Return the bilinear part of :meth:`gain`, as a positive form."""
        raise NotImplementedError

    def gain(self, A: np.ndarray) -> float:
        """Return the part of the dual objective without the kernels."""
        return self.linear(A) - 0.5 * self.curvature(A, A)

    def project(self, duals: np.ndarray) -> np.ndarray:
        """Return a copy of dual variables, made feasible: by default all are."""
        return np.array(duals, dtype=np.float64, order="C")


class HingeTarget(MachineTarget):
    """Labels for the multi-class hinge loss, or its square."""

    def __init__(self, labels: np.ndarray, caps: np.ndarray, n_classes: int, squared: bool) -> None:
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        self.caps = np.ascontiguousarray(caps, dtype=np.float64)
        self.n_outputs, self.squared, self.bounded = n_classes, squared, not squared
        self._rows = np.arange(len(self.labels))

    def take(self, rows: np.ndarray, factor: float) -> HingeTarget:
        """Return the target of some of the rows, which count ``factor`` times as much."""
        return HingeTarget(
            self.labels[rows], self.caps[rows] * factor, self.n_outputs, self.squared
        )

    def machine(self, grams: Grams, settings: MultikernelSettings = DEFAULT_SETTINGS) -> Machine:
        """Return the machine for this target."""
        few = grams.factors is None or len(self) <= _DOUBLE_ROWS
        return (MatrixMachine if few else FactorMachine)(grams, self, settings)

    def loss(self, F: np.ndarray) -> float:
        """Return the sum of the losses of scores ``(n_classes, n_samples)`` (:eq:`joint-hinge`)."""
        lost = np.empty(len(self))
        jit.compute_hinges(F, self.labels, lost)
        return float(np.sum(self.caps * (lost * lost if self.squared else lost)))

    def guess(self) -> np.ndarray:
        """Return feasible dual variables that treat all other classes alike."""
        duals = np.repeat(-self.caps[:, None] / self.n_outputs, self.n_outputs, axis=1)
        duals[self._rows, self.labels] += self.caps
        return duals

    def project(self, duals: np.ndarray) -> np.ndarray:
        """Return the nearest feasible dual variables (:eq:`row-projection`)."""
        found = super().project(duals)
        jit.project_rows(found, self.labels, self.caps, self.squared, 0.0)
        return found

    def linear(self, A: np.ndarray) -> float:
        """Return the linear part of :meth:`gain`."""
        return float(np.sum(A[self._rows, self.labels]))

    def curvature(self, A: np.ndarray, B: np.ndarray) -> float:
        """Return the bilinear part of :meth:`gain`, as a positive form."""
        if not self.squared:
            return 0.0
        return float(
            np.sum(A[self._rows, self.labels] * B[self._rows, self.labels] / (2.0 * self.caps))
        )


class SquaredTarget(MachineTarget):
    """Outputs for the squared loss, ``cap / 2 * |y - f|^2`` for a sample."""

    def __init__(self, Y: np.ndarray, caps: np.ndarray) -> None:
        self.Y, self.caps = np.asarray(Y, dtype=np.float64), np.asarray(caps, dtype=np.float64)
        self.n_outputs = self.Y.shape[1]

    def take(self, rows: np.ndarray, factor: float) -> SquaredTarget:
        """Return the target of some of the rows, which count ``factor`` times as much."""
        return SquaredTarget(self.Y[rows], self.caps[rows] * factor)

    def machine(self, grams: Grams, settings: MultikernelSettings = DEFAULT_SETTINGS) -> Machine:
        """Return the machine for this target."""
        return RidgeMachine(grams, self, settings)

    def loss(self, F: np.ndarray) -> float:
        """Return the sum of the losses of scores ``(n_outputs, n_samples)``."""
        return float(0.5 * np.sum(self.caps[:, None] * (self.Y - F.T) ** 2))

    def guess(self) -> np.ndarray:
        """Return the dual variables of scores of zero."""
        return self.caps[:, None] * self.Y

    def linear(self, A: np.ndarray) -> float:
        """Return the linear part of :meth:`gain`."""
        return float(np.sum(A * self.Y))

    def curvature(self, A: np.ndarray, B: np.ndarray) -> float:
        """Return the bilinear part of :meth:`gain`, as a positive form."""
        return float(np.sum(A * B / self.caps[:, None]))


class Machine:
    """A solver for fixed weights of kernels; ``A`` are its dual variables."""

    #: Scores ``(n_outputs, n_samples)`` for the last weights.
    F: np.ndarray
    #: Weights of the columns of factors, if the scores come from these and not from ``A``.
    coefs: np.ndarray | None = None

    target: HingeTarget | SquaredTarget

    def __init__(
        self,
        grams: Grams,
        target: HingeTarget | SquaredTarget,
        settings: MultikernelSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.grams, self.target, self.settings = grams, target, settings
        self.A = np.zeros((len(target), target.n_outputs))

    def solve(self, weights: np.ndarray, target: float) -> float:
        """Continue until the gap, with these weights of the kernels, is at most ``target``."""
        raise NotImplementedError

    def kernel_image(self) -> np.ndarray:
        """Return each kernel times the dual variables, or these times the columns of factors."""
        if self.grams.factors is None:
            return self.grams.products(self.A)
        return self._sum_columns(self.A)

    def _sum_columns(self, A: np.ndarray) -> np.ndarray:
        X, _ = self.grams.columns()
        return np.asarray(X.T @ A.astype(X.dtype), dtype=np.float64)

    def cross_energies(self, image: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Return ``A_i . B_j K_ij`` summed, for every kernel, where ``image`` is that of ``B``."""
        if self.grams.factors is None:
            return np.asarray(np.einsum("mnc,nc->m", image, A, dtype=np.float64))
        # By columns ``A^T K_m B = (X_m^T A)^T (X_m^T B)``: no matrix of a kernel is ever made.
        sums = np.sum(self._sum_columns(A) * image, axis=1)
        return np.bincount(self.grams.columns()[1], weights=sums, minlength=self.grams.n_kernels)

    def loss_of(self, weights: np.ndarray, A: np.ndarray) -> float:
        """Return the weighted sum of losses for some weights and dual variables."""
        if self.grams.factors is None:
            dtype = np.float64 if len(A) <= _DOUBLE_ROWS else self.grams.dtype
            F = score_duals(self.grams.combine(weights, dtype=dtype), A)
        else:
            X, kernel_of = self.grams.columns()
            # In the precision of the columns: a mixed product would copy all of them.
            sums = (X.T @ A.astype(X.dtype)).T * weights[kernel_of].astype(X.dtype)
            F = _score_features(X, sums)
        return self.target.loss(F)


class MatrixMachine(Machine):
    """Crammer and Singer's machine on a kernel matrix.

    Coordinate ascent and Newton steps come first (:eq:`row-projection`, :eq:`proximal-machine`). A
    small machine on which they crawl is left to an interior-point method (:eq:`interior-problem`).
    """

    target: HingeTarget

    def __init__(
        self,
        grams: Grams,
        target: HingeTarget,
        settings: MultikernelSettings = DEFAULT_SETTINGS,
    ) -> None:
        super().__init__(grams, target, settings)
        self._dtype = np.float64 if len(target) <= _DOUBLE_ROWS else grams.dtype
        self._memory = AscentMemory()
        #: The last weights with their sum of kernels: with fixed weights it is made only once.
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def solve(self, weights: np.ndarray, target: float) -> float:
        """Continue until the gap is at most ``target``."""
        K, settings = self._combine_kernels(weights), self.settings
        self.F, self.coefs = score_duals(K, self.A), None
        one = self.grams.factors is not None and self.grams.n_kernels == 1
        # The factor of a single kernel is given; that of a sum may have full rank.
        rank = min(len(K), self.grams.columns()[0].shape[1] if one else len(K))
        # An ascent that would take longer than the interior-point method gives up.
        patience = estimate_interior_seconds(len(K), rank, self.target.n_outputs, settings)
        ascent = Ascent(K, self.target, self.A, self.F, self._memory, settings)
        gap = ascent.run(target, patience)
        if gap <= target or math.isinf(patience) or not math.isfinite(gap):
            return gap
        if one:
            return self._solve_by_coefs(weights, target, gap)
        return self._solve_by_interior(K, target, gap)

    def _solve_by_coefs(self, weights: np.ndarray, target: float, gap: float) -> float:
        """Solve for the weights of columns, which stay exact where dual variables cancel.

        With large ``C`` dual variables are large and their products with the columns are not, so
        that all but a few digits cancel. The weights of the columns have all digits.
        """
        root = math.sqrt(float(weights[0]))
        X, _ = self.grams.columns()
        found = solve_interior(X.astype(np.float64) * root, self.target, target, self.settings)
        if found.gap < gap:
            self.A, self.coefs, gap = found.A, found.W * root, found.gap
            self.F = _score_features(X, self.coefs.T)
        return gap

    def _solve_by_interior(self, K: np.ndarray, target: float, gap: float) -> float:
        """Solve for dual variables by an interior-point method, and make them feasible."""
        factor, _ = pivoted_factor(np.asarray(K, dtype=np.float64))
        goal = self.settings.interior_goal_share * target
        found = solve_interior(factor, self.target, goal, self.settings)
        parts = np.empty(len(K))
        given = self.target
        # Tiny entries would make their rows count as free, and as active, in every later step.
        found.A[np.abs(found.A) < _ZERO_DUAL * np.max(np.abs(found.A))] = 0.0
        for excess in _EXCESSES:
            A = given.project(found.A * (1.0 + excess))
            F = score_duals(K, A)
            reached = float(jit.compute_gaps(F, A, given.labels, given.caps, given.squared, parts))
            if reached < gap:
                self.A, self.F, gap = A, F, reached
            if gap <= target:
                break
        return gap

    def _combine_kernels(self, weights: np.ndarray) -> np.ndarray:
        """Return the sum of the kernels; that of the last weights is kept."""
        if self._last is None or not np.array_equal(self._last[0], weights):
            self._last = None  # so that memory never holds two sums
            self._last = weights.copy(), self.grams.combine(weights, dtype=self._dtype)
        return self._last[1]


class FactorMachine(Machine):
    """The same machine on factors of kernels.

    If these have few columns, rows are improved through the columns. If they have many, the kernel
    matrix of the active rows is computed, and these are improved together.
    """

    target: HingeTarget

    def __init__(
        self,
        grams: Grams,
        target: HingeTarget,
        settings: MultikernelSettings = DEFAULT_SETTINGS,
    ) -> None:
        super().__init__(grams, target, settings)
        self.features, self.kernel_of = grams.columns()
        self._memory = AscentMemory()
        self._random = np.random.default_rng(0)  # of the order of rows: the same fit every time

    def solve(self, weights: np.ndarray, target: float) -> float:
        """Continue until the gap is at most ``target``."""
        given, X, settings = self.target, self.features, self.settings
        weights = np.asarray(weights, dtype=np.float64)
        column_weights = weights[self.kernel_of].astype(X.dtype)
        squares = np.asarray(self.grams.diagonals().T @ weights)
        parts = np.empty(len(given))
        # Kernels of small weight hardly change the scores within a round.
        used, Z = self._select_columns(settings.small_weight * float(np.max(weights)), weights)
        block = MachineBlock(Z, column_weights[used])
        last = math.inf
        for _ in range(settings.feature_rounds):
            # Computed anew in each round, since sums of updates drift in single precision.
            sums = X.T @ self.A.astype(X.dtype)
            U = np.ascontiguousarray(sums.T * column_weights)
            self.F = _score_features(X, U)
            gap = jit.compute_gaps(self.F, self.A, given.labels, given.caps, given.squared, parts)
            if gap <= target:
                break
            # The scores above are of all kernels, and so is the gap. If it stalls, the kernels that
            # were left out are the reason.
            if gap > settings.slow_fall * last:
                used, Z = self._select_columns(0.0, weights)
                block = MachineBlock(Z, column_weights[used])
            last = min(last, gap)
            rows = find_active_rows(parts, gap, self.A, settings)
            if given.n_outputs * Z.shape[1] > settings.wide_factors * len(rows):
                self._improve_block(block, rows, parts, settings.goal_share * target)
                continue
            part = np.ascontiguousarray(U[:, used])
            # What the kernels that are left out add to the scores is fixed during the sweeps.
            rest = self.F - _score_features(Z, part)
            threshold = settings.active_share * gap / len(given)
            columns = Z, column_weights[used], squares, part, rest
            self._sweep(columns, np.flatnonzero(parts > threshold), threshold)
        return float(gap)

    def _sweep(self, columns: tuple[np.ndarray, ...], order: np.ndarray, threshold: float) -> None:
        """Improve the rows in ``order`` through the columns, until few of them change.

        ``columns`` are the first five arguments of ``sweep_factors``.
        """
        given = self.target
        Z, column_weights, squares, U, rest = columns
        for _ in range(self.settings.sweeps):
            self._random.shuffle(order)
            updates = 0
            for some in chunks(len(order), 2 * U.size):
                updates += jit.sweep_factors(
                    Z, column_weights, squares, U, rest, self.A, given.labels, given.caps,
                    given.squared, order[some], threshold,
                )  # fmt: skip
            if updates < self.settings.few_changes * len(order):
                break

    def _improve_block(
        self, block: MachineBlock, rows: np.ndarray, parts: np.ndarray, goal: float
    ) -> None:
        """Improve the active rows together until their gap is ``goal``.

        If there are too many, half of the block are the rows of the largest gaps, and the others
        are drawn.
        """
        settings = self.settings
        most = settings.max_block_rows
        if len(rows) > most:
            goal *= most / len(rows)
            rows = rows[np.argsort(-parts[rows], kind="stable")]
            # Rows of large gaps gain most; those that are drawn keep any row from being starved.
            first, others = np.split(rows, [most // 2])
            some = self._random.choice(others, most - len(first), replace=False)
            rows = np.sort(np.concatenate([first, some]))
        A, F = self.A[rows], np.ascontiguousarray(self.F[:, rows])
        goal = max(goal, settings.row_gap_share * float(np.sum(parts[rows])))
        target = self.target.take(rows, 1.0)
        Ascent(block.matrix(rows), target, A, F, self._memory, settings).run(goal)
        self.A[rows] = A

    def _select_columns(
        self, least: float, weights: np.ndarray
    ) -> tuple[slice | np.ndarray, np.ndarray]:
        """Return the columns of kernels above a weight; all, without a copy, if few are below."""
        used = np.flatnonzero(weights[self.kernel_of] > least)
        if len(used) > _MANY_COLUMNS * len(self.kernel_of):
            return slice(None), self.features
        return used, np.ascontiguousarray(self.features[:, used])


class MachineBlock:
    """The kernel matrix of some rows, computed from factors; known entries are kept.

    Parameters
    ----------
    columns : array of shape (n_samples, n_columns)
        The factors.
    weights : array of shape (n_columns,)
        Their weights.
    """

    def __init__(self, columns: np.ndarray, weights: np.ndarray) -> None:
        self._columns, self._weights = columns, weights
        self._rows = np.empty(0, dtype=np.int64)
        self._K = np.empty((0, 0), dtype=columns.dtype)

    def matrix(self, rows: np.ndarray) -> np.ndarray:
        """Return the matrix of these rows, which are in increasing order."""
        if np.array_equal(rows, self._rows):
            return self._K
        # The active rows change little from round to round, so that most entries are known.
        _, known, place = np.intersect1d(self._rows, rows, return_indices=True)
        K = np.empty((len(rows), len(rows)), dtype=self._K.dtype)
        K[np.ix_(place, place)] = self._K[np.ix_(known, known)]
        self._K = np.empty((0, 0), dtype=K.dtype)  # freed before the rest is made
        new = np.setdiff1d(np.arange(len(rows)), place)
        if len(new):
            added = (self._columns[rows[new]] * self._weights) @ self._columns[rows].T
            K[new] = added
            K[:, new] = added.T
        self._rows, self._K = rows, K
        return K


class RidgeMachine(Machine):
    """Squared loss: one system of equations, solved exactly.

    The system is ``(K + diag(1 / caps)) A = Y``, where the gradient of the dual vanishes
    (:eq:`kernel-dual`); no variable has a bound.
    """

    target: SquaredTarget

    def solve(self, weights: np.ndarray, target: float) -> float:
        """Solve the machine for these weights; the gap is zero up to rounding."""
        given = self.target
        if self.grams.factors is None:
            K = self.grams.combine(weights, dtype=np.float64)
            self.A = solve_ridge(K, given.caps, given.Y)
            self.F = score_duals(K, self.A)
            return 0.0
        X, kernel_of = self.grams.columns()
        roots = np.sqrt(np.asarray(weights)[kernel_of])
        # Columns times the roots of their weights are a factor of the weighted sum of kernels.
        used = np.flatnonzero(roots > 0.0)
        Z = X[:, used].astype(np.float64) * roots[used]
        self.A = solve_feature_ridge(Z, given.caps, given.Y)
        # From ``A = caps (Y - F)``, which saves a product with all columns.
        self.F = np.ascontiguousarray((given.Y - self.A / given.caps[:, None]).T)
        return 0.0


def solve_feature_ridge(Z: np.ndarray, caps: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Solve ``(Z Z^T + diag(1 / caps)) A = Y`` in as many unknowns as ``Z`` has columns.

    By Woodbury's formula ``A = caps (Y - Z C)`` with ``(I + Z^T caps Z) C = Z^T caps Y``: ridge
    regression on the columns.
    """
    weighted = Z * caps[:, None]
    system = Z.T @ weighted
    system[np.diag_indices(Z.shape[1])] += 1.0
    scores = Z @ _solve_positive(system, weighted.T @ Y)
    return np.asarray(caps[:, None] * (Y - scores))


def solve_ridge(K: np.ndarray, caps: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Solve ``(K + diag(1 / caps)) A = Y``; raise where rounding leaves that indefinite."""
    system = K.copy()
    system[np.diag_indices(len(K))] += 1.0 / caps
    return _solve_positive(system, Y)


def _solve_positive(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise ValueError(
            "The sum of the kernels is so much larger than 1 / C that rounding leaves no solution. "
            "Scale the columns, normalise the kernels (normalize='trace' in a bank), lower C, or "
            "take kernels in float64."
        ) from None
    return np.asarray(linalg.cho_solve(factor, right, check_finite=False))


def _score_features(X: np.ndarray, U: np.ndarray) -> np.ndarray:
    return np.asarray(U @ X.T, dtype=np.float64)

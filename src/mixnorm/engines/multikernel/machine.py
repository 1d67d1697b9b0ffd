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
from mixnorm.engines.multikernel.ascent import (
    ACTIVE_SHARE,
    PART_OF_GOAL,
    PART_OF_ROW_GAP,
    Ascent,
    AscentMemory,
    find_active_rows,
)
from mixnorm.engines.multikernel.interior import estimate_interior_seconds, solve_interior
from mixnorm.engines.multikernel.newton import score_duals
from mixnorm.kernels import Grams, pivoted_factor

# Rows up to which the sum of kernels is kept in double precision.
_DOUBLE_ROWS = 3000
_MOST_FEATURE_ROUNDS = 5000
# Kernels below this part of the largest weight are left out of a round, as long as the gap falls to
# the second part.
_SMALL_WEIGHT, _SLOW_FALL = 1e-3, 0.9
# Sweeps over the active rows before sums are computed anew; they end early if less than this part
# of the rows changes.
_SWEEPS, _FEW_CHANGES = 20, 0.1
# The kernel matrix of the active rows is computed if the columns of all scores are this many times
# the rows; and its most rows.
_WIDE_FACTORS, _MOST_BLOCK_ROWS = 4.0, 8000
# Part of a gap that the interior-point method must reach, since only its dual variables are kept;
# the part of the largest of these that counts as zero; and the excesses by which they are raised.
_INTERIOR_PART, _ZERO_DUAL = 0.1, 1e-13
_EXCESSES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)


def estimate_workspace_bytes(n_samples: int, dtype: DTypeLike, squares: bool) -> int:
    """Estimate the memory that a machine needs beside the kernels: three matrices.

    These are the sum of the kernels and temporary arrays of its size. ``squares`` is True for the
    machine of squared losses, which always works in double precision.
    """
    double = squares or n_samples <= _DOUBLE_ROWS
    return 3 * n_samples**2 * (8 if double else np.dtype(dtype).itemsize)


class MachineTarget:
    """Targets and factors of losses; the dual objective has a linear and a bilinear part."""

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

    def machine(self, grams: Grams) -> Machine:
        """Return the machine for this target."""
        few = grams.factors is None or len(self) <= _DOUBLE_ROWS
        return (MatrixMachine if few else FactorMachine)(grams, self)

    def loss(self, F: np.ndarray) -> float:
        """Return the sum of the losses of scores ``(n_classes, n_samples)``."""
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

    def machine(self, grams: Grams) -> Machine:
        """Return the machine for this target."""
        return RidgeMachine(grams, self)

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

    def __init__(self, grams: Grams, target: HingeTarget | SquaredTarget) -> None:
        self.grams, self.target = grams, target
        self.A = np.zeros((len(target), target.n_outputs))

    def solve(self, weights: np.ndarray, target: float) -> float:
        """Continue until the gap, with these weights of the kernels, is at most ``target``."""
        raise NotImplementedError

    def kernel_image(self) -> np.ndarray:
        """Return each kernel times the dual variables, or these times the columns of factors."""
        if self.grams.factors is None:
            return self.grams.products(self.A)
        return self._column_sums(self.A)

    def _column_sums(self, A: np.ndarray) -> np.ndarray:
        X, _ = self.grams.columns()
        return np.asarray(X.T @ A.astype(X.dtype), dtype=np.float64)

    def cross_energies(self, image: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Return ``A_i . B_j K_ij`` summed, for every kernel, where ``image`` is that of ``B``."""
        if self.grams.factors is None:
            return np.asarray(np.einsum("mnc,nc->m", image, A, dtype=np.float64))
        sums = np.sum(self._column_sums(A) * image, axis=1)
        return np.bincount(self.grams.columns()[1], weights=sums, minlength=self.grams.n_kernels)

    def loss_of(self, weights: np.ndarray, A: np.ndarray) -> float:
        """Return the weighted sum of losses for some weights and dual variables."""
        if self.grams.factors is None:
            dtype = np.float64 if len(A) <= _DOUBLE_ROWS else self.grams.dtype
            F = score_duals(self.grams.combine(weights, dtype=dtype), A)
        else:
            X, kernel_of = self.grams.columns()
            sums = (X.T @ A.astype(X.dtype)).T * weights[kernel_of].astype(X.dtype)
            F = _score_features(X, sums)
        return self.target.loss(F)


class MatrixMachine(Machine):
    """Crammer and Singer's machine on a kernel matrix."""

    target: HingeTarget

    def __init__(self, grams: Grams, target: HingeTarget) -> None:
        super().__init__(grams, target)
        self._dtype = np.float64 if len(target) <= _DOUBLE_ROWS else grams.dtype
        self._memory = AscentMemory()
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def solve(self, weights: np.ndarray, target: float) -> float:
        """Continue until the gap is at most ``target``."""
        K = self._combine_kernels(weights)
        self.F, self.coefs = score_duals(K, self.A), None
        one = self.grams.factors is not None and self.grams.n_kernels == 1
        rank = min(len(K), self.grams.columns()[0].shape[1] if one else len(K))
        patience = estimate_interior_seconds(len(K), rank, self.target.n_outputs)
        gap = Ascent(K, self.target, self.A, self.F, self._memory).run(target, patience)
        if gap <= target or math.isinf(patience) or not math.isfinite(gap):
            return gap
        if one:
            return self._solve_by_coefs(weights, target, gap)
        return self._solve_by_interior(K, target, gap)

    def _solve_by_coefs(self, weights: np.ndarray, target: float, gap: float) -> float:
        """Solve for the weights of columns, which stay exact where dual variables cancel."""
        root = math.sqrt(float(weights[0]))
        X, _ = self.grams.columns()
        found = solve_interior(X.astype(np.float64) * root, self.target, target)
        if found.gap < gap:
            self.A, self.coefs, gap = found.A, found.W * root, found.gap
            self.F = _score_features(X, self.coefs.T)
        return gap

    def _solve_by_interior(self, K: np.ndarray, target: float, gap: float) -> float:
        """Solve for dual variables by an interior-point method, and make them feasible."""
        factor, _ = pivoted_factor(np.asarray(K, dtype=np.float64))
        found = solve_interior(factor, self.target, _INTERIOR_PART * target)
        parts = np.empty(len(K))
        given = self.target
        found.A[np.abs(found.A) < _ZERO_DUAL * np.max(np.abs(found.A))] = 0.0
        for excess in _EXCESSES:  # lifts margins that rounding left below one
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

    def __init__(self, grams: Grams, target: HingeTarget) -> None:
        super().__init__(grams, target)
        self.features, self.kernel_of = grams.columns()
        self._memory = AscentMemory()
        self._random = np.random.default_rng(0)

    def solve(self, weights: np.ndarray, target: float) -> float:
        """Continue until the gap is at most ``target``."""
        given, X = self.target, self.features
        weights = np.asarray(weights, dtype=np.float64)
        column_weights = weights[self.kernel_of].astype(X.dtype)
        squares = np.asarray(self.grams.diagonals().T @ weights)
        parts = np.empty(len(given))
        # Kernels of small weight hardly change the scores within a round.
        used, Z = self._select_columns(_SMALL_WEIGHT * float(np.max(weights)), weights)
        block = RowBlock(Z, column_weights[used])
        last = math.inf
        for _ in range(_MOST_FEATURE_ROUNDS):
            # Computed anew in each round, since sums of updates drift in single precision.
            sums = X.T @ self.A.astype(X.dtype)
            U = np.ascontiguousarray(sums.T * column_weights)
            self.F = _score_features(X, U)
            gap = jit.compute_gaps(self.F, self.A, given.labels, given.caps, given.squared, parts)
            if gap <= target:
                break
            if gap > _SLOW_FALL * last:
                used, Z = self._select_columns(0.0, weights)
                block = RowBlock(Z, column_weights[used])
            last = min(last, gap)
            rows = find_active_rows(parts, gap, self.A)
            if given.n_outputs * Z.shape[1] > _WIDE_FACTORS * len(rows):
                self._improve_block(block, rows, parts, PART_OF_GOAL * target)
                continue
            part = np.ascontiguousarray(U[:, used])
            rest = self.F - _score_features(Z, part)
            threshold = ACTIVE_SHARE * gap / len(given)
            order = np.flatnonzero(parts > threshold)
            for _ in range(_SWEEPS):
                self._random.shuffle(order)
                updates = 0
                for some in chunks(len(order), 2 * part.size):
                    updates += jit.sweep_factors(
                        Z, column_weights[used], squares, part, rest, self.A, given.labels,
                        given.caps, given.squared, order[some], threshold,
                    )  # fmt: skip
                if updates < _FEW_CHANGES * len(order):
                    break
        return float(gap)

    def _improve_block(
        self, block: RowBlock, rows: np.ndarray, parts: np.ndarray, goal: float
    ) -> None:
        """Improve the active rows together until their gap is ``goal``.

        If there are too many, half of the block are the rows of the largest gaps, and the others
        are drawn.
        """
        if len(rows) > _MOST_BLOCK_ROWS:
            goal *= _MOST_BLOCK_ROWS / len(rows)
            rows = rows[np.argsort(-parts[rows], kind="stable")]
            first, others = np.split(rows, [_MOST_BLOCK_ROWS // 2])
            some = self._random.choice(others, _MOST_BLOCK_ROWS - len(first), replace=False)
            rows = np.sort(np.concatenate([first, some]))
        A, F = self.A[rows], np.ascontiguousarray(self.F[:, rows])
        goal = max(goal, PART_OF_ROW_GAP * float(np.sum(parts[rows])))
        Ascent(block.matrix(rows), self.target.take(rows, 1.0), A, F, self._memory).run(goal)
        self.A[rows] = A

    def _select_columns(
        self, least: float, weights: np.ndarray
    ) -> tuple[slice | np.ndarray, np.ndarray]:
        """Return the columns of kernels above a weight; all, without a copy, if few are below."""
        used = np.flatnonzero(weights[self.kernel_of] > least)
        if len(used) > 0.8 * len(self.kernel_of):
            return slice(None), self.features
        return used, np.ascontiguousarray(self.features[:, used])


class RowBlock:
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
        _, known, place = np.intersect1d(self._rows, rows, return_indices=True)
        K = np.empty((len(rows), len(rows)), dtype=self._K.dtype)
        K[np.ix_(place, place)] = self._K[np.ix_(known, known)]
        self._K = np.empty((0, 0), dtype=K.dtype)  # makes room
        new = np.setdiff1d(np.arange(len(rows)), place)
        if len(new):
            added = (self._columns[rows[new]] * self._weights) @ self._columns[rows].T
            K[new] = added
            K[:, new] = added.T
        self._rows, self._K = rows, K
        return K


class RidgeMachine(Machine):
    """Squared loss: one system of equations, solved exactly."""

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
        used = np.flatnonzero(roots > 0.0)
        Z = X[:, used].astype(np.float64) * roots[used]
        self.A = solve_feature_ridge(Z, given.caps, given.Y)
        self.F = np.ascontiguousarray((given.Y - self.A / given.caps[:, None]).T)
        return 0.0


def solve_feature_ridge(Z: np.ndarray, caps: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Solve ``(Z Z^T + diag(1 / caps)) A = Y`` in as many unknowns as ``Z`` has columns."""
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

"""Kernels of a bank in blocks of rows; kernels that share a metric have it computed once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mixnorm._chunks import row_blocks
from mixnorm.kernels.functions.base import Kernel
from mixnorm.kernels.functions.metrics import BLOCK, Points, Rows, compute_metric

#: Most bytes for one entry of a block: a metric in float64, temporary arrays, and a kernel.
BYTES = 48
# Bytes that do not limit blocks.
_AMPLE = 8 * BYTES * BLOCK
# Kernels with factors beyond this, or below its inverse, are computed in double precision.
_EXTREME_FACTOR = 1e12

#: Numbers of some kernels.
Which: TypeAlias = "Collection[int] | np.ndarray"


@dataclass(eq=False)
class Side:
    """Rows that kernels compare, seen through every group of columns.

    Parameters
    ----------
    points : dict of int to Points
        The rows by group of columns; groups that no kernel needs may be missing.
    n_rows : int
        Number of rows.
    roots : dict of int to array
        By kernel, the factor of each row that makes the kernel of the row and itself 1.
    index : array of int, optional
        The numbers of the rows among the training rows; None for new rows.
    """

    points: dict[int, Points]
    n_rows: int
    roots: dict[int, np.ndarray]
    index: np.ndarray | None = None

    def restrict(self, groups: Collection[int], which: Which) -> Side:
        """Return the same rows, with the data of some kernels and some groups only."""
        return Side(
            {group: self.points[group] for group in groups},
            self.n_rows,
            {m: self.roots[m] for m in which if m in self.roots},
            self.index,
        )

    def part(self, some: slice | np.ndarray) -> Side:
        """Return some of the rows."""
        places = np.arange(self.n_rows)[some]
        return Side(
            {group: points.part(some) for group, points in self.points.items()},
            len(places),
            {m: roots[some] for m, roots in self.roots.items()},
            None if self.index is None else self.index[some],
        )


@dataclass(frozen=True)
class Evaluator:
    """Computes kernels between two sides, some rows at a time.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels, with their final parameters.
    names : list of str
        Their names.
    group_of : list of int
        The group of columns that each kernel compares.
    scales : array of shape (n_kernels,)
        The factor of each kernel.
    unit : bool
        Whether every kernel is scaled to be 1 between a row and itself.
    dtype : dtype
        The dtype of the blocks.
    """

    kernels: Sequence[Kernel]
    names: Sequence[str]
    group_of: Sequence[int]
    scales: np.ndarray
    unit: bool
    dtype: np.dtype[Any]

    def side(
        self, points: dict[int, Points], n_rows: int, which: Which, index: np.ndarray | None = None
    ) -> Side:
        """Return rows ready for the kernels in ``which``."""
        roots = {}
        for m in which:
            # What a metric needs of single rows is computed before the rows are cut into blocks,
            # which share it.
            rows = points[self.group_of[m]].prepare(self.kernels[m].metric)
            if self.unit:
                # k(x, y) / sqrt(k(x, x) k(y, y)): a factor for each row and each column of a block.
                diagonal = np.asarray(self.kernels[m].diagonal(rows.X), dtype=np.float64)
                positive = np.where(diagonal > 0.0, diagonal, np.inf)
                roots[m] = 1.0 / np.sqrt(positive)  # zero for rows that are zero
        return Side(points, n_rows, roots, index)

    def diagonals(self, side: Side, which: Which) -> np.ndarray:
        """Return the kernels of each row and itself: ``(len(which), n_rows)``, in float64."""
        found = np.empty((len(which), side.n_rows))
        for row, m in zip(found, which, strict=True):
            row[...] = self.kernels[m].diagonal(side.points[self.group_of[m]].X)
            if self.unit:
                row *= side.roots[m] ** 2
            row *= self.scales[m]
        return found

    def blocks(
        self, left: Side, right: Side, which: Which, memory: int = _AMPLE, upper: bool = False
    ) -> Iterator[tuple[slice, int, np.ndarray]]:
        """Yield rows, the number of a kernel, and the kernel of these rows and all of ``right``.

        All kernels of the same rows come one after another. The caller may change a block.

        Parameters
        ----------
        left, right : Side
            The rows to compare.
        which : sequence of int
            The kernels.
        memory : int
            Bytes that limit the blocks, which have at least one row; see :func:`block_entries`.
        upper : bool
            Whether both sides are the same. Then only the columns from the first row of the block
            on are computed, and the square with which they begin is symmetric.
        """
        if right.n_rows == 0:
            return
        plan = self.plan(which)
        groups = {group for group, _ in plan}
        left, right = left.restrict(groups, which), right.restrict(groups, which)
        for some in row_blocks(left.n_rows, block_entries(memory, right.n_rows), right.n_rows):
            P = left.part(some)
            # Of a symmetric matrix only the columns from the block on: the part before them is
            # known.
            Q = right.part(slice(some.start, None)) if upper else right
            for (group, metric), members in plan.items():
                for m, block in self._of_group(P, Q, group, metric, members, upper):
                    yield some, m, block

    def plan(self, which: Which) -> dict[tuple[int, str | None], list[int]]:
        """Return the kernels by group of columns and metric."""
        plan: dict[tuple[int, str | None], list[int]] = {}
        for m in which:
            plan.setdefault((self.group_of[m], self.kernels[m].metric), []).append(int(m))
        return plan

    def _of_group(
        self,
        P: Side,
        Q: Side,
        group: int,
        metric: str | None,
        members: list[int],
        upper: bool,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the blocks of the kernels on one group of columns that share a metric."""
        left, right = P.points[group], Q.points[group]
        # Metrics are computed in double precision, because differences of squares cancel.
        wide = compute_metric(metric, left, right, upper) if metric is not None else None
        if wide is not None and not upper and metric != "dot":
            _remove_rounding(wide, P.index, Q.index)
        narrow = None
        if wide is not None and not _out_of_range(wide, self.dtype):
            # Elementwise functions are faster in float32, where the range of the numbers
            # allows it.
            narrow = wide.astype(self.dtype, copy=False)
        for m in members:
            factors = self._factors(P, Q, m)
            if wide is None:
                block = self._of_function(left.X, right.X, m, upper)
            elif narrow is None or any(_is_extreme(factor) for factor in factors):
                block = self.kernels[m].of_metric(wide)
            else:
                block = self.kernels[m].of_metric(narrow)
            for factor in factors:
                block *= factor.astype(block.dtype)
            yield m, block.astype(self.dtype, copy=False)

    def _factors(self, P: Side, Q: Side, m: int) -> list[np.ndarray]:
        """Return the factors of the block of a kernel."""
        factors = [P.roots[m][:, None], Q.roots[m][None]] if self.unit else []
        return [*factors, np.asarray(self.scales[m])] if self.scales[m] != 1.0 else factors

    def _of_function(self, X: Rows, Y: Rows, m: int, upper: bool) -> np.ndarray:
        """Return a block of a kernel that is not a function of a metric."""
        # The dtype of the blocks may be narrower than that of the function.
        with np.errstate(over="ignore"):
            block = np.array(self.kernels[m].between(X, Y), dtype=self.dtype)  # a copy
        if not np.all(np.isfinite(block)):
            raise ValueError(
                f"kernel {self.names[m]!r} has values that are not finite in {self.dtype}; look "
                "for missing values in its columns, or scale them."
            )
        if upper:
            square = block[:, : X.shape[0]]
            square[...] = np.triu(square) + np.triu(square, 1).T
        return block


def _out_of_range(D: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether distances are too large or too small for a dtype, as in unusual units."""
    limits = np.finfo(dtype)
    largest = max(float(np.max(D, initial=0.0)), -float(np.min(D, initial=0.0)))
    least, most = float(limits.tiny) / float(limits.eps), float(limits.max)
    return largest > 0.0 and not least < largest < most


def _is_extreme(factor: np.ndarray) -> bool:
    """Whether a factor is so large or so small that kernels may leave the range of a dtype."""
    largest = float(np.max(factor, initial=0.0))
    return largest > 0.0 and not 1.0 / _EXTREME_FACTOR < largest < _EXTREME_FACTOR


def _remove_rounding(D: np.ndarray, left: np.ndarray | None, right: np.ndarray | None) -> None:
    """Set the distances of training rows from themselves to zero."""
    if left is None or right is None or D.size == 0:
        return
    # Both sides know the numbers of their rows among the training rows; equal numbers are equal
    # rows, whose distance is zero but for rounding.
    order = np.argsort(right, kind="stable")
    found = np.searchsorted(right, left, sorter=order)
    found = order[np.minimum(found, len(order) - 1)]
    same = np.flatnonzero(right[found] == left)
    D[same, found[same]] = 0.0


def block_entries(memory: int, n_columns: int) -> int:
    """Return the most entries of a block that stays within an eighth of ``memory``."""
    return int(max(n_columns, min(BLOCK, memory // (8 * BYTES))))

"""Gram matrices that are stored as far as memory allows, and else computed at every use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mixnorm.kernels.functions.evaluate import BYTES, Evaluator, Side, block_entries
from mixnorm.kernels.grams.base import Grams, Index, Positions
from mixnorm.kernels.grams.stack import KernelStack
from mixnorm.kernels.grams.tails import tails_of

# The kernels that are slowest to compute are stored first: unknown functions, then metrics that sum
# over columns; all others come last.
# Each stored matrix saves one computation per use, so the memory goes to the slowest kernels.
_RANK_OF_METRIC = {None: 0, "chi2": 1, "cityblock": 1}


def compute_matrices(
    evaluator: Evaluator, side: Side, which: Sequence[int], memory: int
) -> np.ndarray:
    """Return the matrices of some kernels on the rows of a side: ``(len(which), n, n)``.

    Only half of the entries are computed, so that the matrices are exactly symmetric.
    """
    n = side.n_rows
    matrices = np.empty((len(which), n, n), dtype=evaluator.dtype)
    place = dict(zip(which, matrices, strict=True))
    for rows, m, block in evaluator.blocks(side, side, which, memory, upper=True):
        matrix = place[m]
        matrix[rows, rows.start :] = block
        matrix[rows.stop :, rows] = block[:, rows.stop - rows.start :].T
    return matrices


def grams_of(
    evaluator: Evaluator,
    side: Side,
    memory: int,
    restrict: Callable[[Index], Grams],
    partly: bool = True,
) -> KernelStack | LazyGrams:
    """Return the Gram matrices on the rows of a side, stored if they fit into ``memory``.

    If they do not fit, as many as fit are stored with ``partly``, and otherwise none.
    """
    n, kernels = side.n_rows, evaluator.kernels
    n_kernels = len(kernels)
    size = max(1, n * n * evaluator.dtype.itemsize)
    if n_kernels * size <= memory:
        return KernelStack._of(compute_matrices(evaluator, side, range(n_kernels), memory), True)
    # The kernels that are not stored need room for the blocks in which they are computed.
    room = memory - BYTES * block_entries(memory, n)
    order = sorted(range(n_kernels), key=lambda m: _RANK_OF_METRIC.get(kernels[m].metric, 2))
    # In the order of the bank, so that sums over kernels are added in the same order as with a
    # stack.
    kept = sorted(order[: max(0, room // size)]) if partly else []
    matrices = compute_matrices(evaluator, side, kept, memory)
    return LazyGrams(evaluator, side, memory, kept, matrices, restrict)


@dataclass(eq=False, repr=False)
class LazyGrams(Grams):
    """Gram matrices: some are stored, and the others are computed at every use.

    Parameters
    ----------
    evaluator : Evaluator
        The kernels.
    side : Side
        The training rows.
    memory : int
        Bytes for matrices.
    kept : list of int
        The kernels that are stored.
    matrices : array of shape (len(kept), n_samples, n_samples)
        Their matrices.
    restrict : callable
        Returns the Gram matrices on some of the rows.
    """

    evaluator: Evaluator
    side: Side
    memory: int
    kept: list[int]
    matrices: np.ndarray
    restrict: Callable[[Index], Grams]

    def __post_init__(self) -> None:
        n = self.side.n_rows
        super().__init__(len(self.evaluator.kernels), (n, n), self.evaluator.dtype)
        self._others = [m for m in range(self.n_kernels) if m not in self.kept]

    def _detail(self) -> str:
        return f"stored={len(self.kept)}, "

    def _add_sum(
        self, total: np.ndarray, scales: np.ndarray, rows: Positions, columns: Positions
    ) -> None:
        if self.kept:
            self._stored._add_sum(total, scales[self.kept], rows, columns)
        which = [m for m in self._others if scales[m]]
        for part, m, block in self._blocks(self.side.part(rows), self.side.part(columns), which):
            # A block is used once, so its memory may hold the product.
            same = block.dtype == scales.dtype
            total[part] += np.multiply(block, scales[m], out=block if same else None)

    def _energies(self, table: np.ndarray) -> np.ndarray:
        # Kernels are computed only between rows where the table is not zero, and once for a pair.
        found = np.zeros(self.n_kernels)
        if self.kept:
            found[self.kept] = self._stored.energies(table)
        support = np.flatnonzero(np.any(table != 0.0, axis=1))
        side, small = self.side.part(support), table[support]
        for rows, m, block in self._blocks(side, side, self._others, upper=True):
            own, size = small[rows], rows.stop - rows.start
            products = block @ small[rows.start :]
            square = block[:, :size] @ own  # counts once, the rest of the block twice
            found[m] += np.sum(own * (2.0 * products - square))
        return found

    def _products(self, table: np.ndarray, which: list[int]) -> np.ndarray:
        # Kernels are computed only with the rows where the table is not zero.
        found = np.zeros((len(which), self.n_samples, table.shape[1]), dtype=self.dtype)
        place = {m: row for row, m in enumerate(which)}
        stored = {m: row for row, m in enumerate(self.kept) if m in place}
        if stored:
            rows_of = [place[m] for m in stored]
            found[rows_of] = self._stored.products(table, list(stored.values()))
        computed = [m for m in place if m not in stored]
        support = np.flatnonzero(np.any(table != 0.0, axis=1))
        if computed and len(support) == self.n_samples:
            # Each entry off the diagonal is computed once and used twice.
            self._add_halves(found, place, computed, table)
        elif len(support) and computed:
            others, small = self.side.part(support), table[support]
            for rows, m, block in self._blocks(self.side, others, computed):
                np.matmul(block, small, out=found[place[m], rows])
        return found

    def _add_halves(
        self, found: np.ndarray, place: dict[int, int], which: list[int], A: np.ndarray
    ) -> None:
        """Add products with all rows, from one half of every matrix."""
        for rows, m, block in self._blocks(self.side, self.side, which, upper=True):
            product, size = found[place[m]], rows.stop - rows.start
            product[rows] += block @ A[rows.start :]
            product[rows.stop :] += block[:, size:].T @ A[rows]

    def diagonals(self) -> np.ndarray:
        """Return the diagonals, of shape ``(n_kernels, n_samples)``, in float64."""
        return self.evaluator.diagonals(self.side, range(self.n_kernels))

    def take(self, rows: Index) -> Grams:
        """Return the matrices on some of the rows, stored if they fit."""
        return self.restrict(rows)

    def rescale(self, scales: np.ndarray, evaluator: Evaluator) -> None:
        """Multiply the stored matrices in place, and compute the others by ``evaluator``."""
        for matrix, m in zip(self.matrices, self.kept, strict=True):
            matrix *= scales[m]
        self.evaluator = evaluator

    def _tail_sums(self, tails: list[int], weight: np.ndarray | None) -> np.ndarray:
        found = np.empty((len(tails), self.n_kernels))
        if self.kept:
            found[:, self.kept] = self._stored.tail_sums(tails, weight)
        diagonals = self.evaluator.diagonals(self.side, self._others)
        for m, diagonal in zip(self._others, diagonals, strict=True):
            product = partial(self._multiply, m)
            found[:, m] = tails_of(product, diagonal, tails, self.dtype, weight)
        return found

    def _multiply(self, m: int, Q: np.ndarray) -> np.ndarray:
        """Return the matrix of one kernel times ``Q``, in the dtype of ``Q``."""
        found = np.empty((self.n_samples, Q.shape[1]), dtype=Q.dtype)
        for rows, _, block in self._blocks(self.side, self.side, [m]):
            np.matmul(block.astype(Q.dtype, copy=False), Q, out=found[rows])
        return found

    @property
    def _stored(self) -> KernelStack:
        return KernelStack._of(self.matrices, True)

    def _blocks(
        self, left: Side, right: Side, which: Sequence[int], upper: bool = False
    ) -> Iterator[tuple[slice, int, np.ndarray]]:
        return self.evaluator.blocks(left, right, which, self.memory, upper)

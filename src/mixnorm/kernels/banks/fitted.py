"""A bank of kernels bound to training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm._linear import add_products
from mixnorm._memory import format_bytes
from mixnorm.kernels.banks.fitted_check import check_fitted_bank
from mixnorm.kernels.banks.inputs import align_columns, select
from mixnorm.kernels.banks.rows import Packed, append_rows, pack, rows_like, shape_of, unpack
from mixnorm.kernels.functions.evaluate import Evaluator, Side
from mixnorm.kernels.functions.metrics import Points
from mixnorm.kernels.grams.base import (
    DType,
    Grams,
    Index,
    as_kernel_numbers,
    as_positions,
    as_table,
    as_weights,
    list_positions,
)
from mixnorm.kernels.grams.factors import FactorGrams, random_features, split_columns
from mixnorm.kernels.grams.lazy import compute_matrices, grams_of
from mixnorm.kernels.grams.sketch import Sketch, sketch_of
from mixnorm.kernels.grams.stack import KernelStack


@dataclass(eq=False)
class FittedBank:
    """The kernels of a bank on training rows, made by :meth:`KernelBank.fit`.

    Attributes
    ----------
    names : list of str
        The names of the kernels.
    kernels : list of Kernel
        The kernels, with absolute widths.
    scales : array of shape (n_kernels,)
        The factor of each kernel.
    unit : bool
        Whether every kernel is 1 between a row and itself.
    rows : list
        The training rows by group of columns: arrays, or the parts of CSR matrices.
    group_of : list of int
        The group of columns of each kernel.
    columns : list
        The positions of each group's columns: None for all, a position, or an array.
    centres : list
        The centre that is subtracted from each group's rows before distances, or None.
    preprocess : transformer, list of them by group, or None
        The fitted transformers that make the columns.
    n_features_in : int
        Number of columns of the training rows, before they are preprocessed.
    feature_names_in : list of str or None
        Their names.
    precision : {"float32", "float64"}
        The dtype of kernel matrices.
    memory : int
        Bytes for kernel matrices.
    factors : None, "nystrom" or "random"
        The kind of factors of the kernels.
    landmarks : list
        The rows of the landmarks, by group.
    maps : list of array
        The maps that make features, from kernels at the landmarks or from columns.
    map_of : list of int
        The map of each kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.kernels import KernelBank
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> fitted = KernelBank(["linear", "gaussian"], normalize=None, dtype="float64").fit(X)
    >>> fitted.names, fitted.n_samples
    (['linear', 'gaussian(tau=1)'], 3)
    >>> fitted.grams().combine([1.0, 0.0])
    array([[0., 0., 0.],
           [0., 1., 3.],
           [0., 3., 9.]])
    >>> fitted.combine(np.array([[2.0]]), [1.0, 0.0], support=[1, 2])
    array([[2., 6.]])
    """

    names: list[str]
    kernels: list[Any]
    scales: np.ndarray
    unit: bool
    rows: list[Any]
    group_of: list[int]
    columns: list[Any]
    centres: list[Any]
    preprocess: Any
    n_features_in: int
    feature_names_in: list[str] | None
    precision: str
    memory: int
    factors: str | None = None
    landmarks: list[Any] = field(default_factory=list)
    maps: list[np.ndarray] = field(default_factory=list)
    map_of: list[int] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def _check_stored(self) -> None:
        check_fitted_bank(self)

    def __repr__(self) -> str:
        return (
            f"FittedBank(n_kernels={self.n_kernels}, n_samples={self.n_samples}, "
            f"n_features_in={self.n_features_in}, dtype={self.dtype})"
        )

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return len(self.kernels)

    @property
    def n_samples(self) -> int:
        """Number of training rows."""
        return shape_of(self.rows[0])[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating dtype of kernel matrices."""
        return np.dtype(self.precision)

    # --- on the training rows

    def grams(self, *, partly: bool = True) -> Grams:
        """Return the Gram matrices of the training rows.

        If they fit into ``memory``, they are stored as a :class:`KernelStack`. If not, as many as
        fit are stored with ``partly``, otherwise none, and the rest is computed at every use. With
        ``factors``, their factors are stored.
        """
        # Taken out, so that the bank does not hold gigabytes that only the engine needs.
        ready: Grams | None = self._kept.pop("grams", None)
        if ready is not None:
            return ready
        if self.factors is not None:
            return FactorGrams(*self._features(self._side, range(self.n_kernels)))
        restrict = partial(self._grams_of_rows, partly)
        return grams_of(self._evaluator, self._side, self.memory, restrict, partly)

    def gram(self, kernel: int) -> np.ndarray:
        """Return the Gram matrix of one kernel in float64, whatever the dtype of the bank."""
        if self.factors is not None:
            (phi,) = split_columns(*self._features(self._side, [kernel]))
            wide = phi.astype(np.float64)
            return np.asarray(wide @ wide.T)
        # Exact scores of the leading kernels decide between close ones.
        evaluator = replace(self._evaluator, dtype=np.dtype(np.float64))
        return np.asarray(compute_matrices(evaluator, self._side, [kernel], self.memory)[0])

    def sketch(self, weight: np.ndarray, rank: int) -> Sketch:
        """Return low-rank stand-ins for all kernels on the training rows.

        Parameters
        ----------
        weight : array of shape (n_samples,)
            Positive weights of the rows, which sum to one.
        rank : int
            Most landmarks for kernels that share columns and a metric.
        """
        return sketch_of(self._evaluator, self._side, weight, rank, np.random.default_rng(0))

    def _grams_of_rows(self, partly: bool, rows: Index) -> Grams:
        return self.take(rows).grams(partly=partly)

    def take(self, rows: Index) -> FittedBank:
        """Return the bank with some of the training rows only, as prediction needs them."""
        index = list_positions(as_positions(rows, self.n_samples, "rows"))
        return replace(self, rows=[pack(unpack(packed)[index]) for packed in self.rows])

    def replace_rows(self, X: MatrixLike) -> FittedBank:
        """Return the bank with other rows in place of its own; widths and scales stay."""
        points = self._side_of(X, range(self.n_kernels)).points
        return replace(self, rows=[pack(points[group].X) for group in range(len(self.rows))])

    def only(self, which: Sequence[int]) -> FittedBank:
        """Return the bank with some of its kernels only, and the columns of these."""
        index = as_kernel_numbers(which, self.n_kernels)
        groups = sorted({self.group_of[m] for m in index})
        maps = list(dict.fromkeys(self.map_of[m] for m in index)) if self.map_of else []
        by_group: dict[str, Any] = {
            name: [part[group] for group in groups]
            for name in ("rows", "columns", "centres", "landmarks", "preprocess")
            if isinstance(part := getattr(self, name), list) and part
        }
        return replace(
            self,
            names=[self.names[m] for m in index],
            kernels=[self.kernels[m] for m in index],
            scales=self.scales[index],
            group_of=[groups.index(self.group_of[m]) for m in index],
            maps=[self.maps[place] for place in maps],
            map_of=[maps.index(self.map_of[m]) for m in index] if maps else [],
            **by_group,
        )

    def append(self, X: MatrixLike) -> FittedBank:
        """Return the bank with further training rows; widths and scales stay as they are."""
        added = self._side_of(X, range(self.n_kernels)).points
        rows = [
            pack(append_rows(unpack(packed), added[group].X)) if group in added else packed
            for group, packed in enumerate(self.rows)
        ]
        return replace(self, rows=rows)

    # --- between new rows and training rows

    def combine(
        self, X: MatrixLike, weights: ArrayLike, support: Index = None, *, dtype: DType = None
    ) -> np.ndarray:
        """Return the weighted sum of the kernels between new rows and training rows.

        Kernels of weight zero are not computed. The others are computed some rows at a time.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features_in)
            New rows.
        weights : array of shape (n_kernels,)
            The weights of the kernels.
        support : slice, positions or mask, optional
            The training rows to compare with; all by default.
        dtype : dtype, optional
            The dtype of the sum; that of the bank by default.

        Returns
        -------
        array of shape (n_new, n_support)
            With ``factors``, the sum of the factored kernels.
        """
        dtype = np.dtype(dtype or self.dtype)
        scales = as_weights(weights, self.n_kernels, dtype)
        which = np.flatnonzero(scales).tolist()
        right = self._side
        if support is not None:
            right = right.part(as_positions(support, self.n_samples, "support"))
        left = self._side_of(X, which)
        total = np.zeros((left.n_rows, right.n_rows), dtype=dtype)
        for rows, m, block in self._blocks(left, right, which, dtype):
            # A block belongs to the caller, who may overwrite it.
            block *= scales[m]
            total[rows] += block
        return total

    def products(
        self, X: MatrixLike, blocks: Sequence[np.ndarray], *, sizes: bool = False
    ) -> np.ndarray:
        """Return the sum over kernels between new and training rows, each times its own table.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features_in)
            New rows.
        blocks : list of array of shape (n_samples, n_outputs)
            One per kernel.
        sizes : bool, default=False
            Add a last column: the largest sum of magnitudes of terms in any of the other columns.

        Returns
        -------
        array of shape (n_new, n_outputs), or one column more with ``sizes``
            In the dtype of the bank. With ``factors``, the sum over the factored kernels.
        """
        which = range(self.n_kernels)
        tables = [as_table(block, self.n_samples, self.dtype) for block in blocks]
        left = self._side_of(X, which)
        k = tables[0].shape[1]
        total = np.zeros((left.n_rows, k + sizes), dtype=self.dtype)
        if self.factors is not None:
            for m, phi, psi in self._factor_pairs(left, self._side, which):
                add_products(total, phi, psi.T @ tables[m])
            return total
        for rows, m, block in self._blocks(left, self._side, which, self.dtype):
            add_products(total[rows], block, tables[m])
        return total

    def between(self, X: MatrixLike) -> KernelStack:
        """Return all kernels between new rows and training rows: ``(n_new, n_samples)`` each.

        With ``factors`` these are the factored kernels.
        """
        which = range(self.n_kernels)
        left = self._side_of(X, which)
        shape = (self.n_kernels, left.n_rows, self.n_samples)
        needed = int(np.prod(shape)) * self.dtype.itemsize
        if needed > self.memory:
            raise ValueError(
                f"{self.n_kernels} kernels between {left.n_rows} new rows and {self.n_samples} "
                f"training rows need {format_bytes(needed)}, more than "
                f"memory={format_bytes(self.memory)}. Give fewer rows at a time, use combine, or "
                "raise memory."
            )
        matrices = np.empty(shape, dtype=self.dtype)
        for rows, m, block in self._blocks(left, self._side, which, self.dtype):
            matrices[m, rows] = block
        return KernelStack._of(matrices, False)

    def features(
        self, X: MatrixLike, which: Index = None, *, dtype: DType = None
    ) -> list[np.ndarray]:
        """Return the features of new rows, ``(n_new, rank)`` for each kernel in ``which``.

        Inner products of features are the factored kernels. Their ``dtype`` is that of the bank by
        default.
        """
        if self.factors is None:
            raise ValueError(
                "this bank has no factors and therefore no features; set factors='nystrom' or "
                "factors='random' in the KernelBank."
            )
        index = as_kernel_numbers(which, self.n_kernels)
        distinct = list(dict.fromkeys(index))
        features = split_columns(*self._features(self._side_of(X, distinct), distinct, dtype))
        by_kernel = dict(zip(distinct, features, strict=True))
        return [by_kernel[m] for m in index]

    def feature_products(
        self, X: MatrixLike, which: Sequence[int], table: np.ndarray
    ) -> np.ndarray:
        """Return the features of new rows, side by side, times a table.

        The values of a kernel at the landmarks are multiplied by its map times its part of the
        table. This is less work than the features themselves, and shows how large the terms are
        that cancel where a map enlarges small directions.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features_in)
            New rows.
        which : positions
            The kernels, each once.
        table : array of shape (sum of ranks, n_outputs)
            A row for each feature.

        Returns
        -------
        array of shape (n_new, n_outputs + 1)
            In double precision. The last column is the largest sum of magnitudes of terms in any of
            the other columns.
        """
        index = [int(m) for m in which]
        left = self._side_of(X, index)
        total = np.zeros((left.n_rows, table.shape[1] + 1))
        # Waves have no landmarks; their features are computed.
        if self.factors == "random":
            columns, _ = self._features(left, index, np.float64)
            add_products(total, columns, table)
            return total
        parts = np.split(table, np.cumsum(self.ranks(index))[:-1])
        # k(x, z) (map table) instead of (k(x, z) map) table: the map is multiplied once, not per
        # row.
        tables = {
            m: np.sqrt(self.scales[m]) * (self.maps[self.map_of[m]] @ part)
            for m, part in zip(index, parts, strict=True)
        }
        for rows, m, block in self._exact.blocks(left, self._landmark_side, index):
            add_products(total[rows], block, tables[m])
        return total

    def ranks(self, which: Sequence[int]) -> list[int]:
        """Return how many features each of the kernels in ``which`` has."""
        double = 2 if self.factors == "random" else 1  # cosines and sines
        return [double * self.maps[self.map_of[m]].shape[1] for m in which]

    def cost(self, weights: ArrayLike, n_support: int) -> dict[str, int]:
        """Return about how much memory and work a model with these kernels takes.

        Parameters
        ----------
        weights : array of shape (n_kernels,)
            The weights of the kernels; those of weight zero cost nothing.
        n_support : int
            Number of training rows that new rows are compared with; ignored with ``factors``.

        Returns
        -------
        dict
            ``kernels`` and ``support``, the numbers of both; ``floats`` to store; and
            ``multiplications`` to compare one new row with the support, or to compute its features.
        """
        which = np.flatnonzero(as_weights(weights, self.n_kernels, np.float64)).tolist()
        groups = {self.group_of[m] for m in which}
        shared = {(self.group_of[m], self.kernels[m].metric) for m in which}
        widths = [shape_of(packed)[1] for packed in self.rows]
        size = sum(widths[group] for group in groups)
        n_rows, maps = int(n_support), 0
        if self.factors is not None:
            n_rows = shape_of(self.landmarks[0])[0] if self.landmarks else 0
            maps = sum(self.maps[place].size for place in {self.map_of[m] for m in which})
        steps = n_rows * (sum(widths[group] for group, _ in shared) + 2 * len(which))
        return {
            "kernels": len(which),
            "support": 0 if self.factors is not None else n_rows,
            "floats": n_rows * size + maps + len(which),
            "multiplications": steps + maps,
        }

    # --- inside

    @cached_property
    def _kept(self) -> dict[str, Any]:
        """Gram matrices from normalisation, which the next call of :meth:`grams` hands out."""
        return {}

    @property
    def _evaluator(self) -> Evaluator:
        return Evaluator(
            self.kernels, self.names, self.group_of, self.scales, self.unit, self.dtype
        )

    @property
    def _exact(self) -> Evaluator:
        """The kernels in float64 without their scales, from which factors are made."""
        ones = np.ones(self.n_kernels)
        return replace(self._evaluator, scales=ones, dtype=np.dtype(np.float64))

    @cached_property
    def _side(self) -> Side:
        return self._make_side(self.rows)

    @cached_property
    def _landmark_side(self) -> Side:
        return self._make_side(self.landmarks)

    def _make_side(self, groups: list[Packed]) -> Side:
        rows = map(unpack, groups)
        points = dict(enumerate(map(Points, rows, self.centres)))
        n_rows = shape_of(groups[0])[0]
        return self._evaluator.side(points, n_rows, range(self.n_kernels))

    def _side_of(self, X: MatrixLike, which: Sequence[int]) -> Side:
        """Return new rows, prepared for the kernels in ``which``."""
        X = align_columns(X, self.n_features_in, self.feature_names_in)
        n_rows, whole = X.shape[0], None
        if self.preprocess is not None and not isinstance(self.preprocess, list):
            whole = self.preprocess.transform(X) if which else None
        points = {}
        for group in sorted({self.group_of[m] for m in which}):
            table = select(X if whole is None else whole, self.columns[group])
            if isinstance(self.preprocess, list) and self.preprocess[group] is not None:
                table = self.preprocess[group].transform(table)
            metrics = [self.kernels[m].metric for m in which if self.group_of[m] == group]
            rows = rows_like(self._side.points[group].X, table, metrics)
            points[group] = Points(rows, self.centres[group])
        return self._evaluator.side(points, n_rows, which)

    def _blocks(
        self, left: Side, right: Side, which: Sequence[int], dtype: np.dtype[Any]
    ) -> Iterator[tuple[slice, int, np.ndarray]]:
        """Yield rows of ``left``, a kernel, and the kernel of these and ``right``.

        With ``factors`` these are the factored kernels.
        """
        if self.factors is None:
            evaluator = replace(self._evaluator, dtype=dtype)
            yield from evaluator.blocks(left, right, which, self.memory)
            return
        for m, phi, psi in self._factor_pairs(left, right, which, dtype):
            yield slice(None), m, phi @ psi.T

    def _factor_pairs(
        self, left: Side, right: Side, which: Sequence[int], dtype: DType = None
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Return the numbers of kernels, and their features of both sides."""
        sides = (split_columns(*self._features(side, which, dtype)) for side in (left, right))
        return zip(which, *sides, strict=True)

    def _features(
        self, side: Side, which: Sequence[int], dtype: DType = None
    ) -> tuple[np.ndarray, list[int]]:
        """Return the features of rows for some kernels side by side, and the rank of each."""
        ranks = self.ranks(which)
        columns = np.empty((side.n_rows, sum(ranks)), dtype=dtype or self.dtype)
        features = split_columns(columns, ranks)
        places = dict(zip(which, features, strict=True))
        roots = np.sqrt(self.scales)
        if self.factors == "random":
            random_features(self._exact, side.points, self.maps, self.map_of, places, roots)
        else:
            for some, m, block in self._exact.blocks(side, self._landmark_side, sorted(which)):
                places[m][some] = block @ (self.maps[m] * roots[m])
        return columns, ranks

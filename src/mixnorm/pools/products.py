"""Products of two columns as atoms, none of them ever stored."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mixnorm._array import is_numpy
from mixnorm._chunks import chunks
from mixnorm._params import Parameters
from mixnorm._threads import threads_for
from mixnorm.data import DenseScan, SparseScan, column_ranges, scan
from mixnorm.pools.columns import best_places, scale_name, working_dtype
from mixnorm.pools.cost import Cost

# Rows of one matrix product: columns times outputs. Fewer, and BLAS does not reach its speed.
_STACK = 512
# Samples of one matrix product: the weighted columns of a block take some megabytes.
_SAMPLES = 4096
# A sparse table with a larger share of entries than this is multiplied faster as a dense one.
_DENSE_FROM = 0.1

# Entries of a block of sums over rows, for a sparse table.
_BLOCK_ENTRIES = 1 << 22

Atom = tuple[int, ...]


@dataclass
class Products(Parameters):
    """Products ``x_i x_j`` of all pairs of columns.

    An atom is ``(i, j)`` with ``i < j``, ``(i, i)`` for a square, ``(i,)`` for a column itself.

    Parameters
    ----------
    linear : bool, default=True
        Offer the columns themselves too.
    squares : bool, default=True
        Offer their squares too.

    Notes
    -----
    With ``d`` columns, ``n`` samples and ``k`` outputs a round costs ``n k d^2 / 2``
    multiplications, as matrix products of blocks ``X^T diag(r) X``; beside one copy of the data the
    pool keeps one number per pair. A sparse table of which no more than a tenth is filled stays
    sparse, and a round then visits the pairs of entries of each row; any other is made dense.

    What only repeats another atom is never offered: with ``linear``, squares of columns that
    have two values, and products with a constant column.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import ShareBoostClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> model = ShareBoostClassifier(1, pool=Products()).fit(X, X[:, 1] * X[:, 3] > 0)
    >>> model.path_["feature"].tolist()
    [(1, 3)]
    """

    linear: bool = True
    squares: bool = True

    plain: ClassVar[bool] = False

    def prepare(
        self,
        X: Any,
        *,
        weight: Any | None = None,
        scale: bool | str = "std",
        fit_intercept: bool = True,
    ) -> PreparedProducts:
        """Bind the pool to data: the size of every product is found.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            The data; one copy is kept, of the rows of positive weight.
        weight : array of shape (n_samples,), optional
            Weights of the rows in standard deviations; rows of weight zero do not count at all.
        scale : {"std", "max"} or bool
            Divide each product by its standard deviation (``"std"``, also True; without an
            intercept by the root of its mean square), by its largest magnitude (``"max"``), or by
            nothing (False).
        fit_intercept : bool
            With an intercept, constant products are never chosen.
        """
        check_numpy(X, "Products")
        dtype = weight.dtype if weight is not None else working_dtype(X)
        matrix = scan(X, dtype)
        used = np.ones(X.shape[0], bool) if weight is None else np.asarray(weight) > 0
        low, high = column_ranges(matrix, used)
        table = _table(matrix, used, np.maximum(-low, high))
        usable = high > low if fit_intercept else (high != 0) | (low != 0)
        sizes, unit = table.sizes(fit_intercept), scale_name(scale)
        repeats = _repeats(table, low, high, fit_intercept) if self.linear else None
        for i, pairs in enumerate(_triangle(sizes, len(low))):
            _drop_useless(pairs, table.exponents[i] + table.exponents[i:], unit)
            if not self.squares or (repeats is not None and repeats[i]):
                pairs[0] = 0.0
            if self.linear:  # times a constant column, it is the other column again
                pairs[(low[i:] == high[i:]) | (low[i] == high[i])] = 0.0
        singles = np.ldexp(np.maximum(-low, high), -table.exponents).astype(dtype)
        singles[~usable | (not self.linear)] = 0.0
        if unit == "std":
            share = np.full(len(used), 1.0) if weight is None else np.asarray(weight, np.float64)
            share = share[used] / share[used].sum()
            columns, products = table.deviations(share, fit_intercept)
            singles, sizes = np.where(singles > 0, columns, 0), np.where(sizes > 0, products, 0)
            singles, sizes = singles.astype(dtype), sizes.astype(dtype)
            for i, pairs in enumerate(_triangle(sizes, len(low))):
                _drop_useless(pairs, table.exponents[i] + table.exponents[i:], unit)
        _drop_useless(singles, table.exponents, unit)
        return PreparedProducts(matrix, table, used, singles, sizes, bool(unit))

    def evaluate(self, X: Any, atoms: Sequence[Atom]) -> np.ndarray:
        """Return the products of ``atoms`` on new data: ``(n_samples, n_atoms)``."""
        check_numpy(X, "Products")
        matrix = scan(X, working_dtype(X))
        values = np.empty((X.shape[0], len(atoms)), dtype=matrix.dtype)
        for place, atom in enumerate(atoms):
            values[:, place] = _product(matrix, atom)
        return values

    def labels(self, atoms: Sequence[Atom]) -> list[Any]:
        """Return how to name ``atoms``: by the numbers of their columns."""
        return list(atoms)

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Return an atom in words, for columns of these names.

        A name may tell itself how to write it in a product (``factor``).
        """
        if len(atom) == 1:
            return names[atom[0]]
        first, second = (getattr(names[column], "factor", names[column]) for column in atom)
        return f"{first}²" if atom[0] == atom[1] else f"{first} × {second}"

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the columns that ``atoms`` read, in order."""
        read = [column for atom in atoms for column in dict.fromkeys(atom)]
        return np.asarray(read, dtype=np.intp)

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return what a row costs before the weights: one multiplication for a product."""
        return Cost(len(atom) - 1, 0)

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return 1; raise for what is no product of such data."""
        good = type(atom) is tuple and len(atom) in (1, 2) and all(type(i) is int for i in atom)
        if not good or not 0 <= atom[0] <= atom[-1] < n_features:
            raise ValueError(
                f"atoms of a Products pool are one column or a pair of columns in order, numbered "
                f"below {n_features}, not {str(atom)[:100]}"
            )
        return 1


class PreparedProducts:
    """Products bound to data.

    Columns are first divided by powers of two that bring them into [-1, 1]: exactly, so that the
    products of what is left neither overflow nor differ from the true ones.
    """

    def __init__(
        self,
        matrix: DenseScan | SparseScan,
        table: _DenseTable | _SparseTable,
        used: np.ndarray,
        singles: np.ndarray,
        sizes: np.ndarray,
        scale: bool,
    ) -> None:
        self._matrix, self._table, self._scale = matrix, table, scale
        self._used = None if used.all() else np.flatnonzero(used)
        self._used_rows = used
        #: What columns and products are divided by, in reduced units; zero: never offered.
        self._singles, self._sizes = singles, sizes

    @property
    def n_usable(self) -> int:
        """Number of atoms that can be chosen."""
        return int(np.count_nonzero(self._singles) + np.count_nonzero(self._sizes))

    def top(
        self,
        residual: Any,
        rule: str,
        m: int,
        exclude: frozenset[Hashable],
        inputs: frozenset[int] | None = None,
    ) -> list[tuple[Atom, float]]:
        """Return the ``m`` atoms with the largest gradients, with their scores, best first."""
        residual = residual if self._used is None else residual[self._used]
        d = len(self._singles)
        index = np.arange(d) if inputs is None else np.asarray(sorted(inputs), dtype=np.intp)
        starts = _starts(len(index))
        table = self._table if inputs is None else self._table.subset(index)
        singles, pairs = table.single_norms(residual, rule), table.pair_norms(residual, rule)
        pair_sizes = self._sizes if inputs is None else self._sizes[_places(index, d)]
        scores = np.concatenate(
            [
                self._worth(singles, self._singles[index], table.exponents),
                self._worth(pairs, pair_sizes, None if self._scale else table.pair_exponents()),
            ]
        )
        for atom in exclude:
            place = _place_of(atom, index, starts)
            if place is not None:
                scores[place] = 0.0
        return [
            (_atom_at(place, index, starts), float(scores[place]))
            for place in best_places(scores, m)
        ]

    def _worth(self, norms: np.ndarray, sizes: np.ndarray, powers: Any) -> np.ndarray:
        """Turn norms of gradients in reduced units into scores; zero where the size is zero."""
        scores = np.zeros(len(norms))
        if self._scale:
            np.divide(norms, sizes, out=scores, where=sizes > 0)
        else:
            np.ldexp(norms.astype(np.float64), powers, out=scores, where=sizes > 0)
        return scores

    def columns(self, atom: Atom) -> np.ndarray:
        """Return the scaled product as a row: ``(1, n_samples)``."""
        with np.errstate(over="ignore"):
            row: np.ndarray = _product(self._matrix, atom)[None, :] / self.scale(atom)[:, None]
        if self._used is not None:  # what does not count may hold anything
            row = np.where(self._used_rows, row, 0.0).astype(row.dtype, copy=False)
        return row

    def scale(self, atom: Atom) -> np.ndarray:
        """Return what the product of ``atom`` was divided by."""
        dtype, exponents = self._matrix.dtype, self._table.exponents
        if not self._scale:
            return np.ones(1, dtype=dtype)
        d, i, j = len(self._singles), atom[0], atom[-1]
        size = self._singles[i] if len(atom) == 1 else self._sizes[_starts(d)[i] + j - i]
        power = exponents[i] + (exponents[j] if len(atom) == 2 else 0)
        largest = np.ldexp(size, power) if size > 0 else 1.0
        return np.asarray([largest], dtype=dtype)

    def inputs(self, atom: Atom) -> frozenset[int]:
        """Return the columns that ``atom`` reads."""
        return frozenset(atom)


class _Table:
    """Columns divided by powers of two."""

    exponents: np.ndarray

    def deviations(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviations of columns and of products, in reduced units.

        ``share`` has the weights of the rows, which sum to one. Not centred, the roots of mean
        squares.
        """
        raise NotImplementedError

    def pair_exponents(self) -> np.ndarray:
        """Return the exponents of the powers that products are divided by."""
        powers = self.exponents
        parts = [powers[i] + powers[i:] for i in range(len(powers))]
        return np.concatenate([*parts, powers[:0]])


class _DenseTable(_Table):
    """The columns of a dense table as rows."""

    def __init__(self, Z: np.ndarray, exponents: np.ndarray) -> None:
        self._Z, self.exponents = Z, exponents

    @classmethod
    def of(cls, matrix: Any, used: np.ndarray, exponents: np.ndarray) -> _DenseTable:
        Z = np.empty((matrix.shape[1], np.count_nonzero(used)), dtype=matrix.dtype)
        start = 0
        for rows, block in _blocks(matrix):
            part = block[used[rows]]
            Z[:, start : start + len(part)] = np.ldexp(part, -exponents).T
            start += len(part)
        return cls(Z, exponents)

    def subset(self, index: np.ndarray) -> _DenseTable:
        """Return the table of some columns."""
        return _DenseTable(self._Z[index], self.exponents[index])

    def sizes(self, skip_constant: bool) -> np.ndarray:
        """Return the largest magnitude of each pair's product; zero for constants to skip."""
        from mixnorm.pools.products_jit import dense_sizes

        starts = _starts(len(self._Z))
        sizes = np.empty(starts[-1], dtype=self._Z.dtype)
        with threads_for(len(sizes) * self._Z.shape[1]):
            for part in chunks(len(self._Z), self._Z.size, parallel=True):
                dense_sizes(self._Z, starts, skip_constant, sizes, part.start, part.stop)
        return sizes

    def deviations(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviations of columns and of products.

        A product of ``m + u`` and ``M + U`` is ``m M`` and three terms that do not cancel however
        large the means are beside the deviations.
        """
        d = len(self._Z)
        mean = self._Z @ share if centred else np.zeros(d)
        fourth, third, second = (np.zeros((d, d)) for _ in range(3))
        for start in range(0, self._Z.shape[1], _SAMPLES):
            part = slice(start, start + _SAMPLES)
            rest = self._Z[:, part] - mean[:, None]
            weighted, squares = rest * share[part], rest * rest
            second += weighted @ rest.T
            third += weighted @ squares.T
            fourth += (squares * share[part]) @ squares.T
        spread = np.diagonal(second).copy()
        if not centred:
            second = np.zeros((d, d))
        mixed = mean[:, None] ** 2 * spread + 2.0 * mean[:, None] * third
        variance = fourth - second**2 + mixed + mixed.T
        variance += 2.0 * np.outer(mean, mean) * second
        upper = np.concatenate([variance[i, i:] for i in range(d)] or [np.empty(0)])
        return np.sqrt(spread), np.sqrt(np.maximum(upper, 0.0))

    def two_valued(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Tell which columns have no values but their extremes."""
        return np.asarray(
            [
                bool(np.all((row == least) | (row == most)))
                for row, least, most in zip(self._Z, low, high, strict=True)
            ],
            dtype=bool,
        )

    def single_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the columns' gradients."""
        return _norms(self._Z @ residual, rule, axis=1)

    def pair_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the products' gradients ``Z diag(r) Z^T``, the upper triangle."""
        Z, outputs = self._Z, np.ascontiguousarray(residual.T)
        starts = _starts(len(Z))
        norms = np.empty(starts[-1], dtype=Z.dtype)
        width = int(np.clip(_STACK // len(outputs), 16, 128))
        for first in range(0, len(Z), width):
            block = _block_norms(Z, outputs, rule, first, width)
            for t, row in enumerate(block):
                norms[starts[first + t] : starts[first + t + 1]] = row[t:]
        return norms


def _block_norms(
    Z: np.ndarray, outputs: np.ndarray, rule: str, first: int, width: int
) -> np.ndarray:
    """Return the norms for a block of columns with all columns from its first on.

    Several outputs share one product: their weighted blocks are stacked.
    """
    block, rest = Z[first : first + width], Z[first:]
    total = np.zeros((len(block), len(rest)), dtype=Z.dtype if rule == "l1" else np.float64)
    together = max(1, _STACK // len(block))
    for output in range(0, len(outputs), together):
        weights = outputs[output : output + together]
        gradient = np.zeros((len(weights) * len(block), len(rest)), dtype=Z.dtype)
        for start in range(0, Z.shape[1], _SAMPLES):
            part = slice(start, start + _SAMPLES)
            stacked = weights[:, None, part] * block[None, :, part]
            gradient += stacked.reshape(len(gradient), -1) @ rest[:, part].T
        gradient = gradient.reshape(len(weights), len(block), len(rest))
        if rule == "l1":
            total += np.abs(gradient, out=gradient).sum(axis=0)
        else:  # in double precision, in which no square vanishes
            total += np.square(gradient, dtype=np.float64).sum(axis=0)
    return total if rule == "l1" else np.sqrt(total)


class _SparseTable(_Table):
    """A sparse table by columns and by rows."""

    def __init__(self, by_column: Any, exponents: np.ndarray) -> None:
        self._columns, self._rows = by_column, by_column.tocsr()
        self.exponents = exponents

    @classmethod
    def of(cls, matrix: SparseScan, used: np.ndarray, exponents: np.ndarray) -> _SparseTable:
        X = sp.csc_array(matrix.by_column[np.flatnonzero(used), :])  # a copy
        X.sum_duplicates()
        X.data = np.ldexp(X.data, -np.repeat(exponents, np.diff(X.indptr)))
        return cls(X, exponents)

    def subset(self, index: np.ndarray) -> _SparseTable:
        """Return the table of some columns."""
        return _SparseTable(self._columns[:, index], self.exponents[index])

    def sizes(self, skip_constant: bool) -> np.ndarray:
        """Return the largest magnitude of each pair's product; zero for constants to skip."""
        from mixnorm.pools.products_jit import sparse_sizes

        return self._for_pairs(sparse_sizes, 2, skip_constant)

    def deviations(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviations of columns and of products."""
        X = self._columns.astype(np.float64)
        squares, d = X.multiply(X).tocsc(), X.shape[1]
        mean, square = X.T @ share, squares.T @ share
        parts = []
        step = max(1, _BLOCK_ENTRIES // max(1, d))
        for start in range(0, d, step):
            block = slice(start, min(start + step, d))
            variance = _weighted_gram(squares, block, share)
            if centred:
                variance -= _weighted_gram(X, block, share) ** 2
            parts += [row[start + i :] for i, row in enumerate(variance)]
        upper = np.concatenate(parts or [np.empty(0)])
        columns = square - mean**2 if centred else square
        return np.sqrt(np.maximum(columns, 0.0)), np.sqrt(np.maximum(upper, 0.0))

    def two_valued(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Tell which columns have no values but their extremes."""
        X = self._columns
        column = np.repeat(np.arange(len(low)), np.diff(X.indptr))
        strange = (X.data != low[column]) & (X.data != high[column])
        has_zeros = np.diff(X.indptr) < X.shape[0]
        others = np.bincount(column, weights=strange, minlength=len(low)) > 0
        return np.asarray(~others & ~(has_zeros & (low != 0) & (high != 0)))

    def single_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the columns' gradients."""
        return _norms(self._columns.T @ np.ascontiguousarray(residual), rule, axis=1)

    def pair_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the products' gradients, the upper triangle."""
        from mixnorm.pools.products_jit import sparse_norms

        residual = np.ascontiguousarray(residual)
        return self._for_pairs(sparse_norms, residual.shape[1], residual, rule == "l2")

    def _for_pairs(self, loop: Any, width: int, *arguments: Any) -> np.ndarray:
        """Run a compiled loop that writes one number per pair, out of so many for each row."""
        X, by_row, starts = self._columns, self._rows, _starts(len(self.exponents))
        found = np.empty(starts[-1], dtype=X.dtype)
        matrix = (X.indptr, X.indices, X.data, by_row.indptr, by_row.indices, by_row.data)
        # Of one column: its entries, times those of a row, times the numbers that are added up.
        each = int(np.diff(X.indptr).max(initial=0)) * -(-X.nnz // max(1, X.shape[0])) * width
        with threads_for(X.nnz * X.shape[1] + len(found)):
            for part in chunks(X.shape[1], each, parallel=True):
                loop(*matrix, starts, *arguments, found, part.start, part.stop)
        return found


def _weighted_gram(X: Any, block: slice, share: np.ndarray) -> np.ndarray:
    """Return the products of some columns of a sparse matrix with all, weighted by the rows."""
    part = X[:, block].multiply(share[:, None]).tocsc()
    return np.asarray((part.T @ X).toarray())


def _table(
    matrix: DenseScan | SparseScan, used: np.ndarray, largest: np.ndarray
) -> _DenseTable | _SparseTable:
    """Return the rows in use as a table of reduced columns."""
    exponents = np.frexp(largest)[1].astype(np.int64)
    if isinstance(matrix, SparseScan):
        filled = matrix.by_column.nnz
        if filled <= _DENSE_FROM * matrix.shape[0] * matrix.shape[1]:
            return _SparseTable.of(matrix, used, exponents)
    return _DenseTable.of(matrix, used, exponents)


def _blocks(matrix: DenseScan | SparseScan) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of rows, made dense."""
    if isinstance(matrix, DenseScan):
        yield from matrix.blocks()
        return
    X = matrix.by_column.tocsr()
    for start in range(0, X.shape[0], _SAMPLES):
        rows = slice(start, min(start + _SAMPLES, X.shape[0]))
        yield rows, X[rows].toarray()


def _product(matrix: DenseScan | SparseScan, atom: Atom) -> np.ndarray:
    """Return the product of the columns of ``atom``."""
    rows = matrix.columns(list(atom))
    return np.asarray(rows[0] if len(atom) == 1 else rows[0] * rows[1])


def _norms(gradient: np.ndarray, rule: str, axis: int) -> np.ndarray:
    if rule == "l1":
        return np.asarray(np.abs(gradient).sum(axis=axis))
    return np.asarray(np.sqrt(np.square(gradient, dtype=np.float64).sum(axis=axis)))


def _repeats(
    table: _DenseTable | _SparseTable, low: np.ndarray, high: np.ndarray, fit_intercept: bool
) -> np.ndarray:
    """Tell which squares say no more than the column itself, and the intercept if there is one.

    If a column has the values ``a`` and ``b`` only, then ``x^2 = (a + b) x - a b``.
    """
    reduced = [np.ldexp(bound, -table.exponents) for bound in (low, high)]
    matters = fit_intercept | (low == 0) | (high == 0)
    return np.asarray(table.two_valued(*reduced) & matters)


def _drop_useless(sizes: np.ndarray, powers: np.ndarray, unit: str) -> None:
    """Set sizes to zero whose true value overflows, or is so small that its inverse does.

    Where columns are not divided by their sizes, the curvature along a gradient goes with the
    fourth power, which must not overflow either.
    """
    info = np.finfo(sizes.dtype)
    most = float(info.max) if unit else float(info.max) ** 0.25
    with np.errstate(over="ignore", under="ignore"):
        largest = np.ldexp(sizes, powers)
    sizes[~((largest > 4.0 * info.tiny) & (largest <= most))] = 0.0


# --- the numbering of pairs: row by row of the upper triangle


def _starts(n: int) -> np.ndarray:
    """Return where the pairs of each of ``n`` columns begin, and where the last ones end."""
    return np.asarray(np.concatenate([[0], np.cumsum(np.arange(n, 0, -1))]))


def _triangle(pairs: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Yield the pairs of each column in turn."""
    starts = _starts(n)
    for i in range(n):
        yield pairs[starts[i] : starts[i + 1]]


def _places(index: np.ndarray, n: int) -> np.ndarray:
    """Return where the pairs of some of ``n`` columns lie among those of all."""
    starts = _starts(n)
    parts = [starts[i] + index[t:] - i for t, i in enumerate(index)]
    return np.concatenate([*parts, np.empty(0, dtype=np.intp)]).astype(np.intp)


def _place_of(atom: Any, index: np.ndarray, starts: np.ndarray) -> int | None:
    """Return the place of an atom in the scores of ``index``, columns first; None if none."""
    t = np.searchsorted(index, atom)
    if np.any(t == len(index)) or np.any(index[t] != atom):
        return None
    return int(t[0]) if len(t) == 1 else len(index) + int(starts[t[0]] + t[1] - t[0])


def _atom_at(place: int, index: np.ndarray, starts: np.ndarray) -> Atom:
    """Return the atom at a place in the scores of ``index``."""
    if place < len(index):
        return (int(index[place]),)
    pair = place - len(index)
    t = int(np.searchsorted(starts, pair, side="right")) - 1
    return int(index[t]), int(index[t + pair - starts[t]])


def check_numpy(X: Any, name: str) -> None:
    """Raise for arrays of other libraries."""
    if not hasattr(X, "toarray") and not is_numpy(X):
        raise TypeError(
            f"{name} takes NumPy arrays and sparse matrices, not {type(X).__name__}; "
            "convert X with numpy.asarray first."
        )

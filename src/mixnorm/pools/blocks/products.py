"""Products of columns of a table of blocks: sums over all pairs, block by block."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mixnorm._array import is_sparse, to_dense
from mixnorm._chunks import blocks as split
from mixnorm.data import ALL_COLUMNS, Block, SparseMatrix, add, as_matrix
from mixnorm.pools.blocks.base import (
    LARGEST_SHARE_OF_ROW,
    ROWS_KEPT,
    BlockData,
    BlockPool,
    ResidualSums,
    RowShares,
)
from mixnorm.pools.product_tables import (
    DenseFeatures,
    ReducedFeatures,
    SparseFeatures,
    find_deviations,
    find_exponents,
    is_thin,
    measure_ranges,
    pair_starts,
    sparse_deviations,
)
from mixnorm.pools.products import (
    Atom,
    ProductFacts,
    Products,
    ScoredProducts,
    find_places,
    reduce_ranges,
)

# Sums over all pairs of features, such as gradients or moments, that are in memory at a time.
_SUMS_AT_ONCE = 16


def bind_products(pool: Products, data: BlockData, unit: str, fit_intercept: bool) -> BlockProducts:
    """Return the pool bound to a table, after one pass over it."""
    known = data.statistics if fit_intercept else data.statistics.about_zero()
    d, table = len(known.low), data.table
    if _SUMS_AT_ONCE * 8 * (d * (d + 1) // 2) > table.memory:
        raise MemoryError(
            f"Products of {d} columns have {d * (d + 1) // 2} pairs, and sums over them do not fit "
            f"into {table.memory} bytes. Give the table more memory, or choose fewer columns."
        )
    exponents = find_exponents(known.largest)
    thin = is_sparse(data.sample.X) and is_thin(data.sample.X)
    reduce = Reduce(exponents, thin, data.dtype)
    mean = np.ldexp(known.mean, -exponents)
    bounds = reduce_ranges(known.low, known.high, exponents)
    low, high = (bound.astype(data.dtype) for bound in bounds)
    measure = MeasureProducts(reduce, data.shares, mean, low, high, fit_intercept)
    lows, highs, others, moments = table.sum(
        measure, columns=ALL_COLUMNS, target=data.shares.target, combine=join_measures
    )
    if thin:
        columns, products = sparse_deviations(moments, fit_intercept)
        means = moments[2]
    else:
        columns, products, means = find_deviations(moments, mean, fit_intercept)
    sizes = measure_ranges(lows, highs, fit_intercept)
    facts = ProductFacts(
        known.low, known.high, exponents, sizes, others == 0, lambda: (columns, products)
    )
    divisors = pool.find_divisors(facts, unit, fit_intercept)
    spread = _Spread(
        np.concatenate([low, lows]).astype(np.float64),
        np.concatenate([high, highs]).astype(np.float64),
        np.concatenate([mean, means]) * fit_intercept,
        np.concatenate([columns, products]),
    )
    return BlockProducts(data, reduce, divisors, spread, bool(unit), fit_intercept)


@dataclass(frozen=True, eq=False)
class _Spread:
    """Smallest and largest values, means and deviations of features, and then of products."""

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


@dataclass(frozen=True, eq=False)
class Reduce:
    """Divides the features of a block by powers of two; ``thin`` keeps them sparse."""

    exponents: np.ndarray
    thin: bool
    dtype: np.dtype[Any]

    def __call__(self, X: Any, used: np.ndarray) -> ReducedFeatures:
        """Return the features of the rows in use."""
        matrix = as_matrix(X, self.dtype)
        if isinstance(matrix, SparseMatrix) and self.thin:
            return SparseFeatures.of(matrix, used, self.exponents)
        if is_sparse(X):
            matrix = as_matrix(to_dense(X), self.dtype)
        return DenseFeatures.of(matrix, used, self.exponents)

    def part(self, index: np.ndarray) -> Reduce:
        """Return what does the same with some of the features."""
        return replace(self, exponents=self.exponents[index])


@dataclass(frozen=True, eq=False)
class MeasureProducts:
    """Finds ranges and moments of all products of the features of a block.

    ``mean``, ``low`` and ``high`` are those of the features over all rows, in reduced units.
    """

    reduce: Reduce
    shares: RowShares
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    centred: bool

    def __call__(self, block: Block) -> tuple[Any, ...] | None:
        """Return ranges of products, counts of further values of features, and moments."""
        share = self.shares(block)
        used = share > 0.0
        if not used.any():
            return None
        features, share = self.reduce(block.X, used), share[used]
        others = features.count_others(self.low, self.high)
        moments: tuple[np.ndarray, ...]
        if isinstance(features, SparseFeatures):
            moments = features.moments(share, self.centred)
        else:
            moments = features.moments(share, self.mean)
        return *features.ranges(), others, moments


def join_measures(left: Any, right: Any) -> Any:
    """Join the measures of two parts of a table."""
    if left is None or right is None:
        return right if left is None else left
    low, high = np.minimum(left[0], right[0]), np.maximum(left[1], right[1])
    return low, high, *add(left[2:], right[2:])


@dataclass(frozen=True, eq=False)
class ProductGradients:
    """Finds the products of all features and pairs of a block with some outputs of a residual."""

    reduce: Reduce
    outputs: slice

    def __call__(self, X: Any, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return those of features and of products, ``(n_outputs, n)``, in reduced units."""
        residual = residual[:, self.outputs]
        # Rows that do not count may hold anything, and their residual is zero.
        used = np.any(residual != 0.0, axis=1)
        residual = residual if used.all() else residual[used]
        features = self.reduce(X, used)
        return features.single_gradients(residual), features.pair_gradients(residual)


@dataclass(frozen=True, eq=False)
class ProductRows:
    """The recipe of products less their means, in their scales.

    ``means``, ``sizes`` and ``limits``, which no row that counts exceeds, are in reduced units, and
    ``powers`` multiply the quotients.
    """

    token: str
    atoms: tuple[Atom, ...]
    exponents: np.ndarray
    means: np.ndarray
    sizes: np.ndarray
    limits: np.ndarray
    powers: np.ndarray
    dtype: np.dtype[Any]

    most_kept: ClassVar[int] = ROWS_KEPT

    @property
    def keys(self) -> list[Hashable]:
        """The fit and the atom of each row."""
        return [(self.token, atom) for atom in self.atoms]

    def columns(self, keys: Sequence[Hashable]) -> np.ndarray:
        """Return the features of some rows, each once."""
        found = {feature for key in keys for feature in key[1]}  # type: ignore[index]
        return np.asarray(sorted(found), dtype=np.intp)

    def make(self, X: Any, keys: Sequence[Hashable]) -> np.ndarray:
        """Return some rows of a block with these features."""
        columns, places = self.columns(keys), {key: at for at, key in enumerate(self.keys)}
        X = to_dense(X).astype(np.float64)
        with np.errstate(over="ignore"):
            reduced = {j: np.ldexp(X[:, at], -self.exponents[j]) for at, j in enumerate(columns)}
        rows = np.empty((len(keys), X.shape[0]), dtype=self.dtype)
        for row, key in zip(rows, keys, strict=True):
            at, atom = places[key], key[1]  # type: ignore[index]
            with np.errstate(over="ignore"):
                values = reduced[atom[0]]
                values = values if len(atom) == 1 else values * reduced[atom[1]]
            # Rows that do not count may hold anything, and must not overflow.
            values = np.clip(values - self.means[at], -self.limits[at], self.limits[at])
            row[:] = np.ldexp(values / self.sizes[at], self.powers[at])
        return rows


class BlockProducts(BlockPool, ScoredProducts):
    """Products bound to a table of blocks. A round reads the table once."""

    def __init__(
        self,
        data: BlockData,
        reduce: Reduce,
        divisors: tuple[np.ndarray, np.ndarray],
        spread: _Spread,
        scale: bool,
        fit_intercept: bool,
    ) -> None:
        # All products are scored on all rows: none are needed to rank them.
        self.data = data = replace(data, screen=None)
        ScoredProducts.__init__(self, reduce.exponents, divisors, scale, data.dtype)
        self._reduce, self._spread, self._centred = reduce, spread, fit_intercept

    def _compute_norms(
        self, residual: Any, rule: str, index: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        sums: ResidualSums = residual
        d, columns, reduce = len(self._singles), ALL_COLUMNS, self._reduce
        mean = self._spread.mean
        if index is not None:
            columns, reduce = index, reduce.part(index)
            mean = np.concatenate([mean[index], mean[d + find_places(index, d)]])
        norms, total = np.zeros(len(mean)), sums.total
        step = max(1, self.table.memory // (_SUMS_AT_ONCE * 8 * len(mean)))
        for outputs in split(len(total), step):
            found = sums.sum(ProductGradients(reduce, outputs), columns)
            for gradient, output in zip(np.hstack(found), range(len(total))[outputs], strict=True):
                gradient -= mean * total[output]  # the residual does not quite sum to zero
                norms += np.abs(gradient) if rule == "l1" else np.square(gradient)
        norms = norms if rule == "l1" else np.sqrt(norms)
        return norms[: len(reduce.exponents)], norms[len(reduce.exponents) :]

    def _place(self, atom: Atom) -> int:
        """Return the place of an atom among features and products."""
        d = len(self._singles)
        if len(atom) == 1:
            return atom[0]
        return int(d + pair_starts(d)[atom[0]] + atom[1] - atom[0])

    def _find_unit(self, atom: Any) -> tuple[float, int]:
        """Return what the values of an atom, in reduced units, are divided by, and a power."""
        size, power = self._find_size(atom)
        return (float(size) or 1.0, 0 if size > 0 else power) if self._scale else (1.0, power)

    def recipe(self, atoms: Sequence[Any]) -> ProductRows:
        """Return the recipe of the scaled products, less their means."""
        units = [self._find_unit(atom) for atom in atoms]
        places, spread = [self._place(atom) for atom in atoms], self._spread
        means = spread.mean[places]
        # Twice the farthest: ranges are in the dtype of the data, and rows in double precision.
        limits = 2.0 * np.maximum(spread.high[places] - means, means - spread.low[places])
        sizes, powers = np.asarray([size for size, _ in units]), np.asarray([at for _, at in units])
        return ProductRows(
            self.data.token, tuple(atoms), self._exponents, means, sizes, limits, powers,
            self._dtype,
        )  # fmt: skip

    def _to_unit(self, atom: Any, number: float) -> float:
        """Return a number in reduced units in the scale of an atom."""
        size, power = self._find_unit(atom)
        return float(np.ldexp(number / size, power))

    def offset(self, atom: Any) -> np.ndarray:
        """Return the mean of the scaled product; zero without an intercept."""
        return np.asarray([self._to_unit(atom, self._spread.mean[self._place(atom)])])

    def reach(self, atom: Any) -> float:
        """Return half the range of the scaled product; without an intercept its largest size."""
        place, spread = self._place(atom), self._spread
        low, high = float(spread.low[place]), float(spread.high[place])
        return self._to_unit(atom, 0.5 * (high - low) if self._centred else max(-low, high))

    def is_spiky(self, atom: Any) -> bool:
        """Tell whether some row may have much of an atom's curvature, which a sample can miss."""
        place, spread = self._place(atom), self._spread
        farthest = max(
            spread.high[place] - spread.mean[place], spread.mean[place] - spread.low[place]
        )
        rows = len(self.data.sample.rows)
        return not farthest**2 < LARGEST_SHARE_OF_ROW * rows * spread.deviation[place] ** 2

"""Products of two features as atoms, none of which is ever stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm._array import Array
from mixnorm.data import Matrix, as_matrix
from mixnorm.pools.base import (
    Cost,
    Excluded,
    Inputs,
    Offers,
    Pool,
    PoolData,
    PreparedPool,
    best_offers,
    check_numpy,
    working_dtype,
)
from mixnorm.pools.columns import scale_name
from mixnorm.pools.product_tables import (
    ReducedFeatures,
    pair_exponents,
    pair_starts,
    reduce_features,
)

if TYPE_CHECKING:
    from mixnorm.pools.blocks.base import BlockData, BlockPool

Atom = tuple[int, ...]


@dataclass
class Products(Pool):
    """Products ``x_i x_j`` of all pairs of features.

    An atom is ``(i, j)`` with ``i < j``, ``(i, i)`` for a square, ``(i,)`` for a feature itself.

    Parameters
    ----------
    linear : bool, default=True
        Offer the features themselves too.
    squares : bool, default=True
        Offer their squares too.

    Notes
    -----
    With ``d`` features, ``n`` samples and ``k`` outputs a round costs ``n k d^2 / 2``
    multiplications, as matrix products of blocks ``X^T diag(r) X``. Memory holds one copy of the
    rows that count, and one number per pair. Sparse data of which at most a tenth is filled stay
    sparse, and a round visits the pairs of entries of each row; other data are made dense.

    Atoms that repeat another one are never offered: with ``linear``, squares of features that have
    two values, and products with a constant feature.

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

    def _bind(self, data: PoolData) -> PreparedProducts:
        """Compute the size of every product."""
        used, fit_intercept = data.used, data.fit_intercept
        matrix = as_matrix(data.X, data.dtype)
        low, high = matrix.ranges(used)
        table = reduce_features(matrix, used, np.maximum(-low, high))
        two_valued = None
        if self.linear:
            two_valued = table.find_two_valued(*reduce_ranges(low, high, table.exponents))

        def find_deviations() -> tuple[np.ndarray, np.ndarray]:
            share = np.ones(len(used)) if data.weight is None else np.asarray(data.weight, float)
            share = share[used] / share[used].sum()
            return table.deviations(share, fit_intercept)

        facts = ProductFacts(
            low, high, table.exponents, table.sizes(fit_intercept), two_valued, find_deviations
        )
        unit = scale_name(data.scale)
        divisors = self.find_divisors(facts, unit, fit_intercept)
        return PreparedProducts(matrix, table, used, divisors, bool(unit))

    def bind_blocks(self, data: BlockData, scale: bool | str, fit_intercept: bool) -> BlockPool:
        """Bind the pool to a table of blocks, after a pass that finds the size of every product."""
        from mixnorm.pools.blocks.products import bind_products

        return bind_products(self, data, scale_name(scale), fit_intercept)

    def find_divisors(
        self, facts: ProductFacts, unit: str, fit_intercept: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the divisors of features and of products; zero for those never offered."""
        low, high, exponents = facts.low, facts.high, facts.exponents
        usable = high > low if fit_intercept else (high != 0) | (low != 0)
        # A size of zero marks pairs that are never offered; the next lines only set more to zero.
        sizes, dtype = facts.sizes, facts.sizes.dtype
        repeats = None
        if facts.two_valued is not None and self.linear:
            # With the values ``a`` and ``b`` only, a square is ``x^2 = (a + b) x - a b``. The
            # constant ``a b`` takes an intercept, unless it is zero.
            repeats = facts.two_valued & (fit_intercept | (low == 0) | (high == 0))
        for i, pairs in enumerate(_iterate_triangle(sizes, len(low))):
            _drop_useless(pairs, exponents[i] + exponents[i:], unit)
            # The first pair of a feature is its square.
            if not self.squares or (repeats is not None and repeats[i]):
                pairs[0] = 0.0
            if self.linear:  # a feature times a constant one is the same feature again
                pairs[(low[i:] == high[i:]) | (low[i] == high[i])] = 0.0
        # Largest magnitudes in reduced units, replaced by deviations below if these are the unit.
        singles = np.ldexp(np.maximum(-low, high), -exponents).astype(dtype)
        singles[~usable | (not self.linear)] = 0.0
        if unit == "std":
            columns, products = facts.deviations()
            singles, sizes = np.where(singles > 0, columns, 0), np.where(sizes > 0, products, 0)
            singles, sizes = singles.astype(dtype), sizes.astype(dtype)
            for i, pairs in enumerate(_iterate_triangle(sizes, len(low))):
                _drop_useless(pairs, exponents[i] + exponents[i:], unit)
        _drop_useless(singles, exponents, unit)
        return singles, sizes

    def evaluate(self, X: Array, atoms: Sequence[Atom]) -> np.ndarray:
        """Return the products of ``atoms`` on new data: ``(n_samples, n_atoms)``."""
        check_numpy(X, "Products")
        matrix = as_matrix(X, working_dtype(X))
        values = np.empty((X.shape[0], len(atoms)), dtype=matrix.dtype)
        for place, atom in enumerate(atoms):
            values[:, place] = _compute_product(matrix, atom)
        return values

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Describe an atom in words, for features with these names.

        A name with an attribute ``factor`` is written so in a product.
        """
        if len(atom) == 1:
            return names[atom[0]]
        first, second = (getattr(names[column], "factor", names[column]) for column in atom)
        return f"{first}²" if atom[0] == atom[1] else f"{first} × {second}"

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the features that ``atoms`` read, in order."""
        read = [column for atom in atoms for column in dict.fromkeys(atom)]
        return np.asarray(read, dtype=np.intp)

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return the operations that an atom takes: one multiplication for a product."""
        return Cost(len(atom) - 1, 0)

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return 1; raise a ValueError for anything but a product of such data."""
        good = type(atom) is tuple and len(atom) in (1, 2) and all(type(i) is int for i in atom)
        if not good or not 0 <= atom[0] <= atom[-1] < n_features:
            raise ValueError(
                f"atoms of a Products pool are one column or a pair of columns in order, numbered "
                f"below {n_features}, not {str(atom)[:100]}"
            )
        return 1


@dataclass(frozen=True, eq=False)
class ProductFacts:
    """What sizes of products follow from.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,)
        The smallest and largest value of each feature.
    exponents : ndarray of int
        Those of the powers of two that features are divided by.
    sizes : ndarray
        The largest magnitudes of products, in reduced units; zero for products that are constant.
    two_valued : ndarray of bool or None
        The features that have two values.
    deviations : callable
        Returns the standard deviations of features and of products, in reduced units.
    """

    low: np.ndarray
    high: np.ndarray
    exponents: np.ndarray
    sizes: np.ndarray
    two_valued: np.ndarray | None
    deviations: Callable[[], tuple[np.ndarray, np.ndarray]]


class ScoredProducts(PreparedPool):
    """Base of products bound to data.

    Features are first divided by powers of two that bring them into [-1, 1]. The division is exact,
    so that products of the quotients neither overflow nor lose digits.

    Parameters
    ----------
    exponents : ndarray of int
        Those of the powers of two.
    divisors : tuple of ndarray
        Divisors of features and of products, in reduced units; zero: never offered.
    scale : bool
        Whether columns are divided by these.
    dtype : dtype
        The dtype of columns.
    """

    def __init__(
        self,
        exponents: np.ndarray,
        divisors: tuple[np.ndarray, np.ndarray],
        scale: bool,
        dtype: Any,
    ) -> None:
        self._exponents, self._scale, self._dtype = exponents, scale, dtype
        self._singles, self._sizes = divisors
        self.n_usable = sum(int(np.count_nonzero(sizes)) for sizes in divisors)

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the ``m`` atoms with the largest gradients, with their scores, best first."""
        d = len(self._singles)
        index = np.arange(d) if inputs is None else np.asarray(sorted(inputs), dtype=np.intp)
        starts = pair_starts(len(index))
        singles, pairs = self._compute_norms(residual, rule, None if inputs is None else index)
        pair_sizes = self._sizes if inputs is None else self._sizes[find_places(index, d)]
        exponents = self._exponents[index]
        # Scores of scaled columns do not depend on the powers of two, which cancel with the sizes.
        powers = (None, None) if self._scale else (exponents, pair_exponents(exponents))
        scores = np.concatenate(
            [
                _score_norms(singles, self._singles[index], powers[0]),
                _score_norms(pairs, pair_sizes, powers[1]),
            ]
        )
        for atom in exclude:
            place = _find_place(atom, index, starts)
            if place is not None:
                scores[place] = 0.0
        return best_offers(scores, m, lambda place: _get_atom(place, index, starts))

    def _compute_norms(
        self, residual: Any, rule: str, index: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the norms of gradients of some features and their products, in reduced units."""
        raise NotImplementedError

    def _find_size(self, atom: Atom) -> tuple[Any, int]:
        """Return the divisor of an atom in reduced units, and the exponent of the unit."""
        d, i, j = len(self._singles), atom[0], atom[-1]
        size = self._singles[i] if len(atom) == 1 else self._sizes[pair_starts(d)[i] + j - i]
        power = self._exponents[i] + (self._exponents[j] if len(atom) == 2 else 0)
        return size, int(power)

    def scale(self, atom: Atom) -> np.ndarray:
        """Return the divisor of the product of ``atom``."""
        if not self._scale:
            return np.ones(1, dtype=self._dtype)
        size, power = self._find_size(atom)
        largest = np.ldexp(size, power) if size > 0 else 1.0
        return np.asarray([largest], dtype=self._dtype)


class PreparedProducts(ScoredProducts):
    """Products bound to data in memory."""

    def __init__(
        self,
        matrix: Matrix,
        table: ReducedFeatures,
        used: np.ndarray,
        divisors: tuple[np.ndarray, np.ndarray],
        scale: bool,
    ) -> None:
        super().__init__(table.exponents, divisors, scale, matrix.dtype)
        self._matrix, self._table = matrix, table
        self._used = None if used.all() else np.flatnonzero(used)
        self._used_rows = used

    def _compute_norms(
        self, residual: Any, rule: str, index: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        residual = np.asarray(residual if self._used is None else residual[self._used])
        table = self._table if index is None else self._table.subset(index)
        return table.single_norms(residual, rule), table.pair_norms(residual, rule)

    def columns(self, atom: Atom) -> np.ndarray:
        """Return the scaled product as a row: ``(1, n_samples)``."""
        with np.errstate(over="ignore"):  # rows that do not count may hold anything
            row: np.ndarray = (
                _compute_product(self._matrix, atom)[None, :] / self.scale(atom)[:, None]
            )
        if self._used is not None:  # what does not count may hold anything
            row = np.where(self._used_rows, row, 0.0).astype(row.dtype, copy=False)
        return row


def _score_norms(norms: np.ndarray, sizes: np.ndarray, powers: np.ndarray | None) -> np.ndarray:
    """Return scores for norms of gradients in reduced units; zero where the size is zero.

    Norms are divided by sizes, or without scaling multiplied by the ``powers`` of two.
    """
    scores = np.zeros(len(norms))
    if powers is None:
        np.divide(norms, sizes, out=scores, where=sizes > 0)
    else:
        np.ldexp(norms.astype(np.float64), powers, out=scores, where=sizes > 0)
    return scores


def _compute_product(matrix: Matrix, atom: Atom) -> np.ndarray:
    """Return the product of the features of ``atom``."""
    rows = matrix.column_rows(atom)
    return np.asarray(rows[0] if len(atom) == 1 else rows[0] * rows[1])


def reduce_ranges(low: np.ndarray, high: np.ndarray, exponents: np.ndarray) -> list[np.ndarray]:
    """Return the smallest and largest values of features in reduced units."""
    return [np.ldexp(bound, -exponents) for bound in (low, high)]


def _drop_useless(sizes: np.ndarray, powers: np.ndarray, unit: str) -> None:
    """Set sizes to zero where the true size or its inverse overflows.

    The curvature along a gradient grows with the fourth power of columns that are not scaled, and
    must not overflow either.
    """
    info = np.finfo(sizes.dtype)
    most = float(info.max) if unit else float(info.max) ** 0.25
    with np.errstate(over="ignore", under="ignore"):
        largest = np.ldexp(sizes, powers)
    sizes[~((largest > 4.0 * info.tiny) & (largest <= most))] = 0.0


# --- the numbering of pairs: row by row of the upper triangle


def _iterate_triangle(pairs: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Yield the pairs of each feature in turn."""
    starts = pair_starts(n)
    for i in range(n):
        yield pairs[starts[i] : starts[i + 1]]


def find_places(index: np.ndarray, n: int) -> np.ndarray:
    """Return the places of the pairs of some of ``n`` features among the pairs of all."""
    starts = pair_starts(n)
    # The pair ``(i, j)`` stands at ``starts[i] + j - i``.
    parts = [starts[i] + index[t:] - i for t, i in enumerate(index)]
    return np.concatenate([*parts, np.empty(0, dtype=np.intp)]).astype(np.intp)


def _find_place(atom: Any, index: np.ndarray, starts: np.ndarray) -> int | None:
    """Return the place of an atom in the scores of ``index``, or None; single features go first."""
    t = np.searchsorted(index, atom)  # ``index`` is sorted; atoms of other features are not in it
    if np.any(t == len(index)) or np.any(index[t] != atom):
        return None
    return int(t[0]) if len(t) == 1 else len(index) + int(starts[t[0]] + t[1] - t[0])


def _get_atom(place: int, index: np.ndarray, starts: np.ndarray) -> Atom:
    """Return the atom at a place in the scores of ``index``."""
    if place < len(index):
        return (int(index[place]),)
    pair = place - len(index)
    t = int(np.searchsorted(starts, pair, side="right")) - 1
    return int(index[t]), int(index[t + pair - starts[t]])

"""Stumps: every threshold of every feature as an atom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mixnorm._array import Array, is_sparse, to_dense
from mixnorm._chunks import run_loop
from mixnorm._numbers import check_count
from mixnorm.pools.base import (
    ROUNDING_OF_SHARES,
    Cost,
    Excluded,
    Inputs,
    Offers,
    Pool,
    PoolData,
    PreparedPool,
    best_offers,
    working_dtype,
)
from mixnorm.pools.scorers import Scorer, StumpScorer, for_compiled

if TYPE_CHECKING:
    from mixnorm.pools.blocks.base import BlockData, BlockPool

#: With more rows than this, thresholds are quantiles unless the user wants all of them.
ROWS_FOR_QUANTILES = 5_000

Atom = tuple[int, float]


@dataclass
class Stumps(Pool):
    """Indicators ``1[x_j <= threshold]`` of all features ``j`` and all thresholds.

    A model of stumps is a sum of step functions of a few features.

    Parameters
    ----------
    max_bins : int or None, default=255
        Most thresholds per feature where there are more than 5,000 rows; they are quantiles. With
        fewer rows, with None, and for features with no more thresholds than ``max_bins``, all
        thresholds between two values are tried.

    Notes
    -----
    An atom is a pair of feature and threshold. Thresholds lie half-way between two values. A round
    costs one pass over the data: the residuals are summed by the bin that a row falls into, and
    added up over bins. The data are stored as bins of one byte per entry; many bins take two or
    four. An indicator is never larger than one and never constant, so ``scale`` and
    ``fit_intercept`` have no effect.

    In a table of row blocks, the quantiles of a feature with more than 8,192 values are from a
    sketch. They are values of the feature, and their ranks are wrong by a few tenths of a percent
    of the rows at most (:eq:`sketch-error`).

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import ShareBoostClassifier
    >>> X = np.arange(12.0).reshape(12, 1)
    >>> y = (X[:, 0] > 2) & (X[:, 0] < 8)
    >>> model = ShareBoostClassifier(2, pool=Stumps()).fit(X, y)
    >>> sorted(model.path_["feature"])
    [(0, 2.5), (0, 7.5)]
    >>> bool(model.score(X, y) == 1.0)
    True
    """

    max_bins: int | None = 255

    def _bind(self, data: PoolData) -> PreparedStumps:
        """Find the thresholds, and sort rows into bins."""
        self._check()
        most = self.max_bins if np.count_nonzero(data.used) > ROWS_FOR_QUANTILES else None
        return PreparedStumps(data, most)

    def bind_blocks(self, data: BlockData, scale: bool | str, fit_intercept: bool) -> BlockPool:
        """Find the thresholds of a table of blocks, and count the rows between them."""
        from mixnorm.pools.blocks.stumps import bind_stumps

        self._check()
        return bind_stumps(data, self.max_bins, fit_intercept)

    def _check(self) -> None:
        if self.max_bins is not None:
            check_count("Stumps: max_bins", self.max_bins, other=" or None")

    def evaluate(self, X: Array, atoms: Sequence[Atom]) -> np.ndarray:
        """Return the indicators of ``atoms`` on new data: ``(n_samples, n_atoms)``."""
        index = [column for column, _ in atoms]
        thresholds = np.asarray([threshold for _, threshold in atoms], dtype=np.float64)
        return np.asarray(to_dense(X[:, index]) <= thresholds, dtype=working_dtype(X))

    def scorer(self, atoms: Sequence[Atom], weights: np.ndarray, intercept: np.ndarray) -> Scorer:
        """Return a scorer that does not make the columns."""
        return StumpScorer(atoms, weights, intercept)

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Describe an atom in words, for features with these names.

        A name with a method ``below`` describes the values below a threshold in its own units.
        """
        return describe_side(names[atom[0]], "<=", atom[1])

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the features that ``atoms`` read, in order."""
        return np.asarray([column for column, _ in atoms], dtype=np.intp)

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return the operations that an indicator takes: one comparison."""
        return Cost(0, 1)

    def total_cost(self, atoms: Sequence[Atom], n_features: int, n_outputs: int) -> Cost:
        """Return the operations that scores take.

        The weights of a feature's stumps are added up beforehand, so that one binary search among
        its thresholds finds their sum.
        """
        counts = Counter(column for column, _ in atoms)
        return Cost(n_outputs * len(counts), sum(count.bit_length() for count in counts.values()))

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return 1; raise a ValueError for anything but a stump of such data."""
        good = isinstance(atom, tuple) and len(atom) == 2
        good = good and type(atom[0]) is int and type(atom[1]) is float
        if not good or not 0 <= atom[0] < n_features or not abs(atom[1]) < np.inf:
            raise ValueError(
                f"atoms of a Stumps pool are pairs of a column below {n_features} and a "
                f"threshold, not {atom!r}"
            )
        return 1


class Binned(PreparedPool):
    """Base of pools of indicators, bound to data that are stored as bins between thresholds.

    Parameters
    ----------
    data : PoolData
        The data.
    most : int or None
        Most thresholds of a feature.
    """

    def __init__(self, data: PoolData, most: int | None) -> None:
        self._dtype = np.dtype(data.dtype)
        columns = values_by_column(data.X)
        # Thresholds of the rows that count, but codes of all rows: weights of zero change no
        # column.
        edges = [_find_thresholds(column[data.used], most, data.shares) for column in columns]
        counts = np.asarray([len(part) for part in edges], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._edges = np.concatenate([*edges, np.empty(0)])
        self._codes = _encode(data.X, self._edges, self._starts, int(counts.max(initial=0)))
        self._modes = _find_modes(self._codes)
        self.n_usable = len(self._edges)

    def _below(self, column: int, threshold: float) -> np.ndarray:
        """Tell which rows are at or below a threshold of a feature."""
        # A code is the number of thresholds below an entry, so that codes compare as values do.
        below = self._codes[column] <= self._place(column, threshold) - self._starts[column]
        return np.asarray(below)

    def _place(self, column: int, threshold: float) -> int:
        """Return the place of a threshold among those of all features; raise for other numbers."""
        first, last = self._starts[column], self._starts[column + 1]
        # Thresholds are compared as they are: both come from the same computation on the same data.
        place = int(first + np.searchsorted(self._edges[first:last], threshold))
        if place == last or self._edges[place] != threshold:
            raise ValueError(
                f"{threshold:g} is not a threshold of column {column}: the data or their weights "
                "have changed since the path began. Set warm_start=False to start again."
            )
        return place

    def scale(self, atom: Any) -> np.ndarray:
        """Return one: indicators are not scaled."""
        return np.ones(1, dtype=self._dtype)


class PreparedStumps(Binned):
    """Stumps bound to data."""

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the ``m`` stumps with the largest gradients, with their scores, best first."""
        scores = self._compute_scores(residual, rule, exclude, inputs)
        return best_offers(scores, m, self._atom_at)

    def _atom_at(self, place: int) -> Atom:
        """Return the stump at a place among the thresholds of all features."""
        feature = int(np.searchsorted(self._starts, place, side="right")) - 1
        return feature, float(self._edges[place])

    def _compute_scores(
        self, residual: Array, rule: str, exclude: Excluded, inputs: Inputs
    ) -> np.ndarray:
        """Return the scores of all stumps, zero for those that are excluded."""
        from mixnorm.pools.stumps_jit import threshold_scores

        residual = np.ascontiguousarray(residual)
        columns = np.arange(len(self._starts) - 1) if inputs is None else np.asarray(sorted(inputs))
        columns, total = columns.astype(np.int64), residual.sum(axis=0)
        scores = np.zeros(len(self._edges))
        table = self._codes, self._modes, self._starts
        found = columns, residual, total, rule == "l2", scores
        run_loop(threshold_scores, *table, *found, items=len(columns), operations=residual.size)
        for atom in exclude:
            scores[self._place(*cast(Atom, atom))] = 0.0
        return scores

    def columns(self, atom: Atom) -> np.ndarray:
        """Return the indicator of ``atom`` as a row: ``(1, n_samples)``."""
        return np.asarray(self._below(*atom)[None, :], dtype=self._dtype)


def describe_side(name: str, kind: str, threshold: float) -> str:
    """Describe a comparison; a name with methods ``below`` and ``above`` does so itself."""
    describe = getattr(name, "below" if kind == "<=" else "above", None)
    if describe is not None:
        return str(describe(threshold))
    return f"{name} {'≤' if kind == '<=' else '>'} {threshold:.6g}"


def _find_thresholds(column: np.ndarray, most: int | None, shares: np.ndarray | None) -> np.ndarray:
    """Return numbers between the values of a feature, in increasing order.

    Where there are more than ``most``, return as many quantiles of the rows, weighted by
    ``shares``.
    """
    values, counts = np.unique(column, return_counts=True)
    if most is not None and len(values) - 1 > most:
        parts: np.ndarray = counts / len(column)
        if shares is not None:
            places = np.searchsorted(values, column)
            parts = np.bincount(places, weights=shares, minlength=len(values))
        place = find_quantiles(np.cumsum(parts), most)
        return compute_middles(values[place], values[place + 1])
    return compute_middles(values[:-1], values[1:])


def find_quantiles(ranks: np.ndarray, most: int) -> np.ndarray:
    """Return the places of ``most`` quantiles, or fewer, among values at or below ranks."""
    levels = np.arange(1, most + 1) / (most + 1)
    # The first value that reaches a level, also where rounding leaves it a little short.
    place = np.unique(np.searchsorted(ranks, levels - ROUNDING_OF_SHARES))
    return np.asarray(place[place < len(ranks) - 1])  # above the largest value there is no row


def values_by_column(X: Array) -> Iterator[np.ndarray]:
    """Yield the values of each feature, in turn."""
    matrix: Any = X
    if is_sparse(X):
        matrix = matrix.tocsc()
    for j in range(X.shape[1]):
        yield np.asarray(to_dense(matrix[:, j : j + 1]))[:, 0]


def compute_middles(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return a number between each pair: half-way, unless rounding would reach the upper one.

    In the dtype of the data it separates both, so that single precision gives the same
    comparisons.
    """
    if low.dtype.kind != "f":
        return low.astype(np.float64) / 2 + high.astype(np.float64) / 2
    middle = low / 2 + high / 2  # halves first: the sum of two large values could overflow
    return np.where((low <= middle) & (middle < high), middle, low).astype(np.float64)


def code_type(most: int) -> Any:
    """Return the narrowest type that counts to ``most``.

    A round reads all codes, and memory sets its time.
    """
    return np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32


def _encode(X: Array, edges: np.ndarray, starts: np.ndarray, most: int) -> np.ndarray:
    """Return the number of thresholds below each entry, by feature and row."""
    from mixnorm.pools.stumps_jit import code_columns

    codes = np.empty((X.shape[1], X.shape[0]), dtype=code_type(most))
    if is_sparse(X):
        for j, column in enumerate(values_by_column(X)):
            codes[j] = np.searchsorted(edges[starts[j] : starts[j + 1]], column)
        return codes
    values = for_compiled(np.asarray(X))
    each = 4 * X.shape[1] * (1 + most.bit_length())  # a search mispredicts most of its branches
    run_loop(code_columns, values, edges, starts, codes, items=len(values), operations=each)
    return codes


def _find_modes(codes: np.ndarray) -> np.ndarray:
    """Return the most frequent code of each row."""
    if not codes.shape[1]:
        return np.zeros(len(codes), dtype=np.int64)
    return np.asarray([np.argmax(np.bincount(row)) for row in codes], dtype=np.int64)

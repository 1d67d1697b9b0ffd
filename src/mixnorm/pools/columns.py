"""Columns: the features as atoms, one by one or in groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mixnorm._array import Array, device_of, follow, is_sparse, namespace, tiny, to_numpy
from mixnorm.data import ColumnStatistics, Matrix, as_matrix
from mixnorm.pools.base import (
    Curvature,
    Excluded,
    Inputs,
    Offers,
    Pool,
    PoolData,
    PreparedPool,
    Recent,
    best_places,
    capped_gain,
)
from mixnorm.pools.scorers import ColumnScorer, Scorer

if TYPE_CHECKING:
    from mixnorm.pools.blocks.base import BlockData, BlockPool

#: The names of scales that columns may be divided by.
SCALES = ("std", "max")
# Second derivatives count as at least this share of what the mean curvature of all rows gives: a
# column that varies only where the model is certain could otherwise promise any gain.
_LEAST_BEND = 0.01
# Columns that a prepared pool keeps; beside a table of 500 columns that is little.
_COLUMNS_TO_KEEP = 16


@dataclass
class Columns(Pool):
    """The features of ``X``; with ``groups``, features of a group are chosen together.

    Parameters
    ----------
    groups : array-like of shape (n_features,), optional
        A label per feature; features with the same label are one atom (the indicators of one
        category, for example). Atoms are numbered in the order in which their labels first appear.
    costs : array-like of shape (n_atoms,), or mapping, optional
        The cost of each atom, a positive number: the price of a measurement, for example. Costs are
        in the order of atoms, or by feature number, or by the label of the group. Atoms are then
        ranked by ``score / sqrt(cost)``, because a step gains at least in proportion to the square
        of an atom's score.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 2.0, 1.0], [1.0, -2.0, 1.0]])
    >>> pool = Columns().prepare(X, scale="max")
    >>> pool.top(np.array([[0.5], [-0.5]]), "l1", 1, frozenset())
    [(1, 1.0)]
    >>> pool.columns(1)
    array([[ 1., -1.]])
    >>> priced = Columns(costs=[1.0, 9.0, 1.0]).prepare(X, scale="max")
    >>> priced.top(np.array([[0.5], [-0.5]]), "l1", 1, frozenset())
    [(0, 0.5)]
    """

    groups: Sequence[Hashable] | None = None
    costs: Sequence[float] | Mapping[Any, float] | None = None

    plain: ClassVar[bool] = True
    array_api: ClassVar[bool] = True

    def _bind(self, data: PoolData) -> PreparedColumns:
        """Gather the statistics of the columns; nothing is copied."""
        X, fit_intercept = data.X, data.fit_intercept
        weight: Any = data.weight  # of the library of X
        matrix = as_matrix(X, data.dtype)
        if weight is None:
            weight = follow(np.ones(X.shape[0]), X, data.dtype)
        known, *rest = self._measure(matrix.statistics(weight), data.scale, fit_intercept)
        usable, scales, members, prices = rest
        return PreparedColumns(matrix, members, usable, scales, known, weight, prices)

    def prepare_small(
        self,
        X: np.ndarray,
        *,
        weight: np.ndarray,
        statistics: ColumnStatistics,
        scale: bool | str,
        fit_intercept: bool,
    ) -> PreparedColumns:
        """Bind the pool to a small table that stands for a large one with these statistics."""
        known, usable, scales, members, prices = self._measure(statistics, scale, fit_intercept)
        matrix = as_matrix(X, X.dtype)
        found = PreparedColumns(matrix, members, usable, scales, known, weight, prices)
        found.made_by = found.pool = self
        found.n_features = X.shape[1]
        return found

    def bind_blocks(self, data: BlockData, scale: bool | str, fit_intercept: bool) -> BlockPool:
        """Bind the pool to a table of blocks."""
        from mixnorm.pools.blocks.columns import BlockColumns

        found, usable, scales, members, prices = self._measure(
            data.statistics, scale, fit_intercept
        )
        data = replace(data, statistics=found)
        return BlockColumns(data, members, usable, scales, fit_intercept, prices)

    def _measure(
        self, found: ColumnStatistics, scale: bool | str, fit_intercept: bool
    ) -> tuple[ColumnStatistics, np.ndarray, np.ndarray, list[np.ndarray] | None, Any]:
        """Return statistics, usable columns, scales, the columns of groups, and prices."""
        # Without an intercept nothing takes up the mean: columns are measured from zero.
        if not fit_intercept:
            found = found.about_zero()
        usable = found.high > found.low if fit_intercept else found.largest > 0
        sizes = found.largest if scale_name(scale) == "max" else found.deviation
        # 1/size must be finite, or the weight of the unscaled column would overflow.
        usable = usable & (sizes > 4.0 * np.finfo(sizes.dtype).tiny)
        if not scale and len(usable):
            check_unscaled(np.where(usable, found.largest, 0.0), sizes.dtype)
        scales = np.where(usable & bool(scale), sizes, 1.0).astype(sizes.dtype)
        members = None if self.groups is None else _group_columns(self.groups, len(usable))
        n_atoms = len(usable) if members is None else len(members)
        prices = None if self.costs is None else self._check_prices(self.costs, n_atoms)
        return found, usable, scales, members, prices

    def _check_prices(
        self, costs: Sequence[float] | Mapping[Any, float], n_atoms: int
    ) -> np.ndarray:
        """Return the costs of all atoms; raise for costs that are not allowed."""
        if isinstance(costs, Mapping):
            labels = dict.fromkeys(self.labels(range(n_atoms)))
            missing = [label for label in labels if label not in costs]
            stray = [label for label in costs if label not in labels]
            if missing or stray:
                what = "no cost for" if missing else "a cost for the unknown"
                kind = "column" if self.groups is None else "group"
                raise ValueError(
                    f"costs has {what} {kind} {(missing or stray)[0]!r}; give one cost for each of "
                    f"the {n_atoms} {kind}s."
                )
            costs = [costs[label] for label in labels]
        try:
            prices = np.asarray(to_numpy(costs), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"costs must be numbers, one per column or group: {error}.") from error
        if prices.shape != (n_atoms,):
            raise ValueError(
                f"costs has shape {prices.shape}, but there are {n_atoms} columns or groups to "
                "choose from; give one cost for each."
            )
        bad = np.flatnonzero(~(np.isfinite(prices) & (prices > 0.0)))
        if len(bad):
            raise ValueError(
                f"costs has {prices[bad[0]]} for {self.labels([int(bad[0])])[0]!r}; costs must be "
                "positive and finite."
            )
        return prices

    def evaluate(self, X: Array, atoms: Sequence[int]) -> Any:
        """Return the unscaled columns of ``atoms`` on new data: ``(n_samples, total width)``."""
        index = self.feature_indices(atoms, X.shape[1])
        if not is_sparse(X):
            xp = namespace(X)
            return xp.take(X, xp.asarray(index, device=device_of(X)), axis=1)
        return X[:, index]

    def labels(self, atoms: Sequence[int]) -> list[Any]:
        """Return names of ``atoms``: feature numbers, or the labels of groups."""
        if self.groups is None:
            return list(atoms)
        labels = list(dict.fromkeys(_list_labels(self.groups)))
        return [labels[atom] for atom in atoms]

    def describe(self, atom: int, names: Sequence[str]) -> str:
        """Describe an atom in words, for features with these names."""
        index = self.feature_indices([atom], len(names))
        return ", ".join(names[column] for column in index)

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return the number of columns of ``atom``; raise a ValueError for anything else."""
        if type(atom) is not int or atom < 0:
            raise ValueError(f"atoms of a Columns pool are whole numbers from 0 up, not {atom!r}")
        index = self.feature_indices([atom], n_features)
        if len(index) == 0 or np.max(index) >= n_features:
            raise ValueError(f"atom {atom!r} lies outside the {n_features} columns")
        return len(index)

    def feature_indices(self, atoms: Sequence[int], n_features: int) -> np.ndarray:
        """Return the features of ``atoms``, in order."""
        if self.groups is None:
            return np.asarray(list(atoms), dtype=np.intp)
        members = _group_columns(self.groups, n_features)
        parts = [members[atom] for atom in atoms]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    def scorer(self, atoms: Sequence[int], weights: np.ndarray, intercept: np.ndarray) -> Scorer:
        """Return a scorer that reads the columns of the data."""
        if not self.plain:  # a subclass whose columns are others
            return super().scorer(atoms, weights, intercept)
        width = 0 if self.groups is None else len(self.groups)
        return ColumnScorer(self.feature_indices(atoms, width), weights, intercept)


class PreparedColumns(PreparedPool):
    """Columns bound to a matrix."""

    takes_curvature: ClassVar[bool] = True

    def __init__(
        self,
        matrix: Matrix,
        members: list[np.ndarray] | None,
        usable: np.ndarray,
        scales: np.ndarray,
        statistics: ColumnStatistics,
        weight: Array,
        prices: np.ndarray | None = None,
    ) -> None:
        self._matrix, self._prices = matrix, prices
        self._members = members
        self._usable = usable
        self._scales = scales
        self._statistics = statistics
        #: The rows that count, as a mask; None where all do.
        counts = weight > 0
        self._counts = None if bool(namespace(counts).all(counts)) else counts
        #: Divisors of gradients; those of columns that cannot be chosen vanish.
        self._divisors = np.where(usable, scales, np.inf).astype(scales.dtype)
        #: Half the largest deviation of each column, in its scale.
        reach = np.where(usable, statistics.half_farthest / scales, 0.5)
        self._reach = reach.astype(scales.dtype)
        #: The weights of the last curvature, and the second derivatives from these.
        self._bends: tuple[Any, Any] = (None, None)
        self._recent = Recent(_COLUMNS_TO_KEEP)
        self.n_atoms = len(usable) if members is None else len(members)
        self.n_usable = int(np.count_nonzero(usable))
        if members is not None:
            self.n_usable = sum(bool(np.any(usable[columns])) for columns in members)
            self._atom_of = np.empty(len(usable), dtype=np.intp)
            for atom, columns in enumerate(members):
                self._atom_of[columns] = atom

    @property
    def priced(self) -> bool:
        """Whether atoms have prices."""
        return self._prices is not None

    def top(
        self,
        residual: Array,
        rule: str,
        m: int,
        exclude: Excluded,
        inputs: Inputs = None,
        curvature: Curvature | None = None,
        budget: float | None = None,
    ) -> Offers:
        """Return the ``m`` best atoms, with the norms of their gradients, best first.

        The best have the largest gradients by ``rule``: ``"l1"`` (magnitudes summed over the atom's
        columns and outputs) or ``"l2"``. With ``curvature`` they have the largest gains of Newton
        steps. Where atoms have prices, gains are divided by them. With ``inputs``, atoms consist of
        these features; with ``budget``, none costs more.
        """
        scores, worth = self._compute_scores(residual, rule, curvature)
        found = self._rank(scores, worth, m, exclude, inputs, budget)
        if m > 1:  # callers that ask for several read their columns next
            self._recent.gather([atom for atom, _ in found], self._read)
        return found

    def _rank(
        self,
        scores: np.ndarray,
        worth: np.ndarray,
        m: int,
        exclude: Excluded,
        inputs: Inputs,
        budget: float | None,
    ) -> Offers:
        """Return the ``m`` atoms of most worth, with their scores."""
        worth = self._limit(worth, exclude, inputs, budget)
        return [(atom, float(scores[atom])) for atom in best_places(worth, m)]

    def _limit(
        self, worth: np.ndarray, exclude: Excluded, inputs: Inputs, budget: float | None
    ) -> np.ndarray:
        """Return worth per price, minus infinity for atoms that are not allowed."""
        # ``worth`` is a gain, the square of a norm. A copy, as the scores are returned undivided.
        if self._prices is not None:
            worth = worth / self._prices
            if budget is not None:
                worth[self._prices > budget] = -np.inf
        if exclude:
            worth[np.fromiter(exclude, dtype=np.intp)] = -np.inf
        if inputs is not None:
            worth[self._mark_readers_of_others(inputs)] = -np.inf
        return worth

    def _mark_readers_of_others(self, inputs: frozenset[int]) -> np.ndarray:
        """Tell which atoms have a feature that is not among ``inputs``."""
        other = np.ones(len(self._usable), dtype=bool)
        other[[column for column in inputs if 0 <= column < len(other)]] = False
        if self._members is None:
            return other
        return np.bincount(self._atom_of, weights=other, minlength=self.n_atoms) > 0

    def columns(self, atom: int) -> Any:
        """Return the scaled columns of ``atom``, one per row: ``(width, n_samples)``."""
        return self._recent.gather([atom], self._read)[0]

    def _read(self, atoms: list[int]) -> list[Any]:
        """Return the scaled columns of ``atoms``, all read at once."""
        parts = [self._get_features(atom) for atom in atoms]
        index = [column for part in parts for column in part]
        rows = self._matrix.column_rows(index)
        xp = namespace(rows)
        if self._counts is not None:  # what does not count may hold anything
            rows = xp.where(self._counts[None, :], rows, xp.zeros_like(rows))
        rows = rows / xp.asarray(self._scales[index], device=device_of(rows))[:, None]
        ends = np.cumsum([len(part) for part in parts]).tolist()
        return [rows[end - len(part) : end, :] for part, end in zip(parts, ends, strict=True)]

    def _get_features(self, atom: int) -> list[int]:
        """Return the features of ``atom``."""
        return [atom] if self._members is None else self._members[atom].tolist()

    def inputs(self, atom: int) -> frozenset[int]:
        """Return the features that ``atom`` reads."""
        return frozenset(self._get_features(atom))

    def price(self, atom: int) -> float:
        """Return the price of ``atom``."""
        return 1.0 if self._prices is None else float(self._prices[atom])

    def scale(self, atom: int) -> np.ndarray:
        """Return the divisors of the columns of ``atom``."""
        return np.asarray(self._scales[self._get_features(atom)])

    def _compute_scores(
        self, residual: Any, rule: str, curvature: Curvature | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return by atom the norm of its gradient, and the gain of a step on it.

        Without a curvature, the square of the norm is taken as the gain.
        """
        errors = None if curvature is None else self._error_sums(residual)
        return self._score(self._scaled_gradient(residual), errors, rule, curvature)

    def _score(
        self, gradient: Any, errors: Any, rule: str, curvature: Curvature | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and gains for a gradient; both grow with each of its magnitudes."""
        xp = namespace(gradient)
        squares = gradient * gradient
        norms = xp.sum(xp.abs(gradient), axis=1) if rule == "l1" else xp.sum(squares, axis=1)
        scores = self._sum_by_atom(norms)
        # The root comes last: over a group, squares of columns add up, not their norms.
        if rule == "l2":
            scores = np.sqrt(scores)
        if curvature is None:
            return scores, scores * scores
        gains = 0.5 * squares / self._get_second_derivatives(curvature)
        # :eq:`score-statistic`, capped as in :eq:`capped-gain` without the product of
        # :eq:`touched-loss`. A column has an effect where it is large. The part of the residual
        # that it can change is estimated from its gradient, at most twice that, as the signs of the
        # residual may differ.
        reach = xp.asarray(self._reach, device=device_of(gradient))[:, None]
        limits = curvature.loss_per_error * xp.minimum(xp.abs(gradient) / reach, errors[None, :])
        return scores, self._sum_by_atom(capped_gain(gains.T, limits.T))

    def _scaled_gradient(self, residual: Any) -> Any:
        """Return the gradient in the weights of all scaled columns, ``(n_features, n_outputs)``."""
        gradient = self._matrix.gradient(residual)
        xp, device = namespace(gradient), device_of(gradient)
        # Scaled first: the squares of a column as large as 1e20 would overflow in float32.
        return gradient / xp.asarray(self._divisors, device=device)[:, None]

    def _error_sums(self, residual: Any) -> Any:
        """Return the sum of the magnitudes of the residual, by output."""
        xp = namespace(residual)
        return xp.sum(xp.abs(residual), axis=0)

    def _sum_by_atom(self, values: Array) -> np.ndarray:
        """Add up values of columns over those of an atom; columns that cannot be chosen add 0."""
        found = np.where(self._usable, to_numpy(values), 0.0)
        if self._members is None:
            return found
        return np.bincount(self._atom_of, weights=found, minlength=self.n_atoms)

    def _get_second_derivatives(self, curvature: Curvature) -> Any:
        """Return the second derivatives in the weights of each column, ``(n_features, n_outputs)``.

        The intercept, if there is one, is at its optimum for each weight (:eq:`score-statistic`).
        """
        weights = curvature.weights
        if self._bends[0] is not weights:
            self._bends = (None, None)  # freed before the new ones are made
            self._bends = (weights, self._compute_second_derivatives(curvature))
        # A constant column has neither a second derivative nor a gradient.
        return self._bends[1] + (curvature.ridge + tiny(weights))

    def _compute_second_derivatives(self, curvature: Curvature) -> Any:
        weights, samples = curvature.weights, curvature.samples
        xp, device = namespace(weights), device_of(weights)
        first, bend, seen = self._matrix.moments(weights, samples, self._statistics, self._divisors)
        total = xp.sum(weights, axis=0)
        # The variance under the weights. Moments are about the mean of the column, so that the
        # difference cancels little.
        if curvature.intercept:
            bend = bend - first**2 / (total + tiny(weights))
        bend = xp.where(bend > 0.0, bend, xp.zeros_like(bend))
        # Squares on rows outside the sample count with the mean curvature of all rows.
        spread = xp.asarray(self._statistics.deviation / self._divisors, device=device)
        lacking = spread * spread - seen
        lacking = xp.where(lacking > 0.0, lacking, xp.zeros_like(lacking))
        return bend + (lacking + _LEAST_BEND * spread * spread)[:, None] * total


def scale_name(scale: bool | str) -> str:
    """Return ``"std"``, ``"max"``, or an empty text for columns that are not scaled.

    Examples
    --------
    >>> scale_name(True), scale_name(False)
    ('std', '')
    """
    if isinstance(scale, (bool, np.bool_)):
        return "std" if scale else ""
    if not isinstance(scale, str) or scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not known; choose 'std', 'max' or False.")
    return scale


def check_unscaled(largest: np.ndarray, dtype: Any) -> None:
    """Raise where columns that are not scaled are too large or too small.

    A step along a gradient grows with the square of a column, and its curvature with the fourth
    power. Columns that are zero, or not used, have a ``largest`` of zero and are not checked.
    """
    # The column farthest from one in either direction decides.
    most = float(np.finfo(dtype).max) ** 0.25
    for column in (np.argmax(largest), np.argmin(np.where(largest > 0, largest, np.inf))):
        if largest[column] > most or 0 < largest[column] < 1.0 / most:
            raise ValueError(
                f"scale=False takes columns from {1.0 / most:.0e} to {most:.0e} in "
                f"{np.dtype(dtype)}, and the largest value of column {column} of X is "
                f"{largest[column]:.0e}. Choose scale='std' or scale='max', or divide the column "
                "by a number of that size."
            )


def _list_labels(groups: Sequence[Hashable]) -> list[Hashable]:
    """Return group labels as Python values, whatever array they are in."""
    to_list = getattr(groups, "tolist", None)
    return list(groups if to_list is None else to_list())


def _group_columns(groups: Sequence[Hashable], n_features: int) -> list[np.ndarray]:
    """Return the features of each group, in the order in which the groups first appear."""
    labels = _list_labels(groups)
    if any(label is None or label != label for label in labels):  # NaN is not itself
        raise ValueError("groups has missing labels (None or NaN); give every column a label.")
    if len(labels) != n_features:
        raise ValueError(
            f"groups has {len(labels)} labels, but X has {n_features} columns; "
            "give one label per column."
        )
    columns: dict[Hashable, list[int]] = {}
    for column, label in enumerate(labels):
        columns.setdefault(label, []).append(column)
    return [np.asarray(part, dtype=np.intp) for part in columns.values()]

"""Pieces: balls around centres, each with the linear functions on it as one atom."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mixnorm._array import Array, to_dense
from mixnorm._chunks import chunk_size, chunks
from mixnorm._distinct import draw_rows, find_distinct_rows
from mixnorm._linear import linear_scores
from mixnorm._threads import threads_for
from mixnorm.pools.base import (
    Cost,
    Excluded,
    Inputs,
    Offers,
    Pool,
    PreparedPool,
    TrainingData,
    best_of_each,
    best_places,
    check_numpy,
    check_whole,
    working_dtype,
)
from mixnorm.pools.columns import check_unscaled
from mixnorm.pools.scorers import Scorer

# Codes of rings are bytes, and one more than there are radii is needed.
_MOST_RADII = 255
# Squared distances keep all their digits where columns vary by more than this.
_NARROWEST = 1e-130
# Centres are clustered from this many rows for each.
_ROWS_PER_CENTRE = 64
# Shares of rows that differ by less are the same.
_ROUNDING = 1e-9
# Distances held at a time while radii are found.
_DISTANCES = 1 << 23
# Centres at most that one thread works on at a time: rows that they share stay in its cache.
_TOGETHER = 8
# Rows whose distances from a centre are found at a time: some megabytes.
_ROWS = 1 << 14

Atom = tuple[tuple[float, ...], float]


@dataclass
class Pieces(Pool):
    r"""Pieces of piecewise linear functions: :math:`1[\|v - c\| < r]\,[v, 1]`.

    An atom ``(centre, radius)`` is a group of one column more than the data have: the columns of
    the data and a constant, all of them zero outside the ball.

    Parameters
    ----------
    n_centers : int, default=1500
        Candidate centres, by k-means; the rows themselves if they are no more.
    n_radii : int, default=35
        Candidate radii of each centre: quantiles of the distances of the rows from it.

    Notes
    -----
    Distances take all columns as they are, so put them on one scale first. A round costs
    ``n (d + 1) k`` multiplications per centre, for ``d`` columns and ``k`` outputs: rows are sorted
    by distance once, and the gradients of rings are added up. Kept are a byte per row and centre,
    and ``d + 1`` numbers per centre and radius; and two copies of the data. A sparse table is made
    dense. ``random_state`` is the seed of the clustering.

    With all scales but False, each column of a piece is divided by its largest magnitude: a piece
    is local, and keeps the range of its rows. No ball holds all rows, so that ``fit_intercept`` has
    no effect.

    Whether a row lies inside is decided in double precision, column after column and each row for
    itself, so that it comes out the same on any batch of rows and in either precision of the data.

    References
    ----------
    Shalev-Shwartz, Wexler, Shashua: ShareBoost, sections 3.2 and A.2.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import ShareBoostClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> y = (X**2).sum(axis=1) < 1
    >>> model = ShareBoostClassifier(5, pool=Pieces(n_radii=9), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_centers: int = 1500
    n_radii: int = 35

    def _bound(self, data: TrainingData) -> PreparedPieces:
        """Find centres and radii, and sort rows into rings."""
        check_whole(self.n_centers, "Pieces(n_centers")
        check_whole(self.n_radii, "Pieces(n_radii", most=_MOST_RADII)
        by_column = _by_column(data.X)
        rows = by_column if data.used.all() else by_column[:, data.used]
        _check_sizes(rows)
        if not data.scale and rows.size:
            check_unscaled(np.abs(rows).max(axis=1), rows.dtype)
        centres = self._centres(rows.T, data.shares, data.random_state)
        dtype, scale = np.dtype(data.dtype), bool(data.scale)
        return PreparedPieces(
            by_column, data.used, data.shares, centres, self.n_radii, dtype, scale
        )

    def _centres(self, rows: np.ndarray, weight: Array, random_state: Any) -> np.ndarray:
        """Return centres, one per row, all different.

        They are found among distinct rows, sorted by value: neither copies nor the order of rows
        matter, only weights do.
        """
        first, which = find_distinct_rows([np.ascontiguousarray(rows)])
        rows, weight = rows[first], np.bincount(which, weight)
        if len(rows) <= self.n_centers:
            return np.unique(rows, axis=0).astype(np.float64)
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.utils import check_random_state

        rng = check_random_state(random_state)
        if len(rows) > _ROWS_PER_CENTRE * self.n_centers:
            generator = np.random.default_rng(rng.randint(2**31))
            chosen = draw_rows(weight, _ROWS_PER_CENTRE * self.n_centers, generator)
            rows, weight = rows[chosen], np.ones(len(chosen))  # weights are in the draw
        # A careful start costs more than all iterations, and such many centres do not need it.
        clusters = KMeans(self.n_centers, init="random", n_init=1, max_iter=20, random_state=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than centres
            clusters.fit(np.ascontiguousarray(rows), sample_weight=weight)
        return np.unique(_round_centres(clusters.cluster_centers_.astype(np.float64)), axis=0)

    def evaluate(self, X: Array, atoms: Sequence[Atom]) -> np.ndarray:
        """Return the pieces on new data: ``(n_samples, n_atoms * (n_features + 1))``."""
        check_numpy(X, "Pieces")
        by_column = _by_column(X)
        d, n_samples = by_column.shape
        values = np.zeros((n_samples, len(atoms), d + 1), dtype=by_column.dtype)
        for place, atom in enumerate(atoms):
            inside = np.flatnonzero(_inside(by_column, atom))
            values[inside, place, :d] = by_column[:, inside].T
            values[inside, place, d] = 1.0
        return values.reshape(n_samples, -1)

    def scorer(self, atoms: Sequence[Atom], weights: np.ndarray, intercept: np.ndarray) -> Any:
        """Return what computes the scores of rows without making the columns first."""
        return PieceScorer(atoms, weights, intercept)

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Return an atom in words, for columns of these names.

        A name may tell itself what a value is (``at``), in units of its own.
        """
        centre, radius = atom
        shown = [
            _coordinate(name, value) for name, value in zip(names[:3], centre[:3], strict=True)
        ]
        rest = ", …" if len(centre) > 3 else ""
        return f"within {radius:.3g} of ({', '.join(shown)}{rest})"

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the columns that ``atoms`` read: all, for each of them."""
        return np.tile(np.arange(n_features, dtype=np.intp), len(atoms))

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return what a row costs before the weights: a distance, and one comparison."""
        return Cost(n_features, 1)

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return one more than there are columns; raise for what is no piece of such data."""
        good = type(atom) is tuple and len(atom) == 2 and type(atom[0]) is tuple
        good = good and len(atom[0]) == n_features and _are_finite([*atom[0], atom[1]])
        if not good or not atom[1] > 0.0:
            raise ValueError(
                f"atoms of a Pieces pool are pairs of a centre of {n_features} numbers and a "
                f"positive radius, not {str(atom)[:100]}"
            )
        return n_features + 1


class PreparedPieces(PreparedPool):
    """Pieces bound to data.

    Parameters
    ----------
    by_column : array of shape (n_features, n_samples)
        The data.
    used : array of shape (n_samples,)
        Which rows count.
    shares : array of shape (n_used,), optional
        The weights of these, which sum to one, unless all are alike.
    centres : array of shape (n_centres, n_features)
        The centres.
    n_radii : int
        Radii to find for each.
    dtype : dtype
        Of the columns handed out.
    scale : bool
        Whether columns are divided by their largest magnitudes.
    """

    def __init__(
        self,
        by_column: np.ndarray,
        used: np.ndarray,
        shares: np.ndarray | None,
        centres: np.ndarray,
        n_radii: int,
        dtype: Any,
        scale: bool,
    ) -> None:
        self._by_column, self._dtype, self._scale = by_column, dtype, scale
        self._used = None if used.all() else np.flatnonzero(used)
        rows = by_column if self._used is None else by_column[:, self._used]
        #: The rows that count, with a constant; zeros fill columns up to eights, and a row of them
        #: fills groups of rows up.
        self._table = np.zeros((rows.shape[1] + 1, len(rows) // 8 * 8 + 8), dtype=dtype)
        self._table[:-1, : len(rows)] = rows.T
        self._table[:-1, len(rows)] = 1.0
        self._centres = [tuple(centre) for centre in centres.tolist()]
        self._numbers = {centre: number for number, centre in enumerate(self._centres)}
        self._find_rings(rows, shares, centres, n_radii)
        self._scales: dict[Atom, np.ndarray] = {}
        self.n_usable = int(np.count_nonzero(self._usable))

    def _find_rings(
        self, rows: np.ndarray, shares: np.ndarray | None, centres: np.ndarray, n_radii: int
    ) -> None:
        """Find radii, the ring that each row lies in, and the scales of all pieces' columns."""
        from mixnorm.pools.pieces_jit import sort_into_rings, squared_distances

        n_samples, n_centres = rows.shape[1], len(centres)
        self._codes = np.empty((n_centres, n_samples), dtype=np.uint8)
        self._radii = np.empty((n_centres, n_radii))
        largest = np.empty((n_centres, n_radii + 1, self._table.shape[1]), dtype=self._dtype)
        step = max(1, _DISTANCES // n_samples)
        for start in range(0, n_centres, step):
            part = slice(start, min(start + step, n_centres))
            distances = np.empty((part.stop - start, n_samples))
            with threads_for(distances.size * len(rows)):
                for some in chunks(len(distances), rows.size, parallel=True):
                    squared_distances(rows, centres[part][some], distances[some])
            self._radii[part] = _radii(distances, n_radii, shares)
            limits = self._radii[part] ** 2
            table, codes, top = self._table[:-1], self._codes[part], largest[part]
            with threads_for(distances.size * len(rows)):
                for some in chunks(len(distances), table.size, parallel=True):
                    sort_into_rings(distances[some], limits[some], table, codes[some], top[some])
        # The constant column is one where a ring has rows; without any, a ball repeats the last.
        self._usable = (largest[:, :-1, len(rows)] > 0) & np.isfinite(self._radii)
        np.maximum.accumulate(largest, axis=1, out=largest)
        self._inverse = 1.0 / _scales(largest[:, :-1], self._scale)

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the ``m`` pieces with the largest gradients, with their scores, best first."""
        scores = self._scores(residual, rule, exclude, inputs).reshape(-1)
        return self._offers_at(best_places(scores, m), scores)

    def shortlist(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the best pieces of the ``m`` best centres, best first."""
        scores = self._scores(residual, rule, exclude, inputs)
        return self._offers_at(best_of_each(scores, m), scores.reshape(-1))

    def _offers_at(self, places: Iterable[int], scores: np.ndarray) -> Offers:
        n_radii = self._radii.shape[1]
        found = []
        for place in places:
            centre, ball = divmod(place, n_radii)
            atom = (self._centres[centre], float(self._radii[centre, ball]))
            found.append((atom, float(scores[place])))
        return found

    def _scores(self, residual: Array, rule: str, exclude: Excluded, inputs: Inputs) -> np.ndarray:
        """Return the scores by centre and radius; zero for pieces that are not wanted."""
        from mixnorm.pools.pieces_jit import ball_norms

        scores = np.zeros(self._radii.shape)
        if inputs is not None and not inputs.issuperset(range(len(self._by_column))):
            return scores
        residual = residual if self._used is None else residual[self._used]
        padded = np.zeros((len(self._table), residual.shape[1]), dtype=self._dtype)
        padded[:-1] = residual
        codes, table, inverse, squared = self._codes, self._table, self._inverse, rule == "l2"
        work = table.size * padded.shape[1]
        each = work // 32  # these are done many at once, from the cache
        together = chunk_size(_TOGETHER, each)
        with threads_for(len(codes) * work):
            for some in chunks(len(codes), each, parallel=True):
                ball_norms(
                    codes[some], table, padded, inverse[some], squared, together, scores[some]
                )
        scores[~self._usable] = 0.0
        for atom in exclude:
            centre, radius = cast(Atom, atom)
            number = self._numbers.get(centre)
            if number is not None:
                scores[number, self._radii[number] == radius] = 0.0
        return scores

    def columns(self, atom: Atom) -> np.ndarray:
        """Return the scaled columns of a piece: ``(n_features + 1, n_samples)``."""
        rows = np.empty((len(self._by_column) + 1, self._by_column.shape[1]), dtype=self._dtype)
        inside = _inside(self._by_column, atom)
        np.multiply(self._by_column, inside, out=rows[:-1])
        rows[-1] = inside
        if atom not in self._scales:
            counted = rows if self._used is None else rows[:, self._used]
            self._scales[atom] = _scales(np.abs(counted).max(axis=1), self._scale)
        rows /= self._scales[atom][:, None]
        return rows

    def scale(self, atom: Atom) -> np.ndarray:
        """Return what the columns of a piece were divided by."""
        if atom not in self._scales:
            self.columns(atom)
        return self._scales[atom]


class PieceScorer(Scorer):
    """Scores of pieces: each adds its linear function to the rows in its ball.

    Parameters
    ----------
    atoms : sequence of (tuple of float, float)
        Centres and radii.
    weights : ndarray of shape (n_atoms * (n_features + 1), n_outputs)
        Weights of the columns and the constant, piece after piece.
    intercept : ndarray of shape (n_outputs,)
        Added to every row.
    """

    def __init__(self, atoms: Sequence[Atom], weights: np.ndarray, intercept: np.ndarray) -> None:
        self._atoms = list(atoms)
        # In double: the order of sums of single precision would show.
        self._intercept, weights = intercept.astype(np.float64), weights.astype(np.float64)
        shape = (len(self._atoms), -1, weights.shape[1])
        self._weights = weights.reshape(shape) if self._atoms else weights[None]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of some rows: ``(n_samples, n_outputs)``."""
        scores = np.repeat(self._intercept[None, :], len(X), axis=0)
        values = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        for start in range(0, len(X), _ROWS):
            rows = np.ascontiguousarray(values[start : start + _ROWS])
            by_column = np.ascontiguousarray(rows.T)
            for atom, weights in zip(self._atoms, self._weights, strict=False):
                held = np.flatnonzero(_inside(by_column, atom))
                scores[start + held] += linear_scores(rows[held], weights[:-1], weights[-1])
        return scores


def _coordinate(name: Any, value: float) -> str:
    """Return a value of a column in words; a name may know how, in units of its own (``at``)."""
    in_words = getattr(name, "at", None)
    return f"{name} {value:.3g}" if in_words is None else in_words(value)


def _by_column(X: Array) -> np.ndarray:
    """Return the columns of a table as contiguous rows, in its working dtype."""
    return np.array(to_dense(X).T, dtype=working_dtype(X), order="C")


def _inside(by_column: np.ndarray, atom: Atom) -> np.ndarray:
    """Tell which rows lie in the ball of ``atom``."""
    centre, radius = atom
    return np.asarray(_squared_distances(by_column, centre) < radius * radius)


def _squared_distances(by_column: np.ndarray, centre: Sequence[float]) -> np.ndarray:
    """Return the squared distances from a centre, added up column after column."""
    total = np.zeros(by_column.shape[1])
    with np.errstate(over="ignore"):  # new data may lie anywhere; infinitely far is outside
        for column, value in zip(by_column, centre, strict=True):
            gap = np.subtract(column, value, dtype=np.float64)
            total += np.multiply(gap, gap, out=gap)
    return total


def _radii(squared: np.ndarray, n_radii: int, shares: np.ndarray | None) -> np.ndarray:
    """Return radii for each row of squared distances: half-way after each quantile.

    Entries count by their ``shares``, or all alike.

    Infinite where no distance is larger: a ball has always something outside.
    """
    n_samples = squared.shape[1]
    levels = np.arange(1, n_radii + 1) / (n_radii + 1)
    reached = np.ceil((levels - _ROUNDING) * n_samples).astype(np.intp) - 1
    radii = np.empty((len(squared), n_radii))
    for row, distances in zip(radii, squared, strict=True):
        if shares is None:
            ordered = np.sort(distances)
        else:
            order = np.argsort(distances, kind="stable")
            ordered = distances[order]
            reached = np.searchsorted(np.cumsum(shares[order]), levels - _ROUNDING)
        last = ordered[reached]
        place = np.searchsorted(ordered, last, side="right")
        following = ordered[np.minimum(place, n_samples - 1)]
        middle = 0.5 * np.sqrt(last) + 0.5 * np.sqrt(following)
        short = [float(f"{radius:.6g}") for radius in middle.tolist()]
        row[:] = np.where(place < n_samples, short, np.inf)
    return radii


def _scales(largest: np.ndarray, scale: bool) -> np.ndarray:
    """Return what to divide columns by: their largest magnitudes, one where that is nothing."""
    good = largest > 4.0 * np.finfo(largest.dtype).tiny
    return np.where(good & scale, largest, largest.dtype.type(1.0))


def _round_centres(centres: np.ndarray) -> np.ndarray:
    """Return centres with some four digits of each column's spread: short to print and store."""
    spread = np.ptp(centres, axis=0)
    for column, width in zip(centres.T, spread, strict=True):
        if width > 0:
            column[:] = np.round(column, 4 - math.floor(math.log10(width)))
    return centres


def _check_sizes(by_column: np.ndarray) -> None:
    """Raise where squared distances could overflow, or vanish."""
    largest = float(np.max(np.abs(by_column), initial=0.0))
    most = math.sqrt(float(np.finfo(by_column.dtype).max) / (4.0 * max(1, len(by_column))))
    if largest > most:
        raise ValueError(
            f"X has entries as large as {largest:.3g}, whose distances overflow; Pieces needs "
            "columns of comparable size. Scale them first (StandardScaler)."
        )
    if by_column.size == 0:
        return
    widest = float(np.max(np.ptp(by_column, axis=1)))
    if 0.0 < widest < _NARROWEST:
        raise ValueError(
            f"The columns of X vary by {widest:.3g} at most, so that squared distances vanish; "
            "Pieces needs columns of comparable size. Scale them first (StandardScaler)."
        )


def _are_finite(values: list[Any]) -> bool:
    return all(type(value) is float and math.isfinite(value) for value in values)

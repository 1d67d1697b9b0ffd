"""Pieces: balls around centres, each with the linear functions on it as one atom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mixnorm._array import Array, to_dense
from mixnorm._chunks import blocks, chunk_size, run_loop
from mixnorm._distinct import draw_rows, find_distinct_rows
from mixnorm._linear import linear_scores
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
    best_of_each,
    best_offers,
    check_numpy,
    cluster_centres,
    working_dtype,
)
from mixnorm.pools.columns import check_unscaled
from mixnorm.pools.scorers import Scorer

# Codes of rings are bytes, one more than there are radii.
_MOST_RADII = 255
# Squared distances keep all their digits where features vary by more than this.
_NARROWEST = 1e-130
# Rows for each centre that k-means is given.
_ROWS_PER_CENTRE = 64
# Distances in memory at a time while radii are found.
_DISTANCES = 1 << 23
# Most centres that one thread works on at a time: their common rows stay in its cache.
_CENTRES_TOGETHER = 8
# Rows whose distances from a centre a scorer computes at a time: some megabytes.
_ROWS_OF_DISTANCES = 1 << 14

Atom = tuple[tuple[float, ...], float]


@dataclass
class Pieces(Pool):
    r"""Pieces of piecewise linear functions: :math:`1[\|v - c\| < r]\,[v, 1]`.

    An atom ``(centre, radius)`` has one column for each feature and a constant one, all of them
    zero outside the ball.

    Parameters
    ----------
    n_centers : int, default=1500
        Candidate centres, by k-means; the rows themselves where there are no more.
    n_radii : int, default=35
        Candidate radii of each centre: quantiles of the distances of the rows from it.

    Notes
    -----
    Distances use all features as they are, so scale them first. A round costs ``n (d + 1) k``
    multiplications per centre, for ``n`` rows, ``d`` features and ``k`` outputs: rows are sorted by
    distance once, and the gradients of rings are added up. Memory holds a byte per row and centre,
    ``d + 1`` numbers per centre and radius, and two copies of the data. Sparse data are made dense.
    ``random_state`` is the seed of the clustering.

    With all scales but False, each column of a piece is divided by its largest magnitude: a piece
    is local, and keeps the range of its rows. No ball holds all rows, so ``fit_intercept`` has no
    effect.

    Whether a row lies inside is computed in double precision, feature by feature and row by row, so
    the answer does not depend on the other rows or on the precision of the data.

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

    def _bind(self, data: PoolData) -> PreparedPieces:
        """Find centres and radii, and sort rows into rings."""
        check_count("Pieces: n_centers", self.n_centers)
        check_count("Pieces: n_radii", self.n_radii, most=_MOST_RADII)
        by_column = _store_by_column(data.X)
        rows = by_column if data.used.all() else by_column[:, data.used]
        _check_sizes(rows)
        if not data.scale and rows.size:
            check_unscaled(np.abs(rows).max(axis=1), rows.dtype)
        return PreparedPieces(by_column, data, self._find_centres(rows.T, data), self.n_radii)

    def _find_centres(self, rows: np.ndarray, data: PoolData) -> np.ndarray:
        """Return centres, one per row, all different.

        Rows are made distinct and sorted by value first, so that neither copies nor the order of
        rows matter, only weights do.
        """
        first, which = find_distinct_rows([np.ascontiguousarray(rows)])
        rows, weight = rows[first], np.bincount(which, data.shares)
        if len(rows) <= self.n_centers:
            return np.unique(rows, axis=0).astype(np.float64)
        from sklearn.utils import check_random_state

        rng = check_random_state(data.random_state)
        if len(rows) > _ROWS_PER_CENTRE * self.n_centers:
            generator = np.random.default_rng(rng.randint(2**31))
            # So k-means takes a time that the number of rows does not set.
            chosen = draw_rows(weight, _ROWS_PER_CENTRE * self.n_centers, generator)
            rows, weight = rows[chosen], np.ones(len(chosen))  # weights are in the draw
        # Rounded, so that centres do not depend on the last digits of sums, and different from each
        # other.
        centres = cluster_centres(rows, weight, self.n_centers, rng).astype(np.float64)
        return np.unique(_round_centres(centres), axis=0)

    def evaluate(self, X: Array, atoms: Sequence[Atom]) -> np.ndarray:
        """Return the pieces on new data: ``(n_samples, n_atoms * (n_features + 1))``."""
        check_numpy(X, "Pieces")
        by_column = _store_by_column(X)
        d, n_samples = by_column.shape
        values = np.zeros((n_samples, len(atoms), d + 1), dtype=by_column.dtype)
        for place, atom in enumerate(atoms):
            inside = np.flatnonzero(_is_inside(by_column, atom))
            values[inside, place, :d] = by_column[:, inside].T
            values[inside, place, d] = 1.0
        return values.reshape(n_samples, -1)

    def scorer(self, atoms: Sequence[Atom], weights: np.ndarray, intercept: np.ndarray) -> Scorer:
        """Return a scorer that does not make the columns."""
        return PieceScorer(atoms, weights, intercept)

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Describe an atom in words, for features with these names.

        A name with a method ``at`` describes a value in its own units.
        """
        centre, radius = atom
        shown = list(map(_describe_coordinate, names[:3], centre[:3]))
        rest = ", …" if len(centre) > 3 else ""
        return f"within {radius:.3g} of ({', '.join(shown)}{rest})"

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the features that ``atoms`` read: all, for each of them."""
        return np.tile(np.arange(n_features, dtype=np.intp), len(atoms))

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return the operations that a piece takes: a distance and one comparison."""
        return Cost(n_features, 1)

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return ``n_features + 1``; raise a ValueError for anything but a piece of such data."""
        good = type(atom) is tuple and len(atom) == 2 and type(atom[0]) is tuple
        good = good and len(atom[0]) == n_features
        good = good and all(type(x) is float and math.isfinite(x) for x in (*atom[0], atom[1]))
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
        The features in double precision or in that of the data.
    data : PoolData
        The data. With all scales but False, columns are divided by their largest magnitudes.
    centres : array of shape (n_centres, n_features)
        The centres.
    n_radii : int
        Number of radii of each centre.
    """

    def __init__(
        self, by_column: np.ndarray, data: PoolData, centres: np.ndarray, n_radii: int
    ) -> None:
        self._by_column, self._scale = by_column, bool(data.scale)
        self._dtype = np.dtype(data.dtype)
        self._used = None if data.used.all() else np.flatnonzero(data.used)
        rows = by_column if self._used is None else by_column[:, self._used]
        #: The rows that count, with a constant. Compiled code works on eight numbers at a time:
        #: columns of zeros pad each row, and a row of zeros pads groups of rows.
        self._table = np.zeros((rows.shape[1] + 1, len(rows) // 8 * 8 + 8), dtype=self._dtype)
        self._table[:-1, : len(rows)] = rows.T
        self._table[:-1, len(rows)] = 1.0
        self._centres = [tuple(centre) for centre in centres.tolist()]
        self._numbers = {centre: number for number, centre in enumerate(self._centres)}
        self._find_rings(rows, data.shares, centres, n_radii)
        self._scales: dict[Atom, np.ndarray] = {}
        self.n_usable = int(np.count_nonzero(self._usable))

    def _find_rings(
        self, rows: np.ndarray, shares: np.ndarray | None, centres: np.ndarray, n_radii: int
    ) -> None:
        """Find the radii, the ring that each row lies in, and the scales of all columns."""
        from mixnorm.pools.pieces_jit import sort_into_rings, squared_distances

        n_samples, n_centres = rows.shape[1], len(centres)
        self._codes = np.empty((n_centres, n_samples), dtype=np.uint8)
        self._radii = np.empty((n_centres, n_radii))
        largest = np.empty((n_centres, n_radii + 1, self._table.shape[1]), dtype=self._dtype)
        step = max(1, _DISTANCES // n_samples)
        for part in blocks(n_centres, step):
            distances = np.empty((part.stop - part.start, n_samples))
            items = len(distances)
            fixed = rows, centres[part], distances
            run_loop(squared_distances, *fixed, items=items, operations=rows.size)
            self._radii[part] = _find_radii(distances, n_radii, shares)
            limits = self._radii[part] ** 2
            table = self._table[:-1]
            rings = distances, limits, table, self._codes[part], largest[part]
            run_loop(sort_into_rings, *rings, items=items, operations=table.size)
        # The constant column is one where a ring has rows; without any, a ball repeats the last.
        self._usable = (largest[:, :-1, len(rows)] > 0) & np.isfinite(self._radii)
        np.maximum.accumulate(largest, axis=1, out=largest)
        self._inverse = 1.0 / _find_scales(largest[:, :-1], self._scale)

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the ``m`` pieces with the largest gradients, with their scores, best first."""
        scores = self._compute_scores(residual, rule, exclude, inputs).reshape(-1)
        return best_offers(scores, m, self._atom_at)

    def shortlist(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the best pieces of the ``m`` best centres, best first."""
        scores = self._compute_scores(residual, rule, exclude, inputs)
        places, scores = best_of_each(scores, m), scores.reshape(-1)
        return [(self._atom_at(place), float(scores[place])) for place in places]

    def _atom_at(self, place: int) -> Atom:
        """Return the ball at a place of the flat scores."""
        centre, ball = divmod(place, self._radii.shape[1])
        return self._centres[centre], float(self._radii[centre, ball])

    def _compute_scores(
        self, residual: Array, rule: str, exclude: Excluded, inputs: Inputs
    ) -> np.ndarray:
        """Return the scores by centre and radius, zero for pieces that are excluded."""
        from mixnorm.pools.pieces_jit import ball_norms

        scores = np.zeros(self._radii.shape)
        if inputs is not None and not inputs.issuperset(range(len(self._by_column))):
            return scores
        residual = residual if self._used is None else residual[self._used]
        padded = np.zeros((len(self._table), residual.shape[1]), dtype=self._dtype)
        padded[:-1] = residual
        codes, table, inverse, squared = self._codes, self._table, self._inverse, rule == "l2"
        work = table.size * padded.shape[1]
        each = work // 32  # many operations run at once, on numbers in the cache
        together = chunk_size(_CENTRES_TOGETHER, each)
        fixed = codes, table, padded, inverse, squared, together, scores
        run_loop(ball_norms, *fixed, items=len(codes), operations=each)
        scores[~self._usable] = 0.0
        for atom in exclude:
            # Atoms of a path that is continued may have centres that these data do not give.
            centre, radius = cast(Atom, atom)
            number = self._numbers.get(centre)
            if number is not None:
                scores[number, self._radii[number] == radius] = 0.0
        return scores

    def columns(self, atom: Atom) -> np.ndarray:
        """Return the scaled columns of a piece: ``(n_features + 1, n_samples)``."""
        rows = np.empty((len(self._by_column) + 1, self._by_column.shape[1]), dtype=self._dtype)
        inside = _is_inside(self._by_column, atom)
        np.multiply(self._by_column, inside, out=rows[:-1])  # zero outside, without a second copy
        rows[-1] = inside
        if atom not in self._scales:
            counted = rows if self._used is None else rows[:, self._used]
            self._scales[atom] = _find_scales(np.abs(counted).max(axis=1), self._scale)
        rows /= self._scales[atom][:, None]
        return rows

    def scale(self, atom: Atom) -> np.ndarray:
        """Return the divisors of the columns of a piece."""
        if atom not in self._scales:
            self.columns(atom)
        return self._scales[atom]


class PieceScorer(Scorer):
    """Scorer for pieces: each adds its linear function to the rows in its ball.

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
        # In double precision: sums in single precision would depend on their order.
        self._intercept, weights = intercept.astype(np.float64), weights.astype(np.float64)
        shape = (len(self._atoms), -1, weights.shape[1])
        self._weights = weights.reshape(shape) if self._atoms else weights[None]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows: ``(n_samples, n_outputs)``."""
        scores = np.repeat(self._intercept[None, :], len(X), axis=0)
        values = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        for start in range(0, len(X), _ROWS_OF_DISTANCES):
            rows = np.ascontiguousarray(values[start : start + _ROWS_OF_DISTANCES])
            by_column = np.ascontiguousarray(rows.T)
            for atom, weights in zip(self._atoms, self._weights, strict=False):
                held = np.flatnonzero(_is_inside(by_column, atom))
                scores[start + held] += linear_scores(rows[held], weights[:-1], weights[-1])
        return scores


def _describe_coordinate(name: str, value: float) -> str:
    """Describe a value of a feature; a name with a method ``at`` does so itself."""
    describe = getattr(name, "at", None)
    return f"{name} {value:.3g}" if describe is None else describe(value)


def _store_by_column(X: Array) -> np.ndarray:
    """Return the features as contiguous rows, in the working dtype of the data."""
    return np.array(to_dense(X).T, dtype=working_dtype(X), order="C")


def _is_inside(by_column: np.ndarray, atom: Atom) -> np.ndarray:
    """Tell which rows lie in the ball of ``atom``."""
    centre, radius = atom
    # Squares are compared, as roots of equal squares would only add a rounding error.
    return np.asarray(_compute_squared_distances(by_column, centre) < radius * radius)


def _compute_squared_distances(by_column: np.ndarray, centre: Sequence[float]) -> np.ndarray:
    """Return the squared distances from a centre, added up feature by feature."""
    # Not as ``|x|^2 - 2 x c + |c|^2``, one product for all centres: that cancels for close points.
    total = np.zeros(by_column.shape[1])
    with np.errstate(over="ignore"):  # new data may be huge; an infinite distance is outside
        for column, value in zip(by_column, centre, strict=True):
            gap = np.subtract(column, value, dtype=np.float64)
            total += np.multiply(gap, gap, out=gap)
    return total


def _find_radii(squared: np.ndarray, n_radii: int, shares: np.ndarray | None) -> np.ndarray:
    """Return radii for each row of squared distances, half-way between a quantile and the next.

    Distances are weighted by their ``shares``. A radius is infinite where no distance is larger:
    there is always a row outside a ball.
    """
    n_samples = squared.shape[1]
    levels = np.arange(1, n_radii + 1) / (n_radii + 1)
    # Places of the quantiles if all rows count the same; computed again for weighted rows below.
    reached = np.ceil((levels - ROUNDING_OF_SHARES) * n_samples).astype(np.intp) - 1
    radii = np.empty((len(squared), n_radii))
    for row, distances in zip(radii, squared, strict=True):
        if shares is None:
            ordered = np.sort(distances)
        else:
            order = np.argsort(distances, kind="stable")
            ordered = distances[order]
            reached = np.searchsorted(np.cumsum(shares[order]), levels - ROUNDING_OF_SHARES)
        last = ordered[reached]
        place = np.searchsorted(ordered, last, side="right")
        following = ordered[np.minimum(place, n_samples - 1)]
        # Half-way between two distances no row lies on the sphere, and six digits are enough to say
        # so.
        middle = 0.5 * np.sqrt(last) + 0.5 * np.sqrt(following)
        short = [float(f"{radius:.6g}") for radius in middle.tolist()]
        row[:] = np.where(place < n_samples, short, np.inf)
    return radii


def _find_scales(largest: np.ndarray, scale: bool) -> np.ndarray:
    """Return the divisors of columns: their largest magnitudes, or one where that is zero."""
    # The inverse of a smaller number would overflow.
    good = largest > 4.0 * np.finfo(largest.dtype).tiny
    return np.where(good & scale, largest, largest.dtype.type(1.0))


def _round_centres(centres: np.ndarray) -> np.ndarray:
    """Round centres to some four digits of each feature's spread: short to print and store."""
    spread = np.ptp(centres, axis=0)
    for column, width in zip(centres.T, spread, strict=True):
        if width > 0:
            column[:] = np.round(column, 4 - math.floor(math.log10(width)))
    return centres


def _check_sizes(by_column: np.ndarray) -> None:
    """Raise where squared distances could overflow, or vanish."""
    largest = float(np.max(np.abs(by_column), initial=0.0))
    # Two entries differ by at most twice the largest, squared, and there is a square for each
    # feature.
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

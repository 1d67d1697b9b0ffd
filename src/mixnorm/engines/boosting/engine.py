"""JointBoost: gentle boosting with regression stumps that subsets of the classes share.

Each column is sorted and cut into bins once. A round sums the weights per bin and class in one
pass, and searches these small tables for the stump and its subset. ``docs/maths/joint_boosting``
derives the steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm._array import SparseMatrix, is_sparse
from mixnorm._chunks import run_loop
from mixnorm.models import StumpPath, StumpRound, read_column

__all__ = ["Bins", "bin_columns", "boost"]

# A round with a smaller gain changes the loss, of weights that sum to one, in the thirteenth digit.
_LEAST_GAIN = 1e-12
# Subtracted from quantiles, so that rounding of a sum of weights does not move those that rows meet
# exactly.
_ROUNDING_OF_QUANTILES = 1e-9


@dataclass(frozen=True, eq=False)
class Bins:
    """Columns cut into bins.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_samples)
        The bin of every value. Values in bin ``b`` are above threshold ``b - 1`` and at most
        threshold ``b``.
    thresholds : list of ndarray
        The ascending thresholds of each column, one fewer than its bins.
    """

    codes: np.ndarray
    thresholds: list[np.ndarray]

    @property
    def sizes(self) -> np.ndarray:
        """Number of bins of each column."""
        return np.asarray([len(cuts) + 1 for cuts in self.thresholds], dtype=np.int64)


def bin_columns(X: np.ndarray | SparseMatrix, weight: np.ndarray, n_bins: int | None = 255) -> Bins:
    """Cut every column into bins of about equal weight.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Finite numbers.
    weight : ndarray of shape (n_samples,)
        Weights that sum to one; rows of weight zero are left out.
    n_bins : int or None
        Largest number of bins of a column. A column with at most this many distinct values has a
        bin for each of them. With None every column has.

    Returns
    -------
    Bins
        The bins of the rows of positive weight.
    """
    kept = np.flatnonzero(weight > 0.0)
    weight = weight[kept]
    cuts, codes = [], []
    for values in _read_columns(X):
        values = values[kept]
        cuts.append(_find_cuts(values, weight, n_bins))
        # Up to 256 bins fit into a byte, of which a round reads one for every row and column.
        narrow = np.uint8 if len(cuts[-1]) < 256 else np.int32
        codes.append(np.searchsorted(cuts[-1], values, side="left").astype(narrow))
    return Bins(np.stack(codes), cuts)


def boost(
    bins: Bins,
    target: np.ndarray,
    weight: np.ndarray,
    *,
    n_outputs: int,
    n_rounds: int,
    max_features: float = 1.0,
    rng: Any = None,
    on_round: Callable[[StumpPath], bool] | None = None,
) -> StumpPath:
    r"""Add stumps one at a time, each shared by a subset of the classes.

    With labels :math:`z_i^c = \pm 1`, scores :math:`H` and weights
    :math:`w_i^c = u_i \exp(-z_i^c H(x_i, c))` a round minimises
    :math:`\sum_c \sum_i w_i^c (z_i^c - h(x_i, c))^2` over a column, a threshold and a subset of the
    classes, and adds :math:`h` to :math:`H` (:eq:`joint-error`).

    Parameters
    ----------
    bins : Bins
        The columns of the rows of positive weight.
    target : ndarray of int of shape (n_samples,)
        The class in which each of these rows has label +1, or -1 for none.
    weight : ndarray of shape (n_samples,)
        The weights of the rows, which sum to one.
    n_outputs, n_rounds : int
        Number of classes, and largest number of rounds.
    max_features : float
        Share of the columns that a round searches.
    rng : numpy.random.RandomState or Generator, optional
        Draws these columns; not needed if a round searches all columns.
    on_round : callable, optional
        Called with the path so far after each round. The run ends if it returns True.

    Returns
    -------
    StumpPath
        Shorter than ``n_rounds`` and ``exhausted`` if no stump lowers the loss further. A keyboard
        interrupt after the first round ends the run and keeps the rounds so far.

    Notes
    -----
    A round costs ``n_samples * n_features * n_outputs`` additions for the tables, and
    ``n_outputs**2 / 2`` passes over the ``n_bins * n_features`` thresholds for the subset, which
    grows by one class at a time. The loss falls in every round: where the stump returns the mean
    label ``m`` of some rows, their loss falls from 1 to ``cosh(m) - m sinh(m)``.
    """
    state = _State(bins, target, weight, n_outputs)
    path = StumpPath((), n_outputs)
    usable = np.flatnonzero(bins.sizes > 1)
    drawn = max(1, round(max_features * len(usable)))
    try:
        while len(path.rounds) < n_rounds:
            features = usable
            if drawn < len(usable):  # sorted, so that ties go to the first column as without draws
                features = np.sort(rng.permutation(usable)[:drawn])
            made = state.add(features)
            if made is None and len(features) < len(usable):  # other columns may do better
                made = state.add(usable)
            if made is None:
                path = replace(path, exhausted=True)
                break
            path = replace(path, rounds=(*path.rounds, made))
            if on_round is not None and on_round(path):
                break
    except KeyboardInterrupt:
        if not path.rounds:
            raise
        path = replace(path, interrupted=True)
    return path


class _State:
    """Scores and weights of the training rows, and the tables of a round."""

    def __init__(self, bins: Bins, target: np.ndarray, weight: np.ndarray, n_outputs: int) -> None:
        self._bins, self._sizes = bins, bins.sizes
        self._target = np.asarray(target, dtype=np.int64)
        self._right = np.flatnonzero(self._target >= 0)
        self._scores = np.zeros((len(target), n_outputs))
        self._log_weight = np.log(np.asarray(weight, dtype=np.float64))
        self._tables = np.empty((2, 0))
        self._update_weights()

    def add(self, features: np.ndarray) -> StumpRound | None:
        """Add the best stump on these columns and return it; None if none lowers the loss."""
        began = time.perf_counter()
        if len(features) == 0:
            return None
        feature, cut, subset = self._find_best_stump(features)
        made, above = self._fit_stump(feature, cut, subset)
        if not 1.0 - made.error > _LEAST_GAIN:
            return None
        self._scores += made.values[above]
        self._update_weights()
        return replace(made, loss=self._loss, seconds=time.perf_counter() - began)

    def _update_weights(self) -> None:
        """Set the loss, the weights ``u exp(-z H)`` divided by their sum, and the sums by class.

        These are :eq:`joint-weights`. Only one label of a row is +1, so the sign changes in one
        entry.
        """
        rows, own = self._right, (self._right, self._target[self._right])
        exponent = self._scores.copy()
        exponent[own] = -exponent[own]
        exponent += self._log_weight[:, None]
        top = exponent.max()  # taken off first: the sum is then at least one
        exponent -= top
        np.exp(exponent, out=exponent)
        total = exponent.sum()
        exponent /= total
        self._weights, self._own = exponent, exponent[own]
        # The loss is a mean over the classes.
        self._loss = float(np.exp(top) * total / exponent.shape[1])
        self._mass = exponent.sum(axis=0)
        # With labels of one and minus one, ``sum w z`` is twice the mass of the ones less all mass.
        right = np.bincount(self._target[rows], weights=self._own, minlength=len(self._mass))
        self._signed = 2.0 * right - self._mass

    def _find_best_stump(self, features: np.ndarray) -> tuple[int, int, np.ndarray]:
        """Return the column, the threshold and the subset of classes with the least error."""
        from mixnorm.engines.boosting import boosting_jit as jit

        starts = np.concatenate([[0], np.cumsum(self._sizes[features])])
        n_features, n_classes = len(features), len(self._mass)
        entries = int(starts[-1]) * n_classes
        # The tables are kept from round to round, as a large new array costs time for its pages.
        if self._tables.shape[1] < entries:
            self._tables = np.empty((2, entries))
        mass, signed = self._tables
        codes, weights, target = self._bins.codes, self._weights, self._target
        run_loop(
            jit.histograms, codes, features, starts, weights, target, mass, signed,
            items=n_features, operations=weights.size,
        )  # fmt: skip
        totals = np.stack([self._mass, self._signed])
        order, where, cuts, gains = grow_subset(self._tables, starts, totals)
        # The smallest subset that is as good: rounding must not choose (see ``TIE``).
        size = int(np.argmax(gains >= gains.max() - jit.TIE))
        return int(features[where[size]]), int(cuts[size]), np.sort(order[: size + 1])

    def _fit_stump(
        self, feature: int, cut: int, subset: np.ndarray
    ) -> tuple[StumpRound, np.ndarray]:
        """Return the stump, and whether each row is above its threshold.

        Its means come from sums over rows, as differences of table entries are less accurate.
        """
        constants = _compute_means(self._signed, self._mass)
        constants[subset] = 0.0  # the classes of the subset have the stump instead
        shared = np.zeros(len(constants))
        shared[subset] = 1.0
        # By row, over the classes of the subset: as if every label were -1, then the ones.
        mass = self._weights @ shared
        signed = -mass
        signed[self._right] += 2.0 * self._own * shared[self._target[self._right]]
        above = (self._bins.codes[feature] > cut).astype(np.intp)
        sides = np.bincount(above, weights=mass, minlength=2)
        low, high = _compute_means(np.bincount(above, weights=signed, minlength=2), sides)
        # A mean of the label lowers the error by its square times the mass
        # (:eq:`joint-gain-of-stump`).
        gain = low**2 * sides[0] + high**2 * sides[1] + constants**2 @ self._mass
        made = StumpRound(
            feature=feature,
            threshold=float(self._bins.thresholds[feature][cut]),
            subset=subset,
            a=float(high - low),
            b=float(low),
            constants=constants,
            error=float(1.0 - gain),
            loss=self._loss,
            seconds=0.0,
        )
        return made, above


def grow_subset(
    tables: np.ndarray, starts: np.ndarray, totals: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Grow a subset of the classes, each time by the class with which one stump gains most.

    Takes the tables of ``histograms`` and the sums of each class over all rows, of ``w`` and of ``w
    z``. The gain (:eq:`joint-gain-of-stump`) is the sum of all weights less the weighted squared
    error: ``(sum w z)^2 / sum w`` of the subset below the threshold, plus the same above it, plus
    the same of each class outside.

    Returns for each size of the subset the class that joined, the feature, the bin below the
    threshold and the gain.
    """
    from mixnorm.engines.boosting import boosting_jit as jit

    n_features, n_classes = len(starts) - 1, totals.shape[1]
    constant = totals[1] ** 2 / (totals[0] + jit.LEAST_MASS)
    fixed = tables, starts, np.zeros((2, starts[-1])), totals.copy()
    # A bound of zero, and needing more than minus infinity: the first step computes every gain.
    bound, best = np.zeros((2, n_features, n_classes))
    subset = np.ones(n_classes, dtype=bool), bound, np.full(n_classes, -np.inf), best
    each = int(starts[-1]) * n_classes // n_features
    alone, joined, steps = best, -1, []
    for step in range(n_classes):
        run_loop(jit.scan, *fixed, joined, *subset, items=n_features, operations=each)
        if step == 0:
            alone = best.copy()  # the gains of single classes, for the bounds of all later steps
        steps.append(jit.join(*fixed, *subset, alone, constant, totals))
        joined = steps[-1][0]
    return tuple(np.asarray(part) for part in zip(*steps, strict=True))


def _compute_means(signed: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return weighted means of labels, zero where the weight is zero."""
    means = np.divide(signed, mass, out=np.zeros_like(signed), where=mass > 0.0)
    return np.asarray(np.clip(means, -1.0, 1.0))


def _read_columns(X: Any) -> Iterator[np.ndarray]:
    """Yield the columns in float64, reading a block of them at a time."""
    if is_sparse(X):
        X = X.tocsc()
        for column in range(X.shape[1]):
            yield read_column(X, column)
        return
    # Eight million entries at a time: columns of a row-major array are slow to read one by one.
    width = max(1, (1 << 23) // max(1, X.shape[0]))
    for first in range(0, X.shape[1], width):
        yield from np.ascontiguousarray(X[:, first : first + width].T, dtype=np.float64)


def _find_cuts(values: np.ndarray, weight: np.ndarray, n_bins: int | None) -> np.ndarray:
    """Return thresholds between distinct values: all of them, or those next to quantiles."""
    order = np.argsort(values, kind="stable")
    values = values[order]
    last = np.flatnonzero(values[1:] > values[:-1])  # the last of each value but the largest
    if n_bins is not None and len(last) >= n_bins:
        share = np.cumsum(weight[order])[last]
        wanted = np.arange(1, n_bins) / n_bins - _ROUNDING_OF_QUANTILES
        last = last[np.unique(np.minimum(np.searchsorted(share, wanted), len(last) - 1))]
    low, high = values[last], values[last + 1]
    middle = 0.5 * low + 0.5 * high  # halves first: the sum of two large values could overflow
    # Rounding of neighbouring values may give the upper one, which would be on the wrong side.
    return np.where((middle >= low) & (middle < high), middle, low)

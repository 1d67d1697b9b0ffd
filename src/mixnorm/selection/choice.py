"""The choice of a candidate by its scores on held-out folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mixnorm.selection.result import SearchResult

# Means are equal if they differ by less than this share of the largest: that is rounding.
# Scores of equal models may differ in the last digit, from the order of a sum. The simpler model,
# which comes first, must win such a tie on every machine.
_TIE_OF_MEANS = 1e-12


def standard_error(scores: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean score of each candidate.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_candidates)
        Held-out scores; those that are NaN do not count.

    Returns
    -------
    ndarray of shape (n_candidates,)
        Zero where there are fewer than two scores.

    Examples
    --------
    >>> import numpy as np
    >>> standard_error(np.array([[0.0, 1.0], [2.0, 1.0]]))
    array([1., 0.])
    """
    counts = np.sum(~np.isnan(scores), axis=0)
    error, several = np.zeros(scores.shape[1]), counts > 1
    # ddof=1: the folds are a sample of all folds that could have been drawn.
    error[several] = spread(scores[:, several], ddof=1) / np.sqrt(counts[several])
    return error


def spread(scores: np.ndarray, ddof: int = 0) -> np.ndarray:
    """Return the standard deviation of the scores of each candidate over the folds.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([[0.0, 1.0], [2.0, np.nan]]))
    array([1., 0.])
    """
    # A power of two changes no digit, and squares of scores beyond 1e154 would overflow.
    largest = np.max(np.abs(scores), where=np.isfinite(scores), initial=0.0)
    unit = np.exp2(np.floor(np.log2(largest))) if largest > 0 else 1.0
    return np.asarray(unit * np.nanstd(scores / unit, axis=0, ddof=ddof))


def mean_scores(scores: np.ndarray) -> np.ndarray:
    """Return the mean score of each candidate over the folds that have one; NaN without any.

    Examples
    --------
    >>> import numpy as np
    >>> mean_scores(np.array([[0.5, np.nan], [np.nan, np.nan]]))
    array([0.5, nan])
    """
    # A fold without test rows for a metric has NaN, and must not make the whole candidate NaN.
    counts = np.sum(~np.isnan(scores), axis=0)
    # numpy.nanmean warns about columns without any number, so these are left out.
    mean = np.full(scores.shape[1], np.nan)
    mean[counts > 0] = np.nanmean(scores[:, counts > 0], axis=0)
    return mean


def choose(result: SearchResult, *, metric: str = "score", one_standard_error: bool = False) -> int:
    """Return the row of the chosen candidate.

    Parameters
    ----------
    result : SearchResult
        The result of the search.
    metric : str, default="score"
        The score that decides.
    one_standard_error : bool, default=False
        Take the simplest candidate of the best one's chain whose mean score is within one standard
        error of the best, instead of the best.

    Returns
    -------
    int
        The first of equal ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.selection import SearchResult
    >>> scores = np.array([[0.5, 0.8, 0.82, 0.81], [0.6, 0.9, 0.90, 0.92]])
    >>> sizes = [{"size": size} for size in (1, 2, 3, 4)]
    >>> found = SearchResult.of(sizes, {"score": scores}, np.zeros(4, np.intp), {})
    >>> choose(found), choose(found, one_standard_error=True)
    (3, 1)
    """
    scores = result.scores(metric)
    means = mean_scores(scores)
    if not np.any(np.isfinite(means)):
        raise ValueError(
            "No candidate has a held-out score that is a number. Check the scoring function, or "
            "give fewer folds (cv) or more rows: a fold needs test rows of positive weight, and at "
            "least two of them for a regression."
        )
    # The tolerance is relative to the largest mean, not to the best, which may be zero.
    largest = float(np.max(np.abs(means), where=np.isfinite(means), initial=0.0))
    best = int(np.argmax(means >= np.nanmax(means) - _TIE_OF_MEANS * largest))
    if not one_standard_error:
        return best
    # Within a chain candidates go from simple to complex, so that the first one near the best is
    # the simplest. Candidates of other chains have other parameters and are no simpler.
    near = means >= means[best] - standard_error(scores)[best]
    return int(np.argmax(near & (result.chains == result.chains[best])))

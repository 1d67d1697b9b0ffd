"""The size of a model, from its scores on held-out folds."""

from __future__ import annotations

import numpy as np


def standard_error(scores: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean score of each size.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_sizes)
        Held-out scores.

    Returns
    -------
    ndarray of shape (n_sizes,)
        Zero where there is only one fold.

    Examples
    --------
    >>> import numpy as np
    >>> standard_error(np.array([[0.0, 1.0], [2.0, 1.0]]))
    array([1., 0.])
    """
    folds = scores.shape[0]
    if folds < 2:
        return np.zeros(scores.shape[1])
    # Squares of scores beyond 1e154 are infinite. A power of two changes no digit.
    largest = np.max(np.abs(scores), where=np.isfinite(scores), initial=0.0)
    unit = np.exp2(np.floor(np.log2(largest))) if largest > 0 else 1.0
    return np.asarray(unit * ((scores / unit).std(axis=0, ddof=1) / np.sqrt(folds)))


def choose_size(scores: np.ndarray, *, one_standard_error: bool = False, what: str = "size") -> int:
    """Return the position of the size to choose.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_sizes)
        Held-out scores, larger is better, sizes in increasing order.
    one_standard_error : bool, default=False
        Take the smallest size whose mean score is within one standard error of the best, instead
        of the best (the smallest of the best, if several tie).
    what : str, default="size"
        What is chosen, for the error where there is nothing to choose from.

    Returns
    -------
    int
        Position along the second axis.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0.5, 0.8, 0.82, 0.81], [0.6, 0.9, 0.90, 0.92]])
    >>> choose_size(scores)
    3
    >>> choose_size(scores, one_standard_error=True)
    1
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or scores.size == 0:
        raise ValueError(
            f"scores must have the shape (n_folds, n_sizes), at least one of each; got "
            f"{scores.shape}. Where no fold has a score, check the scoring function, or give fewer "
            "folds (cv) or more samples."
        )
    mean = scores.mean(axis=0)
    if np.all(np.isnan(mean)):
        raise ValueError(
            f"Every {what} has a fold whose score is NaN, so that none can be chosen. Check the "
            "scoring function, or give fewer folds (cv)."
        )
    best = int(np.nanargmax(mean))
    if not one_standard_error:
        return best
    return int(np.argmax(mean >= mean[best] - standard_error(scores)[best]))

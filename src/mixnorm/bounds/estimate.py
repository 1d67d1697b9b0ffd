"""Rademacher complexity, estimated with random signs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, is_sparse
from mixnorm._numbers import check_count
from mixnorm.bounds.matrix import check_ball
from mixnorm.norms import MixedNorm, Norm, Spectral, conjugate

# Largest number of signs and sums that are in memory at a time.
_NUMBERS_PER_STEP = 2**22


@dataclass(frozen=True)
class Estimate:
    """A mean over random draws.

    Attributes
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error. The true value is within two of them 19 times out of 20.
    n_draws : int
        The number of draws.
    """

    value: float
    standard_error: float
    n_draws: int

    def __float__(self) -> float:
        return self.value


def rademacher_estimate(
    norm: str | Norm,
    X: MatrixLike,
    *,
    radius: float,
    n_outputs: int = 1,
    examples: str | None = None,
    y: ArrayLike | None = None,
    n_draws: int = 200,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Estimate:
    r"""Estimate the empirical Rademacher complexity of all weights in a ball.

    The complexity is :math:`\frac{R}{n} \, \mathbb{E} \|\sum_i \sigma_i X_i\|_*`, a mean over
    random signs :math:`\sigma`, because the largest value of a linear form over a ball is a dual
    norm (:eq:`bound-signs`).

    Parameters
    ----------
    norm, X, radius, n_outputs, examples
        As in :func:`rademacher`. For tasks, each example has one sign for each task.
    y : array of int of shape (n_samples,), optional
        Classes of the rows, from 0 up, for ``examples="classes"``; random classes by default. The
        other class of every example is always random.
    n_draws : int, default=200
        The number of times that signs are drawn.
    random_state : int, RandomState, Generator or None
        The seed or source of the random numbers.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import numpy as np
    >>> found = rademacher_estimate("l2,2", np.eye(4), radius=2.0, random_state=0)
    >>> found.value
    1.0
    """
    norm, radius, examples, (n, d, k) = check_ball(norm, X, radius, n_outputs, examples)
    n_draws = check_count("n_draws", n_draws, least=2)
    # One draw makes a seed, so that old and new generators can both be given.
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    rng = np.random.default_rng(random_state)
    # Signs and sums of all draws would be n_draws times as large as the data.
    step = max(1, _NUMBERS_PER_STEP // (d * k + n * k))
    values = []
    for start in range(0, n_draws, step):
        count = min(step, n_draws - start)
        values.append(dual_norms(norm, _draw_sums(X, y, examples, (n, d, k), count, rng)))
    found = radius / n * np.concatenate(values)
    return Estimate(
        float(found.mean()), float(found.std(ddof=1) / math.sqrt(len(found))), len(found)
    )


def _draw_sums(
    X: MatrixLike,
    y: ArrayLike | None,
    examples: str,
    sizes: tuple[int, int, int],
    count: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return sums of examples with random signs, of shape ``(count, d, k)``."""
    n, d, k = sizes
    if examples == "classes":
        signs = _draw_class_signs(y, n, k, count, rng)
    else:
        # A sign for each example, draw and output: with one output per row, or tasks whose examples
        # are independent (:eq:`bound-tasks`), every output has its own.
        signs = rng.integers(0, 2, size=(n, count * k)) * 2.0 - 1.0
    # The tasks have rows of their own, of which the first n count: as many as the smallest task
    # has.
    if isinstance(X, (list, tuple)) and examples == "tasks":
        parts = signs.reshape(n, count, k)
        found = np.stack([np.asarray(X[r][:n].T @ parts[:, :, r]) for r in range(k)], axis=-1)
        return np.ascontiguousarray(found.transpose(1, 0, 2))
    rows: Any = X if is_sparse(X) else np.asarray(X)
    total = np.asarray(rows.T @ signs)
    return np.ascontiguousarray(total.reshape(d, count, k).transpose(1, 0, 2))


def _draw_class_signs(
    y: ArrayLike | None, n: int, k: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return a sign for the class of each row, and the opposite sign for another class."""
    y = rng.integers(k, size=n) if y is None else np.asarray(y)
    if y.shape != (n,) or y.dtype.kind not in "iu" or np.min(y) < 0 or np.max(y) >= k:
        raise ValueError(f"y must be {n} whole numbers from 0 to {k - 1}, one for each row.")
    signs = np.zeros((n, count, k))
    rows, draws = np.arange(n)[:, None], np.arange(count)
    drawn = rng.integers(0, 2, size=(n, count)) * 2.0 - 1.0
    # One to k - 1 classes further on, so never the class itself.
    other = (y[:, None] + rng.integers(1, k, size=(n, count))) % k
    # The example x (e_y - e_r)' times a sign has that sign in the column of its class, and the
    # opposite one in that of the other class (:eq:`bound-radii`).
    signs[rows, draws, y[:, None]] = drawn
    signs[rows, draws, other] = -drawn
    return signs.reshape(n, count * k)


def dual_norms(norm: Norm, stack: np.ndarray) -> np.ndarray:
    """Return the dual norm of every matrix of a stack of shape ``(count, d, k)``."""
    # The whole stack in one call; the norm's own method takes one matrix at a time.
    if isinstance(norm, MixedNorm) and norm.groups is None:
        rows = np.linalg.norm(stack, ord=conjugate(float(norm.inner)), axis=-1)
        return np.asarray(np.linalg.norm(rows, ord=conjugate(float(norm.outer)), axis=-1))
    if isinstance(norm, Spectral):
        values = np.linalg.svd(stack, compute_uv=False)
        return np.asarray(np.linalg.norm(values, ord=conjugate(float(norm.q)), axis=-1))
    return np.array([norm.dual(matrix) for matrix in stack])

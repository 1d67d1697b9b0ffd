"""Rademacher complexity by random signs: what bounds are about, measured."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import Array, ArrayLike, is_sparse
from mixnorm.bounds.matrix import _examples, _radius, _sizes
from mixnorm.norms import MixedNorm, Spectral, as_norm, conjugate

# Numbers that are held at a time.
_BLOCK = 2**22


@dataclass(frozen=True)
class Estimate:
    """A mean over random draws.

    Attributes
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error; the true value is within two of them 19 times out of 20.
    n_draws : int
        How many draws.
    """

    value: float
    standard_error: float
    n_draws: int

    def __float__(self) -> float:
        return self.value


def rademacher_estimate(
    norm: Any,
    X: Array,
    *,
    radius: float,
    n_outputs: int = 1,
    examples: str | None = None,
    y: Array | None = None,
    n_draws: int = 200,
    random_state: Any = None,
) -> Estimate:
    r"""Estimate the empirical Rademacher complexity of all weights in a ball.

    The largest value of a linear form over a ball is a dual norm, so that it is :math:`\frac{R}{n}
    \, \mathbb{E} \|\sum_i \sigma_i X_i\|_*`, the mean over signs :math:`\sigma`.

    Parameters
    ----------
    norm, X, radius, n_outputs, examples
        As in :func:`rademacher`. Tasks have a sign for each example and task.
    y : array of int of shape (n_samples,), optional
        Classes of the rows, from 0 up, for ``examples="classes"``; drawn by default. The other
        class of every example is drawn.
    n_draws : int, default=200
        How many times signs are drawn.
    random_state : int, RandomState, Generator or None
        Where they are drawn from.

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
    norm, examples = as_norm(norm), _examples(X, n_outputs, examples)
    n, d, k = _sizes(X, n_outputs)
    radius = _radius(radius)
    if not isinstance(n_draws, numbers.Integral) or n_draws < 2:
        raise ValueError(f"n_draws={n_draws!r} must be a whole number of at least 2.")
    rng = _generator(random_state)
    k = 1 if examples == "rows" else k
    step = max(1, _BLOCK // (d * k + n * k))
    values = []
    for start in range(0, n_draws, step):
        count = min(step, n_draws - start)
        sums = _sums(X, y, examples, (n, d, k), count, rng)
        values.append(dual_norms(norm, sums))
    found = radius / n * np.concatenate(values)
    return Estimate(
        float(found.mean()), float(found.std(ddof=1) / math.sqrt(len(found))), len(found)
    )


def _sums(
    X: Array,
    y: Array,
    examples: str,
    sizes: tuple[int, int, int],
    count: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return sums of examples with random signs, ``(count, d, k)``."""
    n, d, k = sizes
    if examples == "classes":
        signs = _class_signs(y, n, k, count, rng)
    else:
        signs = rng.integers(0, 2, size=(n, count * k)) * 2.0 - 1.0
    if isinstance(X, (list, tuple)) and examples == "tasks":
        parts = signs.reshape(n, count, k)
        found = np.stack([np.asarray(X[r][:n].T @ parts[:, :, r]) for r in range(k)], axis=-1)
        return np.ascontiguousarray(found.transpose(1, 0, 2))
    total = np.asarray((X if is_sparse(X) else np.asarray(X)).T @ signs)
    return np.ascontiguousarray(total.reshape(d, count, k).transpose(1, 0, 2))


def _class_signs(y: ArrayLike, n: int, k: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return a sign for the class of each row, and the opposite one for another class."""
    if y is None:
        y = rng.integers(k, size=n)
    y = np.asarray(y)
    if y.shape != (n,) or y.dtype.kind not in "iu" or np.min(y) < 0 or np.max(y) >= k:
        raise ValueError(f"y must be {n} whole numbers from 0 to {k - 1}, one for each row.")
    signs = np.zeros((n, count, k))
    rows, draws = np.arange(n)[:, None], np.arange(count)
    drawn = rng.integers(0, 2, size=(n, count)) * 2.0 - 1.0
    other = (y[:, None] + rng.integers(1, k, size=(n, count))) % k
    signs[rows, draws, y[:, None]] = drawn
    signs[rows, draws, other] = -drawn
    return signs.reshape(n, count * k)


def dual_norms(norm: Any, stack: np.ndarray) -> np.ndarray:
    """Return the dual norm of every matrix of a stack, ``(count, d, k)``."""
    if isinstance(norm, MixedNorm) and norm.groups is None:
        inner = _norms(stack, conjugate(float(norm.inner)))
        return _norms(inner, conjugate(float(norm.outer)))
    if isinstance(norm, Spectral):
        values = np.linalg.svd(stack, compute_uv=False)
        return _norms(values, conjugate(float(norm.q)))
    return np.array([float(norm.dual(matrix)) for matrix in stack])


def _norms(values: np.ndarray, p: float) -> np.ndarray:
    """Return p-norms along the last axis."""
    return np.asarray(np.linalg.norm(values, ord=p, axis=-1))


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    return np.random.default_rng(random_state)

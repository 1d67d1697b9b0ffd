"""Arrays of other libraries that enter and leave an estimator.

With ``sklearn.config_context(array_api_dispatch=True)`` scikit-learn's validation leaves arrays as
they are, and everything follows ``X``. Without it they become NumPy arrays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config

from mixnorm._array import (
    Array,
    MatrixLike,
    device_of,
    follow,
    is_foreign,
    is_numpy,
    namespace,
    to_numpy,
)
from mixnorm.models import Path, Round
from mixnorm.pools import Pool, PreparedPool, check_numpy


def dispatches() -> bool:
    """Tell whether scikit-learn's array_api_dispatch is on."""
    return bool(get_config()["array_api_dispatch"])


def check_within_reach(array: object, name: str) -> None:
    """Raise if validation would have to copy an array from another device."""
    if is_numpy(array) or dispatches() or not is_foreign(array):
        return
    # Libraries name devices differently; a text with "cpu" in it means the memory of the host.
    device = device_of(array)
    kind = getattr(device, "type", getattr(device, "platform", device))  # of torch, of JAX
    if "cpu" not in str(kind).lower():
        raise TypeError(
            f"{name} is an array on the device {device}, and without array_api_dispatch it would "
            "have to become a NumPy array. Set SCIPY_ARRAY_API=1 in the environment and call "
            "within sklearn.config_context(array_api_dispatch=True), or copy it to the host first."
        )


def check_pool_takes(pool: Pool, X: MatrixLike) -> None:
    """Raise for arrays of other libraries if the pool takes NumPy arrays only."""
    if not is_numpy(X) and not pool.array_api:
        check_numpy(X, type(pool.given).__name__)


def as_table(X: MatrixLike, pool: Pool) -> tuple[Any, tuple[int, int] | None]:
    """Return ``X`` with one row per image, and the height and width of the images, if any.

    Only pools with a true attribute ``takes_images`` take images, ``(n_samples, height, width)``.
    """
    if is_numpy(X) and X.ndim <= 2:  # the common case
        return X, None
    check_within_reach(X, "X")
    if isinstance(X, (list, tuple)) and pool.takes_images:
        X = np.asarray(X)
    if not is_foreign(X) and not is_numpy(X):
        return X, None
    if getattr(X, "requires_grad", False):  # a fit cannot be differentiated
        X = X.detach()
    if X.ndim <= 2:
        return X, None
    shape = tuple(X.shape)
    if X.ndim > 3:
        raise ValueError(
            f"X has {X.ndim} dimensions (shape {shape}). Images have one channel: give grey ones "
            "of shape (n_samples, height, width) to a pool of patches, or one row per sample."
        )
    if not pool.takes_images:
        raise ValueError(
            f"X has 3 dimensions (shape {shape}), as images have, and these are for pools of "
            f"patches, not for {type(pool.given).__name__}. Flatten them to shape "
            f"({shape[0]}, {shape[1] * shape[2]}), or set pool=mixnorm.pools.Patches()."
        )
    return namespace(X).reshape(X, (shape[0], shape[1] * shape[2])), (shape[1], shape[2])


def new_table(X: MatrixLike, pool: Pool) -> Any:
    """Return new data with one row per image; raise if images differ in shape from the pool's."""
    X, shape = as_table(X, pool)
    if shape is not None:
        check_shape(shape, pool)
    return X


def check_shape(shape: tuple[int, int], pool: Pool | None) -> None:
    """Raise unless images have the shape that a fitted pool knows, if it knows one."""
    known = None if pool is None else pool.shape
    if known is not None and shape != tuple(known):
        raise ValueError(
            f"X has images of {shape[0]} x {shape[1]} pixels, but the model was fitted on images "
            f"of {known[0]} x {known[1]}. Give images of that size."
        )


def encode_labels(y: Array, X: MatrixLike) -> tuple[Any, Any]:
    """Return the distinct labels (like ``y``) and the index of each row's label (like ``X``)."""
    classes, places = namespace(y).unique_inverse(y)
    return classes, follow(places, X)


def take_rows(array: Any, index: np.ndarray) -> Any:
    """Return some rows of an array or sparse matrix."""
    if not is_foreign(array):
        return array[index]
    return namespace(array).take(array, follow(index, array), axis=0)


def unscale_path(path: Path, data: PreparedPool, unit: float) -> Path:
    """Undo the scaling of columns in every round of a path, and copy it to the host.

    Penalties were multiplied by ``unit``.
    """

    def unscale(step: Round) -> Round:
        with np.errstate(over="ignore"):  # the estimator raises an error of its own
            weights = to_numpy(step.weights) / _scales(step, data)
        intercept, alpha = to_numpy(step.intercept), step.alpha / unit
        return replace(step, weights=weights, intercept=intercept, alpha=alpha)

    rounds = tuple(map(unscale, path.rounds))
    return replace(path, rounds=rounds, null_intercept=to_numpy(path.null_intercept))


def cast_path(path: Path, dtype: Any) -> Path:
    """Return a path with the weights and intercepts of all rounds in a dtype."""

    def cast(step: Round) -> Round:
        with np.errstate(over="ignore"):  # the estimator raises an error of its own
            weights, intercept = step.weights.astype(dtype), step.intercept.astype(dtype)
        return replace(step, weights=weights, intercept=intercept)

    rounds = tuple(map(cast, path.rounds))
    return replace(path, rounds=rounds, null_intercept=path.null_intercept.astype(dtype))


def scale_path(path: Path, data: PreparedPool, like: Array, unit: float) -> Path:
    """Apply the scaling of columns in every round, and copy the path to the device of ``like``."""
    # A fit that goes on from an earlier path needs weights for scaled columns, in the library of
    # the data.
    dtype = like.dtype if is_foreign(like) else None  # NumPy mixes precisions itself

    def scale(step: Round) -> Round:
        weights = follow(step.weights * _scales(step, data), like, dtype)
        intercept, alpha = follow(step.intercept, like, dtype), step.alpha * unit
        return replace(step, weights=weights, intercept=intercept, alpha=alpha)

    rounds = tuple(map(scale, path.rounds))
    return replace(path, rounds=rounds, null_intercept=follow(path.null_intercept, like, dtype))


def _scales(step: Round, data: PreparedPool) -> np.ndarray:
    """Return the divisors of the columns of a round, one per row."""
    return np.concatenate([to_numpy(data.scale(atom)) for atom in step.support])[:, None]

"""Templates of patches: centres of clusters of small pieces of images."""

from __future__ import annotations

import numpy as np

from mixnorm._array import Array, follow, is_double, is_foreign, namespace, to_dense, to_numpy
from mixnorm._distinct import draw_rows, find_distinct_rows
from mixnorm.pools.base import cluster_centres, working_dtype

# Patches per template that k-means is given; more of them change little.
_PATCHES_PER_TEMPLATE = 100
# Patches that vary less than this share of the most varied one are background.
_LEAST_VARIATION = 0.1
# Patches drawn for each one wanted: many are background.
_DRAWS_PER_PATCH = 3
# Most images that patches are taken from.
_IMAGES_FOR_TEMPLATES = 20_000


def sample_images(
    X: Array, weight: np.ndarray | None, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct images, on the host, as floats, and their weights.

    They are sorted by value, so that neither copies nor the order of rows matter. Rows of weight
    zero are left out; of very many images, some are drawn by their weights.
    """
    count = np.ones(X.shape[0]) if weight is None else weight
    chosen = np.flatnonzero(count > 0)
    if len(chosen) > _IMAGES_FOR_TEMPLATES:
        some = draw_rows(
            count[chosen], _IMAGES_FOR_TEMPLATES, np.random.default_rng(rng.randint(2**31))
        )
        chosen, count = chosen[some], np.ones(len(count))  # weights are in the draw
    rows = _copy_to_host(X, chosen)
    first, which = find_distinct_rows([rows])
    return rows[first], np.bincount(which, count[chosen])


def _copy_to_host(X: Array, chosen: np.ndarray) -> np.ndarray:
    """Return some rows on the host, as floats."""
    if is_foreign(X):
        index = follow(chosen, X)
        rows = to_numpy(namespace(X).take(X, index, axis=0))
    else:
        rows = to_dense(X[chosen])
    return np.asarray(rows, dtype=np.float64 if is_double(working_dtype(X)) else np.float32)


def learn_templates(
    images: np.ndarray,
    count: np.ndarray,
    size: int,
    n_templates: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return centres of the patches of images, by k-means.

    Patches are drawn at random places; those that hardly vary are left out. Patches and templates
    have mean zero and length one (:eq:`patch-template`).

    Parameters
    ----------
    images : array of shape (n_images, height, width)
        The images.
    count : array of shape (n_images,)
        Their weights.
    size : int
        Rows and columns of a patch.
    n_templates : int
        Most templates; there are fewer where fewer patches differ.
    rng : RandomState
        Draws the patches, and starts k-means.

    Returns
    -------
    ndarray of shape (n_found, size, size)
        Of the dtype of ``images``.
    """
    patches, weight = _draw_patches(images, count, size, _PATCHES_PER_TEMPLATE * n_templates, rng)
    if len(patches) > n_templates:
        patches = cluster_centres(patches, weight, n_templates, rng)
    # Means of vectors of length one are shorter: the centres get the form :eq:`patch-template`
    # again. One of almost no length is a mixture of patches that cancel.
    centres = np.unique(patches, axis=0)
    centres = centres - centres.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centres, axis=1, keepdims=True)
    good = length[:, 0] > 1e-3
    found: np.ndarray = (centres[good] / length[good]).astype(images.dtype)
    return found.reshape(-1, size, size)


def _draw_patches(
    images: np.ndarray,
    count: np.ndarray,
    size: int,
    n_wanted: int,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Return normalised patches that are not background, one per row, and their weights.

    About ``n_wanted`` are drawn, from images by their weights; where there are few, all are taken.
    """
    n_images, height, width = images.shape
    places = (n_images, height - size + 1, width - size + 1)
    n_drawn = min(_DRAWS_PER_PATCH * n_wanted, int(np.prod(places)))
    if n_drawn == np.prod(places):  # all places, each once; the order decides which are kept
        image, y, x = np.unravel_index(rng.permutation(n_drawn), places)
        weight = count[image]
    else:
        image = np.searchsorted(np.cumsum(count / np.sum(count)), rng.uniform(size=n_drawn))
        image = np.minimum(image, n_images - 1)  # the sum of shares may be a little below one
        y, x = (rng.randint(length, size=n_drawn) for length in places[1:])
        weight = np.ones(n_drawn)
    views = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    patches = views[image, y, x].reshape(n_drawn, size * size)
    patches = patches - patches.mean(axis=1, keepdims=True)
    largest = np.abs(patches).max(initial=0.0)
    if not largest > 0.0:
        return np.empty((0, size * size), dtype=images.dtype), np.empty(0)
    patches /= largest  # squares of very large or small pixels would overflow or vanish
    length = np.linalg.norm(patches, axis=1)
    kept = np.flatnonzero(length > _LEAST_VARIATION * length.max())[:n_wanted]
    normal: np.ndarray = patches[kept] / length[kept, None]
    return normal, weight[kept]

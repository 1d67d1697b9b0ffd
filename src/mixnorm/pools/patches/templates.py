"""Templates for patches: what small pieces of images mostly look like."""

from __future__ import annotations

import warnings

import numpy as np

from mixnorm._array import Array, device_of, is_double, is_sparse, namespace, to_numpy
from mixnorm._distinct import draw_rows, find_distinct_rows
from mixnorm.pools.base import working_dtype

# Patches per template that k-means is given; more of them change little.
_PER_TEMPLATE = 100
# Patches that vary less than this share of the most varied one are background.
_LEAST = 0.1
# Patches looked at for each one wanted: many are background.
_DRAWN = 3
# Images that patches are taken from at most.
_IMAGES = 20_000


def sample_images(
    X: Array, weight: np.ndarray | None, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct images, on the host, as floats, and what each of them counts.

    Sorted by value, so that neither copies nor the order of rows matter. Rows of weight zero are
    left out; of very many images, some are drawn by their weights.
    """
    count = np.ones(X.shape[0]) if weight is None else weight
    chosen = np.flatnonzero(count > 0)
    if len(chosen) > _IMAGES:
        some = draw_rows(count[chosen], _IMAGES, np.random.default_rng(rng.randint(2**31)))
        chosen, count = chosen[some], np.ones(len(count))  # weights are in the draw
    rows = _on_host(X, chosen)
    first, which = find_distinct_rows([rows])
    return rows[first], np.bincount(which, count[chosen])


def _on_host(X: Array, chosen: np.ndarray) -> np.ndarray:
    """Return some rows on the host, as floats."""
    if is_sparse(X):
        rows = X[chosen].toarray()
    elif isinstance(X, np.ndarray):
        rows = X[chosen]
    else:
        xp = namespace(X)
        rows = to_numpy(xp.take(X, xp.asarray(chosen, device=device_of(X)), axis=0))
    return np.asarray(rows, dtype=np.float64 if is_double(working_dtype(X)) else np.float32)


def learn_templates(
    images: np.ndarray,
    count: np.ndarray,
    size: int,
    n_templates: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return centres of the patches of some images, by k-means.

    Patches are taken at random places, those that hardly vary left out, and turned into vectors of
    mean zero and length one, as the templates are that come back.

    Parameters
    ----------
    images : array of shape (n_images, height, width)
        Where patches come from.
    count : array of shape (n_images,)
        What each image counts.
    size : int
        Rows and columns of a patch.
    n_templates : int
        Most templates; fewer come back where there are fewer different patches.
    rng : RandomState
        Draws the patches, and starts k-means.

    Returns
    -------
    ndarray of shape (n_found, size, size)
        Of the dtype of ``images``.
    """
    patches, weight = _draw(images, count, size, _PER_TEMPLATE * n_templates, rng)
    if len(patches) > n_templates:
        centres = _centres(patches, weight, n_templates, rng)
    else:
        centres = np.unique(patches, axis=0)
    centres = centres - centres.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centres, axis=1, keepdims=True)
    good = length[:, 0] > 1e-3
    found: np.ndarray = (centres[good] / length[good]).astype(images.dtype)
    return found.reshape(-1, size, size)


def _draw(
    images: np.ndarray,
    count: np.ndarray,
    size: int,
    n_wanted: int,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Return normalised patches that are no background, one per row, and what each counts.

    About ``n_wanted`` at random, of images by what these count; all, where there are few.
    """
    n_images, height, width = images.shape
    places = (n_images, height - size + 1, width - size + 1)
    n_drawn = min(_DRAWN * n_wanted, int(np.prod(places)))
    if n_drawn == np.prod(places):
        image, y, x = np.unravel_index(rng.permutation(n_drawn), places)
        weight = count[image]
    else:
        image = np.searchsorted(np.cumsum(count / np.sum(count)), rng.uniform(size=n_drawn))
        image = np.minimum(image, n_images - 1)
        y, x = (rng.randint(length, size=n_drawn) for length in places[1:])
        weight = np.ones(n_drawn)
    views = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    patches = views[image, y, x].reshape(n_drawn, size * size)
    patches = patches - patches.mean(axis=1, keepdims=True)
    largest = np.abs(patches).max(initial=0.0)
    if not largest > 0.0:
        return np.empty((0, size * size), dtype=images.dtype), np.empty(0)
    patches /= largest
    length = np.linalg.norm(patches, axis=1)
    kept = np.flatnonzero(length > _LEAST * length.max())[:n_wanted]
    normal: np.ndarray = patches[kept] / length[kept, None]
    return normal, weight[kept]


def _centres(
    patches: np.ndarray, weight: np.ndarray, n_templates: int, rng: np.random.RandomState
) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # A careful start costs more than all iterations, and so many centres do not need it.
    clusters = KMeans(n_templates, init="random", n_init=1, max_iter=20, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different patches than centres
        clusters.fit(np.ascontiguousarray(patches), sample_weight=weight)
    return np.unique(clusters.cluster_centers_, axis=0)

"""Templates for patches: what small pieces of images mostly look like."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mixnorm._array import device_of, is_double, namespace, to_numpy
from mixnorm.pools._columns import working_dtype

# Patches per template that k-means is given; more of them change little.
_PER_TEMPLATE = 100
# Patches that vary less than this share of the most varied one are background.
_LEAST = 0.1
# Patches looked at for each one wanted: many are background.
_DRAWN = 3
# Images that patches are taken from at most.
_IMAGES = 20_000


def sample_images(X: Any, used: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return some of the rows in ``used``, on the host, as floats."""
    chosen = used
    if len(used) > _IMAGES:
        chosen = np.sort(rng.choice(used, _IMAGES, replace=False))
    if hasattr(X, "toarray"):
        rows = X[chosen].toarray()
    elif isinstance(X, np.ndarray):
        rows = X[chosen]
    else:
        xp = namespace(X)
        rows = to_numpy(xp.take(X, xp.asarray(chosen, device=device_of(X)), axis=0))
    return np.asarray(rows, dtype=np.float64 if is_double(working_dtype(X)) else np.float32)


def learn_templates(
    images: np.ndarray, size: int, n_templates: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return centres of the patches of some images, by k-means.

    Patches are taken at random places, those that hardly vary left out, and turned into vectors of
    mean zero and length one, as the templates are that come back.

    Parameters
    ----------
    images : array of shape (n_images, height, width)
        Where patches come from.
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
    patches = _draw(images, size, _PER_TEMPLATE * n_templates, rng)
    if len(patches) > n_templates:
        centres = _centres(patches, n_templates, rng)
    else:
        centres = np.unique(patches, axis=0)
    centres = centres - centres.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centres, axis=1, keepdims=True)
    good = length[:, 0] > 1e-3
    found: np.ndarray = (centres[good] / length[good]).astype(images.dtype)
    return found.reshape(-1, size, size)


def _draw(images: np.ndarray, size: int, n_wanted: int, rng: np.random.RandomState) -> np.ndarray:
    """Return up to ``n_wanted`` normalised patches that are no background, one per row."""
    n_images, height, width = images.shape
    places = (n_images, height - size + 1, width - size + 1)
    n_drawn = min(_DRAWN * n_wanted, int(np.prod(places)))
    if n_drawn == np.prod(places):
        chosen = rng.permutation(n_drawn)
    else:
        chosen = rng.randint(np.prod(places), size=n_drawn)
    image, y, x = np.unravel_index(chosen, places)
    views = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    patches = views[image, y, x].reshape(n_drawn, size * size)
    patches = patches - patches.mean(axis=1, keepdims=True)
    largest = np.abs(patches).max(initial=0.0)
    if not largest > 0.0:
        return np.empty((0, size * size), dtype=images.dtype)
    patches /= largest
    length = np.linalg.norm(patches, axis=1)
    kept = np.flatnonzero(length > _LEAST * length.max())[:n_wanted]
    normal: np.ndarray = patches[kept] / length[kept, None]
    return normal


def _centres(patches: np.ndarray, n_templates: int, rng: np.random.RandomState) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # A careful start costs more than all iterations, and so many centres do not need it.
    clusters = KMeans(n_templates, init="random", n_init=1, max_iter=20, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different patches than centres
        clusters.fit(np.ascontiguousarray(patches))
    return np.unique(clusters.cluster_centers_, axis=0)

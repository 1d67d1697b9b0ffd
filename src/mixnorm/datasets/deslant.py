"""Images of writing without slant, moved to the middle."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import Array, ArrayLike, device_of, namespace, to_numpy
from mixnorm._chunks import blocks
from mixnorm._numbers import check_number
from mixnorm.datasets.deform import check_images, deform

# The largest slope, 45 degrees: writing is not steeper.
_LARGEST_SLOPE = 1.0
# The range of heights that users may give, in pixels.
_SMALLEST_HEIGHT, _LARGEST_HEIGHT = 1e-6, 1e6
# The largest factor by which an image is stretched or shrunk.
_LARGEST_IMAGE_STRETCH = 2.0
# The number of pixels whose moments are computed at a time.
_PIXELS_PER_BLOCK = 1 << 25


def deslant_images(images: ArrayLike, *, height: float | None = None) -> Any:
    r"""Return images without slant, moved to the middle.

    Rows are shifted in proportion to their height until the columns and rows of the ink are
    uncorrelated. With means :math:`m` and covariances :math:`s` of the places of the ink, the
    pixel at :math:`(y, x)` from the middle of the result shows the interpolated image at
    :math:`(m_y + y,\ m_x + x + y\, s_{xy} / s_{yy})` (:eq:`deslant-map`). People slant their
    writing differently; a model that need not learn this needs fewer features.

    Parameters
    ----------
    images : array of shape (n_images, height, width)
        Gray values, in any array namespace. The ink of a pixel is its value minus the smallest
        value of the image.
    height : float, optional
        If given, images are also stretched or shrunk vertically, by a factor of at most two, until
        the rows of the ink have this standard deviation in pixels.

    Returns
    -------
    array of shape (n_images, height, width)
        In the dtype, namespace and device of ``images``. An image without ink does not change.

    Notes
    -----
    Slopes are at most one, which is 45 degrees. An image costs about fifteen multiply-adds per
    pixel.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((1, 5, 5), dtype=np.uint8)
    >>> image[0, [1, 2, 3], [3, 2, 1]] = 9
    >>> deslant_images(image)[0]
    array([[0, 0, 0, 0, 0],
           [0, 0, 9, 0, 0],
           [0, 0, 9, 0, 0],
           [0, 0, 9, 0, 0],
           [0, 0, 0, 0, 0]], dtype=uint8)
    """
    images = check_images(images)
    if height is not None:
        check_number("height", height)
        if not _SMALLEST_HEIGHT <= height <= _LARGEST_HEIGHT:
            raise ValueError(
                f"height={height} must be a number of pixels from {_SMALLEST_HEIGHT:g} to "
                f"{_LARGEST_HEIGHT:g}, or None."
            )
    xp = namespace(images)
    n_images, n_rows, n_columns = images.shape
    out = xp.empty(images.shape, dtype=images.dtype, device=device_of(images))
    still = np.zeros((n_rows, 0)), np.zeros((0, n_columns))
    step = max(1, _PIXELS_PER_BLOCK // (n_rows * n_columns))
    for rows in blocks(n_images, step):
        maps = _compute_maps(images[rows, :, :], height)
        waves = np.zeros((len(maps), 2, 0, 0), dtype=np.float32)
        out[rows, :, :] = deform(images[rows, :, :], maps, waves, *still)
    return out


def _compute_maps(images: Array, tall: float | None) -> np.ndarray:
    """Return affine maps ``(n_images, 2, 3)`` from ``(y, x, 1)`` in a result to its image."""
    xp = namespace(images)
    n_images, height, width = images.shape
    wide = xp.isdtype(images.dtype, "real floating") and xp.finfo(images.dtype).bits > 32
    flat = xp.astype(images, xp.float64 if wide else xp.float32)
    low = xp.min(xp.min(flat, axis=2), axis=1)
    high = xp.max(xp.max(flat, axis=2), axis=1)
    # Squares of shares of the range neither overflow nor vanish.
    spread = xp.where(high > low, high - low, xp.ones_like(low))
    ink = (flat - low[:, None, None]) / spread[:, None, None]
    by_row = to_numpy(xp.sum(ink, axis=2)).astype(np.float64)
    x = xp.arange(width, dtype=flat.dtype, device=device_of(flat)) - 0.5 * (width - 1)
    along = to_numpy(xp.sum(ink * x, axis=2)).astype(np.float64)
    y = np.arange(height) - 0.5 * (height - 1)
    total = by_row.sum(axis=1)
    total[total == 0.0] = 1.0
    down, right = by_row @ y / total, along.sum(axis=1) / total
    spread_y = by_row @ (y * y) / total - down**2
    together = along @ y / total - down * right
    # Without spread over the rows there is no slant to remove.
    slope = np.divide(together, spread_y, out=np.zeros(n_images), where=spread_y > 1e-6)
    slope = np.clip(slope, -_LARGEST_SLOPE, _LARGEST_SLOPE)
    stretch = np.ones(n_images)
    if tall is not None:
        stretch = np.sqrt(np.where(spread_y > 1e-6, spread_y, tall**2)) / tall
        stretch = np.clip(stretch, 1.0 / _LARGEST_IMAGE_STRETCH, _LARGEST_IMAGE_STRETCH)
    middle = 0.5 * (height - 1)
    maps = np.zeros((n_images, 2, 3))
    maps[:, 0, 0], maps[:, 1, 1] = stretch, 1.0
    # The mean of the ink goes to the middle of the image (:eq:`deslant-map`).
    maps[:, 0, 2] = down + middle * (1.0 - stretch)
    maps[:, 1, 0] = slope * stretch
    maps[:, 1, 2] = right - slope * stretch * middle
    return maps

"""Randomly deformed copies of images, as additional training data."""

from __future__ import annotations

import math
from typing import Any

import array_api_compat
import numpy as np

from mixnorm._array import Array, ArrayLike, as_generator, device_of, is_numpy, namespace
from mixnorm._chunks import run_loop
from mixnorm._numbers import check_count, check_number

# Memory for intermediate arrays in all, and for each pixel.
_BYTES_OF_BLOCK = 2**28
_BYTES_PER_PIXEL = 128

# Waves with a variance below this share of the largest are left out.
_SMALLEST_VARIANCE_OF_WAVES = 1e-4

# Larger amounts leave nothing of an image, and finally places that are not finite.
_LARGEST_AMOUNTS = {"rotation": 180.0, "scaling": 10.0, "shear": 1e6, "shift": 1e6, "elastic": 1e6}


def deform_images(
    images: Array | ArrayLike,
    *,
    n_copies: int = 1,
    rotation: float = 8.0,
    scaling: float = 0.08,
    shear: float = 0.1,
    shift: float = 0.5,
    elastic: float = 0.6,
    smoothness: float = 4.0,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Any:
    r"""Make randomly deformed copies of images.

    Pixel :math:`p` of a copy shows the value of the image at

    .. math:: c + R_\theta \begin{pmatrix} 1 & s \\ 0 & 1 \end{pmatrix}
              \begin{pmatrix} e^{a} & 0 \\ 0 & e^{b} \end{pmatrix} (p - c) + t + u(p),

    where :math:`c` is the centre of the image: an affine map and a smooth field :math:`u` of
    displacements (:eq:`field-covariance`), both drawn again for every copy of every image. Values
    between pixels are interpolated linearly along both axes, and values outside the image are zero.
    The defaults suit digits of 28 × 28 pixels.

    Parameters
    ----------
    images : array of shape (n_images, height, width)
        Gray values on a background of zero, integers or floats, in any array namespace.
    n_copies : int, default=1
        Number of copies of every image.
    rotation : float, default=8.0
        Largest angle :math:`\theta` in degrees, to either side; at most 180.
    scaling : float, default=0.08
        Largest magnitude of :math:`a` and :math:`b`, the logarithms of the factors along the two
        axes; at most 10. Small ones are shares: 0.08 is about 8 percent, to either side.
    shear : float, default=0.1
        Largest magnitude of the shear :math:`s`, the slope that vertical lines may get.
    shift : float, default=0.5
        Largest shift :math:`t` along each axis, in pixels.
    elastic : float, default=0.6
        Root of the mean squared length of the displacements :math:`u(p)`, in pixels.
    smoothness : float, default=4.0
        Standard deviation, in pixels, of the Gaussian that smooths the displacements. Two
        pixels at distance :math:`d` have displacements with correlation
        :math:`\exp(-d^2 / (4\,\mathtt{smoothness}^2))`.
    random_state : int, RandomState instance, Generator or None, default=None
        The seed or source of the deformations. They do not depend on the values of the images, so
        the channels of colour images deform alike with the same integer. The same integer gives
        the same copies, up to rounding, in every namespace and on every device, and the first
        copies are the same for every ``n_copies``.

    Returns
    -------
    copies : array of shape (n_copies * n_images, height, width)
        Copy ``c`` of image ``i`` is at ``c * n_images + i``, in the dtype and namespace and on the
        device of ``images``; integers are rounded. The images themselves are not among them: stack
        ``np.concatenate([images, copies])``, which has the labels ``np.tile(y, n_copies + 1)``.

    Notes
    -----
    Angles, logarithms, shears and shifts are uniform. The field is white noise convolved with
    a Gaussian. Its covariance is a product over the two axes, so it is drawn as
    :math:`A_y Z A_x^\top` with few normal numbers :math:`Z` and columns of :math:`A` that are
    eigenvectors of the covariance along an axis (:eq:`field-draw`). Those with less than
    :math:`10^{-4}` of the largest eigenvalue are left out, which leaves 9 of 28 at the default
    smoothness. NumPy arrays go through a
    compiled loop on all cores, others through operations of their namespace in blocks of images;
    random numbers are drawn on the host.

    References
    ----------
    Simard, Steinkraus, Platt, "Best practices for convolutional neural networks applied to visual
    document analysis", 2003, Section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm.datasets import deform_images
    >>> digits = load_digits()
    >>> copies = deform_images(digits.images, n_copies=2, elastic=0.3, random_state=0)
    >>> X = np.concatenate([digits.images, copies]).reshape(-1, 64)
    >>> y = np.tile(digits.target, 3)
    >>> X.shape, y.shape
    ((5391, 64), (5391,))
    """
    images = check_images(images)
    n_images, height, width = images.shape
    n_all = check_count("n_copies", n_copies) * n_images
    affine = {"rotation": rotation, "scaling": scaling, "shear": shear, "shift": shift}
    affine = {name: _check_amount(name, value) for name, value in affine.items()}
    elastic, smoothness = _check_amount("elastic", elastic), _check_smoothness(smoothness)
    # The factors of the field are the same for all images of a shape.
    rows, columns = _bases(height, width, elastic, smoothness)
    random = as_generator(random_state)
    copies = namespace(images).empty(
        (n_all, height, width), dtype=images.dtype, device=device_of(images)
    )
    size = max(1, _BYTES_OF_BLOCK // (_BYTES_PER_PIXEL * height * width))
    for first in range(0, n_all, n_images):
        # All maps of a copy come before its waves, so that blocks may have any size.
        maps = _draw_maps(random, n_images, (height, width), **affine)
        for start in range(0, n_images, size):
            stop = min(start + size, n_images)
            shape = (stop - start, 2, rows.shape[1], columns.shape[0])
            waves = random.standard_normal(shape, dtype=np.float32)
            parts = maps[start:stop], waves, rows, columns
            copies[first + start : first + stop, :, :] = deform(images[start:stop, :, :], *parts)
    return copies


def _draw_maps(
    random: np.random.Generator,
    n_images: int,
    shape: tuple[int, int],
    *,
    rotation: float,
    scaling: float,
    shear: float,
    shift: float,
) -> np.ndarray:
    """Return affine maps ``(n_images, 2, 3)`` from ``(y, x, 1)`` in a copy to a place in an image.

    Six numbers are drawn for every image, even if amounts are zero, so that later draws do not
    depend on the amounts.
    """
    draws = random.uniform(-1.0, 1.0, size=(n_images, 6))
    angle = math.radians(rotation) * draws[:, 0]
    slope = shear * draws[:, 1]
    tall, wide = np.exp(scaling * draws[:, 2]), np.exp(scaling * draws[:, 3])
    cosine, sine = np.cos(angle), np.sin(angle)
    centre = (np.asarray(shape) - 1) / 2
    maps = np.empty((n_images, 2, 3))
    # The rotation times the shear [[1, 0], [slope, 1]] of (y, x), times the factors.
    maps[:, 0, 0] = (cosine + sine * slope) * tall
    maps[:, 0, 1] = sine * wide
    maps[:, 1, 0] = (cosine * slope - sine) * tall
    maps[:, 1, 1] = cosine * wide
    # The centre goes to the centre, but for the shift.
    maps[:, :, 2] = centre - maps[:, :, :2] @ centre + shift * draws[:, 4:]
    return maps


def _bases(
    height: int, width: int, elastic: float, smoothness: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors of a field ``rows @ Z @ columns`` with normal ``Z`` (:eq:`field-draw`)."""
    if not elastic:
        return np.zeros((height, 0)), np.zeros((0, width))
    # Each of the two components has half of the mean squared length.
    rows = elastic / math.sqrt(2) * _basis(height, smoothness)
    # The loop is compiled for one order in memory.
    return np.ascontiguousarray(rows), np.ascontiguousarray(_basis(width, smoothness).T)


def _basis(size: int, smoothness: float) -> np.ndarray:
    """Return ``A`` such that ``A z`` of normal ``z`` is smoothed noise of unit variance.

    White noise convolved with a Gaussian of standard deviation s has the correlations
    exp(-d² / (4 s²)) (:eq:`field-covariance`).
    """
    distances = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    with np.errstate(over="ignore"):  # with a smoothness near zero, the noise stays white
        correlations = np.exp(-((distances / (2.0 * smoothness)) ** 2))
    values, vectors = np.linalg.eigh(correlations)
    kept = values > _SMALLEST_VARIANCE_OF_WAVES * values[-1]
    # Signs of eigenvectors differ between LAPACK libraries; fixed signs give the same fields.
    vectors = np.where(vectors[0] < 0.0, -vectors, vectors)
    basis = np.sqrt(values[kept]) * vectors[:, kept]
    # The omitted waves reduce the variance, most at the ends; every pixel gets unit variance again.
    return np.asarray(basis / np.linalg.norm(basis, axis=1, keepdims=True))


def deform(
    images: Array, maps: np.ndarray, waves: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> Any:
    """Return one copy of each image, deformed by affine ``maps`` and ``waves``."""
    xp, device = namespace(images), device_of(images)
    n_images, height, width = images.shape
    whole = xp.isdtype(images.dtype, "integral")
    bits = xp.iinfo(images.dtype).bits if whole else xp.finfo(images.dtype).bits
    # float32 has 24 bits for a value, enough for integers of 16 bits.
    dtype = xp.float64 if bits > (16 if whole else 32) else xp.float32
    padded = xp.zeros((n_images, height + 2, width + 2), dtype=dtype, device=device)
    padded[:, 1:-1, 1:-1] = xp.astype(images, dtype)
    # The frame moves all places by one.
    framed = maps + np.array([0.0, 0.0, 1.0])
    parts = (framed, waves, rows, columns)
    warp = _warp_compiled if is_numpy(images) else _warp
    values = warp(padded, *(xp.asarray(part, dtype=dtype, device=device) for part in parts))
    # A mean of pixels and zeros is in the range of the dtype, so no value needs to be clipped.
    return xp.astype(xp.round(values) if whole else values, images.dtype)


def _warp_compiled(
    padded: np.ndarray, maps: np.ndarray, waves: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Compute :func:`_warp` for NumPy arrays in a compiled loop."""
    from mixnorm.datasets.deform_jit import warp

    n_images, height, width = len(padded), len(rows), columns.shape[1]
    out = np.empty((n_images, height, width), dtype=padded.dtype)
    each = height * width * (8 + 2 * rows.shape[1])
    run_loop(warp, padded, maps, waves, rows, columns, out, items=n_images, operations=each)
    return out


def _warp(padded: Array, maps: Array, waves: Array, rows: Array, columns: Array) -> Any:
    """Return the values of padded images at the places of the pixels of the copies.

    Places are ``maps @ (y, x, 1) + rows @ waves @ columns``, counted from the corner of the frame
    of zeros, one pixel wide, around each image.
    """
    xp, dtype, device = namespace(padded), padded.dtype, device_of(padded)
    n_images, height, width = padded.shape[0], rows.shape[0], columns.shape[1]
    y = xp.reshape(xp.arange(height, dtype=dtype, device=device), (1, height, 1))
    x = xp.reshape(xp.arange(width, dtype=dtype, device=device), (1, 1, width))
    field = xp.matmul(xp.matmul(rows, waves), columns)
    parts = []
    for d, size in enumerate((height, width)):
        a, b, c = (xp.reshape(maps[:, d, k], (n_images, 1, 1)) for k in range(3))
        # Values beyond the frame are zero, as on the frame.
        place = xp.clip(a * y + c + b * x + field[:, d, :, :], 0.0, size + 1.0)
        low = xp.clip(xp.floor(place), 0.0, float(size))
        parts.append((xp.astype(low, xp.int64), place - low))
    (j, down), (k, right) = parts
    image = xp.reshape(xp.arange(n_images, dtype=xp.int64, device=device), (n_images, 1, 1))
    # One flat look-up for each of the four neighbours, which all array libraries have.
    corner = xp.reshape((image * (height + 2) + j) * (width + 2) + k, (-1,))
    flat = xp.reshape(padded, (-1,))

    def pixels(step: int) -> Any:
        return xp.reshape(xp.take(flat, corner + step), (n_images, height, width))

    upper = (1.0 - right) * pixels(0) + right * pixels(1)
    lower = (1.0 - right) * pixels(width + 2) + right * pixels(width + 3)
    return (1.0 - down) * upper + down * lower


def check_images(given: ArrayLike) -> Any:
    """Return the images as an array; raise an error if they cannot be deformed."""
    images: Any = given if array_api_compat.is_array_api_obj(given) else np.asarray(given)
    shape = tuple(images.shape)
    if len(shape) != 3:
        remedy = {
            2: " Reshape a table of pixels: images.reshape(len(images), height, width).",
            4: " Deform channels one by one, with the same integer as random_state.",
        }
        raise ValueError(
            f"images must have the shape (n_images, height, width), got {shape}."
            + remedy.get(len(shape), "")
        )
    if 0 in shape:
        raise ValueError(f"images of shape {shape} have no pixels; give at least one image.")
    xp = namespace(images)
    if not xp.isdtype(images.dtype, ("integral", "real floating")):
        raise TypeError(
            f"images have the dtype {images.dtype}, and gray values are integers or floats; "
            "convert them, for example to float32."
        )
    if xp.isdtype(images.dtype, "real floating"):
        if not bool(xp.all(xp.isfinite(images))):
            raise ValueError("images have pixels that are NaN or infinite; remove or replace them.")
    elif xp.iinfo(images.dtype).bits > 32:
        largest = max(int(xp.max(images)), -int(xp.min(images)))
        if largest > 2**53:
            raise ValueError(
                f"images have pixels as large as {largest}, which floats do not hold exactly, and "
                "values between pixels are floats. Convert images to float64."
            )
    return images


def _check_amount(name: str, value: float) -> float:
    """Return the size of random deformations as a float; raise if it is out of range."""
    check_number(name, value)
    if not 0.0 <= value <= _LARGEST_AMOUNTS[name]:
        raise ValueError(f"{name}={value} must be from 0 to {_LARGEST_AMOUNTS[name]:g}.")
    return float(value)


def _check_smoothness(value: float) -> float:
    check_number("smoothness", value)
    if not 0.0 < value < math.inf:
        raise ValueError(
            f"smoothness={value} must be positive and finite, in pixels; for no elastic "
            "deformation set elastic=0."
        )
    return float(value)

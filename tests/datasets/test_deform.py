"""Deformed copies of images."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import ndimage

from mixnorm._array import to_numpy
from mixnorm.datasets import deform, deform_images

NOTHING = dict(rotation=0, scaling=0, shear=0, shift=0, elastic=0)
DTYPES = ["uint8", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"]


def some_images(dtype="float64", shape=(5, 12, 9), seed=0):
    """Images that use the range of the dtype, its ends included, and have no empty border."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    low, high = max(info.min, -(2**40)), min(info.max, 2**40)
    images = rng.integers(low, high, size=shape, endpoint=True, dtype=dtype)
    images[0], images[1] = low, high
    return images


def straight(n_images, height, width, shift=(0.0, 0.0)):
    """Affine maps that only shift, and no waves."""
    maps = np.zeros((n_images, 2, 3))
    maps[:, 0, 0] = maps[:, 1, 1] = 1.0
    maps[:, :, 2] = shift
    return maps, np.zeros((n_images, 2, 0, 0)), np.zeros((height, 0)), np.zeros((0, width))


def waves_for(random, n_images, rows, columns):
    return random.standard_normal((n_images, 2, rows.shape[1], columns.shape[0]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_deformation_returns_the_images(dtype):
    images = some_images(dtype)
    copies = deform_images(images, n_copies=3, **NOTHING, random_state=0)
    assert copies.dtype == images.dtype
    np.testing.assert_array_equal(copies, np.concatenate([images] * 3))


def test_no_deformation_in_other_namespaces(xp):
    images = some_images("uint8")
    copies = deform_images(xp.asarray(images), n_copies=2, **NOTHING)
    np.testing.assert_array_equal(to_numpy(copies), np.concatenate([images] * 2))


def test_whole_pixels_shift_exactly():
    images = some_images("int32")
    copies = deform.deform(images, *straight(*images.shape, shift=(1, -2)))
    expected = np.zeros_like(images)
    expected[:, :-1, 2:] = images[:, 1:, :-2]  # what is below and to the left
    np.testing.assert_array_equal(copies, expected)


def test_half_pixels_are_means_with_zeros_outside():
    images = np.array([[[8.0, 4.0, 2.0]]])
    copies = deform.deform(images, *straight(1, 1, 3, shift=(0, 0.5)))
    np.testing.assert_array_equal(copies, [[[6.0, 3.0, 1.0]]])
    copies = deform.deform(images, *straight(1, 1, 3, shift=(-0.75, 0)))
    np.testing.assert_array_equal(copies, images / 4)


@pytest.mark.parametrize("far", [2.0, 1e5])
def test_far_outside_is_zero(far):
    images = some_images()
    for shift in [(far * 12, 0), (-far * 12, 0), (0, far * 9), (0, -far * 9)]:
        assert not deform.deform(images, *straight(*images.shape, shift=shift)).any()


def test_affine_maps_agree_with_scipy():
    images = some_images(shape=(20, 12, 9))
    amounts = dict(rotation=60.0, scaling=0.4, shear=0.5, shift=3.0)
    maps = deform._draw_maps(np.random.default_rng(0), 20, (12, 9), **amounts)
    copies = deform.deform(images, maps, *straight(20, 12, 9)[1:])
    for image, copy, matrix in zip(images, copies, maps, strict=True):
        # SciPy's "constant" leaves out the half-way values at the border, "grid-constant" not.
        expected = ndimage.affine_transform(
            image, matrix[:, :2], matrix[:, 2], order=1, mode="grid-constant"
        )
        np.testing.assert_allclose(copy, expected, rtol=0, atol=1e-12)


def test_displacements_agree_with_scipy():
    images = some_images(shape=(4, 12, 9))
    rng = np.random.default_rng(1)
    maps = deform._draw_maps(rng, 4, (12, 9), rotation=10, scaling=0.1, shear=0.1, shift=1)
    rows, columns = deform._bases(12, 9, 2.0, 1.5)
    waves = waves_for(rng, 4, rows, columns)
    copies = deform.deform(images, maps, waves, rows, columns)
    grid = np.stack([*np.indices((12, 9)), np.ones((12, 9))])
    for i in range(4):
        places = np.tensordot(maps[i], grid, 1) + rows @ waves[i] @ columns
        expected = ndimage.map_coordinates(images[i], places, order=1, mode="grid-constant")
        np.testing.assert_allclose(copies[i], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        # Of (y, x): a quarter turn, a doubling of both axes, x + y / 2, and a shift.
        (dict(rotation=90), [[0, 1], [-1, 0]]),
        (dict(scaling=np.log(2)), [[2, 0], [0, 2]]),
        (dict(shear=0.5), [[1, 0], [0.5, 1]]),
        (dict(shift=2), [[1, 0], [0, 1]]),
    ],
)
def test_largest_maps(amount, expected):
    class Largest:
        def uniform(self, low, high, size):
            return np.full(size, high)

    amounts = dict.fromkeys(("rotation", "scaling", "shear", "shift"), 0.0)
    maps = deform._draw_maps(Largest(), 2, (5, 7), **(amounts | amount))
    np.testing.assert_allclose(maps[:, :, :2], [expected] * 2, atol=1e-15)
    centre = np.array([2.0, 3.0])
    sent = maps[:, :, :2] @ centre + maps[:, :, 2]
    np.testing.assert_allclose(sent, [centre + amount.get("shift", 0)] * 2, atol=1e-15)


def test_amounts_are_uniform_to_both_sides():
    amounts = dict(rotation=0.0, scaling=0.0, shear=0.0)
    maps = deform._draw_maps(np.random.default_rng(0), 20_000, (6, 6), **amounts, shift=3.0)
    for shifts in maps[:, :, 2].T:
        shares, _ = np.histogram(shifts, bins=6, range=(-3, 3))
        assert shares.sum() == 20_000
        np.testing.assert_allclose(shares / 20_000, 1 / 6, atol=0.015)  # 5 standard errors


@pytest.mark.parametrize("smoothness", [0.3, 2.0, 5.0])
def test_displacements_have_the_stated_size_and_smoothness(smoothness):
    n, elastic = 4000, 1.7
    rows, columns = deform._bases(14, 20, elastic, smoothness)
    field = rows @ waves_for(np.random.default_rng(0), n, rows, columns) @ columns
    squares = (field**2).sum(axis=1).mean(axis=0)  # of the length, at each pixel
    # A mean of n squared lengths has the relative standard error 1 / sqrt(n) = 0.016.
    np.testing.assert_allclose(squares, elastic**2, rtol=0.08)
    assert np.sqrt(squares.mean()) == pytest.approx(elastic, rel=0.02)
    centre = field[:, :, 7, 10]
    for y, x in [(7, 11), (9, 10), (4, 14), (7, 3), (13, 19)]:
        expected = np.exp(-((y - 7) ** 2 + (x - 10) ** 2) / (4 * smoothness**2))
        for d in range(2):
            found = np.corrcoef(centre[:, d], field[:, d, y, x])[0, 1]
            assert found == pytest.approx(expected, abs=0.07)  # 4 standard errors
    assert abs(np.corrcoef(centre.T)[0, 1]) < 0.07  # the components are independent


def test_few_waves_keep_the_covariance():
    basis = deform._basis(28, 4.0)
    assert basis.shape == (28, 9)
    distances = np.subtract.outer(np.arange(28), np.arange(28))
    np.testing.assert_allclose(basis @ basis.T, np.exp(-(distances**2) / 64), atol=2e-3)


def test_field_is_smoothed_noise():
    # The correlations of long white noise that is smoothed, one axis at a time.
    noise = np.random.default_rng(0).standard_normal(400_000)
    smooth = ndimage.gaussian_filter1d(noise, 3.0)
    basis = deform._basis(10, 3.0)
    for lag in range(10):
        found = np.corrcoef(smooth[: len(smooth) - lag], smooth[lag:])[0, 1]
        assert (basis @ basis.T)[0, lag] == pytest.approx(found, abs=0.02)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_namespaces_agree(xp, dtype):
    images = some_images(dtype, shape=(6, 14, 11))
    expected = deform_images(images, n_copies=2, random_state=3)
    given = xp.asarray(images)
    copies = deform_images(given, n_copies=2, random_state=3)
    assert type(copies) is type(given)
    assert copies.dtype == given.dtype
    # float32 places of up to 14 pixels are off by 1e-6 or so, and neighbours differ by a few.
    tolerance = {"uint8": 1, "int64": 1, "float32": 2e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(
        to_numpy(copies).astype(float), expected.astype(float), rtol=0, atol=tolerance
    )
    assert not np.allclose(expected[:6], images, rtol=0, atol=10 * tolerance)


def test_device_is_kept():
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    images = strict.asarray(some_images("float32"), device=device)
    assert deform_images(images, random_state=0).device == device


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", ">f4", ">i2"])
def test_dtype_is_kept(dtype):
    images = some_images(np.dtype(dtype).newbyteorder("=")).astype(dtype)
    copies = deform_images(images, random_state=0)
    assert copies.dtype == images.dtype
    exact = deform_images(images.astype(float), random_state=0)
    scale = np.abs(images.astype(float)).max()
    slack = 1e-3 if np.dtype(dtype).kind == "f" else 0.5
    np.testing.assert_allclose(copies.astype(float), exact, rtol=0, atol=slack + 1e-6 * scale)


def test_seeds():
    images = some_images()
    first = deform_images(images, random_state=3)
    np.testing.assert_array_equal(first, deform_images(images, random_state=3))
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(first, deform_images(images, random_state=generator))
    assert not np.allclose(first, deform_images(images, random_state=generator))
    assert not np.allclose(first, deform_images(images, random_state=4))
    assert not np.allclose(first, deform_images(images))
    old, again = (np.random.RandomState(3) for _ in range(2))
    np.testing.assert_array_equal(
        deform_images(images, random_state=old), deform_images(images, random_state=again)
    )


def test_every_copy_is_its_own():
    image = some_images(shape=(1, 12, 9))
    copies = deform_images(np.concatenate([image] * 4), n_copies=3, random_state=0)
    distances = np.abs(copies[:, None] - copies[None]).max(axis=(2, 3))
    assert (distances[~np.eye(12, dtype=bool)] > 0.01).all()


def test_copies_come_one_set_after_the_other():
    images = np.ones((4, 10, 10)) * np.arange(1.0, 5.0)[:, None, None]
    copies = deform_images(images, n_copies=3, random_state=0)
    # The middle of a constant image is not touched by mild deformations.
    np.testing.assert_allclose(copies[:, 5, 5], np.tile([1.0, 2.0, 3.0, 4.0], 3), rtol=1e-12)
    np.testing.assert_array_equal(copies[:4], deform_images(images, random_state=0))


def test_blocks_do_not_matter(xp, monkeypatch):
    images = some_images("float32", shape=(7, 12, 9))
    at_once = deform_images(images, n_copies=2, random_state=0)
    others = deform_images(xp.asarray(images), n_copies=2, random_state=0)
    monkeypatch.setattr(deform, "_BYTES_OF_BLOCK", 3 * deform._BYTES_PER_PIXEL * 12 * 9)
    np.testing.assert_array_equal(deform_images(images, n_copies=2, random_state=0), at_once)
    in_blocks = deform_images(xp.asarray(images), n_copies=2, random_state=0)
    np.testing.assert_allclose(to_numpy(in_blocks), to_numpy(others), rtol=0, atol=2e-5)


def test_images_are_left_alone():
    images = some_images("float32")[:, ::-1, ::2]  # a view, in no usual order in memory
    before = images.copy()
    copies = deform_images(images, random_state=0)
    np.testing.assert_array_equal(images, before)
    np.testing.assert_array_equal(copies, deform_images(before, random_state=0))
    np.testing.assert_array_equal(deform_images(before.tolist(), random_state=0).shape, (5, 12, 5))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 7), (1, 300, 2)])
@pytest.mark.parametrize("smoothness", [5e-324, 0.01, 1e300])
def test_odd_shapes_and_smoothness(shape, smoothness):
    copies = deform_images(np.ones(shape), smoothness=smoothness, random_state=0)
    assert copies.shape == shape
    assert (copies >= 0).all()
    assert (copies <= 1).all()


def test_largest_amounts():
    copies = deform_images(some_images(), **deform._LARGEST_AMOUNTS, random_state=0)
    assert np.isfinite(copies).all()


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (np.zeros((3, 64)), ValueError, r"got \(3, 64\)\. Reshape a table of pixels"),
        (np.zeros((3, 8, 8, 3)), ValueError, "channels one by one"),
        (np.zeros(3), ValueError, r"shape \(n_images, height, width\), got \(3,\)"),
        (np.zeros((0, 8, 8)), ValueError, "at least one image"),
        (np.zeros((2, 8, 0)), ValueError, "no pixels"),
        (np.zeros((2, 8, 8), dtype=bool), TypeError, "dtype bool.*convert"),
        (np.zeros((2, 8, 8), dtype=complex), TypeError, "dtype complex128"),
        (np.zeros((2, 8, 8), dtype=object), TypeError, "dtype object"),
        (np.zeros((2, 8, 8), dtype="m8[s]"), TypeError, "dtype timedelta64"),
        (np.full((2, 8, 8), "a"), TypeError, "dtype <U1"),
        (np.full((2, 8, 8), np.nan), ValueError, "NaN or infinite"),
        (np.full((2, 8, 8), np.inf, dtype="float32"), ValueError, "NaN or infinite"),
        (np.full((2, 8, 8), 2**60), ValueError, "Convert images to float64"),
        (np.full((2, 8, 8), -(2**60)), ValueError, "Convert images to float64"),
    ],
)
def test_bad_images(images, error, message):
    with pytest.raises(error, match=message):
        deform_images(images)


def test_bad_images_of_other_namespaces(xp):
    with pytest.raises(ValueError, match="Reshape a table of pixels"):
        deform_images(xp.zeros((3, 64)))
    with pytest.raises(TypeError, match="bool"):
        deform_images(xp.zeros((3, 8, 8), dtype=xp.bool))
    with pytest.raises(ValueError, match="NaN or infinite"):
        deform_images(xp.full((3, 8, 8), xp.nan))


@pytest.mark.parametrize("name", ["rotation", "scaling", "shear", "shift", "elastic", "smoothness"])
def test_bad_amounts(name):
    images = some_images()
    for value in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"{name}={value}"):
            deform_images(images, **{name: value})
    for value in (None, "1", True, 1j, [1.0]):
        with pytest.raises(TypeError, match=f"{name}=.* must be a number"):
            deform_images(images, **{name: value})


def test_other_bad_values():
    images = some_images()
    with pytest.raises(ValueError, match="rotation=200 must be from 0 to 180"):
        deform_images(images, rotation=200)
    with pytest.raises(ValueError, match="smoothness=0 must be positive.*elastic=0"):
        deform_images(images, smoothness=0)
    with pytest.raises(ValueError, match="n_copies=0 must be at least 1"):
        deform_images(images, n_copies=0)
    for n_copies in (1.0, "2", None, True):
        with pytest.raises(TypeError, match="n_copies=.* must be a whole number"):
            deform_images(images, n_copies=n_copies)
    with pytest.raises(ValueError, match="random_state='a' is not a seed"):
        deform_images(images, random_state="a")


def test_import_compiles_nothing():
    code = "import sys, mixnorm.datasets; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

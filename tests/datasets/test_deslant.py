"""Images set upright."""

import numpy as np
import pytest

from mixnorm.datasets import deslant_images


def moments(image):
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    ink = image / image.sum()
    my, mx = (ink * y).sum(), (ink * x).sum()
    return my, mx, (ink * (y - my) * (x - mx)).sum(), (ink * (y - my) ** 2).sum()


def slanted(slope, size=31):
    """A soft upright bar, sheared by ``slope`` about a place that is not the middle."""
    y, x = np.mgrid[:size, :size].astype(float)
    along = np.exp(-(((y - 13) / 5) ** 2))
    return along * np.exp(-(((x - 17 - slope * (y - 13)) / 1.5) ** 2))


@pytest.mark.parametrize("slope", [-0.7, -0.2, 0.0, 0.4, 0.8])
def test_upright_and_in_the_middle(slope):
    (found,) = deslant_images(slanted(slope)[None])
    my, mx, together, tall = moments(found)
    assert (my, mx) == pytest.approx((15.0, 15.0), abs=0.02)
    assert abs(together / tall) < 0.02


@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize("height", [2.5, 3.5, 5.0])
def test_height(slope, height):
    (found,) = deslant_images(slanted(slope)[None], height=height)
    my, mx, together, tall = moments(found)
    assert tall == pytest.approx(height**2, rel=0.05)
    assert (my, mx) == pytest.approx((15.0, 15.0), abs=0.02)
    assert abs(together / tall) < 0.02


def test_images_are_stretched_by_two_at_most():
    (found,) = deslant_images(slanted(0.0)[None], height=1000.0)
    assert moments(found)[3] == pytest.approx(4 * moments(slanted(0.0))[3], rel=0.25)


@pytest.mark.parametrize("slope", [-1.8, 1.4, 2.0])
def test_slopes_are_cut_at_45_degrees(slope):
    """What is left of a steeper slope is what exceeds one."""
    y, x = np.mgrid[:61, :61].astype(float)
    along = np.exp(-(((y - 30) / 5) ** 2))
    image = along * np.exp(-(((x - 30 - slope * (y - 30)) / 1.5) ** 2))
    _, _, together, tall = moments(image)
    assert together / tall == pytest.approx(slope, abs=0.02)
    _, _, together, tall = moments(deslant_images(image[None])[0])
    assert together / tall == pytest.approx(slope - np.sign(slope), abs=0.02)


def test_upright_images_only_move():
    image = slanted(0.0)
    (found,) = deslant_images(image[None])
    np.testing.assert_allclose(found[2:, :-2], image[:-2, 2:], atol=0.01)


def test_mirrored_images_have_mirrored_results():
    image = slanted(0.5)
    left, right = deslant_images(np.stack([image, image[:, ::-1]]))
    np.testing.assert_allclose(left, right[:, ::-1], atol=1e-10)


def test_unit_and_background_do_not_matter():
    image = slanted(0.5)
    wanted = deslant_images(image[None])
    np.testing.assert_allclose(deslant_images(1e-20 * image[None]), 1e-20 * wanted, rtol=1e-9)
    # A gray background fades to black where there is nothing to show, but slants the same.
    found = deslant_images(3.0 * image[None] + 1.0)
    np.testing.assert_allclose(found[0, 8:-8, 8:-8], 3.0 * wanted[0, 8:-8, 8:-8] + 1.0, atol=1e-9)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
def test_dtype_and_blank_images(dtype):
    images = np.zeros((3, 6, 5), dtype=dtype)
    images[1] = 9
    images[2, 2] = 7  # a flat line has no slant
    found = deslant_images(images)
    assert found.dtype == images.dtype
    np.testing.assert_array_equal(found[:2], images[:2])
    assert float(found[2].sum()) == pytest.approx(35.0, abs=8)


def test_namespaces(xp):
    images = np.stack([slanted(slope) for slope in (-0.5, 0.3)])
    found = deslant_images(xp.asarray(images))
    np.testing.assert_allclose(np.asarray(found), deslant_images(images), atol=1e-6)


def test_blocks(monkeypatch):
    images = np.stack([slanted(slope) for slope in np.linspace(-0.5, 0.5, 7)])
    wanted = deslant_images(images)
    monkeypatch.setattr("mixnorm.datasets.deslant._PIXELS_PER_BLOCK", 2 * 31 * 31)
    np.testing.assert_allclose(deslant_images(images), wanted, atol=1e-12)


def test_errors():
    with pytest.raises(ValueError, match="n_images, height, width"):
        deslant_images(np.zeros((4, 9)))
    with pytest.raises(ValueError, match="NaN"):
        deslant_images(np.full((1, 2, 2), np.nan))
    for height, error in (
        (0.0, ValueError),
        (5e-324, ValueError),
        (1e300, ValueError),
        ("5", TypeError),
    ):
        with pytest.raises(error, match="height"):
            deslant_images(np.zeros((1, 2, 2)), height=height)

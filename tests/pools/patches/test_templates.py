"""Masks and templates of patches."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mixnorm.pools import Patches
from mixnorm.pools.patches.masks import Bells, grid_of
from mixnorm.pools.patches.templates import learn_templates


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8), y


def drawn(n=70, shape=(6, 7), seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n, *shape))
    images[:, :, 0] = 0.0
    return images.reshape(n, -1).astype(dtype)


class TestMasks:
    @pytest.mark.parametrize("n_bells", [1, 2, 4, 9])
    @pytest.mark.parametrize("reach", [0.01, 0.5, 1.5, 20.0])
    def test_windows(self, n_bells, reach):
        bells = Bells(n_bells, 9, 1.0, reach)
        for bell in range(n_bells):
            first, end = bells.window(bell)
            assert 0 <= first < end <= 9
            inside = np.flatnonzero(bells.weights[bell])
            np.testing.assert_array_equal(inside, np.arange(first, end))
            away = np.abs(inside - bells.middle(bell))
            assert away.max() <= max(reach * bells.step, 0.5) + 1e-12
        if reach >= 0.5:
            assert np.all(bells.weights.max(axis=0) > 0)  # no position is left out

    def test_bell(self):
        bells = Bells(2, 8, 0.5, 1.0)  # middles at 1.5 and 5.5, standard deviation 2
        assert bells.middle(0) == 1.5
        assert bells.weights[0, 3] == pytest.approx(math.exp(-0.5 * (1.5 / 2) ** 2))
        np.testing.assert_allclose(bells.weights[0], bells.weights[1, ::-1])

    def test_grid(self):
        assert grid_of(16) == (4, 4)
        assert grid_of((2, 3)) == (2, 3)

    @pytest.mark.parametrize(("masks", "error"), [(15, "square"), (0, "at least 1"), ((2, 0), "1")])
    def test_no_grid(self, masks, error):
        with pytest.raises(ValueError, match=error):
            grid_of(masks)

    @pytest.mark.parametrize("masks", [2.5, True, "16", (1, 2, 3), None])
    def test_no_numbers(self, masks):
        with pytest.raises(TypeError, match="whole number"):
            grid_of(masks)


class TestTemplates:
    def test_normal(self, digits):
        images = digits[0].astype(np.float32)
        found = learn_templates(images, np.ones(len(images)), 3, 20, np.random.RandomState(0))
        assert found.shape == (20, 3, 3)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found.mean(axis=(1, 2)), 0.0, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(found, axis=(1, 2)), 1.0, rtol=1e-5)

    def test_few_patches(self):
        images = np.zeros((1, 3, 3))
        images[0, 0, 0] = 5.0
        (found,) = learn_templates(images, np.ones(len(images)), 2, 10, np.random.RandomState(0))
        wanted = np.array([[3.0, -1.0], [-1.0, -1.0]]) / math.sqrt(12.0)
        np.testing.assert_allclose(found, wanted)

    def test_blank_images(self):
        blank = np.full((4, 5, 5), 7.0)
        assert learn_templates(blank, np.ones(4), 2, 3, np.random.RandomState(0)).size == 0

    @pytest.mark.parametrize("factor", [1e-30, 1e30])
    def test_any_unit(self, digits, factor):
        images = digits[0][:200]
        found, wanted = (
            learn_templates(f * images, np.ones(len(images)), 3, 5, np.random.RandomState(0))
            for f in (factor, 1.0)
        )
        np.testing.assert_allclose(found, wanted, atol=1e-12)

    def test_same_seed_same_templates(self):
        X = drawn()
        pool = Patches(size=2, n_templates=5, masks=1, shape=(6, 7))
        again = pool.learn(X, random_state=3)
        np.testing.assert_array_equal(pool.learn(X, random_state=3).templates, again.templates)
        assert not np.array_equal(pool.learn(X, random_state=4).templates, again.templates)

    def test_learned_pools_stay(self):
        pool = Patches(size=2, n_templates=5, masks=1, shape=(6, 7)).learn(drawn(), random_state=0)
        assert pool.learned
        assert pool.learn(drawn(seed=1)) == pool

    def test_rows_of_weight_zero_do_not_count(self):
        X, weight = drawn(), np.ones(70)
        X[::2] *= 1000.0
        weight[::2] = 0.0
        pool = Patches(size=2, n_templates=4, masks=1, shape=(6, 7))
        found = pool.learn(X, weight=weight, random_state=0).templates[0]
        # Only rows that count are drawn, so the same draws of these alone give the same.
        wanted = pool.learn(X[1::2], random_state=0).templates[0]
        np.testing.assert_array_equal(found, wanted)

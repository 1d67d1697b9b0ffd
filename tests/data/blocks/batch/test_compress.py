import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import compress, from_arrays, join_numbers, number_facts, survey


def draw(n=200, d=5, k=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(-3, d - 3) + 3.0
    X[:, 2] = 7.0
    Y = 1e3 * rng.normal(size=(n, k)) + X[:, :1] - 50.0
    weight = rng.integers(0, 3, n).astype(float)
    return X, Y, weight


def find(table, dtype=float):
    return survey(table, np.dtype(dtype), target=number_facts, join_targets=join_numbers)


def loss(X, Y, weight, W, b):
    return 0.5 * np.sum(weight[:, None] * (X @ W + b - Y) ** 2) / weight.sum()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("block_rows", [30, 1000])
def test_the_squared_loss_is_the_same(sparse, centred, block_rows):
    X, Y, weight = draw()
    given = sp.csr_array(X) if sparse else X
    table = from_arrays(given, Y, weight, block_rows=block_rows)
    small = compress(table, find(table), centred=centred)
    assert small.X.shape == (5 + 2 + centred, 5)
    assert np.isclose(small.weight.sum(), 1.0)
    rng = np.random.default_rng(1)
    for _ in range(3):
        W = rng.normal(size=(5, 2))
        # Weights of the columns and targets as given; the column that does not vary adds nothing.
        safe = np.where(small.scale > 0.0, small.scale, 1.0)
        outside = W / safe[:, None] * small.target_scale
        used = outside * (small.scale > 0.0)[:, None]
        b = small.target_centre - small.centre @ used
        whole = loss(X / small.target_scale.max(), Y / small.target_scale, weight, 0 * W, 0)
        assert np.isfinite(whole)
        parts = [
            loss(X, Y[:, [j]], weight, used[:, [j]], b[j]) / small.target_scale[j] ** 2
            for j in range(2)
        ]
        assert np.isclose(loss(small.X, small.Y, small.weight, W, 0.0), sum(parts), rtol=1e-11)
    if centred:  # the best intercept is zero
        np.testing.assert_allclose(np.c_[small.X, small.Y].sum(axis=0), 0.0, atol=1e-12)
        assert small.scale[2] == 0.0
        assert not small.X[:, 2].any()


def test_means_in_single_precision_are_made_exact():
    X, Y, weight = draw()
    X = (X + 1e4).astype(np.float32)
    table = from_arrays(X, Y, weight, block_rows=30)
    small = compress(table, find(table, np.float32))
    exact = np.average(X.astype(float), axis=0, weights=weight)
    np.testing.assert_allclose(small.centre, exact, rtol=1e-13)


def test_bits_do_not_depend_on_workers():
    X, Y, weight = draw()
    tables = [from_arrays(X, Y, weight, block_rows=30, executor=count) for count in (1, 2, 3)]
    found = [compress(table, find(table)) for table in tables]
    assert found[0].X.tobytes() == found[1].X.tobytes() == found[2].X.tobytes()


def test_rows_without_weight_may_hold_anything():
    X, Y, weight = draw()
    table = from_arrays(X, Y, weight, block_rows=30)
    weight_zero = weight == 0.0
    X2, Y2 = X.copy(), Y.copy()
    X2[weight_zero], Y2[weight_zero] = 1e300, -1e300
    other = from_arrays(X2, Y2, weight, block_rows=30)
    one, two = compress(table, find(table)), compress(other, find(other))
    np.testing.assert_allclose(one.X.T @ one.X, two.X.T @ two.X, rtol=1e-10, atol=1e-10)

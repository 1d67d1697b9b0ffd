import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import (
    ArraySource,
    BlockTable,
    as_matrix,
    from_arrays,
    join_labels,
    label_facts,
    survey,
)


def draw(n=101, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d) + 50.0
    weight = rng.integers(0, 3, n).astype(float)
    weight[20:40] = 0.0  # two whole blocks of ten rows
    return X, weight


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("block_rows", [10, 64, 200])
def test_statistics_are_those_of_the_whole(sparse, block_rows):
    X, weight = draw()
    X[X < 45.0] = 0.0
    X[:, 3] = 7.0
    table = from_arrays(sp.csr_array(X) if sparse else X, None, weight, block_rows=block_rows)
    found = survey(table, np.dtype(float))
    wanted = as_matrix(X, X.dtype).statistics(weight)
    for name in ("low", "high", "mean", "deviation"):
        np.testing.assert_allclose(
            getattr(found.statistics, name), getattr(wanted, name), rtol=1e-12, atol=1e-13
        )
    assert found.total_weight == weight.sum()
    assert found.n_used == np.count_nonzero(weight)
    assert found.statistics.deviation[3] == 0.0


def test_bits_do_not_depend_on_workers():
    X, weight = draw()
    found = [
        survey(from_arrays(X, None, weight, block_rows=10, executor=count), np.dtype(float))
        for count in (1, 2, 3)
    ]
    for other in found[1:]:
        for name in ("low", "high", "mean", "deviation"):
            same = getattr(other.statistics, name) == getattr(found[0].statistics, name)
            assert np.all(same)


def test_samples_are_gathered_in_order():
    X, weight = draw()
    y = np.arange(101)
    rows = np.array([3, 19, 20, 21, 22, 77, 100]), np.array([], dtype=int)
    for given in (X, sp.csr_array(X)):
        table = from_arrays(given, y, weight, block_rows=10)
        some, none = survey(table, np.dtype(float), samples=rows).samples
        np.testing.assert_array_equal(some.y, rows[0])
        np.testing.assert_array_equal(some.weight, weight[rows[0]])
        kept = some.X.toarray() if given is not X else some.X
        np.testing.assert_array_equal(kept, X[rows[0]])
        assert none.X.shape == (0, 4)


def test_labels_of_the_last_block():
    y = np.array(["b"] * 15 + ["a"] * 5 + ["late"])
    table = from_arrays(np.ones((21, 1)), y, np.arange(21.0), block_rows=10)
    found = survey(table, np.dtype(float), target=label_facts, join_targets=join_labels).target
    assert found.classes.tolist() == ["a", "b", "late"]
    assert found.counts.tolist() == [5, 15, 1]
    assert found.weights.tolist() == [85.0, 105.0, 20.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_numbers_that_are_not_finite_are_named(sparse):
    X, _ = draw()
    X[57, 2] = np.nan
    table = from_arrays(sp.csr_array(X) if sparse else X, block_rows=10)
    with pytest.raises(ValueError, match=r"NaN in column 2, rows? 57"):
        survey(table, np.dtype(float))
    X[57, 2] = 1e300
    with pytest.raises(ValueError, match=r"1e\+300, .* too large for float32, in column 2"):
        survey(from_arrays(X, block_rows=10), np.dtype(np.float32))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(20), "zero for every row"),
        (np.r_[np.ones(19), -1.0], r"is -1\.0 in rows? 19"),
        (np.r_[np.ones(19), np.nan], "must be finite"),
        (np.full(20, 1e308), "overflows"),
    ],
)
def test_bad_weights(weight, message):
    table = BlockTable(ArraySource(np.ones((20, 1)), None, weight), block_rows=8)
    with pytest.raises(ValueError, match=message):
        survey(table, np.dtype(float))


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.r_[np.ones(19), 0.5], ValueError, r"0\.5 in rows? 19, which is not a label"),
        (np.r_[np.ones(19), np.nan], ValueError, "not a label"),
        (np.array(["a"] * 19 + [None], dtype=object), ValueError, r"None in rows? 19"),
        (np.array(["a"] * 19 + [1], dtype=object), TypeError, "several types"),
        (np.ones((20, 2)), ValueError, "2 target columns"),
    ],
)
def test_bad_labels(y, error, message):
    table = from_arrays(np.ones((20, 1)), y, block_rows=8)
    with pytest.raises(error, match=message):
        survey(table, np.dtype(float), target=label_facts, join_targets=join_labels)


def test_extreme_numbers_keep_their_statistics():
    X = np.array([[1e300, 1e-200], [-1e300, 2e-200], [1e300, 3e-200], [-1e300, 4e-200]])
    found = survey(from_arrays(X, block_rows=2), np.dtype(float)).statistics
    np.testing.assert_allclose(found.deviation, [1e300, np.std([1, 2, 3, 4]) * 1e-200], rtol=1e-12)

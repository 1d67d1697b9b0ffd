"""Products of tables of row blocks, beside the same fit in memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.data import from_arrays
from mixnorm.pools import Products

EXACT = GreedyOptions(tol=1e-10)


def objective(model):
    return np.array([step.objective for step in model.model_.path.rounds])


def assert_same_fit(blocks, memory):
    assert blocks.path_["feature"].tolist() == memory.path_["feature"].tolist()
    assert np.allclose(objective(blocks), objective(memory), rtol=1e-9, atol=0.0)
    assert np.allclose(blocks.coef_, memory.coef_, rtol=1e-5, atol=1e-7)


@pytest.fixture(scope="module")
def labelled():
    """Three classes by products; columns of two values, of one, and of very different sizes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 7)) * [1.0, 1.0, 1e-3, 1e4, 1.0, 1.0, 1.0] + 0.5
    X[:, 4] = rng.integers(0, 2, 500) * 2.0 - 1.0
    X[:, 5] = 3.0
    score = X[:, 0] * X[:, 1] + 1e3 * (X[:, 2] - 0.5) * X[:, 4] + 0.3 * rng.standard_normal(500)
    weight = rng.integers(0, 3, 500).astype(float)
    weight[100:200] = 0.0
    X[100:110, 6] = 1e300  # products of rows that do not count may overflow
    return X, np.asarray(["a", "b", "c"])[np.digitize(score, [-0.3, 0.8])], weight


VARIANTS = {
    "default": {},
    "balanced": {"class_weight": "balanced"},
    "no intercept": {"fit_intercept": False},
    "no linear": {"pool": Products(linear=False)},
    "no squares": {"pool": Products(squares=False)},
    "l2 rule": {"options": GreedyOptions(tol=1e-10, rule="l2", scale="max")},
    "exact rule": {"options": GreedyOptions(tol=1e-10, rule="exact")},
    "few inputs": {"max_inputs": 2},
    "swaps": {"options": GreedyOptions(tol=1e-10, swaps=1)},
    "backward": {"options": GreedyOptions(tol=1e-10, backward=2)},
    "two a round": {"options": GreedyOptions(tol=1e-10, atoms_per_round=2)},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_the_fit_in_memory(name, labelled):
    X, y, weight = labelled
    given = {"pool": Products(), "options": EXACT} | VARIANTS[name]
    memory = ShareBoostClassifier(4, **given).fit(X, y, weight)
    table = from_arrays(X, y, weight, block_rows=128)
    assert_same_fit(ShareBoostClassifier(4, **given).fit(table), memory)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("filled", [0.05, 0.3])
def test_sparse_tables(filled, fit_intercept, labelled):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12)) * (rng.random((400, 12)) < filled)
    X[:, 3] = X[:, 3] != 0.0
    y = np.column_stack([X[:, 0] * X[:, 1] + X[:, 2] ** 2, X[:, 3] - X[:, 4]])
    given = {"pool": Products(), "options": EXACT, "fit_intercept": fit_intercept}
    memory = ShareBoostRegressor(4, **given).fit(sp.csr_array(X), y)
    for rows in (X, sp.csr_array(X)):
        table = from_arrays(rows, y, block_rows=90)
        assert_same_fit(ShareBoostRegressor(4, **given).fit(table), memory)


@pytest.mark.parametrize("block_rows", [1, 37, 500, 5000])
def test_any_blocks(block_rows, labelled):
    X, y, weight = labelled
    rows = slice(0, 60) if block_rows == 1 else slice(None)
    given = {"pool": Products(), "options": EXACT}
    memory = ShareBoostClassifier(3, **given).fit(X[rows], y[rows], weight[rows])
    table = from_arrays(X[rows], y[rows], weight[rows], block_rows=block_rows)
    assert_same_fit(ShareBoostClassifier(3, **given).fit(table), memory)


def test_the_same_atoms_can_be_chosen(labelled):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)) * [1e-200, 1e200, 1.0, 1.0, 1e-170, 1.0]
    X[:, 3], X[:, 5] = np.sign(X[:, 3]), 0.0
    y = rng.random(200) > 0.5
    for fit_intercept in (True, False):
        for pool in (Products(), Products(linear=False), Products(squares=False)):
            memory = ShareBoostClassifier(99, pool=pool, fit_intercept=fit_intercept)
            blocks = ShareBoostClassifier(99, pool=pool, fit_intercept=fit_intercept)
            with pytest.warns(UserWarning, match="asks for more features"):
                memory.fit(X, y)
            with pytest.warns(UserWarning, match="asks for more features"):
                blocks.fit(from_arrays(X, y, block_rows=64))
            assert set(blocks.path_["feature"]) == set(memory.path_["feature"])


def test_single_precision_stays_single(labelled):
    X, y, _ = labelled
    X = np.delete(X, 6, axis=1).astype(np.float32)
    memory = ShareBoostClassifier(3, pool=Products()).fit(X, y)
    blocks = ShareBoostClassifier(3, pool=Products()).fit(from_arrays(X, y, block_rows=64))
    assert blocks.path_["feature"].tolist() == memory.path_["feature"].tolist()
    assert np.allclose(objective(blocks), objective(memory), rtol=1e-3)


def test_workers_and_memory_change_no_bit(labelled, tmp_path):
    X, y, weight = labelled
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    # The last table has room for the gradients of one output at a time, and rows are in files.
    runs = [(X, 1, "1 GiB"), (X, 2, "1 GiB"), (mapped, 3, "1 GiB"), (X, 2, 5000)]
    found = [
        ShareBoostClassifier(12, pool=Products(), options=GreedyOptions(rule="joint")).fit(
            from_arrays(rows, y, weight, block_rows=50, executor=workers, memory=memory)
        )
        for rows, workers, memory in runs
    ]
    for one in found[1:]:
        assert one.path_["feature"].tolist() == found[0].path_["feature"].tolist()
        assert np.array_equal(one.coef_, found[0].coef_)
        assert np.array_equal(one.intercept_, found[0].intercept_)


def test_too_many_pairs_for_the_memory(labelled):
    X, y, _ = labelled
    with pytest.raises(MemoryError, match=r"Products of 7 columns have 28 pairs.*more memory"):
        ShareBoostClassifier(2, pool=Products()).fit(from_arrays(X, y, memory=3000))


def test_sparse_gradients_equal_their_plain_twin():
    from mixnorm.pools.product_tables import pair_starts
    from mixnorm.pools.products_jit import sparse_gradients

    rng = np.random.default_rng(0)
    X, residual = rng.random((30, 5)) * (rng.random((30, 5)) < 0.4), rng.random((30, 2))
    by_column, by_row, starts = sp.csc_array(X), sp.csr_array(X), pair_starts(5)
    parts = [(each.indptr, each.indices, each.data) for each in (by_column, by_row)]
    found = np.zeros((15, 2))
    for begin, stop in ((0, 2), (2, 5)):
        sparse_gradients(*parts[0], *parts[1], starts, residual, found, begin, stop)
    wanted = [(X[:, i] * X[:, j]) @ residual for i in range(5) for j in range(i, 5)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)

"""The scans under the columns pool: products, statistics and columns, read by blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.data import matrix as _scan
from mixnorm.data.matrix import (
    DenseScan,
    SparseScan,
    column_ranges,
    column_statistics,
    scan,
)


def data(n_samples=40, n_features=6, n_outputs=3, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(10 * rng.standard_normal((n_samples, n_features)))
    return X.astype(dtype), rng.standard_normal((n_samples, n_outputs))


@pytest.fixture
def small_blocks(monkeypatch):
    """Six columns: three rows are a block."""
    monkeypatch.setattr(_scan, "_BLOCK_BYTES", 3 * 8 * 6)
    monkeypatch.setattr(_scan, "_UNPACKED", 16 * 6 * 3)


def layouts(X, folder):
    mapped = np.memmap(folder / "x.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    by_column = np.memmap(folder / "f.bin", dtype=X.dtype, mode="w+", shape=X.shape, order="F")
    by_column[:] = X
    return {"C": X, "F": np.asfortranarray(X), "mapped": mapped, "mapped by column": by_column}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "float16", "bool"])
def test_blocks_change_nothing(tmp_path, small_blocks, monkeypatch, dtype):
    X, residual = data(dtype="float64")
    X = np.abs(X).astype(dtype)
    weight = np.ones(40)
    weight[[0, 1, 2, 10]] = 0.0  # a whole block, and part of one
    for name, layout in layouts(X, tmp_path).items():
        matrix = DenseScan(layout, np.dtype("float64"))
        assert len(list(matrix.blocks())) == 14
        np.testing.assert_allclose(
            matrix.gradient(residual), X.astype(float).T @ residual, atol=1e-10, err_msg=name
        )
        low, high = column_ranges(matrix, weight)
        np.testing.assert_array_equal(low, X[weight > 0].min(axis=0))
        np.testing.assert_array_equal(high, X[weight > 0].max(axis=0))
        np.testing.assert_array_equal(matrix.columns([4])[0, :], X[:, 4])
        assert matrix.columns([4])[0, :].flags.c_contiguous


def test_the_block_size_is_not_read_before_it_is_used(small_blocks):
    """The tests above rely on it."""
    sizes = [len(block) for _, block in DenseScan(data()[0], np.dtype("float64")).blocks()]
    assert sizes == [3] * 13 + [1]


@given(
    n_samples=st.integers(1, 70),
    n_features=st.integers(1, 9),
    n_outputs=st.integers(1, 6),
    step=st.integers(16, 40),
    order=st.sampled_from("CF"),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_thin_products(n_samples, n_features, n_outputs, step, order, dtype):
    """Accumulated over blocks of rows, whatever the layout of the residual."""
    X, residual = data(n_samples, n_features, n_outputs, dtype)
    residual = np.asarray(residual, dtype=dtype, order=order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scan, "_UNPACKED", step * n_features * n_outputs)
        matrix = DenseScan(X, np.dtype(dtype))
        assert matrix._is_thin(n_outputs)
        got = matrix.gradient(residual)
    assert got.dtype == dtype
    rtol = 1e-11 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(got, X.T @ residual, rtol=rtol, atol=rtol)


def test_wide_products(monkeypatch):
    monkeypatch.setattr(_scan, "_UNPACKED", 10)
    X, residual = data()
    for order in "CF":
        matrix = DenseScan(np.asarray(X, order=order), np.dtype("float64"))
        assert not matrix._is_thin(3)
        np.testing.assert_allclose(matrix.gradient(residual), X.T @ residual, atol=1e-11)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse(form):
    X, residual = data()
    X[np.abs(X) < 8] = 0.0
    X[:, 3] = np.abs(X[:, 3]) + 1.0  # no zeros
    X[:, 5] = 0.0
    matrix = scan(form(X), np.dtype("float64"))
    assert isinstance(matrix, SparseScan)
    np.testing.assert_allclose(matrix.gradient(residual), X.T @ residual, atol=1e-11)
    for j in range(6):
        np.testing.assert_array_equal(matrix.columns([j])[0, :], X[:, j])
    weight = np.ones(40)
    weight[::3] = 0.0
    for used in (np.ones(40), weight):
        low, high = column_ranges(matrix, used)
        np.testing.assert_array_equal(low, X[used > 0].min(axis=0))
        np.testing.assert_array_equal(high, X[used > 0].max(axis=0))


def test_sparse_is_not_made_dense():
    """A matrix of 10^10 entries: any dense copy would fail."""
    X = sp.csr_array((np.ones(4), ([0, 5, 99_999, 7], [3, 0, 99_999, 3])), shape=(100_000, 100_000))
    matrix = scan(X, np.dtype("float32"))
    gradient = matrix.gradient(np.ones((100_000, 2), dtype=np.float32))
    assert gradient.dtype == np.float32
    np.testing.assert_array_equal(gradient[[0, 3, 99_999]], [[1, 1], [2, 2], [1, 1]])
    low, high = column_ranges(matrix, np.ones(100_000))
    assert high.sum() == (high > low).sum() == 3


def test_namespaces_agree(xp, small_blocks):
    X, residual = data()
    weight = np.ones(40)
    weight[:5] = 0.0
    here, there = DenseScan(X, np.dtype("float64")), DenseScan(xp.asarray(X), xp.float64)
    got = there.gradient(xp.asarray(residual))
    np.testing.assert_allclose(np.asarray(got), here.gradient(residual), atol=1e-11)
    for wanted, found in zip(
        column_ranges(here, weight), column_ranges(there, xp.asarray(weight)), strict=True
    ):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.asarray(there.columns([2])[0, :]), X[:, 2])


@pytest.mark.parametrize("value", [np.finfo(float).max, -1e300])
def test_means_of_huge_constant_columns(value):
    """The weighted sum of such a column may round up to infinity, or its deviation overflow."""
    X = np.full((153, 2), value)
    X[:, 1] = np.arange(153)
    found = column_statistics(scan(X, X.dtype), np.full(153, 1 / 153))
    np.testing.assert_allclose(found.mean, [value, 76.0])
    np.testing.assert_allclose(found.deviation, [0.0, np.std(X[:, 1])])

"""Dense matrices: products, statistics and columns, read by blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.data import DenseMatrix, dense


def data(n_samples=40, n_features=6, n_outputs=3, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(10 * rng.standard_normal((n_samples, n_features)))
    return X.astype(dtype), rng.standard_normal((n_samples, n_outputs))


@pytest.fixture
def small_blocks(monkeypatch):
    """Six columns: three rows are a block."""
    monkeypatch.setattr(dense, "_BYTES_PER_ROW_BLOCK", 3 * 8 * 6)
    monkeypatch.setattr(dense, "_LARGEST_UNPACKED_PRODUCT", 16 * 6 * 3)


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
        matrix = DenseMatrix(layout, np.dtype("float64"))
        assert len(list(matrix.blocks())) == 14
        np.testing.assert_allclose(
            matrix.gradient(residual), X.astype(float).T @ residual, atol=1e-10, err_msg=name
        )
        low, high = matrix.ranges(weight)
        np.testing.assert_array_equal(low, X[weight > 0].min(axis=0))
        np.testing.assert_array_equal(high, X[weight > 0].max(axis=0))
        np.testing.assert_array_equal(matrix.column_rows([4])[0, :], X[:, 4])
        assert matrix.column_rows([4])[0, :].flags.c_contiguous


def test_the_block_size_is_not_read_before_it_is_used(small_blocks):
    """The tests above rely on it."""
    sizes = [len(block) for _, block in DenseMatrix(data()[0], np.dtype("float64")).blocks()]
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
    calls, real = [], DenseMatrix._thin_gradient
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "_LARGEST_UNPACKED_PRODUCT", step * n_features * n_outputs)
        patch.setattr(DenseMatrix, "_thin_gradient", lambda *args: calls.append(1) or real(*args))
        got = DenseMatrix(X, np.dtype(dtype)).gradient(residual)
    assert calls
    assert got.dtype == dtype
    rtol = 1e-11 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(got, X.T @ residual, rtol=rtol, atol=rtol)


def test_wide_products(monkeypatch):
    monkeypatch.setattr(dense, "_LARGEST_UNPACKED_PRODUCT", 10)
    monkeypatch.delattr(DenseMatrix, "_thin_gradient")
    X, residual = data()
    for order in "CF":
        matrix = DenseMatrix(np.asarray(X, order=order), np.dtype("float64"))
        np.testing.assert_allclose(matrix.gradient(residual), X.T @ residual, atol=1e-11)


def test_namespaces_agree(xp, small_blocks):
    X, residual = data()
    weight = np.ones(40)
    weight[:5] = 0.0
    here, there = DenseMatrix(X, np.dtype("float64")), DenseMatrix(xp.asarray(X), xp.float64)
    got = there.gradient(xp.asarray(residual))
    np.testing.assert_allclose(np.asarray(got), here.gradient(residual), atol=1e-11)
    for wanted, found in zip(here.ranges(weight), there.ranges(xp.asarray(weight)), strict=True):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.asarray(there.column_rows([2])[0, :]), X[:, 2])


@pytest.mark.parametrize("value", [np.finfo(float).max, -1e300])
def test_means_of_huge_constant_columns(value):
    """The weighted sum of such a column may round up to infinity, or its deviation overflow."""
    X = np.full((153, 2), value)
    X[:, 1] = np.arange(153)
    found = DenseMatrix(X, X.dtype).statistics(np.full(153, 1 / 153))
    np.testing.assert_allclose(found.mean, [value, 76.0])
    np.testing.assert_allclose(found.deviation, [0.0, np.std(X[:, 1])])

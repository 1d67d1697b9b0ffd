import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import ArraySource, BlockMatrix, BlockTable, DenseMatrix, from_arrays
from mixnorm.estimators.mixed_norm.training import ColumnUnits

N, D, K = 53, 7, 2


class CountedSource(ArraySource):
    """Counts how often rows of each column are read."""

    def scan(self, rows, request, meter):
        if request.columns is not None:
            self.reads[request.columns] += sum(part.stop - part.start for part in rows)
        return super().scan(rows, request, meter)


def draw(dtype=float):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * np.arange(1, D + 1) + np.linspace(0.0, 30.0, D)
    X[rng.random(X.shape) < 0.4] = 0.0
    X[:, 4] = 2.5
    return X.astype(dtype), rng.normal(size=(N, K)).astype(dtype)


def units_of(X, *, centred=True):
    scale = X.std(axis=0).astype(float)
    scale[4] = 0.0
    return ColumnUnits(X.mean(axis=0) * centred, scale)


def fetch(columns):
    """Return columns as an array, by way of their products."""
    return columns.scores(np.eye(columns.size))


# Room for none, for some, and for all of the columns.
@pytest.mark.parametrize("memory", [1, 2 * 3 * 8 * N, 1 << 20])
@pytest.mark.parametrize("in_units", [False, True])
def test_products_are_those_of_a_matrix_in_memory(memory, in_units, tmp_path):
    X, residual = draw()
    units = units_of(X) if in_units else None
    inside = X if units is None else units.apply(X)
    table = from_arrays(X, block_rows=10, memory=memory, folder=str(tmp_path))
    matrix = BlockMatrix(table, X.dtype, units)
    np.testing.assert_allclose(matrix.gradient(residual), inside.T @ residual, atol=1e-11)
    for index in ([1, 5], [1, 3, 5], [0, 1, 3, 5, 6], [1], [0, 1, 2, 3, 4, 5, 6]):
        columns = matrix.columns(np.array(index))
        part = inside[:, index]
        np.testing.assert_array_equal(fetch(columns), part)
        np.testing.assert_allclose(columns.gradient(residual), part.T @ residual, atol=1e-11)
        np.testing.assert_allclose(matrix.gradient(residual), inside.T @ residual, atol=1e-11)
        weights = np.zeros((D, K))
        weights[[0, index[-1]]] = 1.5
        np.testing.assert_allclose(matrix.scores(weights), inside @ weights, atol=1e-11)
    assert matrix.scores(np.zeros((D, K))).shape == (N, K)
    assert (memory < 1 << 20) == any(tmp_path.iterdir())
    del matrix, columns
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("memory", [1, 1 << 20])
@pytest.mark.parametrize("stride", [1, 4])
def test_gram_matrices(memory, stride):
    X, curvature = draw()
    curvature = curvature**2
    matrix = BlockMatrix(from_arrays(X, block_rows=10, memory=memory), X.dtype)
    matrix.columns(np.array([6, 2]))
    index = np.array([0, 2, 3, 6])
    columns, known = matrix.columns(index), DenseMatrix(X, X.dtype).columns(index)
    means = known.means(curvature)
    np.testing.assert_allclose(columns.means(curvature), means, rtol=1e-12)
    for centre in (None, means):
        np.testing.assert_allclose(
            columns.gram(curvature, centre, stride),
            known.gram(curvature, centre, stride),
            rtol=1e-11,
        )
    some = np.array([1, 3])
    np.testing.assert_array_equal(fetch(columns.part(some)), X[:, index[some]])
    assert columns.part(np.arange(4)) is columns


@pytest.mark.parametrize("in_units", [False, True])
def test_sparse_tables(in_units):
    X, residual = draw()
    units = units_of(X, centred=False) if in_units else None
    inside = X if units is None else units.apply(sp.csr_array(X)).toarray()
    matrix = BlockMatrix(from_arrays(sp.csr_array(X), block_rows=10), X.dtype, units)
    np.testing.assert_allclose(matrix.gradient(residual), inside.T @ residual, atol=1e-12)
    for index in ([5], [1, 5], [1, 2, 3, 5], []):
        columns = matrix.columns(np.array(index, dtype=int))
        np.testing.assert_allclose(
            columns.gradient(residual), inside[:, index].T @ residual, atol=1e-12
        )
        np.testing.assert_allclose(matrix.gradient(residual), inside.T @ residual, atol=1e-12)
    weights = np.zeros((D, K))
    weights[[1, 6]] = 1.0
    np.testing.assert_allclose(matrix.scores(weights), inside @ weights, atol=1e-12)


def test_large_means_keep_their_digits():
    X, residual = draw(np.float32)
    X += np.float32(1000.0)
    units = ColumnUnits(X.mean(axis=0, dtype=float), X.std(axis=0, dtype=float))
    matrix = BlockMatrix(from_arrays(X, block_rows=10, memory=1), X.dtype, units)
    exact = units.apply(X).astype(float).T @ residual.astype(float)
    np.testing.assert_allclose(matrix.gradient(residual), exact, atol=1e-5)


@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_bits_do_not_depend_on_workers(memory):
    X, residual = draw()
    weights = np.ones((D, K))
    found = []
    for count in (1, 2, 3):
        table = from_arrays(X, block_rows=5, executor=count, memory=memory)
        matrix = BlockMatrix(table, X.dtype, units_of(X))
        parts = matrix.gradient(residual), matrix.scores(weights), fetch(matrix.columns([2, 3]))
        found.append(np.concatenate([part.ravel() for part in parts]).tobytes())
    assert found[0] == found[1] == found[2]


def test_columns_are_gathered_once():
    X, residual = draw()
    source = CountedSource(X)
    source.reads = np.zeros(D, dtype=int)
    # Room for four columns.
    matrix = BlockMatrix(BlockTable(source, block_rows=10, memory=2 * 4 * 8 * N), X.dtype)
    matrix.columns(np.array([1, 2]))
    matrix.columns(np.array([1, 2, 5]))
    matrix.columns(np.array([2, 6]))
    assert (source.reads / N).tolist() == [0, 1, 1, 0, 0, 1, 1]
    # Most columns have been gathered: a gradient reads the others alone, as do scores.
    matrix.gradient(residual)
    weights = np.zeros((D, K))
    weights[[2, 5]] = 1.0
    matrix.scores(weights)
    assert (source.reads / N).tolist() == [1, 1, 1, 1, 1, 1, 1]


def test_large_arrays_by_row_are_in_files(tmp_path):
    scores = np.asfortranarray(np.random.default_rng(0).standard_normal((50, 3)))
    table = from_arrays(np.zeros((50, 2)), memory=32 * scores.nbytes - 1, folder=str(tmp_path))
    matrix = BlockMatrix(table, np.dtype(float))
    kept = matrix.keep_rows(scores)
    assert np.array_equal(kept, scores)
    assert kept.flags.f_contiguous
    assert type(kept) is np.ndarray
    base = kept
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not list(tmp_path.iterdir())  # the file has no name
    assert matrix.keep_rows(scores[:10]) is not kept
    small = scores[:40]
    assert matrix.keep_rows(small) is small

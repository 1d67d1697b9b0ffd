import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import ArraySource, Meter, Request, from_arrays, join_rows
from mixnorm.data.blocks.sources import AbsentRows, MappedRows, RowsNeeded

EVERYTHING = Request(slice(None), True, True)


def read(source, rows, request=EVERYTHING):
    """Return the only block of some rows."""
    (block,) = source.scan([rows], request, Meter())
    return block


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("block_rows", [1, 7, 64, 1000])
def test_blocks_are_rows_of_the_arrays(arrays, make, block_rows):
    X, y, weight = arrays
    table = from_arrays(make(X), y, weight, block_rows=block_rows, executor=1)
    assert table.sparse == sp.issparse(make(X))

    def take(block):
        return block.X.toarray() if table.sparse else block.X

    for columns in (slice(None), np.array([2, 0])):
        found = table.sum(take, columns=columns, combine=join_rows)
        assert found.dtype == np.float32
        assert np.array_equal(found, X[:, columns])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_workers_get_the_rows_that_they_ask_for(arrays, make):
    X, y, weight = arrays
    source, rows = ArraySource(make(X), y, weight), slice(20, 30)
    part = pickle.loads(pickle.dumps(source.part(rows)))
    assert isinstance(part, AbsentRows)
    assert len(pickle.dumps(part)) < 500
    request = Request(np.array([3, 1, 3]), target=True)
    with pytest.raises(RowsNeeded) as needed:
        read(part, rows, request)
    sent, inputs = source.deliver(rows, pickle.loads(pickle.dumps(needed.value)).request)
    assert not inputs
    sent = pickle.loads(pickle.dumps(sent)).receive([])
    found = read(sent, slice(23, 25), request)
    dense = found.X.toarray() if sp.issparse(found.X) else found.X
    assert np.array_equal(dense, X[23:25][:, [3, 1, 3]])
    assert np.array_equal(found.y, y[23:25])
    assert found.weight is None
    assert read(sent, rows, Request(None, True)).X is None
    for more in (Request(np.array([0])), Request(slice(None)), EVERYTHING, Request(weight=True)):
        with pytest.raises(RowsNeeded):
            read(sent, rows, more)
    sent, _ = source.deliver(rows, EVERYTHING)
    assert np.array_equal(read(sent, rows).weight, weight[20:30])


def test_memory_maps_travel_as_places(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.arange(4000.0).reshape(1000, 4))
    X = np.load(path, mmap_mode="r")
    sent, _ = ArraySource(X).deliver(slice(100, 900), Request(np.array([2])))
    packed = pickle.dumps(sent)
    assert len(packed) < 1000
    found = read(pickle.loads(packed), slice(300, 400), Request(np.array([2])))
    assert np.array_equal(found.X, X[300:400][:, [2]])
    # Parts of a map, and maps whose rows do not lie together, travel as copies.
    private = np.load(path, mmap_mode="c")
    private[7, 1] = 5.0  # in this process alone
    by_column = np.memmap(path, mode="r", shape=(5, 4), order="F")
    for other in (X[500:], np.asfortranarray(X), private, private[2:], by_column):
        assert not isinstance(other, np.memmap) or MappedRows.of(other, slice(0, 5)) is None
        sent, _ = ArraySource(other).deliver(slice(2, 4), EVERYTHING)
        assert np.array_equal(read(pickle.loads(pickle.dumps(sent)), slice(2, 4)).X, other[2:4])


def test_rows_that_do_not_fit_are_errors():
    with pytest.raises(ValueError, match="y has 2 rows, but X has 3"):
        from_arrays(np.ones((3, 1)), np.ones(2))

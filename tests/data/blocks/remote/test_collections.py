"""Dask collections without a cluster; ``test_cluster.py`` has those on one."""

import numpy as np
import pytest

from mixnorm.data import ALL_COLUMNS, find_table, from_arrays
from mixnorm.exceptions import TableError

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def kinds(arrays):
    """The table as Dask collections of several kinds."""
    X, y, weight = arrays
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=weight)
    frame = dd.from_pandas(frame, npartitions=3)
    lazy = da.from_array(X, chunks=(33, 3))
    unknown = lazy[da.from_array(np.ones(100, dtype=bool), chunks=33)]
    return [
        (lazy, da.from_array(y, chunks=40), da.from_array(weight, chunks=100)),
        (unknown, y, weight),
        (frame[list("abcd")], frame["y"], frame["w"]),
        (frame[list("abcd")], frame["y"].astype("category"), pd.Series(weight)),
    ]


@pytest.mark.parametrize("block_rows", [1, 7, 64, 1000])
def test_blocks_are_those_of_the_arrays(kinds, arrays, read_rows, block_rows):
    for collections in kinds[: 1 if block_rows == 1 else None]:
        table = from_arrays(*collections, block_rows=block_rows, executor=2)
        for columns in (ALL_COLUMNS, np.array([2, 0])):
            X, y, weight = read_rows(table, columns)
            assert X.dtype == np.float32
            assert np.array_equal(X, arrays[0][:, columns])
            assert np.array_equal(y, arrays[1])
            assert np.array_equal(weight, arrays[2])


def test_sums_are_those_of_the_arrays(kinds, arrays, add_products):
    expected = add_products(
        from_arrays(np.asfortranarray(arrays[0]), *arrays[1:], block_rows=7, executor=1)
    )
    for collections in kinds:
        for threads in (1, 3):
            found = add_products(from_arrays(*collections, block_rows=7, executor=threads))
            assert all(map(np.array_equal, found, expected))


def test_partitions_are_computed_once_and_by_columns(arrays):
    computed = []

    def note(block):
        computed.append(block.shape)
        return block

    X = da.from_array(arrays[0], chunks=(50, 2)).map_blocks(note, meta=np.empty((0, 0), "f4"))
    table = from_arrays(X, block_rows=10, executor=1)
    computed.clear()
    table.sum(lambda block: block.X.sum(), columns=np.array([1]))
    assert computed == [(50, 2), (50, 2)]


def test_estimators_find_a_table(kinds):
    table = find_table(*kinds[2])
    assert table.names == ("a", "b", "c", "d")
    assert table.shape == (100, 4)
    assert table.source.describe(slice(40, 50)) == "partition 1, rows 40 to 49"


def test_errors_say_what_is_wrong(arrays, read_rows):
    X, y, weight = arrays
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2], "b": ["x", None]}), npartitions=1)
    with pytest.raises(TableError, match="Column 'b' of X is of type"):
        from_arrays(frame)
    with pytest.raises(TableError, match=r"y has a missing value \(partition 0, rows 0 to 1\)"):
        read_rows(from_arrays(frame[["a"]], frame["b"], executor=1))
    lazy = da.from_array(X, chunks=33)
    with pytest.raises(ValueError, match="y has 99 rows, but X has 100"):
        from_arrays(lazy, y[1:])
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        from_arrays(lazy[0])
    with pytest.raises(TableError, match="no rows"):
        from_arrays(lazy[:0])
    bad = da.from_array(np.where(weight == weight[40], -1.0, weight), chunks=50)
    with pytest.raises(TableError, match=r"Weight 0 is -1.0 \(partition 1, rows 40 to 49\)"):
        read_rows(from_arrays(lazy, y, bad, block_rows=10, executor=1))


def test_partitions_that_change_are_errors():
    frame = dd.from_pandas(pd.DataFrame({"a": np.arange(10.0)}), npartitions=2)
    calls = []

    def shorten(part):
        calls.append(1)
        return part.iloc[: len(part) if len(calls) < 5 else 2]

    table = from_arrays(frame.map_partitions(shorten, meta=frame), executor=1)
    calls += [1] * 5
    with pytest.raises(TableError, match="Partition 0 of X has 2 rows, and had 5 before"):
        table.sum(lambda block: block.X.sum(), columns=ALL_COLUMNS)

"""Blocks in order, read one ahead, and rows drawn at random."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import ArraySource, BlockTable, from_arrays
from mixnorm.data.blocks.order import read_ahead

X = np.arange(60.0).reshape(20, 3)


class CountingSource(ArraySource):
    """Counts the blocks that are read."""

    read = 0

    def scan(self, rows, request, meter):
        for block in super().scan(rows, request, meter):
            self.read += 1
            meter.bytes_read += 100
            yield block


def threads_ahead():
    return [each for each in threading.enumerate() if each.name.startswith("mixnorm-ahead")]


def test_blocks_come_in_order_with_targets_and_weights():
    table = from_arrays(X, np.arange(20), np.ones(20), block_rows=6)
    blocks = list(table.iterate(target=True))
    assert [block.rows for block in blocks] == table.blocks
    assert [block.number for block in blocks] == [0, 1, 2, 3]
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), np.arange(20))
    assert sum(block.weight.sum() for block in blocks) == 20.0


def test_only_what_is_asked_for_is_read():
    table = from_arrays(X, np.arange(20), block_rows=6)
    (first, *_) = table.iterate(columns=np.array([2, 0]))
    np.testing.assert_array_equal(first.X, X[:6, [2, 0]])
    assert first.y is None
    (first, *_) = table.iterate(columns=None, target=True)
    assert first.X is None
    np.testing.assert_array_equal(first.y, np.arange(6))


def test_one_block_is_read_ahead_and_no_more():
    source = CountingSource(X)
    table, seen = BlockTable(source, block_rows=2), []
    table.on_progress = lambda done, whole: seen.append((done, whole))
    for count, _ in enumerate(table.iterate(), start=1):
        assert source.read <= count + 1
        if count == 4:
            break
    assert source.read <= 5
    assert threads_ahead() == []
    assert seen == [(1, 10), (2, 10), (3, 10)]
    assert table.bytes_read == 400


def test_an_error_comes_where_its_block_would():
    def make():
        yield from "ab"
        raise OSError("the disk is gone")

    found = read_ahead(make())
    assert [next(found), next(found)] == ["a", "b"]
    with pytest.raises(OSError, match="the disk is gone"):
        next(found)
    assert threads_ahead() == []


@pytest.mark.parametrize("given", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_a_sample_is_the_same_for_any_executor_and_blocks(given):
    y, weight = np.arange(20), np.linspace(0.0, 1.0, 20)
    found = [
        from_arrays(given, y, weight, block_rows=rows, executor=executor).sample(7, 3)
        for rows, executor in [(3, 1), (3, 2), (1, 2), (100, 1)]
    ]
    rows = found[0][1]
    assert len(set(rows.tolist())) == 7
    assert sorted(rows) == rows.tolist()
    for columns, targets, weights in found:
        np.testing.assert_array_equal(targets, rows)
        np.testing.assert_array_equal(weights, weight[rows])
        assert sp.issparse(columns) == sp.issparse(given)
        np.testing.assert_array_equal(
            columns[:].toarray() if sp.issparse(columns) else columns, X[rows]
        )


def test_a_sample_has_nothing_that_the_table_lacks():
    columns, y, weight = from_arrays(X, block_rows=3).sample(20)
    np.testing.assert_array_equal(columns, X)
    assert y is None
    assert weight is None


@pytest.mark.parametrize(
    ("n", "random_state", "message"),
    [
        (21, 0, "n=21 rows are to be drawn from 20; give at most 20"),
        (0, 0, "n=0"),
        (3, -1, "random_state=-1 is not a seed"),
    ],
)
def test_impossible_samples(n, random_state, message):
    with pytest.raises(ValueError, match=message):
        from_arrays(X).sample(n, random_state)

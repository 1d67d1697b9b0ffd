import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from mixnorm.data import ALL_COLUMNS, from_arrays, join_rows, read_parquet


@dataclass(frozen=True)
class Halves:
    """A recipe of rows: half of some columns."""

    keys: tuple[int, ...]

    def columns(self, keys):
        return np.array(keys)

    def make(self, X, keys):
        assert X.shape[1] == len(keys)
        return np.ascontiguousarray(X.T) / 2


@dataclass(frozen=True)
class Lengths:
    """Targets in another form: the lengths of labels."""

    key: str = "lengths"

    def make(self, y):
        return np.char.str_len(y)


def take_made(block):
    return block.made.T.copy(), np.asarray(block.X), block.y, block.weight


@pytest.mark.parametrize("memory", ["1 GiB", 3000, 1])
@pytest.mark.parametrize("executor", [1, 2])
def test_recipes_are_made_once_per_block(arrays, parquet, tmp_path, memory, executor):
    X, y, weight = arrays
    options = {"block_rows": 9, "memory": memory, "executor": executor, "folder": str(tmp_path)}
    for table in (
        from_arrays(X, y, weight, **options),
        read_parquet(parquet, "y", "w", **options),
    ):
        for keys in ((1,), (1, 3), (3, 1), (0, 1, 2, 3), (2,)):
            for columns in (np.array([2]), ALL_COLUMNS, np.array([0, 1])):
                made, read, target, found = table.sum(
                    take_made, columns=columns, target=Lengths(), recipe=Halves(keys),
                    combine=join_rows,
                )  # fmt: skip
                assert np.array_equal(made, X[:, keys] / 2)
                assert np.array_equal(read, X[:, columns])
                assert np.array_equal(target, np.char.str_len(y))
                assert np.array_equal(found, weight)
        before = table.bytes_read
        again = table.sum(
            lambda block: block.made.sum() + block.y.sum() + block.weight.sum(),
            target=Lengths(), recipe=Halves((3, 0)),
        )  # fmt: skip
        assert again == pytest.approx((X[:, [3, 0]] / 2).sum() + made_sum(y, weight), rel=1e-5)
        assert table.bytes_read == before
        assert any(tmp_path.rglob("*.rows")) == (memory == 1 or memory == 3000)
        table.forget()
        assert not any(tmp_path.iterdir())


def made_sum(y, weight):
    return np.char.str_len(y).sum() + weight.sum()


def test_arrays_beside_the_table_come_by_blocks(arrays):
    X, y, _ = arrays
    table = from_arrays(X, y, block_rows=9, executor=2)
    rows, ones = np.arange(100.0), np.ones((100, 2))
    found = list(
        table.scan(lambda block: [each.sum() for each in block.beside], beside=(rows, ones))
    )
    assert [each for each, _ in found] == table.blocks
    assert [value[0] for _, value in found] == [rows[each].sum() for each in table.blocks]
    assert sum(value[1] for _, value in found) == 200


def test_progress_counts_blocks(arrays):
    table = from_arrays(arrays[0], block_rows=9, executor=1)
    seen = []
    table.on_progress = lambda done, all_blocks: seen.append((done, all_blocks))
    table.sum(lambda block: block.size)
    assert seen[-1] == (12, 12)
    assert sorted(seen) == seen


def test_wide_tables_have_fewer_rows_in_a_block():
    assert from_arrays(np.zeros((1, 10))).block_rows == 65_536
    assert from_arrays(np.zeros((1, 10_000))).block_rows < 2000
    with pytest.raises(ValueError, match="block_rows=0 must be at least 1"):
        from_arrays(np.zeros((1, 1)), block_rows=0)


def test_fits_keep_rows_apart(arrays, tmp_path):
    X, y, weight = arrays
    table = from_arrays(X, y, weight, block_rows=9, memory=1, folder=str(tmp_path))
    one, other = table.for_one_fit(), table.for_one_fit()
    for each in (one, other):
        each.sum(lambda block: block.made.sum(), columns=ALL_COLUMNS, recipe=Halves((1,)))
    assert table.full_reads == one.full_reads == 2
    assert len(list(tmp_path.iterdir())) == 2
    one.forget()
    assert len(list(tmp_path.iterdir())) == 1
    del other, each
    assert not any(tmp_path.iterdir())


def test_a_table_is_no_array(arrays):
    table = from_arrays(arrays[0], block_rows=9)
    assert repr(table) == "BlockTable(shape=(100, 4), n_blocks=12)"
    for take in (np.asarray, StandardScaler().fit, GridSearchCV(Ridge(), {}).fit):
        with pytest.raises(TypeError, match=r"not an array, .* table\.sample"):
            take(table)
    assert len(pickle.loads(pickle.dumps(table))) == 100


@pytest.mark.parametrize("name", ["folder", "checkpoint"])
def test_paths_are_checked(name):
    with pytest.raises(TypeError, match=f"{name}=3 must be a path, got int"):
        from_arrays(np.zeros((1, 1)), **{name: 3})
    with pytest.raises(ValueError, match=f"{name}='' is empty"):
        from_arrays(np.zeros((1, 1)), **{name: ""})

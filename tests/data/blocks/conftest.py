"""What the tests of tables of blocks share."""

import numpy as np
import pytest

from mixnorm.data import join_rows


@pytest.fixture(scope="session")
def arrays():
    """A small table: columns, labels and weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 4)).astype(np.float32)
    return X, np.array(["a", "bb", "ccc"])[rng.integers(0, 3, 100)], rng.random(100)


@pytest.fixture(scope="session")
def parquet(arrays, tmp_path_factory):
    """The table in two Parquet files, with small row groups and an empty one."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y, weight = arrays
    table = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "y": y, "w": weight})
    folder = tmp_path_factory.mktemp("parquet")
    with pq.ParquetWriter(folder / "part.2.parquet", table.schema) as writer:
        for start, stop in ((0, 30), (30, 30), (30, 41)):
            writer.write_table(table.slice(start, stop - start))
    # The columns of the second file are in another order.
    names = ["w", "x3", "x0", "y", "x1", "x2"]
    pq.write_table(table.slice(41).select(names), folder / "part.10.parquet", row_group_size=13)
    return folder


@pytest.fixture(scope="session")
def read_rows():
    """A function that reads all rows of a table."""

    # Local functions reach the workers of a cluster, which cannot import the tests.
    def take_all(block):
        return np.asarray(block.X), block.y, block.weight

    def read(table, columns=slice(None)):
        return table.sum(take_all, columns=columns, target=True, combine=join_rows)

    return read


@pytest.fixture(scope="session")
def add_products():
    """A function whose sum depends in its last bits on the order of additions."""

    def multiply(block):
        X = np.asarray(block.X)
        return X.T @ X, np.exp(X).sum(axis=0), float(block.weight @ X[:, 0])

    def add_up(table):
        return table.sum(multiply, columns=slice(None))

    return add_up

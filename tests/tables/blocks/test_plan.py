"""Plans of tables in files are those of the same tables in memory."""

import itertools

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from mixnorm.data import BlockTable, Meter, Request  # noqa: E402
from mixnorm.exceptions import TableError  # noqa: E402
from mixnorm.tables import (  # noqa: E402
    EncodedRows,
    FileRows,
    TableEncoder,
    plan_blocks,
    plan_target,
    read_target,
)
from mixnorm.tables.blocks import plan as plan_module  # noqa: E402
from mixnorm.tables.blocks import summary  # noqa: E402


def make_frame(rows=300):
    """A table with columns of all kinds."""
    rng = np.random.default_rng(0)
    number = rng.gamma(2.0, 20.0, rows).round(2)
    sex = rng.choice(["male", "female"], rows)
    return pd.DataFrame(
        {
            "id": np.arange(5, rows + 5),
            "key": rng.permutation(rows) * 3,
            "name": [f"Person {row}" for row in range(rows)],
            "sex": sex,
            "other_sex": np.where(sex == "male", "m", "f"),
            "age": np.where(rng.random(rows) < 0.2, np.nan, rng.integers(1, 80, rows)),
            "fare": number,
            "price": number,
            "count": rng.integers(0, 9, rows),
            "year": rng.integers(1990, 2010, rows),
            "cabin": np.where(rng.random(rows) < 0.7, None, rng.choice(list("ABC"), rows)),
            "seen": pd.date_range("2012-04-01", periods=rows, freq="7h"),
            "told": pd.date_range("2012-04-01", periods=rows, freq="2D").strftime("%d.%m.%Y"),
            "amount": [f"1.{row % 97:03d},{row % 10}" for row in range(rows)],
            "flag": rng.random(rows) < 0.5,
            "doubt": rng.choice([True, False, None], rows).tolist(),
            "kind": pd.Categorical(rng.choice(["x", "y", "z"], rows)),
            "ship": "Titanic",
            "nothing": None,
            "lone": np.where(np.arange(rows) < rows - 3, "often", "last"),
            "huge": np.where(rng.random(rows) < 0.1, np.inf, rng.normal(size=rows) * 1e9),
            "many": [f"level {int(place)}" for place in rng.exponential(20, rows)],
        }
    )


def write(frame, folder, files=3, groups=40):
    """Write a table as several files of several row groups."""
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    edges = np.linspace(0, len(frame), files + 1).astype(int)
    for place, (start, stop) in enumerate(itertools.pairwise(edges)):
        part = table.slice(start, stop - start)
        pq.write_table(part, folder / f"part.{place}.parquet", row_group_size=groups)
    return folder


def make_table(source):
    return BlockTable(source, block_rows=64, executor=1)


def plain(frame, folder):
    """Return the table as the command line reads it from one file."""
    from mixnorm.tables import read_table

    path = folder / "whole.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return read_table(path).frame


def check_equal(plan, rows, frame, **kinds):
    expected = TableEncoder.plan(frame, **kinds)
    assert plan.encoder == expected
    matrix, gaps = expected.encode(frame)
    found = {name: gap for name, gap in gaps.items() if gap.missing or gap.strange or gap.infinite}
    assert {name: (gap.missing, gap.strange, gap.infinite) for name, gap in plan.gaps.items()} == {
        name: (gap.missing, gap.strange, gap.infinite) for name, gap in found.items()
    }
    return matrix


def test_the_plan_is_that_of_the_table_in_memory(tmp_path):
    frame = make_frame()
    files = FileRows.open(write(frame, tmp_path / "parts"))
    plan = plan_blocks(files, make_table)
    check_equal(plan, files, plain(frame, tmp_path))
    assert len(plan.encoder.left_out) > 5
    assert plan.notes == []


def test_single_precision_is_kept(tmp_path):
    frame = make_frame(90)[["age", "count", "sex"]].astype({"age": np.float32})
    frame["age"] *= np.float32(0.1)
    files = FileRows.open(write(frame, tmp_path / "parts"))
    plan = plan_blocks(files, make_table)
    check_equal(plan, files, plain(frame, tmp_path))
    assert plan.encoder.dtype == "float32"
    frame["count"] *= 0.1
    files = FileRows.open(write(frame, tmp_path / "parts"))
    plan = plan_blocks(files, make_table)
    check_equal(plan, files, plain(frame, tmp_path))
    assert plan.encoder.dtype == "float64"


def test_named_kinds(tmp_path):
    frame = make_frame(120)
    kinds = {"numbers": ["id", "name", "doubt"], "categories": ["count", "year", "kind", "flag"]}
    files = FileRows.open(write(frame, tmp_path / "parts"))
    check_equal(plan_blocks(files, make_table, **kinds), files, plain(frame, tmp_path), **kinds)


def test_the_matrix_is_that_of_the_table_in_memory(tmp_path):
    frame = make_frame()
    frame["y"] = np.where(np.arange(300) % 7 == 3, None, frame["sex"])
    files = FileRows.open(write(frame, tmp_path / "parts"))
    target = plan_target(files, make_table, "y", None, "count")
    read = plain(frame, tmp_path)
    expected = read_target(read["y"])
    assert target.notes == expected.notes
    rows = target.rows.select([name for name in files.names if name not in ("y", "count")])
    plan = plan_blocks(rows, make_table)
    kept = read.drop(columns=["y", "count"]).iloc[expected.rows]
    matrix = check_equal(plan, rows, kept)
    source = EncodedRows(target.rows, plan.encoder, target.reader, target.weight)
    table = make_table(source)
    blocks = list(table.iterate(target=True))
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), matrix)
    assert blocks[0].X.dtype == matrix.dtype
    assert blocks[0].X.flags.f_contiguous
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), expected.values)
    weights = np.concatenate([block.weight for block in blocks])
    np.testing.assert_array_equal(weights, frame["count"].to_numpy()[expected.rows])
    # Some columns, of some rows, by what travels to a worker.
    places, here = np.array([5, 2, 9]), slice(150, 200)
    part = source.part(here)
    found = next(part.scan([here], Request(places, target=True), Meter()))
    np.testing.assert_array_equal(found.X, matrix[here][:, places])
    np.testing.assert_array_equal(found.y, expected.values[here])


def test_large_tables_use_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(plan_module, "MOST_SAMPLED", 50)
    monkeypatch.setattr(summary, "MOST_COUNTED", 60)
    monkeypatch.setattr(summary, "_HASHES", 32)
    frame = make_frame()
    files = FileRows.open(write(frame, tmp_path / "parts"))
    plan = plan_blocks(files, make_table)
    expected = TableEncoder.plan(plain(frame, tmp_path))
    assert plan.encoder.names == expected.names
    first = [kind.split()[0] for kind in plan.encoder.kinds]
    assert first == [kind.split()[0] for kind in expected.kinds]
    assert plan.encoder.dtype == expected.dtype
    assert any("Medians are those of 50 of 300 rows" in note for note in plan.notes)
    assert any("amount has about" in note for note in plan.notes)
    age = plan.encoder.columns[plan.encoder.names.index("age")]
    assert abs(age.fill - np.nanmedian(frame["age"])) < 15


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 1, 2, None] * 20,
        np.arange(100) / 7,
        [True, False] * 50,
        ["1,5", "2,5", None, "-", "3,25"] * 20,
        [f"{row}" for row in range(100)],
        ["none", "some"] * 50,
        np.repeat([0.5, 1.5], 50),
    ],
)
@pytest.mark.parametrize("task", [None, "classification", "regression"])
def test_targets_are_those_of_the_table_in_memory(tmp_path, values, task):
    frame = pd.DataFrame({"y": values, "x": np.arange(100)})
    files = FileRows.open(write(frame, tmp_path / "parts"))
    try:
        expected = read_target(plain(frame, tmp_path)["y"], task)
    except TableError as error:
        with pytest.raises(TableError, match=f"^{str(error)[:30]}"):
            plan_target(files, make_table, "y", task, None)
        return
    found = plan_target(files, make_table, "y", task, None)
    assert (found.task, found.notes) == (expected.task, expected.notes)
    empty = EncodedRows(found.rows, TableEncoder.plan(frame[["x"]]), found.reader)
    y = np.concatenate([block.y for block in make_table(empty).iterate(target=True)])
    np.testing.assert_array_equal(y, expected.values)
    assert y.dtype.kind == expected.values.dtype.kind

import pickle
import subprocess
import sys

import numpy as np
import pytest

from mixnorm.data import from_arrays, read_parquet
from mixnorm.exceptions import TableError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path, rows=None, **columns):
    """Write a file of columns, by default with two row groups of three rows."""
    table = pa.table(columns)
    pq.write_table(table, path, row_group_size=rows or 3)
    return path


@pytest.mark.parametrize("block_rows", [1, 7, 64, 1000])
def test_blocks_are_those_of_the_arrays(parquet, arrays, read_rows, block_rows):
    table = read_parquet(parquet, "y", "w", block_rows=block_rows, executor=1)
    assert table.shape == (100, 4)
    assert table.names == ("x0", "x1", "x2", "x3")
    same = from_arrays(*arrays, block_rows=block_rows, executor=1)
    for columns in (slice(None), np.array([2, 0, 2]), np.array([], dtype=int)):
        for one, other in zip(read_rows(table, columns), read_rows(same, columns), strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)


def test_blocks_have_columns_that_lie_together(parquet):
    table = read_parquet(parquet, "y", columns=["x2", "x0"], block_rows=33, executor=1)
    assert table.names == ("x2", "x0")
    assert table.sum(lambda b: int(b.X.flags.f_contiguous), columns=slice(None)) == 4


def test_sums_do_not_depend_on_threads(parquet, add_products):
    found = [
        add_products(read_parquet(parquet, "y", "w", block_rows=7, executor=n)) for n in (1, 2, 3)
    ]
    for other in found[1:]:
        assert all(map(np.array_equal, found[0], other))


def test_a_table_is_a_path_a_pattern_or_a_list(parquet):
    one, two = parquet / "part.2.parquet", parquet / "part.10.parquet"
    for path in (parquet, str(parquet / "*.parquet"), [one, two], str(parquet / "p*2*")):
        table = read_parquet(path, "y", executor=1, block_rows=50)
        assert len(table) == (41 if "2" in str(path)[-3:] else 100)
        # In natural order: part.2 comes first.
        assert table.source.describe(slice(31, 32)) == f"{one}, row group 2, from its row 1 on"


def test_projection_reads_fewer_bytes(tmp_path):
    rng = np.random.default_rng(0)
    path = write(tmp_path / "a.parquet", 2000, **{f"x{j}": rng.random(8000) for j in range(5)})
    size = path.stat().st_size

    def read(columns, **options):
        table = read_parquet(path, executor=1, **options)
        table.sum(lambda block: block.X.sum(), columns=columns)
        return table.bytes_read

    everything = read(slice(None), block_rows=2000)
    assert 0.9 * size < everything < size
    assert read(np.array([1]), block_rows=2000) < 0.25 * everything
    # Blocks inside a row group do not make it count twice.
    assert read(slice(None), block_rows=500) == everything
    table = read_parquet(path, executor=1, block_rows=2000)
    table.sum(lambda block: block.size)
    assert table.bytes_read == 0


def test_tasks_share_few_row_groups(parquet):
    source = read_parquet(parquet, block_rows=5, columns=["x0"]).source
    blocks = [slice(start, start + 5) for start in range(0, 100, 5)]
    ranges = source.ranges(blocks)
    assert ranges[:3] == [range(6), range(6, 9), range(9, 11)]
    assert [place for each in ranges for place in each] == list(range(20))
    split = source.ranges(blocks, 14)
    assert len(split) > len(ranges)
    assert [place for each in split for place in each] == list(range(20))


def test_a_part_holds_the_files_of_its_rows(parquet, arrays):
    source = read_parquet(parquet, "y", "w").source
    part = pickle.loads(pickle.dumps(source.part(slice(50, 60))))
    assert len(pickle.dumps(part)) < len(pickle.dumps(source)) < 2000
    from mixnorm.data import Meter, Request

    (block,) = part.scan([slice(50, 60)], Request(slice(None), True, True), Meter())
    for found, expected in zip(block, arrays, strict=True):
        assert np.array_equal(found, expected[50:60])


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        ({"a": np.float32([1]), "b": np.int16([1]), "c": [True]}, np.float32),
        ({"a": np.float16([1]), "b": np.uint8([1])}, np.float32),
        ({"a": np.int32([1])}, np.float64),
        ({"a": np.float32([1]), "b": [0.1]}, np.float64),
        ({"a": pa.array([1], pa.decimal128(5, 2))}, np.float64),
        ({"a": pa.array([1.0], pa.float32()).dictionary_encode()}, np.float32),
    ],
)
def test_dtype_holds_all_numbers(tmp_path, read_rows, columns, dtype):
    table = read_parquet(write(tmp_path / "a.parquet", **columns), executor=1)
    assert table.dtype == dtype
    X = read_rows(table)[0]
    assert X.dtype == dtype
    assert np.array_equal(X[0], [float(np.asarray(each)[0]) for each in columns.values()])


def test_files_may_have_numbers_of_other_widths(tmp_path, read_rows):
    write(tmp_path / "a.parquet", x=np.float32([1, 2]), y=np.int8([0, 1]))
    write(tmp_path / "b.parquet", x=np.int64([3]), y=np.int64([2]))
    write(tmp_path / "c.parquet", x=np.float32([]), y=np.int8([]))
    X, y, _ = read_rows(read_parquet(tmp_path, "y", block_rows=2, executor=1))
    assert X.dtype == np.float64
    assert X.ravel().tolist() == [1, 2, 3]
    assert y.dtype == np.int64
    assert y.tolist() == [0, 1, 2]


def test_labels_are_texts_also_with_codes(tmp_path, read_rows):
    write(tmp_path / "a.parquet", x=[1.0, 2, 3, 4], y=["b", "a", "b", "ccc"])
    write(tmp_path / "b.parquet", x=[5.0], y=pa.array(["d"]).dictionary_encode())
    table = read_parquet(tmp_path, "y", block_rows=2, executor=1)
    assert read_rows(table)[1].tolist() == ["b", "a", "b", "ccc", "d"]


def test_several_targets_are_a_matrix(tmp_path, read_rows):
    path = write(tmp_path / "a.parquet", x=[1.0, 2], y=[1, 2], z=[0.5, 0.25])
    assert np.array_equal(read_rows(read_parquet(path, ["z", "y"]))[1], [[0.5, 1], [0.25, 2]])
    assert read_rows(read_parquet(path, ["y"]))[1].shape == (2, 1)


def test_the_index_of_a_data_frame_is_no_feature(tmp_path):
    path = write(tmp_path / "a.parquet", x=[1.0, 2], __index_level_0__=[5, 6])
    assert read_parquet(path).names == ("x",)


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("x", "a.parquet, row group 1: column 'x' has a missing value (row 2 of the row group)"),
        ("y", "a.parquet, row group 1: target 'y' has a missing value (row 2 of the row group)"),
        ("w", "a.parquet, row group 1: weight 'w' has a missing value (row 2 of the row group)"),
    ],
)
@pytest.mark.parametrize("executor", [1, 2])
def test_missing_values_are_named(tmp_path, read_rows, role, message, executor):
    columns = {"x": [0.0] * 6, "y": ["a"] * 6, "w": [1.0] * 6}
    columns[role] = [*columns[role][:5], None]
    path = write(tmp_path / "a.parquet", **columns)
    table = read_parquet(path, "y", "w", block_rows=2, executor=executor)
    with pytest.raises(TableError) as error:
        read_rows(table)
    assert message in str(error.value)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_weights_are_named(tmp_path, read_rows, weight):
    path = write(tmp_path / "a.parquet", x=[0.0] * 6, w=[0.0] * 4 + [weight, 1.0])
    with pytest.raises(TableError, match="row group 1: weight 'w' is .*row 1 of the row group"):
        read_rows(read_parquet(path, weight="w", executor=1))


def test_a_truncated_file_is_named(parquet, tmp_path, read_rows):
    path, data = tmp_path / "a.parquet", (parquet / "part.2.parquet").read_bytes()
    for content in (data[:-20], data[:3], b"", b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(TableError, match="a.parquet cannot be read as Parquet"):
            read_parquet(path)
    path.write_bytes(data)
    table = read_parquet(path, "y", executor=1)
    path.write_bytes(data[:-20])
    with pytest.raises(TableError, match="a.parquet cannot be read as Parquet"):
        read_rows(table)
    path.unlink()
    with pytest.raises(TableError, match="a.parquet cannot be read .No such file"):
        read_rows(table)


def test_a_damaged_column_is_named(tmp_path, read_rows):
    rng = np.random.default_rng(0)
    path = write(tmp_path / "a.parquet", 50, x=rng.random(100), z=rng.integers(0, 9, 100))
    data, found = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(1).column(1)
    start = found.dictionary_page_offset or found.data_page_offset
    data[start : start + found.total_compressed_size] = b"\xff" * found.total_compressed_size
    path.write_bytes(data)
    with pytest.raises(TableError, match="a.parquet, row group 1, column 'z', cannot be read"):
        read_rows(read_parquet(path, executor=1))


def test_a_file_that_has_changed_is_named(tmp_path, read_rows):
    path = write(tmp_path / "a.parquet", x=[1.0, 2])
    table = read_parquet(path, executor=1)
    write(path, x=[1.0, 2, 3])
    with pytest.raises(TableError, match="a.parquet has changed since the table was made"):
        read_rows(table)


def test_files_that_do_not_fit_together(tmp_path):
    write(tmp_path / "a.parquet", x=[1.0], z=[1.0], y=[1])
    other = write(tmp_path / "b.parquet", x=[1.0], y=[1])
    with pytest.raises(TableError, match=r"b.parquet has no column 'z', which .*a.parquet has"):
        read_parquet(tmp_path, "y")
    assert read_parquet(tmp_path, "y", columns=["x"]).shape == (2, 1)
    write(other, x=[1.0], y=[1], z=[1.0], more=[1.0])
    with pytest.raises(TableError, match=r"b.parquet has a column 'more', which .*a.parquet lacks"):
        read_parquet(tmp_path, "y")
    write(other, x=["1.0"], y=[1], z=[1.0])
    with pytest.raises(TableError, match=r"b.parquet: column 'x' is of type string, but features"):
        read_parquet(tmp_path, "y")
    write(other, x=[1.0], y=["1"], z=[1.0])
    with pytest.raises(TableError, match=r"b.parquet: target 'y' is of type string, unlike"):
        read_parquet(tmp_path, "y")


def test_unknown_and_doubled_names(parquet, tmp_path):
    with pytest.raises(TableError, match=r"no column 'xx0' \(target\). Did you mean 'x"):
        read_parquet(parquet, "xx0")
    with pytest.raises(TableError, match=r"no column 'weight' \(weight\). Its columns are 'x0'"):
        read_parquet(parquet, weight="weight")
    with pytest.raises(TableError, match=r"no column 'zz' \(columns\)"):
        read_parquet(parquet, columns=["zz"])
    with pytest.raises(ValueError, match="which is also the target"):
        read_parquet(parquet, "x1", columns=["x0", "x1"])
    with pytest.raises(ValueError, match="names a column twice"):
        read_parquet(parquet, columns=["x0", "x0"])
    with pytest.raises(ValueError, match="two columns"):
        read_parquet(parquet, "x1", "x1")
    with pytest.raises(TypeError, match="must be a list of names"):
        read_parquet(parquet, columns="x0")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(TableError, match="several columns with the name 'x'"):
        read_parquet(tmp_path)


def test_types_that_are_no_numbers(tmp_path):
    dates = np.array(["2026-01-01"], dtype="datetime64[s]")
    path = write(tmp_path / "a.parquet", x=[1.0], day=dates, t=["a"])
    with pytest.raises(TableError, match="column 'day' is of type timestamp"):
        read_parquet(path, "t")
    with pytest.raises(TableError, match="target 'day' is of type timestamp"):
        read_parquet(path, "day", columns=["x"])
    with pytest.raises(
        TableError, match="column 't' is of type string, but weights must .* Convert"
    ):
        read_parquet(path, weight="t", columns=["x"])


def test_nothing_to_read(tmp_path):
    with pytest.raises(TableError, match="holds no Parquet files"):
        read_parquet(tmp_path)
    with pytest.raises(TableError, match="does not exist"):
        read_parquet(tmp_path / "none.parquet")
    with pytest.raises(TableError, match="matches no Parquet files"):
        read_parquet(str(tmp_path / "*.parquet"))
    with pytest.raises(TableError, match="list of Parquet files is empty"):
        read_parquet([])
    with pytest.raises(TypeError, match="must be a file, a folder"):
        read_parquet(3)
    with pytest.raises(TypeError, match="target=3 must be the name of a column"):
        read_parquet(write(tmp_path / "a.parquet", x=[1.0]), 3)
    with pytest.raises(TypeError, match=r"weight=\['x'\] must be the name"):
        read_parquet(tmp_path, weight=["x"])
    write(tmp_path / "a.parquet", x=np.float64([]), y=np.float64([]))
    with pytest.raises(TableError, match="has no rows"):
        read_parquet(tmp_path)
    write(tmp_path / "b.parquet", y=[1.0])
    with pytest.raises(TableError, match="no columns beside the target"):
        read_parquet(tmp_path, "y")
    # Hidden files are no part of a folder.
    write(tmp_path / "_c.parquet", z=[1.0])
    assert len(read_parquet(tmp_path)) == 1


def test_pyarrow_and_dask_are_not_imported_without_need():
    code = (
        "import sys, numpy as np, mixnorm.data as data\n"
        "table = data.from_arrays(np.ones((9, 2)), np.ones(9))\n"
        "table.sum(lambda block: block.X.sum(), columns=slice(None))\n"
        "print([name for name in ('pyarrow', 'dask', 'distributed') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_the_package_to_install_is_named(monkeypatch, parquet):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(TableError, match=r'pip install "mixnorm\[cli\]"'):
        read_parquet(parquet)

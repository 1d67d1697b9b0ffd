"""Packed files, Parquet and LIBSVM, and all the places that tables come from."""

import bz2
import datetime as dt
import decimal
import gzip
import io
import lzma
import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from mixnorm.exceptions import TableError
from mixnorm.tables import SparseTable, read_table, sniff

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def parquet(table, **options):
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), file, **options)
    return file.getvalue()


# -- packed files ------------------------------------------------------------------------------

TEXT = b"a,b\n" + b"".join(b"%d,%d\n" % (row, row * 7919 % 1000) for row in range(5000))
PACK = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.parametrize("kind", PACK)
def test_packed(read, kind):
    frame = read(PACK[kind](TEXT)).frame
    assert frame["a"].tolist() == list(range(5000))
    assert frame["b"].tolist() == [row * 7919 % 1000 for row in range(5000)]


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("share", [0.002, 0.3, 0.9])
def test_packed_and_cut(read, kind, share):
    packed = PACK[kind](TEXT)
    with pytest.raises(TableError, match=f"table.csv is a damaged {kind} file"):
        read(packed[: max(10, int(share * len(packed)))])


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz"])  # Arrow writes zstandard with no checksum
@pytest.mark.parametrize("place", [0, 0.3, 0.6, 0.95])
def test_packed_and_damaged(read, kind, place):
    packed = bytearray(PACK[kind](TEXT))
    start = max(10, int(place * len(packed)))  # behind what tells the kind
    packed[start : start + 8] = b"\xff" * 8
    with pytest.raises(TableError, match=f"table.csv is a damaged {kind} file"):
        read(bytes(packed))


def test_what_is_packed_must_be_a_table_too(read):
    with pytest.raises(TableError, match="is empty"):
        read(gzip.compress(b""))
    with pytest.raises(TableError, match="a picture"):
        read(gzip.compress(b"\x89PNG\r\n"))


def test_packed_parquet_and_libsvm(read):
    assert read(gzip.compress(parquet({"a": [1, 2]}))).frame["a"].tolist() == [1, 2]
    assert read(bz2.compress(b"1 1:2\n-1 2:3\n")).matrix.shape == (2, 2)


# -- Parquet -----------------------------------------------------------------------------------


def nanoseconds(*values):
    return pa.array(values, pa.time64("ns"))


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (lambda: pa.array([1, None, 3]), [1.0, None, 3.0]),
        (lambda: pa.array([1, 2], pa.uint8()), [1, 2]),
        (lambda: pa.array([True, None, False]), [True, None, False]),
        (lambda: pa.array([1.5, 2], pa.float16()), [1.5, 2.0]),
        (lambda: pa.array(["x", None, "y"]).dictionary_encode(), ["x", None, "y"]),
        (lambda: pa.array(["x", None], pa.large_string()), ["x", None]),
        (lambda: pa.array([decimal.Decimal("1.25"), None]), [1.25, None]),
        (lambda: pa.array([decimal.Decimal("1.25")], pa.decimal256(50, 2)), [1.25]),
        (lambda: pa.array([dt.time(12, 30), None], pa.time32("s")), [12.5, None]),
        (lambda: nanoseconds(3_600_000_000_001, None), [1 + 1 / 3.6e12, None]),
        (lambda: pa.array([dt.timedelta(days=1), None]), [86400.0, None]),
        (lambda: pa.array([b"x", None]), [b"x", None]),
        (lambda: pa.array([{"x": 1}, None]), [{"x": 1}, None]),
        (lambda: pa.nulls(2), [None, None]),
        (
            lambda: pa.array([dt.date(1500, 1, 1), dt.date(9999, 12, 31), None]),
            [pd.Timestamp(1500, 1, 1), pd.Timestamp(9999, 12, 31), None],
        ),
        (
            lambda: pa.array([0, None], pa.timestamp("us", "Europe/Berlin")),
            [pd.Timestamp(0, tz="UTC"), None],
        ),
        (
            lambda: pa.array([0, None], pa.timestamp("ms", "Mars/Phobos")),
            [pd.Timestamp(0, tz="UTC"), None],
        ),
    ],
)
def test_parquet_types(columns, array, values):
    found = columns(parquet({"a": array()}))["a"]
    assert found == values
    assert [isinstance(value, bool) for value in found] == [
        isinstance(value, bool) for value in values
    ]


def test_parquet_lists(read):
    found = read(parquet({"a": [[1, 2], [3], None]})).frame["a"].tolist()
    assert [None if value is None else list(value) for value in found] == [[1, 2], [3], None]


def test_parquet_extension_types(columns):
    array = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "[1]"]))
    assert columns(parquet({"a": array})) == {"a": ["{}", "[1]"]}


def test_parquet_names(read):
    table = pa.table([pa.array([value]) for value in (1, 2, 3)], names=["a", "a", ""])
    found = read(parquet(table))
    assert found.frame.to_dict("list") == {"a": [1], "a.2": [2], "column_3": [3]}
    assert len(found.notes) == 1


def test_parquet_of_a_frame_with_an_index(read, tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="key"))
    frame.to_parquet(tmp_path / "frame.parquet")
    found = read_table(tmp_path / "frame.parquet").frame
    assert found.to_dict("list") == {"a": [1, 2], "key": ["x", "y"]}


@pytest.mark.parametrize("end", [10, 0.5, -1, -4])
def test_parquet_that_was_cut(read, end):
    content = parquet({"a": list(range(100)), "b": ["x"] * 100})
    cut = int(end * len(content)) if isinstance(end, float) else end
    with pytest.raises(TableError, match="table.csv cannot be read as Parquet"):
        read(content[:cut])


def test_damaged_parquet_never_raises_anything_else(read):
    content = parquet({"a": [1, None, 3] * 30, "b": ["x", "é", None] * 30})
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.choice(len(content), size=150, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= rng.integers(1, 256)
        try:
            read(bytes(damaged), file_format="parquet")
        except TableError:
            refused += 1
    assert refused > 75


def test_parquet_with_texts_that_are_none(read):
    offsets, letters = np.array([0, 1, 2], np.int32), b"\xff\xfe"
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    )
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        read(parquet({"a": texts}))


# -- LIBSVM ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "zero_based", "matrix"),
    [
        ("1 1:0.5 3:2\n-1 2:1\n", False, [[0.5, 0, 2], [0, 1, 0]]),
        ("1 0:0.5 2:2\n-1 1:1\n", True, [[0.5, 0, 2], [0, 1, 0]]),
        ("# top\n1 qid:3 1:0.5 3:2 # one\n-1 qid:3 2:1\n", False, [[0.5, 0, 2], [0, 1, 0]]),
        ("\ufeff1 1:0.5 3:2\r\n-1\r\n", False, [[0.5, 0, 2], [0, 0, 0]]),
    ],
)
def test_libsvm(read, text, zero_based, matrix):
    table = read(text)
    assert isinstance(table, SparseTable)
    assert table.zero_based is zero_based
    assert table.labels.tolist() == [1, -1]
    assert table.matrix.toarray().tolist() == matrix


def test_libsvm_as_told(read):
    assert read("1 2:5\n", zero_based=True).matrix.toarray().tolist() == [[0, 0, 5]]
    assert read("1 2:5\n", zero_based=False).matrix.toarray().tolist() == [[0, 5]]
    with pytest.raises(TableError, match="column 0"):
        read("1 0:5\n", zero_based=False)
    assert read("", file_format="libsvm").matrix.shape == (0, 0)
    assert read("1\n-1\n", file_format="libsvm").matrix.shape == (2, 0)


def test_libsvm_with_rows_longer_than_what_is_looked_at(read):
    row = " ".join(f"{index}:0.5" for index in range(1, 10_000))
    assert len(row) > sniff.HEAD_BYTES
    assert read(f"1 {row}\n-1 {row}\n").matrix.shape == (2, 9999)


@pytest.mark.parametrize(
    "row",
    ["1 2:x", "1 2", "x 1:2", "1,2 1:2", "1 3:1 2:1", "1 2:1 2:1", "1 -1:2", "1 2:nan", "1 2:inf",
     "1 99999999999:1", "1 99999999999999999999999:1", "\x00\x01", "a;b"],
)  # fmt: skip
def test_damaged_libsvm(read, row):
    with pytest.raises(TableError, match="table.csv cannot be read as LIBSVM"):
        read(f"1 1:1\n{row}\n", file_format="libsvm")


# -- where tables come from --------------------------------------------------------------------


def test_a_folder(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


def test_a_named_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(TEXT),))
    writer.start()
    try:
        assert len(read_table(path).frame) == 5000
    finally:
        writer.join()


@pytest.mark.parametrize("content", [TEXT, gzip.compress(TEXT)], ids=["plain", "packed"])
def test_standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    table = read_table("-")
    assert table.name == "standard input"
    assert len(table.frame) == 5000


def test_nothing_on_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(TableError, match="standard input is empty"):
        read_table("-")


def test_names_of_files(read):
    assert list(read("a, b\n1, 2\n", "table.tsv").frame.columns) == ["a, b"]
    assert list(read("a, b\tc\n1, 2\t3\n", "table.TAB").frame.columns) == ["a, b", "c"]


def test_without_pyarrow(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match=r'pip install "mixnorm\[cli\]"'):
        read("a,b\n1,2\n")


def test_options_that_cannot_work(read):
    for delimiter in (";;", "", "§", "\n", '"'):
        with pytest.raises(TableError, match="cannot divide columns"):
            read("a;b\n", delimiter=delimiter)
    with pytest.raises(TableError, match="file_format='excel' is not one of csv"):
        read("a;b\n", file_format="excel")


@pytest.mark.parametrize("file_format", ["csv", "tsv", "parquet", "libsvm"])
def test_formats_that_are_wrong(read, file_format):
    with pytest.raises(TableError):
        read(b"\x89PNG\r\n\x1a\n" + bytes(range(256)), file_format=file_format)
    if file_format in ("parquet", "libsvm"):
        with pytest.raises(TableError, match="cannot be read as"):
            read("a,b\n1,2\n", file_format=file_format)

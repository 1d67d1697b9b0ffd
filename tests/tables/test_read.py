"""Reading tables: what was written comes back, and what is not a table is refused with a reason."""

import codecs
import csv
import io
import math
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.exceptions import TableError
from mixnorm.tables import SparseTable, Table, read_table, sniff
from mixnorm.tables import read as _read

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

FAR = 70_000  # beyond the bytes that are looked at


# -- what was written comes back ---------------------------------------------------------------


LETTERS = st.characters(exclude_categories=["Cs", "Cc", "Cn"])
WESTERN = st.sampled_from([chr(code) for code in (*range(32, 127), *range(0xA0, 0x100))])
MARKS = st.sampled_from(list("\n\r\t,;|\"'\\ #"))


def entries(kind, letters):
    """Return how to draw entries of a kind of column."""
    if kind == "text":
        texts = st.text(letters | MARKS, max_size=12)
        return (
            st.sampled_from(sniff.MISSING_MARKS)
            | texts
            | st.sampled_from(["1", "2020-01-01", "true"])
        )
    return {
        "int": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(allow_nan=False),
        "bool": st.booleans(),
        "small": st.integers(-(2**53), 2**53) | st.none(),
    }[kind]


@st.composite
def tables(draw):
    """Draw columns, how to write them, and the bytes of the file."""
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "cp1252"]))
    letters = WESTERN if encoding == "cp1252" else LETTERS
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(["text", "int", "float", "bool", "small"]), max_size=5))
    columns = {"é": ["no number é", *["x"] * rows]}  # nor valid UTF-8, in a western encoding
    for index, kind in enumerate(kinds):
        name = f"n{index}{draw(st.text(letters | MARKS, max_size=4))}".strip()
        first = {"text": "word", "int": 0, "float": 0.5, "bool": True, "small": 1}[kind]
        drawn = draw(st.lists(entries(kind, letters), min_size=rows, max_size=rows))
        columns[name] = [first, *drawn]
    delimiter = draw(st.sampled_from(",;\t|"))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    rows = [columns, *zip(*columns.values(), strict=True)]
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(written(row, delimiter, quoting) for row in rows)
    text += draw(st.sampled_from(["", end]))
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    return columns, delimiter, mark + text.encode(encoding)


def written(row, delimiter, quoting):
    """Return a row as the csv module writes it, without its end."""
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, quoting=quoting).writerow(row)
    return file.getvalue().removesuffix("\r\n")


def came_back(found, value):
    if value is None or (isinstance(value, str) and value in _read._MISSING):
        return pd.isna(found)
    return type(found) in (type(value), float) and found == value


@given(tables(), st.sampled_from([8, 64, 1 << 22]))
def test_round_trip(tmp_path_factory, table, block):
    columns, delimiter, content = table
    path = tmp_path_factory.getbasetemp() / "round_trip.csv"
    path.write_bytes(content)
    with mock.patch.object(_read, "_BYTES_PER_BLOCK", block):
        frame = read_table(path, delimiter=delimiter, header=True).frame
    assert list(frame.columns) == list(columns)
    for name, values in columns.items():
        found = frame[name].tolist()
        assert len(found) == len(values)
        assert all(map(came_back, found, values)), (name, values, found)


@given(st.data(), st.sampled_from(",;\t|"))
def test_delimiter_and_header_are_found(tmp_path_factory, data, delimiter):
    words = st.text(st.sampled_from("abcxyzäß .'-"), min_size=1, max_size=8).map(str.strip)
    width, rows = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 8))
    names = [f"n{index}" for index in range(width)]
    body = data.draw(st.lists(st.lists(words, min_size=width, max_size=width), min_size=rows))
    path = tmp_path_factory.getbasetemp() / "found.csv"
    path.write_text("\n".join(delimiter.join(row) for row in [names, *body]), "utf-8")
    table = read_table(path)
    assert list(table.frame.columns) == names
    assert len(table.frame) == len(body)
    assert not table.notes


# -- encodings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_encodings(columns, encoding):
    assert columns("größe,b\n1,é\n".encode(encoding)) == {"größe": [1], "b": ["é"]}


@pytest.mark.parametrize(
    ("byte", "encoding", "char"), [(b"\x80", "cp1252", "€"), (b"\x81", "latin-1", "\x81")]
)
@pytest.mark.parametrize("block", [256, _read._BYTES_PER_BLOCK])
@pytest.mark.parametrize("place", ["header", "first", "far"])
def test_western_bytes_anywhere(read, monkeypatch, byte, encoding, char, block, place):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", block)
    parts = {"header": b"", "first": b"", "far": b"", place: byte}
    rows = b"1,x\n" * (FAR // 4)
    table = read(b"a,b%(header)b\n1,x%(first)b\n" % _keys(parts) + rows + b"2,y" + parts["far"])
    assert table.notes == [f"The file is not UTF-8; it was read as {encoding}."]
    assert table.frame.columns[1] == "b" + (char if place == "header" else "")
    assert table.frame.iloc[0, 1] == "x" + (char if place == "first" else "")
    assert table.frame.iloc[-1, 1] == "y" + (char if place == "far" else "")
    assert len(table.frame) == FAR // 4 + 2


def _keys(parts):
    return {key.encode(): value for key, value in parts.items()}


def test_a_western_name_far_to_the_right(read):
    names = [f"column {index:1000d}" for index in range(70)] + ["größe"]
    table = read(",".join(names).encode("cp1252") + b"\n" + b",".join([b"1"] * 71))
    assert list(table.frame.columns) == names
    assert "cp1252" in table.notes[0]


def test_text_that_grows_when_it_is_decoded(columns, monkeypatch):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", 16)
    values = ["1", *["€€€€€€€€"] * 40, "x"]
    text = "\n".join(["a,b", *(f"{value},1" for value in values)])
    assert columns(text.encode("cp1252"))["a"] == values


def test_damaged_utf16(read):
    with pytest.raises(TableError, match="not valid utf-16"):
        read(codecs.BOM_UTF16_LE + "a,b\n1,2\n".encode("utf-16-le")[:-1])


# -- lines and quotes --------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "END", "ENDEND"])
@pytest.mark.parametrize("block", [4, 1 << 20])
def test_line_ends_and_blank_lines(columns, monkeypatch, end, last, block):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", block)
    text = "ENDENDa,bENDEND1,2END3,4ENDEND5,6" + last
    assert columns(text.replace("END", end)) == {"a": [1, 3, 5], "b": [2, 4, 6]}


def test_quotes(columns):
    text = '"a,""b""","c\nd"\n"x, ""y""","1\r\n2"\n5" pipe,\n'
    assert columns(text) == {'a,"b"': ['x, "y"', '5" pipe'], "c\nd": ["1\r\n2", None]}


@pytest.mark.parametrize("block", range(40, 120, 7))
@pytest.mark.parametrize("names", ["text,other\n", "other,text\n", "text\n"])
def test_line_breaks_in_quotes_at_the_end_of_a_block(columns, monkeypatch, block, names):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", block)
    text = "one, is here\n\ntwo is there\nthree"
    row = names.replace("text", f'"{text}"').replace("other", "1")
    found = columns(names + row * 30, delimiter=",")
    assert found["text"] == [text] * 30


def test_a_quote_that_is_never_closed_loses_no_rows(read, monkeypatch):
    # Arrow, not told of line breaks in quotes, gives 191 rows of the 201 and says nothing.
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", 64)
    with pytest.raises(TableError, match="row 102 has 1 entry"):
        read("a,b\n" + "1,2\n" * 100 + '"3,1\n' + "1,2\n" * 100)


@pytest.mark.parametrize("block", [64, 1 << 20])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_quote_that_is_never_closed_in_the_last_column(read, columns, monkeypatch, block, end):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", block)
    rows = "1,2\n" * 100
    for header, row in ((True, 102), (False, 102)):
        with pytest.raises(TableError, match=f"a quote in row {row} is never closed"):
            read(f'a,b\n{rows}3,"1\n{rows}1,2{end}', header=header)
    with pytest.raises(TableError, match="a quote in row 1 is never closed"):
        read(f'a,"b\n{rows}1,2{end}', delimiter=",", header=True)
    assert columns(f'a,b\n1,"x\ny"{end}') == {"a": [1], "b": ["x\ny"]}


@pytest.mark.parametrize(
    ("text", "row", "entries"),
    [
        ("a,b\n1,2\n3\n", 3, "1 entry"),
        ("a,b\n1,2\n3,4,5\n", 3, "3 entries"),
        ("a,b\n" + "1,2\n" * 100 + "3\n" + "1,2\n" * 100, 102, "1 entry"),
        ('a,b\n"1\n1",2\n3\n', 3, "1 entry"),
        ("Dear Sir, I write\nto say that\nall is well.\n", 2, "1 entry"),
    ],
)
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_ragged_rows_are_named(read, monkeypatch, block, text, row, entries):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", block)
    with pytest.raises(TableError, match=f"row {row} has {entries}, but the first row has 2"):
        read(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line", ["sep=;\n", '"sep=;"\r\n'])
def test_a_line_that_tells_the_delimiter(columns, encoding, line):
    found = columns(f"{line}a,b;c\n1;2\n".encode(encoding))
    assert found == {"a,b": [1], "c": [2]}
    assert columns("sep=,b\n1,2\n") == {"sep=": [1], "b": [2]}


# -- headers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\r\n", "\na,b\n\n"])
def test_header_only(read, text):
    frame = read(text).frame
    assert list(frame.columns) == ["a", "b"]
    assert len(frame) == 0


@pytest.mark.parametrize("content", [b"", b"\n", b"  \n \n", b"\xef\xbb\xbf", b"\xff\xfe"])
@pytest.mark.parametrize("options", [{}, {"file_format": "csv", "delimiter": ",", "header": True}])
def test_nothing_to_read(read, content, options):
    with pytest.raises(TableError, match="is empty"):
        read(content, **options)


def test_names(read):
    table = read(" a ,a,,b, ,a.2\n1,2,3,4,5,6\n")
    assert list(table.frame.columns) == ["a", "a.3", "column_3", "b", "column_5", "a.2"]
    assert table.frame.iloc[0].tolist() == [1, 2, 3, 4, 5, 6]
    (note,) = table.notes
    assert "'a.3', 'column_3', 'column_5'" in note


def test_numbers_on_top(read):
    table = read("1,2\n3,4\n")
    assert table.frame.to_dict("list") == {"column_1": [1, 3], "column_2": [2, 4]}
    assert "only numbers" in table.notes[0]
    for options in ({"header": True}, {"expect": ["2"]}):
        table = read("1,2\n3,4\n", **options)
        assert table.frame.to_dict("list") == {"1": [3], "2": [4]}
        assert not table.notes


def test_no_header(columns):
    assert columns("a,b\nc,d\n", header=False) == {"column_1": ["a", "c"], "column_2": ["b", "d"]}
    assert columns("a,b", header=False) == {"column_1": ["a"], "column_2": ["b"]}


def test_one_column(columns):
    assert columns("a\n1\n2\n") == {"a": [1, 2]}
    assert columns('a\n1\n""\n2\n') == {"a": [1, None, 2]}


def test_many_columns(read, monkeypatch):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", 1 << 14)  # less than a row
    names = [f"c{index}" for index in range(10_000)]
    frame = read(",".join(names) + "\n" + ",".join(map(str, range(10_000)))).frame
    assert list(frame.columns) == names
    assert frame.iloc[0].tolist() == list(range(10_000))


# -- types -------------------------------------------------------------------------------------


CHANGES = [
    ("1", "1.5", 1.0, 1.5),
    ("1", "x", "1", "x"),
    ("1.50", "x", "1.50", "x"),
    ("", "x", None, "x"),
    ("NA", "2", None, 2.0),
    ("2020-01-01", "x", "2020-01-01", "x"),
    ("true", "x", "true", "x"),
    ("true", "0", True, False),
    ("1", "99999999999999999999", 1.0, 1e20),
]


@pytest.mark.parametrize(("early", "late", "first", "last"), CHANGES)
def test_types_that_change_after_the_first_block(columns, monkeypatch, early, late, first, last):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", 64)
    values = columns("a,b\n" + f"{early},1\n" * 100 + f"{late},1\n")["a"]
    assert values == [first] * 100 + [last]
    assert type(values[-1]) is type(last)


def test_three_types_in_turn(columns, monkeypatch):
    monkeypatch.setattr(_read, "_BYTES_PER_BLOCK", 64)
    rows = ["1,1"] * 50 + ["1.5,2"] * 50 + ["x,3"]
    assert columns("\n".join(["a,b", *rows]))["a"] == ["1"] * 50 + ["1.5"] * 50 + ["x"]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["NA", "?", "null"], [None] * 3),
        (["1", "NA", "3"], [1.0, None, 3.0]),
        (["x", "NA", "-"], ["x", None, "-"]),
        ([" 1", " NA", " "], [1.0, None, None]),  # aligned columns
        (["9223372036854775807", "-1"], [2**63 - 1, -1]),
        (["9223372036854775808", "-1"], [2.0**63, -1.0]),
        (["1e400", "-1e400", "1e-400"], [math.inf, -math.inf, 0.0]),
        (["inf", "-inf", "Infinity", "nan"], [math.inf, -math.inf, math.inf, None]),
        (["true", "False"], [True, False]),
        (["true", "", "FALSE"], [True, None, False]),
        (["yes", "no"], ["yes", "no"]),
        (["12:30", "01:15:36"], [12.5, 1.26]),
        (["1,5", "2,5"], ["1,5", "2,5"]),
        (["1,234", "2"], ["1,234", "2"]),
        (["12 apples", "3"], ["12 apples", "3"]),
        (["31.12.2020", "1.2.2020"], ["31.12.2020", "1.2.2020"]),
    ],
)
def test_values(columns, texts, values):
    rows = [f'"{text}";x' for text in texts]
    found = columns("\n".join(["a;b", *rows]))["a"]
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


@pytest.mark.parametrize(
    ("texts", "seconds"),
    [
        (["1970-01-02", "1970-01-01"], [86400, 0]),
        (["1970-01-01 01:00", "1970-01-01T00:00:01.5"], [3600, 1.5]),
        (["1970-01-01T02:00:00+02:00", "1970-01-01T00:00:00Z"], [0, 0]),
        (["1500-01-01", "9999-12-31"], [-14831769600, 253402214400]),
    ],
)
def test_dates(read, texts, seconds):
    found = read("\n".join(["a,b", *(f"{text},1" for text in texts)])).frame["a"]
    assert pd.api.types.is_datetime64_any_dtype(found)
    assert [value.timestamp() for value in found] == seconds


# -- anything at all -------------------------------------------------------------------------

PIECES = [b",", b";", b"\n", b"\r", b'"', b"\t", b" ", b"1", b"-", b".", b"NA", b"\xe9", b"\xff",
          b"\xc3\xa9", b"x", b":", b"1e400", b"2020-01-01", b"true", b"/", b"0x1F", b"\x00", b"<",
          b"[", b"{", b"#", b"\xef\xbb\xbf", b"\xff\xfe", b"PAR1", b"\x1f\x8b"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from([1, 8, 1 << 22]))
def test_any_bytes_are_a_table_or_refused(tmp_path_factory, pieces, block):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(b"".join(pieces))
    with mock.patch.object(_read, "_BYTES_PER_BLOCK", block):
        try:
            table = read_table(path)
        except TableError as error:
            assert "any.csv" in str(error)  # noqa: PT017
        else:
            assert isinstance(table, (Table, SparseTable))

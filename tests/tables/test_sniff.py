"""What a file is, told from its first bytes."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import pickle
import zipfile

import numpy as np
import pytest

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


def label(value):
    """Return what to call a parameter: packed files hold the time, which would be another name."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else None


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return file.getvalue()


def numpy_file():
    file = io.BytesIO()
    np.save(file, np.arange(5))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b"a,b\n"), "gzip"),
        (bz2.compress(b"a,b\n"), "bz2"),
        (bz2.compress(b""), "bz2"),
        (lzma.compress(b"a,b\n"), "xz"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd"),
        (b"BZhour,b\n", None),
        (b"a,b\n", None),
        (b"", None),
    ],
    ids=label,
)
def test_packing(content, kind):
    assert sniff.detect_compression(content[:8]) == kind


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (PNG, "a picture"),
        (b"\xff\xd8\xff\xe0", "a picture"),
        (b"%PDF-1.7\n", "a PDF"),
        (zipped(), "Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "old Excel workbook"),
        (b"SQLite format 3\x00", "a database"),
        (b"mixnorm model 1\nabc\n{}", "a mixnorm model"),
        (numpy_file(), "a NumPy array"),
        *((pickle.dumps({"a": [1, 2]}, protocol), "a pickle") for protocol in (2, 3, 4, 5)),
        (json.dumps({"a": [1, 2], "b": 3}).encode(), "JSON"),
        (json.dumps([{"a": 1, "b": 2}, {"a": 3}]).encode(), "JSON"),
        (json.dumps([[1, 2], [3, 4]]).encode(), "JSON"),
        (json.dumps([1, 2, 3]).encode(), "JSON"),
        (json.dumps([{"a": 1}], indent=2).encode(), "JSON"),
        (b'{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n', "JSON"),
        (b"<!DOCTYPE html>\n<html>a, b</html>", "HTML or XML"),
        (b'<table style="a;b">\n<tr><td>1</td></tr>', "HTML or XML"),
        (b"<rows><row>1,2</row></rows>", "HTML or XML"),
        (b'\xef\xbb\xbf<?xml version="1.0"?><a b="1,2"/>', "HTML or XML"),
        (bytes(range(256)), "binary data"),
        ("a,b\n1,2\n".encode("utf-16-le"), "binary data"),
        ("a,b\n1,2\n".encode("utf-32"), "binary data"),
    ],
    ids=label,
)
def test_what_is_no_table(content, what):
    with pytest.raises(TableError, match=f"it.csv is not a table.*{what}"):
        sniff.detect_format(content, "it.csv")


@pytest.mark.parametrize("content", [b"", b" \n\t\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\n\n"])
def test_nothing(content):
    with pytest.raises(TableError, match="it.csv is empty"):
        sniff.detect_format(content, "it.csv")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"a,b\n1,2\n", "csv"),
        (b"[id],[name]\n1,x\n", "csv"),
        (b"<id>;<name>\n1;x\n", "csv"),
        (b"{a},b\n1,x\n", "csv"),
        (b"PAR1,PAR2\n1,2\n", "csv"),
        (b"PAR1\n1\n", "csv"),
        (b"PAR1\x15\x04\x15\x10", "parquet"),
        (b"1 1:0.5 3:2\n-1 2:1\n", "libsvm"),
        (b"1.5e3 qid:7 1:0.5 # why\n", "libsvm"),
        (b"# a comment\n+1 1:1\n-1\n+1 2:3\n", "libsvm"),
        (b"1\n2\n3\n", "csv"),
        (b"label 1:0.5\n1 2:3\n", "csv"),
        (b"1 " + b" ".join(b"%d:0.12345" % index for index in range(1, 9999)), "libsvm"),
    ],
)
def test_format(content, kind):
    assert sniff.detect_format(content[: sniff.HEAD_BYTES], "it") == kind


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"plain", "utf-8"),
        ("größe".encode(), "utf-8"),
        ("größe".encode()[:3], "utf-8"),  # cut within a character
        ("größe".encode("utf-8-sig"), "utf-8-sig"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "utf-16"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "utf-16"),
        ("5 €, größe".encode("cp1252"), "cp1252"),
        (b"gr\xf6\x81e", "latin-1"),
    ],
)
def test_encoding(content, name):
    assert sniff.detect_encoding(content) == name


@pytest.mark.parametrize("char", list(",;\t|"))
def test_delimiter(char):
    assert sniff.detect_delimiter(f"a{char}b\n1{char}2\n") == char


@pytest.mark.parametrize(
    ("text", "char"),
    [
        ("a;b;c\n1,5;2,5;3,5\n3,5;4,5;5,5\n", ";"),
        ("1,5;2,5\n3,5;4,5\n", ";"),  # as even as the comma, which is oftener
        ('"a,b";"c,d"\n"1,2";3\n', ";"),
        ("name|text\nx|a, b, c\ny|d\n", "|"),
        ("a\tb, c\n1\t2, 3\n4\t5\n", "\t"),
        ("word\none, two\n", ","),  # one column
        ("\n\n", ","),
        ("", ","),
    ],
)
def test_delimiter_among_others(text, char):
    assert sniff.detect_delimiter(text) == char


@pytest.mark.parametrize(
    ("text", "delimiter", "header"),
    [
        ("a,b\n1,2\n", ",", True),
        ("1,2\n3,4\n", ",", False),
        ("\r\n\n1,2\r\n", ",", False),
        ("1.5e3, -2 ,inf\n", ",", False),
        ("1,5;2,5\n", ";", False),
        ("1,?,NA\n", ",", False),
        ("1,,3\n", ",", False),
        (",1,2\n0,3,4\n", ",", True),  # the names of a table whose rows are numbered
        ("\t1\t2\n", "\t", True),
        ("NA,?\n", ",", True),
        ('"1\nb",2\n', ",", True),
        ("1\u20282,2\n", ",", True),
        ("1_000,2\n", ",", True),
        ("١,٢\n", ",", True),
        ("country,2019,2020\n", ",", True),
    ],
)
def test_header(text, delimiter, header):
    assert sniff.has_header(text, delimiter) == header


def test_an_expected_name_makes_a_header():
    assert sniff.has_header("2019, 2020\n1,2\n", ",", ["2020"])
    assert not sniff.has_header("2019,2020\n1,2\n", ",", ["2021"])


def test_a_first_row_that_was_cut():
    row = ("-1.5," * 20_000)[: sniff.HEAD_BYTES]
    assert row.endswith(",-")
    assert not sniff.has_header(row, ",")
    assert sniff.has_header(f"{row}x\n1,2\n", ",")

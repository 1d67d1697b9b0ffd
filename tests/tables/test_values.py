"""What entries stand for, whatever type they came in."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.tables import values as _values
from mixnorm.tables.values import (
    as_numbers,
    as_seconds,
    as_texts,
    detect_date_format,
    detect_number_style,
    find_distinct_texts,
    is_date_type,
    is_missing,
    is_number_type,
    normalise_level,
)

pd = pytest.importorskip("pandas")

NAN = math.nan


def series(values, dtype=None):
    return pd.Series(values, dtype=dtype, index=range(7, 7 + len(values)))


def arrow(values, kind):
    pa = pytest.importorskip("pyarrow")
    return series(values, pd.ArrowDtype(kind(pa)))


# -- numbers -----------------------------------------------------------------------------------

NUMBERS = [
    ([1, 2], "int8"),
    ([1, 2], "uint64"),
    ([1.5, NAN], "float32"),
    ([1.5, NAN], "float64"),
    ([True, False], "bool"),
    ([1, None], "Int64"),
    ([1.5, None], "Float64"),
    ([True, None], "boolean"),
    ([1.5, None], "object"),
    ([True, None], "object"),
    ([np.int64(3), np.float32(1.5)], "object"),
    ([np.True_, None], "object"),
    ([Decimal("1.5"), None], "object"),
    (["1.5", None], "object"),
    (["1.5", None], "string"),
    (["1.5", " 2 "], "category"),
    ([1, 2], "category"),
    ([0.0, 1.5], "Sparse[float64]"),
    ([1.0, None], "timedelta64[s]"),
]


@pytest.mark.parametrize(("values", "dtype"), NUMBERS)
def test_numbers_of_every_type(values, dtype):
    expected = [NAN if value is None else float(value) for value in values]
    found = as_numbers(series(values, dtype))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None], lambda pa: pa.int64(), [1, NAN]),
        ([1.5, None], lambda pa: pa.float64(), [1.5, NAN]),
        ([True, None], lambda pa: pa.bool_(), [1, NAN]),
        ([Decimal("1.5"), None], lambda pa: pa.decimal128(5, 2), [1.5, NAN]),
        ([dt.timedelta(minutes=1), None], lambda pa: pa.duration("us"), [60, NAN]),
        (["1.5", None], lambda pa: pa.string(), [1.5, NAN]),
        ([None, None], lambda pa: pa.null(), [NAN, NAN]),
    ],
)
def test_numbers_of_arrow_types(values, kind, expected):
    np.testing.assert_array_equal(as_numbers(arrow(values, kind)), expected)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1), (" +1.50 ", 1.5), ("-.5e1", -5), ("inf", math.inf), ("-Infinity", -math.inf),
        ("1e400", math.inf), ("1e305", math.inf), ("-1e305", -math.inf), ("1e300", 1e300),
        ("nan", NAN), ("", NAN), ("  ", NAN), ("one", NAN), ("1_000", NAN), ("1 000", NAN),
        ("1,5", NAN), ("١", NAN), ("true", 1), ("FALSE", 0), ("\ud800", NAN), ("9" * 30, 1e30),
    ],
)  # fmt: skip
def test_numbers_in_texts(text, number):
    np.testing.assert_array_equal(as_numbers(series([text], "object")), [number])


@pytest.mark.parametrize(
    ("text", "thousands", "comma"),
    [
        ("1234", 1234, 1234),
        ("1,234", 1234, 1.234),
        ("-1,234,567.5", -1234567.5, NAN),
        ("0,234", NAN, 0.234),
        ("12,5", NAN, 12.5),
        ("1.234,5", NAN, 1234.5),
        ("1.234.567", NAN, 1234567),
        ("1.234", 1.234, 1234),
        ("1.5", 1.5, 1.5),
        ("12,34,567", NAN, NAN),
        ("1,5e3", NAN, 1500),
    ],
)
def test_styles(text, thousands, comma):
    for style, number in (("thousands", thousands), ("comma", comma)):
        np.testing.assert_array_equal(as_numbers(series([text]), style), [number])


@pytest.mark.parametrize(
    ("texts", "style"),
    [
        (["1", "2.5"], "plain"),
        (["1,234", "2,345"], "thousands"),
        (["1,234", "5", "2,345.5"], "thousands"),
        (["1,5", "2,25"], "comma"),
        (["1,234", "1,5"], "comma"),
        (["1.234,5", "1.500"], "comma"),
        # A tenth of the numbers from 0 to 10 starts with a zero, and has no thousands.
        ([f"{number // 1000},{number % 1000:03d}" for number in range(1, 10_000, 7)], "comma"),
        (["1", "x"], None),
        (["true", "false"], None),
    ],
)
def test_the_style_that_fits_best(texts, style):
    assert detect_number_style(np.array(texts, dtype=object), 0.9) == style


@given(st.floats(-1e9, 1e9), st.integers(0, 6))
def test_numbers_written_in_german(number, digits):
    text = f"{number:,.{digits}f}"
    swapped = text.translate(str.maketrans(",.", ".,"))
    plain, german = as_numbers(series([text]), "thousands"), as_numbers(series([swapped]), "comma")
    assert german[0] == float(text.replace(",", ""))
    if not text.lstrip("-").startswith("0,"):
        assert plain[0] == german[0]


@pytest.mark.parametrize("values", [[1 + 2j, 3], [dt.time(1), dt.time(2)], [[1], [2]]])
def test_what_is_no_number(values):
    assert not is_number_type(series(values))
    assert np.isnan(as_numbers(series(values))).all()


# -- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "texts"),
    [
        ([3, 3.0, "3", " 3 ", Decimal("3.00"), np.float32(3), np.int8(3)], "object", ["3"] * 7),
        ([3, None], "float64", ["3", None]),
        ([3, None], "Int64", ["3", None]),
        ([2**60, 2**60 + 1], "int64", [str(2**60), str(2**60 + 1)]),
        ([1e300, 0.1, math.inf], "float64", ["1e+300", "0.1", "inf"]),
        ([True, False], "bool", ["True", "False"]),
        ([True, None], "boolean", ["True", None]),
        (["", "  ", None, " x "], "object", [None, None, None, "x"]),
        (["x", None], "category", ["x", None]),
        ([dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2, 3)], None,
         ["2020-01-02", "2020-01-02 03:00:00"]),
        ([dt.date(2020, 1, 2), Fraction(1, 2), b"x"], "object", ["2020-01-02", "1/2", "b'x'"]),
        ([], "object", []),
    ],
)  # fmt: skip
def test_texts(values, dtype, texts):
    assert as_texts(series(values, dtype)).tolist() == texts
    assert is_missing(series(values, dtype)).tolist() == [text is None for text in texts]


def test_distinct_texts():
    texts = np.array(["b", None, "a", "b"], dtype=object)
    assert find_distinct_texts(texts).tolist() == ["a", "b"]
    assert find_distinct_texts(texts[:0]).tolist() == []


def test_long_texts_take_their_own_room_only():
    # As fixed-width texts these would take 16 GB.
    texts = np.array(["x" * 200_000, *map(str, range(20_000))], dtype=object)
    assert len(find_distinct_texts(texts)) == 20_001


@pytest.mark.parametrize(
    ("texts", "level"),
    [
        (["1", "01", "+1", "1.0", "1.", "1e0", "0" * 25 + "1"], "1"),
        (["0.5", ".5", "5e-1", "0.50"], "0.5"),
        (["true", "True", "TRUE"], "True"),
        ([str(2**60 + 1)], str(2**60 + 1)),
        (["99999999999999999999", "1e20"], "1e+20"),
        (["x"], "x"),
        (["1 "], "1 "),
        (["1" * 5000], "inf"),
        (["١"], "١"),
        (["-"], "-"),
        (["nan"], "nan"),
    ],
)
def test_levels(texts, level):
    assert {normalise_level(text) for text in texts} == {level}


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans())
def test_levels_do_not_depend_on_how_a_file_was_read(value):
    assert normalise_level(str(value)) == normalise_level(as_texts(series([value]))[0])


# -- dates -------------------------------------------------------------------------------------

DAYS = [dt.date(1990, 1, 1) + dt.timedelta(days=2 * step) for step in range(6000)]


@pytest.mark.parametrize("pattern", [p for p in _values.DATE_FORMATS if p != "ISO8601"])
def test_every_format_is_found(pattern):
    dates = [dt.datetime(2020, 12, 31, 17, 45), dt.datetime(2019, 2, 1, 3, 15)]
    texts = sorted(date.strftime(pattern) for date in dates)
    found = detect_date_format(np.array(texts, dtype=object), 0.99)
    seconds = [as_seconds(series(texts), form) for form in (found, pattern)]
    np.testing.assert_array_equal(*seconds)


@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        (["2020-12-31", "2020-02-01"], "ISO8601"),
        (["2020-12-31T10:00:00+02:00", "2020-02-01 10:00"], "ISO8601"),
        (["31.12.2020", "01.02.2020"], "%d.%m.%Y"),
        (["12/31/2020", "01/02/2020"], "%m/%d/%Y"),
        (["31/12/2020", "01/02/2020"], "%d/%m/%Y"),
        (["01/02/2020", "03/04/2020"], "%m/%d/%Y"),  # either; the month first
        (["01.02.2020", "03.04.2020"], "%d.%m.%Y"),
        (["01-02-2020", "03-04-2020"], "%d-%m-%Y"),
        (["31/12/1500", "01/02/9999"], "%d/%m/%Y"),
        (["12345678", "AB123456"], None),
        (["monday", "tuesday"], None),
        (["2020-02-30", "2020-01-01"], None),
        ([], None),
    ],
)
def test_date_formats(texts, pattern):
    assert detect_date_format(np.array(sorted(texts), dtype=object), 0.99) == pattern


@pytest.mark.parametrize("pattern", ["%d/%m/%Y", "%m/%d/%Y"])
def test_many_dates_are_looked_at_from_everywhere(pattern):
    # The first 2000 in order all have a first number that could be a month, or a day.
    texts = sorted({date.strftime(pattern) for date in DAYS})
    assert int(texts[1999][:2]) <= 12
    assert detect_date_format(np.array(texts, dtype=object), 0.99) == pattern


def test_one_date_can_decide():
    texts = [f"{day:02d}/{month:02d}/2020" for day in range(1, 13) for month in range(1, 13)]
    assert (
        detect_date_format(np.array(sorted([*texts, "13/01/2020"]), dtype=object), 0.99)
        == "%d/%m/%Y"
    )
    assert (
        detect_date_format(np.array(sorted([*texts, "01/13/2020"]), dtype=object), 0.99)
        == "%m/%d/%Y"
    )


def test_a_stray_text_among_dates():
    texts = sorted(["(unknown)", *(date.isoformat() for date in DAYS)])
    assert detect_date_format(np.array(texts, dtype=object), 0.99) == "ISO8601"
    assert detect_date_format(np.array(texts, dtype=object), 1.0) is None


def test_codes_are_no_dates():
    texts = np.array([f"{code:06d}-AB.{code}/x" for code in range(3000)], dtype=object)
    assert detect_date_format(texts, 0.99) is None


SECONDS = [(dt.datetime(2020, 7, 1, 12), 1593604800.0), (dt.datetime(1500, 1, 1), -14831769600.0)]


@pytest.mark.parametrize(("date", "seconds"), SECONDS)
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_seconds(date, seconds, unit):
    values = series([date, None], f"datetime64[{unit}]")
    np.testing.assert_array_equal(as_seconds(values, "ISO8601"), [seconds, NAN])
    berlin = values.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    np.testing.assert_array_equal(as_seconds(berlin, "ISO8601"), [seconds, NAN])
    for dtype in ("object", "string"):
        texts = series([str(date), None], dtype)
        np.testing.assert_array_equal(as_seconds(texts, "ISO8601"), [seconds, NAN])


@pytest.mark.parametrize("kind", ["timestamp", "zoned", "date32"])
def test_seconds_of_arrow_types(kind):
    day, after = dt.datetime(2020, 7, 1), 1593561600.0
    types = {
        "timestamp": lambda pa: pa.timestamp("us"),
        "zoned": lambda pa: pa.timestamp("us", "Europe/Berlin"),
        "date32": lambda pa: pa.date32(),
    }
    if kind == "zoned":
        day = day.replace(tzinfo=dt.UTC)
    values = arrow([day.date() if kind == "date32" else day, None], types[kind])
    assert is_date_type(values)
    np.testing.assert_array_equal(as_seconds(values, "ISO8601"), [after, NAN])


def test_seconds_of_what_is_no_date():
    np.testing.assert_array_equal(as_seconds(series([None, None], "object"), "ISO8601"), [NAN] * 2)
    np.testing.assert_array_equal(as_seconds(series(["x", ""]), "%d.%m.%Y"), [NAN] * 2)
    assert as_seconds(series([], "object"), "ISO8601").shape == (0,)

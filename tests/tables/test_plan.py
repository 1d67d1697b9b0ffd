"""What the columns of a table are taken for."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pytest

from mixnorm.tables import CategoryColumn, DateColumn, NumberColumn
from mixnorm.tables.plan import CONSTANT, EMPTY, MOST_LEVELS, NO_NUMBERS, plan_column

pd = pytest.importorskip("pandas")


def plan(values, kind=None, dtype=None, name="a"):
    return plan_column(pd.Series(values, dtype=dtype, name=name), kind)


# -- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2, 9], "int64"),
        ([1, 2, 9], "Int64"),
        ([1, 2, 9], "float32"),
        ([1, 2, 9], "object"),
        ([np.int64(1), np.int64(2), 9], "object"),
        ([Decimal(1), Decimal(2), Decimal(9)], "object"),
        (["1", "2.0", "9"], "object"),
        ([1, None, 2, 9], "float64"),
        ([1, None, 2, 9], "object"),
        ([1, math.inf, 2, 9], "float64"),
        (["1", "1e400", "2", "9"], "string"),
    ],
)
def test_numbers(values, dtype):
    assert plan(values, dtype=dtype) == NumberColumn("a", fill=2.0)


def test_numbers_are_filled_with_the_median_even_if_none_is_missing_yet():
    assert plan([5.5, 6.5, 7.5, 60]).fill == 7.0


def test_durations_are_numbers():
    assert plan([1, 2, 9], dtype="timedelta64[s]") == NumberColumn("a", fill=2.0)


@pytest.mark.parametrize(
    ("texts", "style", "fill"),
    [
        (["1,5", "2,5", "9"], "comma", 2.5),
        (["1,234", "2,345", "9"], "thousands", 1234.0),
        (["1.234,5", "1.500", "1,5"], "comma", 1234.5),
    ],
)
def test_styles(texts, style, fill):
    assert plan(texts) == NumberColumn("a", fill, style=style)


def test_a_few_texts_among_numbers():
    found = plan([*map(str, range(0, 100, 3)), "unknown"])
    assert isinstance(found, NumberColumn)
    assert isinstance(plan(["1", "2", "3", "unknown"] * 5), CategoryColumn)


@pytest.mark.parametrize("offset", [2000.0, 1.6e9, -5000.0])
def test_large_offsets_are_centred(offset):
    values = offset + np.array([0.0, 1, 2, 30])
    found = plan(values)
    assert found.centre == found.fill == np.median(values)
    assert plan(values - offset).centre == 0.0


def test_numbers_too_large_to_compute_with():
    assert plan([1e305, -1e308, 1e307]) == NO_NUMBERS
    assert plan([1e305, 1, 2]) == NumberColumn("a", fill=1.5)
    assert plan([1e303, -1e303]) == NumberColumn("a", fill=0.0)
    assert plan([1e303, 1.01e303]).centre == 1.005e303


# -- columns of no use -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "reason"),
    [
        ([1, 1, 1], "int64", CONSTANT),
        (["x", "x"], "object", CONSTANT),
        ([True, True], "bool", CONSTANT),
        ([dt.datetime(2020, 1, 1)] * 2, None, CONSTANT),
        ([1, None, 1], "float64", "all entries are equal or missing"),
        ([None, None], "object", EMPTY),
        ([None, None], "float64", EMPTY),
        (["", "  "], "object", EMPTY),
        ([], "int64", EMPTY),
        ([], "object", EMPTY),
        ([pd.NaT, pd.NaT], None, EMPTY),
        ([math.inf, -math.inf], "float64", NO_NUMBERS),
        ([[1], [2]], "object", "its entries are neither numbers, texts nor dates"),
        ([{}, {"a": 1}], "object", "its entries are neither numbers, texts nor dates"),
        ([b"x", b"y"], "object", "its entries are neither numbers, texts nor dates"),
        ([1j, 2j], None, "its entries are neither numbers, texts nor dates"),
        ([object(), object()], "object", "its entries are neither numbers, texts nor dates"),
    ],
)
def test_left_out(values, dtype, reason):
    assert plan(values, dtype=dtype) == reason


@pytest.mark.parametrize("start", [0, 1, -10, 1000])
def test_row_numbers(start):
    rows = list(range(start, start + 30))
    assert "only numbers the rows" in plan(rows)
    assert isinstance(plan(rows, "number"), NumberColumn)
    assert isinstance(plan(rows[:10]), NumberColumn)
    assert isinstance(plan(rows[::-1]), NumberColumn)
    assert isinstance(plan([*rows, None]), NumberColumn)
    assert isinstance(plan([*rows, math.inf, math.inf]), NumberColumn)


@pytest.mark.parametrize(
    "name", ["id", "ID", "row id", "user_id", "userId", "userID", "Index", "Nr"]
)
def test_keys(name):
    values = np.random.default_rng(0).permutation(10_000)[:50]
    assert "only numbers the rows" in plan(values, name=name)
    assert isinstance(plan(values % 10, name=name), NumberColumn)
    assert isinstance(plan(values + 0.5, name=name), NumberColumn)


@pytest.mark.parametrize(
    "name", ["paid", "humid", "AID", "grid", "casino", "arrow", "idea", "monkey"]
)
def test_names_that_only_end_like_a_key(name):
    values = np.random.default_rng(0).permutation(10_000)[:50]
    assert isinstance(plan(values, name=name), NumberColumn)


def test_identifiers():
    texts = [f"customer {index}" for index in range(50)]
    assert plan(texts) == "nearly every text differs, 50 of 50"
    assert isinstance(plan(texts, "category"), CategoryColumn)
    assert isinstance(plan(texts[:20]), CategoryColumn)
    assert isinstance(plan(texts * 2), CategoryColumn)


# -- categories --------------------------------------------------------------------------------


def test_categories():
    assert plan(["y", "x", "y"]) == CategoryColumn("a", ("y", "x"))
    assert plan(["y", "x"]) == CategoryColumn("a", ("x", "y"))
    assert plan(["y", None, "x"]) == CategoryColumn("a", ("x", "y"), missing=True)
    assert plan(["x", " "]) == CategoryColumn("a", ("x",), missing=True)
    assert plan(["yes", "no"]) == CategoryColumn("a", ("no", "yes"))


def test_rare_levels_share_an_indicator():
    texts = [f"level {index:02d}" for index in range(MOST_LEVELS + 5)] * 3
    found = plan([*texts, texts[-1]])
    assert found.other
    assert len(found.levels) == MOST_LEVELS
    assert found.levels[0] == texts[-1]
    assert not plan([text for text in texts if text < f"level {MOST_LEVELS:02d}"]).other


def test_levels_are_as_they_are_written_most_often():
    assert plan(["01", "1", "01", "x"]).levels == ("01", "x")
    assert plan(["true", "TRUE", "TRUE", "x"]).levels == ("TRUE", "x")


def test_truth_values():
    both = CategoryColumn("a", ("False", "True"), missing=True)
    assert plan([True, False]) == NumberColumn("a", fill=0.5)
    assert plan([True, None, False], dtype="boolean") == both
    assert plan([True, None, False], dtype="object") == both
    assert plan([np.True_, None, np.False_], dtype="object") == both


@pytest.mark.parametrize("values", [["x", "y", None], [1, 2, None], ["1", "2", None]])
def test_what_pandas_calls_a_category_is_one(values):
    levels = tuple(str(value) for value in values[:2])
    assert plan(values, dtype="category") == CategoryColumn("a", levels, missing=True)
    many = plan([f"text {index}" for index in range(50)], dtype="category")
    assert "nearly every text differs" in many


def test_long_texts():
    # As fixed-width texts these would take 16 GB.
    assert "nearly every" in plan(["x" * 200_000, *(f"text {row}" for row in range(20_000))])


# -- dates -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "pattern"),
    [
        (["2020-01-01", "2020-01-05", "2020-01-03"], "datetime64[s]", "ISO8601"),
        (["2020-01-01", "2020-01-05", "2020-01-03"], "datetime64[ns, Europe/Berlin]", "ISO8601"),
        (["2020-01-01", "2020-01-05", "2020-01-03"], "object", "ISO8601"),
        ([dt.date(2020, 1, day) for day in (1, 5, 3)], "object", "ISO8601"),
        ([dt.datetime(2020, 1, day) for day in (1, 5, 3)], "object", "ISO8601"),
        (["01.01.2020", "05.01.2020", "03.01.2020", None], "object", "%d.%m.%Y"),
    ],
)
def test_dates(values, dtype, pattern):
    found = plan(values, dtype=dtype)
    assert isinstance(found, DateColumn)
    assert found.pattern == pattern
    shift = 3600.0 if "Berlin" in str(dtype) else 0.0
    assert found.origin == 1577836800.0 - shift
    assert found.fill == found.origin + 2 * 86400


@pytest.mark.parametrize(
    ("dates", "cycles"),
    [
        (["2020-01-01", "2020-01-05"], ()),
        (["2020-01-01", "2020-01-05 10:00"], ("day",)),
        (["2020-01-01", "2020-02-05"], ("week",)),
        (["2020-01-01", "2020-05-05"], ("year", "week")),
        (["1500-01-01", "9999-12-31 01:00"], ("year", "week", "day")),
    ],
)
def test_cycles(dates, cycles):
    assert plan(dates).cycles == cycles


# -- what the user says ------------------------------------------------------------------------


def test_forced_kinds():
    assert plan(["x", "1,5", "2,5", "x"], "number") == NumberColumn("a", 2.0, style="comma")
    assert plan(["x", "y"], "number") == NO_NUMBERS
    assert plan(["true", "false", None], "number") == NumberColumn("a", fill=0.5)
    assert plan([1, 2, 2], "category") == CategoryColumn("a", ("2", "1"))
    assert plan([1.5, None], "category") == CategoryColumn("a", ("1.5",), missing=True)
    assert plan(["1", "2"], "number", "category") == NumberColumn("a", fill=1.5)
    ids = [2**60, 2**60 + 1, 2**60 + 1]
    assert plan(ids, "category") == CategoryColumn("a", (str(2**60 + 1), str(2**60)))

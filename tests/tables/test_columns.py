"""How one column becomes columns of a matrix."""

import datetime as dt
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.tables import CategoryColumn, DateColumn, NumberColumn
from mixnorm.tables.columns import Gaps

pd = pytest.importorskip("pandas")

DAY = 86400.0


def encode(plan, values, dtype=None):
    matrix, gaps = plan.encode(pd.Series(values, dtype=dtype, index=range(7, 7 + len(values))))
    assert matrix.shape == (len(values), plan.width)
    return matrix.tolist(), gaps


def test_gaps_add_up():
    total = Gaps(1, 2, 3, 4, ("a", "b")) + Gaps(10, 20, 30, 40, ("b", "c", "d"))
    assert total == Gaps(11, 22, 33, 44, ("a", "b", "c"))


# -- numbers -----------------------------------------------------------------------------------


def test_numbers():
    plan = NumberColumn("a", fill=5.0)
    assert encode(plan, [1, 2]) == ([[1], [2]], Gaps())
    assert encode(plan, [], "object") == ([], Gaps())


@pytest.mark.parametrize(
    ("values", "dtype", "found", "gaps"),
    [
        ([1, math.nan], None, [1, 5], Gaps(missing=1)),
        ([1, None], "Int64", [1, 5], Gaps(missing=1)),
        ([None, None], "object", [5, 5], Gaps(missing=2)),
        ([math.inf, -math.inf, 1e305], None, [5, 5, 5], Gaps(infinite=3)),
        (["1", "1e400", "", " ", None], "object", [1, 5, 5, 5, 5], Gaps(missing=3, infinite=1)),
        (["x", "y", "x", "z", "w", "1"], None, [5] * 5 + [1],
         Gaps(strange=5, examples=("x", "y", "z"))),
        ([True, None, False], "object", [1, 5, 0], Gaps(missing=1)),
        (["true", "false", "maybe"], None, [1, 0, 5], Gaps(strange=1, examples=("maybe",))),
        ([dt.datetime(2020, 1, 1)], None, [5], Gaps(strange=1, examples=("2020-01-01 00:00:00",))),
        ([[1], {}], "object", [5, 5], Gaps(strange=2, examples=("[1]", "{}"))),
    ],
)  # fmt: skip
def test_numbers_with_gaps(values, dtype, found, gaps):
    assert encode(NumberColumn("a", fill=5.0), values, dtype) == (
        [[value] for value in found],
        gaps,
    )


def test_numbers_are_centred_after_filling():
    matrix, _ = encode(NumberColumn("a", fill=2000.0, centre=2000.0), [1999, None, 2010])
    assert matrix == [[-1], [0], [10]]


def test_numbers_in_a_style():
    assert encode(NumberColumn("a", 0.0, style="comma"), ["1,5", "1.000"])[0] == [[1.5], [1000]]
    assert encode(NumberColumn("a", 0.0, style="comma"), [1.5, 2])[0] == [[1.5], [2]]


# -- categories --------------------------------------------------------------------------------


def test_categories():
    plan = CategoryColumn("a", ("x", "y"))
    assert plan.width == 2
    assert plan.labels == ("x", "y")
    assert encode(plan, ["y", "x"]) == ([[0, 1], [1, 0]], Gaps())
    assert encode(plan, [], "object") == ([], Gaps())


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_categories_with_missing_and_new_levels(missing, other):
    plan = CategoryColumn("a", ("x", "y"), missing, other)
    assert plan.width == 2 + missing + other
    assert len(plan.labels) == plan.width
    matrix, gaps = encode(plan, ["y", None, "new", "newer", "", "x"], "object")
    gap = [0, 0] + [1] * missing + [0] * other
    new = [0, 0] + [0] * missing + [1] * other
    none = [0] * (missing + other)
    assert matrix == [[0, 1, *none], gap, new, new, gap, [1, 0, *none]]
    assert gaps == Gaps(missing=2, unseen=2, examples=("new", "newer"), filled=missing)


@given(
    st.lists(st.sampled_from(["x", "y", "z", "new", None]), max_size=20),
    st.booleans(),
    st.booleans(),
)
def test_every_row_has_at_most_one_indicator(values, missing, other):
    plan = CategoryColumn("a", ("x", "y", "z"), missing, other)
    matrix, gaps = plan.encode(pd.Series(values, dtype="object"))
    shown = {"x", "y", "z"} | ({None} if missing else set()) | ({"new"} if other else set())
    assert matrix.sum(axis=1).tolist() == [float(value in shown) for value in values]
    assert gaps.missing == values.count(None)
    assert gaps.unseen == values.count("new")


@pytest.mark.parametrize(
    ("levels", "values", "dtype"),
    [
        (("01", "02", "x"), [1, 2, 1], "int64"),
        (("01", "02", "x"), [1, 2, 1], "float64"),
        (("1", "2.50", "x"), ["1.0", "2.5", "1"], "object"),
        (("true", "false", "maybe"), [True, False, True], "bool"),
        (("true", "false", "maybe"), [True, False, True], "object"),
        (("True", "False"), ["TRUE", "false", "true"], "object"),
        (("2020-01-01", "2020-01-02", "never"), ["2020-01-01", "2020-01-02", "2020-01-01"],
         "datetime64[s]"),
        ((str(2**60), str(2**60 + 1)), [2**60, 2**60 + 1, 2**60], "int64"),
    ],
)  # fmt: skip
def test_levels_are_known_however_a_file_was_read(levels, values, dtype):
    matrix, gaps = encode(CategoryColumn("a", levels), values, dtype)
    rest = [0] * (len(levels) - 2)
    assert matrix == [[1, 0, *rest], [0, 1, *rest], [1, 0, *rest]]
    assert gaps == Gaps()


# -- dates -------------------------------------------------------------------------------------


def test_dates():
    plan = DateColumn("a", "%d.%m.%Y", origin=DAY, fill=3 * DAY)
    matrix, gaps = encode(plan, ["02.01.1970", None, "05.01.1970", "soon", " "], "object")
    assert matrix == [[0], [2], [3], [2], [2]]
    assert gaps == Gaps(missing=2, strange=1, examples=("soon",))
    assert encode(plan, [dt.date(1970, 1, 3)], "datetime64[s]") == ([[1]], Gaps())
    assert encode(plan, [], "object") == ([], Gaps())


@pytest.mark.parametrize(("cycle", "days"), [("year", 365.2425), ("week", 7), ("day", 1)])
def test_cycles_come_back_to_where_they_were(cycle, days):
    plan = DateColumn("a", "ISO8601", 0.0, 0.0, (cycle,))
    assert plan.width == 3
    start = pd.Timestamp(2020, 3, 4, 5)
    shift = pd.Timedelta(days=days)
    dates = [start, start + shift, start + shift / 2, start + shift / 4]
    (_, *first), (_, *again), (_, *half), (_, *quarter) = encode(plan, dates)[0]
    # Stamps are cut to milliseconds, and a day is the shortest cycle.
    close = 2 * np.pi * 1e-3 / DAY
    np.testing.assert_allclose(again, first, atol=close)
    np.testing.assert_allclose(half, np.negative(first), atol=close)
    np.testing.assert_allclose(quarter, [first[1], -first[0]], atol=close)


def test_dates_far_away():
    plan = DateColumn("a", "ISO8601", 0.0, 0.0, ("year", "week", "day"))
    matrix, gaps = encode(plan, ["1500-01-01", "9999-12-31"], "object")
    assert gaps == Gaps()
    assert [row[0] for row in matrix] == [-171664, 2932896]

"""Decimal commas and points: what proves them, and tables that change them."""

import pytest

pd = pytest.importorskip("pandas")

from mixnorm.tables import NumberColumn, TableEncoder, detect_decimal_mark  # noqa: E402
from mixnorm.tables.marks import detect_text_mark, restyle_columns  # noqa: E402


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("1,5", ","), ("0,377", ","), ("-0,377 €", ","), ("1.234,5", ","), ("1.234.567", ","),
        ("1.5", "."), ("0.377", "."), ("1,234.5", "."), ("1,234,567", "."), ("$ 2.50", "."),
        ("1,234", ""), ("1.234", ""), ("7", ""), ("van", ""), ("1.1.2020", ""), ("1,2,3", ""),
    ],
)  # fmt: skip
def test_what_proves_a_mark(text, mark):
    assert detect_text_mark(text) == mark


def test_the_mark_of_a_table_is_the_one_that_all_agree_on():
    frame = pd.DataFrame({"a": ["1,5", "2"], "b": ["1,234", "5,678"], "c": [0.5, 1.5]})
    assert detect_decimal_mark(frame) == ","
    assert detect_decimal_mark(frame.assign(d=["1.5", "2.5"])) == ""
    assert detect_decimal_mark(frame.assign(a="van 1,5")) == ""  # no numbers


def test_columns_that_could_have_either_mark_have_that_of_the_table():
    frame = pd.DataFrame({"a": ["1,5", "2,5", "0,1"], "b": ["1,234", "5,678", "2,000"]})
    assert [plan.style for plan in TableEncoder.plan(frame).columns] == ["comma", "comma"]
    assert TableEncoder.plan(frame[["b"]]).columns[0].style == "thousands"


def test_columns_that_prove_nothing_follow_those_that_do():
    columns = [NumberColumn("a", 0.0), NumberColumn("b", 0.0), NumberColumn("c", 0.0)]
    found = restyle_columns(columns, {"a": ["1,5"], "b": ["1,234"]})
    assert [column.style for column in found] == ["comma", "comma", "plain"]
    back = restyle_columns(found, {"a": ["1.5"], "b": ["1.234"]})
    assert [column.style for column in back] == ["thousands", "thousands", "plain"]
    assert restyle_columns(found, {"b": ["1.234"]}) == found


def test_dots_between_thousands_are_none_of_decimals(columns):
    found = columns("a;b;c\n1,5;1.234;0.25\n2,5;950;1.5\n0,5;2.000;x\n")
    assert found["b"] == ["1.234", "950", "2.000"]
    assert columns("a;b\nx;1.234\ny;950\n")["b"] == [1.234, 950.0]

"""Names of matrix columns: what is said of their values, in the units of the table."""

import pytest

from mixnorm.pools import Boxes, Pieces, Products, Stumps
from mixnorm.tables.names import ColumnName, DayName, LevelName, NumberName

DAY = 86400.0


@pytest.mark.parametrize(
    ("name", "below", "above"),
    [
        (ColumnName("x"), "x ≤ 0.5", "x > 0.5"),
        (NumberName("size", centre=90.0, scale=3.0), "size ≤ 91.5", "size > 91.5"),
        (LevelName("fuel", "gas"), "fuel is not gas", "fuel = gas"),
        (DayName("sold", 0.0, timed=False), "sold ≤ 1970-01-01", "sold > 1970-01-01"),
        (DayName("sold", 0.0, timed=True), "sold ≤ 1970-01-01 12:00", "sold > 1970-01-01 12:00"),
    ],
)
def test_thresholds(name, below, above):
    assert name.below(0.5) == Stumps().describe((0, 0.5), [name]) == below
    assert name.above(0.5) == Boxes().describe(((0, ">", 0.5),), [name]) == above


def test_an_indicator_beyond_its_values():
    name = LevelName("fuel", "gas")
    assert name.below(2.0) == "fuel = gas ≤ 2"
    assert name.above(-1.0) == "fuel = gas > -1"


def test_factors_and_values():
    year = NumberName("year", centre=2000.0)
    assert Products().describe((0, 1), [year, ColumnName("x")]) == "(year − 2000) × x"
    assert Products().describe((0, 0), [LevelName("fuel", "gas")]) == "(fuel = gas)²"
    assert year.at(3.0) == "year 2003"
    assert Pieces().describe(((3.0,), 1.5), [year]) == "within 1.5 of (year 2003)"
    assert DayName("sold", DAY, timed=False).at(1.0) == "sold 1970-01-03"

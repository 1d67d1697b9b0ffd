"""The column to predict."""

import datetime as dt
import math

import numpy as np
import pytest

from mixnorm.exceptions import TableError
from mixnorm.tables import find_column, read_target

pd = pytest.importorskip("pandas")


def target(values, task=None, dtype=None):
    return read_target(
        pd.Series(values, dtype=dtype, name="y", index=range(7, 7 + len(values))), task
    )


@pytest.mark.parametrize(
    ("values", "dtype", "labels"),
    [
        (["x", "y", "x", "x"], "object", ["x", "y", "x", "x"]),
        (["x", " y ", "x", "x"], "string", ["x", "y", "x", "x"]),
        (["x", "y", "x", "x"], "category", ["x", "y", "x", "x"]),
        ([1, 2] * 5, "category", ["1", "2"] * 5),
        ([True, False], "bool", ["True", "False"]),
        ([True, False], "object", ["True", "False"]),
        ([3, 5, 4] * 5, "int64", [3, 5, 4] * 5),
        ([3, 5, 4] * 5, "Int64", [3, 5, 4] * 5),
        ([3, 5, 4] * 5, "float64", [3, 5, 4] * 5),
        ([0.5, 1.5, 0.5], "float64", ["0.5", "1.5", "0.5"]),  # two values are two classes
        ([-1, 1], "int8", [-1, 1]),
        ([2**60, 2**60 + 1], "int64", [str(2**60), str(2**60 + 1)]),
        (["1", "2", "1", "2"], "object", ["1", "2", "1", "2"]),
    ],
)
def test_labels(values, dtype, labels):
    found = target(values, dtype=dtype)
    assert found.task == "classification"
    assert found.values.tolist() == labels
    assert found.values.dtype.kind == ("i" if isinstance(labels[0], int) else "U")
    assert found.rows.tolist() == list(range(len(values)))
    (note,) = found.notes
    assert f"'y' holds {len(set(labels))} classes: classification" in note
    assert ("--task regression" in note) == isinstance(labels[0], int)


@pytest.mark.parametrize(
    ("values", "dtype", "numbers"),
    [
        ([0.5, 1.5, 2.5], "float64", [0.5, 1.5, 2.5]),
        (range(40), "int64", range(40)),
        ([3, 5, 4], "int64", [3, 5, 4]),  # few rows for so many classes
        (
            [f"{n},5" for n in range(40)],
            "object",
            [n + 0.5 for n in range(40)],
        ),
        ([f"{n},234" for n in range(1, 41)], "object", [1000 * n + 234 for n in range(1, 41)]),
    ],
)
def test_numbers(values, dtype, numbers):
    found = target(values, dtype=dtype)
    assert found.task == "regression"
    assert found.values.dtype == np.float64
    assert found.values.tolist() == list(numbers)
    assert found.notes == ["'y' holds numbers: regression (--task classification overrides this)."]


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_rows_without_a_target_are_left_out(blank):
    found = target(["x", blank, "y", blank, "x"], dtype="object")
    assert found.values.tolist() == ["x", "y", "x"]
    assert found.rows.tolist() == [0, 2, 4]
    assert found.notes[0] == "2 of 5 rows have no target 'y' and are left out."


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([], "object"), ([None, None], "object"), ([math.nan], None), ([" "], None)],
)
@pytest.mark.parametrize("task", [None, "classification", "regression"])
def test_no_target_at_all(values, dtype, task):
    with pytest.raises(TableError, match="'y' is missing in every row"):
        target(values, task, dtype)


def test_one_class_is_for_the_caller_to_judge():
    assert target(["x"] * 5).values.tolist() == ["x"] * 5
    assert target([7] * 5).values.tolist() == [7] * 5


@pytest.mark.parametrize("task", [None, "regression"])
def test_dates(task):
    dates = pd.date_range("2020-01-01", periods=9)
    with pytest.raises(TableError, match="'y' holds dates"):
        target(dates, task)
    assert (
        target([dates[0], dates[1]] * 2, "classification").values.tolist()
        == [
            "2020-01-01",
            "2020-01-02",
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("values", "dtype", "numbers"),
    [
        ([1, 2] * 3, "int64", [1, 2] * 3),
        (["1,5", "2"], "object", [1.5, 2]),
        ([True, False], "bool", [1, 0]),
        ([True, False], "object", [1, 0]),
        (["true", "false"], "object", [1, 0]),
        (["1", "2"], "category", [1, 2]),
    ],
)
def test_forced_regression(values, dtype, numbers):
    found = target(values, "regression", dtype)
    assert found.values.tolist() == numbers
    assert found.notes == []


@pytest.mark.parametrize(
    ("values", "first", "count"),
    [
        (["x", "1", "y"], "x", "2 rows"),
        ([1.0, math.inf, 2.0], "inf", "1 row"),
        ([1.0, 1e305, 2.0], "1e[+]305", "1 row"),
        ([b"1", dt.time(1)], "b'1'", "2 rows"),
    ],
)
def test_regression_needs_numbers(values, first, count):
    with pytest.raises(TableError, match=rf"'y' is not a number in {count} \(['\"]{first}['\"]"):
        target(values, "regression")


def test_forced_classification():
    found = target([0.5, 1.5, 2.5] * 3, "classification")
    assert found.values.tolist() == ["0.5", "1.5", "2.5"] * 3
    assert found.notes == []
    assert target(list(range(40)) * 2, "classification").values.tolist() == list(range(40)) * 2


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ([f"text {index}" for index in range(20)], None),
        ([index + 0.5 for index in range(20)], "classification"),
        (list(range(100)), "classification"),
        (["x" * 200_000, *map("text {}".format, range(20_000))], None),  # 16 GB as fixed width
    ],
)
def test_too_many_labels(values, task):
    with pytest.raises(
        TableError, match=f"has {len(values)} different labels in {len(values)} rows"
    ):
        target(values, task)


# -- finding it --------------------------------------------------------------------------------


def test_find_column():
    frame = pd.DataFrame(columns=["Power", "weight", "Weight", "year of make"])
    assert find_column(frame, "Power", "cars") == "Power"
    assert find_column(frame, " power ", "cars") == "Power"
    assert find_column(frame, "weight", "cars") == "weight"
    with pytest.raises(TableError, match=r"cars has no column 'WEIGHT'"):
        find_column(frame, "WEIGHT", "cars")
    with pytest.raises(TableError, match=r"Did you mean 'year of make'\?"):
        find_column(frame, "year of made", "cars")
    with pytest.raises(TableError, match=r"It has 'Power', 'weight', 'Weight', 'year of make'\."):
        find_column(frame, "zzz", "cars")
    with pytest.raises(TableError, match=r"'c7' and 1 more\."):
        find_column(pd.DataFrame(columns=[f"c{index}" for index in range(9)]), "zzz", "cars")

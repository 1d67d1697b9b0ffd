"""Rows of a stream: what columns are, decided as for a whole table, and features of single rows."""

import math
from datetime import date, datetime

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="dates are read with pandas")

from mixnorm.tables import (  # noqa: E402
    CategoryColumn,
    DateColumn,
    NumberColumn,
    RowColumn,
    RowEncoder,
    RowReader,
    TableEncoder,
    read_table,
)
from mixnorm.tables.rows.columns import decide_columns, values_by_name  # noqa: E402

ROWS = 60
COLUMNS = {
    "plain": [f"{0.5 * place:g}" for place in range(ROWS)],
    "odd": ["?" if place % 7 == 0 else str(place * place) for place in range(ROWS - 1)] + ["off"],
    "money": [f"$ {place + 1},{place:02d}3.5" for place in range(ROWS)],
    "share": [f"{place % 9},5 %" for place in range(ROWS)],
    "on": ["true" if place % 3 else "FALSE" for place in range(ROWS)],
    "sometimes": [["true", "false", "NA"][place % 3] for place in range(ROWS)],
    "fuel": [["gas", "oil", "none", "7"][place % 4] for place in range(ROWS)],
    "day": [f"{1 + place % 28}.{1 + place % 12}.2023" for place in range(ROWS)],
    "moment": [f"2023-01-{1 + place % 28:02d} {place % 24:02d}:30" for place in range(ROWS)],
    "gone": ["-" if place % 5 else f"2021-03-0{1 + place % 9}" for place in range(ROWS)],
    "Id": [str(7 * place % 61) for place in range(ROWS)],
    "count": [str(place) for place in range(ROWS)],
    "name": [f"Person, Mr. {place}" for place in range(ROWS)],
}


def test_kinds_are_those_of_a_whole_table(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame(COLUMNS).to_csv(path, sep=";", index=False)
    planned = TableEncoder.plan(read_table(path).frame)
    kinds = {NumberColumn: "number", CategoryColumn: "category", DateColumn: "date"}
    expected = {plan.name: kinds[type(plan)] for plan in planned.columns}
    expected.update(dict.fromkeys((name for name, _ in planned.left_out), "left out"))
    found = {column.name: column for column in decide_columns(COLUMNS)}
    assert {name: column.kind for name, column in found.items()} == expected
    for plan in planned.columns:
        if isinstance(plan, NumberColumn) and plan.name != "on":  # stored as truth values
            assert found[plan.name].style == plan.style
        if isinstance(plan, DateColumn) and plan.name != "moment":  # stored as dates
            assert found[plan.name].pattern == plan.pattern


def test_numbers_are_those_of_a_whole_table(tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame(COLUMNS).drop(columns=["Id", "count", "name"])
    frame.to_csv(path, sep=";", index=False)
    table = read_table(path)
    planned = TableEncoder.plan(table.frame)
    with RowReader(path) as reader:
        rows = [row.entries for row in reader.take(1000)]
    features = reader.encoder(reader.decide(rows)).encode(rows)
    for plan in planned.columns:
        matrix, _ = plan.encode(table.frame[plan.name])
        if isinstance(plan, NumberColumn):
            own = np.array([row[plan.name] for row in features], dtype=float)
            known = ~np.isnan(own)
            np.testing.assert_allclose(own[known], matrix[known, 0] + plan.centre)
            np.testing.assert_allclose(matrix[~known, 0] + plan.centre, plan.fill)
        elif isinstance(plan, DateColumn):
            days, *_ = names = [str(name) for name in plan.column_names]
            known = np.array([row[days] is not None for row in features])
            assert known.sum() > 10
            own = np.array([[row[name] for name in names] for row in features if row[days]])
            there = matrix[known & (matrix[:, 0] != 0)]
            np.testing.assert_allclose(own[:, 0], there[:, 0], atol=1e-9)
            # Cycles are those of a table, turned.
            turn, *_ = np.linalg.lstsq(there[:, 1:3], own[:, 1:3], rcond=None)
            np.testing.assert_allclose(there[:, 1:3] @ turn, own[:, 1:3], atol=1e-9)
            np.testing.assert_allclose(turn @ turn.T, np.eye(2), atol=1e-9)
        else:
            for place, level in enumerate(plan.labels):
                own = [float(row[plan.name] == level) for row in features]
                assert own == matrix[:, place].tolist()


def test_an_odd_entry_makes_no_categories():
    entries = [str(place / 4) for place in range(30)]
    entries[11] = "broken"
    [column] = decide_columns({"x": entries})
    assert column == RowColumn("x", "number")
    encoder = RowEncoder([column], header=["x"])
    features = encoder.encode([[text] for text in entries])
    assert features[11] == {"x": None}
    assert features[12] == {"x": 3.0}
    assert encoder.remarks() == ["Taken as missing in x: 1 unreadable ('broken')."]


def test_what_the_user_says():
    columns = {"code": ["1", "2", "3"], "size": ["tall", "2", "low"]}
    found = decide_columns(columns, categories=["code"], numbers=["size"])
    assert found == (RowColumn("code", "category"), RowColumn("size", "number"))
    keys = {"name": [f"n{place}" for place in range(40)], "Id": list(range(5, 45))}
    assert [column.kind for column in decide_columns(keys)] == ["left out", "left out"]
    kept = decide_columns(keys, numbers=["Id"], keep_keys=True)
    assert [column.kind for column in kept] == ["category", "number"]
    assert decide_columns({"empty": ["", "NA", None, math.nan]}) == ()


def test_dates_count_from_the_same_day():
    first = decide_columns({"t": ["2024-05-02", "2024-05-03"]})
    then = decide_columns({"t": ["2024-05-02", "2024-05-03", "2024-04-01"]}, earlier=first)
    assert then == first
    features = RowEncoder(then, header=["t"]).encode([["2024-04-01"], ["2024-05-12"], ["?"]])
    assert features[0]["t (days since 2024-05-02)"] == -31.0
    assert features[1]["t (days since 2024-05-02)"] == 10.0
    assert features[2] == {"t (days since 2024-05-02)": None}
    assert len(features[0]) == 5
    timed = decide_columns({"t": ["2024-05-02 10:00"]})
    [features] = RowEncoder(timed, header=["t"]).encode([["2024-05-02 16:00"]])
    turned = 2 * math.pi * 0.25 + math.pi / 4
    assert features["t (time of day, sine)"] == pytest.approx(math.sin(turned))
    assert features["t (time of day, cosine)"] == pytest.approx(math.cos(turned))
    assert features["t (days since 2024-05-02)"] == 0.25


def test_the_first_row_says_what_is_measured_from_means():
    columns = [RowColumn("n", "number"), RowColumn("c", "category")]
    columns += [RowColumn("t", "date", pattern="ISO8601"), RowColumn("no", "left out")]
    encoder = RowEncoder(columns)
    [row] = encoder.encode([{"c": "red", "t": "1970-01-03", "other": 3}])
    expected = {"n": None, "c": "red", "t (days since 1970-01-01)": 2.0, "other": 3.0}
    assert encoder.first(row) == expected
    assert encoder.first({}) == {"n": None, "t (days since 1970-01-01)": None}


def test_objects():
    rows = [
        {"n": place, "at": {"x": 0.5, "when": f"2024-01-{1 + place:02d}"}, "tags": ["a", "b", 3]}
        for place in range(20)
    ]
    rows[3]["n"] = None
    rows[4]["at"]["when"] = None
    rows[5]["rare"] = 2.5
    rows[6]["word"] = "red"
    columns = decide_columns(values_by_name(rows, (), {"n2"}))
    kinds = {column.name: column.kind for column in columns}
    assert kinds == {"n": "number", "at.x": "number", "at.when": "date", "word": "category"}
    features = RowEncoder(columns).encode(rows)
    assert features[3]["n"] is None
    assert features[4]["at.when (days since 2024-01-01)"] is None
    assert features[5]["rare"] == 2.5
    assert features[6]["word"] == "red"
    assert features[7]["at.when (days since 2024-01-01)"] == 7.0
    assert features[7]["tags=a"] == features[7]["tags=b"] == 1.0
    assert features[7]["tags.2"] == 3.0
    assert "word" not in features[7]  # what is not there is not missing


def test_values_of_any_type():
    columns = [
        RowColumn("n", "number", "comma"),
        RowColumn("c", "category"),
        RowColumn("t", "date", pattern="%d.%m.%Y"),
        RowColumn("no", "left out"),
    ]
    encoder = RowEncoder(columns, complete=True)
    day = "t (days since 1970-01-01)"
    rows = [
        {"n": "1,5", "c": "01", "t": "03.01.1970", "no": 1},
        {"n": 1.5, "c": 1, "t": datetime(1970, 1, 3)},
        {"n": np.float64(1.5), "c": np.int64(1), "t": pd.Timestamp("1970-01-03", tz="UTC")},
        {"n": 1.5, "c": 1.0, "t": date(1970, 1, 3)},
    ]
    for row in encoder.encode(rows):
        assert row["n"] == 1.5
        assert row["c"] == "1"
        assert row[day] == 2.0
        assert not any(name.startswith("no") for name in row)
    rows = [
        {},
        {"n": None, "c": None, "t": None},
        {"n": math.nan, "c": pd.NA, "t": pd.NaT},
        {"n": "-", "c": "?", "t": "n.a."},
        {"n": math.inf, "c": "", "t": "none"},
    ]
    for row in encoder.encode(rows):
        assert row["n"] is None
        assert row["c"] == "(missing)"
        assert row[day] is None
    assert "Taken as missing in n: 1 infinite." in encoder.remarks()


def test_entries_of_unknown_columns():
    encoder = RowEncoder(header=["a", "b"], style="thousands")
    assert encoder.encode([["1,500", " red "], ["NA", "inf"], ["none", "TRUE"]]) == [
        {"a": 1500.0, "b": "red"},
        {},
        {"a": "none", "b": 1.0},
    ]


def test_columns_that_a_file_lacks():
    columns = [RowColumn("a", "number"), RowColumn("b", "category")]
    encoder = RowEncoder(columns, header=["a"], complete=True)
    assert encoder.encode([["3"]]) == [{"a": 3.0, "b": "(missing)"}]
    assert RowEncoder(columns, complete=True).encode([{}]) == [{"a": None, "b": "(missing)"}]


@pytest.mark.parametrize("text", ["1_000", "٣", "1e999", "nan"])
def test_numbers_of_python_alone(text):
    encoder = RowEncoder([RowColumn("a", "number"), RowColumn("b", "number")], header=["a", "b"])
    assert encoder.encode([["2", text]]) == [{"a": 2.0, "b": None}]


@pytest.mark.parametrize(
    "broken",
    [
        RowColumn("t", "date", pattern="%H"),
        RowColumn("t", "date", pattern="ISO8601", origin=math.inf),
    ],
)
def test_what_a_file_may_not_say(broken):
    with pytest.raises(ValueError, match="'t'"):
        broken._check_stored()

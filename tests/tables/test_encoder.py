"""Tables to matrices: the same for every order and block of rows and columns."""

import datetime as dt
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.exceptions import TableError
from mixnorm.tables import (
    CategoryColumn,
    DateColumn,
    NumberColumn,
    SparseEncoder,
    SparseTable,
    TableEncoder,
    describe_encoding,
    read_table,
)
from mixnorm.tables.columns import Gaps

pd = pytest.importorskip("pandas")

KINDS = {
    "whole": st.integers(-1000, 1000),
    "large": st.integers(2**24, 2**24 + 50),
    "float": st.floats(-1e6, 1e6),
    "gaps": st.floats(-1e6, 1e6) | st.none() | st.just(math.inf),
    "bool": st.booleans(),
    "truth": st.booleans() | st.none(),
    "word": st.sampled_from(["red", "green", "blue"]),
    "words": st.sampled_from(["x", "y", "01", "2.50", "true", "", None]),
    "german": st.sampled_from(["1,5", "2,25", "1.000,5", None]),
    "date": st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)) | st.none(),
    "day": st.sampled_from(["31.12.2020", "01.02.2021", "15.03.1999", None]),
}


@st.composite
def frames(draw):
    rows = draw(st.integers(2, 25))
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=6))
    data = {}
    for place, kind in enumerate(kinds):
        values = draw(st.lists(KINDS[kind], min_size=rows, max_size=rows))
        data[f"{kind}{place}"] = pd.Series(values, index=range(5, 5 + rows))
    return pd.DataFrame(data)


def check_same(encoder, frame, other, rows=slice(None)):
    """Check that another table has the matrix of some rows of a table."""
    whole, _ = encoder.encode(frame)
    part, _ = encoder.encode(other)
    assert part.dtype == encoder.dtype
    np.testing.assert_array_equal(part, whole[rows])


@given(frames(), st.integers(1, 10))
def test_blocks_of_rows(frame, size):
    encoder = TableEncoder.plan(frame)
    whole, gaps = encoder.encode(frame)
    assert whole.shape == (len(frame), encoder.width)
    assert np.isfinite(whole).all()
    total = {}
    for start in range(0, len(frame), size):
        block = frame.iloc[start : start + size]
        part, found = encoder.encode(block)
        np.testing.assert_array_equal(part, whole[start : start + size])
        for name, gap in found.items():
            total[name] = total.get(name, Gaps()) + gap
    assert total == gaps


@given(frames(), st.randoms(use_true_random=False))
def test_order_of_columns_and_further_columns(frame, random):
    encoder = TableEncoder.plan(frame)
    names = list(frame.columns)
    random.shuffle(names)
    check_same(encoder, frame, frame[names].assign(more="x", still=1))


@given(frames())
def test_rows_read_from_files_one_by_one(tmp_path_factory, frame):
    # A file with few rows may have other types: no gap, no text, nothing at all.
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    frame.to_csv(path, index=False, sep=";")
    whole = read_table(path, delimiter=";").frame
    encoder = TableEncoder.plan(whole)
    for rows in (slice(0, 1), slice(1, 2), slice(2, 10)):
        frame.iloc[rows].to_csv(path, index=False, sep=";")
        check_same(encoder, whole, read_table(path, delimiter=";").frame, rows)


@given(frames())
def test_what_encoders_say_of_themselves(frame):
    encoder = TableEncoder.plan(frame)
    used = [plan.name for plan in encoder.columns]
    assert encoder.names == used
    assert sorted([*used, *(name for name, _ in encoder.left_out)]) == sorted(frame.columns)
    assert len(encoder.kinds) == len(used)
    assert encoder.width == sum(plan.width for plan in encoder.columns)
    if encoder.groups is None:
        assert encoder.width == len(used)
    else:
        assert len(encoder.groups) == encoder.width
        assert encoder.groups == sorted(encoder.groups)
    matrix, gaps = encoder.encode(frame)
    assert all(isinstance(text, str) for text in describe_encoding(encoder, gaps, len(frame)))
    if encoder.dtype == "float32":
        exact = [plan.encode(frame[plan.name])[0] for plan in encoder.columns]
        if exact:
            np.testing.assert_array_equal(matrix, np.hstack(exact))


# -- planning ----------------------------------------------------------------------------------


def test_plan_of_a_small_table():
    frame = pd.DataFrame(
        {
            "number": [1.0, 2.5, None, 7.0],
            "word": ["x", "y", "x", None],
            "date": pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-05"]),
            "same": [1, 1, 1, 1],
            "copy": [1.0, 2.5, None, 7.0],
            "lists": [[1], [2], [3], [4]],
        }
    )
    encoder = TableEncoder.plan(frame)
    assert [type(plan) for plan in encoder.columns] == [NumberColumn, CategoryColumn, DateColumn]
    assert dict(encoder.left_out) == {
        "same": "every entry is the same",
        "copy": "it is a copy of 'number'",
        "lists": "its entries are neither numbers, texts nor dates",
    }
    assert encoder.groups == [0, 1, 1, 1, 2]
    assert encoder.kinds == ["number", "category (3 levels)", "date"]
    matrix, gaps = encoder.encode(frame)
    expected = [[1, 1, 0, 0, 0], [2.5, 0, 1, 0, 1], [2.5, 1, 0, 0, 1], [7, 0, 0, 1, 4]]
    assert matrix.tolist() == expected
    assert gaps == {name: Gaps(missing=1) for name in ("number", "word", "date")}
    said = describe_encoding(encoder, gaps, 4)
    assert "Categories, each counted as one feature: word (3 levels)." in said
    assert "Dates, each counted as one feature: date." in said
    (filled,) = [text for text in said if text.startswith("Missing")]
    assert "number (1, filled with the median 2.5)" in filled
    assert "word (1, a level of their own)" in filled
    assert "date (1, filled with the median 2020-01-02)" in filled
    assert "Left out: same (every entry is the same)." in said


def test_what_was_strange_is_said():
    numbers = [*map(str, range(0, 60, 2)), "many", "inf"]
    frame = pd.DataFrame({"a": numbers})
    encoder = TableEncoder.plan(frame)
    said = describe_encoding(encoder, encoder.encode(frame)[1], len(frame))
    assert said == ["Taken as missing in a: 1 infinite and 1 unreadable ('many')."]


def test_long_lists_are_shortened():
    frame = pd.DataFrame({f"c{index}": [1, 1] for index in range(10)})
    (said,) = describe_encoding(TableEncoder.plan(frame), {}, 2)
    assert said == "Left out: c0, c1, c2, c3, c4, c5 and 4 more (every entry is the same)."


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2, 5], "float32"),
        ([2**24 - 1, 0, 1], "float32"),
        ([2**24 + 1, 0, 1], "float64"),
        ([0.5, 1.5, 3], "float64"),
        ([2**40, 2**40 + 1, 2**40 + 3], "float32"),  # centred
        ([True, False, True], "float32"),
        (["x", "y", "x"], "float32"),
        (["2020-01-01", "2020-01-02", "2020-02-02"], "float64"),
        ([1, None, 2], "float64"),  # filled with one and a half
    ],
)
def test_single_precision_only_where_it_is_exact(values, dtype):
    frame = pd.DataFrame({"a": values})
    encoder = TableEncoder.plan(frame)
    assert encoder.dtype == dtype
    assert encoder.encode(frame)[0].dtype == dtype
    mixed = frame.assign(b=[0.25, 0.5, 1])
    assert TableEncoder.plan(mixed).dtype == "float64"


def test_numbers_that_single_precision_does_not_hold():
    encoder = TableEncoder.plan(pd.DataFrame({"a": [1, 2, 5]}))
    matrix, gaps = encoder.encode(pd.DataFrame({"a": [1e35, -1e45, 1e305, 3]}))
    assert matrix[:, 0].tolist() == [np.float32(1e15), np.float32(-1e15), 2, 3]
    assert gaps == {"a": Gaps(infinite=1)}


def test_copies():
    frame = pd.DataFrame(
        {"a": [1, 2, 5], "b": [1, 2, 6], "c": [1.0, 2.0, 5.0], "d": ["1", "2", "5"]}
    )
    encoder = TableEncoder.plan(frame)
    assert encoder.names == ["a", "b"]
    assert [reason for _, reason in encoder.left_out] == ["it is a copy of 'a'"] * 2


def test_kinds_that_the_user_names():
    frame = pd.DataFrame({"a": [1, 2, 3, 3], "b": range(4), 3: [1, 2, 1, 2], 4: [3, 1, 2, 2]})
    encoder = TableEncoder.plan(frame, numbers=["b", 3], categories=["a", 4])
    kinds = dict(zip(encoder.names, encoder.kinds, strict=True))
    assert kinds == {
        "a": "category (3 levels)",
        "b": "number",
        "3": "number",
        "4": "category (3 levels)",
    }


def test_no_columns_and_no_rows():
    empty = TableEncoder.plan(pd.DataFrame({"a": []}))
    assert empty.columns == ()
    assert empty.encode(pd.DataFrame({"a": [1, 2]}))[0].shape == (2, 0)
    encoder = TableEncoder.plan(pd.DataFrame({"a": [1, 2, 4], "b": ["x", "y", "y"]}))
    assert encoder.encode(pd.DataFrame({"b": [], "a": []}))[0].shape == (0, 3)


# -- names -------------------------------------------------------------------------------------


def test_missing_columns_are_named_with_near_ones():
    encoder = TableEncoder.plan(pd.DataFrame({"power": [1, 2, 4], "weight": [3, 1, 1]}))
    with pytest.raises(TableError, match=r"lacks the column 'power' \(is it 'powr'\?\)"):
        encoder.encode(pd.DataFrame({"powr": [1], "weight": [1]}))
    with pytest.raises(TableError, match="lacks the columns 'power', 'weight'"):
        encoder.encode(pd.DataFrame({"x": [1]}))
    many = TableEncoder.plan(pd.DataFrame({f"name {i}": [i, 2 * i + 1, 1] for i in range(9)}))
    with pytest.raises(TableError, match="and 4 more, which the model needs"):
        many.encode(pd.DataFrame({"x": [1]}))


def test_columns_that_are_not_needed_may_be_absent():
    frame = pd.DataFrame({"a": [1, 2, 4], "b": ["x", "y", "y"], "c": [3, 1, 1]})
    encoder = TableEncoder.plan(frame)
    matrix, _ = encoder.encode(frame[["c", "b"]], needed=[2, 1])
    assert matrix.tolist() == [[0, 0, 1, 3], [0, 1, 0, 1], [0, 1, 0, 1]]


@pytest.mark.parametrize(
    "names",
    [
        [0, 1, 2],
        [1.5, None, True],
        [dt.date(2020, 1, 1), "x", 3],
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
    ],
)
def test_names_that_are_no_texts(names):
    plain = pd.DataFrame({"a": [1, 2, 4], "b": ["x", "y", "y"], "c": [1, 2, 4]})
    frame = plain.set_axis(names, axis=1)
    encoder = TableEncoder.plan(frame)
    texts = [str(name) for name in frame.columns]
    assert encoder.names == texts[:2]
    assert encoder.left_out == ((texts[2], f"it is a copy of {texts[0]!r}"),)
    matrix = TableEncoder.plan(plain).encode(plain)[0]
    np.testing.assert_array_equal(encoder.encode(frame)[0], matrix)
    np.testing.assert_array_equal(encoder.encode(frame.iloc[:, ::-1])[0], matrix)


def test_names_that_occur_twice():
    frame = pd.DataFrame([[1, 2, 3], [2, 3, 5]], columns=["a", "a", "b"])
    with pytest.raises(TableError, match="more than one column 'a'"):
        TableEncoder.plan(frame)
    for name, found in (("a", None), ("b", [[3], [5]])):
        encoder = TableEncoder.plan(pd.DataFrame({name: [1, 2, 9]}))
        if found is None:
            with pytest.raises(TableError, match="more than one column 'a'"):
                encoder.encode(frame)
        else:
            assert encoder.encode(frame)[0].tolist() == found


def test_the_table_is_left_as_it_was():
    frame = pd.DataFrame({0: [1, None, 4], 1: ["x", " y", "y"]}, index=[3, 3, 1])
    before = frame.copy(deep=True)
    TableEncoder.plan(frame).encode(frame)
    pd.testing.assert_frame_equal(frame, before)


# -- sparse tables -----------------------------------------------------------------------------


@pytest.mark.parametrize(("zero_based", "names"), [(True, ["0", "1"]), (False, ["1", "2"])])
def test_sparse_encoder(zero_based, names):
    encoder = SparseEncoder(np.arange(2), zero_based)
    assert encoder.names == names
    assert encoder.kinds == ["number", "number"]
    assert encoder.groups is None


@pytest.mark.parametrize("width", [0, 1, 3, 5])
def test_sparse_tables_of_any_width(width):
    rows = np.arange(2 * width, dtype=float).reshape(2, width)
    encoder = SparseEncoder(np.arange(3), True)
    matrix, gaps = encoder.encode(SparseTable("t", sp.csr_array(rows), [1, 2], True))
    assert gaps == {}
    expected = np.zeros((2, 3))
    expected[:, : min(width, 3)] = rows[:, :3]
    np.testing.assert_array_equal(matrix.toarray(), expected)


def test_sparse_tables_with_few_of_many_columns():
    entries = ([1.0, 2.0, 3.0], ([0, 1, 2], [5, 2_000_000_000, 5]))
    table = SparseTable("t", sp.csr_array(entries, shape=(3, 2_000_000_001)), [0, 1, 0], True)
    encoder = SparseEncoder.plan(table)
    assert encoder.names == ["5", "2000000000"]
    np.testing.assert_array_equal(encoder.encode(table)[0].toarray(), [[1, 0], [0, 2], [3, 0]])


@pytest.mark.parametrize(
    ("dates", "said"),
    [
        (["01/02/2020", "03/04/2020", "05/06/2020"], "sold (month first)"),
        (["31.01.2020", "01.02.2020", "05.06.2020"], "sold (day first)"),
        (["2020-01-31", "2020-02-01", "2020-06-05"], "sold"),
    ],
)
def test_the_order_of_day_and_month_is_said(dates, said):
    encoder = TableEncoder.plan(pd.DataFrame({"sold": dates}))
    assert describe_encoding(encoder, {}, 3) == [f"Dates, each counted as one feature: {said}."]


def test_names_of_matrix_columns():
    frame = pd.DataFrame(
        {
            "age": [20, 35, 70, 41],
            "year": [1998, 1999, 2001, 2004],
            "colour": ["red", "blue", None, "red"],
            "seen": ["2024-01-01", "2024-03-31", "2024-02-01", "2024-01-15"],
        }
    )
    encoder = TableEncoder.plan(frame)
    assert encoder.owners == [0, 1, 2, 2, 2, 3, 3, 3, 3, 3]
    age, year, red, _, missing, days, sine, *_ = names = encoder.column_names
    assert len(names) == encoder.width
    assert [*map(str, names[:6])] == [
        "age",
        "year",
        "colour = red",
        "colour = blue",
        "colour = (missing)",
        "seen (days since 2024-01-01)",
    ]
    assert sine == "seen (time of year, sine)"
    assert age.below(30.5) == "age ≤ 30.5"
    assert year.below(-1.5) == "year ≤ 1998.5"  # it is centred
    assert (age.factor, year.factor) == ("age", "(year − 2000)")
    assert red.below(0.5) == "colour is not red"
    assert missing.below(0.5) == "colour is not (missing)"
    assert (red.at(1.0), red.at(0.0), red.at(0.25)) == (
        "colour = red",
        "colour ≠ red",
        "colour = red 25%",
    )
    assert red.factor == "(colour = red)"
    assert days.below(31.5) == "seen ≤ 2024-02-01"
    assert days.at(0.0) == "seen 2024-01-01"
    assert sine.below(0.5) == "seen (time of year, sine) ≤ 0.5"
    timed = TableEncoder.plan(pd.DataFrame({"t": ["2024-01-01 08:00", "2024-01-02 09:30"]}))
    assert timed.column_names[0].below(0.5) == "t ≤ 2024-01-01 20:00"


@pytest.mark.parametrize(
    ("centre", "scale", "threshold", "text"),
    [
        (0.0, 1.0, 1234567.5, "1234567.5"),
        (0.0, 1.0, 1e-9, "1e-09"),
        (0.0, 1.0, 2.5e20, "2.5e+20"),
        (0.0, 1.0, 0.0, "0"),
        (1e6, 1.0, 0.00125, "1000000.00125"),
        (-3.0, 2.0, 0.25, "-2.5"),
        (0.0, 1.0, float(np.float32(0.3)), "0.3"),
    ],
)
def test_thresholds_in_the_units_of_the_table(centre, scale, threshold, text):
    plan = NumberColumn("x", 0.0, centre, scale=scale)
    assert plan.column_names[0].below(threshold) == f"x ≤ {text}"


def test_columns_on_one_scale():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 1000, 50),
            "b": 1e200 * (5 + rng.random(50)),
            "c": rng.choice(list("xyz"), 50),
            "d": pd.date_range("2020-01-01", periods=50, freq="3D"),
        }
    )
    plain, scaled = TableEncoder.plan(frame), TableEncoder.plan(frame, standardise=True)
    assert scaled.dtype == "float64"
    before, after = plain.encode(frame)[0], scaled.encode(frame)[0]
    np.testing.assert_allclose(after[:, :2].mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(after[:, :2].std(axis=0), 1.0)
    np.testing.assert_array_equal(after[:, 2:5], before[:, 2:5])  # indicators stay
    assert after[:, 5].std() == pytest.approx(1.0)
    np.testing.assert_allclose(after[:, 6:], before[:, 6:])
    half = (after[10, 0] + after[11, 0]) / 2
    shown = float(scaled.column_names[0].below(half).split()[-1])
    assert shown == pytest.approx((frame["a"][10] + frame["a"][11]) / 2, abs=1e-3)
    assert scaled.column_names[5].below(after[7, 5] + 1e-9) == "d ≤ 2020-01-22"


def test_sparse_columns_on_one_scale():
    matrix = sp.random(60, 6, density=0.4, random_state=0, format="csr") * 1e5
    matrix = sp.csr_array(sp.hstack([matrix, np.ones((60, 1))]))
    table = SparseTable("t", matrix, np.zeros(60), False)
    encoder = SparseEncoder.plan(table, standardise=True)
    found = encoder.encode(table)[0].toarray()
    np.testing.assert_allclose(found[:, :6].std(axis=0), 1.0)
    assert np.all(found[:, 6] == 1.0)
    assert encoder.column_names[0].below(1.0) == f"column 1 ≤ {encoder.scales[0]:.6g}"
    encoder._check_stored()
    for scales in (np.ones(3), np.zeros(7), np.ones(7, dtype=np.float32)):
        with pytest.raises(ValueError, match="must be positive, one for each"):
            SparseEncoder(encoder.columns, False, scales)._check_stored()


def test_remarks_where_columns_are_features_of_their_own():
    frame = pd.DataFrame({"c": list("xyxy"), "d": ["2020-01-01", "2020-02-01"] * 2})
    encoder = TableEncoder.plan(frame)
    said = describe_encoding(encoder, {}, 4, together=False)
    assert "Categories, each level one column: c (2 levels)." in said
    assert "Dates, as days and cycles: d." in said


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_scales_of_stored_plans_are_checked(scale):
    for plan in (
        NumberColumn("x", 0.0, scale=scale),
        DateColumn("x", "ISO8601", 0.0, 0.0, scale=scale),
    ):
        with pytest.raises(ValueError, match="scale that is not positive and finite"):
            plan._check_stored()

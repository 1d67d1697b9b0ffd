"""Awkward tables: correct work, or one clear line."""

import bz2
import gzip
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from mixnorm import ShareBoostClassifier
from mixnorm.pools import Columns
from mixnorm.tables import TableEncoder

from .conftest import flowers, passengers


def one_line(result, code, *parts):
    """Check that a command ended with one clear line, without a traceback."""
    assert result.code == code, result.err
    lines = result.err.strip().splitlines()
    assert len(lines) == 1, result.err
    assert "Traceback" not in result.err
    for part in parts:
        assert part in lines[0], lines[0]


def csv_bytes(frame, **options):
    return frame.to_csv(index=False, **options).encode()


# Every way of writing the same table gives the same model.
WRITINGS = {
    "comma.csv": lambda frame: csv_bytes(frame),
    "semicolon.csv": lambda frame: csv_bytes(frame, sep=";"),
    "decimal-comma.csv": lambda frame: csv_bytes(frame, sep=";", decimal=","),
    "tab.tsv": lambda frame: csv_bytes(frame, sep="\t"),
    "tab.txt": lambda frame: csv_bytes(frame, sep="\t"),
    "pipe.csv": lambda frame: csv_bytes(frame, sep="|"),
    "bom.csv": lambda frame: b"\xef\xbb\xbf" + csv_bytes(frame),
    "bom-semicolon.csv": lambda frame: b"\xef\xbb\xbf" + csv_bytes(frame, sep=";"),
    "utf16.csv": lambda frame: frame.to_csv(index=False).encode("utf-16"),
    "crlf.csv": lambda frame: csv_bytes(frame, lineterminator="\r\n"),
    "quoted.csv": lambda frame: csv_bytes(frame, quoting=1),
    "question-marks.csv": lambda frame: csv_bytes(frame, na_rep="?"),
    "packed.csv.gz": lambda frame: gzip.compress(csv_bytes(frame)),
    "packed.bz2": lambda frame: bz2.compress(csv_bytes(frame)),
    "table.parquet": lambda frame: frame.to_parquet(),
}


@cache
def losses_in_python():
    """The same model without a file: categories and dates by groups of columns."""
    frame = passengers()
    rest = frame.drop(columns=["Survived", "PassengerId", "Name", "Ship", "Price", "Remarks"])
    encoder = TableEncoder.plan(rest)
    model = ShareBoostClassifier(3, pool=Columns(groups=encoder.groups))
    return model.fit(encoder.encode(rest)[0], frame["Survived"]).path_["loss"]


@pytest.mark.parametrize("name", WRITINGS)
def test_every_writing_of_a_table_gives_the_same_model(mixnorm, tmp_path, name):
    (tmp_path / name).write_bytes(WRITINGS[name](passengers()))
    words = ("--target", "Survived", "-k", 3, "--folds", 2, "--json", "-q")
    found = mixnorm("fit", name, *words)
    assert found.code == 0, found.err
    path = found.json["path"]
    assert path[0]["name"] == "Sex"
    assert [row["loss"] for row in path] == pytest.approx(losses_in_python(), rel=1e-6)
    left_out = " ".join(found.json["notes"])
    for column in ("PassengerId", "Name", "Ship", "Remarks"):
        assert column in left_out
    assert "Price (it is a copy of 'Fare')" in left_out


def test_strings_dates_gaps_constants_and_copies_are_told(mixnorm, titanic):
    found = mixnorm("fit", titanic, "--target", "Survived", "--features", 2)
    assert found.code == 0
    for part in (
        "160 rows, 5 columns to choose from",
        "'Survived' holds 2 classes: classification",
        "Categories, each counted as one feature: Sex (2 levels), Cabin (4 levels)",
        "Dates, each counted as one feature: Boarded",
        "filled with the median",
        "a level of their own",
        "Left out: PassengerId (it only numbers the rows",
        "Left out: Name (nearly every text differs",
        "Left out: Ship (every entry is the same)",
        "Left out: Remarks (no entries)",
        "Left out: Price (it is a copy of 'Fare')",
    ):
        assert part in found.err, part


def test_a_row_number_in_a_sorted_file_is_not_learned_from(mixnorm, iris):
    found = mixnorm("fit", iris, "--target", "species", "--json", "-q").json
    assert "Id" not in [row["name"] for row in found["path"]]
    assert found["task"] == "classification"
    assert found["error"] < 0.1


def test_a_row_number_is_taken_when_asked_for(mixnorm, iris):
    words = ["--target", "species", "--features", 5, "--number", "Id", "--json", "-q"]
    assert "Id" in [row["name"] for row in mixnorm("fit", iris, *words).json["path"]]


def test_three_thousand_columns(mixnorm, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3000)).round(3)
    frame = pd.DataFrame(X, columns=[f"gene {column}" for column in range(3000)])
    frame["group"] = np.where(X[:, 77] > 0, "case", "control")
    frame.to_csv(tmp_path / "wide.csv", index=False)
    found = mixnorm("fit", "wide.csv", "--target", "group", "-k", 2, "--folds", 2, "--json", "-q")
    assert found.json["path"][0]["name"] == "gene 77"
    assert found.json["columns"] == 3000


BAD = {
    "no rows": (b"a,b,class\n", "has a header but no rows"),
    "one row": (b"a,b,class\n1,2,x\n", "1 row with a target; learning needs at least 4"),
    "empty": (b"", "is empty"),
    "blank": (b"\n\n  \n", "is empty"),
    "other columns": (b"a,b,klass\n1,2,x\n3,4,y\n", "has no column 'class'. Did you mean 'klass'?"),
    "target never there": (b"a,class\n" + b"1,\n2,NA\n" * 4, "'class' is missing in every row"),
    "one class": (b"a,class\n" + b"1,x\n2,x\n" * 9, "'class' has only one class, x"),
    "only the target": (b"class\nx\ny\nx\ny\nx\n", "has no column except 'class'"),
    "only constants": (b"a,class\n" + b"1,x\n1,y\n" * 9, "no column to learn from (a: every"),
    "a label per row": (
        b"a,class\n" + b"".join(b"%d,n%d\n" % (row, row) for row in range(30)),
        "30 different labels in 30 rows",
    ),
    "ragged": (b"a,b,class\n1,2,x\n3,y\n" + b"4,5,x\n" * 9, "row 3 has 2 entries, but the first"),
    "prose": (b"Dear friend, hello.\nHow are you?\n" * 5, "is not a table: row 2 has 1 entry"),
    "JSON": (b'{"a": [1, 2],\n "class": 3}\n', "looks like JSON"),
    "HTML": (b"<!DOCTYPE html>\n<table><tr><td>1,2</td></tr></table>", "looks like HTML"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), "is not a table but a picture"),
    "workbook": (b"PK\x03\x04" + bytes(200), "save the sheet as CSV"),
    "pickle": (pickle.dumps({"a": 1}), "a pickle, which is never opened"),
    "noise": (bytes(range(256)) * 20, "binary data"),
    "damaged gzip": (gzip.compress(b"a,class\n1,x\n" * 500)[:60], "is a damaged gzip file"),
    "damaged Parquet": (b"PAR1" + bytes(50), "cannot be read as Parquet"),
    "damaged LIBSVM": (b"1 1:2 2:3\n" * 30 + b"1 2:1 1:x\n", "cannot be read as LIBSVM"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_learned_from_gets_one_line(mixnorm, tmp_path, case):
    content, message = BAD[case]
    (tmp_path / "table").write_bytes(content)
    target = [] if case == "damaged LIBSVM" else ["--target", "class"]
    found = mixnorm("fit", "table", *target, "--model", "m.mixnorm", "--report", "r.html")
    one_line(found, 1, message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table"]


@pytest.mark.parametrize("case", ["no rows", "prose"])
def test_problems_as_json(mixnorm, tmp_path, case):
    (tmp_path / "table").write_bytes(BAD[case][0])
    found = mixnorm("path", "table", "--target", "class", "--json")
    assert found.code == 1
    assert BAD[case][1] in found.json["problem"]


def test_a_missing_file_and_a_folder(mixnorm, tmp_path):
    one_line(mixnorm("fit", "no.csv", "--target", "a"), 1, "no.csv: No such file")
    one_line(mixnorm("fit", tmp_path, "--target", "a", "--model", "m"), 1, "holds no Parquet files")


def test_rows_without_a_target_are_left_out_and_told(mixnorm, tmp_path):
    frame = flowers()
    frame.loc[frame.index[::10], "species"] = None
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    found = mixnorm("fit", "gaps.csv", "--target", "species", "--features", 2, "--json", "-q")
    assert found.json["rows"] == 135
    assert "15 of 150 rows have no target 'species' and are left out." in found.json["notes"]


def test_a_table_without_a_header(mixnorm, tmp_path):
    frame = flowers().drop(columns="Id")
    frame["species"] = pd.factorize(frame["species"])[0]
    frame.to_csv(tmp_path / "plain.csv", index=False, header=False)
    found = mixnorm("fit", "plain.csv", "--target", "column_5", "--features", 2, "--json", "-q")
    assert found.json["rows"] == 150
    assert found.json["path"][0]["name"] in ("column_3", "column_4")
    assert any("first row holds only numbers" in note for note in found.json["notes"])


def test_repeated_and_empty_names(mixnorm, tmp_path):
    rng = np.random.default_rng(2)
    lines = [f"{a:.2f},{b:.2f},{c:.2f},{'pq'[int(c > 0)]}" for a, b, c in rng.normal(size=(50, 3))]
    (tmp_path / "names.csv").write_text("a,a,,class\n" + "\n".join(lines))
    found = mixnorm("fit", "names.csv", "--target", "class", "--features", 1, "--json", "-q")
    assert found.json["path"][0]["name"] == "column_3"
    assert any("'a.2', 'column_3'" in note for note in found.json["notes"])


def test_a_class_with_one_row(mixnorm, tmp_path):
    frame = flowers().drop(columns="Id")
    frame.loc[0, "species"] = "rare"
    frame.to_csv(tmp_path / "rare.csv", index=False)
    found = mixnorm(
        "fit", "rare.csv", "--target", "species", "--features", 2, "--report", "r.html", "--json"
    )
    assert found.code == 0, found.err
    assert found.json["error"] < 0.15


def test_huge_tiny_and_infinite_numbers(mixnorm, tmp_path):
    rows = [(x, (7 * x) % 11) for x in range(60)]
    text = "".join(
        f"{'inf' if a == 3 else (a - 30) * 1e300},{b * 1e-300},{2.0 * a + b}\n" for a, b in rows
    )
    (tmp_path / "scales.csv").write_text("huge,tiny,y\n" + text)
    found = mixnorm("fit", "scales.csv", "--target", "y", "--features", 2, "--json", "-q")
    assert found.json["task"] == "regression"
    assert found.json["error"] < 0.5 * found.json["null_error"]
    assert "Taken as missing in huge: 1 infinite." in found.json["notes"]


def test_a_line_break_within_quotes(mixnorm, tmp_path):
    lines = "".join(f'{row},"first\nsecond {row % 3}",{"pq"[row % 3 > 0]}\n' for row in range(60))
    (tmp_path / "breaks.csv").write_text("v,text,class\n" + lines)
    found = mixnorm("fit", "breaks.csv", "--target", "class", "--features", 1, "--json", "-q")
    assert found.json["rows"] == 60
    assert found.json["path"][0]["name"] == "text"
    assert found.json["error"] == 0.0


def test_libsvm_files(mixnorm, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.6)
    labels = (X[:, 2] + 0.5 * X[:, 4] > 0).astype(int)
    dump_svmlight_file(X, labels, str(tmp_path / "data.svm"), zero_based=False)
    found = mixnorm("fit", "data.svm", "--features", 2, "--json", "-q", "--report", "r.html")
    assert [row["name"] for row in found.json["path"]] == ["3", "5"]
    # Fewer columns in the new file: what is not there is zero; more: told and ignored.
    (tmp_path / "narrow.svm").write_text("1 3:2.0\n0 3:-2.0\n")
    (tmp_path / "wide.svm").write_text("1 3:2.0 9:1\n0 3:-2.0\n")
    narrow = mixnorm("predict", "data.mixnorm", "narrow.svm")
    assert narrow.out.split() == ["prediction", "1", "0"]
    wide = mixnorm("predict", "data.mixnorm", "wide.svm")
    assert wide.out == narrow.out
    assert "Ignored: 1 column that training did not have" in wide.err
    one_line(
        mixnorm("fit", "data.svm", "--target", "x", "--model", "m"),
        2,
        "--target needs column names",
    )


_NAMING = ("--target", "--drop", "--number", "--category")


@pytest.mark.parametrize(
    ("command", "option"),
    [("fit", "--weight"), *(("fit", option) for option in _NAMING), ("stream", "--target"),
     ("stream", "--drop")],
)  # fmt: skip
def test_a_name_that_stands_for_two_columns_is_refused(mixnorm, tmp_path, command, option):
    rows = "".join(f"{row % 2},{row / 7},{row % 5},{row % 3}\n" for row in range(40))
    (tmp_path / "twice.csv").write_text("y,twice,x,twice\n" + rows)
    words = [option, "twice"] if option == "--target" else ["--target", "y", option, "twice"]
    found = mixnorm(command, "twice.csv", *words)
    assert found.code == 1
    assert "twice.csv has more than one column 'twice'; rename them" in found.err
    assert mixnorm(command, "twice.csv", "--target", "y", "-q").code == 0


def test_a_needed_name_that_stands_for_two_columns_is_refused(mixnorm, tmp_path):
    rows = "".join(f"{row % 2},{row % 2},{row % 5}\n" for row in range(40))
    (tmp_path / "once.csv").write_text("y,x,z\n" + rows)
    (tmp_path / "twice.csv").write_text("y,x,x\n" + rows)
    assert mixnorm("fit", "once.csv", "-t", "y", "-k", 1, "-m", "once.mixnorm", "-q").code == 0
    found = mixnorm("predict", "once.mixnorm", "twice.csv")
    assert found.code == 1
    assert "twice.csv has more than one column 'x'" in found.err
    assert mixnorm("predict", "once.mixnorm", "once.csv").code == 0
    # If training had two of them as well, their order says which is which.
    assert mixnorm("fit", "twice.csv", "-t", "y", "-k", 1, "-m", "twice.mixnorm", "-q").code == 0
    assert mixnorm("predict", "twice.mixnorm", "twice.csv").code == 0


def numbers(tmp_path, name="t.csv", *, a=1.0, y=1.0, rows=60):
    """Write a table of two columns whose sum is the target, both in a unit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2))
    target = 2 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=rows)
    frame = pd.DataFrame({"a": a * X[:, 0], "b": X[:, 1], "y": y * target})
    frame.to_csv(tmp_path / name, index=False)
    return frame


def test_targets_of_any_size_have_their_errors(mixnorm, tmp_path):
    numbers(tmp_path)
    words = ("-t", "y", "-k", 2, "--folds", 3, "--json", "--report", "r.html", "-m", "m")
    plain = mixnorm("fit", "t.csv", *words).json
    for unit in (1e302, 1e160, 1e-160, 1e-300):
        numbers(tmp_path, "unit.csv", y=unit)
        found = mixnorm("fit", "unit.csv", *words)
        assert found.code == 0, found.err
        for name in ("error", "null_error", "standard_error"):
            assert found.json[name] / unit == pytest.approx(plain[name], rel=1e-3), (unit, name)
        told = mixnorm("predict", "m", "unit.csv", "-o", "p.csv", "--json")
        assert 0 < told.json["error"] / unit < 0.2
    words = ("-t", "y", "-k", 2, "-m", "m")
    assert mixnorm("fit", "unit.csv", *words).code == 0  # the table as text


@pytest.mark.parametrize("kind", ["number", "label"])
def test_columns_of_any_size_are_compared(mixnorm, tmp_path, kind):
    lines = {}
    for unit in (1.0, 1e302, 1e160, 1e-300):
        table = numbers(tmp_path, a=unit)
        if kind == "label":
            table = table.assign(y=np.where(table["y"] > 0, "up", "down"))
            table.to_csv(tmp_path / "t.csv", index=False)
        words = ("-t", "y", "-k", 2, "--folds", 3, "--report", "r.html", "-m", "m")
        found = mixnorm("fit", "t.csv", *words)
        assert found.code == 0, found.err
        lines[unit] = [line for line in found.out.splitlines() if line.startswith("All 2 features")]
        assert lines[unit]
        assert lines[unit] == lines[1.0]


def test_errors_of_a_stream_may_be_huge(mixnorm, tmp_path):
    numbers(tmp_path, "tiny.csv", a=1e-300)
    numbers(tmp_path)
    words = ("-t", "y", "--learner", "regressor", "-m", "m.mixnorm")
    assert mixnorm("stream", "tiny.csv", *words).code == 0
    found = mixnorm("predict", "m.mixnorm", "t.csv", "--json")
    assert found.code == 0, found.err
    assert 1e200 < found.json["error"] < np.inf
    assert mixnorm("show", "m.mixnorm").code == 0


def test_targets_beyond_all_numbers_are_refused(mixnorm, tmp_path):
    rows = "".join(f"{row % 7},{row}{'0' * 400}\n" for row in range(1, 50))
    (tmp_path / "huge.csv").write_text("a,y\n" + rows)
    one_line(mixnorm("fit", "huge.csv", "-t", "y"), 1, "'y' is not a number in 49 rows")
    found = mixnorm("stream", "huge.csv", "-t", "y", "--learner", "regressor")
    one_line(found, 1, "is not a number")
    assert len(found.err) < 200


def test_warnings_are_remarks(mixnorm, monkeypatch, tmp_path):
    import warnings

    from mixnorm.cli import commands
    from mixnorm.exceptions import NotConvergedWarning

    def warned(options, screen, command):
        warnings.simplefilter("always")
        warnings.warn("a gap is left", NotConvergedWarning, stacklevel=2)
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=2)

    monkeypatch.setattr(commands, "show", warned)
    found = mixnorm("show", "m.mixnorm")
    assert found.code == 0
    assert found.err == "a gap is left\n"


def test_a_stream_of_carriage_returns_is_refused(mixnorm, tmp_path):
    (tmp_path / "cr.csv").write_bytes(b"a,y\r" + b"1,p\r2,q\r" * 20)
    one_line(mixnorm("stream", "cr.csv", "-t", "y"), 1, "carriage return alone; convert them to")
    assert mixnorm("fit", "cr.csv", "-t", "y", "-q").code == 0


@pytest.mark.parametrize("command", ["fit", "stream"])
def test_closed_standard_input(mixnorm, monkeypatch, command):
    monkeypatch.setattr("sys.stdin", None)
    one_line(mixnorm(command, "-", "-t", "y", "-m", "m"), 1, "Standard input is closed")


def test_closed_output(server, tmp_path):
    numbers(tmp_path)
    words = ("fit", "t.csv", "-t", "y", "-k", 1, "-m", "m.mixnorm")
    status, _, _ = server.start(*words, folder=tmp_path, closed=[1, 2]).finish()
    assert status == 0
    assert (tmp_path / "m.mixnorm").exists()

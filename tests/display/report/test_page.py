"""The page as text: well-formed, escaped, bounded, the same each time."""

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixnorm.display import Feature, FullModel, Report
from mixnorm.display.report.html import one_line

NAMES = ["two", "ten", "hundred", "regression", "dense", "nasty", "interrupted"]
VOID = {"meta", "link", "br"}
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class Reader(HTMLParser):
    """Reads a page as a browser would, noting its elements and what was never closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.problems, self.elements, self.texts = [], [], [], []
        self.feed(page)
        self.close()
        self.problems += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if len(dict(attrs)) != len(attrs):
            self.problems.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes another element")

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def check(page):
    """Check all that holds of every page, and return it read."""
    reader = Reader(page)
    assert reader.problems == []
    # Well-formed for XML too, which is stricter about characters and about nesting.
    tree = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for svg in tree.iter("svg"):
        assert svg.get("role") == "img"
        title, desc = svg.find("title"), svg.find("desc")
        assert svg.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
        assert len(title.text) > 8
        assert re.search(r"\d", desc.text), desc.text
    for tag, attributes in reader.elements:
        assert tag not in {"script", "iframe", "object", "embed", "img", "form", "base"}
        assert not any(key.startswith("on") for key in attributes), attributes
        assert "src" not in attributes
        if "href" in attributes:
            assert attributes["href"] == "data:," or attributes["href"][1:] in ids
        if attributes.get("class") == "scroll":
            assert attributes["tabindex"] == "0"
            assert attributes["role"] == "region"
            assert attributes["aria-label"]
    style = re.search("<style>.*</style>", page, flags=re.DOTALL)[0]
    assert not re.search(r"url\(|@import|<.*<", style.removesuffix("</style>"))
    body = page.partition("<body>")[2]
    assert not re.search(r"\bnan\b|\binf(inity)?\b", body, flags=re.IGNORECASE)
    assert not re.search(r"\b(None|undefined)\b", body)
    assert not UNFIT.search(page)
    assert "<p></p>" not in page
    page.encode("utf-8")
    return reader


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_well_formed(reports, name):
    page = reports[name].to_html()
    reader = check(page)
    assert page.startswith('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>')
    assert sum(tag == "style" for tag, _ in reader.elements) == 1
    metas = [attributes for tag, attributes in reader.elements if tag == "meta"]
    policy = next(m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert "script" not in policy
    assert "width=device-width" in next(m["content"] for m in metas if m.get("name") == "viewport")


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_the_same_each_time(reports, name):
    assert reports[name].to_html() == replace(reports[name]).to_html()


def test_nasty_names_are_shown_and_harmless(reports):
    report = reports["nasty"]
    reader = check(report.to_html())
    for name in report.classes + tuple(feature.name for feature in report.features):
        assert one_line(name) in reader.text
    for text in (report.title, report.target, *report.notes, report.interrupted, report.created):
        assert one_line(text) in reader.text
    # What cannot be shown in the command leaves a mark, and its lines are kept.
    command = next(text for text in reader.texts if text.startswith("mixnorm fit"))
    assert command.startswith("mixnorm fit '<a>&\"b\".csv'\n  --name �[31m")
    assert command.endswith(" �")


def test_long_names_are_cut_in_charts_alone(classification):
    name = "y" * 200
    page = classification(2, 3, 3, classes=(name, "other")).to_html()
    tree = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    drawn = [text.text for svg in tree.iter("svg") for text in svg.iter("text")]
    assert all(len(text) < 40 for text in drawn)
    assert any(text.startswith("yyy") and text.endswith("…") for text in drawn)
    assert name in [bdi.text for table in tree.iter("table") for bdi in table.iter("bdi")]


SIZES = {
    "ten": 150_000,
    "hundred": 1_500_000,
    "dense": 200_000,
}


@pytest.mark.parametrize("name", SIZES)
def test_size(reports, name):
    assert len(reports[name].to_html().encode()) < SIZES[name]


@pytest.mark.parametrize("name", ["x" * 200, "名" * 200])
def test_size_with_a_hundred_long_names(classification, name):
    names = tuple(f"{i} {name}" for i in range(100))
    rng = np.random.default_rng(0)
    report = classification(
        100,
        40,
        40,
        classes=names,
        # No field is empty.
        confusion=rng.integers(1, 1000, size=(100, 100)),
        features=tuple(Feature(name, "number", 1.0, 0.1, 0.5) for name in names[:40]),
    )
    page = report.to_html()
    check(page)
    assert len(page.encode()) < 2_000_000


def test_size_with_a_thousand_classes(classification):
    report = classification(1000, 30, 30, rows=50_000)
    page = report.to_html()
    reader = check(page)
    assert len(page.encode()) < 1_000_000
    assert "The matrix shows the 50 of 1,000 classes with most errors" in reader.text
    assert "Shown are the 50 of 1,000 classes with most errors" in reader.text


def test_thousand_classes_without_counts(classification):
    effects = np.zeros((1000, 2))
    effects[500] = 7.0
    report = classification(1000, 2, 2, effects=effects, confusion=None)
    reader = check(report.to_html())
    assert "Shown are the 50 of 1,000 classes that are moved most" in reader.text
    assert "class 500" in reader.text


def test_long_path(classification):
    report = classification(5, 500, 500)
    page = report.to_html()
    reader = check(page)
    assert len(page.encode()) < 600_000
    assert "460 more features of the model" in reader.text
    assert "Shown are the first 60 of 500 features" in reader.text


EXTREME = {
    "one feature": dict(k=2, chosen=1, length=1),
    "no feature chosen": dict(k=3, chosen=0, length=2),
    "no feature at all": dict(k=3, chosen=0, length=0, full=None),
    "one class": dict(k=1, chosen=2, length=2, confusion=[[7]]),
    "zero effects": dict(k=3, chosen=2, length=2, effects=np.zeros((3, 2))),
    "unknown effects": dict(k=3, chosen=2, length=2, effects=np.full((3, 2), np.nan)),
    "some unknown effects": dict(k=2, chosen=2, length=2, effects=[[np.nan, np.inf], [1.0, 2.0]]),
    "huge effects": dict(k=2, chosen=2, length=2, effects=[[1e300, -1e9], [1e-9, 2.0]]),
    "stumps": dict(k=3, chosen=2, length=4, word="stump", columns_read=1, comparisons=2),
    "pieces": dict(k=1, chosen=2, length=2, word="piece", columns_read=64, signed=(False, False)),
    "replaced": dict(k=3, chosen=2, length=4, members=("<b>one</b>", "two & three")),
    "a word from a stranger": dict(k=3, chosen=2, length=4, word='<i> "x" & y'),
    "no signs": dict(k=3, chosen=2, length=2, signed=(False, False)),
    "empty counts": dict(k=3, chosen=2, length=2, confusion=np.zeros((3, 3))),
    "empty row": dict(k=3, chosen=2, length=2, confusion=[[5, 1, 0], [0, 0, 0], [0, 0, 4]]),
    "no error": dict(k=3, chosen=2, length=2, confusion=np.diag([5, 6, 7])),
    "all wrong": dict(k=2, chosen=2, length=2, confusion=[[0, 5], [6, 0]]),
    "weighted counts": dict(k=2, chosen=2, length=2, confusion=[[2.5, 0.25], [0.5, 3.25]]),
    "large counts": dict(k=2, chosen=2, length=2, confusion=[[12_345_678, 1], [2, 9_999_999]]),
    "unknown numbers": dict(
        k=2,
        chosen=2,
        length=2,
        features=(
            Feature("a", "", np.nan, np.inf, np.nan),
            Feature("b", "number", np.inf, np.nan, None),
        ),
        standard_error=(np.nan, np.inf),
        null_loss=np.nan,
        null_error=np.inf,
        fit_seconds=np.nan,
        full=FullModel(np.nan, 3, 4),
    ),
    "error at some sizes": dict(
        k=2,
        chosen=3,
        length=4,
        features=tuple(
            Feature(f"f{i}", "number", 1.0 / (i + 1), 0.1, error)
            for i, error in enumerate([0.3, None, np.nan, 0.1])
        ),
    ),
    "constant curves": dict(
        k=2,
        chosen=2,
        length=3,
        features=tuple(Feature(f"f{i}", "number", 0.5, 0.0, 0.25) for i in range(3)),
        null_loss=0.5,
        null_error=0.25,
        full=FullModel(0.25, 3, 6),
    ),
    "zero curves": dict(
        k=2,
        chosen=2,
        length=2,
        features=tuple(Feature(f"f{i}", "number", 0.0, 0.0, 0.0) for i in range(2)),
        null_loss=0.0,
        null_error=0.0,
        standard_error=(0.0, 0.0),
    ),
    "tiny losses": dict(
        k=2,
        chosen=2,
        length=2,
        features=tuple(Feature(f"f{i}", "number", 5e-324, -1e-320, 1e-310) for i in range(2)),
        null_loss=1e-300,
        null_error=1e-310,
    ),
    "huge losses": dict(
        k=2,
        chosen=2,
        length=2,
        features=tuple(Feature(f"f{i}", "number", 1e149, 1e308, 0.5) for i in range(2)),
        null_loss=1.7e308,
        full=FullModel(1e100, 64, 64),
    ),
}


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_reports(classification, name):
    changes = dict(EXTREME[name])
    check(
        classification(
            changes.pop("k"), changes.pop("chosen"), changes.pop("length"), **changes
        ).to_html()
    )


@pytest.mark.parametrize(
    "scatter",
    [
        np.zeros((0, 2)),
        [[1.0, 1.0]],
        np.ones((1000, 2)),
        [[np.nan, 1.0], [2.0, np.inf]],
        [[1e308, -1e308], [1.0, 2.0]],
        np.vstack([np.random.default_rng(0).normal(size=(900, 2)), [[1e9, -1e9]]]),
        np.column_stack([np.arange(500.0), np.full(500, 7.0)]),
    ],
    ids=["none", "one", "equal", "unknown", "huge", "far off", "constant prediction"],
)
def test_extreme_predictions(regression, scatter):
    check(regression(scatter=scatter).to_html())


def test_several_outputs(regression):
    reader = check(
        regression(
            classes=("price", "rent", "tax"), effects=np.ones((3, 5)), scatter=None
        ).to_html()
    )
    assert "How much each feature moves each output" in reader.text
    assert "How far it is off" not in reader.text


numbers = st.floats(allow_nan=True, allow_infinity=True)
# Not the category of half surrogates alone: those must be drawn too.
names = st.text(st.characters(), max_size=30)


@settings(max_examples=25)
@given(data=st.data())
def test_any_report_makes_a_page(data):
    k, path = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 4))
    chosen = data.draw(st.integers(0, path))
    error = st.none() | numbers
    features = st.builds(Feature, names, names, numbers, numbers, error, st.integers(1, 9))

    def array(rows, columns, values):
        drawn = st.lists(values, min_size=rows * columns, max_size=rows * columns)
        return np.reshape(data.draw(drawn), (rows, columns))

    task = data.draw(st.sampled_from(["classification", "regression"]))
    report = Report(
        **{name: data.draw(names) for name in ("title", "target", "created", "version", "command")},
        **{name: data.draw(names) for name in ("how_chosen", "how_measured", "interrupted")},
        task=task,
        rows=data.draw(st.integers(0, 10**9)),
        columns=data.draw(st.integers(0, 10**6)),
        notes=tuple(data.draw(st.lists(names, max_size=3))),
        chosen=chosen,
        null_loss=data.draw(numbers),
        null_error=data.draw(error),
        features=tuple(data.draw(st.lists(features, min_size=path, max_size=path))),
        standard_error=data.draw(st.none() | st.tuples(*[numbers] * path)),
        classes=tuple(data.draw(st.lists(names, min_size=k, max_size=k))),
        effects=array(k, chosen, numbers),
        signed=data.draw(st.tuples(*[st.booleans()] * chosen)),
        confusion=array(k, k, st.integers(0, 10**9)) if task == "classification" else None,
        scatter=array(3, 2, numbers) if task == "regression" else None,
        multiply_adds=data.draw(st.integers(0, 10**12)),
        model_bytes=data.draw(st.none() | st.integers(0, 10**12)),
        fit_seconds=data.draw(numbers),
        full=data.draw(
            st.none() | st.builds(FullModel, numbers, st.integers(0), st.integers(0), names)
        ),
    )
    page = report.to_html()
    assert Reader(page).problems == []
    ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    page.encode("utf-8")


def test_report_imports_nothing_heavy():
    code = (
        "import sys, numpy; from mixnorm.display.report import Report;"
        "heavy = {'matplotlib', 'pandas', 'sklearn', 'scipy', 'numba', 'torch'};"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""

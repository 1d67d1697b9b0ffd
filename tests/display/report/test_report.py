"""What a report says, what it refuses, and how it is written."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from mixnorm import display
from mixnorm.display import Feature, FullModel, Report


def words(page):
    """Return the text of a page without markup."""
    tree = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    body = tree.find("body")
    return " ".join(" ".join(body.itertext()).replace("\u00a0", " ").split())


def svg(page, ident):
    tree = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    return next(
        s for s in tree.iter("svg") if s.get("aria-labelledby").startswith(f"{ident}-title")
    )


def test_names():
    assert display.__all__ == sorted(display.__all__)
    assert {"Feature", "FullModel", "Report"} <= set(display.__all__)


def test_answer_for_classes(classification):
    errors = (0.31, 0.12, 0.052, 0.05)
    report = classification(
        10,
        3,
        4,
        features=tuple(Feature(f"f{i}", "number", 1.0, 0.1, e) for i, e in enumerate(errors)),
        standard_error=(0.01, 0.008, 0.006, 0.006),
    )
    text = words(report.to_html())
    assert "3 of 64 features ; 5.2 % error on held-out rows, ± 0.6 (standard error)." in text
    assert "Without any feature it would be 90.0 %, with all 64 features 4.8 %." in text
    assert "30 for one prediction" in text
    assert "1 feature beyond the model" in text


def test_features_are_counted_in_folds(classification):
    chosen = [
        Feature(name, "number", 0.5, 0.1, 0.2, folds=folds)
        for name, folds in (("age", 5), ("noise_3", 2), ("late", None))
    ]
    how = "Each fold chooses its own features."
    report = classification(3, 2, 3, features=tuple(chosen), n_folds=5, how_folds=how)
    text = words(report.to_html())
    assert how in text
    table = text.partition("Features of the model")[2]
    assert "Folds Held-out error rate" in table
    assert re.search(r"age number .* 5 of 5 20.0 %.* noise_3 number .* 2 of 5 20.0 %", table)
    assert re.search(r"late number .* – 20.0 %", text)
    assert "Folds" not in words(classification(3, 2, 3).to_html())


def test_our_own_model_with_all_features(classification):
    full = FullModel(0.048, 64, 640, "Standardised.", own_error=0.051)
    text = words(classification(10, 3, 4, full=full).to_html())
    assert "with all 64 features 4.8 % (ShareBoost with all of them: 5.1 %)." in text
    assert re.search(r"Held-out error rate, ShareBoost [\d.]+ % ± 0.6 5.1 %", text)
    alone = words(classification(10, 3, 4).to_html())
    assert "with all 64 features 4.8 %." in alone
    assert "ShareBoost" not in alone


def test_answer_for_regression(regression):
    text = words(regression().to_html())
    assert re.search(
        r"5 of 23 features ; RMSE 3\d,\d{3} on held-out rows, ± 1,500 \(standard error\)\.", text
    )
    assert "Without any feature it would be 98,000, with all 23 features 30,500." in text
    assert "Half of the 300 held-out predictions are within" in text


def test_without_errors(reports):
    page = reports["interrupted"].to_html()
    text = words(page)
    assert "4 of 64 features ; the error on held-out rows was not measured." in text
    assert "only the training loss is shown" in text
    assert "Interrupted. The fit was stopped after 4 of 20 features" in text
    assert "Where it errs" not in text
    assert "Held-out error rate" not in text.partition("Effects")[2]
    assert 'id="error-wide-title"' not in page
    assert 'id="loss-wide-title"' in page


def test_curves_say_what_they_show(classification):
    errors = (0.4, 0.2, 0.1, 0.15)
    report = classification(
        4,
        2,
        4,
        features=tuple(Feature(f"f{i}", "number", 0.5, 0.1, e) for i, e in enumerate(errors)),
    )
    text = svg(report.to_html(), "error-wide").find("desc").text.replace("\u00a0", " ")
    assert text == (
        "From 40.0 % with 1 feature to 15.0 % with 4 features; lowest 10.0 % with 3 features."
        " The model has 2 features and 20.0 %. Without features: 75.0 %. With all features: 4.8 %."
        " A band shows one standard error to both sides."
    )


def test_line_off_the_scale_is_not_drawn(classification):
    page = classification(2, 2, 3, full=FullModel(1e6, 64, 64)).to_html()
    assert "off the scale, not drawn" in page
    drawn = svg(page, "error-wide")
    assert [e.get("class") for e in drawn.iter("line") if "reference" in e.get("class")] == [
        "reference null"
    ]


def test_chosen_size_without_error_has_no_mark(classification):
    features = tuple(Feature(f"f{i}", "number", 0.5, 0.1, e) for i, e in enumerate([0.3, None]))
    page = classification(2, 2, 2, features=features).to_html()
    assert "its value is not known" in svg(page, "error-wide").find("desc").text
    assert not [e for e in svg(page, "error-wide").iter("circle") if "mark" in e.get("class")]
    assert "the error on held-out rows was not measured" in words(page)


def test_confusions_in_words(classification):
    counts = [[90, 9, 1], [0, 100, 0], [30, 0, 20]]
    text = words(classification(3, 2, 2, classes=("cat", "dog", "owl"), confusion=counts).to_html())
    assert "40 of 250 held-out rows got the wrong class" in text
    assert "owl taken for cat : 30 times , 60.0 % of its rows" in text
    assert text.index("owl taken for cat") < text.index("cat taken for dog")
    assert "cat taken for owl : once , 1.0 % of its rows" in text
    assert "owl : 60.0 % wrong, 30 of 50 rows" in text
    assert "dog taken for" not in text


def test_diagonal_has_another_hue(classification):
    page = classification(2, 2, 2, confusion=[[8, 2], [0, 5]]).to_html()
    hues = [rect.get("class") for rect in svg(page, "confusion").iter("rect")]
    assert sorted(hues) == ["frame", "right", "right", "wrong"]


def test_effects_without_sign_have_their_own_scale(classification):
    page = classification(
        2, 2, 2, effects=[[1.0, -3.0], [-2.0, 3.0]], signed=(True, False)
    ).to_html()
    rects = svg(page, "effects").iter("rect")
    assert [rect.get("class") for rect in rects] == ["raise", "size", "lower", "size"]
    written = [t.text for t in svg(page, "effects").iter("text") if "value" in t.get("class")]
    assert written == ["+1.00", "3.00", "−2.00", "3.00"]
    assert "size without a sign" in page


def test_cost_beside_the_full_model(classification):
    text = words(classification(10, 8, 16).to_html())
    assert "Columns to measure 8 64 8.0 × fewer" in text
    assert "Multiply-adds for one prediction 80 640 8.0 × fewer" in text
    assert "Size of the model file 3.12 kB" in text
    assert "Trained on 2,000 of 4,000 rows." in text


def test_features_made_of_columns_have_their_own_word(classification):
    report = classification(
        3, 4, 6, word="stump", columns_read=2, comparisons=4, multiply_adds=12, columns=64
    )
    text = words(report.to_html())
    assert "4 stumps of 2 columns (of 64) ;" in text
    assert "with a linear model of all 64 columns" in text
    assert "How many stumps are enough" in text
    assert "number of stumps" in text
    assert "no stumps" in text
    assert "2 stumps beyond the model" in text
    assert "it is higher where the stump holds" in text
    assert "12 multiplications, each with an addition, and 4 comparisons." in text
    assert "A prediction needs 2 columns of the table" in text
    assert (
        "features"
        not in text.replace("--features", "").partition("How many")[2].partition("The data")[0]
    )
    everything = words(replace(report, columns_read=64).to_html())
    assert "4 stumps of all 64 columns" in everything


def test_features_that_replaced_others(classification):
    names = ("north", "south", "east")
    text = words(classification(2, 3, 5, members=names).to_html())
    assert "The features of the model are now: north , south , east ." in text
    assert "Strongest: " in text
    assert any(f"{name} on" in text for name in names)


def test_predictions_far_off_are_counted_not_drawn(regression):
    near = np.random.default_rng(0).normal(size=(998, 2))
    page = regression(scatter=np.vstack([near, [[1e6, 0], [0, 1e6]]])).to_html()
    assert "2 of 1,000 rows lie outside the frame" in words(page)


def test_many_predictions_are_counted_in_squares(reports):
    drawn = svg(reports["dense"].to_html(), "scatter")
    assert not list(drawn.iter("circle"))
    assert 50 < len(list(drawn.iter("rect"))) <= 1600
    few = svg(reports["regression"].to_html(), "scatter")
    assert len(list(few.iter("circle"))) == 300


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(task="ranking"), "task='ranking' is unknown"),
        (dict(chosen=5), "chosen=5 lies outside the path of 3 features"),
        (dict(chosen=-1), "chosen=-1 lies outside"),
        (dict(signed=(True,)), "signed has 1 values; give 2"),
        (dict(standard_error=(0.1,)), "standard_error has 1 values; give 3"),
        (dict(classes=()), "classes is empty"),
        (dict(effects=np.zeros((2, 3))), r"effects has shape \(2, 3\)"),
        (dict(confusion=np.zeros((3, 3))), r"confusion has shape \(3, 3\)"),
        (dict(confusion=[[1, -1], [0, 1]]), "give counts"),
        (dict(confusion=[[1, np.nan], [0, 1]]), "give counts"),
        (dict(scatter=np.zeros(4)), r"scatter has shape \(4,\)"),
        (dict(scatter=np.zeros((4, 3))), r"scatter has shape \(4, 3\)"),
    ],
)
def test_what_would_break_the_page_is_refused(classification, changes, message):
    report = classification(2, 2, 3)
    with pytest.raises(ValueError, match=message):
        replace(report, **changes)


def test_lists_are_taken_as_arrays(classification):
    report = classification(2, 2, 2, effects=[[1, 2], [3, 4]], confusion=[[1, 2], [3, 4]])
    assert report.effects.dtype == report.confusion.dtype == np.float64


def test_write(tmp_path, reports):
    place = tmp_path / "report.html"
    place.write_text("old")
    reports["nasty"].write(place)
    assert place.read_bytes() == reports["nasty"].to_html().encode("utf-8")
    reports["two"].write(str(place))
    assert place.read_bytes() == reports["two"].to_html().encode("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_failed_write_leaves_the_old_file(tmp_path, reports, monkeypatch):
    place = tmp_path / "report.html"
    place.write_text("old")

    def fail(self):
        raise RuntimeError("no page")

    monkeypatch.setattr(Report, "to_html", fail)
    with pytest.raises(RuntimeError, match="no page"):
        reports["two"].write(place)
    assert place.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

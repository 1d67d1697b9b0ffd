"""The comparison with trees: what counts, what costs as much, what is checked."""

import io

import numpy as np
import pytest
from rich.console import Console

from benchmarks import _trees, trees

TREE = {
    "seconds": 2.0,
    "search_seconds": 1.0,
    "curve": [[60, 15.0, 1], [600, 6.0, 10], [6000, 4.0, 100]],
}
WORSE = TREE | {"curve": [[50, 20.0, 1], [500, 9.0, 10], [5000, 5.0, 100]]}
OURS = {
    "seconds": 4.0,
    "search_seconds": 9.0,
    "within": 3,
    "curve": [[12, 30.0, 1], [24, 10.0, 2], [60, 4.2, 3], [80, 4.0, 4]],
}
FOUND = {
    "digits/10/lightgbm": TREE,
    "digits/10/xgboost": WORSE,
    "digits/10/boxes": OURS,
    "pendigits/0/predict": {
        "mixnorm": {"one": 4e-6, "many": 0.2, "error": 5.0},
        "lightgbm": {"one": 4e-4, "many": 2.0, "error": 4.9, "rounds": 20},
        "memory": {"many": 0.1},
    },
}


def test_the_model_that_counts():
    assert trees.final(TREE) == (6000, 4.0, 100)
    assert trees.final(OURS) == (60, 4.2, 3)


@pytest.mark.parametrize(("cost", "error"), [(49, None), (50, 20.0), (599, 9.0), (10**6, 5.0)])
def test_error_at_a_cost(cost, error):
    assert trees.at_cost(WORSE, cost) == error


def test_the_better_of_the_two():
    assert trees.best_peer(FOUND, "digits/10") == 4.0
    assert trees.best_peer(FOUND, "digits/10", cost=55) == 20.0
    assert trees.best_peer(FOUND, "digits/10", cost=599) == 9.0
    assert trees.best_peer(FOUND, "digits/10", cost=10) is None
    assert trees.best_peer({}, "digits/10") is None


def test_checks():
    found = {check.name: check for check in trees.checks(FOUND)}
    assert found["error of 300 stumps"].asked == "<= 4.50 %"
    assert found["error of 300 stumps"].passed
    assert found["3 boxes, 60 operations"].asked == "< 15.00 %"
    assert found["one row, 40 stumps"].passed
    worse = FOUND | {"digits/10/boxes": OURS | {"curve": [[60, 30.0, 1]], "within": 1}}
    missed = [check.name for check in trees.checks(worse) if not check.passed]
    assert missed == ["error of 300 stumps", "1 boxes, 60 operations"]
    cheap = FOUND | {"digits/10/boxes": OURS | {"curve": [[24, 30.0, 1]], "within": 1}}
    assert "none so cheap" in [check.asked for check in trees.checks(cheap)]


def test_tables():
    console = Console(width=200, record=True, file=io.StringIO())
    for table in trees.tables(FOUND):
        console.print(table)
    text = console.export_text()
    assert "100, 10.0" in text
    assert "15.00" in text


def test_the_largest_model_within_the_stumps(monkeypatch):
    from mixnorm import ShareBoostClassifier
    from mixnorm.pools import Boxes, Stumps

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.4)
    monkeypatch.setattr(_trees, "STUMPS", 5)
    boxes = ShareBoostClassifier(6, pool=Boxes()).fit(X, y)
    small = _trees.within(boxes)
    sizes = np.cumsum([len(atom) for atom in boxes.path_["feature"]])
    assert sizes[len(small.path_["loss"]) - 1] <= 5 < sizes[len(small.path_["loss"])]
    stumps = ShareBoostClassifier(6, pool=Stumps()).fit(X, y)
    assert len(_trees.within(stumps).path_["loss"]) == 5

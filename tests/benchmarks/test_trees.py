"""The comparison with trees: what counts, what costs as much, what is checked."""

import io

import numpy as np
import pytest
from rich.console import Console

from benchmarks.trees import child, command
from benchmarks.trees.boosters import Booster, compute_leaf_depths, compute_node_depths

LIGHT = {
    "seconds": 2.0,
    "search_seconds": 1.0,
    "final": [6000.0, 4.0, 100],
    "small": {"boxes": [55.0, 15.0, 1]},
}
XG = LIGHT | {"seconds": 1.0, "final": [5000.0, 5.0, 100], "small": {"boxes": [50.0, 12.0, 2]}}
OURS = {"seconds": 4.0, "search_seconds": 9.0, "final": [60.0, 4.2, 3]}
TIMES = {"one": 4e-6, "one_predict": 4e-4, "many": 0.2, "many_predict": 0.4, "error": 5.0}
FOUND = {
    "digits/10/boxes": OURS,
    "digits/10/lightgbm": LIGHT,
    "digits/10/xgboost": XG,
    "pendigits/0/predict": {
        "mixnorm": TIMES,
        "lightgbm": {key: 10 * value for key, value in TIMES.items()},
        "memory": {"many": 0.1},
    },
}


def test_what_small_trees_may_cost():
    assert command.find_budgets(FOUND, "digits/10") == {"boxes": 60.0}
    assert command.find_budgets({}, "digits/10") == {}


def test_the_better_of_the_two():
    assert command.find_best_peer(FOUND, "digits/10") == (4.0, "lightgbm")
    assert command.find_best_peer(FOUND, "digits/10", "boxes") == (12.0, "xgboost")
    assert command.find_best_peer(FOUND, "digits/10", "stumps") is None
    assert command.find_best_peer({}, "digits/10") is None


def test_checks():
    found = {check.name: check for check in command.check_bar(FOUND)}
    assert found["error of 300 stumps"].asked == "<= 4.50 %"
    assert found["error of 300 stumps"].passed
    assert found["3 boxes, 60 operations"].asked == "< 12.00 % (xgboost)"
    assert found["one row, 40 stumps"].passed
    worse = FOUND | {"digits/10/boxes": OURS | {"final": [60.0, 30.0, 1]}}
    missed = [check.name for check in command.check_bar(worse) if not check.passed]
    assert missed == ["error of 300 stumps", "1 boxes, 60 operations"]
    alone = FOUND | {name: peer | {"small": {}} for name, peer in FOUND.items() if "gb" in name}
    assert "none so cheap" in [check.asked for check in command.check_bar(alone)]


def test_tables():
    console = Console(width=200, record=True, file=io.StringIO())
    for table in command.make_tables(FOUND):
        console.print(table)
    text = console.export_text()
    assert "12.00 xgboost" in text
    assert "2, 4" in text  # the fit takes so many times theirs
    assert text.count("10") >= 4  # all four times of LightGBM


def test_the_largest_model_within_the_stumps(monkeypatch):
    from mixnorm import ShareBoostClassifier
    from mixnorm.pools import Boxes, Stumps

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.4)
    monkeypatch.setattr(child, "STUMPS", 5)
    boxes = ShareBoostClassifier(6, pool=Boxes()).fit(X, y)
    small = child.cut_path(boxes)
    sizes = np.cumsum([len(atom) for atom in boxes.path_["feature"]])
    assert sizes[len(small.path_["loss"]) - 1] <= 5 < sizes[len(small.path_["loss"])]
    stumps = ShareBoostClassifier(6, pool=Stumps()).fit(X, y)
    assert len(child.cut_path(stumps).path_["loss"]) == 5


def test_rows_to_tune_on_and_to_compare_on_are_apart():
    y = np.repeat(np.arange(5), 2000)
    fitted, held, rest = child.set_aside(y)
    assert not np.intersect1d(fitted, held).size
    assert np.bincount(y[fitted]).tolist() == [400] * 5
    assert np.bincount(y[held]).tolist() == [200] * 5
    assert len(rest) == 8000
    assert np.isin(fitted, rest).all()
    again, *_ = child.set_aside(y)
    assert np.array_equal(fitted, again)


def test_depths():
    # LightGBM: node 0 has leaf 0 and node 1, which has leaves 1 and 2.
    assert compute_leaf_depths([-1, -2], [1, -3]).tolist() == [1, 2, 2]
    assert compute_leaf_depths([], []).tolist() == [0]
    # XGBoost: the same tree, its nodes and leaves in one list.
    assert compute_node_depths([1, -1, 3, -1, -1], [2, -1, 4, -1, -1]).tolist() == [0, 1, 1, 2, 2]


def test_costs_of_a_fit_that_ended_early():
    class Stumps(Booster):
        def leaves(self, model, X):
            return np.zeros((len(X), 6), dtype=int), [np.array([1, 1])] * 6

    class Model:
        n_classes_, n_estimators = 3, 4

    assert Stumps().costs(Model(), np.zeros((5, 1))).tolist() == [6, 12, 12, 12]


class Fake(Booster):
    """Two classes: the one column is the label, wrong in the first rounds."""

    grid = ({"bad": 40}, {"bad": 3}, {"bad": 12})
    rounds = (1, 5, 10, 20)

    def fit(self, X, y, settings, rounds):
        return settings.get("bad", 900), rounds

    def order(self, X, y):
        return np.arange(X.shape[1])[::-1]

    def predict(self, model, X, rounds):
        bad = max(0, model[0] - rounds)
        label = X[:, -1].astype(int)
        return np.where(np.arange(len(X)) < bad, 1 - label, label)

    def costs(self, model, X):
        return np.cumsum(np.full(model[1], 4.0 if model[0] == 3 else 2.0))


@pytest.fixture
def split():
    rng = np.random.default_rng(0)
    y = np.arange(500) % 2
    X = np.column_stack([rng.standard_normal(500), y]).astype(np.float32)
    return child.splits.Split(X, y, X[:100], y[:100])


def test_small_trees_are_fitted_to_be_small(split):
    found = child.measure_trees(split, Fake(), 1, {"boxes": 8.0, "stumps": 22.0, "tiny": 1.0})
    # Without a limit, and within 22 operations, the cheapest model without errors on the rows held
    # out; within 8 operations one round, of the setting that then errs least.
    assert found["settings"] == {"bad": 3}
    assert found["final"] == [20.0, 0.0, 5]
    assert found["small"]["boxes"] == [4.0, 2.0, 1]
    assert found["small"]["stumps"] == [20.0, 0.0, 5]
    assert "tiny" not in found["small"]

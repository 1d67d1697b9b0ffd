"""Models over all columns."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.cli import full as _full
from mixnorm.cli.data import TrainingTable
from mixnorm.cli.held_out import FoldPath
from mixnorm.pools import Columns
from mixnorm.tables import SparseEncoder


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) * [1, 1, 1000, 1] + [0, 0, 5000, 0]
    y = (X[:, 0] + (X[:, 2] - 5000) / 1000 + 0.5 * rng.normal(size=90) > 0).astype(int)
    encoder = SparseEncoder(np.arange(4), True)
    return TrainingTable("t", "y", "classification", X, y, None, encoder, [])


def found(folds=3):
    """Return folds as a search leaves them; every third row is in the same one."""
    rows = np.arange(90)
    parts = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(folds)]
    made = [FoldPath(None, *part, [], [0.3, 0.2, 0.1]) for part in parts]
    return SimpleNamespace(folds=made, chosen=2, model=ShareBoostClassifier(2))


def test_errors_are_those_of_a_tuned_pipeline(data):
    full = _full.fit_all_columns(data, found(2))
    errors = []
    inner = StratifiedKFold(5, shuffle=True, random_state=0)
    for fold in found(2).folds:
        search = LogisticRegressionCV(
            cv=inner, scoring="neg_log_loss", l1_ratios=(0,), use_legacy_attributes=False
        )
        model = make_pipeline(StandardScaler(), search).fit(data.X[fold.train], data.y[fold.train])
        errors.append(np.mean(model.predict(data.X[fold.test]) != data.y[fold.test]))
    assert full.error == pytest.approx(np.mean(errors))
    assert (full.n_features, full.multiply_adds) == (4, 4)
    assert full.note == (
        "scikit-learn's logistic regression on standardised columns, C chosen from 10 values by "
        "5-fold cross-validation on the training rows"
    )


def test_our_own_model_has_all_columns(data):
    full = _full.fit_all_columns(data, found(3))
    options = {"pool": Columns(groups=[0, 0, 0, 0]), "options": GreedyOptions(rule="l2")}
    errors = []
    # On two of the folds the errors on training rows are the same, but not on the third.
    # One round instead of four: another penalty, and nearly the same model.
    for model in (ShareBoostClassifier(1, **options), ShareBoostClassifier(4)):
        for fold in found(3).folds:
            model.fit(data.X[fold.train], data.y[fold.train])
            errors.append(np.mean(model.predict(data.X[fold.test]) != data.y[fold.test]))
    assert full.own_error == np.mean(errors[:3])
    assert full.own_error == pytest.approx(np.mean(errors[3:]), abs=1.5 / 30)


def test_regression(data):
    data.task, data.y = "regression", data.X[:, 1] + data.X[:, 2] / 1000
    search = found(1)
    search.model = ShareBoostRegressor(2)
    full = _full.fit_all_columns(data, search)
    train, test = search.folds[0].train, search.folds[0].test
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 5, 10)))
    guess = model.fit(data.X[train], data.y[train]).predict(data.X[test])
    assert full.error == pytest.approx(np.sqrt(np.mean((guess - data.y[test]) ** 2)), rel=1e-3)
    assert full.own_error < 0.05
    assert "ridge regression on standardised columns, alpha chosen" in full.note


def test_the_penalty_is_chosen_without_the_rows_held_out(data):
    first = _full.fit_all_columns(data, found(1))
    test = found().folds[0].test
    plan = _full._plan_fit(data, 2, 60)
    chosen = []

    def noted(*given):
        chosen.append(choose(*given))
        return chosen[-1]

    choose, _full._choose_penalty = _full._choose_penalty, noted
    try:
        _full._fit_and_score(data, found().folds[0], plan)
        data.y[test] = 1 - data.y[test]
        _full._fit_and_score(data, found().folds[0], plan)
    finally:
        _full._choose_penalty = choose
    assert chosen[0] == chosen[1]
    assert _full.fit_all_columns(data, found(1)).error == pytest.approx(1 - first.error)


def test_sparse_columns_give_what_dense_ones_give(data):
    data.X = data.X * (np.abs(data.X) > 0.5)
    dense = _full.fit_all_columns(data, found(1))
    data.X = sparse.csr_array(data.X)
    thin = _full.fit_all_columns(data, found(1))
    assert thin.error == pytest.approx(dense.error, abs=1.5 / 30)
    assert thin.own_error == pytest.approx(dense.own_error, abs=1.5 / 30)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_weights_count_as_repeated_rows(data, task):
    """Rows of weight 0 do not exist, in the scales, the search, the fit and the score."""
    search = found(1)
    if task == "regression":
        data.task, data.y = task, data.X[:, 1] + np.random.default_rng(1).normal(size=90)
        search.model = ShareBoostRegressor(2)
    kept = np.arange(90) % 9 != 4
    spoilt = np.where(kept[:, None], data.X, 1e4)
    part = TrainingTable("t", "y", task, data.X[kept], data.y[kept], None, data.encoder, [])
    place = np.cumsum(kept) - 1
    fold = search.folds[0]
    inside = [place[rows[kept[rows]]] for rows in (fold.train, fold.test)]
    smaller = SimpleNamespace(
        folds=[FoldPath(None, *inside, [], [0.1])], chosen=1, model=search.model
    )
    expected = _full.fit_all_columns(part, smaller)
    data.X, data.weight = spoilt, kept.astype(float)
    weighted = _full.fit_all_columns(data, search)
    # The inner folds are drawn among more rows, so that another penalty may win.
    near = 2.5 / len(inside[1]) if task == "classification" else 0.05
    assert weighted.error == pytest.approx(expected.error, abs=near)
    assert weighted.own_error == pytest.approx(expected.own_error, abs=near)


def test_large_tables_say_what_was_saved(data, monkeypatch):
    monkeypatch.setattr(_full, "_LEAST_ROWS_TO_FIT", 20)
    monkeypatch.setattr(_full, "_WORK", 2500)
    monkeypatch.setattr(_full, "_ALL_ITERATIONS", 60_000)
    full = _full.fit_all_columns(data, found())
    assert full.note.endswith(
        "C chosen from 3 values by 3-fold cross-validation on 26 of the 60 training rows to save "
        "time, at most 93 iterations, on the first fold only, where this model has 20.0 %"
    )


def test_our_own_model_is_left_out_where_it_takes_long(data, monkeypatch):
    monkeypatch.setattr(_full, "_OWN_WEIGHTS", 7)
    assert _full.fit_all_columns(data, found(1)).own_error is None


def test_a_fold_of_one_class(data):
    data.y = np.zeros(90, dtype=int)
    data.y[found().folds[0].test] = 1
    assert _full.fit_all_columns(data, found()) is None


def test_a_class_of_one_row(data):
    data.y = data.y + 1
    data.y[1] = 9  # in the training rows: inner folds cannot all have it
    assert 0 <= _full.fit_all_columns(data, found(1)).error < 0.5

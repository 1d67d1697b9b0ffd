"""The model over all columns."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import MaxAbsScaler

from mixnorm.cli import _full
from mixnorm.cli._data import Data
from mixnorm.cli._search import Fold, _spread, mean_error
from mixnorm.tables import SparseEncoder


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=90) > 0).astype(int)
    encoder = SparseEncoder(np.arange(4), True)
    return Data("t", "y", "classification", X, y, None, encoder, [])


def folds(count=3):
    rows = np.arange(90)
    return [Fold(None, rows[rows % count != k], rows[rows % count == k], [], []) for k in range(3)]


def test_errors_are_those_of_scikit_learn(data):
    found = _full.fit_full(data, folds())
    errors = []
    for fold in folds():
        scaler = MaxAbsScaler().fit(data.X[fold.train])
        model = LogisticRegression().fit(scaler.transform(data.X[fold.train]), data.y[fold.train])
        guess = model.predict(scaler.transform(data.X[fold.test]))
        errors.append(np.mean(guess != data.y[fold.test]))
    assert found.error == pytest.approx(np.mean(errors))
    assert (found.n_features, found.multiply_adds) == (4, 4)
    assert found.note == "scikit-learn's logistic regression on all columns"


def test_regression(data):
    data.task, data.y = "regression", data.X[:, 1] + 0.1 * data.X[:, 0]
    found = _full.fit_full(data, folds()[:1])
    fold = folds()[0]
    scaler = MaxAbsScaler().fit(data.X[fold.train])
    model = Ridge().fit(scaler.transform(data.X[fold.train]), data.y[fold.train])
    guess = model.predict(scaler.transform(data.X[fold.test]))
    assert found.error == pytest.approx(np.sqrt(np.mean((guess - data.y[fold.test]) ** 2)))


def test_large_tables_say_what_was_saved(data, monkeypatch):
    monkeypatch.setattr(_full, "_QUICK", 100)
    note = _full.fit_full(data, folds()).note
    assert note.endswith("on all columns, on the first fold only, 41 iterations")


def test_a_fold_of_one_class(data):
    data.y = np.zeros(90, dtype=int)
    data.y[folds()[0].test] = 1
    assert _full.fit_full(data, folds()) is None


def test_errors_and_their_spread():
    truth, found = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])
    assert mean_error(truth, found, None, "classification") == 0.25
    assert mean_error(truth, found, np.array([1, 1, 2, 0]), "classification") == 0.5
    assert mean_error(truth, found, None, "regression") == 0.5
    expected = np.sqrt(0.25 * 0.75 / 4)
    assert _spread(truth, found, None, "classification") == pytest.approx(expected)
    doubled = _spread(truth, found, np.full(4, 2.0), "classification")
    assert doubled == pytest.approx(expected)
    assert _spread(truth, truth, None, "regression") == 0.0

"""The search along the penalties of one norm."""

import numpy as np
import pytest

from mixnorm.advice.cases import make_case
from mixnorm.advice.curves import compute_curve
from mixnorm.estimators import MixedNormRegressor


def outputs(n=40):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + 0.1 * rng.standard_normal((n, 3))
    return make_case(X, Y, max_rows=n, standardize=True, seed=0)


def test_errors_are_those_of_models_at_the_penalties_of_the_first_fold():
    case = outputs()
    folds = case.folds(3, 0)
    model = case.make_model("l2,1", tol=1e-8)
    curve = compute_curve(case, model, folds, 4)
    first = model.path(*folds[0][0], alphas=4, alpha_ratio=1e-3)
    np.testing.assert_allclose(curve.alphas, first.alphas)
    assert curve.errors.shape == curve.losses.shape == curve.norms.shape == (3, 4)
    for fold, (train, (X, Y)) in enumerate(folds):
        for place, alpha in enumerate(curve.alphas):
            fit = MixedNormRegressor("l2,1", alpha=alpha, standardize=True, tol=1e-8).fit(*train)
            left = ((fit.predict(X) - Y) ** 2).mean(axis=0)
            assert curve.losses[fold, place] == pytest.approx(left.mean(), rel=1e-3)
            error = (left / case.y.var(axis=0)).mean()
            assert curve.errors[fold, place] == pytest.approx(error, rel=1e-3)
    assert curve.columns[0] <= curve.columns[-1] == 5


def test_a_class_without_training_rows_is_missed_and_costs_a_lot():
    X, y = np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 3
    case = make_case(X, y, max_rows=30, standardize=True, seed=0)
    train, test = (X[y < 2], y[y < 2]), (X[:6], y[:6])
    path = case.make_model("l2,1").path(*train, alphas=2, alpha_ratio=1e-3)
    for scores in case.scores(path, train, test):
        assert np.all(np.isneginf(scores[:, 2]))
        assert case.error(scores, test[1]) >= 1.0 / 3.0
        assert np.log(2.0) + 10.0 > case.loss(scores, test[1]) > (np.log(2.0) + 10.0) / 3.0


def test_an_interrupt_ends_the_comparison(monkeypatch):
    case = outputs()
    folds = case.folds(3, 0)
    calls, path = [], MixedNormRegressor.path

    def tiring(self, *args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return path(self, *args, **options)

    monkeypatch.setattr(MixedNormRegressor, "path", tiring)
    with pytest.raises(KeyboardInterrupt):
        compute_curve(case, case.make_model("l2,1"), folds, 3)

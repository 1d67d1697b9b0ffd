"""What the user does with the regressor."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Lasso, MultiTaskLasso, QuantileRegressor

import mixnorm
from mixnorm import (
    MixedNormRegressor,
    MixedNormRegressorCV,
    MultiTaskLearner,
    MultiTaskLearnerCV,
)
from mixnorm.estimators.mixed_norm.regressor import _REGRESSION
from mixnorm.exceptions import NotConvergedWarning
from mixnorm.losses import EpsilonInsensitive, Hinge, Huber, MultinomialLogistic
from mixnorm.norms import MixedNorm, as_norm

NORMS = ["l1,1", "l2,1", "l2,2", "linf,1", "trace"]


@pytest.fixture(scope="module")
def data():
    """Three outputs that share three of twelve features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    return X, X[:, :3] @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(80, 3)) + [5.0, -3.0, 0.0]


# --- the right solution


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_is_scikit_learns_multi_task_lasso(data, fit_intercept):
    X, Y = data
    ours = MixedNormRegressor("l2,1", 0.2, fit_intercept=fit_intercept, tol=1e-9).fit(X, Y)
    theirs = MultiTaskLasso(0.2, fit_intercept=fit_intercept, tol=1e-9).fit(X, Y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    assert np.array_equal(ours.support_, np.flatnonzero(theirs.coef_.any(axis=0)))


def test_is_scikit_learns_lasso(data):
    X, Y = data
    theirs = Lasso(0.1, tol=1e-9).fit(X, Y[:, 0])
    for norm in ("l1,1", "l2,1", "linf,1"):  # all the same for one output
        ours = MixedNormRegressor(norm, 0.1, tol=1e-9).fit(X, Y[:, 0])
        assert ours.coef_.shape == (12,)
        assert type(ours.intercept_) is float
        assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-5)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
        assert ours.predict(X).shape == (80,)
    column = MixedNormRegressor("l1,1", 0.1, tol=1e-9).fit(X, Y[:, :1])
    assert column.coef_.shape == (1, 12)
    assert column.predict(X).shape == (80, 1)


def test_is_scikit_learns_median_regression(data):
    X, Y = data
    theirs = QuantileRegressor(quantile=0.5, alpha=0.05, solver="highs").fit(X, Y[:, 0])
    ours = MixedNormRegressor("l1,1", 0.1, loss="absolute", tol=1e-7).fit(X, Y[:, 0])
    assert ours.objective_ == pytest.approx(
        np.mean(np.abs(theirs.predict(X) - Y[:, 0])) + 0.1 * np.abs(theirs.coef_).sum(), rel=1e-5
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_conditions_of_the_optimum(data, norm, fit_intercept):
    """The gradient lies in alpha times the dual ball, on the face that the weights are on."""
    X, Y = data
    model = MixedNormRegressor(norm, 0.1, fit_intercept=fit_intercept, tol=1e-7).fit(X, Y)
    theta = (model.predict(X) - Y) / len(Y)
    gradient, weights, norm = X.T @ theta, model.coef_.T, as_norm(norm)
    assert norm.dual(gradient) <= 0.1 * (1 + 1e-2)
    assert -np.sum(weights * gradient) == pytest.approx(0.1 * model.norm_value_, rel=1e-3)
    loss = 0.5 * np.mean(np.sum((model.predict(X) - Y) ** 2, axis=1))
    assert model.objective_ == pytest.approx(loss + 0.1 * norm.value(weights))
    if fit_intercept:
        assert theta.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-6)


@pytest.mark.parametrize(
    ("norm", "loss"),
    [(norm, "squared") for norm in NORMS] + [("l2,1", "huber"), ("l2,1", "absolute")],
)
def test_ball_and_penalty_meet(data, norm, loss):
    X, Y = data
    penalised = MixedNormRegressor(norm, 0.1, loss=loss).fit(X, Y)
    ball = MixedNormRegressor(norm, radius=penalised.norm_value_, loss=loss).fit(X, Y)
    assert ball.norm_value_ <= penalised.norm_value_ * (1 + 1e-9)
    alone = penalised.objective_ - 0.1 * penalised.norm_value_
    assert ball.objective_ == pytest.approx(alone, abs=penalised.dual_gap_ + ball.dual_gap_)


@pytest.mark.parametrize("loss", sorted(_REGRESSION))
def test_losses(data, loss):
    X, Y = data
    model = MixedNormRegressor("l2,1", 0.05, loss=loss).fit(X, Y)
    kind = _REGRESSION[loss]()
    target = kind.encode(Y, 3, X[:, 0])
    value, _ = kind.value_and_residual(model.predict(X), target, np.full(80, 1 / 80))
    assert model.objective_ == pytest.approx(value + 0.05 * model.norm_value_)
    assert model.score(X, Y) > 0.9


# --- units: nothing depends on them


@pytest.mark.parametrize("size", [1e-30, 1e6])
@pytest.mark.parametrize(
    ("loss", "degree"), [("squared", 2), ("absolute", 1), ("huber", 2), ("epsilon_insensitive", 1)]
)
def test_the_size_of_the_targets(data, size, loss, degree):
    X, Y = data
    dtype = np.float32 if degree == 2 else np.float64
    plain = MixedNormRegressor("l2,1", 0.1, loss=loss, tol=1e-3).fit(X, Y)
    loss = {"huber": Huber(size), "epsilon_insensitive": EpsilonInsensitive(0.1 * size)}.get(
        loss, loss
    )
    alpha = 0.1 * size ** (degree - 1)
    other = MixedNormRegressor("l2,1", alpha, loss=loss, tol=1e-3).fit(X.astype(dtype), Y * size)
    assert other.coef_ / size == pytest.approx(plain.coef_, abs=0.05)
    assert other.intercept_ / size == pytest.approx(plain.intercept_, abs=0.05)
    assert other.objective_ / size**degree == pytest.approx(plain.objective_, rel=2e-3)
    assert other.norm_value_ / size == pytest.approx(plain.norm_value_, rel=2e-2)
    radius = plain.norm_value_ * size / 2
    ball = MixedNormRegressor("l2,1", radius=radius, loss=loss).fit(X.astype(dtype), Y * size)
    assert ball.norm_value_ == pytest.approx(radius, rel=1e-4)


@pytest.mark.parametrize("loss", sorted(_REGRESSION))
def test_a_shift_of_the_targets(data, loss):
    X, Y = data
    plain = MixedNormRegressor(alpha=0.1, loss=loss).fit(X, Y)
    moved = MixedNormRegressor(alpha=0.1, loss=loss).fit(X.astype(np.float32), Y + 1e6)
    assert moved.coef_ == pytest.approx(plain.coef_, abs=0.05)
    assert moved.intercept_ - 1e6 == pytest.approx(plain.intercept_, abs=0.2)  # in float32


@pytest.mark.parametrize("size", [1e-30, 1e30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_size_of_X(data, dtype, size):
    X, Y = data
    plain = MixedNormRegressor(alpha=0.1).fit(X, Y)
    other = MixedNormRegressor(alpha=0.1 * size).fit((X * size).astype(dtype), Y)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-3)
    assert other.predict((X * size).astype(dtype)) == pytest.approx(plain.predict(X), abs=0.1)


# --- data of all kinds


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_weights_are_repeats(data, loss):
    X, Y = data
    weight = np.random.default_rng(1).integers(0, 4, size=80)
    repeated = np.repeat(np.arange(80), weight)
    ours = MixedNormRegressor(alpha=0.1, loss=loss, tol=1e-7).fit(X, Y, sample_weight=weight)
    theirs = MixedNormRegressor(alpha=0.1, loss=loss, tol=1e-7).fit(X[repeated], Y[repeated])
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-6)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=2e-3)


def test_rows_of_weight_zero_may_hold_anything(data):
    X, Y = data
    X, Y = np.vstack([X, np.full((1, 12), 1e300)]), np.vstack([Y, np.full((1, 3), 1e300)])
    weight = np.r_[np.ones(80), 0.0]
    ours = MixedNormRegressor(alpha=0.1).fit(X, Y, sample_weight=weight)
    assert np.array_equal(ours.coef_, MixedNormRegressor(alpha=0.1).fit(X[:80], Y[:80]).coef_)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_sparse_is_dense(data, make, norm):
    X, Y = data
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense = MixedNormRegressor(norm, 0.1, tol=1e-8).fit(X, Y)
    sparse = MixedNormRegressor(norm, 0.1, tol=1e-8).fit(make(X), Y)
    assert sparse.coef_ == pytest.approx(dense.coef_, abs=1e-3)
    assert sparse.predict(make(X)) == pytest.approx(dense.predict(X), abs=1e-2)


@pytest.mark.parametrize("norm", NORMS)
def test_float32_is_close(data, norm):
    X, Y = data
    narrow = MixedNormRegressor(norm, 0.1).fit(X.astype(np.float32), Y)
    wide = MixedNormRegressor(norm, 0.1).fit(X, Y)
    assert narrow.coef_.dtype == np.float32
    assert narrow.coef_ == pytest.approx(wide.coef_, abs=0.05)
    assert narrow.objective_ == pytest.approx(wide.objective_, rel=1e-3)


def test_targets_that_do_not_vary(data):
    X, _ = data
    model = MixedNormRegressor().fit(X, np.full(80, 3.0))
    assert model.intercept_ == 3.0
    assert model.support_.shape == (0,)
    assert model.dual_gap_ == model.objective_ == 0.0
    one = MixedNormRegressor().fit(X[:1], [[1.0, 2.0]])
    assert one.predict(X[:1]).tolist() == [[1.0, 2.0]]


def test_bad_data(data):
    X, Y = data
    model = MixedNormRegressor()
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="y contains NaN|y contains infinity|NaN, inf"):
            model.fit(X, np.where(np.arange(80) == 3, bad, Y[:, 0]))
    with pytest.raises(ValueError, match="y holds .a., which is not a number"):
        model.fit(X, np.array(["a", "b"] * 40))
    with pytest.raises(ValueError, match="dim"):
        model.fit(X, Y[:, :, None])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X[:3], Y)
    for loss in (Hinge(), MultinomialLogistic()):
        with pytest.raises(ValueError, match="is not a regression loss; choose one of"):
            MixedNormRegressor(loss=loss).fit(X, Y)
    with pytest.raises(ValueError, match="loss='hinge' is not known"):
        MixedNormRegressor(loss="hinge").fit(X, Y)
    with pytest.raises(ValueError, match="delta"):
        MixedNormRegressor(loss=Huber(-1.0)).fit(X, Y)


def test_clone_pickle_and_nested_parameters(data):
    X, Y = data
    model = MixedNormRegressor(MixedNorm(2, 1), 0.1, loss=Huber()).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))
    other = clone(model).set_params(norm__inner=np.inf, loss__delta=0.5)
    assert (model.norm.inner, model.loss.delta) == (2, 1.0)
    assert np.any(other.fit(X, Y).coef_ != model.coef_)


@pytest.mark.parametrize("single", [True, False])
def test_storage(tmp_path, data, single):
    X, Y = data
    model = MixedNormRegressor(alpha=0.1, loss=Huber(2.0)).fit(X, Y[:, 0] if single else Y)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.coef_, model.coef_)
    assert type(loaded.intercept_) is type(model.intercept_)


@pytest.mark.parametrize("factor", [5e-324, 1e-310, 1e-200, 1e140, 1e200, 1e300])
@pytest.mark.parametrize("kind", [MixedNormRegressorCV, MultiTaskLearnerCV])
def test_columns_of_any_size_are_fitted_or_refused(kind, factor):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    for given in ((X * factor, y), (X, y * factor), (X * factor, y * factor)):
        for standardize in (False, True):
            told = ""
            try:
                model = kind(alphas=3, cv=3, standardize=standardize).fit(*given)
            except ValueError as error:
                told = str(error)
            if told:
                assert re.search(r"\b[Xy]\b|targets", told)
                continue
            assert np.all(np.isfinite(model.coef_))
            assert np.all(np.isfinite(model.predict(given[0])))
            assert np.all(np.isfinite([model.dual_gap_, model.objective_]))


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_the_relative_gap_of_targets_of_any_size_is_told(factor):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    with pytest.warns(NotConvergedWarning, match=r"relative duality gap [1-9]\.\de-\d\d"):
        MixedNormRegressor(loss=Huber(factor), max_iter=1, tol=1e-12).path(X, y * factor, alphas=3)


@pytest.mark.parametrize("power", [-500, 500])
def test_tasks_on_columns_of_extreme_size(power):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    Y = X[:, :2] + 0.1 * rng.normal(size=(30, 2))
    unit = 2.0**power
    plain = MultiTaskLearner(alpha=0.1).fit(X, Y)
    for scaled in (X * unit, sp.csr_array(X * unit)):
        model = MultiTaskLearner(alpha=0.1 * unit).fit(scaled, Y)
        np.testing.assert_allclose(model.coef_ * unit, plain.coef_, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.predict(scaled), plain.predict(X), rtol=1e-6)


def test_differences_within_a_column_that_overflow():
    X = np.array([[-1.7e308], [1.7e308], [1.7e308], [-1.7e308]])
    y = np.array([0.0, 1.0, 1.0, 0.0])
    model = MixedNormRegressor(alpha=1e-6, standardize=True, tol=1e-8)
    wanted = model.fit(np.sign(X), y).predict(np.sign(X))
    np.testing.assert_allclose(model.fit(X, y).predict(X), wanted, atol=1e-6)


def test_constant_columns_lost_in_rounding_move_nothing_without_end():
    rng = np.random.default_rng(0)
    Y, huge = rng.normal(size=(120, 3)), np.full(120, 1e20)
    X = sp.csr_array(np.column_stack([1e8 * rng.normal(size=120), huge, huge]))
    weight = np.random.default_rng(0).integers(0, 4, size=120)
    with pytest.warns(NotConvergedWarning, match="scale X"):
        model = MultiTaskLearner(norm="trace").fit(X, Y, sample_weight=weight)
    assert np.all(np.isfinite(model.predict(X)))

"""What every ShareBoost estimator does with awkward tables, failed fits and interruptions."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_regression
from sklearn.exceptions import NotFittedError

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    LightRowsWarning,
)
from mixnorm.losses import MarginSoftmax, MultinomialLogistic
from mixnorm.pools import Columns

# --- awkward tables


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_from_tiny_to_huge_choose_the_same(digits, dtype):
    X, y = digits
    X = X[:, X.std(axis=0) > 0]
    powers = 10.0 ** np.random.default_rng(0).integers(-8, 9, X.shape[1])
    plain = ShareBoostClassifier(10).fit(X.astype(dtype), y)
    scaled = ShareBoostClassifier(10).fit((X * powers).astype(dtype), y)
    assert np.array_equal(plain.selected_[:6], scaled.selected_[:6])
    assert scaled.score((X * powers).astype(dtype), y) == pytest.approx(
        plain.score(X.astype(dtype), y), abs=0.01
    )
    assert np.isfinite(scaled.coef_).all()


def test_constant_columns_are_never_chosen():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([np.full(150, 7.0), X, np.zeros(150)])
    with pytest.warns(FewerFeaturesWarning, match="the 4 that vary"):
        model = ShareBoostClassifier(6).fit(X, y)
    assert set(model.selected_) == {1, 2, 3, 4}
    without = ShareBoostClassifier(5, fit_intercept=False).fit(X, y)
    assert 0 in without.selected_
    assert 5 not in without.selected_


def test_only_constant_columns_give_the_majority_class():
    y = np.array([0, 1, 1, 1])
    with pytest.warns(FewerFeaturesWarning):
        model = ShareBoostClassifier(2).fit(np.ones((4, 3)), y)
    assert set(model.predict(np.ones((2, 3)))) == {1}
    assert list(model.staged_predict(np.ones((2, 3)))) == []


def test_duplicate_columns_are_not_wasted(digits):
    X, y = digits
    plain = ShareBoostClassifier(10, options=GreedyOptions(rule="l1", tol=1e-6)).fit(X, y)
    twice = ShareBoostClassifier(10, options=GreedyOptions(rule="l1", tol=1e-6)).fit(
        np.hstack([X, X]), y
    )
    assert np.array_equal(np.sort(twice.selected_ % 64), np.sort(plain.selected_))


@pytest.mark.parametrize("shape", [(3, 50), (10, 2)])
def test_fewer_rows_or_columns_than_features(shape):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal(shape), np.arange(shape[0]) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerFeaturesWarning)
        model = ShareBoostClassifier(20).fit(X, y)
    assert 1 <= len(model.selected_) <= min(20, shape[1])
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_features_to_select": 0}, ValueError, "at least 1"),
        ({"n_features_to_select": 2.5}, TypeError, "whole number"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"alpha": np.nan}, ValueError, "alpha"),
        ({"options__tol": -1.0}, ValueError, "tol"),
        ({"options__max_iter": 0}, ValueError, "max_iter"),
        ({"options__swaps": -1}, ValueError, "swaps"),
        ({"options__rule": "best"}, ValueError, "joint"),
        ({"pool": Columns(groups=[0, 1])}, ValueError, "one label per column"),
        ({"pool": Columns(groups=[0, 1, np.nan, 1])}, ValueError, "missing labels"),
        ({"pool": Columns}, TypeError, "not a pool"),
        ({"pool": "columns"}, TypeError, "not a pool"),
        ({"loss": MultinomialLogistic}, ValueError, "loss object"),
        ({"loss": MarginSoftmax(margin=np.nan)}, ValueError, "margin"),
        ({"options__rule": ["l1"]}, ValueError, "joint"),
        ({"fit_intercept": "no"}, TypeError, "True or False"),
        ({"alpha": "best"}, ValueError, "'auto'"),
        ({"options__scale": "range"}, ValueError, "'std', 'max' or False"),
    ],
)
def test_bad_parameters(parameters, error, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=message):
        ShareBoostClassifier().set_params(**parameters).fit(X, y)


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="only one class"):
        ShareBoostClassifier().fit(np.eye(3), ["a", "a", "a"])


def test_no_convergence_is_said():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(UserWarning, match="Raise max_iter"):
        ShareBoostClassifier(5, options=GreedyOptions(max_iter=1, tol=1e-9)).fit(X, y)


# --- forms of X


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_equals_dense(digits, form):
    X, y = digits
    dense = ShareBoostClassifier(8, alpha=1e-4, options=GreedyOptions(tol=1e-8)).fit(X, y)
    sparse = ShareBoostClassifier(8, alpha=1e-4, options=GreedyOptions(tol=1e-8)).fit(form(X), y)
    assert np.array_equal(sparse.selected_, dense.selected_)
    assert sparse.coef_ == pytest.approx(dense.coef_, abs=1e-4)
    assert np.array_equal(sparse.predict(form(X)), dense.predict(X))
    assert sp.issparse(sparse.transform(form(X)))


def test_sparse_is_never_made_dense():
    rng = np.random.default_rng(0)
    n, d = 100_000, 40_000  # 32 GB if dense
    X = sp.random_array((n, d), density=2e-6, rng=rng, format="csr")
    y = np.arange(n) % 2
    X = sp.hstack([X, sp.csr_array((y + rng.uniform(size=n) < 0.5)[:, None] * 1.0)]).tocsr()
    assert ShareBoostClassifier(2).fit(X, y).selected_[0] == d


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.int64, bool])
def test_narrow_types_equal_float(digits, dtype):
    X, y = digits
    X = X > 7 if dtype is bool else X
    narrow = ShareBoostClassifier(6).fit(X.astype(dtype), y)
    wide = ShareBoostClassifier(6).fit(X.astype(np.float64), y)
    assert np.array_equal(narrow.selected_, wide.selected_)
    assert narrow.score(X.astype(dtype), y) == pytest.approx(wide.score(X, y), abs=0.005)


def test_memory_mapped_files(digits, tmp_path):
    X, y = digits
    mapped = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    mapped = np.memmap(tmp_path / "X", dtype=np.float32, mode="r", shape=X.shape)
    from_file = ShareBoostClassifier(6).fit(mapped, y)
    in_memory = ShareBoostClassifier(6).fit(X.astype(np.float32), y)
    assert np.array_equal(from_file.selected_, in_memory.selected_)


def test_extra_memory_is_below_half_of_X():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10000, 500), dtype=np.float32)
    y = np.argmax(X[:, :10], axis=1)
    tracemalloc.start()
    try:
        ShareBoostClassifier(15).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X.nbytes


def test_input_is_left_alone(digits):
    X, y = digits
    before = X.copy()
    ShareBoostClassifier(3).fit(X, y).predict(X)
    assert np.array_equal(X, before)


# --- groups


def test_groups_are_chosen_together():
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 4, 300)
    noise = rng.standard_normal((300, 5))
    X = np.column_stack([noise[:, :3], np.eye(4)[colour], noise[:, 3:]])
    groups = ["a", "b", "c", "colour", "colour", "colour", "colour", "d", "e"]
    y = (colour + (noise[:, 0] > 1)) % 4
    model = ShareBoostClassifier(2, pool=Columns(groups=groups)).fit(X, y)
    assert list(model.path_["feature"]) == ["colour", "a"]
    assert list(model.selected_) == [3, 4, 5, 6, 0]
    assert list(model.truncate(1).selected_) == [3, 4, 5, 6]
    assert model.score(X, y) > 0.8
    # with swaps and every rule as well
    for rule in ("l1", "l2", "line", "column"):
        other = ShareBoostClassifier(
            2, pool=Columns(groups=groups), options=GreedyOptions(rule=rule, swaps=1)
        ).fit(X, y)
        assert "colour" in set(other.path_["feature"])


# --- offsets


@pytest.mark.parametrize("offset", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("rule", ["l1", "joint", "column", "line"])
def test_a_large_offset_does_not_mislead_the_choice(offset, rule):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6))
    score = X @ [3.0, 2.0, 1.0, 0.0, 0.0, 0.0] + 0.1 * rng.standard_normal(500)
    y = (score > 0).astype(int) + (score > 3)
    model = ShareBoostClassifier(3, alpha=0.0, options=GreedyOptions(rule=rule)).fit(X + offset, y)
    assert set(model.selected_) == {0, 1, 2}
    assert model.score(X + offset, y) > 0.97
    regressor = ShareBoostRegressor(3, alpha=0.0, options=GreedyOptions(rule=rule)).fit(
        X + offset, score
    )
    assert regressor.score(X + offset, score) > 0.99


def test_weights_that_count_as_next_to_no_rows_are_warned_of():
    X, y = load_iris(return_X_y=True)
    share = np.full(150, 1 / 150)
    with pytest.warns(LightRowsWarning, match="adds up to 1 for 150 rows"):
        ShareBoostClassifier(2).fit(X, y, sample_weight=share)
    with pytest.warns(LightRowsWarning, match="adds up to 3 for 150 rows"):  # one per class
        ShareBoostClassifier(2).fit(X, y, sample_weight=3 * share)
    ShareBoostClassifier(2).fit(X, y, sample_weight=150 * share)
    ShareBoostRegressor(1).fit([[0.0], [1.0]], [0.0, 1.0])  # few rows, but no weights
    ShareBoostClassifier(2, alpha=1e-3).fit(X, y, sample_weight=share)


# --- an earlier fit stays whole


def test_a_failed_refit_leaves_the_model_as_it_was():
    X, y = make_regression(60, 8, noise=1.0, random_state=0)
    model = ShareBoostRegressor(3).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="loss"):
        model.set_params(loss="nope").fit(X, 1000 * y + 5)
    with pytest.raises(ValueError, match="negative"):
        model.set_params(loss="squared").fit(X[:, :4], y, sample_weight=-np.ones(60))
    assert np.array_equal(model.predict(X), before)
    labels = np.where(y > 0, "a", "b")
    classifier = ShareBoostClassifier(3).fit(X, y > 0)
    with pytest.raises(ValueError, match="one label per column"):
        classifier.set_params(pool=Columns(groups=[0])).fit(X, labels)
    assert classifier.predict(X).dtype == bool


def test_a_failed_first_fit_is_no_fit():
    X, y = load_iris(return_X_y=True)
    model = ShareBoostRegressor()
    with pytest.raises(ValueError, match="negative"):
        model.fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    "change",
    [
        {"pool": Columns(groups=[3, 2, 1, 0])},
        {"loss": "logistic"},
        {"alpha": 0.1},
        {"fit_intercept": False},
    ],
)
def test_warm_start_refuses_other_settings(change):
    X, y = load_iris(return_X_y=True)
    model = ShareBoostClassifier(2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="has changed since"):
        model.set_params(n_features_to_select=3, **change).fit(X, y)


def test_rows_of_weight_zero_may_hold_anything():
    X, y = make_regression(60, 8, noise=1.0, random_state=0)
    weight = np.r_[0.0, np.ones(59)]
    wild = np.where(weight > 0, y, 1e200)
    model = ShareBoostRegressor(3).fit(X.astype(np.float32), wild, sample_weight=weight)
    assert model.score(X[1:], y[1:]) > 0.5


def test_targets_of_any_size():
    X, y = make_regression(60, 8, noise=1.0, random_state=0)
    model = ShareBoostRegressor(8).fit(X, 1e160 * y)
    assert model.predict(X) / 1e160 == pytest.approx(y, abs=10)


def test_warnings_point_at_the_caller():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(FewerFeaturesWarning) as caught:
        ShareBoostClassifier(9).fit(X, y)
    assert caught[0].filename == __file__


def test_one_iteration_that_solves_a_round_is_convergence():
    X, y = make_regression(60, 8, noise=1.0, random_state=0)
    model = ShareBoostRegressor(3, alpha=0.0, options=GreedyOptions(max_iter=1)).fit(X, y)
    rounds = model.model_.path.rounds
    assert [(step.iterations, step.converged) for step in rounds] == [(1, True)] * 3
    B = np.column_stack([np.ones(60), X[:, model.selected_]])
    exact = np.linalg.lstsq(B, y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_[model.selected_], exact[1:], rtol=1e-9)


# --- interruption


def test_interrupt_keeps_the_rounds_with_a_warning(digits, interrupt_at):
    X, y = digits
    interrupt_at(4)
    model = ShareBoostClassifier(8)
    with pytest.warns(InterruptedFitWarning, match="after 3 of 8 rounds"):
        model.fit(X, y)
    assert len(model.selected_) == 3
    assert model.score(X, y) > 0.3
    model.set_params(warm_start=True).fit(X, y)
    assert len(model.selected_) == 8

"""What the user does with the classifier and the regressor."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from mixnorm import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.datasets import load, make_shared_bits
from mixnorm.exceptions import (
    DatasetNotFoundError,
    FewerFeaturesWarning,
    InterruptedFitWarning,
    LargeOffsetWarning,
)
from mixnorm.losses import MarginSoftmax, MultinomialLogistic
from mixnorm.pools import Columns


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def model(digits):
    return ShareBoostClassifier(n_features_to_select=15).fit(*digits)


# --- the path and what is read off it


def test_path_has_a_row_per_round(model):
    frame = pd.DataFrame(model.path_)
    assert list(frame.columns) == ["feature", "loss", "gradient", "seconds"]
    assert len(frame) == 15
    assert list(frame["feature"]) == list(model.selected_)
    assert frame["loss"].is_monotonic_decreasing
    assert model.null_loss_ == pytest.approx(np.log(1 + 9 * np.e), rel=1e-2)


@pytest.mark.parametrize("swaps", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truncate_is_staged_predict_is_a_shorter_fit(digits, swaps, dtype):
    X, y = digits
    X = X.astype(dtype)
    options = dict(swaps=swaps, alpha=1e-4, tol=1e-7)
    model = ShareBoostClassifier(8, **options).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 8
    for size in (1, 4, 8):
        smaller = model.truncate(size)
        assert np.array_equal(smaller.predict(X), stages[size - 1])
        assert len(smaller.selected_) == size == np.count_nonzero(smaller.get_support())
        assert len(smaller.path_["loss"]) == size
        direct = ShareBoostClassifier(size, **options).fit(X, y)
        assert np.array_equal(direct.selected_, smaller.selected_)
        assert smaller.coef_ == pytest.approx(
            direct.coef_, abs=0.02 * float(np.abs(direct.coef_).max())
        )
    assert len(model.selected_) == 8


def test_staged_decision_function(model, digits):
    X, _ = digits
    for size, scores in enumerate(model.staged_decision_function(X), start=1):
        assert np.array_equal(scores, model.truncate(size).decision_function(X))


@pytest.mark.parametrize("size", [0, 16, -1])
def test_truncate_out_of_range(model, size):
    with pytest.raises(ValueError, match="1 to 15 features"):
        model.truncate(size)


def test_coef_is_for_the_columns_as_given(model, digits):
    X, _ = digits
    assert model.coef_.shape == (10, 64)
    assert X @ model.coef_.T + model.intercept_ == pytest.approx(model.decision_function(X))
    unused = np.setdiff1d(np.arange(64), model.selected_)
    assert not model.coef_[:, unused].any()


def test_transform_keeps_chosen_columns_in_table_order(model, digits):
    X, _ = digits
    assert np.array_equal(model.transform(X), X[:, np.sort(model.selected_)])
    assert np.array_equal(model.transform(model.inverse_transform(model.transform(X))),
                          model.transform(X))  # fmt: skip


def test_warm_start_continues_the_path(digits):
    X, y = digits
    options = dict(alpha=1e-4, tol=1e-8, rule="l1")
    whole = ShareBoostClassifier(8, **options).fit(X, y)
    grown = ShareBoostClassifier(4, warm_start=True, **options).fit(X, y)
    first = grown.path_["seconds"].copy()
    grown.set_params(n_features_to_select=8).fit(X, y)
    assert np.array_equal(grown.selected_, whole.selected_)
    assert np.array_equal(grown.path_["seconds"][:4], first)
    assert grown.path_["loss"] == pytest.approx(whole.path_["loss"], rel=1e-4)
    grown.set_params(n_features_to_select=3).fit(X, y)
    assert np.array_equal(grown.selected_, whole.selected_[:3])


def test_warm_start_of_a_regressor_keeps_its_units():
    X, Y = make_regression(80, 10, n_targets=2, noise=1.0, random_state=0)
    grown = ShareBoostRegressor(3, warm_start=True).fit(X, Y)
    before = grown.coef_.copy()
    grown.set_params(n_features_to_select=3).fit(X, 5 * Y + 7)  # nothing left to do
    assert grown.coef_ == pytest.approx(before)
    with pytest.raises(ValueError, match="2 outputs"):
        grown.fit(X, Y[:, 0])


def test_warm_start_refuses_other_columns(digits):
    X, y = digits
    model = ShareBoostClassifier(2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="64 columns, but X has 10"):
        model.set_params(n_features_to_select=3).fit(X[:, :10], y)


def test_warm_start_refuses_other_classes(digits):
    X, y = digits
    model = ShareBoostClassifier(2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="other classes"):
        model.fit(X, y % 3)


def test_truncate_takes_a_whole_number(model):
    with pytest.raises(TypeError, match="whole number"):
        model.truncate(2.5)


# --- classes, probabilities, losses


@pytest.mark.parametrize("loss", ["margin", "logistic"])
def test_probabilities(digits, loss):
    X, y = digits
    model = ShareBoostClassifier(10, loss=loss).fit(X, y)
    P = model.predict_proba(X)
    assert P.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(P)


def test_logistic_loss_on_all_columns_is_logistic_regression():
    X, y = load_iris(return_X_y=True)
    scale = np.abs(X).max(axis=0)
    model = ShareBoostClassifier(4, loss="logistic", alpha=1e-3, tol=1e-12).fit(X, y)
    peer = LogisticRegression(C=1 / (2e-3 * len(X)), tol=1e-10, max_iter=10000).fit(X / scale, y)
    assert model.coef_ * scale == pytest.approx(peer.coef_, abs=1e-4)
    assert model.predict_proba(X) == pytest.approx(peer.predict_proba(X / scale), abs=1e-5)


def test_two_classes_behave_as_in_scikit_learn():
    X, y = make_classification(random_state=0)
    labels = np.where(y == 1, "yes", "no")
    model = ShareBoostClassifier(3, loss="logistic").fit(X, labels)
    scores = model.decision_function(X)
    assert model.coef_.shape == (1, 20)
    assert model.intercept_.shape == (1,)
    assert scores.shape == (100,)
    assert scores == pytest.approx(X @ model.coef_[0] + model.intercept_[0])
    assert np.array_equal(model.predict(X) == "yes", scores > 0)
    assert model.predict_proba(X)[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))


@pytest.mark.parametrize(
    "labels", [["a", "b", "c"], [10, -3, 7], [0.5, 1.5, 2.5][::-1], [True, False, True]]
)
def test_labels_of_any_type(labels):
    X, y = load_iris(return_X_y=True)
    named = np.asarray(labels)[y]
    if len(set(labels)) == 2:
        assert set(ShareBoostClassifier(2).fit(X, named).predict(X)) <= set(labels)
    elif isinstance(labels[0], float):
        with pytest.raises(ValueError, match="Unknown label type"):
            ShareBoostClassifier(2).fit(X, named)
    else:
        model = ShareBoostClassifier(2).fit(X, named)
        plain = ShareBoostClassifier(2).fit(X, y)
        assert np.mean(model.predict(X) == np.asarray(labels)[plain.predict(X)]) > 0.99


def test_labels_as_objects_and_strings():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = pd.Series(["setosa", "versicolor", "virginica"])[y].reset_index(drop=True)
    for labels in (names, names.astype("category"), names.to_numpy(dtype=object)):
        assert ShareBoostClassifier(2).fit(X, labels).score(X, labels) > 0.9


def test_a_class_with_one_example(digits):
    X, y = digits
    rare = np.where(np.arange(len(y)) == 0, 11, y)
    model = ShareBoostClassifier(10).fit(X, rare)
    assert 11 in model.classes_
    assert np.isfinite(model.coef_).all()


def test_loss_objects_and_mistakes():
    X, y = load_iris(return_X_y=True)
    ShareBoostClassifier(2, loss=MultinomialLogistic()).fit(X, y)
    with pytest.raises(ValueError, match="logistic.*margin"):
        ShareBoostClassifier(loss="hinge").fit(X, y)
    with pytest.raises(ValueError, match="no regression loss"):
        ShareBoostRegressor(loss=MultinomialLogistic()).fit(X, y)


# --- regression


def test_regression_is_least_squares_on_the_chosen_columns():
    X, y = make_regression(80, 30, n_informative=5, noise=1.0, random_state=0)
    model = ShareBoostRegressor(5, alpha=0.0).fit(X, y)
    peer = LinearRegression().fit(X[:, model.selected_], y)
    assert model.coef_[model.selected_] == pytest.approx(peer.coef_, rel=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_, rel=1e-6)
    assert model.path_["loss"][-1] == pytest.approx(0.5 * np.mean((y - model.predict(X)) ** 2))
    assert model.predict(X).shape == y.shape


def test_regression_ridge_agrees_with_scikit_learn():
    X, Y = make_regression(80, 4, n_targets=2, noise=1.0, random_state=0)
    scale = np.abs(X).max(axis=0)
    model = ShareBoostRegressor(4, alpha=0.1).fit(X, Y)
    # scikit-learn: sum of squares + alpha ||W||^2; ours is half the mean of squares.
    peer = Ridge(alpha=2 * 0.1 * len(X)).fit(X / scale, Y)
    assert model.coef_ * scale == pytest.approx(peer.coef_, rel=1e-5)
    assert model.coef_.shape == (2, 4)


def test_outputs_share_their_support():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20))
    Y = X[:, [3, 11]] @ rng.standard_normal((2, 6))
    model = ShareBoostRegressor(2).fit(X, Y)
    assert set(model.selected_) == {3, 11}
    assert model.predict(X) == pytest.approx(Y, abs=1e-3)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_targets_of_any_size_in_float32(offset, size):
    X, y = make_regression(100, 6, n_informative=3, random_state=0)
    y = offset + size * y / np.abs(y).max()
    model = ShareBoostRegressor(3).fit(X.astype(np.float32), y)
    assert model.score(X, y) > (0.99 if offset == 0 or size >= 1 else -1)
    assert 1 - np.mean((model.predict(X.astype(np.float32)) - y) ** 2) / np.var(y) > (
        0.99 if offset * 1e-6 < size else -1e6
    )


# --- weights


@pytest.mark.parametrize("estimator", [ShareBoostClassifier, ShareBoostRegressor])
def test_integer_weights_equal_repeated_rows(estimator):
    X, y = load_iris(return_X_y=True)
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    options = dict(alpha=1e-4, tol=1e-10)
    weighted = estimator(3, **options).fit(X, y, sample_weight=counts)
    repeated = estimator(3, **options).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    assert np.array_equal(weighted.selected_, repeated.selected_)
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-3)
    rescaled = estimator(3, **options).fit(X, y, sample_weight=1e-30 * counts)
    assert rescaled.coef_ == pytest.approx(weighted.coef_, rel=1e-3)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(150), "zero for every row"),
        (-np.ones(150), "negative"),
        (np.full(150, np.nan), "NaN"),
        (np.ones(149), "one weight per row"),
        (np.ones((150, 2)), "1D array"),
    ],
)
def test_bad_weights(weight, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        ShareBoostClassifier(2).fit(X, y, sample_weight=weight)


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
    plain = ShareBoostClassifier(10, rule="l1", tol=1e-6).fit(X, y)
    twice = ShareBoostClassifier(10, rule="l1", tol=1e-6).fit(np.hstack([X, X]), y)
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
        ({"alpha": "auto"}, TypeError, "alpha"),
        ({"tol": -1.0}, ValueError, "tol"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"swaps": -1}, ValueError, "swaps"),
        ({"rule": "best"}, ValueError, "joint"),
        ({"pool": Columns(groups=[0, 1])}, ValueError, "one label per column"),
        ({"pool": Columns(groups=[0, 1, np.nan, 1])}, ValueError, "missing labels"),
        ({"pool": Columns}, TypeError, "no pool"),
        ({"pool": "columns"}, TypeError, "no pool"),
        ({"loss": MultinomialLogistic}, ValueError, "loss object"),
        ({"loss": MarginSoftmax(margin=np.nan)}, ValueError, "margin"),
        ({"rule": ["l1"]}, ValueError, "joint"),
        ({"fit_intercept": "no"}, TypeError, "True or False"),
    ],
)
def test_bad_parameters(parameters, error, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=message):
        ShareBoostClassifier(**parameters).fit(X, y)


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="only one class"):
        ShareBoostClassifier().fit(np.eye(3), ["a", "a", "a"])


def test_no_convergence_is_said():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(UserWarning, match="Raise max_iter"):
        ShareBoostClassifier(5, max_iter=1, tol=1e-9).fit(X, y)


# --- forms of X


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_equals_dense(digits, form):
    X, y = digits
    dense = ShareBoostClassifier(8, alpha=1e-4, tol=1e-8).fit(X, y)
    sparse = ShareBoostClassifier(8, alpha=1e-4, tol=1e-8).fit(form(X), y)
    assert np.array_equal(sparse.selected_, dense.selected_)
    assert sparse.coef_ == pytest.approx(dense.coef_, abs=1e-4)
    assert np.array_equal(sparse.predict(form(X)), dense.predict(X))
    assert sp.issparse(sparse.transform(form(X)))


def test_sparse_is_never_made_dense():
    rng = np.random.default_rng(0)
    n, d = 2000, 2_000_000  # 32 GB if dense
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
    X = rng.standard_normal((20000, 500), dtype=np.float32)
    y = np.argmax(X[:, :10], axis=1)
    tracemalloc.start()
    try:
        ShareBoostClassifier(40).fit(X, y)
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
        other = ShareBoostClassifier(2, pool=Columns(groups=groups), rule=rule, swaps=1).fit(X, y)
        assert "colour" in set(other.path_["feature"])


# --- offsets


@pytest.mark.parametrize("offset", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("rule", ["l1", "joint", "column", "line"])
def test_a_large_offset_does_not_mislead_the_choice(offset, rule):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6))
    score = X @ [3.0, 2.0, 1.0, 0.0, 0.0, 0.0] + 0.1 * rng.standard_normal(500)
    y = (score > 0).astype(int) + (score > 3)
    model = ShareBoostClassifier(3, alpha=0.0, rule=rule).fit(X + offset, y)
    assert set(model.selected_) == {0, 1, 2}
    assert model.score(X + offset, y) > 0.97
    regressor = ShareBoostRegressor(3, alpha=0.0, rule=rule).fit(X + offset, score)
    assert regressor.score(X + offset, score) > 0.99


def test_a_large_offset_under_a_ridge_is_warned_of():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(LargeOffsetWarning, match="StandardScaler"):
        ShareBoostClassifier(2).fit(X + [0, 0, 1000, 0], y)


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
    ShareBoostRegressor(1, max_iter=1).fit(X, y)


# --- interruption


def test_interrupt_keeps_the_rounds_with_a_warning(digits, monkeypatch):
    X, y = digits
    from mixnorm.engines import greedy

    real, calls = greedy.choose, []

    def choose(*args):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(greedy, "choose", choose)
    model = ShareBoostClassifier(8)
    with pytest.warns(InterruptedFitWarning, match="after 3 of 8 rounds"):
        model.fit(X, y)
    assert len(model.selected_) == 3
    assert model.score(X, y) > 0.3
    monkeypatch.setattr(greedy, "choose", real)
    model.set_params(warm_start=True).fit(X, y)
    assert len(model.selected_) == 8


# --- the paper


@pytest.mark.parametrize("rule", ["l1", "joint"])
def test_features_needed_grow_like_log_k(rule):
    needed = {}
    for k in (16, 32, 64, 128, 256):
        X, y = make_shared_bits(k, 3 * k, random_state=0)
        bits = int(np.log2(k))
        model = ShareBoostClassifier(bits + 4, scale=False, rule=rule, alpha=0.0).fit(X, y)
        right = [np.array_equal(found, y) for found in model.staged_predict(X)]
        needed[k] = right.index(True) + 1
        assert needed[k] <= bits + 1
    assert needed[256] - needed[16] <= 5


@pytest.mark.parametrize(("l1_ratio", "solver"), [(0.0, "lbfgs"), (1.0, "saga")])
@pytest.mark.parametrize("k", [16, 64])
def test_penalties_on_single_weights_use_about_k(k, l1_ratio, solver):
    X, y = make_shared_bits(k, 3 * k, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(l1_ratio=l1_ratio, C=1.0, solver=solver, tol=1e-2, max_iter=500)
        peer.fit(X, y)
    order = np.argsort(-np.abs(peer.coef_).max(axis=0))
    for size in range(1, X.shape[1] + 1):
        kept = order[:size]
        scores = X[:, kept] @ peer.coef_[:, kept].T + peer.intercept_
        if np.array_equal(scores.argmax(axis=1), y):
            break
    assert size >= 0.8 * k


def test_sparse_text_with_many_classes():
    try:
        reuters = load("reuters_r52", download_if_missing=False)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    model = ShareBoostClassifier(20).fit(reuters.X, reuters.y)
    assert model.score(reuters.X_test, reuters.y_test) > 0.7

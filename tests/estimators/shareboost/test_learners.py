"""What the user does with the classifier and the regressor."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.datasets import load, make_shared_bits
from mixnorm.exceptions import (
    DatasetNotFoundError,
)
from mixnorm.losses import MultinomialLogistic
from mixnorm.pools import Pieces, Products, Stumps


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
    options = dict(options__swaps=swaps, alpha=1e-4, options__tol=1e-7)
    model = ShareBoostClassifier(8).set_params(**options).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 8
    for size in (1, 4, 8):
        smaller = model.truncate(size)
        assert np.array_equal(smaller.predict(X), stages[size - 1])
        assert len(smaller.selected_) == size == np.count_nonzero(smaller.get_support())
        assert len(smaller.path_["loss"]) == size
        direct = ShareBoostClassifier(size).set_params(**options).fit(X, y)
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
    options = dict(alpha=1e-4, options__tol=1e-8, options__rule="l1")
    whole = ShareBoostClassifier(8).set_params(**options).fit(X, y)
    grown = ShareBoostClassifier(4, warm_start=True).set_params(**options).fit(X, y)
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


@pytest.mark.parametrize("pool", [Stumps(), Products(), Pieces(20, 5)], ids=lambda pool: str(pool))
def test_warm_start_with_features_made_of_columns(pool):
    X, y = make_regression(80, 6, noise=1.0, random_state=0)
    options = dict(pool=pool, options__rule="l1", alpha=1e-6, random_state=0)
    whole = ShareBoostRegressor(5).set_params(**options).fit(X, y)
    grown = ShareBoostRegressor(2, warm_start=True).set_params(**options).fit(X, y)
    grown.set_params(n_features_to_select=5).fit(X, y)
    assert grown.path_["loss"] == pytest.approx(whole.path_["loss"], rel=1e-4)
    with pytest.raises(ValueError, match="a path of 6 columns, but X has 5"):
        grown.fit(X[:, :5], y)


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


@pytest.mark.parametrize("scale", ["std", "max"])
def test_logistic_loss_on_all_columns_is_logistic_regression(scale):
    X, y = load_iris(return_X_y=True)
    options = dict(loss="logistic", alpha=1e-3, options__scale=scale, options__tol=1e-12)
    model = ShareBoostClassifier(4).set_params(**options).fit(X, y)
    scale = X.std(axis=0) if scale == "std" else np.abs(X).max(axis=0)
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
    with pytest.raises(ValueError, match="not a regression loss"):
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


@pytest.mark.parametrize("scale", ["std", "max"])
def test_regression_ridge_agrees_with_scikit_learn(scale):
    X, Y = make_regression(80, 4, n_targets=2, noise=1.0, random_state=0)
    model = ShareBoostRegressor(4, alpha=0.1, options=GreedyOptions(scale=scale)).fit(X, Y)
    scale = X.std(axis=0) if scale == "std" else np.abs(X).max(axis=0)
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
    X, y = X.astype(np.float32), offset + size * y / np.abs(y).max()
    assert ShareBoostRegressor(3).fit(X, y).score(X, y) > 0.99


# --- weights


@pytest.mark.parametrize("estimator", [ShareBoostClassifier, ShareBoostRegressor])
def test_integer_weights_equal_repeated_rows(estimator):
    X, y = load_iris(return_X_y=True)
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    options = dict(alpha=1e-4, options__tol=1e-10)
    weighted = estimator(3).set_params(**options).fit(X, y, sample_weight=counts)
    repeated = estimator(3).set_params(**options).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    assert np.array_equal(weighted.selected_, repeated.selected_)
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-3)
    rescaled = estimator(3).set_params(**options).fit(X, y, sample_weight=1e-30 * counts)
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


# --- the paper


@pytest.mark.parametrize("rule", ["l1", "joint"])
def test_features_needed_grow_like_log_k(rule):
    needed = {}
    for k in (16, 64, 256):
        X, y = make_shared_bits(k, 3 * k, random_state=0)
        bits = int(np.log2(k))
        model = ShareBoostClassifier(
            bits + 4, alpha=0.0, options=GreedyOptions(scale=False, rule=rule)
        ).fit(X, y)
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

"""Choosing the size by cross-validation."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.callback import ProgressBar
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline

from mixnorm import (
    GreedyOptions,
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
    ShareBoostRegressorCV,
)
from mixnorm.exceptions import FewerFeaturesWarning, InterruptedFitWarning
from mixnorm.pools import Columns


@pytest.fixture(scope="module")
def noisy():
    """Five informative features among forty."""
    return make_classification(
        400, 40, n_informative=5, n_redundant=0, n_classes=3, n_clusters_per_class=1,
        shuffle=False, random_state=0,
    )  # fmt: skip


def test_scores_are_those_of_separate_fits(noisy):
    X, y = noisy
    splitter = StratifiedKFold(3)
    model = ShareBoostClassifierCV(6, cv=splitter).fit(X, y)
    for fold, (train, test) in enumerate(splitter.split(X, y)):
        alone = ShareBoostClassifier(6).fit(X[train], y[train])
        curve = [accuracy_score(y[test], found) for found in alone.staged_predict(X[test])]
        assert model.cv_results_[f"split{fold}_test_score"] == pytest.approx(curve, abs=0.02)


def test_the_final_model_is_a_fit_of_the_chosen_size(noisy):
    X, y = noisy
    model = ShareBoostClassifierCV(12, cv=3).fit(X, y)
    mean = model.cv_results_["mean_test_score"]
    assert model.n_features_to_select_ == 1 + np.argmax(mean)
    assert model.best_score_ == mean.max()
    plain = ShareBoostClassifier(model.n_features_to_select_).fit(X, y)
    assert np.array_equal(model.selected_, plain.selected_)
    assert model.coef_ == pytest.approx(plain.coef_)
    assert len(model.path_["loss"]) == model.n_features_to_select_
    assert len(model.truncate(1).selected_) == 1


def test_one_standard_error_gives_a_smaller_model(noisy):
    X, y = noisy
    best = ShareBoostClassifierCV(20).fit(X, y)
    small = ShareBoostClassifierCV(20, one_standard_error=True).fit(X, y)
    results = small.cv_results_
    chosen, top = small.n_features_to_select_ - 1, best.n_features_to_select_ - 1
    assert chosen <= top
    threshold = results["mean_test_score"][top] - results["standard_error"][top]
    assert results["mean_test_score"][chosen] >= threshold
    assert np.all(results["mean_test_score"][:chosen] < threshold)
    assert set(small.selected_[:3]) <= set(range(5))


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_scoring(noisy, scoring):
    X, y = noisy
    found = ShareBoostClassifierCV(4, cv=3, scoring=scoring).fit(X, y).cv_results_
    folds = [
        [get_scorer(scoring)(fit.truncate(size), X[test], y[test]) for size in (1, 2, 3, 4)]
        for train, test in StratifiedKFold(3).split(X, y)
        for fit in [ShareBoostClassifier(4).fit(X[train], y[train])]
    ]
    assert found["mean_test_score"] == pytest.approx(np.mean(folds, axis=0), rel=1e-9)
    if scoring == "accuracy":
        plain = ShareBoostClassifierCV(4, cv=3).fit(X, y).cv_results_
        assert np.array_equal(plain["mean_test_score"], found["mean_test_score"])


def test_weights_enter_fits_and_scores(noisy):
    """Whole weights count as repeated rows."""
    X, y = noisy
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    rows, parts = np.repeat(np.arange(len(y)), counts), np.arange(len(y)) % 2
    folds, repeated = (
        [(np.flatnonzero(part == k), np.flatnonzero(part != k)) for k in (0, 1)]
        for part in (parts, parts[rows])
    )
    scores = [
        ShareBoostClassifierCV(4, cv=cv).fit(*data, **weights).cv_results_["mean_test_score"]
        for cv, data, weights in (
            (folds, (X, y), {"sample_weight": counts}),
            (repeated, (X[rows], y[rows]), {}),
            (folds, (X, y), {}),
        )
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-12)
    assert np.max(np.abs(scores[0] - scores[2])) > 0.01


def test_a_class_without_weight_is_never_predicted(noisy):
    X, y = noisy
    model = ShareBoostClassifierCV(4, cv=2).fit(X, y, sample_weight=(y != 0) * 1.0)
    assert 0 not in set(model.predict(X))


def test_groups_of_rows_stay_together(noisy):
    X, y = noisy
    groups = np.arange(len(y)) // 10
    model = ShareBoostClassifierCV(3, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert "split3_test_score" in model.cv_results_


@pytest.mark.usefixtures("copied_jobs")
def test_regression_with_many_outputs_and_jobs():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, -y + 10 * X[:, 0]])
    one = ShareBoostRegressorCV(6, cv=3).fit(X, Y)
    two = ShareBoostRegressorCV(6, cv=3, n_jobs=2).fit(X, Y)
    assert one.best_score_ == pytest.approx(two.best_score_)
    assert one.best_score_ > 0.4
    plain = ShareBoostRegressor(one.n_features_to_select_).fit(X, Y)
    assert one.coef_ == pytest.approx(plain.coef_)


def test_a_class_with_one_example():
    X, y = load_iris(return_X_y=True)
    rare = np.where(np.arange(150) == 149, 3, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn says it cannot stratify
        model = ShareBoostClassifierCV(3, cv=3).fit(X, rare)
    assert list(model.classes_) == [0, 1, 2, 3]


def test_more_features_than_there_are():
    X, y = load_iris(return_X_y=True)
    model = ShareBoostClassifierCV(10, cv=3).fit(X, y)
    assert list(model.cv_results_["n_features"]) == [1, 2, 3, 4]


def test_nothing_to_choose_is_an_error():
    with pytest.raises(ValueError, match="No feature lowers the loss"):
        ShareBoostClassifierCV(2, cv=2).fit(np.ones((8, 2)), [0, 1] * 4)


def test_interrupt_in_the_first_fold_keeps_the_sizes_done(digits, interrupt_at):
    interrupt_at(3)
    model = ShareBoostClassifierCV(4, cv=2)
    with pytest.warns(InterruptedFitWarning, match="during the search over 2 folds"):
        model.fit(*digits)
    assert model.cv_results_["n_features"].tolist() == [1, 2]
    assert model.n_splits_ == 1
    assert model.n_features_to_select_ == 1 + np.argmax(model.cv_results_["mean_test_score"])


@pytest.mark.parametrize("alphas", [None, [1e-3, 1e-1]])
def test_interrupt_in_a_later_fold_drops_it(digits, interrupt_at, alphas):
    whole = ShareBoostClassifierCV(4, alphas=alphas, cv=3).fit(*digits)
    interrupt_at(7 if alphas is None else 11)
    model = ShareBoostClassifierCV(4, alphas=alphas, cv=3)
    with pytest.warns(InterruptedFitWarning, match="Interrupted during the search"):
        model.fit(*digits)
    assert model.n_splits_ == 1
    for key in ("n_features", "alpha", "split0_test_score"):
        np.testing.assert_array_equal(model.cv_results_[key], whole.cv_results_[key])


def test_interrupt_before_the_first_feature_is_an_interrupt(digits, interrupt_at):
    calls = interrupt_at(1)
    with pytest.raises(KeyboardInterrupt):
        ShareBoostClassifierCV(4, cv=2).fit(*digits)
    assert len(calls) == 1


def test_interrupt_in_the_final_fit_keeps_its_rounds(digits, interrupt_at):
    interrupt_at(11)
    model = ShareBoostClassifierCV(4, cv=2)
    with pytest.warns(InterruptedFitWarning, match="after 2 of 4"):
        model.fit(*digits)
    assert len(model.selected_) == 2


def test_folds_warn_of_nothing_that_the_final_fit_does_not():
    """A column varies in one fold alone, so that the fit without this fold has too few features."""
    X, y = load_iris(return_X_y=True)
    part = np.arange(150) % 3
    X = np.column_stack([X, (part == 0) * X[:, 0]])
    folds = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
    with pytest.warns(FewerFeaturesWarning):
        ShareBoostClassifier(5).fit(X, y, sample_weight=(part != 0) * 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ShareBoostClassifierCV(5, cv=folds).fit(X, y)


def test_truncating_keeps_the_largest_size_to_try():
    X, y = load_iris(return_X_y=True)
    model = ShareBoostClassifierCV(4, cv=3, scoring="neg_log_loss").fit(X, y)
    smaller = model.truncate(1)
    assert (smaller.n_features_to_select, smaller.n_features_to_select_) == (4, 1)
    assert model.n_features_to_select_ >= 1


@pytest.mark.parametrize(
    ("options", "weight", "message"),
    [({"cv": []}, None, "no folds"), ({}, np.ones(10), "one weight per row")],
)
def test_mistakes(options, weight, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        ShareBoostClassifierCV(2, **options).fit(X, y, sample_weight=weight)


def test_one_weight_for_all_rows():
    X, y = load_iris(return_X_y=True)
    one = ShareBoostClassifierCV(2, cv=2, alpha=1e-3).fit(X, y, sample_weight=2.0)
    other = ShareBoostClassifierCV(2, cv=2, alpha=1e-3).fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    assert one.best_score_ == other.best_score_
    uneven = ShareBoostClassifierCV(2, cv=2, alpha=1e-3).fit(X, y, sample_weight=1.0 + y)
    assert not np.allclose(uneven.coef_, other.coef_, rtol=1e-3)


def test_a_fold_without_weight_to_learn_from():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    weight = np.zeros(60)
    weight[:10] = 1.0
    folds = [(np.arange(10, 60), np.arange(10))]
    with pytest.raises(ValueError, match="In a fold of cv, sample_weight is zero"):
        ShareBoostRegressorCV(cv=folds).fit(X, X[:, 0], sample_weight=weight)


@pytest.mark.parametrize("scoring", ["roc_auc_ovr", "neg_log_loss"])
def test_a_scorer_gives_what_a_grid_search_gives(noisy, scoring):
    # All sizes but the last of a path are solved to twenty times the tolerance.
    X, y = noisy
    splits = list(StratifiedKFold(3).split(X, y))
    fit = {"alpha": 1e-2, "options": GreedyOptions(tol=1e-9)}
    own = ShareBoostClassifierCV(4, cv=splits, scoring=scoring, **fit).fit(X, y)
    grid = GridSearchCV(
        ShareBoostClassifier(**fit),
        {"n_features_to_select": [1, 2, 3, 4]},
        cv=splits,
        scoring=scoring,
    ).fit(X, y)
    for key in ("mean_test_score", "split2_test_score"):
        np.testing.assert_allclose(own.cv_results_[key], grid.cv_results_[key], atol=1e-5)
    assert own.best_params_["n_features_to_select"] == grid.best_params_["n_features_to_select"]


def test_a_regression_with_a_scorer_gives_what_a_grid_search_gives():
    X, y = load_diabetes(return_X_y=True)
    scoring, splits = "neg_mean_squared_error", list(KFold(3).split(X))
    own = ShareBoostRegressorCV(5, alpha=1e-2, cv=splits, scoring=scoring).fit(X, y)
    sizes = {"n_features_to_select": [1, 2, 3, 4, 5]}
    grid = GridSearchCV(ShareBoostRegressor(alpha=1e-2), sizes, cv=splits, scoring=scoring)
    grid.fit(X, y)
    for key in ("mean_test_score", "split2_test_score"):
        np.testing.assert_allclose(own.cv_results_[key], grid.cv_results_[key], rtol=1e-8)


def test_a_scorer_sees_smaller_estimators():
    X, y = load_iris(return_X_y=True, as_frame=True)
    seen = []

    def score(model, X, y):
        seen.append((len(model.selected_), model.n_features_to_select, model.alpha))
        return model.score(X, y)

    ShareBoostClassifierCV(2, alphas=[1e-3, "auto"], cv=2, scoring=score).fit(X, y)
    assert seen == [(m, m, alpha) for alpha in (1e-3, "auto") for m in (1, 2)] * 2


def test_weights_are_routed_to_the_scorer():
    X, y = load_iris(return_X_y=True)
    weight = 1.0 + y
    scoring = {"cv": 3, "scoring": "accuracy"}
    direct = ShareBoostClassifierCV(2, **scoring).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
        search = ShareBoostClassifierCV(2, cv=3, scoring=scorer)
        pipeline = make_pipeline("passthrough", search.set_fit_request(sample_weight=True))
        pipeline.fit(X, y, sample_weight=weight)
    found = pipeline[-1].cv_results_["mean_test_score"]
    np.testing.assert_array_equal(found, direct.cv_results_["mean_test_score"])


def test_a_fold_without_a_feature_does_not_count():
    rng = np.random.default_rng(0)
    X = np.zeros((30, 2))
    X[:20] = rng.standard_normal((20, 2))
    folds = [(np.arange(20, 30), np.arange(10)), (np.arange(10, 30), np.arange(10))]
    model = ShareBoostRegressorCV(2, cv=folds).fit(X, X[:, 0])
    results = model.cv_results_
    assert np.all(np.isnan(results["split0_test_score"]))
    np.testing.assert_array_equal(results["mean_test_score"], results["split1_test_score"])


def test_a_budget_alone_limits_the_sizes(capsys):
    X, y = load_iris(return_X_y=True)
    pool = Columns(costs=np.ones(4))
    model = ShareBoostClassifierCV(cost_budget=3.0, alphas=[1e-3, 1e-1], pool=pool, cv=3)
    model.set_callbacks(ProgressBar()).fit(X, y)
    assert model.cv_results_["n_features"].tolist() == [1, 2, 3] * 2
    assert "ShareBoostClassifierCV" in capsys.readouterr().out


def test_rows_left_out_one_at_a_time_are_scored_together():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:30], y[:30]
    model = ShareBoostRegressorCV(2, alpha=1e-2, cv=LeaveOneOut()).fit(X, y)
    plain = ShareBoostRegressor(1, alpha=1e-2)
    wanted = r2_score(y, cross_val_predict(plain, X, y, cv=LeaveOneOut()))
    assert model.n_splits_ == 1
    assert model.cv_results_["mean_test_score"][0] == pytest.approx(wanted)


# --- penalties searched together with the size


def few_rows(n=120, d=30, seed=0):
    """Few rows, many columns of noise: a large penalty is better."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + X[:, 1] + 2.0 * rng.standard_normal(n) > 0).astype(int)


def test_every_penalty_has_the_scores_of_its_own_search():
    X, y = few_rows()
    alphas = [1e-6, 1e-1, "auto"]
    search = ShareBoostClassifierCV(6, alphas=alphas, cv=3).fit(X, y)
    results = search.cv_results_
    assert results["n_features"].tolist() == [1, 2, 3, 4, 5, 6] * 3
    assert results["alpha"].tolist() == [1e-6] * 6 + [0.1] * 6 + ["auto"] * 6
    for place, alpha in enumerate(alphas):
        alone = ShareBoostClassifierCV(6, alpha=alpha, cv=3).fit(X, y).cv_results_
        for key in ("mean_test_score", "standard_error", "split1_test_score"):
            np.testing.assert_allclose(results[key][6 * place : 6 * place + 6], alone[key])


def test_the_best_penalty_and_size_are_refitted():
    X, y = few_rows()
    search = ShareBoostClassifierCV(10, alphas=[1e-6, 1e-1], cv=3).fit(X, y)
    best = search.best_params_
    place = np.argmax(search.cv_results_["mean_test_score"])
    assert best["alpha"] == search.cv_results_["alpha"][place]
    assert best["n_features_to_select"] == search.cv_results_["n_features"][place]
    assert search.best_score_ == search.cv_results_["mean_test_score"][place]
    assert search.n_features_to_select_ == len(search.selected_) == len(search.alpha_)
    np.testing.assert_array_equal(search.alpha_, best["alpha"])
    direct = ShareBoostClassifier(**best).fit(X, y)
    np.testing.assert_allclose(search.coef_, direct.coef_)


def test_one_standard_error_keeps_the_best_penalty():
    X, y = few_rows(seed=1)
    options = {"alphas": [1e-6, 1e-2, 1e-1], "cv": 5}
    best = ShareBoostClassifierCV(10, **options).fit(X, y)
    small = ShareBoostClassifierCV(10, one_standard_error=True, **options).fit(X, y)
    assert small.best_params_["alpha"] == best.best_params_["alpha"]
    own = best.cv_results_["alpha"] == best.best_params_["alpha"]
    means, errors = (best.cv_results_[key] for key in ("mean_test_score", "standard_error"))
    near = means[own] >= means[best.best_index_] - errors[best.best_index_]
    assert small.n_features_to_select_ == 1 + np.argmax(near) <= best.n_features_to_select_


@pytest.mark.parametrize(
    ("alphas", "error", "message"),
    [
        ([], ValueError, "alphas is empty"),
        ([1e-3, -1.0], ValueError, "-1.0, an entry of alphas, must be at least 0"),
        (["best"], ValueError, "'best', an entry of alphas, must be a number or 'auto'"),
        ([None], TypeError, "must be a list of numbers to try, got None"),
        (len, TypeError, "must be a list"),
    ],
)
def test_wrong_penalties(alphas, error, message):
    X, y = few_rows()
    with pytest.raises(error, match=message):
        ShareBoostClassifierCV(3, alphas=alphas).fit(X, y)


@pytest.mark.parametrize("kind", [ShareBoostClassifierCV, ShareBoostRegressorCV])
@pytest.mark.parametrize("scoring", [None, "by name"])
def test_weights_count_in_scores(kind, scoring):
    """Held-out scores are weighted, as those of a fit by hand are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = X[:, 0] + rng.normal(size=120)
    weight = np.where(y > 0.0, 5.0, rng.uniform(0.1, 1.0, size=120))
    if kind is ShareBoostClassifierCV:
        y = np.digitize(y, [-1, 1])
        plain, score, name = ShareBoostClassifier, accuracy_score, "accuracy"
    else:
        plain, score, name = ShareBoostRegressor, r2_score, "r2"
    train, test = np.arange(60), np.arange(60, 120)
    model = kind(2, alpha=1e-3, cv=[(train, test)], scoring=None if scoring is None else name)
    model.fit(X, y, sample_weight=weight)
    own = plain(2, alpha=1e-3).fit(X[train], y[train], sample_weight=weight[train])
    staged = list(own.staged_predict(X[test]))
    wanted = [score(y[test], found, sample_weight=weight[test]) for found in staged]
    np.testing.assert_allclose(model.cv_results_["split0_test_score"], wanted, atol=1e-9)
    even = [score(y[test], found) for found in staged]
    assert not np.allclose(wanted, even, atol=0.01)

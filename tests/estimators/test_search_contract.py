"""What every estimator that searches by cross-validation must do, whatever its family."""

import functools
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm import estimators
from mixnorm.exceptions import MixnormWarning

SEARCHES = sorted(name for name in estimators.__all__ if name.endswith("CV"))
# Small grids, by the name of the parameter.
SMALL = {
    "n_features_to_select": 3,
    "Cs": [1.0, 10.0],
    "ps": [1.2],
    "tails": [2],
    "betas": [1e-2],
    "gammas": [1.0, 10.0],
    "n_kernels": 2,
}


def small(name, **options):
    kind = getattr(mixnorm, name)
    known = kind().get_params(deep=False)
    given = {parameter: value for parameter, value in SMALL.items() if parameter in known}
    if "alphas" in known:
        given["alphas"] = [0.1, 0.01]
    return kind(**given | {"cv": KFold(3, shuffle=True, random_state=0)} | options)


@functools.cache
def fitted_with_groups(name):
    """Return a small search whose folds keep groups together; tests must not change it."""
    model = small(name, cv=GroupKFold(3))
    X, y = data_of(model)
    return model.fit(X, y, groups=np.arange(len(y)) % 6)


@functools.cache
def fitted(name):
    """Return a small search after its fit, which several tests look at; they must not change it."""
    model = small(name)
    return model.fit(*data_of(model))


def data_of(model):
    if is_classifier(model):
        X, y = load_iris(return_X_y=True)
        return StandardScaler().fit_transform(X[::2]), y[::2]
    X, y = load_diabetes(return_X_y=True)
    return X[:80] / X[:80].std(axis=0), y[:80] / y[:80].std()


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():  # small fits may not converge
        warnings.simplefilter("ignore", MixnormWarning)
        yield


@pytest.mark.parametrize("name", SEARCHES)
def test_results_have_the_keys_of_scikit_learn(name):
    model = fitted(name)
    results = model.cv_results_
    assert model.n_splits_ == 3
    assert {"params", "mean_test_score", "std_test_score", "rank_test_score"} <= set(results)
    assert len({len(column) for column in results.values()}) == 1
    folds = np.stack([results[f"split{fold}_test_score"] for fold in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], folds.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], folds.std(axis=0), atol=1e-12)
    assert results["params"][model.best_index_] == model.best_params_
    assert results["mean_test_score"][model.best_index_] == model.best_score_
    for row, params in enumerate(results["params"]):
        for parameter, value in params.items():
            assert results[f"param_{parameter}"][row] == value
    if not model.one_standard_error:
        assert results["rank_test_score"][model.best_index_] == 1


@pytest.mark.parametrize("name", SEARCHES)
def test_any_scorer_of_scikit_learn_may_choose(name):
    model = small(name)
    scoring = "balanced_accuracy" if is_classifier(model) else "neg_mean_squared_error"
    X, y = data_of(model)
    scored = model.set_params(scoring=scoring).fit(X, y).cv_results_["mean_test_score"]
    plain = fitted(name).cv_results_["mean_test_score"]
    if is_classifier(model):  # folds of iris are nearly balanced
        np.testing.assert_allclose(scored, plain, atol=0.1)
    else:  # targets have variance one
        assert np.all(scored < 0.0)
        if name != "MultiTaskLearnerCV":
            assert np.argmax(scored) == np.argmax(plain)


@pytest.mark.usefixtures("copied_jobs")
@pytest.mark.parametrize("name", SEARCHES)
def test_workers_find_the_same(name):
    model = small(name, n_jobs=2)
    one = fitted(name).cv_results_["mean_test_score"]
    two = model.fit(*data_of(model)).cv_results_["mean_test_score"]
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SEARCHES)
def test_groups_stay_together(name):
    model = fitted_with_groups(name)
    X, y = data_of(model)
    groups = np.arange(len(y)) % 6
    given = model.cv_results_["split1_test_score"]
    tests = [test for _, test in GroupKFold(3).split(X, y, groups)]
    of_fold = np.zeros(len(y), dtype=int)
    for fold, test in enumerate(tests):
        of_fold[test] = fold
    same = small(name, cv=PredefinedSplit(of_fold)).fit(X, y)
    np.testing.assert_allclose(given, same.cv_results_["split1_test_score"])


@pytest.mark.parametrize("name", SEARCHES)
def test_groups_are_routed_through_a_pipeline(name):
    model = fitted_with_groups(name)
    X, y = data_of(model)
    groups = np.arange(len(y)) % 6
    direct = model.cv_results_["mean_test_score"]
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline("passthrough", small(name, cv=GroupKFold(3)))
        pipeline.fit(X, y, groups=groups)
    np.testing.assert_allclose(pipeline[-1].cv_results_["mean_test_score"], direct)


@pytest.mark.parametrize("name", SEARCHES)
def test_metadata_that_nobody_takes_is_an_error(name):
    model = small(name)
    with pytest.raises(TypeError, match="fit does not take price"):
        model.fit(*data_of(model), price=1.0)


@pytest.mark.parametrize("name", SEARCHES)
def test_one_standard_error_takes_the_first_of_the_chain_within_it(name):
    model = small(name, one_standard_error=True)
    model.fit(*data_of(model))
    found, results = model.search_, model.cv_results_
    mean, error = results["mean_test_score"], results["standard_error"]
    best = int(np.argmax(mean))
    near = (mean >= mean[best] - error[best]) & (found.chains == found.chains[best])
    assert model.best_index_ == int(np.argmax(near))

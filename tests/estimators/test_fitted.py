"""Fitted attributes that every estimator has, under the same names and with the same meaning."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from mixnorm import (
    JointBoostClassifier,
    LinearMulticlassSVC,
    MixedNormRegressor,
    OneVsRestGreedy,
    OnlineMultiTaskLearner,
    ShareBoostClassifier,
    ShareBoostRegressor,
    estimators,
    load,
    save,
)
from mixnorm.exceptions import MixnormWarning
from mixnorm.pools import Columns, Pieces, Products, Stumps, Union

SHORT = {"n_features_to_select": 3, "n_rounds": 5, "n_kernels": 2, "max_iter": 200, "cv": 3}
SHORT |= {"alphas": [0.01], "Cs": [1.0], "ps": [1.2], "betas": [1e-2], "tails": [2]}
SHORT |= {"gammas": [1.0]}
KINDS = [
    kind
    for kind in (getattr(estimators, name) for name in estimators.__all__)
    if hasattr(kind, "fit")
]
SELECTORS = [kind for kind in KINDS if hasattr(kind, "get_support")]
# What a model has in place of weights.
OWN_WEIGHTS = {JointBoostClassifier: "rounds_"}
# Attributes that several families have, each of which a docstring has to name.
SHARED_ATTRIBUTES = [
    "classes_", "n_features_in_", "feature_names_in_", "n_iter_", "coef_", "dual_coef_",
    "intercept_", "selected_", "selected_names_", "support_", "feature_importances_", "objective_",
    "dual_gap_", "cost_", "path_", "null_loss_", "tasks_", "best_params_", "best_score_",
    "best_index_", "n_splits_", "cv_results_",
]  # fmt: skip
MULTI_TASK = {"MultiTaskLearner", "MultiTaskLearnerCV"}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():  # short fits do not converge
        warnings.simplefilter("ignore", MixnormWarning)
        yield


def data_of(kind):
    if is_classifier(kind()):
        X, y = load_iris(return_X_y=True, as_frame=True)
        return X[::2], y[::2]
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = 20.0 * X[:75], y[:75] / 10.0
    return X, y.to_frame() if kind is OnlineMultiTaskLearner else y


def fit(kind, **options):
    known = kind().get_params(deep=False)
    given = {name: SHORT[name] for name in SHORT if name in known}
    X, y = data_of(kind)
    return kind(**given | options).fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield {kind: fit(kind) for kind in KINDS}


# --- all estimators


@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_has_the_same_attributes(kind, fitted):
    model = fitted[kind]
    X, y = data_of(kind)
    assert model.n_features_in_ == X.shape[1]
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert type(model.n_iter_) is int
    assert model.n_iter_ >= 1
    weights = {"coef_", "dual_coef_", OWN_WEIGHTS.get(kind)}
    assert any(getattr(model, name, None) is not None for name in weights - {None})
    if is_classifier(model):
        np.testing.assert_array_equal(model.classes_, np.unique(y))


@pytest.mark.parametrize("kind", KINDS)
def test_no_attribute_before_the_fit(kind):
    for name in ("n_features_in_", "n_iter_", "coef_", "dual_coef_", "classes_", "selected_"):
        with pytest.raises((AttributeError, NotFittedError)):
            getattr(kind(), name)


def attributes_of(kind):
    """Return the names of the fitted attributes that a class computes."""
    return [name for name in dir(kind) if re.fullmatch(r"[a-z]\w*_", name)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_is_there_or_is_absent(kind, fitted):
    """``hasattr`` sees no error but that of an attribute that this kind of model lacks."""
    present = [name for name in attributes_of(kind) if hasattr(fitted[kind], name)]
    assert "n_iter_" in present


@pytest.mark.parametrize("kind", KINDS)
def test_documented_attributes_are_those_of_the_model(kind, fitted):
    text = inspect.getdoc(kind).split("\nAttributes\n")[1].split("\nExamples\n")[0]
    shared = {name for name in SHARED_ATTRIBUTES if hasattr(fitted[kind], name)}
    assert not [name for name in shared if not re.search(rf"(?<!\w){name}(?!\w)", text)]


def test_classes_of_online_tasks_are_as_given():
    X, y = np.eye(4), np.array([[0.5, 0.0], [1.5, 1.0], [2.5, np.nan], [3.5, 1.0]])
    model = OnlineMultiTaskLearner(losses=["squared", "logistic"]).fit(X, y)
    assert model.classes_[0] is None
    assert model.classes_[1].tolist() == [0.0, 1.0]
    with pytest.raises(NotFittedError):
        OnlineMultiTaskLearner().classes_  # noqa: B018


def test_cost_of_a_linear_machine_is_a_product_with_its_weights():
    X, y = load_iris(return_X_y=True)
    model = LinearMulticlassSVC().fit(X, y)
    assert model.cost_.multiply_adds == model.coef_.size


def test_iterations_of_online_learners_are_passes():
    X, y = data_of(estimators.MirrorDescentClassifier)
    model = estimators.MirrorDescentClassifier().partial_fit(X, y).partial_fit(X, y)
    assert (model.n_iter_, model.n_rounds_) == (1, 2 * len(y))


# --- selectors


def test_selectors_are_here():
    assert {ShareBoostClassifier, OneVsRestGreedy, MixedNormRegressor} <= set(SELECTORS)
    assert len(SELECTORS) >= 10


def check_selector(model, names):
    chosen, n_features = np.asarray(model.selected_), len(names)
    assert model.selected_names_ == [names[column] for column in chosen]
    np.testing.assert_array_equal(model.support_, np.sort(chosen))
    np.testing.assert_array_equal(model.support_, model.get_support(indices=True))
    found = model.feature_importances_
    assert found.shape == (n_features,)
    assert np.all(found >= 0.0)
    assert np.sum(found) == pytest.approx(1.0)
    assert not np.any(np.delete(found, chosen))


@pytest.mark.parametrize("kind", SELECTORS)
def test_selectors_name_and_weigh_what_they_chose(kind, fitted, tmp_path):
    model, names = fitted[kind], data_of(kind)[0].columns.tolist()
    check_selector(model, names)
    save(model, tmp_path / "model.mixnorm")
    again = load(tmp_path / "model.mixnorm")
    check_selector(again, names)
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    if hasattr(model, "truncate"):
        smaller = model.truncate(1)
        check_selector(smaller, names)
        assert len(smaller.support_) <= len(model.support_)


@pytest.mark.parametrize("kind", SELECTORS)
def test_names_of_columns_without_names(kind):
    X, y = data_of(kind)
    known = kind().get_params(deep=False)
    model = kind(**{name: SHORT[name] for name in SHORT if name in known})
    model.fit(X.to_numpy(), np.asarray(y))
    check_selector(model, [f"x{column}" for column in range(X.shape[1])])


@pytest.mark.parametrize("kind", [kind for kind in SELECTORS if kind is not JointBoostClassifier])
def test_importances_of_linear_models_are_norms_of_weights(kind, fitted):
    model = fitted[kind]
    norms = np.linalg.norm(np.atleast_2d(model.coef_), axis=0)
    np.testing.assert_allclose(model.feature_importances_, norms / norms.sum(), rtol=1e-6)


def test_importances_of_joint_boosting_are_drops_of_the_loss(fitted):
    model = fitted[JointBoostClassifier]
    drops, last = np.zeros(4), model.null_loss_
    for step in model.rounds_:
        drops[step.feature] += last - step.loss
        last = step.loss
    np.testing.assert_allclose(model.feature_importances_, drops / drops.sum())


def test_atoms_share_their_importance_among_the_columns_they_read():
    model = fit(ShareBoostClassifier, pool=Products(), n_features_to_select=4)
    shares = np.zeros(4)
    for atom, weights in zip(model.model_.support, model.coef_.T, strict=True):
        for column in set(atom):
            shares[column] += np.linalg.norm(weights) / len(set(atom))
    assert any(len(set(atom)) == 2 for atom in model.model_.support)
    np.testing.assert_allclose(model.feature_importances_, shares / shares.sum())


@pytest.mark.parametrize(
    "pool",
    [
        Columns(groups=["a", "a", "b", "b"]),
        Stumps(max_bins=4),
        Pieces(n_centers=4, n_radii=3),
        Union([Columns(), Stumps(max_bins=4)]),
    ],
    ids=lambda pool: type(pool).__name__,
)
@pytest.mark.parametrize("kind", [ShareBoostClassifier, OneVsRestGreedy])
def test_importances_with_pools(kind, pool):
    X, y = data_of(kind)
    model = kind(2, pool=pool, random_state=0).fit(X, y)
    check_selector(model, X.columns.tolist())


def test_importances_of_huge_weights():
    X, y = data_of(ShareBoostRegressor)
    small = X * np.logspace(-200.0, 100.0, X.shape[1])
    for pool in (None, Stumps(max_bins=4)):
        model = ShareBoostRegressor(3, pool=pool).fit(small, np.stack([y, -y], axis=1) * 1e100)
        check_selector(model, X.columns.tolist())


def test_a_model_of_no_column_has_no_importance():
    model = fit(MixedNormRegressor, alpha=1e4)
    assert model.selected_names_ == []
    np.testing.assert_array_equal(model.feature_importances_, np.zeros(10))


def test_names_that_are_chosen_are_those_of_the_frame():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ShareBoostClassifier(2).fit(pd.DataFrame(X), y)
    assert sorted(model.selected_names_) == sorted(model.get_feature_names_out())

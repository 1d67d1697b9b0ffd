"""Class weights multiply the sample weights in training, for every classifier."""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_iris
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from mixnorm import GroupPerceptron, MirrorDescentClassifier, ShareBoostClassifier, estimators
from mixnorm.exceptions import MixnormWarning
from mixnorm.kernels import gaussian_bank

# One candidate for every search, so that scores, which have no class weights, decide nothing.
SHORT = {"n_features_to_select": 1, "n_rounds": 5, "n_kernels": 1, "max_iter": 50, "cv": 3}
SHORT |= {"alphas": [0.01], "Cs": [1.0], "ps": [1.2], "betas": [1e-2], "tails": [2]}
SHORT |= {
    "gammas": [1.0],
    "standardize": False,
    "shuffle": False,
    "bank": gaussian_bank([0.1, 1.0]),
}
KINDS = [getattr(estimators, name) for name in estimators.__all__]
CLASSIFIERS = [kind for kind in KINDS if hasattr(kind, "fit") and is_classifier(kind())]
SEARCHES = [kind for kind in CLASSIFIERS if "cv" in kind().get_params()]
ONLINE = [GroupPerceptron, MirrorDescentClassifier]
WEIGHTS = {"setosa": 3.0, "virginica": 0.5}
each_classifier = pytest.mark.parametrize("kind", CLASSIFIERS)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():  # short fits do not converge
        warnings.simplefilter("ignore", MixnormWarning)
        yield


def short(kind, **options):
    known = kind().get_params(deep=False)
    return kind(**{name: SHORT[name] for name in SHORT if name in known} | options)


@pytest.fixture(scope="module")
def irises():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:20, 50:80, 100:145]
    mixed = np.random.default_rng(0).permutation(rows)
    return X[mixed] - X.mean(axis=0), load_iris().target_names[y[mixed]]


def weigh(y, weights=WEIGHTS):
    return np.array([weights.get(label, 1.0) for label in y])


@each_classifier
def test_class_weights_are_sample_weights(kind, irises):
    X, y = irises
    plain = short(kind).fit(X, y).decision_function(X)
    for given in (WEIGHTS, "balanced"):
        weight = weigh(y) if given is WEIGHTS else compute_sample_weight(given, y)
        found = short(kind, class_weight=given).fit(X, y).decision_function(X)
        again = short(kind).fit(X, y, sample_weight=weight).decision_function(X)
        np.testing.assert_array_equal(found, again)
        assert np.any(found != plain)


@each_classifier
def test_balanced_weights_count_rows_by_their_weights(kind, irises):
    X, y = irises
    weight = np.random.default_rng(0).integers(0, 4, size=len(y)).astype(float)
    known = np.unique(y)
    balanced = compute_class_weight("balanced", classes=known, y=np.repeat(y, weight.astype(int)))
    found = short(kind, class_weight="balanced").fit(X, y, sample_weight=weight)
    both = weight * weigh(y, dict(zip(known, balanced, strict=True)))
    again = short(kind).fit(X, y, sample_weight=both)
    np.testing.assert_allclose(found.decision_function(X), again.decision_function(X), atol=1e-3)


def sum_of_scores(estimator, X, y):
    return float(np.sum(np.abs(estimator.decision_function(X))))


@pytest.mark.parametrize("kind", SEARCHES)
def test_balanced_weights_in_a_search_are_those_of_the_fold(kind, irises):
    X, y = irises
    rows = np.arange(len(y))
    out = (y == "virginica") & (rows % 2 == 0) | (rows % 5 == 0)
    options = {"cv": [(rows[~out], rows[out])], "scoring": sum_of_scores}
    known = np.unique(y)
    own, whole = (
        dict(zip(known, compute_class_weight("balanced", classes=known, y=part), strict=True))
        for part in (y[~out], y)
    )
    score = {}
    for name, given in {"balanced": "balanced", "own": own, "whole": whole}.items():
        score[name] = short(kind, class_weight=given, **options).fit(X, y).best_score_
    assert score["balanced"] == pytest.approx(score["own"], rel=1e-9)
    assert score["balanced"] != pytest.approx(score["whole"], rel=1e-6)


@pytest.mark.parametrize("kind", SEARCHES)
def test_held_out_rows_count_by_sample_weights_alone(kind, irises):
    X, y = irises
    rows = np.arange(len(y))
    options = {"cv": [(rows, rows)], "n_jobs": 1}
    model = short(kind, class_weight=WEIGHTS, **options).fit(X, y)
    assert model.best_score_ == pytest.approx(model.score(X, y))


@each_classifier
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("even", "^class_weight='even' must be None, 'balanced', or a dict"),
        (2.0, "^class_weight=2.0 must be None, 'balanced', or a dict"),
        ({"setosa": -1.0}, "^class_weight has -1.0 for 'setosa'"),
        ({"rose": 2.0}, "^class_weight={'rose': 2.0}.*Its keys are labels of y"),
    ],
)
def test_bad_class_weights(kind, given, told, irises):
    with pytest.raises((TypeError, ValueError), match=told):
        short(kind, class_weight=given).fit(*irises)


@pytest.mark.parametrize("kind", ONLINE)
def test_class_weights_of_a_stream(kind, irises):
    X, y = irises
    weights = {**WEIGHTS, "rose": 2.0}  # a class that may come later
    model, plain = kind(class_weight=weights), kind()
    for start in range(0, len(y), 10):
        part = slice(start, start + 10)
        model.partial_fit(X[part], y[part])
        plain.partial_fit(X[part], y[part], sample_weight=weigh(y[part]))
    np.testing.assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("kind", ONLINE)
def test_one_row_counts_by_its_class(kind, irises):
    X, y = irises
    single, plain = kind(class_weight=WEIGHTS), kind()
    for row, label in zip(X, y, strict=True):
        single.learn_one(row, label)
        plain.partial_fit(row[None], [label], sample_weight=weigh([label]))
    np.testing.assert_array_equal(single.coef_, plain.coef_)


@pytest.mark.parametrize("kind", ONLINE)
def test_streams_have_no_balanced_weights(kind, irises):
    X, y = irises
    model = kind(class_weight="balanced")
    for learn in (lambda: model.partial_fit(X, y), lambda: model.learn_one(X[0], y[0])):
        with pytest.raises(ValueError, match="^class_weight='balanced' needs all samples"):
            learn()
    model.fit(X, y)
    for learn in (lambda: model.partial_fit(X, y), lambda: model.learn_one(X[0], y[0])):
        with pytest.raises(ValueError, match="^class_weight='balanced' needs all samples"):
            learn()


def test_a_path_with_other_class_weights_is_not_continued(irises):
    model = ShareBoostClassifier(1, warm_start=True).fit(*irises)
    with pytest.raises(ValueError, match="class_weight, .* has changed since"):
        model.set_params(class_weight="balanced", n_features_to_select=2).fit(*irises)


class Weights:
    """A callback that keeps the sample weights with which scores are computed."""

    def __init__(self):
        self.met = []

    def setup(self, estimator, context):
        """Do nothing."""

    def teardown(self, estimator, context):
        """Do nothing."""

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context, *, metadata):
        self.met.append(metadata["sample_weight"])


@pytest.mark.parametrize("kind", [kind for kind in CLASSIFIERS if hasattr(kind, "set_callbacks")])
def test_callbacks_get_the_sample_weights_alone(kind, irises):
    X, y = irises
    callback, weight = Weights(), np.full(len(y), 2.0)
    short(kind, class_weight=WEIGHTS).set_callbacks(callback).fit(X, y, sample_weight=weight)
    assert callback.met
    assert all(given is weight for given in callback.met)

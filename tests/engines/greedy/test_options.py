"""Options of the greedy engine: an object to clone, to search over, to store and to check."""

import dataclasses
import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

import mixnorm
from mixnorm import (
    GreedyOptions,
    OneVsRestGreedy,
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
    ShareBoostRegressorCV,
)
from mixnorm.engines import greedy
from mixnorm.engines.penalties import SmoothMaxNorm
from mixnorm.estimators.shareboost.parameters import OPTION_KINDS

SHAREBOOST = [
    ShareBoostClassifier,
    ShareBoostRegressor,
    ShareBoostClassifierCV,
    ShareBoostRegressorCV,
]
NAMES = [field.name for field in dataclasses.fields(GreedyOptions)]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_every_option_is_checked_documented_and_known_to_the_engine():
    assert list(OPTION_KINDS) == NAMES
    documented = re.findall(r"^    (\w+) : .*default=", GreedyOptions.__doc__, re.M)
    assert documented == NAMES
    assert {*NAMES} - {"scale", "scan"} <= {*inspect.signature(greedy.select).parameters}


@pytest.mark.parametrize("estimator", [*SHAREBOOST, OneVsRestGreedy])
def test_no_estimator_repeats_an_option(estimator):
    names = {*inspect.signature(estimator).parameters}
    assert not names & {*NAMES}
    assert {"n_features_to_select", "alpha", "pool", "options"} <= names
    with pytest.raises(TypeError, match="rule"):
        estimator(rule="l1")


@pytest.mark.parametrize("estimator", SHAREBOOST[:2])
def test_the_signature_has_ten_parameters_and_class_weight(estimator):
    assert len({*inspect.signature(estimator).parameters} - {"class_weight"}) == 10


def test_no_options_are_the_defaults(iris):
    model, other = ShareBoostClassifier(3), ShareBoostClassifier(3, options=GreedyOptions())
    assert model.options is None
    assert model.options_ == other.options_ == GreedyOptions()
    assert np.array_equal(model.fit(*iris).coef_, other.fit(*iris).coef_)


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GreedyOptions().rule = "l1"


def test_set_params_and_get_params():
    options = GreedyOptions(penalty=SmoothMaxNorm())
    assert options.get_params()["penalty__beta"] == 10.0
    assert options.set_params(rule="l2", penalty__beta=3.0) is options
    assert (options.rule, options.penalty.beta) == ("l2", 3.0)
    with pytest.raises(ValueError, match="GreedyOptions has no parameter 'rules'"):
        options.set_params(rules="l2")


def test_copies():
    options = GreedyOptions(rule="l2", tol=1e-6)
    model = ShareBoostClassifier(3, options=options)
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.options == options
    assert clone(model).options is not options


def test_options_of_an_estimator_are_its_own():
    shared = GreedyOptions(swaps=1)
    one, other = (ShareBoostClassifier(options=shared) for _ in range(2))
    one.set_params(options__rule="l2", alpha=0.0)
    assert (one.options_.rule, one.options_.swaps, one.alpha) == ("l2", 1, 0.0)
    assert other.options is shared
    assert shared.rule == "joint"
    with pytest.raises(ValueError, match="GreedyOptions has no parameter 'rules'"):
        one.set_params(options__rules="l2")


@pytest.mark.parametrize("options", [None, GreedyOptions(swaps=1)])
def test_grid_search(iris, options):
    grid = {"options__rule": ["l1", "l2"], "options__scale": [False]}
    search = GridSearchCV(ShareBoostClassifier(2, options=options), grid, cv=2).fit(*iris)
    best = search.best_estimator_.options
    assert best.rule == search.best_params_["options__rule"]
    assert best.scale is False
    assert best.swaps == (0 if options is None else 1)


@pytest.mark.parametrize("estimator", [ShareBoostClassifier, OneVsRestGreedy])
@pytest.mark.parametrize("options", ["l1", {"rule": "l1"}, GreedyOptions])
def test_what_is_no_options(iris, estimator, options):
    with pytest.raises(TypeError, match="is not a GreedyOptions; give a GreedyOptions, or None"):
        estimator(options=options).fit(*iris)


def test_features_of_all_classes_cannot_be_tuned(iris):
    with pytest.raises(ValueError, match="tune=2 adjusts features, which the classes share"):
        OneVsRestGreedy(options=GreedyOptions(tune=2)).fit(*iris)


@pytest.mark.parametrize("options", [None, GreedyOptions(rule="l1", scale=False, tol=1e-6)])
def test_model_files(iris, tmp_path, options):
    model = ShareBoostClassifier(3, warm_start=True, options=options).fit(*iris)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert loaded.options == options
    assert np.array_equal(loaded.coef_, model.coef_)
    longer = [one.set_params(n_features_to_select=4).fit(*iris).coef_ for one in (model, loaded)]
    assert np.array_equal(*longer)


@pytest.mark.parametrize("change", [{"penalty": "l1"}, {"scale": False}, {"backward": 1}])
def test_warm_start_notices_options_that_matter(iris, change):
    model = ShareBoostClassifier(2, warm_start=True).fit(*iris)
    model.set_params(n_features_to_select=3, options=GreedyOptions(**change))
    with pytest.raises(ValueError, match="has changed since"):
        model.fit(*iris)


def test_warm_start_goes_on_with_another_rule(iris):
    model = ShareBoostClassifier(2, warm_start=True).fit(*iris)
    model.set_params(n_features_to_select=3, options__rule="l1").fit(*iris)
    assert len(model.selected_) == 3

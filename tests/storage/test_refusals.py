"""What cannot be stored is refused with the name of the parameter and what to do."""

import copy
import functools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import mixnorm
from mixnorm import ShareBoostClassifier, ShareBoostClassifierCV, estimators
from mixnorm.exceptions import ModelFileError
from mixnorm.losses import MarginSoftmax
from mixnorm.models import ClassOutputs, Inputs
from mixnorm.pools import Columns

LEARNERS = [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")]


class OwnPool(Columns):
    pass


class OwnLoss(MarginSoftmax):
    pass


class OwnEstimator(ShareBoostClassifier):
    pass


def score(model, X, y):
    return accuracy_score(y, model.predict(X))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"scoring": score}, r"\.scoring = <function score.*Set it to a name or to None"),
        ({"scoring": make_scorer(accuracy_score)}, r"\.scoring = make_scorer.*to None"),
        ({"scoring": functools.partial(score)}, r"\.scoring = functools.partial"),
        ({"random_state": np.random.RandomState(0)}, r"\.random_state = .*whole number or None"),
        ({"random_state": np.random.default_rng(0)}, r"\.random_state = .*whole number or None"),
        ({"pool": OwnPool()}, r"\.pool = OwnPool.*holds no .*OwnPool.*objects of your own"),
        ({"loss": OwnLoss()}, r"\.loss = OwnLoss.*objects of your own"),
        ({"pool": Columns(groups=pd.Series(range(64)))}, r"\.pool\.groups = .*a NumPy array"),
        ({"pool": Columns(groups=range(64))}, r"\.pool\.groups = .*list"),
        (
            {"cv": KFold(3, shuffle=True, random_state=np.random.RandomState(0))},
            r"\.cv\.random_state = ",
        ),
        ({"cv": {"a": [object()]}}, r"\.cv\['a'\] = <object"),
    ],
)
def test_parameters(tmp_path, digits, params, said):
    X, y = digits
    model = ShareBoostClassifierCV(2, cv=2).fit(X, y).set_params(**params)
    with pytest.raises(ModelFileError, match=f"Cannot store ShareBoostClassifierCV{said}"):
        mixnorm.save(model, tmp_path / "model.mixnorm")
    assert not list(tmp_path.iterdir())


def test_a_generator_of_splits(tmp_path, digits):
    X, y = digits
    model = ShareBoostClassifierCV(2, cv=KFold(2).split(X)).fit(X, y)
    with pytest.raises(ModelFileError, match=r"\.cv = <generator.*Give a list"):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_fitted_attributes(tmp_path, digits):
    model = ShareBoostClassifierCV(2, cv=2).fit(*digits)
    model.best_params_["here"] = object()
    where = r"CV\.search_\.cv_results\['params'\]\['here'\] = <object"
    with pytest.raises(ModelFileError, match=where):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_attributes_of_the_user_are_left_out(tools, model):
    noted = copy.copy(model)
    noted.extra_ = {"here": object()}
    assert tools.packed(noted) == tools.packed(model)


@pytest.mark.parametrize("name", LEARNERS)
def test_unfitted_estimators(tmp_path, name):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        mixnorm.save(getattr(estimators, name)(), tmp_path / "model.mixnorm")
    assert not list(tmp_path.iterdir())


def test_other_things(tmp_path, digits):
    X, y = digits
    things = [
        None,
        {"a": 1},
        np.zeros(3),
        MarginSoftmax(),
        Columns(),
        LogisticRegression(max_iter=10_000).fit(X, y > 4),
        make_pipeline(ShareBoostClassifier(2)).fit(X, y),
        OwnEstimator(2).fit(X, y),
        ShareBoostClassifier,
    ]
    for thing in things:
        with pytest.raises(ModelFileError, match="a model file holds an estimator of mixnorm.est"):
            mixnorm.save(thing, tmp_path / "model.mixnorm")
    assert not list(tmp_path.iterdir())


def test_a_class_that_only_claims_to_be_ours(tmp_path, digits):
    class Impostor(ShareBoostClassifier):
        pass

    Impostor.__name__ = "ShareBoostClassifier"
    Impostor.__module__ = "mixnorm.estimators.shareboost.learners"
    with pytest.raises(ModelFileError, match="of that very class"):
        mixnorm.save(Impostor(2).fit(*digits), tmp_path / "model.mixnorm")


def test_a_model_broken_since_its_fit(tmp_path, digits):
    # What could not be read again is not written, however it came about.
    model = ShareBoostClassifier(2).fit(*digits)
    whole = model.model_
    for name, value, said in [
        ("alpha", -1.0, "alpha=-1.0 must be at least 0"),
        ("model_", replace(whole, outputs=ClassOutputs(np.arange(3))), "classes_ must be"),
        ("model_", replace(whole, inputs=Inputs(1)), "outside the 1 columns"),
        ("model_", "nothing", "'model_' of ShareBoostClassifier is missing, or of another kind"),
    ]:
        kept = getattr(model, name)
        setattr(model, name, value)
        with pytest.raises(ModelFileError, match=f"could not be read again: .*{said}"):
            mixnorm.save(model, tmp_path / "model.mixnorm")
        setattr(model, name, kept)
    assert not list(tmp_path.iterdir())
    mixnorm.save(model, tmp_path / "model.mixnorm")


def test_a_path_of_penalties_is_no_model(tmp_path, digits):
    path = mixnorm.MixedNormClassifier().path(*digits, alphas=2)
    with pytest.raises(ModelFileError, match="Cannot store a MixedNormPath"):
        mixnorm.save(path, tmp_path / "model.mixnorm")

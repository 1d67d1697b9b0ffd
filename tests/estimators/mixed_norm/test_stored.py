"""Model files of estimators on the proximal engine: small, and checked when they are read."""

import numpy as np
import pytest

from mixnorm import MixedNormClassifier, MixedNormRegressor
from mixnorm.storage.decode import restore


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    return MixedNormClassifier(alpha=0.1).fit(X, np.argmax(X[:, :3], axis=1))


@pytest.fixture(scope="module")
def regressor():
    X = np.random.default_rng(0).normal(size=(60, 5))
    return MixedNormRegressor(alpha=0.1).fit(X, X[:, 0])


def again(model, **changes):
    """Return what is read from the model's state, with some of it changed or (None) gone."""
    state = model._fitted_state() | changes
    state = {name: value for name, value in state.items() if value is not None}
    fresh = type(model)(**model.get_params(deep=False))
    restore(fresh, state, 10**6)
    return fresh


def test_only_weights_in_use_are_kept(model):
    state = model._fitted_state()
    assert "coef_" not in state
    assert state["_used"].shape == (3, len(model.support_))
    assert list(state) == sorted(state)
    found = again(model)
    assert np.array_equal(found.coef_, model.coef_)
    assert vars(found).keys() == vars(model).keys()


def test_without_features_in_use(regressor):
    X = np.random.default_rng(0).normal(size=(60, 5))
    nothing = MixedNormRegressor(alpha=1e3).fit(X, X[:, :2])
    assert np.array_equal(again(nothing).predict(X), nothing.predict(X))


WRONG = [
    dict(_used=None),
    dict(_used=[[1.0]]),
    dict(_used=np.zeros((3, 1))),
    dict(_used=np.zeros((0, 0))),
    dict(_used=np.zeros(3)),
    dict(support_=None),
    dict(support_=np.array([0.5])),
    dict(support_=np.array([-1, 2, 3])),
    dict(n_features_in_=2),
    dict(n_features_in_=10**9),
    dict(n_features_in_=-1),
    dict(n_features_in_="40"),
    dict(intercept_=np.zeros(2)),
    dict(intercept_=0.0),
    dict(classes_=np.arange(2)),
    dict(classes_=[0, 1, 2]),
    dict(classes_=None),
    dict(dual_gap_="small"),
    dict(n_iter_=1.5),
    dict(objective_=None),
]


@pytest.mark.parametrize("changes", WRONG, ids=lambda changes: str(changes)[:50])
def test_wrong_states_are_refused(model, changes):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, MemoryError)):
        again(model, **changes)


def test_support_must_rise_within_the_features(model):
    for support in (model.support_[::-1].copy(), model.support_ + 40, model.support_ * 0):
        with pytest.raises(ValueError, match="support_ must rise, within 40 features"):
            again(model, support_=support)


def test_wrong_states_of_a_regressor(regressor):
    for changes in (
        dict(_single=False),
        dict(_single=1),
        dict(intercept_=np.zeros(1)),
        dict(intercept_=float("nan")),
        dict(_used=np.zeros((2, len(regressor.support_)))),
    ):
        with pytest.raises(ValueError, match=r"intercept|one column"):
            again(regressor, **changes)


def test_wrong_parameters_are_refused(model):
    state = model._fitted_state()
    for params in (dict(norm="no"), dict(alpha=-1), dict(loss="squared")):
        with pytest.raises(ValueError, match="norm|alpha|loss"):
            restore(MixedNormClassifier(**params), dict(state), 10**6)

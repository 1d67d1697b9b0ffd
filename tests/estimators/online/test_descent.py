"""Parameters of mirror descent, and what steps and units make of numbers of any size."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineMultiTaskLearner,
)
from mixnorm.engines.mirror import RowLearner
from mixnorm.engines.mirror import layout as layout
from mixnorm.losses import Huber, MulticlassSquaredHinge, MultinomialLogistic, Squared
from mixnorm.norms import MixedNorm

from .conftest import ALL, D, N, learn_ones, rows, stream, table


def test_overflow_is_said():
    X, y = rows() * 1e200, rows()[:, 0] * 1e200
    model = MirrorDescentRegressor("l2,2", learning_rate="fixed", scale=False)
    with pytest.raises(ValueError, match="have overflowed.*Set scale=True, lower eta0"):
        model.partial_fit(X, y)
    single = MirrorDescentRegressor("l2,2", learning_rate="fixed", scale=False)
    with pytest.raises(ValueError, match="have overflowed"):
        learn_ones(single, {"X": X, "y": y})


WRONG = [
    (dict(norm="l3,1"), "norm"),
    (dict(norm="linf,1"), "no mirror map"),
    (dict(norm=3), "norm"),
    (dict(fit_intercept=1), "fit_intercept=1 must be True or False"),
    (dict(scale="yes"), "scale='yes' must be True or False"),
    (dict(average=None), "average=None must be True or False"),
    (dict(hash_features=0), "hash_features=0"),
    (dict(hash_features=1.5), "hash_features=1.5"),
    (dict(hash_features=True), "hash_features=True"),
    (dict(radius=0.0), "radius=0.0 must be positive"),
    (dict(radius=-1), "radius=-1 must be positive"),
    (dict(radius=np.inf), "radius=inf must be"),
    (dict(radius="1"), "radius='1' must be a number or None"),
    (dict(eta0=0), "eta0=0 must be positive"),
    (dict(eta0=np.nan), "eta0=nan must be positive"),
    (dict(eta0=True), "eta0=True must be a number or None"),
    (dict(conservative=1.0), "conservative=1.0 must be"),
    (dict(conservative=-0.1), "conservative=-0.1 must be"),
    (dict(conservative=True), "conservative=True must be"),
    (dict(learning_rate="none"), "learning_rate='none' is not known"),
    (dict(learning_rate="best"), "learning_rate='best' is not known"),
    (dict(learning_rate=1), "learning_rate=1 is not known"),
    (dict(learning_rate="feature", norm="l2,1"), "'l2,2' only"),
    (dict(learning_rate="feature", norm="trace"), "'l2,2' only"),
    (dict(learning_rate="feature", norm="l2,2", radius=1.0), "has no ball"),
    (dict(block_size=0), "block_size=0 must be"),
    (dict(block_size=2.0), "block_size=2.0 must be"),
    (dict(loss="no"), "loss='no' is not known"),
    (dict(losses="no"), "loss='no' is not known"),
    (dict(losses=MulticlassSquaredHinge()), "is joint"),
]


@pytest.mark.parametrize(
    "model",
    [GroupPerceptron(), MirrorDescentClassifier(), MirrorDescentRegressor(),
     OnlineMultiTaskLearner()], ids=str,
)  # fmt: skip
def test_wrong_parameters(model):
    arguments, tried = stream(model), 0
    for params, said in WRONG:
        if not params.keys() <= model.get_params().keys():
            continue
        tried += 1
        found = clone(model).set_params(**params)
        for method in ("fit", "partial_fit"):
            with pytest.raises((ValueError, TypeError), match=said):
                getattr(found, method)(**arguments)
            assert not found.__sklearn_is_fitted__()
        found.set_params(**{name: model.get_params()[name] for name in params})
        found.partial_fit(**arguments)  # and goes on once it is mended
    assert tried > 8


def test_losses_that_cannot_be():
    X, y = rows(), np.arange(N) % 3
    with pytest.raises(ValueError, match="is not a loss on labels"):
        MirrorDescentClassifier(loss=Squared()).fit(X, y)
    assert MirrorDescentClassifier(loss=MulticlassSquaredHinge()).fit(X, y).loss_ > 0.0
    with pytest.raises(ValueError, match="is not known"):
        MirrorDescentClassifier(loss="squared_hinge").fit(X, y)
    with pytest.raises(ValueError, match="not known|loss on classes"):
        MirrorDescentRegressor(loss="hinge").fit(X, y)
    assert MirrorDescentRegressor(loss=Huber(delta=3.0)).fit(X, y).loss_ > 0.0
    assert not hasattr(MirrorDescentClassifier(loss="hinge").fit(X, y), "predict_proba")


def test_parameters_set_in_mid_stream_are_for_the_next_model():
    X, y = rows(), np.arange(N) % 3
    model = MirrorDescentClassifier("trace", block_size=8, radius=3.0).partial_fit(X[:5], y[:5])
    model.set_params(block_size=2, radius=1.0)
    model.partial_fit(X, y).partial_fit(X, y + 1)
    assert model._learner.plan.block == 8
    assert model._learner.plan.radius == 3.0
    before = model.predict_proba(X)
    model.set_params(loss="hinge", average=True, norm="l1,1", scale=False)
    assert np.array_equal(model.predict_proba(X), before)
    assert isinstance(model._learner.plan.losses[0], MultinomialLogistic)
    assert len(model.classes_) == 4


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("norm", ["l2,2", "l2,1"])
def test_targets_of_any_size(unit, norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    Y = np.stack([X[:, 0] + 2.0 * X[:, 1], X[:, 2] - 1.0, 1000.0 * X[:, 3]], axis=1) * unit
    params = {} if norm == "l2,2" else {"loss": "absolute", "eta0": 1000.0 * unit}
    model = MirrorDescentRegressor(norm, **params).fit(X, Y)
    found = model.predict(X)
    assert found.shape == Y.shape
    if norm == "l2,2":
        errors = np.mean((found - Y) ** 2, axis=0) / np.var(Y, axis=0)
        assert np.all(errors < 0.05)
    single = MirrorDescentRegressor(norm, **params).fit(X, Y[:, 2])
    assert single.coef_.shape == (8,)
    assert isinstance(single.intercept_, float)
    assert single.score(X, Y[:, 2]) > 0.9


def test_units_of_inputs_do_not_matter():
    X = rows()
    y = X @ np.random.default_rng(0).normal(size=D)
    units = 2.0 ** np.arange(-10, 10)
    model = MirrorDescentRegressor(random_state=0)
    one, other = clone(model).fit(X, y), clone(model).fit(X * units, y)
    np.testing.assert_allclose(one.predict(X), other.predict(X * units), rtol=1e-9)


RAW = [each for each in ALL if each.scale and each.norm != "trace"]
RAW += [MirrorDescentClassifier("trace", radius=5.0), OnlineMultiTaskLearner("trace", "huber")]


@pytest.mark.parametrize("model", RAW, ids=str)
@pytest.mark.parametrize("unit", [-1e-6, 1e6])
def test_units_and_origins_of_columns_do_not_matter(model, unit):
    arguments = stream(model)
    X = arguments["X"]
    other = unit * (X + np.std(X, axis=0) * np.linspace(-1000.0, 1000.0, D))
    first = clone(model).partial_fit(**arguments)
    second = clone(model).partial_fit(**arguments | {"X": other})
    assert abs(first.mistakes_ - second.mistakes_) <= 0.02 * N
    assert second.loss_ == pytest.approx(first.loss_, rel=1e-3)
    np.testing.assert_allclose(second.coef_ * unit, first.coef_, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_column_that_goes_on_and_on_does_no_harm(power):
    """Its unit grows with every row, and its weight must not."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=2000), np.linspace(0.0, 1.0, 2000)
    y = (x + rng.normal(0.0, 0.3, size=2000) > 0.5).astype(int)
    alone = MirrorDescentClassifier().partial_fit(x[:, None], y)
    beside = MirrorDescentClassifier().partial_fit(np.column_stack([x, t**power]), y)
    assert beside.mistakes_ < alone.mistakes_ + 60


@pytest.mark.parametrize("norm", ["l2,2", "l2,1", "l1,1", "trace"])
def test_a_value_very_far_out_spoils_its_column_alone(norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6))
    y = np.argmax(X @ rng.normal(size=(6, 3)), axis=1)
    wild = X.copy()
    wild[300, 0] = 1e9
    rest = MirrorDescentClassifier(norm).partial_fit(np.where(np.arange(6) == 0, 0.0, X), y)
    model = MirrorDescentClassifier(norm).partial_fit(wild, y)
    assert model.mistakes_ < 1.2 * rest.mistakes_
    assert np.all(np.abs(model.intercept_) < 20.0)


def test_a_very_heavy_row_does_not_overshoot():
    X, y, _ = table(np.random.default_rng(0), 400)
    weight = np.where(np.arange(400) == 100, 1e9, 1.0)
    model = MirrorDescentClassifier().partial_fit(X, y, sample_weight=weight)
    assert model.score(X, y) > 0.85
    target = X[:, 0] + X[:, 1]
    model = MirrorDescentRegressor().partial_fit(X, target, sample_weight=weight)
    assert model.score(X, target) > 0.9


def test_sparse_rows_keep_zero_as_their_origin():
    X = sp.random(200, 30, density=0.1, format="csr", random_state=0)
    model = MirrorDescentClassifier().partial_fit(X, np.arange(200) % 3)
    assert not np.any(model._learner.column[layout.MEAN])
    other = MirrorDescentClassifier().partial_fit(X.toarray(), np.arange(200) % 3)
    assert np.any(other._learner.column[layout.MEAN])
    raw = MirrorDescentClassifier(fit_intercept=False).partial_fit(X.toarray(), np.arange(200) % 3)
    assert not np.any(raw._learner.column[layout.MEAN])
    assert not np.any(raw.intercept_)


def test_norms_of_ones_own():
    X, y = rows(), np.arange(N) % 3
    groups = np.arange(D) // 4
    for norm in (MixedNorm(2, 1.5), MixedNorm(1.4, 1.4), MixedNorm(2, 1, groups)):
        model = MirrorDescentClassifier(norm, learning_rate="adaptive").fit(X, y)
        assert model.predict(X).shape == (N,)
    assert not isinstance(model._learner, RowLearner)
    grouped = MirrorDescentClassifier(MixedNorm(2, 1, groups)).partial_fit(X, y)
    grouped.partial_fit(X, y + 1)
    assert len(grouped.classes_) == 4


def test_steps_by_feature_are_for_the_euclidean_norm_also_with_few_columns():
    model = MirrorDescentClassifier("l2,1", learning_rate="feature")
    with pytest.raises(ValueError, match="goes with the norm 'l2,2' only"):
        model.learn_one(np.ones(3), 0)


def test_rows_whose_squares_vanish_are_refused():
    X, y = np.eye(4), np.arange(4)
    with pytest.raises(ValueError, match="so small that their squares are lost"):
        GroupPerceptron().fit(X * 1e-200, y)
    assert GroupPerceptron(scale=True).fit(X * 1e-200, y).mistakes_ > 0


@pytest.mark.parametrize(
    ("norm", "factor"),
    [
        ("l2,1", 5e-324), ("l1,1", 1e-310), ("trace", 1e-310),
        ("l2,1", 1.7e308), ("l1,1", 1.7e308), ("trace", 1.7e308),
    ],
)  # fmt: skip
def test_rows_of_extreme_size(norm, factor):
    """An error in words, in fit or for scores, and no warning of NumPy's."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 4))
    y = np.argmax(X[:, :3], axis=1)
    model = MirrorDescentClassifier(norm, "hinge")
    with pytest.raises(ValueError, match=r"too large \(?or too small"):
        model.fit(factor * X, y).decision_function(factor * X)

"""Targets of any size are fitted right, or refused."""

import functools

import numpy as np
import pytest

from mixnorm import (
    MixedNormRegressor,
    MixedNormRegressorCV,
    MultiTaskLearner,
    MultiTaskLearnerCV,
)
from mixnorm.estimators._common.units import Frame, safe_unit, target_frame
from mixnorm.losses import Absolute, EpsilonInsensitive, Hinge, Huber, Squared

LOSSES = {
    "Squared": Squared(),
    "Huber": Huber(0.5),
    "Absolute": Absolute(),
    "EpsilonInsensitive": EpsilonInsensitive(0.2),
}
SIZES = [1e-306, 1e-200, 1e-80, 1e80, 1e200, 1e303]


@functools.cache
def draw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, X @ rng.normal(size=(5, 2)) + 0.1 * rng.normal(size=(60, 2)) + 1.0


@pytest.fixture
def data():
    return draw()


def learner(kind, loss, **options):
    name = "losses" if kind in (MultiTaskLearner, MultiTaskLearnerCV) else "loss"
    return kind(**{name: loss}, **options)


@functools.cache
def fit_plain(kind, loss):
    """Return a fit to targets of size one, which those of all other sizes are compared to."""
    options = (
        {"alphas": 3, "cv": 2} if kind.__name__.endswith("CV") else {"alpha": 0.1, "tol": 1e-7}
    )
    return learner(kind, LOSSES.get(loss, loss), **options).fit(*draw())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        *((MixedNormRegressor, size) for size in SIZES),
        *((MultiTaskLearner, size) for size in (SIZES[0], SIZES[3], SIZES[5])),
    ],
)
def test_targets_of_any_size(data, kind, name, size):
    (X, Y), loss = data, LOSSES[name]
    degree = 2 if isinstance(loss, (Squared, Huber)) else 1
    plain = fit_plain(kind, name)
    scaled = {name: value * size for name, value in loss.get_params().items()}
    alpha = 0.1 * size ** (degree - 1)
    other = learner(kind, type(loss)(**scaled), alpha=alpha, tol=1e-7).fit(X, Y * size)
    assert other.coef_ / size == pytest.approx(plain.coef_, rel=1e-5, abs=1e-5)
    assert other.predict(X) / size == pytest.approx(plain.predict(X), rel=1e-5, abs=1e-5)
    assert not np.isnan(other.dual_gap_)
    assert other.score(X, Y * size) == pytest.approx(plain.score(X, Y), abs=1e-6)


@pytest.mark.parametrize("size", [1e-300, 1e300])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("kind", [MixedNormRegressorCV, MultiTaskLearnerCV])
def test_choosing_a_penalty_for_targets_of_any_size(data, kind, loss, size):
    X, Y = data
    plain = fit_plain(kind, loss)
    other = learner(kind, loss, alphas=3, cv=2).fit(X, Y * size)
    assert other.best_score_ == pytest.approx(plain.best_score_, abs=1e-3)
    assert other.coef_ / size == pytest.approx(plain.coef_, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("kind", [MixedNormRegressor, MultiTaskLearner])
def test_targets_that_are_refused(data, kind):
    X, Y = data
    for refused, message in [
        (Y * 1e306, "of size .*e\\+30[67], are too large for float64; divide y by a number"),
        (Y * [1.0, 1e300], "in column 0 of y vary by .*, those in column 1 by 1e\\+301; beside"),
        (Y * [1e-300, 1.0], "Divide each column by its size, or fit them separately"),
    ]:
        with pytest.raises(ValueError, match=message):
            kind().fit(X, refused)
    with pytest.raises(ValueError, match="delta is lost in their rounding. Give delta in the unit"):
        learner(kind, Huber(1.0)).fit(X, Y * 1e20)
    for y, size in ((Y * 1e60, "large"), (Y * 1e-60, "small")):
        with pytest.raises(ValueError, match=f"too {size} for float32; give X as float64"):
            kind().fit(X.astype(np.float32), y)


def test_few_huge_targets_among_others(data):
    X, Y = data
    y = Y[:, 0].copy()
    y[:30] *= 1e300
    found = MixedNormRegressor(alpha=1e299).fit(X, y)
    inside = MixedNormRegressor(alpha=0.1).fit(X, y / 1e300)
    assert found.coef_ / 1e300 == pytest.approx(inside.coef_, rel=1e-6, abs=1e-6)


def test_huge_targets_beside_labels_are_refused(data):
    X, Y = data
    labels = np.where(Y[:, 0] > 0, 1.0, -1.0)
    tasks = MultiTaskLearner(losses=["squared", "logistic"])
    with pytest.raises(
        ValueError, match=r"as large as .*e\+1[23]\d, and these losses have no unit"
    ):
        tasks.fit(X, np.c_[Y[:, 1] * 1e120, labels])
    tasks.fit(X, np.c_[Y[:, 1] * 1e-300, labels])
    assert np.max(np.abs(tasks.coef_[0])) < 1e-299
    assert np.max(np.abs(tasks.coef_[1])) > 0.1


def test_weights_that_overflow_or_vanish(data):
    X, Y = data
    with pytest.raises(ValueError, match="the weights overflow in float64. Scale X"):
        MixedNormRegressor(alpha=1e-3).fit(X * 1e-200, Y * 1e200)
    with pytest.raises(ValueError, match="the weights vanish in float64. Scale X"):
        MixedNormRegressor(alpha=1e-3).fit(X * 1e200, Y * 1e-200)


def test_columns_that_do_not_vary_are_no_small_columns():
    y = np.c_[np.full(3, 0.1), [1e200, 2e200, 4e200]]
    frame = target_frame([Squared()] * 2, y, np.full(3, 1 / 3), fit_intercept=True, dtype=float)
    assert frame.unit > 1e200


def test_rows_and_losses_that_do_not_count():
    y = np.array([[1.0, 1.0], [3.0, -1.0], [1e307, 1.0]])
    weight = np.array([[0.5, 0.3], [0.5, 0.3], [0.0, 0.4]])
    kinds = [Squared(), Hinge()]
    frame = target_frame(kinds, y, weight, fit_intercept=True, dtype=np.float64)
    assert (frame.centre.tolist(), frame.unit, frame.degree) == ([2.0, 0.0], 1.0, 2)


def test_parameters_in_units():
    frame = Frame(np.zeros(1), 1e-300, 2)
    assert frame.scale_loss(Squared()) == Squared()
    assert frame.scale_loss(Huber(2e-300)) == Huber(2.0)
    assert frame.scale_loss(Huber(1.0)) == Huber(1e100)  # no residual is as large
    assert frame.scale_loss(EpsilonInsensitive(0.0)) == EpsilonInsensitive(0.0)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e-99, 1e99, np.inf, np.nan])
def test_moderate_numbers_have_no_unit(size):
    assert safe_unit(np.array([size, 0.0])) == 1.0


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e300, 1.7e308])
def test_extreme_numbers_have_a_unit(size):
    assert 1e-20 < abs(size / safe_unit(np.array([0.0, -size]))) < 2.0

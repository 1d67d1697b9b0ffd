"""Losses of one score against direct formulas, one entry at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.metrics import hinge_loss, log_loss, mean_absolute_error

from mixnorm.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Squared,
    SquaredHinge,
)
from mixnorm.losses.box import Box, BoxLoss

# The loss, its formula in the score z and the target y, and the slopes it has.
FORMULAS = [
    (Squared(), lambda z, y: 0.5 * (z - y) ** 2, (-np.inf, np.inf)),
    (Absolute(), lambda z, y: abs(z - y), (-1.0, 1.0)),
    (
        Huber(0.7),
        lambda z, y: 0.5 * (z - y) ** 2 if abs(z - y) <= 0.7 else 0.7 * abs(z - y) - 0.245,
        (-0.7, 0.7),
    ),
    (EpsilonInsensitive(0.3), lambda z, y: max(0.0, abs(z - y) - 0.3), (-1.0, 1.0)),
    (Hinge(), lambda z, y: max(0.0, 1.0 - y * z), (-1.0, 0.0)),
    (SquaredHinge(), lambda z, y: max(0.0, 1.0 - y * z) ** 2, (-np.inf, 0.0)),
    (Logistic(), lambda z, y: np.logaddexp(0.0, -y * z), (-1.0, 0.0)),
]
EACH = pytest.mark.parametrize(
    ("loss", "formula", "slopes"), FORMULAS, ids=[repr(row[0]) for row in FORMULAS]
)
SMOOTH = [row[0] for row in FORMULAS if hasattr(row[0], "curvature")]
BINARY = [row[0] for row in FORMULAS if row[0].is_binary]


def draw(loss, seed, n_samples=6, n_outputs=3, spread=1.5):
    """Targets, scores and weights of entries, some of them zero."""
    rng = np.random.default_rng(seed)
    shape = (n_samples, n_outputs)
    y = rng.choice([-1.0, 1.0], size=shape) if loss.is_binary else rng.standard_normal(shape)
    weight = rng.uniform(0.1, 2.0, size=shape) * (rng.uniform(size=shape) < 0.8)
    return y, spread * rng.standard_normal(shape), weight


def slopes_of(loss, slopes, y):
    """The least and the largest slope of each entry."""
    if not loss.is_binary:
        return np.full(y.shape, slopes[0]), np.full(y.shape, slopes[1])
    low, high = y * slopes[0], y * slopes[1]
    return np.fmin(low, high), np.fmax(low, high)


@EACH
@given(seed=st.integers(0, 10**6))
def test_values(loss, formula, slopes, seed):
    y, scores, weight = draw(loss, seed)
    value, residual = loss.value_and_residual(scores, loss.encode(y, 3, scores), weight)
    wanted = sum(
        w * formula(z, t) for z, t, w in zip(scores.flat, y.flat, weight.flat, strict=True)
    )
    assert value == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    step = 1e-6
    for entry in np.ndindex(*scores.shape):
        z, t, w = scores[entry], y[entry], weight[entry]
        slope = w * (formula(z + step, t) - formula(z - step, t)) / (2 * step)
        assert residual[entry] == pytest.approx(slope, abs=1e-7)


@EACH
@given(seed=st.integers(0, 10**6))
def test_conjugate_is_the_largest_difference(loss, formula, slopes, seed):
    y, _, weight = draw(loss, seed, n_samples=2, n_outputs=2)
    low, high = (np.clip(bound, -3.0, 3.0) for bound in slopes_of(loss, slopes, y))
    part = np.random.default_rng(seed).uniform(0.05, 0.95, size=y.shape)
    slope = low + part * (high - low)
    wanted = 0.0
    for entry in np.ndindex(*y.shape):
        best = minimize_scalar(
            lambda z, entry=entry: formula(z, y[entry]) - slope[entry] * z,
            bounds=(-30.0, 30.0),
            options={"xatol": 1e-11, "maxiter": 1000},
        )
        wanted -= weight[entry] * best.fun
    target = loss.encode(y, 2, y)
    assert loss.conjugate(slope * weight, target, weight) == pytest.approx(wanted, abs=1e-7)


@EACH
@pytest.mark.parametrize("step", [1e-3, 0.3, 5.0])
def test_prox_is_the_rest_of_a_proximal_step(loss, formula, slopes, step):
    """By Moreau's identity, and with the formula of the loss alone."""
    y, scores, weight = draw(loss, 7)
    theta = 2.0 * scores
    phi = loss.prox_conjugate(theta, step, loss.encode(y, 3, scores), weight)
    for entry in np.ndindex(*y.shape):
        centre, w = theta[entry] / step, weight[entry]
        reach = (3.0 + abs(y[entry])) * w / step + abs(centre) + 1.0
        best = minimize_scalar(
            lambda u, entry=entry, centre=centre, w=w: (
                w * formula(u, y[entry]) / step + 0.5 * (u - centre) ** 2
            ),
            bounds=(centre - reach, centre + reach),
            options={"xatol": 1e-12, "maxiter": 2000},
        )
        # A search by values alone finds the argument to half the digits.
        wanted = theta[entry] - step * best.x
        assert phi[entry] == pytest.approx(wanted, abs=1e-6 * (1.0 + step * reach))


@EACH
def test_outside_the_domain(loss, formula, slopes):
    y, _, weight = draw(loss, 3)
    weight = weight + 0.1
    target = loss.encode(y, 3, y)
    low, high = slopes_of(loss, slopes, y)
    for bound, sign in ((low, -1.0), (high, 1.0)):
        if not np.all(np.isfinite(bound)):
            continue
        edge = bound * weight
        assert np.isfinite(loss.conjugate(edge, target, weight))
        assert np.isfinite(loss.conjugate(edge + sign * 4e-15 * weight, target, weight))
        beyond = edge.copy()
        beyond[0, 0] += sign * 1e-10 * weight[0, 0]
        assert loss.conjugate(beyond, target, weight) == np.inf


@EACH
@given(
    seed=st.integers(0, 10**6),
    n_samples=st.integers(1, 9),
    n_outputs=st.integers(1, 4),
    spread=st.sampled_from([1e-9, 1.0, 50.0]),
)
def test_balance(loss, formula, slopes, seed, n_samples, n_outputs, spread):
    y, scores, weight = draw(loss, seed, n_samples, n_outputs, spread)
    target = loss.encode(y, n_outputs, scores)
    for theta in (
        loss.value_and_residual(scores, target, weight)[1],
        loss.prox_conjugate(scores, 1.0, target, weight),
    ):
        found = loss.balance(theta, target, weight)
        scale = np.abs(theta).sum()
        np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-14 * scale)
        assert np.isfinite(loss.conjugate(found, target, weight))
        # Each output moves by its sum, and not by more.
        moved, sums = np.abs(found - theta).sum(axis=0), np.abs(theta.sum(axis=0))
        np.testing.assert_allclose(moved, sums, atol=1e-14 * scale)
        again = loss.balance(found, target, weight)
        np.testing.assert_allclose(again, found, atol=1e-14 * scale)
        assert not np.any(found[weight == 0.0])


@pytest.mark.parametrize("loss", BINARY, ids=repr)
def test_balance_of_one_class_is_zero(loss):
    scores = np.zeros((5, 1))
    target = loss.encode(np.ones(5), 1, scores)
    weight = np.arange(1.0, 6.0) / 15
    theta = loss.value_and_residual(scores, target, weight)[1]
    np.testing.assert_allclose(loss.balance(theta, target, weight), 0.0, atol=1e-16)


@EACH
@pytest.mark.parametrize("factor", [1e-200, 1e-30, 1e30, 1e200])
def test_weights_of_any_size(loss, formula, slopes, factor):
    """The dual of weights times a number is the dual, times that number."""
    y, scores, weight = draw(loss, 11)
    target = loss.encode(y, 3, scores)
    for step in (0.1, np.array([[0.01], [0.1], [1.0], [10.0], [100.0], [1e3]])):
        phi = loss.prox_conjugate(scores, step, target, weight)
        scaled = loss.prox_conjugate(factor * scores, factor * step, target, factor * weight)
        np.testing.assert_allclose(scaled, factor * phi, rtol=1e-12, atol=1e-14 * factor)
        value = loss.conjugate(scaled, target, factor * weight)
        wanted = factor * loss.conjugate(phi, target, weight)
        assert value == pytest.approx(wanted, rel=1e-12, abs=1e-13 * factor)
        even = loss.balance(scaled, target, factor * weight)
        wanted = factor * loss.balance(phi, target, weight)
        np.testing.assert_allclose(even, wanted, rtol=1e-11, atol=1e-14 * factor)


@EACH
def test_denormal_weights(loss, formula, slopes):
    y, scores, weight = (part.astype(np.float32) for part in draw(loss, 12))
    weight[0, :] = 1e-41
    target = loss.encode(y, 3, scores)
    residual = loss.value_and_residual(scores, target, weight)[1]
    assert np.isfinite(loss.conjugate(residual, target, weight))
    phi = loss.prox_conjugate(residual, 0.5, target, weight)
    assert np.all(np.isfinite(phi))
    assert np.isfinite(loss.conjugate(phi, target, weight))
    assert np.isfinite(loss.conjugate(loss.balance(phi, target, weight), target, weight))


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_second_derivatives_with_weights_of_entries(loss):
    y, scores, weight = draw(loss, 13)
    target = loss.encode(y, 3, scores)
    residual = loss.value_and_residual(scores, target, weight)[1]
    step = 1e-6
    ahead = loss.value_and_residual(scores + step, target, weight)[1]
    curvature = loss.curvature(residual, target, weight)
    np.testing.assert_allclose(curvature, (ahead - residual) / step, atol=1e-5)
    column = scores[:, 0]
    hessian = loss.column_hessian(column, residual, target, weight)
    np.testing.assert_allclose(hessian, np.diag(column**2 @ curvature), atol=1e-14)
    form = loss.hessian_form(scores, residual, target, weight)
    assert form == pytest.approx(np.sum(scores**2 * curvature))


def test_against_scikit_learn():
    rng = np.random.default_rng(0)
    scores, weight = rng.standard_normal((40, 1)), rng.uniform(size=40)
    weight /= weight.sum()
    y = rng.choice([-1, 1], size=40)

    def value(loss, y):
        return loss.value_and_residual(scores, loss.encode(y, 1, scores), weight)[0]

    wanted = hinge_loss(y, scores[:, 0], sample_weight=weight)
    assert value(Hinge(), y) == pytest.approx(wanted, rel=1e-12)
    proba = Logistic().proba(scores)[:, 0]
    np.testing.assert_allclose(proba, 1 / (1 + np.exp(-scores[:, 0])), rtol=1e-14)
    wanted = log_loss(y, proba, sample_weight=weight)
    assert value(Logistic(), y) == pytest.approx(wanted, rel=1e-12)
    numbers = rng.standard_normal(40)
    wanted = mean_absolute_error(numbers, scores[:, 0], sample_weight=weight)
    assert value(Absolute(), numbers) == pytest.approx(wanted, rel=1e-12)
    assert value(EpsilonInsensitive(0.0), numbers) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate", [0.0, 1e-8, 1.0, 1e2, 1e6, 1e12])
def test_logistic_prox_solves_its_equation(rate, dtype):
    """``ln(q / (1 - q)) + rate q + theta = 0``, for all signs and sizes of ``theta``."""
    loss = Logistic()
    sizes = np.concatenate([[0.0], 10.0 ** np.arange(-6, 5)]) * max(rate, 1.0)
    theta = np.concatenate([sizes, -sizes])[:, None].astype(dtype)
    target = loss.encode(np.ones(len(theta)), 1, theta)
    weight = np.full(len(theta), rate, dtype=dtype)
    phi = loss.prox_conjugate(theta, 1.0, target, weight)
    assert phi.dtype == dtype
    assert np.isfinite(loss.conjugate(phi, target, weight))
    if rate == 0.0:
        assert not np.any(phi)
        return
    # The left side rises with q, so that its sign tells on which side of the root q is.
    q, theta = -phi[:, 0].astype(np.float64) / rate, theta[:, 0].astype(np.float64)
    error = 8.0 * np.finfo(dtype).eps * (1.0 + np.abs(theta) / max(rate, 1.0))
    for side in (-1.0, 1.0):
        other = q + side * error
        inside = (other > 0.0) & (other < 1.0)
        other = np.where(inside, other, 0.5)
        left = np.log(other) - np.log1p(-other) + rate * other + theta
        assert np.all(side * left[inside] >= 0.0)


def test_signs():
    scores = np.array([[0.0, -1e-9], [3.0, -2.0]], dtype=np.float32)
    for loss in BINARY:
        predicted = loss.predict(scores)
        assert predicted.dtype == np.float32
        np.testing.assert_array_equal(predicted, [[1, -1], [1, -1]])


@pytest.mark.parametrize("loss", BINARY, ids=repr)
def test_targets_other_than_signs(loss):
    like = np.zeros((3, 1))
    for y in ([0, 1, 1], [1, 2, 3], [-1.0, 1.0, np.nan]):
        with pytest.raises(ValueError, match=r"takes targets -1 and \+1, got"):
            loss.encode(np.asarray(y), 1, like)
    np.testing.assert_array_equal(loss.encode([1, -1, 1], 1, like)[:, 0], [1.0, -1.0, 1.0])


def test_no_probabilities():
    for loss in (Hinge(), SquaredHinge()):
        with pytest.raises(TypeError, match=r"losses\.Logistic has them"):
            loss.proba(np.zeros((2, 1)))
    for loss in (Absolute(), Huber(), EpsilonInsensitive()):
        with pytest.raises(TypeError, match="is a regression loss"):
            loss.proba(np.zeros((2, 1)))


@pytest.mark.parametrize(
    "loss",
    [
        Huber(0.0),
        Huber(-1.0),
        Huber(np.inf),
        Huber(np.nan),
        EpsilonInsensitive(-0.1),
        EpsilonInsensitive(np.nan),
    ],
    ids=repr,
)
def test_parameters_out_of_range(loss):
    with pytest.raises(ValueError, match=r"^(delta|epsilon)=.* must be"):
        loss.encode(np.zeros(3), 1, np.zeros((3, 1)))


def test_huber_between_square_and_line():
    y, scores, weight = draw(Huber(), 14)
    target = Squared().encode(y, 3, scores)
    for wide, other, factor in ((1e3, Squared(), 1.0), (1e-9, Absolute(), 1e-9)):
        found = Huber(wide).value_and_residual(scores, target, weight)
        wanted = other.value_and_residual(scores, target, weight)
        assert found[0] == pytest.approx(factor * wanted[0], rel=1e-8)
        np.testing.assert_allclose(found[1], factor * wanted[1], rtol=1e-8)
    assert Huber(0.3).lipschitz == 0.3


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.7), (-2.0, 2.0), (0.0, 3.0), (-0.5, 0.0)])
def test_slopes_on_either_side_of_a_loss_of_your_own(low, high):
    """Bounds that differ make a quantile loss; a bound of zero makes one side free."""

    class Sided(BoxLoss):
        box = Box(low=low, high=high)

    loss, y = Sided(), np.array([[1.0], [2.0], [3.0]])
    scores, weight = y + np.array([[0.5], [-0.25], [0.0]]), np.array([1.0, 2.0, 3.0])
    value, residual = loss.value_and_residual(scores, loss.encode(y, 1, scores), weight)
    assert value == pytest.approx(0.5 * high - 2.0 * 0.25 * low)
    np.testing.assert_allclose(residual, [[high], [2.0 * low], [0.0]])

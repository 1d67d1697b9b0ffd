"""Losses on labels, their conjugates and proximal operators, against slow references."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize, minimize_scalar
from sklearn.metrics import hinge_loss

from mixnorm.losses import (
    Hinge,
    Logistic,
    MarginSoftmax,
    MulticlassHinge,
    MulticlassSquaredHinge,
    MultinomialLogistic,
    SquaredHinge,
)
from mixnorm.losses.labels import subtract_level
from mixnorm.losses.newton import damped_softmax

SOFT = [MultinomialLogistic(), MarginSoftmax(), MarginSoftmax(2.5)]
HARD = [MulticlassHinge(), MulticlassSquaredHinge()]
SHARES = [*SOFT, MulticlassHinge()]
SEEDS = st.integers(0, 10**6)


def draw(seed, n_samples=8, n_outputs=4, spread=2.0, empty=0.2):
    rng = np.random.default_rng(seed)
    scores = spread * rng.standard_normal((n_samples, n_outputs))
    weight = rng.uniform(0.1, 2.0, n_samples) * (rng.uniform(size=n_samples) >= empty)
    return scores, rng.integers(n_outputs, size=n_samples), weight


def hinge(z, y):
    return max(float(r != y) - z[y] + z[r] for r in range(len(z)))


# --- hinge losses


@given(seed=SEEDS, n_outputs=st.integers(2, 6))
def test_hinge_values(seed, n_outputs):
    scores, y, weight = draw(seed, n_outputs=n_outputs)
    each = np.array([hinge(z, label) for z, label in zip(scores, y, strict=True)])
    for loss, values in zip(HARD, (each, each**2), strict=True):
        target = loss.encode(y, n_outputs, scores)
        value = loss.value_and_residual(scores, target, weight)[0]
        assert value == pytest.approx(weight @ values, rel=1e-12, abs=1e-14)


def test_hinge_of_scikit_learn():
    scores, y, weight = draw(0, n_samples=50)
    loss = MulticlassHinge()
    value = loss.value_and_residual(scores, loss.encode(y, 4, scores), weight)[0]
    wanted = hinge_loss(y, scores, sample_weight=weight, labels=range(4)) * weight.sum()
    assert value == pytest.approx(wanted, rel=1e-12)


def test_square_of_the_hinge_is_not_smooth_with_three_classes():
    """Two classes offend alike: the derivative jumps, and no smoothness constant is right."""
    loss = MulticlassSquaredHinge()
    slopes = []
    for move in (-1e-9, 1e-9):
        scores = np.array([[0.0, move, -move]])
        target = loss.encode(np.array([0]), 3, scores)
        slopes.append(loss.value_and_residual(scores, target, np.ones(1))[1])
    assert np.abs(slopes[1] - slopes[0]).max() == pytest.approx(2.0)
    assert loss.smoothness == np.inf


@pytest.mark.parametrize(
    ("joint", "scalar"),
    [
        (MultinomialLogistic(), Logistic()),
        (MulticlassHinge(), Hinge()),
        (MulticlassSquaredHinge(), SquaredHinge()),
    ],
    ids=repr,
)
def test_two_classes_are_one_score(joint, scalar):
    """With scores ``(-z, z) / 2`` a loss on two labels is the loss of one score ``z``."""
    rng = np.random.default_rng(1)
    z, weight = 2.0 * rng.standard_normal((9, 1)), rng.uniform(0.1, 1.0, 9)
    label = rng.integers(2, size=9)
    pair = np.hstack([-z, z]) / 2
    both, one = joint.encode(label, 2, pair), scalar.encode(2 * label - 1, 1, z)
    value, residual = joint.value_and_residual(pair, both, weight)
    wanted, slope = scalar.value_and_residual(z, one, weight)
    assert value == pytest.approx(wanted, rel=1e-11)
    np.testing.assert_allclose(residual, np.hstack([-slope, slope]), atol=1e-12)
    conjugate = scalar.conjugate(slope, one, weight)
    assert joint.conjugate(residual, both, weight) == pytest.approx(conjugate, abs=1e-11)
    theta = 1.5 * rng.standard_normal((9, 1))
    # The pair (-t, t) is sqrt(2) as long as t.
    prox = scalar.prox_conjugate(theta, 0.6, one, weight)
    found = joint.prox_conjugate(np.hstack([-theta, theta]), 1.2, both, weight)
    np.testing.assert_allclose(found, np.hstack([-prox, prox]), atol=1e-13)


@pytest.mark.parametrize("loss", HARD, ids=repr)
def test_no_probabilities(loss):
    with pytest.raises(TypeError, match=r"no class probabilities; losses\.MultinomialLogistic"):
        loss.proba(np.zeros((2, 3)))
    np.testing.assert_array_equal(loss.predict(np.array([[0.0, 2.0], [1.0, 0.0]])), [1, 0])


# --- conjugates


def inner_point(rng, y, weight, n_outputs):
    """A point of the domain, off its edges."""
    share = rng.dirichlet(np.ones(n_outputs), size=len(y))
    return (share - np.eye(n_outputs)[y]) * weight[:, None]


@pytest.mark.parametrize("loss", SOFT, ids=repr)
@pytest.mark.parametrize("n_outputs", [2, 3, 5])
def test_conjugate_of_soft_losses(loss, n_outputs):
    """The largest ``<theta, z> - loss(z)``, looked for in all scores at once."""
    scores, y, weight = draw(2, n_samples=4, n_outputs=n_outputs, empty=0.0)
    target = loss.encode(y, n_outputs, scores)
    theta = inner_point(np.random.default_rng(3), y, weight, n_outputs)

    def difference(z):
        z = z.reshape(theta.shape)
        value, residual = loss.value_and_residual(z, target, weight)
        return value - np.sum(theta * z), (residual - theta).ravel()

    best = minimize(difference, np.zeros(theta.size), jac=True, options={"gtol": 1e-9})
    assert loss.conjugate(theta, target, weight) == pytest.approx(-best.fun, abs=1e-8)


@settings(max_examples=20)  # each solves about thirty linear programmes
@given(seed=SEEDS, n_outputs=st.integers(2, 5))
def test_conjugate_of_the_hinge(seed, n_outputs):
    """A linear programme for each row: most ``<theta, z> - t`` with ``t`` above the hinge."""
    scores, y, weight = draw(seed, n_samples=2, n_outputs=n_outputs, empty=0.0)
    theta = inner_point(np.random.default_rng(seed), y, weight, n_outputs)
    wanted = [0.0, 0.0]
    for row, label, w in zip(theta, y, weight, strict=True):
        eye = np.eye(n_outputs)
        above = np.hstack([eye - eye[label], -np.ones((n_outputs, 1))])
        limits = -(1.0 - eye[label])
        best = linprog(np.append(-row / w, 1.0), above, limits, bounds=(-50.0, 50.0))
        wanted[0] -= w * best.fun

        def square(t, above=above, limits=limits, row=row, w=w):
            """What remains of the square if the hinge is at most ``t``."""
            most = linprog(-row / w, above[:, :-1], limits + t, bounds=(-50.0, 50.0))
            return t * t + most.fun

        wanted[1] -= w * minimize_scalar(square, bounds=(0.0, 5.0)).fun
    for loss, value in zip(HARD, wanted, strict=True):
        target = loss.encode(y, n_outputs, scores)
        assert loss.conjugate(theta, target, weight) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
def test_outside_the_domain(loss):
    scores, y, weight = draw(4, n_samples=5, n_outputs=3, empty=0.0)
    target = loss.encode(y, 3, scores)
    theta = inner_point(np.random.default_rng(5), y, weight, 3)
    assert np.isfinite(loss.conjugate(theta, target, weight))
    assert np.isfinite(loss.conjugate(theta * (1.0 + 1e-15), target, weight))
    other = (y[0] + 1) % 3
    for size, inside in ((4e-15, True), (1e-9, False)):
        negative = theta.copy()
        negative[0, y[0]] += negative[0, other] + size * weight[0]
        negative[0, other] = -size * weight[0]
        assert np.isfinite(loss.conjugate(negative, target, weight)) == inside
        uneven = theta.copy()
        uneven[0, other] += size * weight[0]
        assert np.isfinite(loss.conjugate(uneven, target, weight)) == inside
    far = 2.0 * (np.eye(3)[(y + 1) % 3] - np.eye(3)[y]) * weight[:, None]
    square = isinstance(loss, MulticlassSquaredHinge)
    assert np.isfinite(loss.conjugate(far, target, weight)) == square


# --- proximal operators


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
@pytest.mark.parametrize("step", [0.01, 0.5, 20.0])
def test_prox_of_each_row(loss, step):
    """A proximal step on the loss itself, as a quadratic programme, and Moreau's identity."""
    scores, y, weight = draw(6, n_samples=5, n_outputs=3)
    theta = 1.5 * scores
    phi = loss.prox_conjugate(theta, step, loss.encode(y, 3, scores), weight)
    for i, label in enumerate(y):
        centre, rate = theta[i] / step, weight[i] / step
        best = proximal_step(loss, centre, rate, label)
        np.testing.assert_allclose(phi[i], theta[i] - step * best, atol=2e-6 * (1 + step))


def proximal_step(loss, centre, rate, label):
    """Minimise ``rate * loss(u) + |u - centre|^2 / 2`` over ``u``."""
    k = len(centre)
    if loss in SOFT:

        def smooth(u):
            target = loss.encode(np.array([label]), k, u[None, :])
            value, slope = loss.value_and_residual(u[None, :], target, np.full(1, rate))
            return value + 0.5 * np.sum((u - centre) ** 2), slope[0] + u - centre

        return minimize(smooth, centre, jac=True, options={"gtol": 1e-10}).x
    power = 1 if loss == MulticlassHinge() else 2
    eye = np.eye(k)
    rows = np.hstack([eye[label] - eye, np.ones((k, 1))])

    def value(x):
        return rate * x[-1] ** power + 0.5 * np.sum((x[:-1] - centre) ** 2)

    def slope(x):
        return np.append(x[:-1] - centre, rate * power * x[-1] ** (power - 1))

    limits = {"type": "ineq", "fun": lambda x: rows @ x - (1.0 - eye[label]), "jac": lambda x: rows}
    start = np.append(centre, hinge(centre, label))
    # Scaled, since the method stops on changes of the value.
    scale = 1.0 / max(1.0, rate)
    best = minimize(
        lambda x: scale * value(x),
        start,
        jac=lambda x: scale * slope(x),
        constraints=[limits],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return best.x[:-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate", [0.0, 1e-20, 1e-3, 1.0, 30.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("n_outputs", [2, 10, 200])
def test_damped_softmax(n_outputs, rate, dtype):
    """``ln p + rate p`` differs from the scores by one number per row, and ``p`` sums to one."""
    rng = np.random.default_rng(n_outputs)
    spread = 10.0 ** rng.uniform(-3, 1.5, size=(60, 1)) * max(rate, 3.0)
    scores = (spread * rng.standard_normal((60, n_outputs))).astype(dtype)
    p = damped_softmax(scores, np.full((60, 1), rate, dtype=dtype)).astype(np.float64)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=2 * n_outputs * eps)
    assert np.all(p > 0.0)
    level = scores.astype(np.float64) - np.log(p) - rate * p
    seen = p > 1e-20  # smaller ones are only known to be small
    weights = np.where(seen, p / (1.0 + rate * p), 0.0)
    mean = np.sum(weights * level, axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    error = np.abs(level - mean) * weights  # as a change of p
    size = np.abs(scores).max(axis=1, keepdims=True) + rate
    assert np.all(error <= 30 * eps * (1.0 + weights * size))


def test_damped_softmax_by_blocks():
    """Many rows are worked on a few at a time; rows do not know of each other."""
    rng = np.random.default_rng(0)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        scores = layout(5.0 * rng.standard_normal((5000, 9)))
        rate = 10.0 ** rng.uniform(-3, 3, size=(5000, 1))
        together = damped_softmax(scores, rate)
        assert together.flags.f_contiguous == scores.flags.f_contiguous
        for part in (slice(0, 7), slice(2220, 2225), slice(4990, 5000)):
            alone = damped_softmax(scores[part], rate[part])
            np.testing.assert_allclose(together[part], alone, atol=1e-15)


@given(seed=SEEDS, n_outputs=st.integers(1, 6), size=st.sampled_from([0.0, 1e-9, 0.5, 1.0, 30.0]))
def test_simplex_projection(seed, n_outputs, size):
    """Against the projections on all faces, the nearest of which is right."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n_outputs).round(1)  # with ties
    found = subtract_level(values[None, :], np.full((1, 1), size), np.zeros((1, 1)))[0]
    candidates = []
    for count in range(1, n_outputs + 1):
        for face in combinations(range(n_outputs), count):
            point = np.zeros(n_outputs)
            part = values[list(face)]
            point[list(face)] = part - (part.sum() - size) / count
            if np.all(point >= 0.0):
                candidates.append(point)
    nearest = min(candidates, key=lambda point: np.sum((point - values) ** 2))
    np.testing.assert_allclose(found, nearest, atol=1e-13)


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
@pytest.mark.parametrize("factor", [1e-200, 1e-30, 1e30, 1e200])
def test_weights_of_any_size(loss, factor):
    """The dual of weights times a number is the dual, times that number."""
    scores, y, weight = draw(8, n_samples=12)
    target = loss.encode(y, 4, scores)
    for step in (0.1, 10.0 ** np.linspace(-4, 4, 12)[:, None]):
        phi = loss.prox_conjugate(scores, step, target, weight)
        scaled = loss.prox_conjugate(factor * scores, factor * step, target, factor * weight)
        # The scores over the step, of which the exponential is taken, are only so well known.
        np.testing.assert_allclose(scaled, factor * phi, rtol=1e-9, atol=1e-13 * factor)
        value = loss.conjugate(scaled, target, factor * weight)
        wanted = factor * loss.conjugate(phi, target, weight)
        assert value == pytest.approx(wanted, rel=1e-11, abs=1e-12 * factor)
        even = loss.balance(scaled, target, factor * weight)
        wanted = factor * loss.balance(phi, target, weight)
        np.testing.assert_allclose(even, wanted, rtol=1e-9, atol=1e-13 * factor)


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_of_all_sizes_together(loss, dtype):
    """What a row comes out as does not depend on its neighbours, however small it is."""
    scores, y, _ = draw(9, n_samples=40)
    weight = 10.0 ** np.linspace(-38 if dtype == np.float64 else -30, 3, 40)
    weight[::7] = 0.0
    weight, scores = weight.astype(dtype), scores.astype(dtype)
    target = loss.encode(y, 4, scores)
    theta = scores * weight[:, None]
    step = np.where(weight > 0, weight, 1.0).astype(dtype)[:, None]
    phi = loss.prox_conjugate(theta, step, target, weight)
    unit = loss.prox_conjugate(scores, 1.0, target, np.ones_like(weight))
    unit[weight == 0] = 0.0
    share = phi / np.where(weight > 0, weight, 1.0)[:, None]
    np.testing.assert_allclose(share, unit, atol=100 * np.finfo(dtype).eps)
    assert np.isfinite(loss.conjugate(phi, target, weight))
    residual = loss.value_and_residual(scores, target, weight)[1]
    assert np.isfinite(loss.conjugate(residual, target, weight))
    even = loss.balance(residual, target, weight)
    assert np.isfinite(loss.conjugate(even, target, weight))
    assert not np.any(even[weight == 0])


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
def test_denormal_weights(loss):
    scores, y, weight = draw(10)
    scores, weight = scores.astype(np.float32), weight.astype(np.float32)
    weight[:2] = 1e-41
    target = loss.encode(y, 4, scores)
    residual = loss.value_and_residual(scores, target, weight)[1]
    phi = loss.prox_conjugate(residual, 0.5, target, weight)
    for point in (residual, phi, loss.balance(phi, target, weight)):
        assert np.all(np.isfinite(point))
        assert np.isfinite(loss.conjugate(point, target, weight))


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_far_larger_than_the_weights(loss, dtype):
    """As in large samples: the point stays in a domain that is tiny beside the step."""
    scores, y, weight = (part.astype(dtype) for part in draw(11, n_samples=50))
    target = loss.encode(y, 4, scores)
    weight = weight / 1e7
    for step in (1e-3, 1.0, 1e4):
        for theta in (scores, scores * weight[:, None], 1e3 * scores):
            phi = loss.prox_conjugate(theta, step, target, weight)
            assert np.isfinite(loss.conjugate(phi, target, weight))


# --- balance


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
@given(seed=SEEDS, n_samples=st.integers(1, 9), n_outputs=st.integers(2, 5))
def test_balance(loss, seed, n_samples, n_outputs):
    """Also with classes that no row has, and rows of weight zero."""
    scores, y, weight = draw(seed, n_samples, n_outputs)
    target = loss.encode(y, n_outputs, scores)
    present = np.zeros(n_outputs, dtype=bool)
    present[y[weight > 0]] = True
    for theta in (
        loss.value_and_residual(scores, target, weight)[1],
        loss.prox_conjugate(scores, 1.0, target, weight),
    ):
        even = loss.balance(theta, target, weight)
        nearly = even + 1e-5 * (theta - even)
        for start in (theta, nearly, even):
            found = loss.balance(start, target, weight)
            scale = weight.sum() + np.abs(theta).sum()
            np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-14 * scale)
            np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-14 * scale)
            assert np.isfinite(loss.conjugate(found, target, weight))
            sums = np.abs(start.sum(axis=0)).sum()
            assert np.abs(found - start).sum() <= 3.0 * sums + 1e-13 * scale
            assert not np.any(found[weight == 0.0])
            np.testing.assert_allclose(found[:, ~present], 0.0, atol=1e-15 * scale)


@pytest.mark.parametrize("loss", SHARES, ids=repr)
def test_balance_of_points_off_the_domain(loss):
    """Clipped and scaled first; a row that has lost everything is put at its label."""
    scores, y, weight = draw(12)
    target = loss.encode(y, 4, scores)
    theta = loss.value_and_residual(scores, target, weight)[1] + 0.1 * scores
    theta[0] = -10.0
    even = loss.balance(theta, target, weight)
    assert np.isfinite(loss.conjugate(even, target, weight))
    np.testing.assert_allclose(even.sum(axis=0), 0.0, atol=1e-14 * weight.sum())


@pytest.mark.parametrize("loss", [*SHARES, MulticlassSquaredHinge()], ids=repr)
def test_balance_of_one_class_is_zero(loss):
    scores, _, weight = draw(13)
    target = loss.encode(np.full(8, 2), 4, scores)
    theta = loss.value_and_residual(scores, target, weight)[1]
    np.testing.assert_allclose(loss.balance(theta, target, weight), 0.0, atol=1e-15)

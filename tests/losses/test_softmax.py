"""The soft-max losses against slow, direct formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss

from mixnorm.losses import MarginSoftmax, MultinomialLogistic


def draw(seed, n_samples=20, n_outputs=4, spread=3.0):
    rng = np.random.default_rng(seed)
    scores = spread * rng.standard_normal((n_samples, n_outputs))
    weight = rng.uniform(0.1, 1.0, n_samples)
    return scores, rng.integers(n_outputs, size=n_samples), weight / weight.sum()


def evaluate(loss, scores, y, weight):
    return loss.value_and_residual(scores, loss.encode(y, scores.shape[1], scores), weight)


def direct(scores, y, weight, margin):
    """The loss and its derivative, one sample and one class at a time."""
    value, residual = 0.0, np.zeros_like(scores)
    for i, label in enumerate(y):
        terms = np.array(
            [np.exp(margin * (r != label) - scores[i, label] + z) for r, z in enumerate(scores[i])]
        )
        value += weight[i] * np.log(terms.sum())
        residual[i] = weight[i] * terms / terms.sum()
        residual[i, label] -= weight[i]
    return value, residual


@given(
    seed=st.integers(0, 1000),
    n_samples=st.integers(1, 12),
    n_outputs=st.integers(2, 9),
    margin=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
)
def test_direct_formula(seed, n_samples, n_outputs, margin):
    scores, y, weight = draw(seed, n_samples, n_outputs)
    value, residual = evaluate(MarginSoftmax(margin), scores, y, weight)
    wanted, derivative = direct(scores, y, weight, margin)
    assert value == pytest.approx(wanted, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(residual, derivative, atol=1e-12)


@pytest.mark.parametrize("loss", [MultinomialLogistic(), MarginSoftmax(0.0)])
def test_logistic_is_cross_entropy(loss):
    scores, y, weight = draw(0)
    value, residual = evaluate(loss, scores, y, weight)
    proba = softmax(scores, axis=1)
    assert value == pytest.approx(-weight @ log_softmax(scores, axis=1)[np.arange(len(y)), y])
    assert value == pytest.approx(log_loss(y, proba, sample_weight=weight, labels=range(4)))
    np.testing.assert_allclose(residual, weight[:, None] * (proba - np.eye(4)[y]), atol=1e-12)
    np.testing.assert_allclose(loss.proba(scores), proba, rtol=1e-12)


def test_margin_loss_bounds_mistakes():
    loss = MarginSoftmax()
    scores, y, _ = draw(1, n_samples=300, spread=1.0)
    wrong = loss.predict(scores) != y
    values = [evaluate(loss, scores[i : i + 1], y[i : i + 1], np.ones(1))[0] for i in range(len(y))]
    assert wrong.any()
    assert not wrong.all()
    assert np.all(np.asarray(values) >= wrong)


def test_margin_loss_bounds_the_hinge():
    scores, y, weight = draw(2)
    own = scores[np.arange(len(y)), y]
    hinge = np.max((np.eye(4)[y] == 0) + scores - own[:, None], axis=1)
    assert evaluate(MarginSoftmax(), scores, y, weight)[0] >= weight @ hinge


@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_outputs", [2, 3, 6])
def test_probabilities_are_those_the_scores_are_best_for(margin, n_outputs):
    """Minimise the expected loss under known class posteriors; proba gives them back."""
    rng = np.random.default_rng(n_outputs)
    loss = MarginSoftmax(margin)
    labels = np.arange(n_outputs)
    for _ in range(3):
        posterior = rng.dirichlet(np.full(n_outputs, 2.0))

        def expected(z, posterior=posterior):
            # One row per class: the same scores, weighted by the posterior.
            value, residual = evaluate(loss, np.tile(z, (n_outputs, 1)), labels, posterior)
            return value, residual.sum(axis=0)

        best = minimize(expected, np.zeros(n_outputs), jac=True, tol=1e-14, options={"gtol": 1e-10})
        np.testing.assert_allclose(loss.proba(best.x[None, :])[0], posterior, atol=1e-7)


def test_probabilities_follow_the_order_of_the_scores():
    scores, _, _ = draw(4, n_samples=200)
    proba = MarginSoftmax().proba(scores)
    np.testing.assert_array_equal(np.argsort(proba, axis=1), np.argsort(scores, axis=1))


def dense_hessian(residual, y, weight, i):
    p = residual[i] / weight[i] + np.eye(residual.shape[1])[y[i]]
    return weight[i] * (np.diag(p) - np.outer(p, p))


def test_curvature_is_exact_for_two_classes():
    scores, y, weight = draw(5, n_outputs=2)
    loss = MarginSoftmax()
    _, residual = evaluate(loss, scores, y, weight)
    curvature = loss.curvature(residual, loss.encode(y, 2, scores), weight)
    direction = np.array([1.0, -1.0])
    for i in range(len(y)):
        exact = direction @ dense_hessian(residual, y, weight, i) @ direction
        # The residual gives p (1 - p) up to 1e-13, the least probability.
        assert curvature[i] @ direction**2 == pytest.approx(exact, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("n_outputs", [3, 5])
def test_curvature_is_exact_for_equal_probabilities(n_outputs):
    rng = np.random.default_rng(6)
    y = rng.integers(n_outputs, size=8)
    weight = np.full(8, 1 / 8)
    loss = MultinomialLogistic()
    scores = np.zeros((8, n_outputs))
    _, residual = evaluate(loss, scores, y, weight)
    curvature = loss.curvature(residual, loss.encode(y, n_outputs, scores), weight)
    direction = rng.standard_normal(n_outputs)
    direction -= direction.mean()
    for i in range(8):
        exact = direction @ dense_hessian(residual, y, weight, i) @ direction
        assert curvature[i] @ direction**2 == pytest.approx(exact, rel=1e-10)


def test_column_hessian_is_the_sum_over_samples():
    scores, y, weight = draw(7)
    loss = MarginSoftmax()
    _, residual = evaluate(loss, scores, y, weight)
    column = np.random.default_rng(8).standard_normal(len(y))
    parts = [column[i] ** 2 * dense_hessian(residual, y, weight, i) for i in range(len(y))]
    hessian = loss.column_hessian(column, residual, loss.encode(y, 4, scores), weight)
    np.testing.assert_allclose(hessian, sum(parts), atol=1e-13)


def test_tiny_weights_do_not_overflow():
    """The inverse of a denormal weight is infinite; its row is worth nothing anyway."""
    scores, y, weight = (part.astype(np.float32) for part in draw(9))
    weight[0] = 1e-41
    loss = MarginSoftmax()
    target = loss.encode(y, 4, scores)
    _, residual = loss.value_and_residual(scores, target, weight)
    assert np.all(np.isfinite(loss.curvature(residual, target, weight)))
    assert np.all(np.isfinite(loss.column_hessian(scores[:, 0], residual, target, weight)))
    assert np.isfinite(loss.hessian_form(scores, residual, target, weight))


def test_margin_is_a_parameter_of_one_and_a_constant_of_the_other():
    assert MarginSoftmax(0.5).get_params() == {"margin": 0.5}
    assert MarginSoftmax().set_params(margin=2.0).margin == 2.0
    assert MultinomialLogistic().get_params() == {}
    with pytest.raises(ValueError, match="no parameter 'margin'"):
        MultinomialLogistic().set_params(margin=1.0)


def test_scores_of_any_layout():
    scores, y, weight = draw(10)
    loss = MarginSoftmax()
    by_row = evaluate(loss, np.ascontiguousarray(scores), y, weight)
    by_column = evaluate(loss, np.asfortranarray(scores), y, weight)
    assert by_row[0] == pytest.approx(by_column[0], rel=1e-14)
    np.testing.assert_allclose(by_row[1], by_column[1], atol=1e-16)


@pytest.mark.parametrize("loss", [MarginSoftmax(), MultinomialLogistic()], ids=str)
def test_column_hessian_of_samples_that_are_told_apart(loss):
    """Where a probability is next to one, rows still sum to zero, beside their own size."""
    scores, y, weight = draw(0, spread=1.0)
    scores[np.arange(len(y)), y] += 25.0
    _, residual = evaluate(loss, scores, y, weight)
    hessian = loss.column_hessian(scores[:, 1], residual, loss.encode(y, 4, scores), weight)
    assert 0.0 < np.trace(hessian) < 1e-6
    assert np.max(np.abs(hessian.sum(axis=1))) < 1e-14 * np.trace(hessian)


@pytest.mark.parametrize("loss", [MarginSoftmax(), MultinomialLogistic()])
def test_probabilities_of_scores_whose_difference_overflows(loss):
    assert np.array_equal(loss.proba(np.array([[1.7e308, -1.7e308, 0.0]])), [[1.0, 0.0, 0.0]])

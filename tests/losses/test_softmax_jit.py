"""The compiled loops of the soft-max losses against plain NumPy twins."""

import numpy as np
import pytest

from mixnorm.losses import MarginSoftmax, MultinomialLogistic
from mixnorm.losses.softmax_jit import curve


def slow_curve(direction, shares, inverse):
    """The Hessian times a direction: ``P * (d - sum(P d) / w)``, samples along the last axis."""
    return shares * (direction - np.sum(shares * direction, axis=0) * inverse)


# One block of samples, less than one, several and a rest.
@pytest.mark.parametrize("n_samples", [1, 1000, 1024, 2500])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_outputs", [2, 7])
def test_curve(n_outputs, dtype, n_samples):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.1, 1.0, n_samples)
    shares = rng.dirichlet(np.ones(n_outputs), n_samples).T * weight
    direction = rng.standard_normal((n_outputs, n_samples)).astype(dtype)
    shares, inverse = shares.astype(dtype), (1.0 / weight).astype(dtype)
    found = direction.copy()
    curve(found, shares, inverse)
    close = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(found, slow_curve(direction, shares, inverse), atol=close)
    np.testing.assert_allclose(np.sum(found, axis=0), 0.0, atol=10 * close)


@pytest.mark.parametrize("loss", [MarginSoftmax(), MultinomialLogistic()], ids=repr)
def test_the_operator_is_the_derivative_of_the_residual(loss):
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 1.5, 30)
    weight[:3] = 0.0
    scores, direction = rng.standard_normal((2, 30, 4))
    target = loss.encode(rng.integers(4, size=30), 4, scores)

    def residual(at):
        return loss.value_and_residual(at, target, weight)[1]

    kept = direction.copy()
    found = loss.hessian_operator(scores, residual(scores), target, weight)(direction)
    small = 1e-6
    apart = residual(scores + small * direction) - residual(scores - small * direction)
    np.testing.assert_allclose(found, apart / (2.0 * small), atol=1e-8)
    np.testing.assert_array_equal(direction, kept)
    assert np.sum(found * direction) == pytest.approx(
        loss.hessian_form(direction, residual(scores), target, weight)
    )

"""The squared loss."""

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error

from mixnorm.losses import Squared


def draw(n_outputs=3):
    rng = np.random.default_rng(0)
    y, scores = rng.standard_normal((2, 15, n_outputs))
    weight = rng.uniform(size=15)
    return y, scores, weight / weight.sum()


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_half_the_weighted_squared_error_summed_over_outputs(n_outputs):
    y, scores, weight = draw(n_outputs)
    loss = Squared()
    value, residual = loss.value_and_residual(scores, loss.encode(y, n_outputs, scores), weight)
    error = mean_squared_error(y, scores, sample_weight=weight, multioutput="raw_values").sum()
    assert value == pytest.approx(0.5 * error, rel=1e-12)
    np.testing.assert_allclose(residual, weight[:, None] * (scores - y), rtol=1e-12)


def test_hessians():
    y, scores, weight = draw()
    loss = Squared()
    target = loss.encode(y, 3, scores)
    _, residual = loss.value_and_residual(scores, target, weight)
    column = scores[:, 0]
    np.testing.assert_array_equal(loss.curvature(residual, target, weight), weight[:, None])
    wanted = np.eye(3) * (weight @ column**2)
    hessian = loss.column_hessian(column, residual, target, weight)
    np.testing.assert_allclose(hessian, wanted, rtol=1e-12)
    form = loss.hessian_form(scores, residual, target, weight)
    assert form == pytest.approx(weight @ (scores**2).sum(axis=1), rel=1e-12)


def test_targets_may_be_flat_or_whole_numbers():
    like = np.zeros((4, 1), dtype=np.float32)
    target = Squared().encode(np.arange(4), 1, like)
    assert target.shape == (4, 1)
    assert target.dtype == np.float32
    np.testing.assert_array_equal(target[:, 0], np.arange(4))


def test_targets_lie_output_by_output():
    """As scores do, so that their difference is one pass through memory."""
    y = np.arange(12.0).reshape(4, 3)
    target = Squared().encode(y, 3, y)
    assert target.T.flags.c_contiguous
    np.testing.assert_array_equal(target, y)


def test_no_probabilities():
    with pytest.raises(TypeError, match="regression loss"):
        Squared().proba(np.zeros((2, 1)))
    scores = np.ones((2, 1))
    assert Squared().predict(scores) is scores

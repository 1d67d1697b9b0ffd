"""A mixture of losses is its losses, output by output."""

import numpy as np
import pytest

from mixnorm import losses
from mixnorm.engines.proximal import LossMixture

PARTS = [losses.Squared(), losses.Hinge(), losses.Huber(0.5), losses.Squared(), losses.Huber(2.0)]
SMOOTH = [losses.Squared(), losses.Logistic(), losses.Huber(0.5)]


def drawn(parts, n_samples=15):
    rng = np.random.default_rng(0)
    scores = 2.0 * rng.standard_normal((n_samples, len(parts)))
    y = rng.standard_normal(scores.shape)
    binary = np.asarray([loss.is_binary for loss in parts])
    y = np.where(binary, np.sign(y), y)
    weight = rng.uniform(size=scores.shape)
    weight[:2, 0] = 0.0
    weight /= weight.sum(axis=0)
    mixture = LossMixture(parts)
    own = [
        (loss, loss.encode(y[:, [r]], 1, weight), weight[:, [r]]) for r, loss in enumerate(parts)
    ]
    return mixture, scores, mixture.encode(y, len(parts), weight), weight, own


def test_equal_losses_are_done_together():
    mixture = LossMixture(PARTS)
    assert [columns.tolist() for _, columns in mixture.parts] == [[0, 3], [1], [2], [4]]


@pytest.mark.parametrize("parts", [PARTS, SMOOTH], ids=str)
def test_values_and_derivatives(parts):
    mixture, scores, target, weight, own = drawn(parts)
    value, residual = mixture.value_and_residual(scores, target, weight)
    slow = [loss.value_and_residual(scores[:, [r]], t, w) for r, (loss, t, w) in enumerate(own)]
    assert value == pytest.approx(sum(part for part, _ in slow), rel=1e-12)
    np.testing.assert_allclose(residual, np.concatenate([part for _, part in slow], axis=1))


@pytest.mark.parametrize("parts", [PARTS, SMOOTH], ids=str)
def test_duals(parts):
    mixture, scores, target, weight, own = drawn(parts)
    value, theta = mixture.value_and_residual(scores, target, weight)
    conjugate = mixture.conjugate(theta, target, weight)
    # The residual attains the conjugate.
    assert value + conjugate == pytest.approx(np.sum(theta * scores), abs=1e-12)
    each = [loss.conjugate(theta[:, [r]], t, w) for r, (loss, t, w) in enumerate(own)]
    assert conjugate == pytest.approx(sum(each), abs=1e-12)
    balanced = mixture.balance(theta, target, weight)
    np.testing.assert_allclose(balanced.sum(axis=0), 0.0, atol=1e-12)
    for step in (0.3, np.full((15, 1), 0.3), np.full(scores.shape, 0.3)):
        found = mixture.prox_conjugate(scores, step, target, weight)
        slow = [
            loss.prox_conjugate(scores[:, [r]], 0.3, t, w) for r, (loss, t, w) in enumerate(own)
        ]
        np.testing.assert_allclose(found, np.concatenate(slow, axis=1), atol=1e-12)


def test_curvature():
    mixture, scores, target, weight, own = drawn(SMOOTH)
    residual = mixture.value_and_residual(scores, target, weight)[1]
    found = mixture.curvature(residual, target, weight)
    slow = [loss.curvature(residual[:, [r]], t, w) for r, (loss, t, w) in enumerate(own)]
    np.testing.assert_allclose(found, np.concatenate(slow, axis=1))
    assert found.shape == scores.shape


def test_constants():
    assert LossMixture(PARTS).smoothness == np.inf
    assert LossMixture(SMOOTH).smoothness == 1.0
    assert LossMixture([losses.Hinge(), losses.Huber(3.0)]).lipschitz == 3.0
    assert LossMixture([losses.Squared()] * 2).constant_curvature
    assert not LossMixture(SMOOTH).constant_curvature
    assert not LossMixture(PARTS).is_classifier


def test_predictions():
    mixture = LossMixture([losses.Squared(), losses.Hinge()])
    found = mixture.predict(np.asarray([[0.5, 0.5], [-2.0, -2.0]]))
    np.testing.assert_array_equal(found, [[0.5, 1.0], [-2.0, -1.0]])
    with pytest.raises(TypeError, match="no class probabilities"):
        mixture.proba(np.zeros((1, 2)))

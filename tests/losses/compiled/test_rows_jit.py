"""The compiled losses of one sample against the classes that they are named after."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.losses import (
    JOINT,
    SCALAR,
    EpsilonInsensitive,
    Huber,
    Logistic,
    MarginSoftmax,
    MultinomialLogistic,
)
from mixnorm.losses.codes import MULTICLASS_HINGE, PERCEPTRON
from mixnorm.losses.compiled import rows_jit as jit

LABELS = [kind() for kind in JOINT.values() if kind.row_code is not None]
LABELS += [MarginSoftmax(0.3)]
NUMBERS = [kind() for kind in SCALAR.values() if kind.row_code is not None]
NUMBERS += [Huber(0.3), EpsilonInsensitive(2.0)]
ONE = np.ones(1)
finite = st.floats(-800.0, 800.0)


def constants(loss):
    return np.array([*loss.row_constants, 0.0])


def label_loss(loss, scores, label, residual):
    return jit.label_loss(loss.row_code, constants(loss), scores, label, residual)


@pytest.mark.parametrize("loss", LABELS, ids=str)
@given(scores=st.lists(finite, min_size=1, max_size=9), label=st.integers(0, 8))
def test_labels(loss, scores, label):
    scores, label = np.asarray(scores), label % len(scores)
    residual = np.full(len(scores), np.nan)
    found = label_loss(loss, scores, label, residual)
    encoded = loss.encode(np.array([label]), len(scores), scores[None])
    value, slope = loss.value_and_residual(scores[None], encoded, ONE)
    assert found == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert abs(np.sum(residual)) < 1e-12
    if loss.row_code == MULTICLASS_HINGE and len(set(scores)) < len(scores):
        return  # of several subgradients
    np.testing.assert_allclose(residual, slope[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", NUMBERS, ids=str)
@given(score=finite, target=finite)
def test_numbers(loss, score, target):
    target = (1.0 if target > 0.0 else -1.0) if loss.is_binary else target
    found, residual = jit.number_loss(loss.row_code, constants(loss), score, target)
    scores = np.array([[score]])
    encoded = loss.encode(np.array([[target]]), 1, scores)
    value, slope = loss.value_and_residual(scores, encoded, ONE)
    assert found == pytest.approx(value, rel=1e-12, abs=1e-25)
    assert residual == pytest.approx(slope[0, 0], rel=1e-12, abs=1e-25)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_random_scores(k):
    rng = np.random.default_rng(k)
    for loss in LABELS:
        for _ in range(50):
            scores, label = rng.normal(size=k) * 3.0, int(rng.integers(k))
            residual = np.empty(k)
            found = label_loss(loss, scores, label, residual)
            encoded = loss.encode(np.array([label]), k, scores[None])
            value, slope = loss.value_and_residual(scores[None], encoded, ONE)
            # The class adds 1e-13 to every term, against denormal numbers.
            assert found == pytest.approx(value, rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(residual, slope[0], rtol=1e-12, atol=1e-12)


def test_perceptron():
    residual = np.full(3, np.nan)
    assert jit.label_loss(PERCEPTRON, np.zeros(4), np.array([1.0, 3.0, 2.0]), 2, residual) == 1.0
    assert residual.tolist() == [0.0, 1.0, -1.0]
    assert jit.label_loss(PERCEPTRON, np.zeros(4), np.array([1.0, 3.0, 2.0]), 1, residual) == 0.0
    assert residual.tolist() == [0.0, 0.0, 0.0]
    # Of several best classes the first is predicted.
    assert jit.label_loss(PERCEPTRON, np.zeros(4), np.zeros(3), 0, residual) == 0.0
    assert jit.label_loss(PERCEPTRON, np.zeros(4), np.zeros(3), 2, residual) == 1.0
    assert residual.tolist() == [1.0, 0.0, -1.0]


def test_best_class():
    assert jit.best_class(np.array([0.0])) == 0
    assert jit.best_class(np.array([1.0, 2.0, 2.0])) == 1
    assert jit.best_class(np.array([-3.0, -2.0, -5.0])) == 1


def test_scores_far_apart():
    residual = np.empty(2)
    assert label_loss(MultinomialLogistic(), np.array([1e300, -1e300]), 0, residual) == 0.0
    assert label_loss(MultinomialLogistic(), np.array([1e5, 0.0]), 1, residual) == 1e5
    assert residual.tolist() == [1.0, -1.0]
    for sign in (-1.0, 1.0):
        value, slope = jit.number_loss(Logistic.row_code, np.zeros(4), 1e300 * sign, 1.0)
        assert (value, slope) == ((0.0, 0.0) if sign > 0 else (1e300, -1.0))

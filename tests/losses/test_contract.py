"""Every public loss keeps the contract: a new one is tested without touching this file."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm import losses
from mixnorm._array import to_numpy
from mixnorm.losses import JOINT, SCALAR, DualLoss, Loss, SmoothLoss
from mixnorm.losses.declared import Declared
from mixnorm.testing import check_loss

PUBLIC = [getattr(losses, name) for name in losses.__all__]
CLASSES = [
    loss
    for loss in PUBLIC
    if isinstance(loss, type)
    and not getattr(loss, "_is_protocol", False)
    and loss is not losses.BoxDual  # which losses return
]
# Parameters other than the default ones.
OTHERS = [
    losses.EpsilonInsensitive(0.0),
    losses.EpsilonInsensitive(1.0),
    losses.Huber(0.2),
    losses.Huber(3.0),
    losses.MarginSoftmax(0.0),
    losses.MarginSoftmax(5.0),
]


@pytest.mark.parametrize("n_outputs", [2, 3, 7])
@pytest.mark.parametrize("cls", CLASSES)
def test_contract(cls, n_outputs):
    check_loss(cls(), n_outputs=n_outputs, random_state=n_outputs)


@pytest.mark.parametrize("loss", OTHERS, ids=repr)
def test_contract_of_other_parameters(loss):
    check_loss(loss, n_outputs=4, random_state=1)


@given(seed=st.integers(0, 10**6), n_samples=st.integers(1, 12), index=st.integers(0, 20))
def test_contract_of_any_shape(seed, n_samples, index):
    loss = CLASSES[index % len(CLASSES)]()
    check_loss(loss, n_samples=n_samples, n_outputs=2 + seed % 5, random_state=seed)


@pytest.mark.parametrize("cls", CLASSES)
def test_is_a_loss(cls):
    loss = cls()
    assert isinstance(loss, Loss)
    assert isinstance(loss, DualLoss)
    assert isinstance(loss, SmoothLoss) == np.isfinite(loss.smoothness)
    assert hasattr(loss, "curvature") == hasattr(loss, "hessian_form")
    assert hasattr(loss, "curvature") == isinstance(loss, SmoothLoss)


def test_all_have_names():
    assert {*SCALAR.values(), *JOINT.values()} == set(CLASSES)
    assert all(not cls.is_classifier for cls in SCALAR.values())
    assert all(cls.is_classifier for cls in JOINT.values())


def case(cls, dtype, n_samples=30, n_outputs=4):
    rng = np.random.default_rng(3)
    y = rng.integers(n_outputs, size=n_samples)
    if not cls.is_classifier:
        y = rng.standard_normal((n_samples, n_outputs))
    if cls.is_binary:
        y = np.sign(y)
    weight = rng.uniform(size=n_samples)
    weight[:4] = 0.0
    scores = 3.0 * rng.standard_normal((n_samples, n_outputs))
    return y, scores.astype(dtype), (weight / weight.sum()).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cls", CLASSES)
def test_namespaces_agree(cls, dtype, xp):
    loss = cls()
    y, scores, weight = case(cls, dtype)
    target = loss.encode(y, 4, scores)
    value, residual = loss.value_and_residual(scores, target, weight)

    scores2, weight2 = xp.asarray(scores), xp.asarray(weight)
    target2 = loss.encode(xp.asarray(y), 4, scores2)
    value2, residual2 = loss.value_and_residual(scores2, target2, weight2)

    # Sums are ordered differently, no more.
    rtol = 1e-12 if dtype == "float64" else 1e-5
    close = {"rtol": rtol, "atol": rtol * np.abs(residual).max()}
    assert value2 == pytest.approx(value, rel=rtol)
    assert residual2.dtype == getattr(xp, dtype)
    np.testing.assert_allclose(to_numpy(residual2), residual, **close)
    np.testing.assert_array_equal(to_numpy(loss.predict(scores2)), loss.predict(scores))
    if has_probabilities(cls):
        found = loss.proba(scores2)
        assert found.dtype == getattr(xp, dtype)
        np.testing.assert_allclose(to_numpy(found), loss.proba(scores), rtol=10 * rtol)
    else:
        with pytest.raises(TypeError, match=f"^{cls.__name__} .*has no class probabilities"):
            loss.proba(scores2)


def has_probabilities(cls):
    """Whether a loss has more than the inherited error."""
    return cls.proba is not Declared.proba


def test_losses_with_probabilities():
    known = {losses.Logistic, losses.MarginSoftmax, losses.MultinomialLogistic}
    assert {cls for cls in CLASSES if has_probabilities(cls)} >= known


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cls", [cls for cls in CLASSES if isinstance(cls(), SmoothLoss)])
def test_namespaces_agree_on_second_derivatives(cls, dtype, xp):
    loss = cls()
    y, scores, weight = case(cls, dtype)
    target = loss.encode(y, 4, scores)
    rest = (loss.value_and_residual(scores, target, weight)[1], target, weight)
    target2 = loss.encode(xp.asarray(y), 4, xp.asarray(scores))
    rest2 = (xp.asarray(rest[0]), target2, xp.asarray(weight))
    direction, column = scores[:, ::-1].copy(), scores[:, 0].copy()

    rtol = 1e-12 if dtype == "float64" else 1e-5
    close = {"rtol": rtol, "atol": rtol * np.abs(rest[0]).max()}
    np.testing.assert_allclose(to_numpy(loss.curvature(*rest2)), loss.curvature(*rest), **close)
    hessian = loss.column_hessian(column, *rest)
    hessian2 = loss.column_hessian(xp.asarray(column), *rest2)
    assert hessian2.dtype == getattr(xp, dtype)
    np.testing.assert_allclose(to_numpy(hessian2), hessian, rtol=rtol, atol=10 * rtol)
    form = loss.hessian_form(direction, *rest)
    form2 = loss.hessian_form(xp.asarray(direction), *rest2)
    assert form2 == pytest.approx(form, rel=10 * rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cls", CLASSES)
def test_namespaces_agree_on_duals(cls, dtype, xp):
    loss = cls()
    y, scores, weight = case(cls, dtype)
    target = loss.encode(y, 4, scores)
    residual = loss.value_and_residual(scores, target, weight)[1]
    away = residual + weight[:, None] * scores[:, ::-1]
    target2 = loss.encode(xp.asarray(y), 4, xp.asarray(scores))
    weight2, residual2 = xp.asarray(weight), xp.asarray(residual)
    steps = np.full((len(weight), 1), 0.05, dtype=dtype)

    rtol = 1e-11 if dtype == "float64" else 1e-5
    close = {"rtol": rtol, "atol": rtol * np.abs(away).max()}
    conjugate = loss.conjugate(residual, target, weight)
    assert loss.conjugate(residual2, target2, weight2) == pytest.approx(conjugate, rel=10 * rtol)
    for step, step2 in ((0.05, 0.05), (steps, xp.asarray(steps))):
        prox = loss.prox_conjugate(away, step, target, weight)
        prox2 = loss.prox_conjugate(xp.asarray(away), step2, target2, weight2)
        assert prox2.dtype == getattr(xp, dtype)
        np.testing.assert_allclose(to_numpy(prox2), prox, **close)
    even, even2 = loss.balance(residual, target, weight), loss.balance(residual2, target2, weight2)
    assert even2.dtype == getattr(xp, dtype)
    np.testing.assert_allclose(to_numpy(even2), even, **close)

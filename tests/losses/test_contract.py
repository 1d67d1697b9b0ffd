"""Every public loss keeps the contract: a new one is tested without touching this file."""

import numpy as np
import pytest

from mixnorm import losses
from mixnorm._array import to_numpy
from mixnorm.losses import Loss
from mixnorm.testing import check_loss

PUBLIC = [getattr(losses, name) for name in losses.__all__]
CLASSES = [loss for loss in PUBLIC if not getattr(loss, "_is_protocol", False)]


@pytest.mark.parametrize("n_outputs", [2, 3, 7])
@pytest.mark.parametrize("cls", CLASSES)
def test_contract(cls, n_outputs):
    check_loss(cls(), n_outputs=n_outputs, random_state=n_outputs)


@pytest.mark.parametrize("cls", CLASSES)
def test_is_a_loss(cls):
    assert isinstance(cls(), Loss)


def case(cls, dtype, n_samples=30, n_outputs=4):
    rng = np.random.default_rng(3)
    y = rng.integers(n_outputs, size=n_samples)
    if not cls.is_classifier:
        y = rng.standard_normal((n_samples, n_outputs))
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
    direction, column = scores[:, ::-1].copy(), scores[:, 0].copy()

    others = [xp.asarray(array) for array in (scores, weight, direction, column)]
    scores2, weight2, direction2, column2 = others
    target2 = loss.encode(xp.asarray(y), 4, scores2)
    value2, residual2 = loss.value_and_residual(scores2, target2, weight2)

    # Sums are ordered differently, no more.
    rtol = 1e-12 if dtype == "float64" else 1e-5
    close = {"rtol": rtol, "atol": rtol * np.abs(residual).max()}
    assert value2 == pytest.approx(value, rel=rtol)
    assert residual2.dtype == getattr(xp, dtype)
    np.testing.assert_allclose(to_numpy(residual2), residual, **close)
    rest, rest2 = (residual, target, weight), (residual2, target2, weight2)
    np.testing.assert_allclose(to_numpy(loss.curvature(*rest2)), loss.curvature(*rest), **close)
    hessian, hessian2 = loss.column_hessian(column, *rest), loss.column_hessian(column2, *rest2)
    assert hessian2.dtype == getattr(xp, dtype)
    np.testing.assert_allclose(to_numpy(hessian2), hessian, rtol=rtol, atol=10 * rtol)
    form = loss.hessian_form(direction, *rest)
    assert loss.hessian_form(direction2, *rest2) == pytest.approx(form, rel=10 * rtol)
    np.testing.assert_array_equal(to_numpy(loss.predict(scores2)), loss.predict(scores))
    if cls.is_classifier:
        np.testing.assert_allclose(
            to_numpy(loss.proba(scores2)), loss.proba(scores), rtol=10 * rtol
        )

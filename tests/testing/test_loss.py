"""check_loss finds every kind of broken promise, and says which."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from mixnorm._params import Parameters
from mixnorm.exceptions import ContractError, MixnormError
from mixnorm.losses import (
    Absolute,
    DualLoss,
    Hinge,
    Logistic,
    Loss,
    MarginSoftmax,
    MulticlassHinge,
    MulticlassSquaredHinge,
    MultinomialLogistic,
    SmoothLoss,
    Squared,
)
from mixnorm.testing import check_loss


class HalfGradient(Squared):
    def value_and_residual(self, scores, target, weight):
        value, residual = super().value_and_residual(scores, target, weight)
        return value, 0.5 * residual


class Summed(Squared):
    """The sum over samples, whatever the weights add up to."""

    def value_and_residual(self, scores, target, weight):
        weight = weight / weight.sum() * len(weight)
        return super().value_and_residual(scores, target, weight)


class Impure(MultinomialLogistic):
    def value_and_residual(self, scores, target, weight):
        scores -= scores.max(axis=1, keepdims=True)
        return super().value_and_residual(scores, target, weight)


class NotShiftInvariant(Squared):
    shift_invariant = True


class TooSmooth(Squared):
    smoothness = 0.5


class TooSmoothInTheMaximum(Squared):
    def max_norm_smoothness(self, n_outputs):
        return 0.05


class TooLipschitz(MarginSoftmax):
    lipschitz = 0.5


class NegativeCurvature(Squared):
    def curvature(self, residual, target, weight):
        return -weight[:, None]


class FlatCurvature(Squared):
    def curvature(self, residual, target, weight):
        return weight


class ChangingCurvature(MarginSoftmax):
    constant_curvature = True


class WrongForm(MarginSoftmax):
    def hessian_form(self, direction, residual, target, weight):
        return 1.01 * super().hessian_form(direction, residual, target, weight)


class WrongColumn(MarginSoftmax):
    def column_hessian(self, column, residual, target, weight):
        return np.abs(super().column_hessian(column, residual, target, weight))


class Upcast(Squared):
    def value_and_residual(self, scores, target, weight):
        value, residual = super().value_and_residual(scores, target, weight)
        return value, residual * np.float64(1.0)


class NumPyValue(Squared):
    def value_and_residual(self, scores, target, weight):
        value, residual = super().value_and_residual(scores, target, weight)
        return np.float64(value), residual


class Overflowing(MultinomialLogistic):
    def value_and_residual(self, scores, target, weight):
        with np.errstate(all="ignore"):
            total = np.exp(scores).sum(axis=1, keepdims=True)
            residual = weight[:, None] * (np.exp(scores) / total - target.one_hot)
            own = np.log(total) - scores
            return float(weight @ (own * target.one_hot).sum(axis=1)), residual


class Warned(Overflowing):
    """Finite in the end, but by way of an overflow."""

    def value_and_residual(self, scores, target, weight):
        np.exp(scores)
        return MultinomialLogistic.value_and_residual(self, scores, target, weight)


class Unnormalised(MarginSoftmax):
    def proba(self, scores):
        return 2.0 * super().proba(scores)


class Contrary(MarginSoftmax):
    def predict(self, scores):
        return np.argmin(scores, axis=1)


class Forgetful(MarginSoftmax):
    def get_params(self, deep=True):
        return {}


class LongSubgradient(Absolute):
    def value_and_residual(self, scores, target, weight):
        value, residual = super().value_and_residual(scores, target, weight)
        return value, 1.01 * residual


class SmoothSquare(MulticlassSquaredHinge):
    """Its derivative would be right almost everywhere, but it jumps."""

    smoothness = 4.0


class RoughSecondDerivatives(Squared):
    smoothness = np.inf


class WeightsOfRows(Squared):
    def value_and_residual(self, scores, target, weight):
        weight = weight if weight.ndim == 1 else weight.sum(axis=1)
        return super().value_and_residual(scores, target, weight)


class ZeroAndOne(Logistic):
    def predict(self, scores):
        return (scores >= 0).astype(scores.dtype)


class TooLikely(Logistic):
    def proba(self, scores):
        return 1.5 * super().proba(scores)


class OtherClass(Logistic):
    def proba(self, scores):
        return super().proba(-scores)


class LabelsFromOne(MulticlassHinge):
    def predict(self, scores):
        return 1 + super().predict(scores)


class OneNumber(Squared):
    def predict(self, scores):
        return scores[:, 0]


class LargeConjugate(Hinge):
    def conjugate(self, theta, target, weight):
        return super().conjugate(theta, target, weight) + 1e-6


class SmallConjugate(MultinomialLogistic):
    """Right where the soft-max is sharp, too small elsewhere."""

    def conjugate(self, theta, target, weight):
        return 1.1 * super().conjugate(theta, target, weight)


class ConjugateEverywhere(Hinge):
    def conjugate(self, theta, target, weight):
        return float(np.sum(theta * target))


class ConjugateOfAnyRow(Squared):
    def conjugate(self, theta, target, weight):
        return super().conjugate(theta * (weight > 0)[:, None], target, weight)


class NumPyConjugate(Squared):
    def conjugate(self, theta, target, weight):
        return np.float64(super().conjugate(theta, target, weight))


class WrongBox(Hinge):
    def box_dual(self, target, weight):
        found = super().box_dual(target, weight)
        return replace(found, curvature=found.curvature + 1.0)


class NarrowBox(Absolute):
    def box_dual(self, target, weight):
        found = super().box_dual(target, weight)
        return replace(found, high=0.5 * found.high)


class ImpureConjugate(MulticlassHinge):
    def conjugate(self, theta, target, weight):
        theta -= theta.mean(axis=1, keepdims=True)
        return super().conjugate(theta, target, weight)


class ImpureProx(Squared):
    def prox_conjugate(self, theta, step, target, weight):
        theta -= 1.0
        return super().prox_conjugate(theta + 1.0, step, target, weight)


class ImpureBalance(Squared):
    def balance(self, theta, target, weight):
        theta -= super().balance(theta, target, weight)
        return super().balance(theta, target, weight)


class FreeProx(Absolute):
    def prox_conjugate(self, theta, step, target, weight):
        return theta - step * target


class LongProx(MarginSoftmax):
    def prox_conjugate(self, theta, step, target, weight):
        return super().prox_conjugate(theta, 1.001 * step, target, weight)


class ProxOfOneStep(Squared):
    def prox_conjugate(self, theta, step, target, weight):
        return super().prox_conjugate(theta, float(np.mean(step)), target, weight)


class ProxOfAnyRow(MulticlassHinge):
    def prox_conjugate(self, theta, step, target, weight):
        found = super().prox_conjugate(theta, step, target, weight)
        return np.where(weight[:, None] > 0, found, theta)


class Unbalanced(Absolute):
    def balance(self, theta, target, weight):
        return theta


class BalancedByForce(Absolute):
    def balance(self, theta, target, weight):
        return theta - theta.mean(axis=0)


class BalancedAtZero(MulticlassHinge):
    def balance(self, theta, target, weight):
        return np.zeros_like(theta)


class UpcastBalance(Squared):
    def balance(self, theta, target, weight):
        return super().balance(theta, target, weight).astype(np.float64)


BROKEN = [
    (LongSubgradient(), "the residual is a subgradient"),
    (SmoothSquare(), "smoothness=4.0"),
    (RoughSecondDerivatives(), "finite smoothness"),
    (WeightsOfRows(), "weights of entries"),
    (ZeroAndOne(), r"predict returns -1 and \+1"),
    (TooLikely(), "probabilities are at most one"),
    (OtherClass(), "most probable class"),
    (LabelsFromOne(), "predict returns labels"),
    (OneNumber(), "predict returns shape"),
    (LargeConjugate(), r"loss\(scores\) \+ conjugate\(residual\)"),
    (SmallConjugate(), r"loss\(scores\) \+ conjugate\(residual\)"),
    (ConjugateEverywhere(), r"conjugate\(theta\) >= <scores, theta>"),
    (ConjugateOfAnyRow(), "infinite where a row of weight zero is not zero"),
    (NumPyConjugate(), "Python floats"),
    (ImpureConjugate(), "conjugate does not change its arguments"),
    (ImpureProx(), "prox_conjugate does not change its arguments"),
    (ImpureBalance(), "balance does not change its arguments"),
    (FreeProx(), "prox_conjugate returns a point of the conjugate's domain"),
    (LongProx(), "prox_conjugate returns phi, a subgradient"),
    (ProxOfOneStep(), "a step for every row"),
    (ProxOfAnyRow(), "prox_conjugate is not zero there"),
    (Unbalanced(), "sums to zero in every output"),
    (BalancedByForce(), "balance returns a point of the conjugate's domain"),
    (BalancedAtZero(), "little more than its sums"),
    (UpcastBalance(), "balance keeps the dtype float32"),
    (HalfGradient(), "the residual is the derivative"),
    (Summed(), "weighted mean"),
    (Impure(), "does not change its arguments"),
    (NotShiftInvariant(), "shift_invariant"),
    (TooSmooth(), "smoothness=0.5"),
    (TooSmoothInTheMaximum(), "max_norm_smoothness"),
    (TooLipschitz(), "lipschitz=0.5"),
    (NegativeCurvature(), "curvature is not negative"),
    (FlatCurvature(), "curvature has shape"),
    (ChangingCurvature(), "constant_curvature"),
    (WrongForm(), "hessian_form"),
    (WrongColumn(), "column_hessian"),
    (Upcast(), "value_and_residual keeps the dtype float32"),
    (NumPyValue(), "Python floats"),
    (Overflowing(), "scores of 1e4"),
    (Warned(), "overflow encountered in exp"),
    (Unnormalised(), "probabilities sum to one"),
    (Contrary(), "most probable class"),
    (WrongBox(), "box_dual is the form"),
    (NarrowBox(), "beyond the bounds of box_dual"),
    (Forgetful(margin=0.5), "a copy gives the same value"),
]


@pytest.mark.parametrize(("loss", "promise"), BROKEN, ids=lambda part: type(part).__name__)
def test_broken_promises_are_found(loss, promise):
    with pytest.raises(ContractError, match=promise) as caught:
        check_loss(loss)
    assert type(loss).__name__ in str(caught.value)


def test_what_is_no_loss_at_all():
    with pytest.raises(ContractError, match=r"method of mixnorm\.losses\.Loss"):
        check_loss(object())


def test_the_error_is_an_assertion_and_ours():
    assert issubclass(ContractError, AssertionError)
    assert issubclass(ContractError, MixnormError)


def test_targets_may_be_given():
    check_loss(Squared(), y=np.arange(10.0).reshape(5, 2), n_outputs=2)
    check_loss(MarginSoftmax(), y=[0, 1, 1, 0, 3, 2], n_outputs=4)
    check_loss(MulticlassSquaredHinge(), y=[0, 1, 1, 0], n_outputs=3)  # no row has the last one
    check_loss(Hinge(), y=np.ones((4, 1)), n_outputs=1)


class Plain(Parameters):
    """The squared loss, with nothing but what every engine needs."""


for name in ("shift_invariant", "smoothness", "lipschitz", "is_classifier", "is_binary"):
    setattr(Plain, name, getattr(Squared(), name))
for name in ("encode", "value_and_residual", "proba", "predict"):
    setattr(Plain, name, getattr(Squared(), name))
Plain = dataclass(Plain)


def test_a_loss_need_not_be_smooth_nor_have_a_conjugate():
    assert isinstance(Plain(), Loss)
    assert not isinstance(Plain(), SmoothLoss | DualLoss)
    check_loss(Plain())

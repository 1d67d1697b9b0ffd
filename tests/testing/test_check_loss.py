"""check_loss finds every kind of broken promise, and says which."""

import numpy as np
import pytest

from mixnorm.exceptions import ContractError, MixnormError
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
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


BROKEN = [
    (HalfGradient(), "the residual is the derivative"),
    (Summed(), "weighted mean"),
    (Impure(), "leaves scores and weight alone"),
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

"""check_norm finds every kind of broken promise, and says which."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from mixnorm._params import Parameters
from mixnorm.exceptions import ContractError
from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm
from mixnorm.testing import check_norm

INF = math.inf


@dataclass
class Plain(Parameters):
    """A norm that can do no more than it must: three times the sum of magnitudes."""

    factor: float = 3.0

    def value(self, W):
        return self.factor * float(np.abs(W).sum(dtype=np.float64))

    def dual(self, V):
        return float(np.abs(V).max()) / self.factor


def test_what_a_norm_must_have_is_enough():
    check_norm(Plain())
    check_norm(Plain(0.1), shape=(1, 1))


# --- values


class Squared(Plain):
    def value(self, W):
        return float(np.sum(W * W))


class NotConvex(Plain):
    def value(self, W):
        return float(np.sum(np.sqrt(np.abs(W))) ** 2)


class Offset(Plain):
    def value(self, W):
        return super().value(W) + 1e-3


class NumPyValue(Plain):
    def value(self, W):
        return np.abs(W).sum()


class LargeDual(Plain):
    """Hölder's inequality holds, but is never tight."""

    def dual(self, V):
        return 2.0 * super().dual(V)


class SmallDual(Plain):
    def dual(self, V):
        return 0.5 * super().dual(V)


class Impure(Plain):
    def value(self, W):
        np.abs(W, out=W)
        return super().value(W)


class Counting(Plain):
    """Gives another value every time."""

    def value(self, W):
        self.factor *= 1.1
        return super().value(W)


class Forgetful(Plain):
    def get_params(self, deep=True):
        return {}


class Overflowing(MixedNorm):
    def value(self, W):
        return float(np.sum(np.sqrt(np.sum(W * W, axis=1))))


class Vanishing(MixedNorm):
    def dual(self, V):
        with np.errstate(over="ignore"):
            size = float(np.max(np.sqrt(np.sum(V * V, axis=1))))
        return size if size < INF else super().dual(V)


class Imprecise(MixedNorm):
    def value(self, W):
        return float(np.float16(super().value(W))) if W.dtype == np.float32 else super().value(W)


# --- prox and projection


class Identity(MixedNorm):
    def prox(self, W, tau):
        return W


class InPlace(MixedNorm):
    def prox(self, W, tau):
        W -= np.clip(W, -tau, tau)
        return W.copy()


class Hard(MixedNorm):
    """A hard threshold keeps the size of what it keeps."""

    def prox(self, W, tau):
        return W * (self.row_duals(W)[:, None] > tau)


class Gentle(MixedNorm):
    def prox(self, W, tau):
        return super().prox(W, 0.9999 * tau)


class Eager(MixedNorm):
    def prox(self, W, tau):
        return super().prox(W, 1.01 * tau)


class Flat(MixedNorm):
    def prox(self, W, tau):
        return super().prox(W, tau).ravel()


class Widened(MixedNorm):
    def prox(self, W, tau):
        return super().prox(W, tau).astype(np.float64)


class Radial(MixedNorm):
    """Scales points into the ball."""

    def project(self, W, radius):
        return W * min(1.0, radius / self.value(W)) if np.any(W) else W.copy()


class Outside(MixedNorm):
    def project(self, W, radius):
        return super().project(W, radius * (1.0 + 1e-10))


class Inside(MixedNorm):
    def project(self, W, radius):
        return super().project(W, 0.99 * radius)


class Creeping(MixedNorm):
    """Moves points on the boundary."""

    def project(self, W, radius):
        found = super().project(W, radius)
        return found if self.value(W) < 0.9 * radius else (1.0 - 1e-11) * found


class Restless(MixedNorm):
    """Moves points that are in the ball already."""

    def project(self, W, radius):
        return (1.0 - 1e-14) * super().project(W, radius)


class Alias(MixedNorm):
    def project(self, W, radius):
        return W if self.value(W) <= radius else super().project(W, radius)[:]


class Lazy(MixedNorm):
    def prox(self, W, tau):
        return W if tau == 0.0 else super().prox(W, tau)


class OtherDual(MixedNorm):
    def dual_norm(self):
        return MixedNorm(2, 1)


# --- mirror maps, linear minimisers, rows


class WrongMirror(MixedNorm):
    def mirror(self, theta):
        return theta * (self.dual(theta) / self.value(theta) if np.any(theta) else 1.0)


class LongMirror(MixedNorm):
    def mirror(self, theta):
        return 2.0 * super().mirror(theta)


class WrongLink(MixedNorm):
    def link(self, W):
        return 1.001 * super().link(W)


class NearlyRightLink(MixedNorm):
    """Differences do not see it, but the way there and back does."""

    def link(self, W):
        return (1.0 + 1e-6) * super().link(W)


class Convex(MixedNorm):
    def strong_convexity(self):
        return 1.3 * super().strong_convexity()


class Whole(MixedNorm):
    def strong_convexity(self):
        return 1


class Maximiser(MixedNorm):
    def lmo(self, G):
        return -super().lmo(G)


class Beyond(MixedNorm):
    def lmo(self, G):
        return 1.1 * super().lmo(G)


class NoTwin(MixedNorm):
    def surrogate(self, shape):
        return MixedNorm(2, 1)


class FarTwin(MixedNorm):
    def surrogate(self, shape):
        return MixedNorm(2, 2)


class LongRows(MixedNorm):
    def row_duals(self, V):
        return super().row_duals(V)[:, None]


class WrongRows(MixedNorm):
    def row_duals(self, V):
        return np.linalg.norm(V, 1, axis=1)


class WrongPart(MixedNorm):
    def restrict(self, rows):
        return MixedNorm(1, 1)


class WrongExponent(MixedNorm):
    row_exponent = 1.0


class Crooked(TraceNorm):
    def prox_factors(self, W, tau, start=None):
        left, values, right = super().prox_factors(W, tau)
        return 2.0 * left, 0.5 * values, right


class Unshrunk(TraceNorm):
    def prox(self, W, tau):
        left, values, right = super().prox_factors(W, tau)
        return (left * values) @ right

    def prox_factors(self, W, tau, start=None):
        left, values, right = super().prox_factors(W, tau)
        return left, values + tau, right


BROKEN = [
    (Squared(), "value is homogeneous"),
    (NotConvex(), "value keeps the triangle inequality"),
    (Offset(), "value is zero for an array of zeros"),
    (NumPyValue(), "value is a positive Python float"),
    (LargeDual(), "dual is one at the gradient of the value"),
    (SmallDual(), r"<W, V> is at most value\(W\) dual\(V\)|dual is one at the gradient"),
    (Impure(), "value does not change its arguments"),
    (Counting(), "value returns the same"),
    (Forgetful(0.5), "a copy gives the same value"),
    (Overflowing(), "value of an array times .* scales with it; overflow"),
    (Vanishing(), "dual of an array times .* scales with it; they differ"),
    (Imprecise(), "value of float32 is a Python float that agrees"),
    (Identity(), "prox returns an array of its own"),
    (InPlace(1, 1), "prox does not change its arguments"),
    (Hard(), "prox is optimal"),
    (Gentle(), "prox is optimal"),
    (Eager(), "prox is optimal"),
    (Flat(), r"prox with tau=0 changes nothing; shapes \(24,\) and \(6, 4\)"),
    (Widened(), "prox keeps the dtype float32"),
    (Radial(), "project is optimal"),
    (Outside(), "project returns a point of the ball; outside by 1.00"),
    (Inside(), "project is optimal"),
    (Creeping(), "project again changes nothing"),
    (Restless(), "project leaves points inside as they are"),
    (Alias(), "project of a point inside returns an array of its own"),
    (Lazy(), "prox with tau=0 returns an array of its own"),
    (OtherDual(), r"dual_norm\(\) has the dual as its value"),
    (WrongMirror(2, 1.5), "mirror keeps sizes|mirror is the gradient"),
    (LongMirror(1.5, 1.5), "mirror keeps sizes"),
    (WrongLink(2, 1.5), "link is the gradient of half the squared norm"),
    (NearlyRightLink(2, 1.5), "link and mirror are inverse to each other, up to rounding"),
    (Convex(2, 1.5), r"strong_convexity\(\)=0.65 holds between two points"),
    (Convex(1.5, 1.5), "holds between two points; the least bend of half the squared norm"),
    (Whole(2, 2), r"strong_convexity\(\)=1 is a positive Python float"),
    (Maximiser(), r"the inner product of G and lmo\(G\) is -dual\(G\)"),
    (Beyond(), "lmo returns a point of the unit ball; its value 1.1"),
    (NoTwin(), "surrogate has mirror; MixedNorm"),
    (FarTwin(1, 1), "the value lies between that of the surrogate"),
    (LongRows(), r"row_duals has shape \(6,\); got \(6, 1\)"),
    (WrongRows(), "dual is the maximum of row_duals"),
    (WrongPart(), "the values of restricted norms add up to the value"),
    (WrongExponent(), "the value is the sum of the rows' norms with row_exponent=1.0"),
    (Crooked(), "prox_factors returns orthonormal vectors"),
    (Unshrunk(), "the factors of the prox multiply to it"),
]


@pytest.mark.parametrize(("norm", "promise"), BROKEN, ids=lambda part: type(part).__name__)
def test_broken_promises_are_found(norm, promise):
    with pytest.raises(ContractError, match=promise) as caught:
        check_norm(norm)
    assert type(norm).__name__ in str(caught.value)


@pytest.mark.parametrize("q", [1.1, 1.05, 1.01, 1.001, 1.0 + 1e-9, 1.0 + 3e-16, 50.0, 1e39, 1e300])
def test_extreme_exponents_are_judged_by_what_rounding_allows(q):
    for norm in (SchattenNorm(q), MixedNorm(2, q), MixedNorm(q, q)):
        for seed, shape in enumerate([(6, 4), (5, 1), (3, 8)]):
            check_norm(norm, shape=shape, random_state=seed)


class HugeSchatten(SchattenNorm):
    def strong_convexity(self):
        return 1.2 * super().strong_convexity()


def test_singular_values_are_tried_too():
    with pytest.raises(ContractError, match="holds between two points"):
        check_norm(HugeSchatten(1.4))


def test_what_is_no_norm_at_all():
    with pytest.raises(ContractError, match=r"every method of mixnorm\.norms\.Norm"):
        check_norm(object())


def test_a_class_or_a_name_in_place_of_a_norm():
    with pytest.raises(TypeError, match=r"got the class MixedNorm. .* check_norm\(MixedNorm\("):
        check_norm(MixedNorm)
    with pytest.raises(TypeError, match=r"got the name 'l2,1'. .*as_norm\('l2,1'\)"):
        check_norm("l2,1")


class Bare:
    """A norm without parameters to ask for."""

    def value(self, W):
        return float(np.abs(W).sum())

    def dual(self, V):
        return float(np.abs(V).max())


def test_a_norm_that_cannot_be_copied():
    with pytest.raises(ContractError, match=r"it has get_params.*; derive .*BaseEstimator"):
        check_norm(Bare())

    class Local(Plain):
        pass

    with pytest.raises(ContractError, match="pickling copies it; .* the top level of a module"):
        check_norm(Local())


class Changing(Bare):
    def __init__(self, factor=1.0):
        self.factor = 2.0 * factor

    def get_params(self, deep=True):
        return {"factor": self.factor}


def test_a_norm_that_changes_its_parameters():
    with pytest.raises(ContractError, match="cloning copies it; .* keep the arguments of __init__"):
        check_norm(Changing())


def test_shapes_that_fit_groups():
    check_norm(MixedNorm(2, 1, np.asarray([0, 1, 0])), shape=(3, 2), random_state=5)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)"):
        check_norm(MixedNorm(2, 1, np.asarray([0, 1, 0])))

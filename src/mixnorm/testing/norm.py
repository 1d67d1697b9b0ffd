"""The contract of a norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.norms import Norm
from mixnorm.testing.contract import Contract, differentiate

# Step of central differences, and their error for a function of size one in float64.
_STEP_IN_WEIGHTS = 1e-6
_ERROR_OF_GRADIENTS = 1e-6
_RELATIVE_ERROR = 1e-10
# Errors of a decomposition, as a multiple of random errors of one rounding per entry.
_ROUNDINGS_OF_DECOMPOSITION = 64.0
# Distance by which a projection may lie outside its ball, relative to the radius.
_OUTSIDE = 1e-12


@dataclass(frozen=True)
class _NormCase(Contract):
    """A norm, and points to try it with."""

    points: tuple[np.ndarray, ...]

    @property
    def norm(self) -> Any:
        return self.subject

    @property
    def W(self) -> np.ndarray:
        return self.points[0]

    @property
    def V(self) -> np.ndarray:
        return self.points[1]

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return pairs of points, both far from each other and near."""
        far = zip(self.points[:-1], self.points[1:], strict=True)
        return [*far, *((point, point + 1e-3 * self.V) for point in self.points)]

    def has(self, name: str) -> bool:
        """Tell whether the norm has an ability."""
        return getattr(self.norm, name, None) is not None


def check_norm(norm: object, *, shape: tuple[int, int] = (6, 4), random_state: int = 0) -> None:
    """Check that a norm keeps the promises of :class:`mixnorm.norms.Norm`.

    The check evaluates the norm and the abilities that it has on random arrays. It tests Hölder's
    inequality and where it is an equality. Prox and projection must meet their optimality
    conditions and be better than other points. Mirror maps are compared with finite differences,
    and must be inverse to each other. Dtypes, and huge and tiny arrays, are tested too.

    Parameters
    ----------
    norm : Norm
        The norm to check.
    shape : tuple of int, default=(6, 4)
        Shape ``(n_features, n_outputs)`` of the arrays to try it with; a norm with groups needs
        the shape that fits them.
    random_state : int, default=0
        Seed of the arrays.

    Raises
    ------
    mixnorm.exceptions.ContractError
        At the first promise that is broken.

    Examples
    --------
    >>> from mixnorm.norms import MixedNorm
    >>> check_norm(MixedNorm(inner=2, outer=1))
    >>> check_norm(MixedNorm(2, 1, groups=[0, 0, 1]), shape=(3, 2))
    """
    _check_kind(norm)
    Contract(norm).require(isinstance(norm, Norm), "it has every method of mixnorm.norms.Norm")
    rng = np.random.default_rng(random_state)
    points = [rng.standard_normal(shape) for _ in range(4)]
    points[2][::2, :] *= 0.01  # rows of very different sizes
    points[3][1:2, :] = 0.0
    case = _NormCase(norm, tuple(points))
    for check in _CHECKS_OF_NORMS:
        check(case)
    for names, check_ability in _ABILITIES:
        if all(case.has(name) for name in names):
            check_ability(case)


def _check_kind(norm: object) -> None:
    """Raise a clear error for a class or a name in place of a norm."""
    if isinstance(norm, type):
        raise TypeError(
            f"check_norm takes a norm object, got the class {norm.__name__}. Make an object of it: "
            f"check_norm({norm.__name__}(...))."
        )
    if isinstance(norm, str):
        raise TypeError(
            f"check_norm takes a norm object, got the name {norm!r}. Norms that have names are "
            f"objects of mixnorm.norms: check_norm(mixnorm.norms.as_norm({norm!r}))."
        )


def _compute_inner_product(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.sum(first * second))


def _list_operations(case: _NormCase) -> dict[str, Callable[[Any], Any]]:
    """Return the operations that the norm has, as functions of one array.

    Levels are relative to the array, so that results scale with it or do not change.
    """
    norm = case.norm
    scaling: dict[str, Any] = {
        "prox": lambda W: norm.prox(W, 0.4 * norm.dual(W)),
        "project": lambda W: norm.project(W, 0.4 * norm.value(W)),
        **{name: getattr(norm, name, None) for name in ("mirror", "link", "lmo", "row_duals")},
    }
    return {name: function for name, function in scaling.items() if case.has(name)}


# --- promises of every norm


def _check_parameters(case: _NormCase) -> None:
    case.check_copies(lambda norm: norm.value(case.W))


def _check_inputs_untouched(case: _NormCase) -> None:
    plain = {"value": case.norm.value, "dual": case.norm.dual}
    for name, function in {**plain, **_list_operations(case)}.items():
        W = case.W.copy()
        first = case.call(function, W, name=name)
        same = np.array_equal(np.asarray(first), np.asarray(function(W)))
        case.require(same, f"{name} returns the same result when called again")
        if name not in plain:
            apart = not np.may_share_memory(np.asarray(first), W)
            case.require(apart, f"{name} returns an array of its own")


def _check_axioms(case: _NormCase) -> None:
    for name in ("value", "dual"):
        size = getattr(case.norm, name)
        found = size(np.zeros_like(case.W))
        case.require(found == 0.0, f"{name} is zero for an array of zeros", f"got {found}")
        for first, second in case.pairs():
            promise = f"{name} is a positive Python float"
            case.require(type(size(first)) is float and size(first) > 0.0, promise)
            promise = f"{name} is homogeneous"
            case.close(size(-2.5 * first), 2.5 * size(first), promise, rtol=_RELATIVE_ERROR)
            most = (size(first) + size(second)) * (1.0 + _RELATIVE_ERROR)
            case.at_most(size(first + second), most, f"{name} keeps the triangle inequality")


def _check_duality(case: _NormCase) -> None:
    norm = case.norm
    for first, second in case.pairs():
        most = norm.value(first) * norm.dual(second) * (1.0 + _RELATIVE_ERROR)
        case.at_most(
            abs(_compute_inner_product(first, second)), most, "<W, V> is at most value(W) dual(V)"
        )
    # The gradient of a norm has dual norm one, and attains equality in Hölder's inequality.
    slope = differentiate(norm.value, case.W, _STEP_IN_WEIGHTS)
    case.close(
        norm.dual(slope), 1.0, "dual is one at the gradient of the value", atol=_ERROR_OF_GRADIENTS
    )
    slope = differentiate(norm.dual, case.W, _STEP_IN_WEIGHTS)
    promise = "value is one at the gradient of the dual"
    case.close(norm.value(slope), 1.0, promise, atol=_ERROR_OF_GRADIENTS)


def _check_single_precision(case: _NormCase) -> None:
    operations = _list_operations(case)
    for name in ("value", "dual"):
        single = getattr(case.norm, name)(case.W.astype(np.float32))
        promise = f"{name} of float32 is a Python float that agrees with float64"
        case.require(type(single) is float, promise)
        case.close(single, getattr(case.norm, name)(case.W), promise, rtol=1e-5)
    for name, function in operations.items():
        found, wanted = function(case.W.astype(np.float32)), function(case.W)
        promise = f"{name} keeps the dtype float32"
        case.require(found.dtype == np.float32, promise, f"got {found.dtype}")
        largest = float(np.max(np.abs(wanted)))
        case.close(found, wanted, f"{name} of float32 agrees with float64", atol=1e-4 * largest)


def _check_scales(case: _NormCase) -> None:
    plain = {"value": case.norm.value, "dual": case.norm.dual}
    for dtype, power in ((np.float64, 500), (np.float32, 100)):
        for scale in (2.0**power, 2.0**-power):
            W: Any = case.W.astype(dtype)
            for name, function in {**plain, **_list_operations(case)}.items():
                promise = (
                    f"{name} of an array times {scale:.0e} in {np.dtype(dtype)} scales with it"
                )
                wanted = np.asarray(function(W), np.float64)
                try:
                    with np.errstate(over="raise", invalid="raise", divide="raise"):
                        found = np.asarray(function(W * dtype(scale)), np.float64)
                except FloatingPointError as error:
                    case.require(False, promise, str(error))
                if name != "lmo":
                    found = found / scale
                rounding = 64.0 * float(np.finfo(dtype).eps) * np.max(np.abs(wanted))
                case.close(found, wanted, promise, atol=rounding)


# --- abilities


def _check_lmo(case: _NormCase) -> None:
    norm = case.norm
    for G in case.points:
        point = np.asarray(norm.lmo(G))
        case.require(point.shape == G.shape, "lmo keeps the shape", f"got {point.shape}")
        most = 1.0 + _RELATIVE_ERROR
        case.at_most(norm.value(point), most, "lmo returns a point of the unit ball", "its value ")
        promise = "the inner product of G and lmo(G) is -dual(G)"
        case.close(_compute_inner_product(G, point), -norm.dual(G), promise, rtol=_RELATIVE_ERROR)
    size = norm.value(norm.lmo(np.zeros_like(case.W)))
    case.require(size <= 1.0 + _RELATIVE_ERROR, "lmo returns a point of the unit ball for G = 0")


def _check_dual_norm(case: _NormCase) -> None:
    norm, dual = case.norm, case.norm.dual_norm()
    for point in case.points:
        promise = "dual_norm() has the dual as its value, and the value as its dual"
        case.close(dual.value(point), norm.dual(point), promise, rtol=_RELATIVE_ERROR)
        case.close(dual.dual(point), norm.value(point), promise, rtol=_RELATIVE_ERROR)


def _check_prox(case: _NormCase) -> None:
    norm = case.norm
    for W in case.points:
        unchanged = np.asarray(norm.prox(W, 0.0))
        case.close(unchanged, W, "prox with tau=0 changes nothing", atol=_RELATIVE_ERROR)
        apart = not np.may_share_memory(unchanged, W)
        case.require(apart, "prox with tau=0 returns an array of its own")
        rest = norm.prox(W, 1.001 * norm.dual(W))
        zero = np.zeros_like(W)
        case.require(not np.any(rest), "prox is zero where tau is above the dual norm")
        case.require(not np.any(norm.prox(zero, 1.0)), "prox of zero is zero")
        for share in (0.01, 0.3, 0.9):
            tau = share * norm.dual(W)
            _check_prox_at(case, W, tau)
    tau = 0.3 * norm.dual(case.W)
    for first, second in case.pairs():
        distance = float(np.linalg.norm(norm.prox(first, tau) - norm.prox(second, tau)))
        most = float(np.linalg.norm(first - second)) * (1.0 + _RELATIVE_ERROR) + _RELATIVE_ERROR
        case.at_most(distance, most, "prox does not move points apart")


def _check_prox_at(case: _NormCase, W: np.ndarray, tau: float) -> None:
    norm, found = case.norm, np.asarray(case.norm.prox(W, tau))
    size = norm.value(found)
    promise = "prox is optimal: W - prox(W, tau) is tau times a subgradient of the value"
    case.at_most(norm.dual(W - found) / tau, 1.0 + _RELATIVE_ERROR, promise, "dual / tau: ")
    product, wanted = _compute_inner_product(W - found, found), tau * size
    case.close(product, wanted, promise, atol=_RELATIVE_ERROR * tau * norm.value(W))
    reached = tau * size + 0.5 * float(np.sum((found - W) ** 2))
    for other in (W, 0.9 * found, found + 0.1 * case.V, found + 1e-4 * case.W):
        objective = tau * norm.value(other) + 0.5 * float(np.sum((other - W) ** 2))
        least = reached * (1.0 - _RELATIVE_ERROR)
        case.at_most(least, objective, "no other point is better than prox")


def _check_project(case: _NormCase) -> None:
    norm = case.norm
    for W in case.points:
        value = norm.value(W)
        case.require(not np.any(norm.project(W, 0.0)), "project with radius 0 returns zeros")
        inside = np.asarray(norm.project(W, 1.5 * value))
        case.require(np.array_equal(inside, W), "project leaves points inside as they are")
        apart = not np.may_share_memory(inside, W)
        case.require(apart, "project of a point inside returns an array of its own")
        for share in (0.01, 0.3, 0.95):
            _check_project_at(case, W, share * value)
    case.require(not np.any(norm.project(np.zeros_like(case.W), 1.0)), "project of zero is zero")


def _check_project_at(case: _NormCase, W: np.ndarray, radius: float) -> None:
    norm, found = case.norm, np.asarray(case.norm.project(W, radius))
    beyond = norm.value(found) / radius - 1.0
    case.at_most(beyond, _OUTSIDE, "project returns a point of the ball", "outside by ")
    promise = "project again changes nothing"
    case.close(norm.project(found, radius), found, promise, atol=1e-12 * radius)
    promise = "project is optimal: W - project(W, radius) supports the ball there"
    most, product = radius * norm.dual(W - found), _compute_inner_product(W - found, found)
    allowed = _RELATIVE_ERROR * radius * norm.dual(W)
    case.close(product, most, promise, atol=allowed)
    least = float(np.linalg.norm(W - found)) * (1.0 - _RELATIVE_ERROR)
    for other in (found + 0.01 * case.V, found + case.W, W, case.V):
        inside_point = other * min(1.0, radius / norm.value(other))
        distance = float(np.linalg.norm(W - inside_point))
        case.at_most(least, distance, "no point of the ball is nearer than project")


def _check_moreau(case: _NormCase) -> None:
    dual = case.norm.dual_norm()
    if getattr(dual, "project", None) is None:
        return
    for W in case.points:
        tau = 0.3 * case.norm.dual(W)
        total = np.asarray(case.norm.prox(W, tau)) + np.asarray(dual.project(W, tau))
        promise = "prox and the projection on the dual ball add up to the point"
        case.close(total, W, promise, atol=_RELATIVE_ERROR * float(np.max(np.abs(W))))


def _check_factors(case: _NormCase) -> None:
    norm, tau = case.norm, 0.3 * case.norm.dual(case.W)
    left, values, right = (np.asarray(part) for part in norm.prox_factors(case.W, tau))
    promise = "the factors of the prox multiply to it"
    case.close((left * values) @ right, norm.prox(case.W, tau), promise, atol=_RELATIVE_ERROR)
    case.require(np.all(values > 0.0), "prox_factors returns only positive values")
    one = np.eye(len(values))
    promise = "prox_factors returns orthonormal vectors"
    case.close(left.T @ left, one, promise, atol=_RELATIVE_ERROR)
    case.close(right @ right.T, one, promise, atol=_RELATIVE_ERROR)


def _check_mirror(case: _NormCase) -> None:
    norm = case.norm
    for point in case.points:
        size = norm.value(np.asarray(norm.mirror(point)))
        promise = "mirror keeps sizes: value(mirror(theta)) is dual(theta)"
        case.close(size, norm.dual(point), promise, rtol=_RELATIVE_ERROR)
    _check_half_square(case, "mirror", norm.dual)


def _check_half_square(case: _NormCase, name: str, size: Callable[[np.ndarray], float]) -> None:
    """Check that a map is the gradient of half the square of a norm or of its dual."""
    gradient = getattr(case.norm, name)
    case.require(not np.any(gradient(np.zeros_like(case.W))), f"{name} of zero is zero")
    slope = differentiate(lambda W: 0.5 * size(W) ** 2, case.W, _STEP_IN_WEIGHTS)
    which = "norm" if name == "link" else "dual norm"
    promise = f"{name} is the gradient of half the squared {which}"
    case.close(gradient(case.W), slope, promise, atol=_ERROR_OF_GRADIENTS * size(case.W) ** 2)


def _check_round_trip(case: _NormCase) -> None:
    norm = case.norm
    for point in case.points[:2]:
        promise = "link and mirror are inverse to each other, up to rounding"
        for there, back in ((norm.mirror, norm.link), (norm.link, norm.mirror)):
            image = np.asarray(there(point))
            allowed = 1e-8 * float(np.max(np.abs(point))) + _estimate_rounding(back, image)
            case.close(back(image), point, promise, atol=allowed)


def _estimate_rounding(function: Callable[[np.ndarray], Any], point: np.ndarray) -> float:
    """Return the effect of rounding a point on the value of a function.

    An invertible map may bring numbers so close together that rounding loses them. If the norm is
    nearly the trace norm, small singular values of ``mirror`` are far below the rounding errors of
    large ones.
    """
    size = float(np.finfo(point.dtype).eps) * float(np.max(np.abs(point)))
    noise = np.random.default_rng(0).standard_normal((3, *point.shape))
    found = np.asarray(function(point))
    moved = [np.max(np.abs(np.asarray(function(point + size * part)) - found)) for part in noise]
    return _ROUNDINGS_OF_DECOMPOSITION * float(max(moved))


def _check_strong_convexity(case: _NormCase) -> None:
    norm, constant = case.norm, case.norm.strong_convexity()
    promise = f"strong_convexity()={constant} is a positive Python float"
    case.require(type(constant) is float and constant > 0.0, promise)
    # The bend is often smallest at equal entries or singular values, of which every second one
    # grows.
    ones, diagonal = np.ones_like(case.W), np.eye(*case.W.shape)
    turns = np.where(np.indices(ones.shape).sum(axis=0) % 2, -0.1, 0.1)
    steps = np.where(np.arange(len(diagonal)) % 2, -0.1, 0.1)[:, None] * diagonal
    flat = [(ones, ones + turns), (diagonal, diagonal + steps)]
    for first, second in case.pairs() + flat:
        ends = 0.5 * (norm.value(first) ** 2 + norm.value(second) ** 2)
        middle = norm.value(0.5 * (first + second)) ** 2
        least = 0.25 * constant * norm.value(first - second) ** 2 - 1e-13 * ends
        promise = f"strong_convexity()={constant} holds between two points"
        case.at_most(least, ends - middle, promise, "the least bend of half the squared norm ")


def _check_surrogate(case: _NormCase) -> None:
    norm, surrogate = case.norm, case.norm.surrogate(case.W.shape)
    for name in ("mirror", "strong_convexity"):
        there = getattr(surrogate, name, None) is not None
        case.require(there, f"surrogate has {name}", f"{surrogate!r} has not")
    for point in case.points:
        value, other = norm.value(point), surrogate.value(point)
        promise = "the value lies between that of the surrogate and e times that"
        case.at_most(other * (1.0 - _RELATIVE_ERROR), value, promise)
        case.at_most(value, math.e * other, promise)


def _check_row_duals(case: _NormCase) -> None:
    norm = case.norm
    for V in case.points:
        duals = np.asarray(norm.row_duals(V))
        shape = (V.shape[0],)
        case.require(duals.shape == shape, f"row_duals has shape {shape}", f"got {duals.shape}")
        case.close(
            norm.dual(V), np.max(duals), "dual is the maximum of row_duals", rtol=_RELATIVE_ERROR
        )


def _check_restrict(case: _NormCase) -> None:
    norm, W = case.norm, case.W
    duals = np.asarray(norm.row_duals(W))  # of random rows those are equal that share a block
    level = np.sort(np.unique(duals))[len(np.unique(duals)) // 2]
    rows, others = np.flatnonzero(duals < level), np.flatnonzero(duals >= level)
    parts = [(norm.restrict(index), index) for index in (rows, others) if len(index)]
    total = sum(part.value(W[index]) for part, index in parts)
    promise = "the values of restricted norms add up to the value"
    case.close(total, norm.value(W), promise, rtol=_RELATIVE_ERROR)
    for part, index in parts:
        found = np.asarray(part.row_duals(W[index]))
        promise = "row_duals of a restricted norm are those of the rows"
        case.close(found, duals[index], promise, rtol=_RELATIVE_ERROR)
        case.close(part.dual(W[index]), np.max(duals[index]), promise, rtol=_RELATIVE_ERROR)


def _check_row_exponent(case: _NormCase) -> None:
    exponent = case.norm.row_exponent
    total = float(np.sum(np.linalg.norm(case.W, exponent, axis=1)))
    promise = f"the value is the sum of the rows' norms with row_exponent={exponent}"
    case.close(case.norm.value(case.W), total, promise, rtol=_RELATIVE_ERROR)


_CHECKS_OF_NORMS = (
    _check_inputs_untouched,
    _check_parameters,
    _check_axioms,
    _check_duality,
    _check_single_precision,
    _check_scales,
)

_ABILITIES: tuple[tuple[tuple[str, ...], Callable[[_NormCase], None]], ...] = (
    (("lmo",), _check_lmo),
    (("dual_norm",), _check_dual_norm),
    (("prox",), _check_prox),
    (("project",), _check_project),
    (("prox", "dual_norm"), _check_moreau),
    (("prox", "prox_factors"), _check_factors),
    (("mirror",), _check_mirror),
    (("link",), lambda case: _check_half_square(case, "link", case.norm.value)),
    (("mirror", "link"), _check_round_trip),
    (("strong_convexity",), _check_strong_convexity),
    (("surrogate",), _check_surrogate),
    (("row_duals",), _check_row_duals),
    (("row_duals", "restrict"), _check_restrict),
    (("row_exponent",), _check_row_exponent),
)

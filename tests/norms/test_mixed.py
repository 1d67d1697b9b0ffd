"""Mixed norms, against sums over blocks spelled out, general solvers and printed formulas."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

from mixnorm.norms import MixedNorm
from mixnorm.norms.base import conjugate

INF = math.inf
PAIRS = [(1, 1), (2, 1), (INF, 1), (2, 2), (1.5, 1.5), (2, 1.25), (1, 2), (INF, 3), (2, INF)]
PROXIMAL = [(1, 1), (2, 1), (INF, 1), (2, 2), (1, INF), (2, INF), (INF, INF)]


def labels_of(groups, shape):
    """Return the block of every entry."""
    if groups is None:
        return np.broadcast_to(np.arange(shape[0])[:, None], shape)
    if isinstance(groups, str):
        return np.broadcast_to(np.arange(shape[1]), shape)
    groups = np.asarray(groups)
    return np.broadcast_to(groups[:, None] if groups.ndim == 1 else groups, shape)


def spelled_out(W, inner, outer, groups):
    labels = labels_of(groups, W.shape)
    norms = [np.linalg.norm(W[labels == label], inner) for label in np.unique(labels)]
    return np.linalg.norm(norms, outer)


def draw_groups(kind, shape, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "rows":
        return rng.integers(0, 1 + shape[0] // 2, size=shape[0])
    if kind == "entries":
        return rng.integers(0, 1 + math.prod(shape) // 3, size=shape)
    return kind


SHARES = st.floats(0.0, 1.25, width=16)
GROUPS = [None, "outputs", "rows", "entries"]


@st.composite
def cases(draw, pairs):
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    W = rng.standard_normal(shape)
    if draw(st.booleans()):  # ties and zeros
        W = np.round(W)
    inner, outer = draw(st.sampled_from(pairs))
    return MixedNorm(inner, outer, draw_groups(draw(st.sampled_from(GROUPS)), shape, seed)), W


@given(cases(PAIRS))
def test_values(case):
    norm, W = case
    value = spelled_out(W, norm.inner, norm.outer, norm.groups)
    assert norm.value(W) == pytest.approx(value, rel=1e-13)
    inner, outer = conjugate(norm.inner), conjugate(norm.outer)
    assert norm.dual(W) == pytest.approx(spelled_out(W, inner, outer, norm.groups), rel=1e-13)


@given(cases(PAIRS), st.integers(0, 99))
def test_hoelder(case, seed):
    norm, W = case
    V = np.random.default_rng(seed).standard_normal(W.shape)
    assert np.sum(W * V) <= norm.value(W) * norm.dual(V) * (1.0 + 1e-12)
    point = norm.lmo(V)
    assert norm.value(point) == pytest.approx(1.0, rel=1e-12)
    assert np.sum(point * V) == pytest.approx(-norm.dual(V), rel=1e-12)


def nearest(W, norm, radius):
    """Return the nearest point of the ball, by sequential quadratic programming.

    Signs stay as they are, so that the search is over magnitudes and a bound for each block.
    """
    labels = np.unique(labels_of(norm.groups, W.shape), return_inverse=True)[1].reshape(-1)
    sizes, n = np.abs(W).ravel(), W.size
    count = int(labels.max()) + 1
    member = np.eye(count)[labels].T

    def room(z):
        x, bound = z[:n], z[n:]
        if norm.inner == INF:
            inside = bound[labels] - x
        elif norm.inner == 1:
            inside = bound - member @ x
        else:
            inside = bound - np.sqrt(member @ (x * x) + 1e-20)
        return np.append(inside, radius - bound.sum())

    start = np.append(np.zeros(n), np.full(count, radius / (2 * count)))
    found = minimize(
        lambda z: 0.5 * np.sum((z[:n] - sizes) ** 2),
        start,
        method="SLSQP",
        bounds=[(0.0, None)] * len(start),
        constraints={"type": "ineq", "fun": room},
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return np.sign(W) * found.x[:n].reshape(W.shape)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("pair", [(1, 1), (2, 1), (INF, 1)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_project_against_a_general_solver(pair, groups, share):
    W = np.random.default_rng(3).standard_normal((4, 3))
    norm = MixedNorm(*pair, draw_groups(groups, W.shape))
    radius = share * norm.value(W)
    found, wanted = norm.project(W, radius), nearest(W, norm, radius)
    # The solver is good to about the root of its tolerance, less at the kink of a Euclidean norm.
    np.testing.assert_allclose(found, wanted, atol=5e-4 if norm.inner == 2 else 2e-5)
    # A point a little outside the ball may be nearer, so the solver's is drawn back into it.
    wanted *= min(1.0, radius / norm.value(wanted))
    assert np.linalg.norm(W - found) <= np.linalg.norm(W - wanted) * (1.0 + 1e-12)


@given(cases(PROXIMAL), SHARES)
def test_project(case, share):
    """The nearest point is the one at which W - P supports the ball."""
    norm, W = case
    radius = share * norm.value(W)
    found = norm.project(W, radius)
    assert norm.value(found) <= radius * (1.0 + 1e-12)
    if share >= 1.0:
        np.testing.assert_array_equal(found, W)
    np.testing.assert_array_equal(norm.project(found, radius), found)
    gap = radius * norm.dual(W - found) - np.sum((W - found) * found)
    assert abs(gap) <= 1e-12 * radius * norm.dual(W)


@given(cases(PROXIMAL), SHARES)
def test_prox(case, share):
    """Moreau: what is taken away is the projection on the dual ball."""
    norm, W = case
    tau = share * norm.dual(W)
    found = norm.prox(W, tau)
    assert norm.dual(W - found) <= tau * (1.0 + 1e-12)
    gap = tau * norm.value(found) - np.sum((W - found) * found)
    assert abs(gap) <= 1e-12 * tau * norm.value(W)
    projected = norm.dual_norm().project(W, tau)
    np.testing.assert_allclose(found + projected, W, atol=1e-13 * (1.0 + np.abs(W).max()))
    if share > 1.0:
        assert not np.any(found)


def test_prox_by_hand():
    W = np.asarray([[3.0, -4.0], [0.6, 0.8], [0.0, 0.0]])
    zero = [0.0, 0.0]
    found = MixedNorm(1, 1).prox(W, 1.0)
    np.testing.assert_allclose(found, [[2.0, -3.0], zero, zero])
    found = MixedNorm(2, 1).prox(W, 2.5)
    np.testing.assert_allclose(found, [[1.5, -2.0], zero, zero])
    found = MixedNorm(INF, 1).prox(W, 3.0)
    np.testing.assert_allclose(found, [[2.0, -2.0], zero, zero])
    found = MixedNorm(INF, 1, "outputs").prox(W, 0.5)
    np.testing.assert_allclose(found, [[2.5, -3.5], [0.6, 0.8], zero])
    found = MixedNorm(2, 2).prox(W, 0.5 * math.sqrt(26.0))
    np.testing.assert_allclose(found, 0.5 * W)


def test_project_by_hand():
    W = np.asarray([[3.0, -4.0], [0.6, 0.8]])
    np.testing.assert_allclose(MixedNorm(1, 1).project(W, 3.0), [[1.0, -2.0], [0.0, 0.0]])
    np.testing.assert_allclose(MixedNorm(2, 1).project(W, 4.0), [[2.4, -3.2], [0.0, 0.0]])
    found = MixedNorm(2, 1).project(W, 5.0)
    np.testing.assert_allclose(found, [[2.7, -3.6], [0.3, 0.4]])
    found = MixedNorm(INF, 1).project(W, 4.0)
    np.testing.assert_allclose(found, [[3.0, -10 / 3], [0.6, 2 / 3]], atol=0.2)
    assert MixedNorm(INF, 1).value(found) == pytest.approx(4.0)


# --- mirror maps

SMOOTH = [(1.5, 1.5), (2, 1.5), (2, 2), (1.1, 1.1), (2, 1.1)]


@given(cases(SMOOTH))
def test_mirror_formula(case):
    """The formulas as printed, with no care for overflow."""
    norm, theta = case
    assume(np.all(theta != 0.0))
    p = conjugate(norm.outer)
    size = norm.dual(theta)
    if norm.inner == norm.outer:
        wanted = np.sign(theta) * np.abs(theta) ** (p - 1) / size ** (p - 2)
    else:
        labels = labels_of(norm.groups, theta.shape)
        wanted = np.empty_like(theta)
        for label in np.unique(labels):
            block = labels == label
            inside = np.linalg.norm(theta[block])
            wanted[block] = theta[block] * inside ** (p - 2) / size ** (p - 2)
    np.testing.assert_allclose(norm.mirror(theta), wanted, rtol=1e-10, atol=1e-12)


@given(cases(SMOOTH))
def test_round_trip(case):
    norm, W = case
    # Far below the largest, powers of ten and more vanish in rounding.
    np.testing.assert_allclose(norm.mirror(norm.link(W)), W, rtol=1e-9, atol=1e-12)
    assert norm.dual(norm.link(W)) == pytest.approx(norm.value(W), rel=1e-12)


@given(cases(SMOOTH), st.integers(0, 99), st.sampled_from([1e-2, 1.0, 10.0]))
def test_strong_convexity(case, seed, length):
    norm, u = case
    v = u + length * np.random.default_rng(seed).standard_normal(u.shape)
    gap = 0.5 * norm.value(v) ** 2 - 0.5 * norm.value(u) ** 2 - np.sum(norm.link(u) * (v - u))
    least = 0.5 * norm.strong_convexity() * norm.value(v - u) ** 2
    assert gap >= least - 1e-12 * (norm.value(u) ** 2 + norm.value(v) ** 2)


def test_strong_convexity_is_tight():
    """For equal blocks of which half grow, nothing more can be said."""
    for norm in (MixedNorm(1.3, 1.3), MixedNorm(2, 1.3)):
        u = np.ones((4, 1))
        v = u + 1e-3 * np.asarray([[1.0], [-1.0], [1.0], [-1.0]])
        gap = 0.5 * norm.value(v) ** 2 - 0.5 * norm.value(u) ** 2 - np.sum(norm.link(u) * (v - u))
        assert gap == pytest.approx(0.5 * 0.3 * norm.value(v - u) ** 2, rel=1e-3)
        assert norm.strong_convexity() == pytest.approx(0.3)
    assert MixedNorm(2, 2).strong_convexity() == 1.0


@pytest.mark.parametrize(
    ("norm", "shape", "count", "inner"),
    [
        (MixedNorm(1, 1), (300, 20), 6000, None),
        (MixedNorm(2, 1), (300, 20), 300, 2),
        (MixedNorm(2, 1, "outputs"), (300, 20), 20, 2),
        (MixedNorm(2, 1, np.arange(300) // 10), (300, 20), 30, 2),
        (MixedNorm(1, 1), (2, 2), math.e**2, None),
        (MixedNorm(2, 1), (1, 7), math.e**2, 2),
    ],
)
def test_twin(norm, shape, count, inner):
    twin, p = norm.surrogate(shape), math.log(count)
    assert twin.outer == pytest.approx(p / (p - 1.0), rel=1e-12)
    assert twin.inner == (twin.outer if inner is None else inner)
    assert twin.groups is norm.groups
    W = np.random.default_rng(0).standard_normal(shape)
    assert twin.value(W) * (1.0 - 1e-15) <= norm.value(W) <= math.e * twin.value(W)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_twins_of_large_arrays(dtype):
    rng = np.random.default_rng(0)
    theta = (1e3 * rng.standard_normal((40_000, 3))).astype(dtype)
    for norm in (MixedNorm(1, 1), MixedNorm(2, 1)):
        twin = norm.surrogate(theta.shape)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            W = twin.mirror(theta)
        assert W.dtype == np.dtype(dtype)
        assert twin.value(W) == pytest.approx(twin.dual(theta), rel=1e-4)
        assert np.sum(W.astype(float) * theta) == pytest.approx(twin.dual(theta) ** 2, rel=1e-4)


# --- abilities

ABILITIES = {
    "prox": PROXIMAL,
    "project": PROXIMAL,
    "mirror": [(1.5, 1.5), (2, 1.25), (2, 2)],
    "link": [(1.5, 1.5), (2, 1.25), (2, 2)],
    "strong_convexity": [(1.5, 1.5), (2, 1.25), (2, 2)],
    "surrogate": [(1, 1), (2, 1)],
    "row_duals": [(1, 1), (2, 1), (INF, 1)],
    "restrict": [(1, 1), (2, 1), (INF, 1)],
    "row_exponent": [(1, 1), (2, 1), (INF, 1)],
    "lmo": [*PAIRS, *PROXIMAL],
    "dual_norm": [*PAIRS, *PROXIMAL],
}


@pytest.mark.parametrize("name", ABILITIES)
@pytest.mark.parametrize("pair", sorted({*PAIRS, *PROXIMAL}))
def test_abilities(name, pair):
    assert hasattr(MixedNorm(*pair), name) == (pair in ABILITIES[name])
    assert hasattr(MixedNorm, name)  # for the documentation


def test_abilities_of_rows_need_rows():
    labels = np.asarray([0, 0, 1])
    for name, found in [("row_duals", True), ("restrict", True), ("row_exponent", False)]:
        assert hasattr(MixedNorm(2, 1, labels), name) == found
        assert hasattr(MixedNorm(2, 1, [0, 0, 1]), name) == found
        assert not hasattr(MixedNorm(2, 1, "outputs"), name)
        assert not hasattr(MixedNorm(2, 1, np.zeros((3, 2), int)), name)


def test_what_is_missing_is_said():
    with pytest.raises(AttributeError, match=r"outer=1.5, .* has no prox; mixed norms with outer"):
        MixedNorm(2, 1.5).prox(np.ones((2, 2)), 1.0)
    with pytest.raises(AttributeError, match="has no row_exponent; norms with outer=1"):
        _ = MixedNorm(2, 1, "outputs").row_exponent


# --- rows


@pytest.mark.parametrize("inner", [1, 2, INF])
@pytest.mark.parametrize("groups", [None, [5, 3, 3, 5, 0, 5]])
def test_row_duals(inner, groups):
    V = np.random.default_rng(0).standard_normal((6, 3))
    norm = MixedNorm(inner, 1, groups)
    found = norm.row_duals(V)
    labels = labels_of(groups, V.shape)
    wanted = [np.linalg.norm(V[labels == row[0]], conjugate(inner)) for row in labels]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert found.max() == pytest.approx(norm.dual(V), rel=1e-15)
    if groups is None:
        assert norm.row_exponent == inner
        assert type(norm.row_exponent) is float


def test_restricted():
    labels = np.asarray([5, 3, 3, 5, 0, 5])
    V = np.random.default_rng(0).standard_normal((6, 3))
    norm = MixedNorm(2, 1, labels)
    rows = np.asarray([5, 0, 3, 4])
    part = norm.restrict(rows)
    np.testing.assert_array_equal(part.groups, [5, 5, 5, 0])
    np.testing.assert_allclose(part.row_duals(V[rows]), norm.row_duals(V)[rows])
    mask = np.asarray([True, False, False, True, True, True])
    assert part.value(V[rows]) == pytest.approx(norm.restrict(mask).value(V[mask]))
    for bad in ([0, 3], [1], [0, 3, 5, 5]):
        with pytest.raises(ValueError, match=r"part of a group.* Add the other rows"):
            norm.restrict(np.asarray(bad))
    plain = MixedNorm(INF, 1)
    assert plain.restrict(rows) == plain


def test_restricted_to_nothing():
    none, V = np.zeros(0, np.int64), np.zeros((0, 3))
    for norm in (MixedNorm(2, 1), MixedNorm(INF, 1), MixedNorm(1, 1), MixedNorm(2, 1, [0, 1, 1])):
        part = norm.restrict(none)
        assert part.value(V) == part.dual(V) == 0.0
        assert part.row_duals(V).shape == (0,)
        for found in (part.prox(V, 1.0), part.project(V, 1.0), part.lmo(V)):
            assert found.shape == (0, 3)


# --- scales, zeros, copies


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("pair", sorted({*PAIRS, *PROXIMAL}))
def test_scales(pair, groups, scale):
    W = np.random.default_rng(0).standard_normal((5, 3))
    norm = MixedNorm(*pair, draw_groups(groups, W.shape))
    close = {"rtol": 1e-12, "atol": 1e-13}
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert norm.value(scale * W) == pytest.approx(scale * norm.value(W), rel=1e-13)
        assert norm.dual(scale * W) == pytest.approx(scale * norm.dual(W), rel=1e-13)
        np.testing.assert_allclose(norm.lmo(scale * W), norm.lmo(W), **close)
        if hasattr(norm, "prox"):
            tau, radius = 0.4 * norm.dual(W), 0.4 * norm.value(W)
            found = norm.prox(scale * W, scale * tau) / scale
            np.testing.assert_allclose(found, norm.prox(W, tau), **close)
            found = norm.project(scale * W, scale * radius) / scale
            np.testing.assert_allclose(found, norm.project(W, radius), **close)
        if hasattr(norm, "mirror"):
            np.testing.assert_allclose(norm.mirror(scale * W) / scale, norm.mirror(W), **close)
            np.testing.assert_allclose(norm.link(scale * W) / scale, norm.link(W), **close)


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (1, 4), (4, 1)])
@pytest.mark.parametrize("pair", sorted({*PAIRS, *PROXIMAL}))
def test_zeros(pair, shape):
    zero, norm = np.zeros(shape), MixedNorm(*pair)
    assert norm.value(zero) == norm.dual(zero) == 0.0
    for name in ("mirror", "link", "lmo", "row_duals"):
        if hasattr(norm, name):
            assert not np.any(getattr(norm, name)(zero))
    for name in ("prox", "project"):
        if hasattr(norm, name):
            for level in (0.0, 1.0):
                assert not np.any(getattr(norm, name)(zero, level))


def test_one_row_or_column():
    row, column = np.asarray([[3.0, -4.0]]), np.asarray([[3.0], [-4.0]])
    for pair in sorted({*PAIRS, *PROXIMAL}):
        inner, outer = pair
        assert MixedNorm(*pair).value(row) == pytest.approx(np.linalg.norm(row[0], inner))
        assert MixedNorm(*pair).value(column) == pytest.approx(np.linalg.norm(column[:, 0], outer))


def test_lmo_is_sparse():
    G = np.random.default_rng(0).standard_normal((6, 4))
    for inner, entries in ((1, 1), (2, 4), (INF, 4)):
        point = MixedNorm(inner, 1).lmo(G)
        assert np.count_nonzero(point) == entries
        assert np.count_nonzero(np.any(point, axis=1)) == 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("pair", PROXIMAL)
def test_memory_order(pair, groups, order):
    W = np.random.default_rng(0).standard_normal((5, 4))
    norm = MixedNorm(*pair, draw_groups(groups, W.shape))
    other, before = np.asarray(W, order=order), W.copy()
    strided = np.zeros((10, 8))[::2, ::2]
    strided[...] = W
    for array in (other, strided):
        for operation, level in ((norm.prox, 0.3), (norm.project, 1.0)):
            np.testing.assert_allclose(operation(array, level), operation(W, level), atol=1e-14)
            np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("groups", [None, "outputs", [0, 0, 1], (0, 0, 1), np.asarray([0, 0, 1])])
def test_copies(groups):
    norm = MixedNorm(2, 1, groups)
    value = norm.value(np.ones((3, 2)))
    for copy in (clone(norm), pickle.loads(pickle.dumps(norm))):
        assert copy == norm
        assert copy is not norm
        assert copy.value(np.ones((3, 2))) == value
        assert repr(copy) == repr(norm)
    assert set(norm.__getstate__()) == {"inner", "outer", "groups"}


def test_equality():
    labels = np.asarray([0, 0, 1])
    assert MixedNorm() == MixedNorm(2.0, 1.0)
    assert MixedNorm() != MixedNorm(1, 1)
    assert MixedNorm() != MixedNorm(groups="outputs")
    assert MixedNorm(groups=labels) == MixedNorm(groups=labels.copy())
    assert MixedNorm(groups=labels) != MixedNorm(groups=labels[::-1])
    assert MixedNorm(groups=labels) != MixedNorm()
    assert MixedNorm() != "l2,1"


@pytest.mark.parametrize(
    ("inner", "outer", "error", "message"),
    [
        (2, 0.5, ValueError, r"outer=0.5\) is not convex, so it is not a norm; use outer >= 1"),
        (0, 1, ValueError, "is not a norm; use inner >= 1"),
        (3, 1, ValueError, "inner must be 1, 2, infinity or the same as outer"),
        (2, math.nan, ValueError, "outer=nan"),
        ("2", 1, TypeError, "inner='2'.* is not a number; give an exponent"),
        (2, None, TypeError, "outer=None"),
        (True, 1, TypeError, "inner=True"),
    ],
)
def test_bad_exponents(inner, outer, error, message):
    norm = MixedNorm(inner, outer)
    for call in (norm.check, lambda: norm.value(np.ones((2, 2))), norm.dual_norm):
        with pytest.raises(error, match=message):
            call()


def test_results_are_new_arrays():
    W = np.ones((3, 2))
    for pair in PROXIMAL:
        norm = MixedNorm(*pair)
        for found in (norm.prox(W, 0.0), norm.project(W, 100.0)):
            assert not np.may_share_memory(found, W)
            np.testing.assert_array_equal(found, W)


@pytest.mark.parametrize("pair", [(2, 1), (2, INF), (2, 1.5), (2, 1.001), (1, 1), (INF, 1)])
def test_rows_of_which_the_inverse_overflows(pair):
    W, norm = np.asarray([[1.0], [1e-310], [0.5]]), MixedNorm(*pair)
    kept = norm.restrict([0, 2]) if hasattr(norm, "restrict") else norm
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for name, level in (("prox", 0.3), ("project", 0.3), ("mirror", None), ("link", None)):
            if hasattr(norm, name):
                given = () if level is None else (level,)
                found = getattr(norm, name)(W, *given)
                wanted = getattr(kept, name)(W[[0, 2]], *given)
                np.testing.assert_allclose(found[[0, 2]], wanted, rtol=1e-12)
                assert abs(found[1, 0]) <= 1.0
        assert norm.value(norm.lmo(W)) == pytest.approx(1.0)


@pytest.mark.parametrize(("inner", "outer"), [(1, 1), (2, 1), (INF, 1), (2, 2)])
def test_projections_of_points_whose_norm_overflows(inner, outer):
    norm, W = MixedNorm(inner, outer), np.array([[1.0, -0.9], [-0.5, 0.8], [0.7, 0.6]])
    wanted = norm.project(W, 0.5)
    np.testing.assert_allclose(norm.project(1.7e308 * W, 0.5 * 1.7e308) / 1.7e308, wanted)
    assert not np.any(norm.project(1.7e308 * W, 0.0))
    assert np.isnan(norm.project(np.array([[INF, 1.0]]), 1.0)).all()


@pytest.mark.parametrize("groups", [None, "outputs"])
def test_proximal_points_of_which_sums_overflow(groups):
    norm, W = MixedNorm(INF, 1, groups), np.array([[1.0, -0.9], [-0.5, 0.8], [0.7, 1e-250]])
    for tau in (1e-3, 0.5, 1.0):
        found = norm.prox(1.7e308 * W, 1.7e308 * tau) / 1.7e308
        np.testing.assert_allclose(found, norm.prox(W, tau))


def test_maps_of_points_whose_norm_overflows():
    W = np.array([[1.0, -0.9], [-0.5, 0.8], [0.7, 0.6]])
    for norm in (MixedNorm(2, 2), MixedNorm(1.5, 1.5)):
        np.testing.assert_allclose(norm.mirror(1.7e308 * W) / 1.7e308, norm.mirror(W))
    assert np.isinf(MixedNorm(INF, 1).row_duals(1.7e308 * W)).tolist() == [True, True, True]

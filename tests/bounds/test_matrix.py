"""Rademacher complexity and excess risk: bounds against random signs and against samples."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mixnorm import bounds
from mixnorm.bounds.radii import find_strongly_convex, radii, row_norms
from mixnorm.norms import MixedNorm, SchattenNorm, as_norm

NORMS = ["l1,1", "l2,1", "l2,2", "trace"]
each_norm = pytest.mark.parametrize("norm", NORMS)
OTHERS = [
    MixedNorm(2, 1.5),
    MixedNorm(1.3, 1.3),
    SchattenNorm(1.4),
    MixedNorm(2, 1, [0, 0, 1, 1, 1]),
]


def examples_of(rows, kind, k, rng):
    """Yield examples as matrices."""
    for x in rows:
        matrix = np.zeros((len(x), k))
        if kind == "rows":
            matrix = x[:, None]
        elif kind == "tasks":
            matrix = np.repeat(x[:, None], k, axis=1)
        else:
            y, r = rng.choice(k, size=2, replace=False)
            matrix[:, y], matrix[:, r] = x, -x
        yield matrix


@pytest.mark.parametrize("norm", [*map(as_norm, NORMS), *OTHERS], ids=repr)
@pytest.mark.parametrize("kind", ["rows", "classes", "tasks"])
def test_radii_are_dual_norms(norm, kind):
    rng = np.random.default_rng(0)
    X, k = rng.standard_normal((6, 5)), 1 if kind == "rows" else 4
    twin = find_strongly_convex(norm, (5, k))
    found = radii(twin, X, k, kind)
    wanted = [twin.dual(matrix) for matrix in examples_of(X, kind, k, rng)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    if kind != "tasks":
        np.testing.assert_allclose(radii(twin, sp.csr_array(X), k, kind), wanted, rtol=1e-12)


@pytest.mark.parametrize("p", [1.0, 1.7, 2.0, 30.0, math.inf])
def test_row_norms(p):
    X = np.random.default_rng(0).standard_normal((7, 4))
    X[2], X[3, :2], X[4] = 0.0, 0.0, 1e250 * X[4]
    found = row_norms(X, p)
    small = np.arange(7) != 4  # powers of the other row overflow
    np.testing.assert_allclose(found[small], np.linalg.norm(X[small], ord=p, axis=1))
    np.testing.assert_allclose(found[4], 1e250 * np.linalg.norm(X[4] / 1e250, ord=p))
    np.testing.assert_allclose(row_norms(sp.csr_array(X), p), found)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    norm=st.sampled_from(NORMS),
    kind=st.sampled_from(["rows", "classes", "tasks"]),
    n=st.integers(2, 40),
    d=st.integers(1, 30),
    k=st.integers(2, 6),
    heavy=st.booleans(),
)
def test_random_signs_never_exceed_the_bound(seed, norm, kind, n, d, k, heavy):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(n, d)) if heavy else rng.choice([-1.0, 0.0, 1.0], size=(n, d))
    k = 1 if kind == "rows" else k
    options = {"radius": 1.7, "n_outputs": k, "examples": kind}
    bound = bounds.rademacher(norm, X, **options)
    found = bounds.rademacher_estimate(norm, X, n_draws=300, random_state=seed, **options)
    assert found.value <= bound.value + 4.0 * found.standard_error + 1e-12


@each_norm
@pytest.mark.parametrize("kind", ["rows", "classes", "tasks"])
def test_estimates_are_means_of_dual_norms(norm, kind):
    """Against a slow twin that draws signs and examples one by one."""
    rng = np.random.default_rng(0)
    X, k = rng.standard_normal((8, 5)), 1 if kind == "rows" else 3
    found = bounds.rademacher_estimate(
        norm, X, radius=2.0, n_outputs=k, examples=kind, n_draws=2000, random_state=1
    )
    values = []
    for _ in range(500):
        total = np.zeros((5, k))
        for matrix in examples_of(X, kind, k, rng):
            signs = rng.choice([-1.0, 1.0], size=k if kind == "tasks" else 1)
            total += matrix * signs
        values.append(2.0 / 8 * as_norm(norm).dual(total))
    slow = np.mean(values), np.std(values) / math.sqrt(len(values))
    assert abs(found.value - slow[0]) <= 5.0 * math.hypot(found.standard_error, slow[1])


@each_norm
def test_slope(norm):
    """The complexity falls with the root of the number of rows, and so does the bound."""
    rng = np.random.default_rng(0)
    sizes = np.array([100, 200, 400, 800, 1600])
    X = rng.standard_normal((sizes[-1], 20))
    options = {"radius": 1.0, "n_outputs": 4, "examples": "tasks"}
    values = [
        bounds.rademacher_estimate(norm, X[:n], n_draws=400, random_state=0, **options).value
        for n in sizes
    ]
    assert np.polyfit(np.log(sizes), np.log(values), 1)[0] == pytest.approx(-0.5, abs=0.05)


@each_norm
def test_excess_risk_of_the_empirical_minimiser(norm):
    """Of linear losses on random signs, which no weights are good at: below it on average."""
    rng = np.random.default_rng(0)
    norm_object, n, d = as_norm(norm), 30, 6
    excess = []
    for _ in range(200):
        X, signs = rng.choice([-1.0, 1.0], size=(n, d)), rng.choice([-1.0, 1.0], size=n)
        # The linear loss -sign <w, x> has no best weights in truth; its minimiser gains the norm.
        excess.append(norm_object.dual((X.T @ signs / n)[:, None]))
    bound = bounds.excess_risk(norm, X, radius=1.0)
    assert np.mean(excess) <= bound.value


def test_the_example_of_the_paper():
    """Labels that are binary numbers of few experts: rows of weights are shared by all classes."""
    d, k, n = 256, 16, 100
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(n, d))
    s = int(math.log2(k))
    W = np.zeros((d, k))
    W[:s] = 2.0 * ((np.arange(k) >> np.arange(s)[:, None]) & 1) - 1.0
    values = {
        norm: bounds.rademacher(
            norm, X, radius=as_norm(norm).value(W), n_outputs=k, form="paper"
        ).value
        for norm in NORMS
    }
    assert min(values, key=values.get) == "l2,1"
    assert values["l1,1"] / values["l2,1"] > 0.5 * math.sqrt(k)
    assert values["l2,2"] / values["l2,1"] > 0.3 * math.sqrt(d / s)
    exact = {
        norm: bounds.rademacher(norm, X, radius=as_norm(norm).value(W), n_outputs=k).value
        for norm in NORMS
    }
    assert min(exact, key=exact.get) == "l2,1"


@each_norm
def test_forms(norm):
    X = np.random.default_rng(0).standard_normal((50, 10))
    exact = bounds.excess_risk(norm, X, radius=2.0, n_outputs=3)
    paper = bounds.excess_risk(norm, X, radius=2.0, n_outputs=3, form="paper")
    assert exact.kind == "rate"  # of classes, where the theorem is about averaged weights
    assert bounds.excess_risk(norm, X, radius=2.0).kind == "guarantee"
    assert paper.kind == "rate"
    assert "constant" in paper.sentence or paper.value > 0.0
    assert exact.inputs["radius"] == 2.0
    assert exact.value == pytest.approx(
        2.0 * bounds.rademacher(norm, X, radius=2.0, n_outputs=3).value
    )


def test_projections():
    X = np.random.default_rng(0).standard_normal((50, 10))
    bound = bounds.excess_risk("l2,1", X, radius=2.0, n_outputs=3)
    later = bound.at(500)
    assert later.value == pytest.approx(bound.value / math.sqrt(10.0))
    assert "ten times" in later.sentence
    assert "falls" in later.sentence
    needed = bound.samples_for(0.1 * bound.value)
    assert needed == pytest.approx(5000, abs=1)
    assert bound.to_dict()["theorem"] == bound.theorem
    assert float(bound) == bound.value
    with pytest.raises(ValueError, match="not a power"):
        bounds.sparse_kernels(1.0, 5).at(10)


def test_tasks():
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((n, 6)) for n in (20, 30, 25)]
    bound = bounds.rademacher("l2,1", Xs, radius=1.0)
    assert bound.inputs["n"] == 20
    assert "21" in bound.theorem
    found = bounds.rademacher_estimate("l2,1", Xs, radius=1.0, random_state=0)
    assert found.value <= bound.value


@pytest.mark.parametrize(
    ("norm", "options", "words"),
    [
        ("linf,1", {}, "no strongly convex surrogate"),
        ("l2,1", {"radius": -1.0}, "radius"),
        ("l2,1", {"form": "short"}, "form"),
        ("l2,1", {"examples": "pairs"}, "examples"),
        (MixedNorm(2, 1.5), {"form": "paper"}, "no closed form"),
    ],
)
def test_bad_inputs(norm, options, words):
    with pytest.raises(ValueError, match=words):
        bounds.rademacher(norm, np.ones((3, 2)), **({"radius": 1.0, "n_outputs": 2} | options))


@pytest.mark.parametrize("norm", NORMS)
def test_closed_forms_of_tasks(norm):
    """Examples of tasks grow with their number, but for single entries."""
    X = np.random.default_rng(0).standard_normal((20, 6))
    few, many = (
        bounds.rademacher(norm, X, radius=1.0, n_outputs=k, examples="tasks", form="paper")
        for k in (4, 100)
    )
    times = 1.0 if norm == "l1,1" else 5.0
    assert many.inputs["examples"] / few.inputs["examples"] == pytest.approx(times)
    rows = [
        bounds.rademacher(norm, X, radius=1.0, n_outputs=k, examples="rows").value for k in (1, 5)
    ]
    assert rows[0] == rows[1]


def test_formatting_and_zero():
    bound = bounds.excess_risk("l2,2", np.eye(3), radius=0.0)
    assert f"{bound:.1f}" == "0.0"
    assert bound.samples_for(0.1) == 1.0
    assert bounds.excess_risk("l2,2", np.eye(3), radius=1.0).samples_for(1e-300) == math.inf


def test_bad_numbers():
    for wrong, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError), ("3", TypeError)):
        with pytest.raises(error, match="n_outputs"):
            bounds.rademacher("l2,1", np.ones((3, 2)), radius=1.0, n_outputs=wrong, examples="rows")
    with pytest.raises(ValueError, match="NaN"):
        bounds.rademacher("l2,1", np.full((3, 2), np.nan), radius=1.0)
    with pytest.raises(ValueError, match="lipschitz"):
        bounds.excess_risk("l2,1", np.ones((3, 2)), radius=1.0, lipschitz=math.inf)
    with pytest.raises(ValueError, match="shape"):
        bounds.rademacher("l2,1", np.ones(3), radius=1.0)
    with pytest.raises(ValueError, match="different|same"):
        bounds.rademacher("l2,1", [np.ones((3, 2)), np.ones((3, 4))], radius=1.0)
    with pytest.raises(ValueError, match="n_draws"):
        bounds.rademacher_estimate("l2,1", np.ones((3, 2)), radius=1.0, n_draws=1)
    with pytest.raises(ValueError, match="whole numbers from 0 to 2"):
        bounds.rademacher_estimate("l2,1", np.ones((3, 2)), radius=1.0, n_outputs=3, y=[0, 1, 3])

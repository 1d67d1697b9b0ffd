"""The whole engine in other array namespaces: the same atoms, the same weights."""

import numpy as np
import pytest

from mixnorm._array import to_numpy
from mixnorm.engines.greedy import select
from mixnorm.engines.greedy.rules import RULES
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.pools import Columns

GROUPS = [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 7, 8]


def data(dtype="float64"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    X[:, 3] = 1.0
    scores = X[:, :3] @ rng.standard_normal((3, 3)) + rng.standard_normal((100, 3))
    weight = rng.uniform(0.5, 1.5, 100)
    weight[:4] = 0.0
    return X.astype(dtype), scores, (weight / weight.sum()).astype(dtype)


def run(
    xp, loss, dtype="float64", groups=None, costs=None, fit_intercept=True, start=None, **options
):
    X, scores, weight = data(dtype)
    y = scores.argmax(axis=1) if loss.is_classifier else scores
    X, weight = xp.asarray(X), xp.asarray(weight)
    pool = Columns(groups, costs).prepare(X, weight=weight, fit_intercept=fit_intercept)
    target = loss.encode(xp.asarray(y), 3, weight)
    options = {"n_atoms": 3, "alpha": 1e-3, "tol": 1e-10} | options
    return select(
        pool,
        loss,
        target,
        n_outputs=3,
        weight=weight,
        fit_intercept=fit_intercept,
        start=start,
        **options,
    )


KNOWN = {}


def run_here(loss, **options):
    """Return the path of NumPy arrays, which that of every namespace is compared with."""
    key = repr((loss, options))
    if key not in KNOWN:
        KNOWN[key] = run(np, loss, **options)
    return KNOWN[key]


def assert_same(there, here, xp, atol=1e-8):
    assert len(there.rounds) == len(here.rounds)
    assert there.null_loss == pytest.approx(here.null_loss, rel=1e-10)
    for got, wanted in zip(there.rounds, here.rounds, strict=True):
        assert got.atom == wanted.atom
        assert got.support == wanted.support
        assert got.loss == pytest.approx(wanted.loss, rel=1e-9)
        assert type(got.weights) is type(xp.asarray([0.0]))
        np.testing.assert_allclose(to_numpy(got.weights), wanted.weights, atol=atol)
        np.testing.assert_allclose(to_numpy(got.intercept), wanted.intercept, atol=atol)


@pytest.mark.parametrize(
    ("loss", "rule"),
    [
        *((MarginSoftmax(), rule) for rule in sorted(RULES)),
        *((MultinomialLogistic(), rule) for rule in ("column", "line")),
        *((Squared(), rule) for rule in ("column", "exact", "joint", "line")),
    ],
    ids=repr,
)
def test_rules(xp, loss, rule):
    assert_same(run(xp, loss, rule=rule), run_here(loss, rule=rule), xp)


@pytest.mark.parametrize(
    ("rule", "fit_intercept"), [("l1", True), ("l2", False), ("joint", True), ("joint", False)]
)
def test_groups_and_swaps(xp, rule, fit_intercept):
    options = {"rule": rule, "fit_intercept": fit_intercept, "groups": GROUPS, "swaps": 2}
    assert_same(run(xp, MarginSoftmax(), **options), run_here(MarginSoftmax(), **options), xp)


@pytest.mark.parametrize(
    ("loss", "penalty", "fit_intercept"),
    [
        (MarginSoftmax(), "linf,1", False),
        (MarginSoftmax(), "l1", True),
        (Squared(), "linf,1", True),
        (Squared(), "l1", False),
    ],
    ids=repr,
)
def test_penalties(xp, loss, penalty, fit_intercept):
    options = {"penalty": penalty, "rule": "joint", "fit_intercept": fit_intercept}
    there, here = run(xp, loss, **options), run_here(loss, **options)
    assert_same(there, here, xp, atol=1e-5)
    if penalty == "l1":
        for got, wanted in zip(there.rounds, here.rounds, strict=True):
            np.testing.assert_array_equal(to_numpy(got.weights) == 0.0, wanted.weights == 0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"backward": 3},
        {"backward": 2, "swaps": 1, "rule": "joint"},
        {"atoms_per_round": 3, "rule": "joint"},
        {"atoms_per_round": 2, "groups": GROUPS},
        {"max_inputs": 3, "groups": GROUPS},
        {"max_inputs": 2, "rule": "joint"},
        {"budget": 3.0, "costs": [2.0, 1.0, 0.5, 1.0] * 3, "rule": "joint"},
        {"backward": 2, "penalty": "l1", "rule": "exact"},
    ],
    ids=str,
)
def test_variants(xp, options):
    loss = MarginSoftmax()
    assert_same(run(xp, loss, **options), run_here(loss, **options), xp, atol=1e-5)


def test_a_pool_of_products(xp, pools):
    paths = []
    for space in (xp, np):
        X, scores, weight = data()
        X, weight = space.asarray(X[:, :4]), space.asarray(weight)
        pool, loss = pools["priced"](X, np.linspace(0.5, 2.0, 10)), MarginSoftmax()
        target = loss.encode(space.asarray(scores.argmax(axis=1)), 3, weight)
        options = {"max_inputs": 3, "budget": 4.0, "rule": "joint", "tol": 1e-10}
        paths.append(
            select(pool, loss, target, n_atoms=5, n_outputs=3, weight=weight, alpha=1e-3, **options)
        )
    assert_same(*paths, xp, atol=1e-6)


def test_going_on_from_a_path(xp):
    here = run(np, MarginSoftmax(), n_atoms=2)
    there = run(xp, MarginSoftmax(), n_atoms=2)
    there = run(xp, MarginSoftmax(), start=there)
    assert_same(there, run(np, MarginSoftmax(), start=here), xp)


def test_single_precision_stays(xp):
    loss = MarginSoftmax()
    there, here = run(xp, loss, "float32", tol=1e-5), run(np, loss, "float32", tol=1e-5)
    for got, wanted in zip(there.rounds, here.rounds, strict=True):
        assert got.atom == wanted.atom
        assert got.weights.dtype == xp.float32
        assert wanted.weights.dtype == np.float32
        assert got.loss == pytest.approx(wanted.loss, rel=1e-4)

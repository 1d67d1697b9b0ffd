"""The greedy engine against independent optimisers and the theorem's inequalities."""

import functools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from mixnorm.datasets import load
from mixnorm.engines.greedy import select
from mixnorm.exceptions import DatasetNotFoundError
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.pools import Columns

EMBEDDED = {
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
}
STORED = ["pendigits", "segment", "satimage", "vehicle", "vowel", "glass", "dna", "letter"]
STORED += ["isolet", "usps", "mnist"]


@functools.cache
def data(name, rows=800, columns=300):
    """Return at most ``rows`` x ``columns`` of a data set, in float64."""
    if name in EMBEDDED:
        X, y = EMBEDDED[name](return_X_y=True)
    else:
        try:
            stored = load(name, download_if_missing=False)
        except DatasetNotFoundError as error:
            pytest.skip(str(error))
        X, y = stored.X, stored.y
    X = X.reshape(len(X), -1)
    rng = np.random.default_rng(0)
    keep = rng.permutation(len(X))[:rows]
    X = X[keep][:, rng.permutation(X.shape[1])[:columns]]
    return X.astype(float), np.unique(np.asarray(y)[keep], return_inverse=True)[1]


def run(X, y, loss=None, weight=None, scale="std", **options):
    loss = loss or MarginSoftmax()
    weight = np.full(len(X), 1 / len(X), dtype=X.dtype) if weight is None else weight
    n_outputs = int(y.max()) + 1 if loss.is_classifier else y.shape[1]
    intercept = options.get("fit_intercept", True)
    pool = Columns().prepare(X, weight=weight, scale=scale, fit_intercept=intercept)
    target = loss.encode(y, n_outputs, weight)
    path = select(pool, loss, target, n_outputs=n_outputs, weight=weight, **options)
    return pool, path


def objective(flat, B, y, margin, alpha, k):
    """Mean margin soft-max loss plus ridge, and its gradient: a direct float64 formula."""
    W = flat.reshape(B.shape[1], k)
    one_hot = np.eye(k)[y]
    u = B @ W + margin * (1 - one_hot)
    log_total = logsumexp(u, axis=1)
    value = np.mean(log_total - u[np.arange(len(y)), y]) + alpha * np.sum(W[1:] ** 2)
    G = B.T @ (np.exp(u - log_total[:, None]) - one_hot) / len(y)
    G[1:] += 2 * alpha * W[1:]
    return value, G.ravel()


def optimum(X, y, pool, step, margin, alpha, ftol=1e-15):
    """Return the engine's objective and the best that scipy finds from there."""
    k = int(y.max()) + 1
    columns = [pool.columns(atom)[0] for atom in step.support]
    B = np.column_stack([np.ones(len(X)), *columns]).astype(float)
    ours = np.vstack([step.intercept[None], step.weights]).astype(float)
    args = (B, y, margin, alpha, k)
    best = minimize(
        objective, ours.ravel(), args, "L-BFGS-B", jac=True,
        options={"maxiter": 5000, "maxfun": 20000, "ftol": ftol, "gtol": 1e-9, "maxcor": 50},
    )  # fmt: skip
    return objective(ours.ravel(), *args)[0], best.fun


@pytest.mark.parametrize("name", [*EMBEDDED, *STORED])
@pytest.mark.parametrize("rule", ["l1", "joint"])
def test_each_round_lowers_the_loss_as_promised(name, rule):
    # Theorem 2's step: at least a quarter of the squared l1 norm of the gradient.
    X, y = data(name, rows=400)
    _, path = run(X, y, n_atoms=min(12, X.shape[1]), alpha=0.0, rule=rule, scale="max")
    losses = np.array([path.null_loss, *(step.loss for step in path.rounds)])
    gradients = np.array([step.gradient for step in path.rounds])
    assert np.all(losses[:-1] - losses[1:] >= 0.25 * gradients**2)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(5, 40), st.integers(1, 8), st.integers(2, 6), st.integers(0, 2**32 - 1),
    st.sampled_from(["l1", "l2", "line", "column", "joint"]), st.booleans(),
)  # fmt: skip
def test_the_promise_holds_on_random_data(n, d, k, seed, rule, fit_intercept):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n)])[:n]
    y = np.unique(y, return_inverse=True)[1]
    if y.max() < 1:
        return
    options = {"rule": rule, "fit_intercept": fit_intercept, "scale": "max"}
    _, path = run(X, y, n_atoms=d, alpha=0.0, **options)
    losses = np.array([path.null_loss, *(step.loss for step in path.rounds)])
    gradients = np.array([step.gradient for step in path.rounds])
    assert np.all(losses[:-1] - losses[1:] >= 0.25 * gradients**2 - 1e-12)


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("digits", MarginSoftmax()),
        ("wine", MarginSoftmax()),
        ("wine", MultinomialLogistic()),
        ("segment", MultinomialLogistic()),
    ],
)
def test_tight_tolerance_agrees_with_scipy_in_every_round(name, loss):
    X, y = data(name, rows=300, columns=40)
    pool, path = run(X, y, loss, n_atoms=8, alpha=1e-4, tol=1e-9)
    for step in path.rounds:
        ours, best = optimum(X, y, pool, step, loss.margin, 1e-4)
        assert ours <= best + 1e-6
        assert step.objective == pytest.approx(ours, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("digits", np.float64),
        ("wine", np.float32),
        ("pendigits", np.float64),
        ("segment", np.float64),
        ("satimage", np.float32),
    ],
)
def test_default_tolerance_is_within_one_per_cent(name, dtype):
    X, y = data(name)
    X = X.astype(dtype)
    pool, path = run(X, y, n_atoms=12, alpha=1e-3)
    for step in path.rounds:
        ours, best = optimum(X, y, pool, step, 1.0, 1e-3, ftol=1e-9)
        assert ours <= 1.01 * best
    assert ours <= 1.001 * best


def test_separable_data_with_a_small_ridge_end_within_a_thousandth():
    X, y = data("digits")
    pool, path = run(X, y, n_atoms=30, alpha=1e-6)
    ours, best = optimum(X, y, pool, path.rounds[-1], 1.0, 1e-6)
    assert best < 0.05
    assert ours <= best + 1e-3


def test_l1_rule_takes_the_largest_gradient():
    X, y = data("digits", rows=300)
    _, path = run(X, y, n_atoms=5, alpha=0.0, rule="l1", tol=1e-9)
    scaled = X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    chosen, scores = [], np.zeros((len(X), 10)) + path.null_intercept
    for step in path.rounds:
        u = scores - np.eye(10)[y]
        P = np.exp(u - logsumexp(u, axis=1, keepdims=True))
        centred = scaled - scaled.mean(axis=0)  # what counts under a free intercept
        norms = np.abs(centred.T @ (P - np.eye(10)[y])).sum(axis=1) / len(X)
        norms[chosen] = 0
        assert step.atom == np.argmax(norms)
        assert step.gradient == pytest.approx(norms.max(), rel=1e-6)
        chosen.append(step.atom)
        scores = scaled[:, list(step.support)] @ step.weights + step.intercept


def test_squared_loss_is_least_squares_in_every_round():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10)) + 3.0
    Y = X[:, :4] @ rng.standard_normal((4, 3)) + 0.1 * rng.standard_normal((60, 3))
    pool, path = run(X, Y, Squared(), n_atoms=6, alpha=0.0)
    for step in path.rounds:
        B = np.column_stack([np.ones(60), *(pool.columns(atom)[0] for atom in step.support)])
        solution, *_ = np.linalg.lstsq(B, Y, rcond=None)
        best = 0.5 * np.sum((B @ solution - Y) ** 2) / 60
        assert step.loss <= best * (1 + 1e-6) + 1e-12
        assert step.iterations <= 3


def test_swaps_record_supports_and_never_raise_the_objective():
    # Without swaps a round's atoms are those of the round before and one more.
    X, y = data("digits")
    _, path = run(X, y, n_atoms=8, rule="joint", alpha=1e-4, tol=1e-8, swaps=2)
    objectives = [step.objective for step in path.rounds]
    assert objectives == sorted(objectives, reverse=True)
    for size, step in enumerate(path.rounds, start=1):
        assert len(set(step.support)) == size == len(step.weights)
    nested = [set(a.support) < set(b.support) for a, b in pairwise(path.rounds)]
    assert not all(nested)


@pytest.mark.parametrize(("name", "rule", "size"), [("digits", "joint", 5), ("wine", "l1", 4)])
def test_swaps_find_better_models_of_a_size(name, rule, size):
    X, y = data(name)
    options = dict(n_atoms=size, rule=rule, alpha=1e-4, tol=1e-8, scale="max")
    _, plain = run(X, y, **options)
    _, swapped = run(X, y, swaps=2, **options)
    assert swapped.rounds[-1].objective < plain.rounds[-1].objective - 0.01


def test_a_path_continues_where_it_stopped():
    X, y = data("digits")
    weight = np.full(len(X), 1 / len(X))
    pool, loss = Columns().prepare(X, weight=weight), MarginSoftmax()
    options = dict(n_outputs=10, weight=weight, alpha=1e-4, tol=1e-8)
    target = loss.encode(y, 10, weight)
    whole = select(pool, loss, target, n_atoms=8, **options)
    part = select(pool, loss, target, n_atoms=4, **options)
    rest = select(pool, loss, target, n_atoms=8, start=part, **options)
    assert [step.atom for step in rest.rounds] == [step.atom for step in whole.rounds]
    assert rest.rounds[:4] == part.rounds
    assert rest.rounds[-1].objective == pytest.approx(whole.rounds[-1].objective, rel=1e-6)
    assert select(pool, loss, target, n_atoms=2, start=whole, **options).rounds == whole.rounds[:2]


def test_interrupt_keeps_the_rounds_done():
    X, y = data("iris")

    def interrupt(path):
        if len(path.rounds) == 2:
            raise KeyboardInterrupt
        return False

    _, path = run(X, y, n_atoms=4, on_round=interrupt)
    assert path.interrupted
    assert len(path.rounds) == 2


def test_interrupt_before_the_first_round_is_an_interrupt():
    X, y = data("iris")
    loss, weight = MarginSoftmax(), np.full(len(X), 1 / len(X))

    class Interrupting:
        columns = None

        def top(self, *args):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select(
            Interrupting(), loss, loss.encode(y, 3, weight), n_atoms=2, n_outputs=3, weight=weight
        )


def test_a_caller_can_end_the_run():
    X, y = data("iris")
    _, path = run(X, y, n_atoms=4, on_round=lambda path: len(path.rounds) == 3)
    assert len(path.rounds) == 3
    assert not path.interrupted


def test_a_pool_without_gradient_is_exhausted():
    X = np.column_stack([np.arange(6.0), np.arange(6.0)])
    _, path = run(X, np.arange(6.0)[:, None], Squared(), n_atoms=2, rule="l1")
    assert path.exhausted
    assert len(path.rounds) == 1


def test_float32_is_never_upcast():
    X, y = data("digits")
    _, path = run(X.astype(np.float32), y, n_atoms=5, swaps=1)
    assert {step.weights.dtype for step in path.rounds} == {np.dtype(np.float32)}


def test_unknown_rule_names_the_known_ones():
    X, y = data("iris")
    with pytest.raises(ValueError, match="joint.*l1.*l2.*line"):
        run(X, y, n_atoms=2, rule="best")

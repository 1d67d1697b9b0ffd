"""Mirror descent in kernel coefficients, against the slow text of the algorithm."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mixnorm.engines.mirror import KernelLearner
from mixnorm.engines.mirror import kernels_jit as jit
from mixnorm.engines.multikernel import HingeTarget, KernelPenalty, solve
from mixnorm.kernels import KernelStack


def problem(n=40, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    y = np.floor(1.5 * (X[:, 0] + X[:, 1]) + 0.3 * rng.normal(size=n)).astype(int) % 3
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    stack = KernelStack([np.exp(-squares / (2.0 * tau)).astype(dtype) for tau in (0.1, 0.5, 4.0)])
    stack.check()
    return stack, y


# --- the link


def slow_link(norms, offsets, q, scale, rounds):
    """v_m^(q-1) / (scale |theta_m| |v|_q^(q-2)), v_m = (|theta_m| - rounds offsets_m)_+."""
    v = np.maximum(norms - rounds * offsets, 0.0)
    if not np.any(v > 0.0):
        return np.zeros_like(v)
    shares = np.where(v > 0.0, v, 0.0) ** (q - 1.0) / np.linalg.norm(v, q) ** (q - 2.0)
    return np.divide(shares, scale * norms, out=np.zeros_like(v), where=v > 0.0)


@given(
    norms=arrays(float, 4, elements=st.sampled_from([0.0, 1e-3, 0.5, 1.0, 2.0, 30.0])),
    offsets=arrays(float, 4, elements=st.sampled_from([0.0, 0.01, 0.4, 5.0])),
    q=st.sampled_from([2.0, 2.8, 8.5, 17.0]),
    scale=st.sampled_from([0.01, 1.0, 7.0]),
    rounds=st.sampled_from([1.0, 2.5, 40.0]),
)
def test_link(norms, offsets, q, scale, rounds):
    found = np.empty(4)
    jit.link(norms**2, offsets, q, scale, rounds, found)
    np.testing.assert_allclose(found, slow_link(norms, offsets, q, scale, rounds), rtol=1e-9)
    assert np.all(found >= 0.0)


def test_large_exponents_of_large_and_small_sums():
    for unit in (1e-40, 1e40):
        norms, found = unit * np.array([1.0, 0.9, 0.0, 1e-3]), np.empty(4)
        jit.link(norms**2, np.zeros(4), 17.0, 1.0, 1.0, found)
        wanted = slow_link(norms / unit, np.zeros(4), 17.0, 1.0, 1.0)
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_the_link_is_that_of_the_penalty():
    """Of sums of gradients, divided by the rounds, with strength one over cost and rounds."""
    rng = np.random.default_rng(0)
    norms, offsets = rng.uniform(0.0, 9.0, 5), rng.uniform(0.0, 0.1, 5)
    rounds, total, cost = 60.0, 30.0, 4.0
    found = np.empty(5)
    jit.link(norms**2, offsets, 3.5, rounds / (total * cost), rounds, found)
    penalty = KernelPenalty(3.5, np.ones(5), offsets * total * cost)
    share = total * cost / rounds
    np.testing.assert_allclose(found, share * penalty.link((norms * share) ** 2), rtol=1e-9)


# --- a pass


def slow_pass(K, labels, importance, order, offsets, q, cost, A, rounds, total=None):
    """The text of the algorithm: all sums anew at every step; n is what was met by default."""
    A, lost, mistakes = A.copy(), 0.0, 0
    for i in order:
        energies = np.array([np.sum(A * (matrix @ A)) for matrix in K])
        weights = np.zeros(len(K))
        if rounds > 0.0:
            norms = np.sqrt(np.maximum(energies, 0.0))
            n = rounds if total is None else total
            weights = slow_link(norms, offsets, q, rounds / (n * cost), rounds)
        scores = sum(weight * (matrix[i] @ A) for weight, matrix in zip(weights, K, strict=True))
        rivals = scores.copy()
        rivals[labels[i]] = -np.inf
        rival = int(np.argmax(rivals))
        hinge = 1.0 - scores[labels[i]] + scores[rival]
        mistakes += int(scores[rival] >= scores[labels[i]])
        rounds += importance[i]
        if hinge > 0.0:
            lost += importance[i] * hinge
            A[i, labels[i]] += importance[i]
            A[i, rival] -= importance[i]
    return A, rounds, lost, mistakes


@pytest.mark.parametrize("q", [2.0, 3.0, 9.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_passes_are_those_of_the_slow_twin(q, weighted):
    stack, y = problem()
    rng = np.random.default_rng(1)
    importance = rng.uniform(0.3, 2.0, size=40) if weighted else np.ones(40)
    offsets = np.array([0.02, 0.001, 0.0])
    learner = KernelLearner(q, offsets, 7.0, 3)
    samples = learner.begin(stack, y, importance)
    A, rounds, lost, mistakes = np.zeros((40, 3)), 0.0, 0.0, 0
    for _ in range(3):
        order = rng.permutation(40)
        learner.learn(samples, order)
        A, rounds, more, wrong = slow_pass(
            stack.matrices, y, importance, order, offsets, q, 7.0, A, rounds, np.sum(importance)
        )
        lost, mistakes = lost + more, mistakes + wrong
        np.testing.assert_allclose(samples.A, A, atol=1e-12)
        assert learner.rounds == pytest.approx(rounds)
        assert learner.lost == pytest.approx(lost, rel=1e-9)
        assert learner.mistakes == mistakes
        energies = [np.sum(A * (K @ A)) for K in stack.matrices]
        np.testing.assert_allclose(learner.squares, energies, rtol=1e-9)
        learner.refresh(samples)
        np.testing.assert_allclose(learner.squares, energies, rtol=1e-9)
        np.testing.assert_allclose(samples.sums, np.einsum("mij,jc->mci", stack.matrices, A))


@pytest.mark.parametrize("q", [2.0, 5.0])
def test_samples_that_count_as_they_are_met(q):
    stack, y = problem()
    rng = np.random.default_rng(1)
    importance, offsets = rng.uniform(0.3, 2.0, size=40), np.array([0.02, 0.001, 0.0])
    A, rounds, lost, mistakes = slow_pass(
        stack.matrices, y, importance, np.arange(40), offsets, q, 7.0, np.zeros((40, 3)), 0.0
    )
    learner, found = KernelLearner(q, offsets, 7.0, 3), np.zeros((0, 3))
    for part in (slice(0, 15), slice(15, 40)):
        grams = KernelStack([K[part, part] for K in stack.matrices])
        samples = learner.begin(grams, y[part], importance[part], growing=True)
        past = [K[part, : len(found)] for K in stack.matrices]
        if len(found):
            samples.add_past(KernelStack(past), found)
        learner.learn(samples, np.arange(len(samples.labels)))
        found = np.concatenate([found, samples.A])
    np.testing.assert_allclose(found, A, atol=1e-12)
    assert learner.rounds == learner.total == pytest.approx(rounds)
    assert learner.lost == pytest.approx(lost, rel=1e-9)
    assert learner.mistakes == mistakes


def test_single_precision():
    one, y = problem()
    other, _ = problem(dtype=np.float32)
    found = []
    for stack in (one, other):
        learner = KernelLearner(3.0, np.full(3, 0.001), 5.0, 3)
        samples = learner.begin(stack, y, np.ones(40))
        learner.learn(samples, np.arange(40))
        learner.refresh(samples)
        found.append((learner.weights(), samples.A))
    assert found[0][1].dtype == np.float64
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-4)
    assert np.array_equal(found[0][1], found[1][1])


def test_nothing_is_played_before_the_first_sample():
    learner = KernelLearner(3.0, np.zeros(2), 1.0, 3)
    assert np.array_equal(learner.weights(), np.zeros(2))


# --- objective and gap


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [2.0, 4.0])
def test_objective_and_gap_after_whole_passes(q, weighted):
    """objective - gap <= optimum <= objective, where the optimum is that of the exact engine."""
    stack, y = problem()
    rng = np.random.default_rng(1)
    importance = rng.uniform(0.3, 2.0, size=40) if weighted else np.ones(40)
    offsets, cost = np.array([0.05, 0.01, 0.001]), 7.0
    total = np.sum(importance)
    exact = solve(
        stack,
        HingeTarget(y, cost * importance, 3, False),
        KernelPenalty(q, np.ones(3), offsets * total * cost),
        tol=1e-7,
        max_iter=2000,
    )
    optimum = exact.objective / (total * cost)
    learner = KernelLearner(q, offsets, cost, 3)
    samples = learner.begin(stack, y, importance)
    for epoch in range(1, 601):
        learner.learn(samples, rng.permutation(40))
        learner.refresh(samples)
        if epoch in (1, 2, 10, 100, 600):
            objective, gap = learner.objective_and_gap(samples)
            assert objective >= optimum * (1.0 - 1e-6)
            assert objective - gap <= optimum * (1.0 + 1e-9)
    assert objective <= 1.03 * optimum


# --- what a file keeps


def state():
    stack, y = problem()
    learner = KernelLearner(3.0, np.full(3, 0.001), 5.0, 3)
    learner.learn(learner.begin(stack, y, np.ones(40)), np.arange(40))
    return learner, learner.state(40)


def test_state_is_all_there_is():
    learner, kept = state()
    again = KernelLearner.from_state(kept, 3)
    assert vars(again).keys() == vars(learner).keys()
    for name, value in vars(learner).items():
        assert np.array_equal(getattr(again, name), value), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.zeros(2)}, "offsets of the stream must be an array of floats"),
        ({"offsets": -np.ones(3)}, "offsets of the stream must not be negative"),
        ({"squares": np.full(3, np.nan)}, "squares of the stream must not be negative"),
        ({"squares": np.zeros((3, 1))}, "squares of the stream must be an array of floats"),
        ({"q": 1.5}, "out of range"),
        ({"cost": 0.0}, "out of range"),
        ({"rounds": -1.0}, "out of range"),
        ({"total": 0.0}, "out of range"),
        ({"total": float("nan")}, "out of range"),
    ],
    ids=str,
)
def test_damaged_states(change, message):
    _, kept = state()
    model = SimpleNamespace(kernel_weights=np.zeros(3), support=np.arange(4), bank="a bank")
    kept.check(model)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(kept, **change).check(model)

"""The way back: better models of each size, none worse than a smaller one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_wine

from mixnorm.engines import greedy
from mixnorm.engines.greedy import backward as _backward
from mixnorm.engines.greedy import select
from mixnorm.losses import MarginSoftmax, Squared
from mixnorm.pools import Columns


def draw(seed, n_samples=60, columns=8, outputs=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, columns))
    X[:, 3] = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n_samples)  # first, and then useless
    X[:, 7] = X[:, 2]
    scores = X[:, :3] @ rng.standard_normal((3, outputs)) * 2.0
    return X, scores + 0.5 * rng.standard_normal((n_samples, outputs))


def run(X, y, loss=None, pool=None, **options):
    loss = loss or MarginSoftmax()
    weight = np.full(len(X), 1 / len(X), dtype=X.dtype)
    k = int(y.max()) + 1 if loss.is_classifier else y.shape[1]
    pool = pool or Columns().prepare(X, weight=weight)
    options = {"n_atoms": 5, "alpha": 1e-4, "rule": "joint"} | options
    return select(pool, loss, loss.encode(y, k, weight), n_outputs=k, weight=weight, **options)


def objectives(path):
    return [step.objective for step in path.rounds]


RUNS = {
    "seed": st.integers(0, 200),
    "backward": st.integers(1, 6),
    "n_atoms": st.integers(1, 8),
    "rule": st.sampled_from(["l1", "joint"]),
    "swaps": st.integers(0, 1),
    "atoms_per_round": st.integers(1, 2),
    "penalty": st.sampled_from(["ridge", "linf,1", "l1"]),
    "alpha": st.sampled_from([1e-6, 1e-3, 3e-2]),
}


@settings(max_examples=30)
@given(**RUNS)
def test_no_model_is_worse_than_a_smaller_one(seed, n_atoms, **options):
    X, scores = draw(seed)
    path = run(X, scores.argmax(axis=1), n_atoms=n_atoms, **options)
    found = objectives(path)
    for smaller, larger in pairwise([path.null_loss, *found]):
        assert larger <= smaller * (1.0 + 1e-12)
    assert len(path.rounds) == n_atoms or path.exhausted
    for size, step in enumerate(path.rounds, start=1):
        assert len(set(step.support)) == size == len(step.weights)


@given(seed=st.integers(0, 200), n_atoms=st.integers(1, 6), backward=st.integers(1, 3))
def test_no_size_is_worse_than_on_the_way_there(seed, n_atoms, backward):
    X, scores = draw(seed)
    options = {"n_atoms": n_atoms, "tol": 1e-9}
    there = run(X, scores, Squared(), **options)
    back = run(X, scores, Squared(), backward=backward, **options)
    assert len(back.rounds) == len(there.rounds)
    for new, old in zip(objectives(back), objectives(there), strict=True):
        assert new <= old * (1.0 + 1e-9)


def least_squares(X, Y, columns, alpha):
    """Half the mean of squares with a ridge, minimised by the normal equations."""
    X = X / X.std(axis=0)
    A, B = X[:, columns] - X[:, columns].mean(axis=0), Y - Y.mean(axis=0)
    gram = A.T @ A / len(X) + 2.0 * alpha * np.eye(len(columns))
    W = np.linalg.solve(gram, A.T @ B / len(X))
    return 0.5 * ((A @ W - B) ** 2).sum() / len(X) + alpha * (W**2).sum()


def test_against_dropping_by_hand():
    """Squared loss: the costs are exact, so that each step drops what costs least in truth."""
    improved = 0
    for seed in range(30):
        X, Y = draw(seed, n_samples=40, columns=14)
        X = X + X[:, [0]]
        there = run(X, Y, Squared(), n_atoms=9, tol=1e-12)
        back = run(X, Y, Squared(), n_atoms=7, backward=2, tol=1e-12)
        best = list(there.rounds[-1].support)
        for size in range(8, 0, -1):
            trials = [[atom for atom in best if atom != gone] for gone in best]
            best = min(trials, key=lambda kept: least_squares(X, Y, kept, 1e-4))
            forward = list(there.rounds[size - 1].support)
            if least_squares(X, Y, forward, 1e-4) <= least_squares(X, Y, best, 1e-4):
                best = forward
            else:
                improved += size <= 7
            if size <= 7:
                got = back.rounds[size - 1]
                assert got.objective == pytest.approx(least_squares(X, Y, best, 1e-4), rel=1e-6)
                assert set(got.support) == set(best) or 7 in {*got.support, *best}  # a copy of 2
    assert improved > 3


def test_no_model_is_left_to_improve_by_dropping_the_cheapest_of_the_next(monkeypatch):
    """The way back goes on from the better model of each size, so that this holds for all."""
    runs = []

    class Kept(greedy.Run):
        def __init__(self, *args):
            super().__init__(*args)
            runs.append(self)

    monkeypatch.setattr(greedy.engine, "Run", Kept)
    X, y = load_digits(return_X_y=True)
    path = run(X[:600], y[:600], n_atoms=24, backward=2, alpha=1e-6)
    for size in range(1, 24):
        support = runs[0].load(path.rounds[: size + 1])
        costs = support.removal_costs()
        smaller = support.without(min(costs, key=costs.get))
        smaller.correct(*runs[0].tolerance(size))
        # Solved to a tolerance, from weights that were solved to one.
        assert path.rounds[size - 1].objective <= 1.01 * smaller.objective


@pytest.mark.parametrize("loader", [load_wine, load_digits])
def test_models_of_a_size_get_better(loader):
    X, y = loader(return_X_y=True)
    X = X[:500]
    y = y[:500]
    there, back = run(X, y, n_atoms=9), run(X, y, n_atoms=9, backward=4)
    gains = 1.0 - np.divide(objectives(back), objectives(there))
    assert np.all(gains > -0.02)  # each solved to a tolerance of its own
    assert gains.max() > 0.02


def test_rounds_tell_the_atom_that_the_smaller_model_lacks():
    X, Y = draw(3)
    weight = np.full(len(X), 1 / len(X))
    pool = Columns().prepare(X, weight=weight)
    loss = Squared()
    path = run(X, Y, loss, pool=pool, backward=3, tol=1e-10)
    target = loss.encode(Y, 3, weight)
    told, support, scores = 0, set(), np.zeros_like(Y) + path.null_intercept
    for step in path.rounds:
        new = [atom for atom in step.support if atom not in support]
        if len(new) == 1:
            assert step.atom == new[0]
            _, residual = loss.value_and_residual(scores, target, weight)
            row = pool.columns(step.atom) - pool.columns(step.atom) @ weight
            assert step.gradient == pytest.approx(np.abs(row @ residual).sum(), rel=1e-6)
            told += 1
        else:
            assert step.atom in step.support
        support = set(step.support)
        columns = np.concatenate([pool.columns(atom) for atom in step.support])
        scores = columns.T @ step.weights + step.intercept
    assert told >= 4


def test_where_several_atoms_are_new_the_last_stands_for_the_round(monkeypatch):
    made = []
    real = _backward._set_atom

    def tell(run, size):
        real(run, size)
        made.append((size, run.path.rounds))

    monkeypatch.setattr(_backward, "_set_atom", tell)
    several = 0
    for seed in range(30):
        X, scores = draw(seed)
        made.clear()
        run(X, scores.argmax(axis=1), backward=3, n_atoms=6)
        for size, rounds in made:
            smaller = set(rounds[size - 2].support) if size > 1 else set()
            new = [atom for atom in rounds[size - 1].support if atom not in smaller]
            if len(new) > 1:
                several += 1
                assert rounds[size - 1].atom == rounds[size - 1].support[-1]
    assert several


def test_the_last_model_is_solved_to_the_tolerance():
    X, scores = draw(1, n_samples=200)
    y = scores.argmax(axis=1)
    back = run(X, y, backward=3, tol=1e-8)
    last = back.rounds[-1]
    alone = run(X[:, list(last.support)], y, n_atoms=5, tol=1e-12)
    assert last.objective == pytest.approx(alone.rounds[-1].objective, rel=1e-6)


def test_a_level_path_is_made_of_one_that_is_not(monkeypatch):
    """A larger model that is worse than a smaller one is solved anew from that."""
    X, scores = draw(2)
    y = scores.argmax(axis=1)
    seen, real = [], _backward._level_objectives

    def level(run, found):
        rounds = list(run.path.rounds)
        bad = rounds[2]
        rounds[2] = replace(bad, objective=rounds[1].objective + 1.0, weights=0.0 * bad.weights)
        run.path = replace(run.path, rounds=tuple(rounds))
        real(run, found)
        seen.append((rounds[1], run.path.rounds[2]))

    monkeypatch.setattr(_backward, "_level_objectives", level)
    path = run(X, y, backward=2)
    ((smaller, made),) = seen
    assert set(smaller.support) < set(made.support)
    assert made.objective < smaller.objective
    assert path.rounds[2].objective == made.objective


def test_too_few_atoms_to_go_further():
    X, scores = draw(0)
    path = run(X, scores.argmax(axis=1), n_atoms=8, backward=5)
    assert len(path.rounds) <= 8
    short = run(X[:, :3], scores.argmax(axis=1), n_atoms=2, backward=5)
    assert len(short.rounds) == 2
    assert not short.exhausted


@pytest.mark.parametrize("at", [2, 4, 6, 7, 8, 9, 12])
def test_interrupts_keep_what_there_is(at):
    X, scores = draw(4)
    y, calls = scores.argmax(axis=1), []

    def interrupt(path):
        calls.append([step.objective for step in path.rounds])
        if len(calls) == at:
            raise KeyboardInterrupt
        return False

    path = run(X, y, n_atoms=4, backward=3, on_round=interrupt)
    assert path.interrupted
    assert objectives(path) == calls[-1]
    assert len(path.rounds) == min(at, 4)
    for size, step in enumerate(path.rounds, start=1):
        assert len(step.support) == size
        assert step.atom in step.support


@pytest.mark.parametrize("at", [2, 5, 9])
def test_a_caller_can_end_the_run(at):
    X, scores = draw(4)
    sizes = []

    def stop(path):
        sizes.append(len(path.rounds))
        return len(sizes) == at

    path = run(X, scores.argmax(axis=1), n_atoms=4, backward=3, on_round=stop)
    assert not path.interrupted
    assert len(sizes) == at
    assert len(path.rounds) == min(at, 4)
    assert all(np.isfinite(step.gradient) for step in path.rounds)


def test_steps_are_reported_there_and_back():
    X, scores = draw(4)
    sizes = []
    run(
        X,
        scores.argmax(axis=1),
        n_atoms=4,
        backward=3,
        on_round=lambda p: sizes.append(len(p.rounds)),
    )
    assert sizes == [1, 2, 3, 4, 4, 4, 4] + [4] * 6


def test_a_path_is_not_continued_backward():
    X, scores = draw(0)
    y = scores.argmax(axis=1)
    begun = run(X, y, n_atoms=2)
    with pytest.raises(ValueError, match="backward=1 cannot continue"):
        run(X, y, start=begun, backward=1)


def test_float32_is_never_upcast():
    X, scores = draw(0)
    path = run(X.astype(np.float32), scores.argmax(axis=1), backward=2)
    assert {step.weights.dtype for step in path.rounds} == {np.dtype(np.float32)}


def test_the_way_back_reads_no_column_again(pools):
    """The columns are with the last model; those of the data may lie in a file."""
    X, scores = draw(0)
    X = X[:, :5]
    reads = []

    class Counting(pools["plain"]):
        def columns(self, atom):
            reads.append(atom)
            return super().columns(atom)

    found = []
    for backward in (0, 3):
        reads.clear()
        run(X, scores.argmax(axis=1), pool=Counting(X), n_atoms=7 - backward, backward=backward)
        found.append(len(reads))
    assert found[0] == found[1]

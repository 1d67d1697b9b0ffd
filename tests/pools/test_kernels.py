"""Kernels as atoms: scores, leaders, and the greedy engine on their factors."""

import functools

import numpy as np
import pytest

from mixnorm.engines import greedy
from mixnorm.kernels import KernelBank, KernelStack
from mixnorm.losses import MultinomialLogistic, Squared
from mixnorm.pools import KernelPool


def data(n=150, d=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2.0 * X[:, 0]) + np.abs(X[:, 1]) + 0.3 * rng.standard_normal(n)


@functools.cache
def pools(n=150, d=10, rank=64, seed=0, dtype="float64"):
    X, y = data(n, d, seed)
    weight = np.full(n, 1.0 / n)
    bank = KernelBank.per_feature(widths=[0.1, 1.0, 10.0], dtype=dtype).fit(X)
    grams = bank.grams()
    return (
        KernelPool(grams, weight),
        KernelPool(bank.grams(partly=False), weight, bank.sketch(weight, rank), bank.gram),
        (y - y.mean())[:, None] / n,
    )


@pytest.mark.parametrize("rule", ["functional", "empirical"])
def test_scores(rule):
    exact, _, G = pools()
    K = exact.grams.matrices
    if rule == "functional":
        wanted = [np.sqrt(np.sum(G * (matrix @ G))) for matrix in K]
    else:
        wanted = [np.linalg.norm(matrix @ G) / np.sqrt(len(G)) for matrix in K]
    np.testing.assert_allclose(exact.scores(G, rule, range(30)), wanted, rtol=1e-10)
    np.testing.assert_allclose(exact.scores(G, rule, [4, 2]), np.take(wanted, [4, 2]), rtol=1e-10)
    (best, score), *_ = exact.top(G, rule, 3, frozenset())
    assert best == np.argmax(wanted)
    assert score == pytest.approx(max(wanted))


@pytest.mark.parametrize("rule", ["functional", "empirical", "l2"])
@pytest.mark.parametrize("rank", [4, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_best_is_the_best(rule, rank, dtype):
    """Also with stand-ins that are far off, since the number of leaders grows with their errors."""
    agreed = 0
    for seed in range(20):
        exact, quick, _ = pools(n=80, d=8, rank=rank, seed=seed, dtype=dtype)
        G = np.random.default_rng(seed).standard_normal((80, 2)) / 80
        taken = frozenset({3, 5})
        (one, score), *_ = exact.top(G, rule, 1, taken)
        (other, found), *_ = quick.top(G, rule, 1, taken)
        assert found == pytest.approx(score, rel=1e-5) or one != other
        agreed += one == other
    assert agreed == 20 if rank == 64 else agreed >= 18


def test_several_and_few():
    exact, quick, G = pools()
    assert [j for j, _ in quick.top(G, "functional", 5, frozenset())] == [
        j for j, _ in exact.top(G, "functional", 5, frozenset())
    ]
    assert len(exact.top(G, "functional", 99, frozenset())) == 30
    assert exact.top(G, "functional", 3, frozenset(range(30))) == []
    assert quick.top(G, "functional", 3, frozenset(range(30))) == []
    assert quick.n_exact < 30


def test_what_cannot_be_asked():
    exact, _, G = pools()
    with pytest.raises(ValueError, match="rule='l1'"):
        exact.top(G, "l1", 1, frozenset())
    with pytest.raises(ValueError, match="the residual has shape"):
        exact.top(G[:, 0], "functional", 1, frozenset())
    with pytest.raises(ValueError, match="cannot be limited"):
        exact.top(G, "functional", 1, frozenset(), inputs=frozenset({1}))


def test_columns_are_a_factor():
    exact, quick, _ = pools()
    for pool in (exact, quick):
        rows = pool.columns(4)
        np.testing.assert_allclose(rows.T @ rows, pool.matrix(4), atol=1e-9)
    assert exact.largest() == pytest.approx(1.0)


@pytest.mark.parametrize("loss", [Squared(), MultinomialLogistic()])
def test_the_greedy_engine_takes_kernels(loss):
    """Columns of factors, refitted by the engine of columns."""
    exact, _, _ = pools()
    _, y = data()
    weight = np.full(150, 1.0 / 150)
    labels = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    outputs = 3 if loss.is_classifier else 1
    target = loss.encode(labels if outputs == 3 else y[:, None], outputs, weight)
    path = greedy.select(
        exact, loss, target, n_atoms=3, n_outputs=outputs, weight=weight, alpha=1e-3, rule="l2"
    )
    assert {atom // 3 for atom in path.rounds[1].support} == {0, 1}
    assert path.rounds[2].loss < 0.5 * path.null_loss


def test_given_matrices():
    K = np.stack([np.eye(4), np.ones((4, 4))])
    pool = KernelPool(KernelStack(K), np.full(4, 0.25))
    np.testing.assert_array_equal(pool.matrix(1), np.ones((4, 4)))
    assert pool.n_usable == 2

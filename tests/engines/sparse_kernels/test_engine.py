"""Greedy choice of kernels against closed forms, quadratic programs and the theorems."""

import math

import cvxpy as cp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from mixnorm.engines.sparse_kernels import select
from mixnorm.engines.sparse_kernels.lasso import LassoRefit
from mixnorm.kernels import GaussianKernel, KernelStack, exact_factor, kernel_geometry
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.models import KernelPath
from mixnorm.pools import KernelPool


def problem(n=40, m=8, k=1, seed=0, tau=1.0):
    """Gaussian kernels on single columns, and targets of three of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, max(m, 3)))
    K = np.stack([GaussianKernel(tau).between(X[:, [j]]) for j in range(m)])
    signal = np.sin(2.0 * X[:, [0]]) + np.abs(X[:, [1]]) + 0.7 * X[:, [2]]
    Y = signal + 0.3 * rng.standard_normal((n, k))
    return K, Y, np.full(n, 1.0 / n)


def run(K, Y, weight, loss=None, **options):
    loss = Squared() if loss is None else loss
    outputs = int(np.max(Y)) + 1 if loss.is_classifier else Y.shape[1]
    target = loss.encode(Y, outputs, weight)
    pool = KernelPool(KernelStack(K), weight)
    return select(pool, loss, target, n_outputs=outputs, weight=weight, **options)


def scores_of(path, K, size):
    step = path.rounds[size - 1]
    parts = zip(step.support, path.blocks(size), strict=True)
    return step.intercept + sum(K[j] @ block for j, block in parts)


def optimum(K, Y, weight, alpha):
    """The l1 problem over all kernels by cvxpy: its value, and the norms of the parts."""
    factors = [exact_factor(matrix) for matrix in K]
    coefs = [cp.Variable((phi.shape[1], Y.shape[1])) for phi in factors]
    scores = sum(phi @ c for phi, c in zip(factors, coefs, strict=True))
    root = np.sqrt(weight)[:, None]
    left = cp.multiply(root, scores - (Y - np.average(Y, axis=0, weights=weight)))
    objective = 0.5 * cp.sum_squares(left) + alpha * sum(cp.norm(c, "fro") for c in coefs)
    value = cp.Problem(cp.Minimize(objective)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8
    )
    return value, np.asarray([np.linalg.norm(c.value) for c in coefs]), scores.value


def weights_of(kind, n):
    if kind == "equal":
        return np.full(n, 1.0 / n)
    return np.random.default_rng(5).dirichlet(np.ones(n))


# --- GOMP


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ["equal", "different"])
def test_gomp_is_ridge_regression_on_the_sum(k, kind):
    K, Y, _ = problem(k=k)
    weight, alpha = weights_of(kind, len(Y)), 1e-2
    path = run(K, Y, weight, n_kernels=4, alpha=alpha)
    centred = Y - np.average(Y, axis=0, weights=weight)
    residual, taken = -weight[:, None] * centred, []
    for size, step in enumerate(path.rounds, start=1):
        gradients = [np.sqrt(np.sum(residual * (matrix @ residual))) for matrix in K]
        free = [j for j in range(len(K)) if j not in taken]
        taken.append(max(free, key=gradients.__getitem__))
        assert step.atom == taken[-1]
        assert step.support == tuple(taken)
        assert step.gradient == pytest.approx(gradients[taken[-1]])
        total = K[taken].sum(axis=0)
        ridge = KernelRidge(alpha=alpha, kernel="precomputed")
        ridge.fit(total, centred, sample_weight=weight)
        scores = ridge.predict(total)
        np.testing.assert_allclose(scores_of(path, K, size) - step.intercept, scores, atol=1e-9)
        residual = weight[:, None] * (scores - centred)
        norm = float(np.sum(ridge.dual_coef_ * scores))
        assert step.objective == pytest.approx(step.loss + 0.5 * alpha * norm)


@pytest.mark.parametrize("loss", [MultinomialLogistic(), MarginSoftmax()])
def test_gomp_with_logistic_losses(loss):
    """At the optimum the gradient of every chosen kernel is minus alpha times its part."""
    K, Y, weight = problem(n=60)
    labels = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))
    alpha = 1e-3
    path = run(K, labels, weight, loss, n_kernels=3, alpha=alpha, tol=1e-12)
    assert path.converged
    losses = [path.null_loss, *(step.objective for step in path.rounds)]
    assert all(np.diff(losses) < 0.0)
    target = loss.encode(labels, 3, weight)
    for size, step in enumerate(path.rounds, start=1):
        scores = scores_of(path, K, size)
        value, residual = loss.value_and_residual(scores, target, weight)
        assert step.loss == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(np.sum(residual, axis=0), 0.0, atol=2e-5)
        for j, table in zip(step.support, path.blocks(size), strict=True):
            np.testing.assert_allclose(alpha * K[j] @ table, -K[j] @ residual, atol=2e-5)


def test_a_penalty_next_to_nothing():
    K, Y, weight = problem(tau=100.0)
    K[:, 0, 1] = K[:, 1, 0] = K[:, 0, 0] + 1e-9  # no kernel, by a hair
    with pytest.raises(ValueError, match="Raise alpha"):
        run(K, Y, weight, n_kernels=2, alpha=1e-20)


@pytest.mark.parametrize("alpha", [1e-5, 1e-8])
def test_gomp_with_hardly_any_penalty(alpha):
    """The residual over alpha is no table then, since the solver's errors are divided too."""
    K, Y, weight = problem(n=60)
    labels = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))
    path = run(K, labels, weight, MultinomialLogistic(), n_kernels=4, alpha=alpha, tol=1e-6)
    losses = [path.null_loss, *(step.objective for step in path.rounds)]
    assert all(np.diff(losses) < 1e-6)
    target = MultinomialLogistic().encode(labels, 3, weight)
    for size, step in enumerate(path.rounds, start=1):
        value, _ = MultinomialLogistic().value_and_residual(
            scores_of(path, K, size), target, weight
        )
        assert value == pytest.approx(step.loss, rel=1e-4, abs=1e-6)


# --- Algorithm 1


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("kind", ["equal", "different"])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_algorithm_1_ends_at_the_optimum(k, kind, alpha):
    K, Y, _ = problem(k=k, seed=1)
    weight = weights_of(kind, len(Y))
    path = run(K, Y, weight, n_kernels=8, algorithm="l1", alpha=alpha, tol=1e-10)
    value, norms, scores = optimum(K, Y, weight, alpha)
    last = path.rounds[-1]
    assert path.exhausted or len(last.support) == 8
    left = [done.gradient for done in path.rounds]
    assert min(left) > alpha  # none came in that could not help
    assert last.objective == pytest.approx(value, rel=1e-6)
    assert 0.0 <= last.gap <= 1e-5 * value
    np.testing.assert_allclose(
        scores_of(path, K, len(path.rounds)) - last.intercept, scores, atol=1e-4
    )
    found = np.zeros(len(K))
    for j, block in zip(last.support, path.blocks(len(path.rounds)), strict=True):
        found[j] = np.sqrt(np.sum(block * (K[j] @ block)))
    np.testing.assert_allclose(found, norms, atol=1e-4)
    assert set(np.flatnonzero(norms > 1e-4)) <= set(last.support)


@pytest.mark.parametrize("seed", range(4))
def test_theorem_1(seed):
    """The objective is within 2 |f*|^2 / (d - 1) of the optimum after d rounds."""
    K, Y, weight = problem(seed=seed, tau=0.3)
    path = run(K, Y, weight, n_kernels=8, algorithm="l1", alpha=0.005, tol=1e-10)
    value, norms, _ = optimum(K, Y, weight, 0.005)
    total = float(np.sum(norms))
    assert len(path.rounds) > 3
    for d, step in enumerate(path.rounds, start=1):
        assert step.objective >= value - 1e-8
        assert step.objective - step.gap <= value + 1e-8
        if d >= 2:
            assert step.objective <= value + 2.0 * total**2 / (d - 1)


def test_kernels_that_are_much_alike():
    """The same column at five widths: coordinate descent alone takes thousands of rounds."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 1))
    K = np.stack([GaussianKernel(tau).between(x) for tau in (0.2, 0.3, 0.5, 1.0, 2.0)])
    Y = np.sin(3.0 * x) + x**2 + 0.1 * rng.standard_normal((80, 1))
    weight = np.full(80, 1.0 / 80)
    path = run(K, Y, weight, n_kernels=5, algorithm="l1", alpha=1e-3, tol=1e-9, max_iter=100)
    assert path.converged
    value, _, _ = optimum(K, Y, weight, 1e-3)
    assert path.rounds[-1].objective == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("width", [0.002, 1.0])
def test_kernels_of_full_rank(width):
    """More directions than rows together: systems of rows instead of features."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 6))
    K = np.stack([GaussianKernel(width).between(X[:, [j, j + 1]]) for j in range(5)])
    Y = np.sin(X[:, [0]]) + X[:, [1]] * X[:, [2]]
    weight = np.full(30, 1.0 / 30)
    path = run(K, Y, weight, n_kernels=5, algorithm="l1", alpha=0.003, tol=1e-10)
    value, _, _ = optimum(K, Y, weight, 0.003)
    assert path.converged
    assert path.rounds[-1].objective == pytest.approx(value, rel=1e-6)


def test_a_part_that_vanishes():
    """All kernels together have more directions than rows, those with a part have fewer."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 30))
    K = np.stack([X[:, at] @ X[:, at].T / 30.0 for at in (slice(8), slice(8, 16), slice(20, 30))])
    K[2] += np.eye(30) / 5.0  # of full rank
    Y = X[:, :2] @ np.array([[1.0], [0.3]]) + X[:, [9]]
    Y -= Y.mean()
    weight = np.full(30, 1.0 / 30)
    model = LassoRefit(
        KernelPool(KernelStack(K), weight),
        Squared(),
        Y,
        weight,
        1,
        alpha=0.2,
        tol=1e-10,
        max_iter=99,
    )
    for kernel in (2, 0, 1):
        assert model.add(kernel).converged
    tables, shares, _ = model.terms()
    blocks = [np.tensordot(row, tables, axes=1) for row in shares]
    norms = [np.sum(b * (K[j] @ b)) for j, b in zip((2, 0, 1), blocks, strict=True)]
    assert norms[0] == 0.0
    assert min(norms[1:]) > 0.0
    value, _, _ = optimum(K, Y, weight, 0.2)
    assert model.objective == pytest.approx(value, rel=1e-6)


def test_a_penalty_that_leaves_nothing():
    K, Y, weight = problem()
    path = run(K, Y, weight, n_kernels=3, algorithm="l1", alpha=100.0)
    assert path.rounds == ()
    assert path.exhausted
    assert path.terms.shape == (0, 40, 1)


@pytest.mark.parametrize("alpha", [1e-6, 1e-9, 1e-12])
def test_algorithm_1_with_hardly_any_penalty(alpha):
    K, Y, weight = problem()
    path = run(K, Y, weight, n_kernels=5, algorithm="l1", alpha=alpha, max_iter=30)
    losses = [path.null_loss, *(step.objective for step in path.rounds)]
    assert all(np.diff(losses) < 1e-8)
    for size, step in enumerate(path.rounds, start=1):
        value = 0.5 * np.mean((scores_of(path, K, size) - Y) ** 2)
        assert value == pytest.approx(step.loss, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("alpha", [2e-9, 1e-8])
def test_algorithm_1_by_careful_steps_with_hardly_any_penalty(alpha):
    """All refits reach their gap, in tens of rounds: blocks by themselves would take thousands."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 5))
    widths = (0.2, 2.0, 20.0)
    K = np.stack([GaussianKernel(tau).between(X[:, [j]]) for j in range(5) for tau in widths])
    Y = np.eye(6)[rng.integers(0, 6, 20)]
    weight = np.full(20, 0.05)
    path = run(K, Y, weight, n_kernels=5, algorithm="l1", alpha=alpha, max_iter=200)
    assert len(path.rounds) > 1
    assert path.converged


def test_algorithm_1_gives_up_where_the_gap_does_not_fall():
    """Scores of separable classes grow for ever, if the penalty is next to nothing."""
    K, Y, weight = problem(n=30, m=3)
    labels = (Y[:, 0] > np.median(Y)).astype(int)
    options = {"algorithm": "l1", "alpha": 1e-10, "max_iter": 5000}
    path = run(K, labels, weight, MultinomialLogistic(), n_kernels=3, **options)
    assert not path.converged
    assert max(step.iterations for step in path.rounds) < 1000


def test_a_penalty_that_is_lost_in_rounding():
    K, Y, weight = problem()
    with pytest.raises(ValueError, match="alpha=1e-300 is so small"):
        run(K, Y, weight, n_kernels=5, algorithm="l1", alpha=1e-300)


def test_algorithm_1_with_a_logistic_loss():
    K, Y, weight = problem(n=50)
    labels = (Y[:, 0] > np.median(Y)).astype(int)
    loss, alpha = MultinomialLogistic(), 0.01
    path = run(K, labels, weight, loss, n_kernels=8, algorithm="l1", alpha=alpha, tol=1e-9)
    assert path.converged
    last, size = path.rounds[-1], len(path.rounds)
    assert last.gap <= 1e-5 * last.objective
    # The same by cvxpy: the loss of two scores is that of their difference.
    factors = [exact_factor(matrix) for matrix in K]
    coefs = [cp.Variable((phi.shape[1], 2)) for phi in factors]
    scores = sum(phi @ c for phi, c in zip(factors, coefs, strict=True)) + last.intercept[None, :]
    signs = np.where(labels == 1, 1.0, -1.0)
    margins = cp.multiply(signs, scores[:, 1] - scores[:, 0])
    objective = cp.sum(cp.logistic(-margins)) / 50
    objective += alpha * sum(cp.norm(c, "fro") for c in coefs)
    value = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert last.objective == pytest.approx(value, rel=1e-4)
    assert scores_of(path, K, size).shape == (50, 2)


# --- Algorithm 2


@pytest.mark.parametrize("step", ["line", "unit"])
def test_algorithm_2_by_hand(step):
    K, Y, weight = problem(k=2)
    n = len(Y)
    path = run(K, Y, weight, n_kernels=6, algorithm="l2", step=step)
    scores = np.tile(Y.mean(axis=0), (n, 1))
    for size, done in enumerate(path.rounds, start=1):
        residual = (scores - Y) / n
        sizes = [np.linalg.norm(matrix @ residual) / math.sqrt(n) for matrix in K]
        best = int(np.argmax(sizes))
        assert done.atom == best
        assert done.gradient == pytest.approx(sizes[best])
        direction = K[best] @ residual
        length = 1.0
        if step == "line":
            length = float(np.sum(residual * direction) * n / np.sum(direction**2))
            assert length >= 1.0  # since kernels are at most one
        scores = scores - length * direction
        np.testing.assert_allclose(scores_of(path, K, size), scores, atol=1e-9)
        assert done.loss == pytest.approx(0.5 * np.mean(np.sum((scores - Y) ** 2, axis=1)))
    assert len(path.rounds) == 6


def test_steps_among_the_chosen():
    K, Y, weight = problem()
    path = run(K, Y, weight, n_kernels=2, n_steps=30, algorithm="l2")
    assert len(path.rounds) == 30
    assert len(path.rounds[-1].support) == 2
    losses = [step.loss for step in path.rounds]
    assert all(np.diff(losses) <= 1e-12)


@pytest.mark.parametrize("loss", [MultinomialLogistic(), MarginSoftmax()])
@pytest.mark.parametrize("step", ["line", "unit"])
def test_steps_of_a_logistic_loss(loss, step):
    K, Y, weight = problem()
    labels = np.digitize(Y[:, 0], [0.0, 1.0])
    path = run(K, labels, weight, loss, n_kernels=8, n_steps=10, algorithm="l2", step=step)
    losses = [path.null_loss, *(done.loss for done in path.rounds)]
    assert all(np.diff(losses) < 0.0)
    if step == "line":  # the slope along the step is zero where it ends
        target = loss.encode(labels, 3, weight)
        for size, done in enumerate(path.rounds, start=1):
            before = scores_of(path, K, size - 1) if size > 1 else path.null_intercept[None, :]
            after = scores_of(path, K, size)
            _, residual = loss.value_and_residual(after, target, weight)
            change = after - before
            assert abs(np.sum(residual * change)) <= 1e-8 * np.linalg.norm(change)
            assert done.loss > 0.0


def test_steps_of_one_need_kernels_of_one():
    K, Y, weight = problem()
    with pytest.raises(ValueError, match="a kernel is 4 between a row and itself"):
        run(4.0 * K, Y, weight, n_kernels=3, algorithm="l2", step="unit")
    path = run(4.0 * K, Y, weight, n_kernels=3, algorithm="l2")
    assert path.rounds[-1].loss < path.null_loss


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("step", ["line", "unit"])
def test_geometric_rate(seed, step):
    """Kernels of low rank that are nearly orthogonal: the loss falls as fast as the lemma says."""
    rng = np.random.default_rng(seed)
    n, m = 60, 4
    basis = np.linalg.qr(rng.standard_normal((n, 2 * m)) + 0.0)[0] * math.sqrt(n)
    factors = [basis[:, 2 * j : 2 * j + 2] + 0.02 * rng.standard_normal((n, 2)) for j in range(m)]
    factors = [phi / np.linalg.norm(phi, axis=1).max() for phi in factors]  # at most one
    K = np.stack([phi @ phi.T for phi in factors])
    Y = sum(phi @ rng.standard_normal((2, 1)) for phi in factors)
    Y = Y - Y.mean()
    weight = np.full(n, 1.0 / n)
    path = run(K, Y, weight, n_kernels=4, n_steps=80, algorithm="l2", step=step)
    geometry = kernel_geometry(factors)
    assert geometry.correlation < 0.3
    span = np.linalg.qr(np.concatenate(factors, axis=1))[0]
    left = Y - span @ (span.T @ Y)
    floor = 0.5 * float(np.sum(left**2)) / n
    excess = np.asarray([path.null_loss, *(done.loss for done in path.rounds)]) - floor
    bound = excess[0] * geometry.rate ** np.arange(len(excess))
    assert np.all(excess <= bound * (1.0 + 1e-9) + 1e-15)
    some = excess > 1e-12 * excess[0]
    slope, _ = np.polyfit(np.flatnonzero(some), np.log(excess[some]), 1)
    assert math.exp(slope) <= geometry.rate < 1.0
    assert math.exp(slope) < 0.97


# --- copies


def test_ten_copies():
    """The paper's example: weights shared by copies mislead a choice by weight, not this one."""
    K, Y, weight = problem(n=60, m=2, seed=3)
    alpha = 0.02
    _, norms, _ = optimum(K, Y, weight, alpha)
    assert norms[0] > norms[1] > 0.1 * norms[0]  # so a tenth of the first is less than the second
    copies = np.concatenate([np.repeat(K[:1], 10, axis=0), K[1:]])
    value, _, _ = optimum(copies, Y, weight, alpha)
    shared = np.append(np.full(10, norms[0] / 10.0), norms[1])  # the symmetric minimiser
    factors = [exact_factor(matrix) for matrix in copies]
    assert value == pytest.approx(optimum(K, Y, weight, alpha)[0], rel=1e-6)
    assert len(factors) == len(shared)
    assert int(np.argmax(shared)) == 10  # two stages choose the second kernel
    for algorithm in ("gomp", "l1", "l2"):
        once = run(K, Y, weight, n_kernels=1, algorithm=algorithm, alpha=alpha)
        many = run(copies, Y, weight, n_kernels=1, algorithm=algorithm, alpha=alpha)
        assert once.rounds[0].atom == 0
        assert many.rounds[0].atom < 10
        assert many.rounds[0].loss == pytest.approx(once.rounds[0].loss)


def test_copies_are_left_out_at_the_optimum():
    """Also when scores are known in single precision only."""
    K, Y, weight = problem(n=60, m=2, seed=3)
    copies = np.concatenate([np.repeat(K[:1], 10, axis=0), K[1:]]).astype(np.float32)
    path = run(copies, Y, weight, n_kernels=11, algorithm="l1", alpha=0.01)
    assert len(path.rounds) == 2
    assert path.exhausted


# --- runs


@pytest.mark.parametrize("algorithm", ["gomp", "l1", "l2"])
def test_going_on(algorithm):
    K, Y, weight = problem(k=2)
    options = {"algorithm": algorithm, "alpha": 0.01, "tol": 1e-11}
    whole = run(K, Y, weight, n_kernels=5, **options)
    first = run(K, Y, weight, n_kernels=2, **options)
    rest = run(K, Y, weight, n_kernels=5, start=first, **options)
    assert [step.atom for step in rest.rounds] == [step.atom for step in whole.rounds]
    for one, other in zip(rest.rounds, whole.rounds, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-6)
    np.testing.assert_allclose(scores_of(rest, K, 5), scores_of(whole, K, 5), atol=1e-5)
    again = run(K, Y, weight, n_kernels=2, start=first, **options)
    assert len(again.rounds) == 2
    assert again.rounds[1].gap == pytest.approx(first.rounds[1].gap, rel=1e-6, abs=1e-12)


def test_being_told_to_stop():
    K, Y, weight = problem()
    seen = []

    def note(path):
        seen.append(path)
        return len(path.rounds) == 2

    path = run(K, Y, weight, n_kernels=5, on_round=note)
    assert isinstance(path, KernelPath)
    assert [len(each.rounds) for each in seen] == [1, 2]
    assert len(path.rounds) == 2


def test_interrupts():
    K, Y, weight = problem()

    def interrupt(path):
        if len(path.rounds) == 3:
            raise KeyboardInterrupt
        return False

    path = run(K, Y, weight, n_kernels=5, on_round=interrupt)
    assert path.interrupted
    assert len(path.rounds) == 3
    with pytest.raises(KeyboardInterrupt):
        select(
            _Breaks(),
            Squared(),
            Y,
            n_kernels=2,
            n_outputs=1,
            weight=weight,
            algorithm="l2",
        )


class _Breaks:
    """A pool during whose first scan the user has enough."""

    grams = KernelStack(np.eye(40))

    def top(self, *_):
        raise KeyboardInterrupt


def test_wishes_that_are_unknown():
    K, Y, weight = problem()
    with pytest.raises(ValueError, match="algorithm='l3'"):
        run(K, Y, weight, n_kernels=1, algorithm="l3")
    for alpha in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="must be positive and finite"):
            run(K, Y, weight, n_kernels=1, algorithm="l1", alpha=alpha)
    with pytest.raises(ValueError, match="step='half'"):
        run(K, Y, weight, n_kernels=1, algorithm="l2", step="half")


def test_targets_that_are_equal():
    K, Y, weight = problem()
    for algorithm in ("gomp", "l1", "l2"):
        path = run(K, np.full_like(Y, 3.0), weight, n_kernels=2, algorithm=algorithm)
        assert path.rounds == ()
        assert path.exhausted

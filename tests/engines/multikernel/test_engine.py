"""The engine of kernel weights against cvxpy and against itself."""

import math

import numpy as np
import pytest

from mixnorm.engines.multikernel import HingeTarget, KernelPenalty, SquaredTarget, solve
from mixnorm.kernels import KernelStack

WIDTHS = 2.0 ** np.arange(-3, 5, 2)


def problem(seed=0, n=36, n_classes=3, dtype=np.float64):
    """Return kernel matrices, and labels that depend on the first two columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    labels = (np.floor(1.5 * (X[:, 0] + X[:, 1]) + 0.3 * rng.normal(size=n))).astype(
        int
    ) % n_classes
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return KernelStack([np.exp(-squares / (2.0 * tau)).astype(dtype) for tau in WIDTHS]), labels


def checked(stack):
    stack.check()
    return stack


def cvxpy_objective(stack, penalty, losses, n_outputs):
    """Return the optimum of penalty plus losses, over blocks in the kernels' feature spaces."""
    cp = pytest.importorskip("cvxpy")
    blocks, scores = [], 0.0
    for K in stack.matrices:
        values, vectors = np.linalg.eigh(K.astype(float))
        kept = values > 1e-12 * values[-1]
        root = vectors[:, kept] * np.sqrt(values[kept])
        block = cp.Variable((root.shape[1], n_outputs))
        blocks.append(block)
        scores = scores + root @ block
    sizes = cp.hstack(
        [
            math.sqrt(rho) * cp.norm(block, "fro")
            for rho, block in zip(penalty.scales, blocks, strict=True)
        ]
    )
    cost = 0.5 * cp.square(cp.pnorm(sizes, penalty.s, approx=False)) + penalty.offsets @ sizes
    goal = cp.Problem(cp.Minimize(cost + losses(cp, scores)))
    goal.solve(solver=cp.CLARABEL)
    return goal.value


def hinge_losses(labels, caps, n_classes, power):
    def losses(cp, scores):
        one_hot = np.eye(n_classes)[labels]
        own = cp.sum(cp.multiply(scores, one_hot), axis=1)
        lost = cp.max(scores + 1.0 - one_hot, axis=1) - own
        return cp.sum(cp.multiply(caps, lost if power == 1 else cp.square(cp.pos(lost))))

    return losses


PENALTIES = {
    "p=1": lambda n, C: KernelPenalty.of_weights(1.0, np.ones(4)),
    "p=1.2": lambda n, C: KernelPenalty.of_weights(1.2, np.ones(4)),
    "p=2 scaled": lambda n, C: KernelPenalty.of_weights(2.0, np.array([0.5, 1.0, 2.0, 3.0])),
    "p=1 scaled": lambda n, C: KernelPenalty.of_weights(1.0, np.array([0.5, 1.0, 2.0, 3.0])),
    "average": lambda n, C: KernelPenalty.of_weights(math.inf, np.ones(4)),
    "constant offsets": lambda n, C: KernelPenalty(2.77, np.ones(4), np.full(4, 0.02 * n * C)),
    "offsets": lambda n, C: KernelPenalty(
        4.0, np.ones(4), 0.05 * n * C * np.array([0.9, 0.4, 0.1, 0.01])
    ),
}


# The reference ends at 1e-7 or so where its last steps bring nothing more.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared hinge"])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("name", PENALTIES)
def test_agrees_with_cvxpy_on_hinges(name, C, squared):
    stack, labels = problem()
    penalty, caps = PENALTIES[name](len(labels), C), np.full(len(labels), C)
    found = solve(
        checked(stack), HingeTarget(labels, caps, 3, squared), penalty, tol=1e-7, max_iter=3000
    )
    optimum = cvxpy_objective(stack, penalty, hinge_losses(labels, caps, 3, 2 if squared else 1), 3)
    assert found.converged
    assert found.objective == pytest.approx(optimum, rel=1e-6)
    # The reference is exact to some 1e-8.
    assert found.objective - found.gap <= optimum * (1.0 + 1e-7)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", PENALTIES)
def test_agrees_with_cvxpy_on_squares(name):
    stack, labels = problem()
    rng = np.random.default_rng(1)
    Y = np.eye(3)[labels][:, :2] + 0.1 * rng.normal(size=(len(labels), 2))
    penalty, caps = PENALTIES[name](len(labels), 2.0), np.full(len(labels), 2.0)
    if "offsets" in name:
        penalty = KernelPenalty(penalty.q, penalty.scales, 0.1 * penalty.offsets)
    found = solve(checked(stack), SquaredTarget(Y, caps), penalty, tol=1e-7, max_iter=3000)

    def losses(cp, scores):
        return cp.sum_squares(scores - Y)

    optimum = cvxpy_objective(stack, penalty, losses, 2)
    assert found.converged
    assert found.objective == pytest.approx(optimum, rel=1e-6)
    assert found.objective - found.gap <= optimum * (1.0 + 1e-7)


def test_a_start_without_kernels_is_no_trap():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 3))
    labels = np.argmax(X + 0.3 * rng.standard_normal((60, 3)), axis=1)
    stack = KernelStack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))])
    stack.check()
    target = HingeTarget(labels, np.full(60, 2.0), 3, squared=False)
    penalty = KernelPenalty(4.0, np.ones(2), np.full(2, 0.1))
    nothing = np.zeros(2), np.zeros((60, 3))
    found = solve(stack, target, penalty, tol=1e-3, start=nothing)
    other = solve(stack, target, penalty, tol=1e-3)
    assert found.converged
    assert np.any(found.weights)
    assert found.objective == pytest.approx(other.objective, rel=2e-3)


def with_zeros(stack):
    """Return the kernels of a stack and one of zeros, which helps nobody."""
    n = len(stack.matrices[0])
    return checked(KernelStack([*stack.matrices, np.zeros((n, n))]))


WITH_ZEROS = {
    "p=1": KernelPenalty.of_weights(1.0, np.ones(5)),
    "p=1.2": KernelPenalty.of_weights(1.2, np.ones(5)),
    "offsets": KernelPenalty(4.0, np.ones(5), np.array([0.1, 0.1, 50.0, 0.1, 0.1])),
}


@pytest.mark.parametrize("max_iter", [1, 200])
@pytest.mark.parametrize("name", WITH_ZEROS)
def test_the_objective_is_that_of_the_weights_and_duals_returned(name, max_iter):
    """Kernels left out at the end count as left out, also after a single machine."""
    stack, labels = problem()
    stack, penalty = with_zeros(stack), WITH_ZEROS[name]
    target = HingeTarget(labels, np.ones(len(labels)), 3, squared=False)
    found = solve(stack, target, penalty, tol=0.05, max_iter=max_iter)
    energies = np.array([np.sum(found.duals * (K @ found.duals)) for K in stack.matrices])
    F = np.ascontiguousarray((stack.combine(found.weights) @ found.duals).T)
    value = penalty.value(penalty.sizes(found.weights, energies)) + target.loss(F)
    assert found.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(found.energies, energies, atol=1e-9)


def test_sharp_penalties_leave_kernels_out():
    """Weights are zero, not small, of kernels of zeros and of those that cost too much."""
    stack, labels = problem()
    target = HingeTarget(labels, np.ones(len(labels)), 3, squared=False)
    weights = {
        name: solve(with_zeros(stack), target, penalty, tol=0.05).weights
        for name, penalty in WITH_ZEROS.items()
    }
    assert np.flatnonzero(weights["p=1"]).tolist() == [0]
    assert np.all(weights["p=1.2"][:4] > 0.0)
    assert np.flatnonzero(weights["offsets"] == 0.0).tolist() == [2, 4]


def test_kernels_that_rounding_of_their_entries_makes_indefinite_are_accepted():
    """Entries near one that are off by a unit in the last place, all to the worse side."""
    n = 40
    labels = np.arange(n) % 2
    signs = 1.0 - 2.0 * labels
    K = (1.0 - np.finfo(np.float32).eps * np.outer(signs, signs)).astype(np.float32)
    target = HingeTarget(labels, np.ones(n), 2, squared=False)
    found = solve(KernelStack(K[None]), target, KernelPenalty.of_weights(2.0, np.ones(1)))
    assert found.energies[0] < 0.0
    assert found.objective == pytest.approx(n, rel=1e-4)  # nothing can be learned


@pytest.mark.parametrize("C", [1e-6, 1e-3])
def test_samples_that_count_little_are_learned_from(C):
    """The gain over scores of zero is far below the tolerance; half of it is reached."""
    stack, labels = problem()
    target = HingeTarget(labels, np.full(len(labels), C), 3, squared=False)
    found = solve(checked(stack), target, KernelPenalty.of_weights(1.2, np.ones(4)), tol=0.1)
    nothing = C * len(labels)
    assert found.converged
    assert found.objective < nothing
    assert found.gap <= 0.5 * (nothing - (found.objective - found.gap))


@pytest.mark.parametrize("p", [1.0, 1.2])
def test_the_first_weights_follow_the_energies_in_any_unit(p):
    """Kernels 1e4 times as large, of samples that count as many times less, are the same."""
    stack, labels = problem()
    penalty, found = KernelPenalty.of_weights(p, np.ones(4)), []
    for unit in (1.0, 1e4):
        kernels = checked(KernelStack([unit * K for K in stack.matrices]))
        target = HingeTarget(labels, np.full(len(labels), 1.0 / unit), 3, squared=False)
        found.append(solve(kernels, target, penalty, tol=1e-6, max_iter=1).weights)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    assert np.all(found[0] > 0.0)
    duals = target.guess()
    energies = [np.sum(duals * (K @ duals)) for K in stack.matrices]
    assert np.argmax(found[0]) == np.argmax(energies)
    assert np.max(found[0]) > 1.5 * np.min(found[0])

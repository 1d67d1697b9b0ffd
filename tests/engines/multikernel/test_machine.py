"""Machines on one sum of kernels: against slow twins, against each other, and on hard problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from mixnorm.engines.multikernel import KernelPenalty, solve
from mixnorm.engines.multikernel import machine_jit as jit
from mixnorm.engines.multikernel.interior import solve_interior
from mixnorm.engines.multikernel.machine import (
    FactorMachine,
    HingeTarget,
    MachineBlock,
    MatrixMachine,
    RidgeMachine,
    SquaredTarget,
)
from mixnorm.engines.multikernel.newton import ProximalNewton
from mixnorm.engines.multikernel.settings import MultikernelSettings
from mixnorm.kernels import FactorGrams, KernelStack

# Compiled functions with the way in from Python, which the inner ones do without.
project, solve_flat_row, compute_row_gap = (
    njit(error_model="numpy")(inner.py_func)
    for inner in (jit.project, jit.solve_flat_row, jit.compute_row_gap)
)


def rows(n, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    sums = 1.5 * (X[:, 0] + X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, np.floor(sums).astype(int) % n_classes


def gaussians(X, taus):
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    stack = KernelStack(np.stack([np.exp(-squares / (2.0 * tau)) for tau in taus]))
    stack.check()
    return stack


def roots(stack):
    """Factors of full rank of the kernels."""
    factors = []
    for K in stack.matrices:
        values, vectors = np.linalg.eigh(K)
        factors.append(vectors * np.sqrt(np.maximum(values, 0.0)))
    return FactorGrams(np.concatenate(factors, axis=1), [len(K) for K in stack.matrices])


def primal(K, A, target):
    """The objective of a machine, its losses written out."""
    F = K @ A
    one_hot = np.eye(target.n_outputs)[target.labels]
    lost = np.max(F + 1.0 - one_hot, axis=1) - np.sum(F * one_hot, axis=1)
    lost = lost**2 if target.squared else lost
    return 0.5 * np.sum(A * F) + np.sum(target.caps * lost)


def dual(K, A, target):
    own = A[np.arange(len(A)), target.labels]
    gain = own - own**2 / (4.0 * target.caps) if target.squared else own
    return np.sum(gain) - 0.5 * np.sum(A * (K @ A))


def feasible(target, rng):
    """Dual variables that are allowed."""
    share = rng.dirichlet(np.ones(target.n_outputs), size=len(target))
    share[np.arange(len(target)), target.labels] = 0.0
    A = -share * target.caps[:, None]
    A[np.arange(len(target)), target.labels] = -np.sum(A, axis=1)
    return A


def assert_feasible(A, target):
    own = A[np.arange(len(A)), target.labels]
    rest = A.copy()
    rest[np.arange(len(A)), target.labels] = 0.0
    assert np.all(rest <= 0.0)
    if not target.squared:
        assert np.all(own <= target.caps * (1.0 + 1e-9))
    np.testing.assert_allclose(np.sum(A, axis=1), 0.0, atol=1e-9 * np.max(target.caps))


# --- rows


def slow_projection(V, y, cap, shrink):
    """The multiplier of the sum by bisection."""

    def entries(t):
        found = np.minimum(0.0, V - t)
        found[y] = min(cap, shrink * (V[y] - t))
        return found

    low, high = np.min(V) - abs(cap) - 1.0, np.max(V) + 1.0
    if np.isinf(cap):
        low = np.min(V) - 1.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sum(entries(middle)) > 0.0 else (low, middle)
    return entries(0.5 * (low + high))


values = st.floats(-20.0, 20.0).map(lambda value: round(value, 3))


@given(data=st.data(), n_classes=st.integers(2, 6), squared=st.booleans())
def test_projection(data, n_classes, squared):
    V = data.draw(arrays(float, n_classes, elements=values))
    y = data.draw(st.integers(0, n_classes - 1))
    cap = np.inf if squared else data.draw(st.sampled_from([1e-3, 0.5, 1.0, 7.0, 1e3]))
    shrink = data.draw(st.sampled_from([1e-3, 0.3, 0.99])) if squared else 1.0
    out = np.empty(n_classes)
    project(V, y, cap, shrink, out)
    np.testing.assert_allclose(out, slow_projection(V, y, cap, shrink), atol=1e-8)
    assert out[y] <= cap * (1.0 + 1e-12) + 1e-12
    assert np.all(np.delete(out, y) <= 0.0)
    assert np.sum(out) == pytest.approx(0.0, abs=1e-12)


@given(data=st.data())
def test_nothing_allowed_is_nearer_than_the_projection(data):
    n_classes = data.draw(st.integers(2, 5))
    V = data.draw(arrays(float, n_classes, elements=values))
    target = HingeTarget(np.zeros(20, dtype=int), np.full(20, 2.0), n_classes, squared=False)
    others = feasible(target, np.random.default_rng(0))
    found = V[None].copy()
    jit.project_rows(found, np.zeros(1, dtype=np.int64), np.array([2.0]), False, 0.0)
    assert np.all(np.sum((others - V) ** 2, axis=1) >= np.sum((found[0] - V) ** 2) - 1e-9)


@pytest.mark.parametrize("squared", [False, True])
def test_the_gap_is_the_objective_less_the_dual_value(squared):
    X, y = rows(25)
    K = gaussians(X, [0.5]).matrices[0]
    rng = np.random.default_rng(1)
    target = HingeTarget(y, rng.uniform(0.1, 3.0, size=25), 3, squared)
    for A in (np.zeros((25, 3)), feasible(target, rng), target.guess()):
        F, parts = np.ascontiguousarray((K @ A).T), np.empty(25)
        gap = jit.compute_gaps(F, A, target.labels, target.caps, squared, parts)
        assert gap == pytest.approx(primal(K, A, target) - dual(K, A, target), rel=1e-9)
        assert gap == pytest.approx(np.sum(parts))
        assert np.all(parts >= -1e-12)
        assert target.gain(A) == pytest.approx(dual(0.0 * K, A, target))
        assert target.loss(F) == pytest.approx(primal(K, A, target) - 0.5 * np.sum(A * (K @ A)))


@pytest.mark.parametrize("squared", [False, True])
def test_a_row_is_made_as_good_as_can_be(squared):
    """No allowed change of the row raises the dual value further."""
    X, y = rows(25)
    K = gaussians(X, [0.5]).matrices[0]
    rng = np.random.default_rng(1)
    target = HingeTarget(y, rng.uniform(0.1, 3.0, size=25), 3, squared)
    A = feasible(target, rng)
    F = np.ascontiguousarray((K @ A).T)
    before = dual(K, A, target)
    jit.sweep_rows(K, F, A, target.labels, target.caps, squared, np.array([7]), -1.0)
    best = dual(K, A, target)
    assert best > before
    np.testing.assert_allclose(F, (K @ A).T, atol=1e-12)
    assert_feasible(A, target)
    for _ in range(200):
        other = A.copy()
        other[7] = feasible(target, rng)[7] * (rng.uniform(0.0, 3.0) if squared else 1.0)
        assert dual(K, other, target) <= best + 1e-12
        near = A.copy()
        near[7] = 0.99 * A[7] + 0.01 * other[7]
        assert dual(K, near, target) <= best + 1e-12


# --- whole machines


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_matrices_and_factors_have_the_same_optimum(C, squared):
    X, y = rows(50)
    stack = gaussians(X, [0.2, 2.0])
    factors = roots(stack)
    weights = np.array([0.7, 0.4])
    K = stack.combine(weights)
    target = HingeTarget(y, np.random.default_rng(1).uniform(0.5, 2.0, size=50) * C, 3, squared)
    assert isinstance(target.machine(stack), MatrixMachine)
    found = []
    for machine in (MatrixMachine(stack, target), FactorMachine(factors, target)):
        gap = machine.solve(weights, 1e-7 * C)
        assert gap <= 1e-7 * C
        assert_feasible(machine.A, target)
        value = primal(K, machine.A, target)
        assert value - dual(K, machine.A, target) == pytest.approx(gap, abs=1e-6 * C)
        assert target.loss(machine.F) == pytest.approx(
            target.loss((K @ machine.A).T.copy()), rel=1e-6
        )
        assert machine.loss_of(weights, machine.A) == pytest.approx(
            target.loss(machine.F), rel=1e-6
        )
        found.append(value)
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_pairs_and_energies_are_the_same_by_matrices_and_factors():
    X, y = rows(20)
    stack = gaussians(X, [0.2, 2.0])
    factors = roots(stack)
    target = HingeTarget(y, np.ones(20), 3, False)
    rng = np.random.default_rng(0)
    A, B = feasible(target, rng), feasible(target, rng)
    wanted = [np.sum(B * (K @ A)) for K in stack.matrices]
    for machine in (MatrixMachine(stack, target), FactorMachine(factors, target)):
        machine.A = A
        np.testing.assert_allclose(
            machine.cross_energies(machine.kernel_image(), B), wanted, rtol=1e-8
        )
        energies = [np.sum(A * (K @ A)) for K in stack.matrices]
        np.testing.assert_allclose(machine.grams.energies(A), energies, rtol=1e-8)


@pytest.mark.parametrize("tau", [2.0, 50.0, 1000.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_samples_that_count_much_on_wide_kernels(tau, n_classes):
    """The matrix is next to singular: without Newton steps this takes forever."""
    X, y = rows(150, n_classes=n_classes)
    stack = gaussians(X, [tau])
    target = HingeTarget(y, np.full(150, 1e4), n_classes, squared=False)
    machine = MatrixMachine(stack, target)
    guess = primal(stack.matrices[0], np.zeros((150, n_classes)), target)
    machine.solve(np.ones(1), 1e-6 * guess)
    value = primal(stack.matrices[0], machine.A, target)
    assert machine.solve(np.ones(1), 1e-4 * value) <= 1e-4 * value
    bound = dual(stack.matrices[0], machine.A, target)
    assert value - bound <= 1.1e-4 * value
    assert_feasible(machine.A, target)


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("tau", [0.5, 20.0])
def test_newton_steps_never_lower_the_dual_value(tau, C):
    X, y = rows(60)
    K = gaussians(X, [tau]).matrices[0]
    rng = np.random.default_rng(2)
    target = HingeTarget(y, C * rng.uniform(0.5, 1.5, size=60), 3, squared=False)
    for A in (np.zeros((60, 3)), feasible(target, rng), target.guess()):
        F = np.ascontiguousarray((K @ A).T)
        steps = ProximalNewton(K, target)
        last, first = dual(K, A, target), dual(K, A, target)
        for _ in range(8):
            steps.step(A, F)
            value = dual(K, A, target)
            assert value >= last - 1e-9 * abs(last)
            last = value
        assert last > first
        assert_feasible(A, target)
        np.testing.assert_allclose(F, (K @ A).T, atol=1e-8 * C)


@pytest.mark.parametrize("most", [10, 40, 10_000])
@pytest.mark.parametrize("squared", [False, True])
def test_rows_at_work_by_their_matrix(monkeypatch, most, squared):
    """What factors of many columns take, with all rows at work or some of them at a time."""
    X, y = rows(120)
    stack = gaussians(X, [0.1, 1.0])
    target = HingeTarget(y, np.full(120, 5.0), 3, squared)
    weights = np.array([0.6, 0.8])
    wanted = MatrixMachine(stack, target)
    wanted.solve(weights, 1e-6)
    monkeypatch.setattr(jit, "sweep_factors", None)
    settings = MultikernelSettings(wide_factors=0.0, max_block_rows=most)
    found = FactorMachine(roots(stack), target, settings)
    assert found.solve(weights, 1e-6) <= 1e-6
    np.testing.assert_allclose(found.F, wanted.F, atol=1e-2)
    assert_feasible(found.A, target)


def test_blocks_of_rows():
    rng = np.random.default_rng(0)
    columns, weights = rng.standard_normal((50, 7)), rng.random(7)
    block, K = MachineBlock(columns, weights), (columns * weights) @ columns.T
    for some in ([3, 8, 20], [3, 8, 9, 20, 41], [0, 9], [0, 9], [1, 2], np.arange(50)):
        np.testing.assert_allclose(block.matrix(np.array(some)), K[np.ix_(some, some)])


def test_free_directions():
    """An orthonormal basis of the changes that keep the sum and touch no entry at its bound."""
    A = np.array([[1.0, -0.5, -0.5], [2.0, -2.0, 0.0], [0.0, 0.0, 0.0], [0.5, -0.5, 0.0]])
    labels, caps = np.zeros(4, dtype=np.int64), np.full(4, 2.0)
    count = jit.count_directions(A, labels, caps, False)
    assert count == 3  # two, none, none (the label's entry alone is free), one
    index, basis = np.empty(count, dtype=np.int64), np.zeros((count, 3))
    jit.find_directions(A, labels, caps, False, 0.0, index, basis)
    assert index.tolist() == [0, 0, 3]
    np.testing.assert_allclose(basis[:2] @ basis[:2].T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(basis @ np.ones(3), 0.0, atol=1e-12)
    assert basis[2, 2] == 0.0


@pytest.mark.parametrize("squared", [False, True])
def test_directions_are_how_the_projection_answers(squared):
    rng = np.random.default_rng(0)
    labels, caps, sigma = rng.integers(4, size=30), rng.uniform(0.5, 2.0, size=30), 3.0
    V = 2.0 * rng.standard_normal((30, 4))
    change = rng.standard_normal((30, 4))

    def projected(V):
        found = V.copy()
        jit.project_rows(found, labels, caps, squared, sigma)
        return found

    A = projected(V)
    count = jit.count_directions(A, labels, caps, squared)
    index, basis = np.empty(count, dtype=np.int64), np.zeros((count, 4))
    jit.find_directions(A, labels, caps, squared, sigma, index, basis)
    answer = np.zeros((30, 4))
    np.add.at(answer, index, np.sum(basis * change[index], axis=1)[:, None] * basis)
    step = 1e-6
    np.testing.assert_allclose(
        (projected(V + step * change) - projected(V - step * change)) / (2.0 * step),
        answer,
        atol=1e-6,
    )


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_squares_are_solved_exactly(n_outputs):
    X, _ = rows(40)
    stack = gaussians(X, [0.2, 2.0])
    rng = np.random.default_rng(0)
    Y, caps = rng.normal(size=(40, n_outputs)), rng.uniform(0.5, 20.0, size=40)
    target, weights = SquaredTarget(Y, caps), np.array([0.7, 0.4])
    K = stack.combine(weights)
    for machine in (RidgeMachine(stack, target), RidgeMachine(roots(stack), target)):
        assert machine.solve(weights, 0.0) == 0.0
        np.testing.assert_allclose(K @ machine.A + machine.A / caps[:, None], Y, atol=1e-7)
        np.testing.assert_allclose(machine.F, (K @ machine.A).T, atol=1e-7)
        value = 0.5 * np.sum(machine.A * (K @ machine.A)) + target.loss(machine.F)
        bound = target.gain(machine.A) - 0.5 * np.sum(machine.A * (K @ machine.A))
        assert value == pytest.approx(bound, rel=1e-9)


def test_squares_with_a_weight_of_zero_by_factors():
    X, _ = rows(40)
    stack = gaussians(X, [0.2, 2.0])
    target = SquaredTarget(X[:, :1], np.full(40, 3.0))
    found = []
    for grams in (stack, roots(stack)):
        machine = RidgeMachine(grams, target)
        machine.solve(np.array([0.0, 2.0]), 0.0)
        found.append(machine.A)
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)


# --- the whole engine


def test_squares_reach_the_tolerance():
    """Few kernels and p=1: with C=1 and C=1000 the gap falls below 1e-7, with C=10 it does not."""
    X, _ = rows(60)
    stack = gaussians(X, [0.125, 0.5, 2.0, 8.0])
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    target = SquaredTarget((y - y.mean())[:, None], np.full(60, 10.0))
    found = solve(stack, target, KernelPenalty.of_weights(1.0, np.ones(4)), tol=1e-6, max_iter=300)
    assert found.gap <= 1e-6 * found.objective


def test_a_target_of_zero():
    """As tol=0 asks for: to go on until rounding, or the number of rounds, ends it."""
    X, y = rows(30)
    stack = gaussians(X, [0.5])
    machine = MatrixMachine(stack, HingeTarget(y, np.full(30, 10.0), 3, False))
    assert machine.solve(np.ones(1), 0.0) < 1e-8


def test_history_falls_and_ends_at_the_tolerance():
    X, y = rows(80)
    stack = gaussians(X, [0.125, 0.5, 2.0, 8.0])
    target = HingeTarget(y, np.full(80, 10.0), 3, False)
    told = []
    found = solve(
        stack, target, KernelPenalty.of_weights(1.2, np.ones(4)), tol=1e-3,
        on_iteration=lambda count, gap: told.append((count, gap)),
    )  # fmt: skip
    assert found.converged
    assert not found.interrupted
    assert len(found.history) == found.iterations == len(told)
    assert told == list(enumerate(found.history, start=1))
    assert np.all(np.diff(found.history) <= 0.0)
    assert found.history[-1] <= 1e-3 < found.history[-2]
    assert found.gap == pytest.approx(found.history[-1] * found.objective, rel=1e-6)


@pytest.mark.parametrize("when", [1, 3])
def test_interrupts_keep_the_best_so_far(when):
    X, y = rows(80)
    stack = gaussians(X, [0.125, 0.5, 2.0, 8.0])
    target = HingeTarget(y, np.full(80, 10.0), 3, False)

    def interrupt(count, gap):
        if count == when:
            raise KeyboardInterrupt

    found = solve(
        stack, target, KernelPenalty.of_weights(1.2, np.ones(4)), tol=1e-9, on_iteration=interrupt
    )
    assert found.interrupted
    assert not found.converged
    assert found.iterations == when
    assert np.all(np.isfinite(found.duals))
    whole = solve(stack, target, KernelPenalty.of_weights(1.2, np.ones(4)), tol=1e-6)
    assert found.objective - found.gap <= whole.objective <= found.objective * (1.0 + 1e-9)


def test_an_interrupt_before_the_first_machine_is_passed_on(monkeypatch):
    X, y = rows(30)
    stack = gaussians(X, [0.5])

    def interrupted(self, weights, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(MatrixMachine, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve(
            stack, HingeTarget(y, np.ones(30), 3, False), KernelPenalty.of_weights(1.2, np.ones(1))
        )


def test_many_rows_are_learned_in_parts_first():
    """The start on a third of the rows changes what is found by no more than the gap."""
    X, y = rows(480)
    stack = gaussians(X, [0.125, 2.0])
    target = HingeTarget(y, np.full(480, 1.0), 3, False)
    penalty = KernelPenalty.of_weights(1.2, np.ones(2))
    found = solve(stack, target, penalty, tol=1e-3)
    cold = solve(stack, target, penalty, tol=1e-3, start=(np.ones(2), np.zeros((480, 3))))
    assert found.converged
    assert cold.converged
    assert found.objective - found.gap <= cold.objective
    assert cold.objective - cold.gap <= found.objective


def test_kernels_that_turn_out_negative_are_refused():
    """The check looks at 128 rows; the engine at the quadratic forms that it meets."""
    X, y = rows(40)
    stack = gaussians(X, [0.5, 2.0])
    stack.matrices[1] = -stack.matrices[1]
    target = HingeTarget(y, np.ones(40), 3, False)
    with pytest.raises(ValueError, match="Kernel 1 is not positive semi-definite.*clip_negative"):
        solve(stack, target, KernelPenalty.of_weights(2.0, np.ones(2)))


def test_kernels_so_large_that_they_overflow():
    X, y = rows(40)
    stack = gaussians(X, [0.5])
    stack.matrices[0] = stack.matrices[0] * 1e300
    target = HingeTarget(y, np.full(40, 1e10), 3, False)
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="so large that sums of them overflow"),
    ):
        solve(stack, target, KernelPenalty.of_weights(2.0, np.ones(1)))


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("cap", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-3, 0.0), (1e3, 1e3)])
def test_interior_point_method_reaches_tiny_gaps_whatever_the_scale(squared, cap, scale, offset):
    """Weights and dual variables agree to 1e-6 of the objective."""
    X, y = rows(40)
    columns = np.column_stack([scale * X + offset, np.ones(40)])
    target = HingeTarget(y, np.full(40, cap), 3, squared)
    found = solve_interior(columns, target, 0.0)
    value = 0.5 * np.sum(found.W**2) + target.loss((columns @ found.W).T)
    A = found.A
    np.testing.assert_allclose(A, target.project(A), atol=1e-9 * np.max(np.abs(A)))
    bound = target.gain(A) - 0.5 * np.sum((columns.T @ A) ** 2)
    assert abs(value - bound) <= 1e-6 * value
    assert found.gap <= 1e-6 * value


def test_a_search_that_rounding_stops_ends_early():
    """In single precision the kernel has negative eigenvalues, and no gap can be small."""
    X, y = rows(60)
    stack = gaussians(X, [10.0, 30.0])
    narrow = KernelStack([K.astype(np.float32) for K in stack.matrices])
    narrow.check()
    target = HingeTarget(y, np.full(60, 1e12), 3, False)
    found = solve(narrow, target, KernelPenalty.of_weights(1.2, np.ones(2)), tol=1e-9)
    assert not found.converged
    assert found.iterations < 50


@pytest.mark.parametrize("squared", [False, True])
def test_rows_of_a_zero_kernel_have_the_dual_variables_that_close_their_gap(squared):
    """The dual objective of such a row is linear, or a parabola with its top at twice the cap."""
    scores, labels, caps = np.array([0.3, 0.1, 0.2]), 0, 1.7
    row = np.empty(3)
    solve_flat_row(scores, labels, caps, squared, row)
    assert compute_row_gap(scores, row, labels, caps, squared) == pytest.approx(0.0, abs=1e-12)
    X, y = rows(30)
    X[::3] = 0.0
    stack = KernelStack((X @ X.T)[None])
    stack.check()
    target = HingeTarget(y, np.full(30, 2.0), 3, squared)
    machine = MatrixMachine(stack, target)
    gap = machine.solve(np.ones(1), 1e-9)
    assert gap <= 1e-9
    K, A = stack.matrices[0], machine.A
    assert primal(K, A, target) - dual(K, A, target) <= 1e-8

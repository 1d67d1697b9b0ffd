"""Targets of machines: parts of the rows, and starts."""

import numpy as np
import pytest

from mixnorm.engines.multikernel.machine import (
    FactorMachine,
    HingeTarget,
    MatrixMachine,
    SquaredTarget,
)
from mixnorm.kernels import FactorGrams, KernelStack

RNG = np.random.default_rng(0)
CAPS = RNG.uniform(0.5, 2.0, size=9)
TARGETS = {
    "hinge": HingeTarget(RNG.integers(3, size=9), CAPS, 3, squared=False),
    "squared hinge": HingeTarget(RNG.integers(3, size=9), CAPS, 3, squared=True),
    "squares": SquaredTarget(RNG.standard_normal((9, 3)), CAPS),
}


@pytest.mark.parametrize("name", TARGETS)
def test_some_rows_that_count_more(name):
    """The losses of the parts, divided by what they count more, add up to the whole loss."""
    target, F = TARGETS[name], RNG.standard_normal((3, 9))
    parts = [np.array([1, 4, 5]), np.array([0, 2, 3, 6, 7, 8])]
    losses = [target.take(rows, 2.5).loss(np.ascontiguousarray(F[:, rows])) for rows in parts]
    assert sum(losses) / 2.5 == pytest.approx(target.loss(F))


@pytest.mark.parametrize("name", TARGETS)
def test_gains_are_conjugate_to_losses(name):
    """``<A, F> <= loss(F) + (gap of A)``: no scores do better than the gain of a guess allows."""
    target = TARGETS[name]
    A = target.guess()
    np.testing.assert_allclose(target.project(A), A)
    for _ in range(50):
        F = 2.0 * RNG.standard_normal((3, 9))
        assert target.loss(F) + np.sum(A * F.T) >= target.gain(A) - 1e-9


@pytest.mark.parametrize("n", [3000, 3001])
def test_the_machine_for_the_form_of_the_kernels(n):
    """Kernel matrices can only be used as such; factors of many rows are not multiplied out."""
    target = HingeTarget(np.zeros(n, dtype=int), np.ones(n), 2, squared=False)
    stack, factors = KernelStack(np.zeros((1, n, n), np.float32)), FactorGrams(np.ones((n, 2)), [2])
    assert isinstance(target.machine(stack), MatrixMachine)
    assert isinstance(target.machine(factors), MatrixMachine if n == 3000 else FactorMachine)

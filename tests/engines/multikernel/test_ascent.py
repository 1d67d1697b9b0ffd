"""Coordinate ascent of joint machines: active rows, blocks of them, and forecasts."""

import math

import numpy as np
import pytest

from mixnorm.engines.multikernel.ascent import Ascent, GapForecast
from mixnorm.engines.multikernel.machine import FactorMachine, HingeTarget, MatrixMachine
from mixnorm.kernels import FactorGrams, KernelStack


@pytest.mark.parametrize("goal", [0.0, 1e-9])
def test_a_few_active_rows_are_solved_to_any_goal(goal):
    """Two classes far apart: only the rows on the margins have dual variables."""
    X = np.random.default_rng(0).standard_normal((40, 2)) + np.repeat([[2.5], [-2.5]], 20, axis=0)
    stack = KernelStack((X @ X.T)[None])
    stack.check()
    machine = MatrixMachine(stack, HingeTarget(np.arange(40) // 20, np.ones(40), 2, squared=False))
    assert machine.solve(np.ones(1), goal) <= goal + 1e-12
    margins = np.repeat([1.0, -1.0], 20) * (machine.F[0] - machine.F[1])
    held = np.any(machine.A != 0.0, axis=1)
    assert 0 < np.sum(held) < 8
    np.testing.assert_allclose(margins[held], 1.0, atol=1e-6)
    assert np.all(margins[~held] >= 1.0 - 1e-6)


def test_a_gap_that_falls_evenly_is_forecast_exactly():
    """A gap of ``exp(-count / 1000)`` is at ``exp(-c)`` after 1000 c updates."""
    forecast, rows = GapForecast(10), 400
    for count in range(rows, 4000, rows):
        ahead = forecast.predict_updates(math.exp(-count / 1000), rows, math.exp(-5.0))
    assert ahead == pytest.approx(5000 - count)
    assert math.isinf(forecast.predict_updates(math.exp(-4.0), rows, 0.0))


def test_there_is_no_forecast_before_each_row_was_updated():
    """A pass over 100 rows changes 10,000 scores."""
    forecast = GapForecast(100)
    found = [forecast.predict_updates(gap, 3000, 0.1) for gap in (1.0, 0.9, 0.8, 0.7)]
    assert found[:3] == [0.0, 0.0, 0.0]
    assert found[3] > 0.0


def test_a_block_of_rows_is_solved_no_further_than_the_whole_gap_is_worth(monkeypatch):
    """The first block, all of whose dual variables are zero, is far from the goal of the whole."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 300))
    target = HingeTarget(np.arange(60) % 3, np.ones(60), 3, squared=False)
    goals, run = [], Ascent.run
    monkeypatch.setattr(Ascent, "run", lambda self, goal: [run(self, goal), goals.append(goal)][0])
    machine = FactorMachine(FactorGrams(X / 10.0, [300]), target)
    assert machine.solve(np.ones(1), 1e-6) <= 1e-6
    assert goals[0] > 1e-3
    assert goals[-1] <= 1e-6

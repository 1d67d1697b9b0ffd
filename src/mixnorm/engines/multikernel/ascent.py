"""Coordinate ascent on the dual variables of a joint machine, with Newton steps in between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm._chunks import chunk_size
from mixnorm.engines.multikernel import machine_jit as jit
from mixnorm.engines.multikernel.newton import ProximalNewton
from mixnorm.engines.multikernel.settings import DEFAULT_SETTINGS, MultikernelSettings

if TYPE_CHECKING:
    from mixnorm.engines.multikernel.machine import HingeTarget


@dataclass
class AscentMemory:
    """The state that one ascent of a machine passes on to the next."""

    # Of the shuffles: a whole number, as a float, since a compiled loop takes and returns it.
    seed: float = 0.0
    reach: float = 1.0  # of Newton steps


@dataclass(eq=False)
class Ascent:
    """Changes dual variables ``A`` and their scores ``F`` in place, until their gap is small.

    The steps are projections of rows (:eq:`row-projection`), and proximal steps of all rows
    (:eq:`proximal-machine`) where projections would take longer. ``F`` has shape ``(n_classes,
    n_rows)``. Its difference from ``K @ A`` stays what it is: for a part of the rows that is the
    share of the other rows in their scores.
    """

    K: np.ndarray
    target: HingeTarget
    A: np.ndarray
    F: np.ndarray
    memory: AscentMemory
    settings: MultikernelSettings = DEFAULT_SETTINGS

    def run(self, goal: float, patience: float = math.inf) -> float:
        """Continue until the gap is at most ``goal``; return the gap.

        The run ends earlier if the rest would take about ``patience`` seconds or more.
        """
        settings = self.settings
        steps = ProximalNewton(self.K, self.target, self.memory.reach, settings)
        forecast = GapForecast(len(self.K), settings)
        gap, lowest, idle = math.inf, math.inf, 0
        for _ in range(settings.ascent_rounds):
            gap, updates = self._make_passes(goal)
            # The gap may rise for a while: only the dual value is sure to improve.
            idle = 0 if gap < settings.idle_ratio * lowest else idle + 1
            lowest = min(gap, lowest)
            if (
                gap <= goal
                or idle > settings.idle_rounds
                or steps.directions > settings.max_systems
            ):
                break
            updates_left = forecast.predict_updates(gap, updates, goal)
            seconds_left = settings.seconds_per_update * updates_left
            # Only after an idle round: while the gap falls, the forecast may still improve.
            if seconds_left > patience and idle:
                break
            if seconds_left > steps.estimate_seconds(self.A):
                steps.step(self.A, self.F)
                self.memory.reach = steps.reach
        return gap

    def _make_passes(self, goal: float) -> tuple[float, int]:
        """Pass over the rows a few times; return the gap, and the number of changed scores."""
        given, settings, updates = self.target, self.settings, 0
        parts = np.empty(len(given))
        for _ in range(settings.choices):
            gap = jit.compute_gaps(self.F, self.A, given.labels, given.caps, given.squared, parts)
            if gap <= goal:
                break
            rows = find_active_rows(parts, gap, self.A, settings)
            if len(rows) > settings.many_active * len(given):
                updates += len(given) * self._make_pass(self.K, self.F, self.A, slice(None), goal)
            else:
                # The scores of the other rows are updated once, after all passes over these: it is
                # not worth bringing their gap far below that of the others.
                own_goal = max(settings.goal_share * goal, settings.row_gap_share * gap)
                updates += len(rows) * self._improve_rows(rows, own_goal)
        return float(gap), updates

    def _improve_rows(self, rows: np.ndarray, goal: float) -> int:
        """Pass over some rows and leave the others; return the number of changed rows."""
        whole = self.K[rows]
        # Copies: an update adds a row of the matrix to a row of the scores, both contiguous.
        F, A = np.ascontiguousarray(self.F[:, rows]), self.A[rows]
        updates = self._make_pass(np.ascontiguousarray(whole[:, rows]), F, A, rows, goal)
        change = (A - self.A[rows]).T.astype(whole.dtype)
        self.F += change @ whole
        self.A[rows] = A
        return updates

    def _make_pass(
        self, K: np.ndarray, F: np.ndarray, A: np.ndarray, rows: slice | np.ndarray, goal: float
    ) -> int:
        given, passes = self.target, self.settings.passes
        # Compiled code cannot be interrupted. If all passes would take long, Python runs the outer
        # loop, and only sweeps over some rows at a time are compiled.
        whole = chunk_size(passes, A.size * len(K)) == passes
        ascend: Any = jit.ascend if whole else jit.ascend.py_func
        updates, self.memory.seed = ascend(
            K, F, A, given.labels[rows], given.caps[rows], given.squared, goal, passes,
            self.settings.active_share, self.memory.seed, chunk_size(len(K), A.size),
        )  # fmt: skip
        return int(updates)


def find_active_rows(
    parts: np.ndarray, gap: float, A: np.ndarray, settings: MultikernelSettings = DEFAULT_SETTINGS
) -> np.ndarray:
    """Return the rows that have dual variables, or a large part of the gap (:eq:`row-gap`)."""
    threshold = settings.active_share * gap / len(parts)
    return np.flatnonzero((parts > threshold) | np.any(A != 0.0, axis=1))


class GapForecast:
    """A forecast of the gap from the second half of the updates so far.

    The gap of coordinate ascent falls geometrically in the long run, and faster before. The first
    half of the updates would make the forecast too good.
    """

    def __init__(self, n_samples: int, settings: MultikernelSettings = DEFAULT_SETTINGS) -> None:
        self.n_samples, self.settings = n_samples, settings
        self._counts, self._gaps = [0], [math.inf]

    def predict_updates(self, gap: float, updates: int, target: float) -> float:
        """Estimate how many updates of entries of scores it takes to reach a gap."""
        count = self._counts[-1] + updates
        self._counts.append(count)
        self._gaps.append(min(gap, self._gaps[-1]))
        if count < self.settings.updates_before_forecast * self.n_samples**2:
            return 0.0
        middle = int(np.searchsorted(self._counts, count // 2, side="right")) - 1
        progress = math.log(self._gaps[middle] / self._gaps[-1])
        if not target > 0.0:
            return math.inf
        todo = math.log(self._gaps[-1] / target)
        progress = max(progress, self.settings.least_progress)
        return todo / progress * (count - self._counts[middle])

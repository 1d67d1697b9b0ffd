"""Coordinate ascent on the dual variables of a joint machine, with Newton steps in between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm._chunks import chunk_size
from mixnorm.engines.multikernel import machine_jit as jit
from mixnorm.engines.multikernel.newton import ProximalNewton

if TYPE_CHECKING:
    from mixnorm.engines.multikernel.machine import HingeTarget

# Passes over the active rows, and how often these are chosen before a Newton step.
_PASSES, _CHOICES = 20, 3
_MOST_ASCENT_ROUNDS = 500
# Systems of equations that Newton steps may solve; a run that needs more is badly conditioned.
_MOST_SYSTEMS = 500
# Rounding is all that is left after so many rounds in which the gap does not fall to this part.
_IDLE_ROUNDS, _ENOUGH_FALL = 60, 0.9
# All rows are active if the active ones would be more than this part of them. Otherwise the gap of
# the active rows is brought down to these parts of the goal, or of the gap before.
_MANY_ACTIVE, PART_OF_GOAL, PART_OF_ROW_GAP = 0.6, 0.5, 0.1
# Rows are active whose part of the gap exceeds this multiple of the mean one.
ACTIVE_SHARE = 0.3
# About the time that one update of a score takes; only its ratio to that of Newton steps matters.
_SECONDS_PER_UPDATE = 5e-9
_LEAST_PROGRESS = 0.3  # that a forecast assumes, since gaps do not fall evenly
_LEAST_UPDATES = 1  # of each row, before a forecast is made


@dataclass
class AscentMemory:
    """The state that one ascent of a machine passes on to the next."""

    seed: float = 0.0  # of the shuffles, a whole number
    reach: float = 1.0  # of Newton steps


@dataclass(eq=False)
class Ascent:
    """Changes dual variables ``A`` and their scores ``F`` in place, until their gap is small.

    ``F`` has shape ``(n_classes, n_rows)``. Its difference from ``K @ A`` stays what it is.
    """

    K: np.ndarray
    target: HingeTarget
    A: np.ndarray
    F: np.ndarray
    memory: AscentMemory

    def run(self, goal: float, patience: float = math.inf) -> float:
        """Continue until the gap is at most ``goal``; return the gap.

        The run ends earlier if the rest would take about ``patience`` seconds or more.
        """
        steps = ProximalNewton(self.K, self.target, self.memory.reach)
        forecast = GapForecast(len(self.K))
        gap, lowest, since = math.inf, math.inf, 0
        for _ in range(_MOST_ASCENT_ROUNDS):
            gap, updates = self._make_passes(goal)
            since = 0 if gap < _ENOUGH_FALL * lowest else since + 1
            lowest = min(gap, lowest)
            if gap <= goal or since > _IDLE_ROUNDS or steps.directions > _MOST_SYSTEMS:
                break
            ahead = _SECONDS_PER_UPDATE * forecast.predict_updates(gap, updates, goal)
            if ahead > patience and since:
                break
            if ahead > steps.estimate_seconds(self.A):
                steps.step(self.A, self.F)
                self.memory.reach = steps.reach
        return gap

    def _make_passes(self, target: float) -> tuple[float, int]:
        """Pass over the rows a few times; return the gap, and the number of changed scores."""
        given, updates = self.target, 0
        parts = np.empty(len(given))
        for _ in range(_CHOICES):
            gap = jit.compute_gaps(self.F, self.A, given.labels, given.caps, given.squared, parts)
            if gap <= target:
                break
            rows = find_active_rows(parts, gap, self.A)
            if len(rows) > _MANY_ACTIVE * len(given):
                updates += len(given) * self._make_pass(self.K, self.F, self.A, slice(None), target)
            else:
                goal = max(PART_OF_GOAL * target, PART_OF_ROW_GAP * gap)
                updates += len(rows) * self._improve_rows(rows, goal)
        return float(gap), updates

    def _improve_rows(self, rows: np.ndarray, goal: float) -> int:
        """Pass over some rows and leave the others; return the number of changed rows."""
        whole = self.K[rows]
        F, A = np.ascontiguousarray(self.F[:, rows]), self.A[rows]
        updates = self._make_pass(np.ascontiguousarray(whole[:, rows]), F, A, rows, goal)
        change = (A - self.A[rows]).T.astype(whole.dtype)
        self.F += change @ whole
        self.A[rows] = A
        return updates

    def _make_pass(
        self, K: np.ndarray, F: np.ndarray, A: np.ndarray, rows: slice | np.ndarray, goal: float
    ) -> int:
        given = self.target
        whole = chunk_size(_PASSES, A.size * len(K)) == _PASSES
        ascend: Any = jit.ascend if whole else jit.ascend.py_func
        updates, self.memory.seed = ascend(
            K, F, A, given.labels[rows], given.caps[rows], given.squared, goal, _PASSES,
            ACTIVE_SHARE, self.memory.seed, chunk_size(len(K), A.size),
        )  # fmt: skip
        return int(updates)


def find_active_rows(parts: np.ndarray, gap: float, A: np.ndarray) -> np.ndarray:
    """Return the rows that have dual variables, or a large part of the gap."""
    return np.flatnonzero((parts > ACTIVE_SHARE * gap / len(parts)) | np.any(A != 0.0, axis=1))


class GapForecast:
    """A forecast of the gap from the second half of the updates so far."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self._counts, self._gaps = [0], [math.inf]

    def predict_updates(self, gap: float, updates: int, target: float) -> float:
        """Estimate how many updates of entries of scores it takes to reach a gap."""
        count = self._counts[-1] + updates
        self._counts.append(count)
        self._gaps.append(min(gap, self._gaps[-1]))
        if count < _LEAST_UPDATES * self.n_samples**2:
            return 0.0
        middle = int(np.searchsorted(self._counts, count // 2, side="right")) - 1
        progress = math.log(self._gaps[middle] / self._gaps[-1])
        if not target > 0.0:
            return math.inf
        todo = math.log(self._gaps[-1] / target)
        return todo / max(progress, _LEAST_PROGRESS) * (count - self._counts[middle])

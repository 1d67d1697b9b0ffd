"""Coordinate ascent on the dual variables of a joint machine, with Newton steps in between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._chunks import chunk_size
from mixnorm.engines.multikernel import machine_jit as jit
from mixnorm.engines.multikernel.newton import ProximalNewton

# Passes over the rows that are at work, and how often these are chosen before a Newton step.
_PASSES, _ROUNDS = 20, 3
_MOST_ROUNDS = 500
# Systems of equations that Newton steps may solve; a run that needs more is badly conditioned.
_MOST_SYSTEMS = 500
# After so many rounds in which the gap does not fall to this part, rounding is what is left.
_IN_VAIN, _LOWER = 60, 0.9
# At work are all rows if it would be more than this part of them; otherwise the gap of those is
# brought down to these parts of what is wanted, or of what it was.
_MANY, PART, FALL = 0.6, 0.5, 0.1
# Rows are worked on whose part of the gap exceeds this part of the mean one.
SELECTIVE = 0.3
# About what the update of a score takes; only its ratio to what Newton steps take matters.
_SECONDS_PER_UPDATE = 5e-9
_LEAST_PROGRESS = 0.3  # that is assumed, as gaps do not fall evenly
_TRIED = 1  # updates of each row, before a forecast is made


@dataclass
class AscentMemory:
    """What the next ascent of a machine goes on with."""

    seed: float = 0.0  # whole numbers; those that a float does not tell apart do as well
    reach: float = 1.0  # of Newton steps


class Ascent:
    """Works on dual variables ``A`` and their scores ``F``, of shape ``(n_classes, n_rows)``.

    Both are changed in place. Scores may have a part that ``K @ A`` does not explain, which stays.
    """

    def __init__(
        self, K: np.ndarray, target: Any, A: np.ndarray, F: np.ndarray, memory: AscentMemory
    ) -> None:
        self.K, self.target, self.A, self.F, self.memory = K, target, A, F, memory

    def run(self, goal: float, patience: float = math.inf) -> float:
        """Go on until the gap is at most ``goal``; return it.

        Ends before that where what is ahead takes about ``patience`` seconds or more.
        """
        steps = ProximalNewton(self.K, self.target, self.memory.reach)
        forecast = GapForecast(len(self.K))
        gap, lowest, since = math.inf, math.inf, 0
        for _ in range(_MOST_ROUNDS):
            gap, updates = self._make_passes(goal)
            since = 0 if gap < _LOWER * lowest else since + 1
            lowest = min(gap, lowest)
            if gap <= goal or since > _IN_VAIN or steps.directions > _MOST_SYSTEMS:
                break
            ahead = _SECONDS_PER_UPDATE * forecast.predict_updates(gap, updates, goal)
            if ahead > patience and since:
                break
            if ahead > steps.estimate_seconds(self.A):
                steps.step(self.A, self.F)
                self.memory.reach = steps.reach
        return gap

    def _make_passes(self, target: float) -> tuple[float, int]:
        """Pass over the rows a few times; return the gap, and how many scores were changed."""
        given, updates = self.target, 0
        parts = np.empty(len(given))
        for _ in range(_ROUNDS):
            gap = jit.compute_gaps(self.F, self.A, given.labels, given.caps, given.squared, parts)
            if gap <= target:
                break
            rows = find_active_rows(parts, gap, self.A)
            if len(rows) > _MANY * len(given):
                updates += len(given) * self._make_pass(self.K, self.F, self.A, slice(None), target)
            else:
                goal = max(PART * target, FALL * gap)
                updates += len(rows) * self._improve_rows(rows, goal)
        return float(gap), updates

    def _improve_rows(self, rows: np.ndarray, goal: float) -> int:
        """Pass over some rows, the others staying as they are; return how many were changed."""
        whole = self.K[rows]
        F, A = np.ascontiguousarray(self.F[:, rows]), self.A[rows]
        updates = self._make_pass(np.ascontiguousarray(whole[:, rows]), F, A, rows, goal)
        change = (A - self.A[rows]).T.astype(whole.dtype)
        self.F += change @ whole
        self.A[rows] = A
        return updates

    def _make_pass(
        self, K: np.ndarray, F: np.ndarray, A: np.ndarray, rows: Any, goal: float
    ) -> int:
        given = self.target
        whole = chunk_size(_PASSES, A.size * len(K)) == _PASSES
        ascend: Any = jit.ascend if whole else jit.ascend.py_func
        updates, self.memory.seed = ascend(
            K, F, A, given.labels[rows], given.caps[rows], given.squared, goal, _PASSES, SELECTIVE,
            self.memory.seed, chunk_size(len(K), A.size),
        )  # fmt: skip
        return int(updates)


def find_active_rows(parts: np.ndarray, gap: float, A: np.ndarray) -> np.ndarray:
    """Return the rows that have dual variables, or more than a little part of the gap."""
    return np.flatnonzero((parts > SELECTIVE * gap / len(parts)) | np.any(A != 0.0, axis=1))


class GapForecast:
    """How fast the gap falls, by the second half of the updates so far."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self._counts, self._gaps = [0], [math.inf]

    def predict_updates(self, gap: float, updates: int, target: float) -> float:
        """Return about how many updates, of entries of scores, it takes to reach a gap."""
        count = self._counts[-1] + updates
        self._counts.append(count)
        self._gaps.append(min(gap, self._gaps[-1]))
        if count < _TRIED * self.n_samples**2:
            return 0.0
        middle = int(np.searchsorted(self._counts, count // 2, side="right")) - 1
        progress = math.log(self._gaps[middle] / self._gaps[-1])
        if not target > 0.0:
            return math.inf
        todo = math.log(self._gaps[-1] / target)
        return todo / max(progress, _LEAST_PROGRESS) * (count - self._counts[middle])

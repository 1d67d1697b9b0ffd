"""How mistakes and losses of an online learner run up."""

from __future__ import annotations

from typing import Any

import numpy as np

_POINTS = 1000  # of a curve, at most; from then on every second one is left out


class Curve:
    """Cumulative mistakes and losses, at rounds that lie evenly.

    Examples
    --------
    >>> curve = Curve()
    >>> for start in range(0, 3000, 500):
    ...     curve.extend(start, np.ones(500, dtype=int), np.full(500, 0.5), start, 0.5 * start)
    >>> curve.stride, curve.rounds[-1], curve.mistakes[-1], curve.losses[-1]
    (4, 3000, 3000, 1500.0)
    """

    def __init__(self) -> None:
        self.stride = 1
        self.rounds: list[int] = []
        self.mistakes: list[int] = []
        self.losses: list[float] = []

    def extend(
        self, start: int, wrong: np.ndarray, losses: np.ndarray, mistakes: int, loss: float
    ) -> None:
        """Add rounds after the first ``start``, when mistakes and loss were these."""
        count = len(wrong)
        while (
            count
            and len(self.rounds) + (start + count) // self.stride - (start // self.stride) > _POINTS
        ):
            self._thin()
        places = np.arange(start + 1, start + count + 1)
        kept = np.flatnonzero(places % self.stride == 0)
        if len(kept):
            self.rounds += places[kept].tolist()
            self.mistakes += (mistakes + np.cumsum(wrong)[kept]).tolist()
            self.losses += np.cumsum(np.concatenate([[loss], losses]))[1:][kept].tolist()

    def note(self, at: int, mistakes: int, loss: float) -> None:
        """Add one round: what mistakes and loss are after it."""
        if at % self.stride:
            return
        if len(self.rounds) >= _POINTS:
            self._thin()
            if at % self.stride:
                return
        self.rounds.append(at)
        self.mistakes.append(mistakes)
        self.losses.append(loss)

    def _thin(self) -> None:
        self.stride *= 2
        kept = [place for place, at in enumerate(self.rounds) if at % self.stride == 0]
        for name in ("rounds", "mistakes", "losses"):
            values = getattr(self, name)
            setattr(self, name, [values[place] for place in kept])


def read_curve(given: Any) -> Curve:
    """Return the curve in a model file."""
    curve, stride = Curve(), given["stride"]
    rounds, mistakes, losses = (given[name] for name in ("rounds", "mistakes", "loss"))
    arrays = all(isinstance(each, np.ndarray) for each in (rounds, mistakes, losses))
    if not arrays or not rounds.shape == mistakes.shape == losses.shape == (rounds.size,):
        raise ValueError("the curve must be three arrays of one length")
    if type(stride) is not int or stride < 1 or rounds.size > _POINTS:
        raise ValueError(f"the curve must have at most {_POINTS} points, and a stride")
    if not np.array_equal(rounds, stride * np.arange(1, rounds.size + 1)):
        raise ValueError("the rounds of the curve must lie evenly")
    curve.stride, curve.rounds = stride, [int(value) for value in rounds]
    curve.mistakes = [int(value) for value in mistakes]
    curve.losses = [float(value) for value in losses]
    return curve

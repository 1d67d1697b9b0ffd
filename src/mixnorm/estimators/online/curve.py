"""The curve of mistakes and losses of an online learner."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

# Most points of a curve: a longer one drops every second point.
_CURVE_SIZE = 1000


@dataclass(eq=False)
class Curve:
    """Cumulative mistakes and losses at evenly spaced rounds.

    Parameters
    ----------
    stride : int
        The distance between the rounds.
    rounds, mistakes, losses : lists
        The rounds, and the sums after each.

    Examples
    --------
    >>> curve = Curve()
    >>> for start in range(0, 3000, 500):
    ...     curve.extend(start, np.ones(500, dtype=int), np.full(500, 0.5), start, 0.5 * start)
    >>> curve.stride, curve.rounds[-1], curve.mistakes[-1], curve.losses[-1]
    (4, 3000, 3000, 1500.0)
    """

    stride: int = 1
    rounds: list[int] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def extend(
        self, start: int, wrong: np.ndarray, losses: np.ndarray, mistakes: int, loss: float
    ) -> None:
        """Add the rounds after the first ``start``, which had these mistakes and this loss."""
        end = start + len(wrong)
        # Points are at multiples of the stride. Doubling it drops every second point, and those
        # that stay are at multiples of the new stride, whatever blocks the rows came in.
        while len(self.rounds) + end // self.stride - start // self.stride > _CURVE_SIZE:
            self._thin()
        places = np.arange(start + 1, end + 1)
        kept = np.flatnonzero(places % self.stride == 0)
        if len(kept):
            self.rounds += places[kept].tolist()
            self.mistakes += (mistakes + np.cumsum(wrong)[kept]).tolist()
            # The earlier sum is the first term, so that the additions are the same as row by row
            # and the last digit does not depend on the blocks.
            self.losses += np.cumsum(np.concatenate([[loss], losses]))[1:][kept].tolist()

    def note(self, at: int, mistakes: int, loss: float) -> None:
        """Add one round, if the curve has a point there, with the sums after it."""
        if len(self.rounds) >= _CURVE_SIZE:
            self._thin()
        if at % self.stride == 0:
            self.rounds.append(at)
            self.mistakes.append(mistakes)
            self.losses.append(loss)

    def _thin(self) -> None:
        self.stride *= 2
        kept = [place for place, at in enumerate(self.rounds) if at % self.stride == 0]
        for name in ("rounds", "mistakes", "losses"):
            values = getattr(self, name)
            setattr(self, name, [values[place] for place in kept])

    def check(self) -> None:
        """Raise ValueError unless the points are evenly spaced; they may be from a file."""
        count = len(self.rounds)
        if not len(self.mistakes) == len(self.losses) == count <= _CURVE_SIZE or self.stride < 1:
            raise ValueError(f"the curve must have at most {_CURVE_SIZE} points, and a stride")
        # ``extend`` relies on it: a curve from a file with other points would grow wrong.
        if self.rounds != [self.stride * at for at in range(1, count + 1)]:
            raise ValueError("the rounds of the curve must be evenly spaced")

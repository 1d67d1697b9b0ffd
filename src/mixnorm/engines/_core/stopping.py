"""The stopping rule of solvers whose steps do not always help."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Point = TypeVar("Point")


class BestPoint(Generic[Point]):
    """The point with the smallest gap so far, and how many steps in a row came no further.

    Parameters
    ----------
    point : object
        Where the solver starts.
    patience : int
        Idle steps in a row after which the solver gives up.

    Examples
    --------
    >>> best = BestPoint("start", patience=2)
    >>> with best.until_interrupted():
    ...     best.note("first", 3.0, progress=True)
    ...     best.note("second", 5.0, progress=False)
    ...     raise KeyboardInterrupt
    >>> best.point, best.gap, best.idle, best.interrupted
    ('first', 3.0, 1, True)
    """

    def __init__(self, point: Point, patience: int) -> None:
        self.point, self.gap = point, math.inf
        self.patience, self.idle = patience, 0
        self.history: list[float] = []
        self.interrupted = False

    def note(self, point: Point, gap: float, *, progress: bool) -> None:
        """Take note of the point that a step led to; of equal gaps the last counts."""
        self.history.append(gap)
        if gap <= self.gap:
            self.point, self.gap = point, gap
        self.idle = 0 if progress else self.idle + 1

    @property
    def given_up(self) -> bool:
        """Whether too many steps in a row came no further."""
        return self.idle >= self.patience

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """End what is inside at a keyboard interrupt, and keep what was found."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

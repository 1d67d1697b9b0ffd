"""The stopping rule of solvers in which a step may make no progress."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Point = TypeVar("Point")


class BestPoint(Generic[Point]):
    """The point with the smallest gap so far, and the number of steps without progress since.

    Parameters
    ----------
    point : object
        The start of the solver.
    patience : int
        Number of steps in a row without progress after which the solver stops.

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
        """Note the point after a step; of points with equal gaps, the last one is kept."""
        self.history.append(gap)
        # The gap of an iterate may rise although the solver gets on. What is returned is never
        # worse than any point seen.
        if gap <= self.gap:
            self.point, self.gap = point, gap
        self.idle = 0 if progress else self.idle + 1

    @property
    def given_up(self) -> bool:
        """Whether too many steps in a row have made no progress."""
        return self.idle >= self.patience

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """End the block at a keyboard interrupt, and keep the best point."""
        # Points are noted whole, so that an interrupt at any place leaves a usable best one.
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

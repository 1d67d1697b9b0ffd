"""Backtracking: ever shorter steps until one helps. Also the longest step that keeps bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

Found = TypeVar("Found")


def backtrack(
    trial: Callable[[float], Found | None], *, shrink: float = 0.5, least: float
) -> tuple[Found | None, int]:
    """Return the result of the first step that helps, and the number of steps tried.

    Parameters
    ----------
    trial : callable
        Takes the length of a step. Returns the result of the step, or None if it does not help.
    shrink : float
        Factor from each length to the next; the first length is 1.
    least : float
        Only steps longer than this are tried.

    Examples
    --------
    >>> backtrack(lambda length: length if length < 0.3 else None, least=0.01)
    (0.25, 3)
    >>> backtrack(lambda length: None, least=0.2)
    (None, 3)
    """
    # The whole step first: near a solution it is what makes Newton steps converge quadratically.
    length, tries = 1.0, 0
    while length > least:
        found = trial(length)
        tries += 1
        if found is not None:
            return found, tries
        length *= shrink
    return None, tries


def room(distance: np.ndarray, move: np.ndarray) -> float:
    """Return how many times a move can be made before one of the distances reaches zero.

    Examples
    --------
    >>> room(np.array([1.0, 2.0, np.inf]), np.array([-2.0, 1.0, -1.0]))
    0.5
    """
    down = (move < 0.0) & np.isfinite(distance)
    return float(np.min(-distance[down] / move[down], initial=np.inf))

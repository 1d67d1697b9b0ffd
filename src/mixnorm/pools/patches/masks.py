"""Masks: weights of the positions at which a template may match an image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Bells:
    """Bell curves along one side of an image, evenly spaced, each cut off outside a window.

    They are the factors of a mask (:eq:`patch-mask`).

    Parameters
    ----------
    n_bells : int
        Number of bells.
    length : int
        Positions along the side.
    spread : float
        Standard deviation of a bell, in distances between neighbours.
    reach : float
        Distance from the middle of a bell to its end, in the same unit.
    """

    n_bells: int
    length: int
    spread: float
    reach: float

    @property
    def step(self) -> float:
        """Distance between two bells."""
        return self.length / self.n_bells

    def middle(self, bell: int) -> float:
        """Return the position at which a bell is largest, counted from zero."""
        return (bell + 0.5) * self.step - 0.5

    def window(self, bell: int) -> tuple[int, int]:
        """Return the first position of a bell, and the one after its last; never empty."""
        # At least half a position, so that bells closer than positions still have one.
        middle, reach = self.middle(bell), max(self.reach * self.step, 0.5)
        first = max(0, math.ceil(middle - reach))
        return first, max(first + 1, min(self.length, math.floor(middle + reach) + 1))

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of shape ``(n_bells, length)``; zero outside the windows, positive inside."""
        weights = np.zeros((self.n_bells, self.length))
        for bell in range(self.n_bells):
            first, end = self.window(bell)
            away = (np.arange(first, end) - self.middle(bell)) / (self.spread * self.step)
            weights[bell, first:end] = np.exp(-0.5 * away * away)
        return weights


@dataclass(frozen=True)
class Scale:
    """The templates of one size, with their masks on images of one shape.

    ``first`` is the number of the first of the ``n_templates``; masks are numbered row by row.
    """

    size: int
    first: int
    n_templates: int
    down: Bells
    across: Bells

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of an image."""
        return self.down.length + self.size - 1, self.across.length + self.size - 1

    @property
    def n_masks(self) -> int:
        """Number of masks."""
        return self.down.n_bells * self.across.n_bells

    def window(self, mask: int) -> tuple[int, int, int, int]:
        """Return first row, end of rows, first column and end of columns of positions."""
        k, j = divmod(mask, self.across.n_bells)
        return *self.down.window(k), *self.across.window(j)

    def weights(self, mask: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights by row and by column inside the window."""
        k, j = divmod(mask, self.across.n_bells)
        top, bottom, left, right = self.window(mask)
        return self.down.weights[k, top:bottom], self.across.weights[j, left:right]

    def pixels(self, mask: int) -> np.ndarray:
        """Return the pixels that patches in the window cover, as columns of flat images."""
        top, bottom, left, right = self.window(mask)
        rows = np.arange(top, bottom + self.size - 1)
        columns = np.arange(left, right + self.size - 1)
        return np.asarray(rows[:, None] * self.shape[1] + columns).ravel()

    def n_positions(self, mask: int) -> int:
        """Return how many positions the window has."""
        top, bottom, left, right = self.window(mask)
        return (bottom - top) * (right - left)


def scale_of(atom: tuple[int, int], scales: list[Scale]) -> Scale:
    """Return the one of the sizes that the template of an atom has."""
    for scale in scales:
        if 0 <= atom[0] < scale.first + scale.n_templates:
            return scale
    raise ValueError(f"atom {atom!r} has no template")


def grid_of(masks: int | tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of a grid of masks, from these or from a square number."""
    given = masks if isinstance(masks, (tuple, list)) else (masks,)
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in given)
    if not whole or len(given) not in (1, 2):
        raise TypeError(f"Patches(masks={masks!r}) must be a whole number, or rows and columns.")
    if any(n < 1 for n in given):
        raise ValueError(f"Patches(masks={masks!r}) must be at least 1.")
    if len(given) == 2:
        return int(given[0]), int(given[1])
    side = math.isqrt(int(given[0]))
    if side * side != given[0]:
        raise ValueError(
            f"Patches(masks={masks!r}) is not a square number; give one, such as 16, or the rows "
            "and columns of the grid, as in masks=(2, 3)."
        )
    return side, side

"""What it takes to compute something for one row."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """Operations per row.

    Parameters
    ----------
    multiply_adds : int
        Multiplications, each with an addition.
    comparisons : int
        Comparisons of two numbers.

    Examples
    --------
    >>> Cost(20, 3).total
    23
    """

    multiply_adds: int
    comparisons: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.multiply_adds + self.comparisons

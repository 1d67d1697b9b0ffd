"""One line of the bar, the list of figures that a benchmark must reach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One figure: the required value, the measured one, and whether it passes (None: unknown)."""

    group: str
    name: str
    asked: str
    found: str = "not measured"
    passed: bool | None = None

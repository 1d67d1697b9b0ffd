"""A figure of the bar: what a benchmark must reach, and what it found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One figure: asked, found, and whether that is enough (None: not measured)."""

    group: str
    name: str
    asked: str
    found: str = "not measured"
    passed: bool | None = None

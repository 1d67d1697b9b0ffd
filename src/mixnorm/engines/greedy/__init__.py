"""Greedy selection: atoms come in one at a time, and all weights are corrected after each.

Open ``engine.py`` first. The engine may import ``pools``, ``losses`` and ``_core``.
"""

from mixnorm.engines.greedy.engine import (
    Path,
    PreparedPool,
    Round,
    Run,
    select,
)

__all__ = [
    "Path",
    "PreparedPool",
    "Round",
    "Run",
    "select",
]

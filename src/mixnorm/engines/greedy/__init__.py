"""Greedy selection: atoms come in one at a time, and all weights are fitted again after each.

Open ``engine.py`` first. The engine may import ``pools``, ``losses`` and ``_core``.
"""

from mixnorm.engines.greedy.block_rows import weigh_rows
from mixnorm.engines.greedy.block_support import BlockTarget
from mixnorm.engines.greedy.engine import PreparedPool, Run, select
from mixnorm.engines.greedy.options import GreedyOptions
from mixnorm.engines.greedy.rules import RULES
from mixnorm.engines.greedy.settings import GreedySettings

__all__ = [
    "RULES",
    "BlockTarget",
    "GreedyOptions",
    "GreedySettings",
    "PreparedPool",
    "Run",
    "select",
    "weigh_rows",
]

"""Joint boosting: stumps that classes share.

Open ``engine.py`` first. The engine may import ``losses``.
"""

from mixnorm.engines.boosting.engine import (
    Bins,
    Path,
    Round,
    bin_columns,
    boost,
    scores,
    staged_scores,
)

__all__ = [
    "Bins",
    "Path",
    "Round",
    "bin_columns",
    "boost",
    "scores",
    "staged_scores",
]

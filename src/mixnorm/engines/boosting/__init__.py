"""Joint boosting of stumps that classes share.

Open ``engine.py`` first. The engine may import ``models``.
"""

from mixnorm.engines.boosting.engine import Bins, bin_columns, boost

__all__ = ["Bins", "bin_columns", "boost"]

"""ShareBoost, its search over sizes, one model per class, and joint boosting.

Open ``learners.py`` first, then ``base.py``. The folder may import ``_common``, ``engines``,
``pools``, ``losses`` and ``selection``.
"""

from mixnorm.estimators.shareboost.search import SizeProblem

__all__ = ["SizeProblem"]

"""Choosing a model along a path: functions, below the estimators that use them.

Open ``size.py``. The room may import ``engines`` and all below them, and imports none yet.
"""

from mixnorm.selection.result import SearchResult
from mixnorm.selection.size import choose_size, standard_error

__all__ = ["SearchResult", "choose_size", "standard_error"]

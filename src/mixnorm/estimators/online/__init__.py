"""Estimators that learn from one row at a time.

Open ``classifier.py`` first, then ``base.py``; ``state.py`` has what they have learned. The folder
may import ``_common``, ``engines``, ``models``, ``norms`` and ``losses``.
"""

from mixnorm.estimators.online.curve import Curve
from mixnorm.estimators.online.names import Names
from mixnorm.estimators.online.state import OnlineState

__all__ = ["Curve", "Names", "OnlineState"]

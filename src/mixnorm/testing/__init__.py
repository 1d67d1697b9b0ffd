"""Checks that losses, norms and pools of users keep the contracts of the engines.

Open ``contract.py`` first, then ``norm.py``. The room may import ``losses``, ``norms`` and
``pools``.
"""

from mixnorm.testing.loss import check_loss
from mixnorm.testing.norm import check_norm
from mixnorm.testing.pool import check_pool

__all__ = ["check_loss", "check_norm", "check_pool"]

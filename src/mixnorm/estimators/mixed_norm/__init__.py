"""Classifiers and regressors under a mixed or trace norm.

Open ``classifier.py`` first, then ``base.py``. The folder may import ``_common``, ``selection``,
``engines``, ``models``, ``norms``, ``losses`` and ``data``.
"""

from mixnorm.estimators.mixed_norm.tables import convert_blocks
from mixnorm.estimators.mixed_norm.training import Training, moderate, standardize_columns

__all__ = ["Training", "convert_blocks", "moderate", "standardize_columns"]

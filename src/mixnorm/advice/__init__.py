"""Advice: which norm to use on your data.

Open ``compare.py`` first, then ``cases.py``. The room may import ``estimators``, ``selection``,
``models``, ``bounds``, ``norms`` and ``data``.
"""

from mixnorm.advice.advice import Advice, NormAdvice
from mixnorm.advice.compare import advise

__all__ = ["Advice", "NormAdvice", "advise"]

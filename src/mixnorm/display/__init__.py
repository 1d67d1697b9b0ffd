"""Plots, which need matplotlib, and the HTML report, which does not.

Open ``path.py`` first; ``report`` has the page. The room may import everything below it:
``estimators``, ``bounds`` and ``data``.
"""

from mixnorm.display.bounds import BoundDisplay
from mixnorm.display.patches import PatchDisplay
from mixnorm.display.path import ShareBoostPathDisplay
from mixnorm.display.rates import KernelRatesDisplay
from mixnorm.display.report import Feature, FullModel, Report, advice_page

__all__ = [
    "BoundDisplay",
    "Feature",
    "FullModel",
    "KernelRatesDisplay",
    "PatchDisplay",
    "Report",
    "ShareBoostPathDisplay",
    "advice_page",
]

"""Plots, drawn by matplotlib where one is asked for, and the HTML report, which needs none."""

from mixnorm.display._bounds import BoundDisplay
from mixnorm.display._patches import PatchDisplay
from mixnorm.display._path import ShareBoostPathDisplay
from mixnorm.display._rates import KernelRatesDisplay
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

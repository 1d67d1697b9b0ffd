"""Plots, drawn by matplotlib where one is asked for, and the HTML report, which needs none."""

from mixnorm.display._path import ShareBoostPathDisplay
from mixnorm.display._rates import KernelRatesDisplay
from mixnorm.display.report import Feature, FullModel, Report

__all__ = ["Feature", "FullModel", "KernelRatesDisplay", "Report", "ShareBoostPathDisplay"]

"""Plots, drawn by matplotlib where one is asked for, and the HTML report, which needs none."""

from mixnorm.display._path import ShareBoostPathDisplay
from mixnorm.display.report import Feature, FullModel, Report

__all__ = ["Feature", "FullModel", "Report", "ShareBoostPathDisplay"]

"""A fitted model as one HTML page that can be mailed, read offline and printed.

A :class:`~mixnorm.display.report.Report` holds plain figures and knows nothing of estimators. The
page is built from strings by NumPy and the standard library alone; ``style.css`` is put into it.
"""

from mixnorm.display.report.advice import advice_page
from mixnorm.display.report.report import Feature, FullModel, Report

__all__ = ["Feature", "FullModel", "Report", "advice_page"]

"""A fitted model as one HTML page that can be mailed, read offline and printed.

Open ``report.py`` first, then ``page.py``. It holds plain figures and knows nothing of estimators:
strings are built by NumPy and the standard library alone, and ``style.css`` is put into the page.
It imports no other room.
"""

from mixnorm.display.report.advice import advice_page
from mixnorm.display.report.report import Feature, FullModel, Report

__all__ = ["Feature", "FullModel", "Report", "advice_page"]

"""A fitted model as one HTML page that can be sent by mail, read offline and printed.

Open ``report.py`` first, then ``page.py``. A report holds plain figures and knows nothing of
estimators. NumPy and the standard library alone build the page, which contains ``style.css``. The
folder imports no other room.
"""

from mixnorm.display.report.advice import advice_page
from mixnorm.display.report.report import Feature, FullModel, Report

__all__ = ["Feature", "FullModel", "Report", "advice_page"]

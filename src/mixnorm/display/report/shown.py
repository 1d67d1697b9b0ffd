"""Which classes a matrix has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mixnorm.display.report.report import Report


_MOST = 120  # classes that are shown all
_SHOWN = 50  # of more classes than that


def shown_classes(report: Report) -> NDArray[np.intp]:
    """Return the classes that matrices show.

    Parameters
    ----------
    report : Report
        With any number of classes.

    Returns
    -------
    array of int
        All, in order; of very many those with most errors or, where errors were not counted,
        those that the features move most.
    """
    k = len(report.classes)
    if k <= _MOST:
        return np.arange(k)
    if report.confusion is not None:
        badness = report.confusion.sum(1) + report.confusion.sum(0) - 2 * np.diag(report.confusion)
    else:
        badness = np.nan_to_num(np.abs(report.effects), posinf=0.0).sum(axis=1)
    return np.sort(np.argsort(-badness, kind="stable")[:_SHOWN])

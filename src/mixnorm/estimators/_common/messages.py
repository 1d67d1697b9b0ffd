"""Warnings that point at the line of the user's that they are about."""

from __future__ import annotations

import sys
import warnings


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn on behalf of the caller outside this package and scikit-learn's wrappers."""
    inside = ("mixnorm.", "sklearn.callback", "contextlib")
    # The level of the warning is that of the first frame that is neither ours nor a wrapper around
    # fit.
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

"""Choosing a model along a path: functions, below the estimators that use them."""

from mixnorm.selection.size import choose_size, standard_error

__all__ = ["choose_size", "standard_error"]

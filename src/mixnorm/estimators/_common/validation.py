"""scikit-learn's checks of what an estimator is given; errors as in :mod:`mixnorm._checks`."""

from __future__ import annotations

from typing import Any

from sklearn.utils import multiclass, validation

from mixnorm._checks import name_argument
from mixnorm.data import check_in_memory

check_classification_targets = name_argument(multiclass.check_classification_targets, "y")
_validate_arrays = name_argument(validation.validate_data, "X")


def validate_data(estimator: Any, X: Any = "no_validation", *args: Any, **options: Any) -> Any:
    """Call scikit-learn's check; a table of blocks or a Dask collection is an error."""
    check_in_memory(X, type(estimator).__name__)
    return _validate_arrays(estimator, X, *args, **options)

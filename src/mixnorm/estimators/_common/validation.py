"""scikit-learn's checks of what an estimator is given; errors as in :mod:`mixnorm._checks`."""

from __future__ import annotations

from sklearn.utils import multiclass, validation

from mixnorm._checks import name_argument

check_classification_targets = name_argument(multiclass.check_classification_targets, "y")
validate_data = name_argument(validation.validate_data, "X")

"""scikit-learn's checks of arrays, silent on huge numbers.

scikit-learn adds up all entries to find NaN and infinities, and makes integers of labels that are
floats. Finite numbers near the largest float overflow there, which means nothing.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import multiclass, validation

check_array = np.errstate(over="ignore", invalid="ignore")(validation.check_array)
check_classification_targets = np.errstate(over="ignore", invalid="ignore")(
    multiclass.check_classification_targets
)
validate_data = np.errstate(over="ignore", invalid="ignore")(validation.validate_data)

"""Estimators whose model is linear in the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm.estimators._common.fitted import FittedMixin, ReportedMixin
from mixnorm.models import LinearModel


class LinearMixin(ReportedMixin):
    """Weights and intercept, read from a linear model."""

    model_: LinearModel
    _dtype_of_new = (np.float64, np.float32)
    _check_new = FittedMixin._check_new  # goes before that of KernelInputsMixin

    def _find_coef(self) -> tuple[Any, Any]:
        """Return ``coef_`` and ``intercept_``."""
        model = self._get_model()
        return model.outputs.to_coef(model.coef.T, model.intercept)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns."""
        return self._find_coef()[0]

    @property
    def intercept_(self) -> Any:
        """Intercept."""
        return self._find_coef()[1]

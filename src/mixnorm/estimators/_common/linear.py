"""What estimators share whose model is linear in the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import MatrixLike
from mixnorm.estimators._common.fitted import ReportedMixin
from mixnorm.estimators._common.validation import validate_data
from mixnorm.models import LinearModel


class LinearMixin(ReportedMixin):
    """Weights and intercept, read off a linear model."""

    model_: LinearModel

    def _check_new(self, X: MatrixLike) -> Any:
        self._get_model()
        return validate_data(
            self, X, reset=False, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32]
        )

    def _outside(self) -> tuple[Any, Any]:
        """Return weights and intercept in the shapes that users see."""
        model = self._get_model()
        found: tuple[Any, Any] = model.outputs.to_coef(model.coef.T, model.intercept)
        return found

    @property
    def coef_(self) -> np.ndarray:
        """Weights of every column."""
        coef: np.ndarray = self._outside()[0]
        return coef

    @property
    def intercept_(self) -> Any:
        """Intercept."""
        return self._outside()[1]

"""Base classes of estimators: parameters, and a model that a fit leaves."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixnorm._array import Array, ArrayLike, MatrixLike, follow, is_foreign
from mixnorm.estimators._common.blocks.parts import map_parts
from mixnorm.estimators._common.parameters import CheckedParameters
from mixnorm.estimators._common.validation import validate_data
from mixnorm.exceptions import ModelFileError
from mixnorm.models import FitReport, PathModel
from mixnorm.selection import FixedScores


@dataclass(frozen=True, eq=False)
class _Libraries:
    """Empty arrays of the library and device of ``X``, and of those of ``y``; None for NumPy.

    They are not part of the model: pickles and deep copies forget them.
    """

    X: Array | None = None
    y: Array | None = None

    @property
    def foreign(self) -> bool:
        """Whether any of them is another library than NumPy."""
        return self.X is not None or self.y is not None

    # Other libraries may be missing where the pickle is read.
    def __reduce__(self) -> Any:
        return _Libraries, ()


class FittedMixin(CheckedParameters):
    """An estimator whose fit leaves a ``model_``, from which its other attributes are read.

    A fit may also leave ``report_``, the figures of the engine; ``search_``, the result of a
    search; and ``_resume``, from which a later fit continues.
    """

    model_: Any
    #: The class that the model's ``outputs`` must have.
    _output_kind: type = object
    #: The dtypes that new data may have, as scikit-learn's validation takes them.
    _dtype_of_new: Any = "numeric"
    _libraries = _Libraries()

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "model_", None) is not None

    def _get_model(self) -> Any:
        """Return the model; raise a NotFittedError if there is none."""
        check_is_fitted(self)
        return self.model_

    def __mixnorm_check__(self, model: Any) -> None:
        """Raise unless the parameters are valid, and a model from a file fits this class."""
        if not isinstance(model.outputs, self._output_kind):
            raise ModelFileError(
                f"the model of a {type(self).__name__} has outputs of the class "
                f"{type(model.outputs).__name__}, not {self._output_kind.__name__}"
            )
        self._check_parameters()

    @property
    def _model_outputs(self) -> Any:
        """The meaning of the model's scores."""
        return self._get_model().outputs

    def _check_new(self, X: MatrixLike) -> Any:
        """Return new data, checked."""
        self._get_model()
        dtype = self._dtype_of_new
        return validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype=dtype)

    def _scores(self, X: MatrixLike) -> Any:
        """Return the scores of new data."""
        model = self._get_model()
        # A candidate of a search knows its scores: the rows are then those that it was scored on.
        return model.scores(X if isinstance(model, FixedScores) else self._check_new(X))

    @map_parts
    def predict(self, X: MatrixLike) -> Any:
        """Predict for new data: the class with the largest score, or numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data. It may also be a Dask array or DataFrame, or a table of row blocks.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, or predicted values. For a Dask collection a lazy Dask array, in the
            chunks of ``X``.
        """
        return self._model_outputs.labels(self._scores(X))

    def _slim(self) -> Self:
        """Return a copy that predicts the same and has little else, to travel to workers."""
        model = self._get_model()
        copied = self._copy_with(model.last() if isinstance(model, PathModel) else model)
        for name in ("_resume", "_libraries", "report_", "search_"):
            copied.__dict__.pop(name, None)
        return copied

    def _remember(self, X: MatrixLike, y: ArrayLike) -> None:
        """Remember the libraries and devices of the training data and its targets."""
        found = _Libraries(*(array[:0, ...] if is_foreign(array) else None for array in (X, y)))
        if found.foreign or self._libraries.foreign:
            self._libraries = found

    def _follow_fit(self, array: np.ndarray) -> Any:
        """Return an array of the model in the library and on the device of the training data."""
        return follow(array, self._libraries.X)

    def _copy_with(self, model: Any) -> Self:
        """Return a copy with another model."""
        # A shallow copy: models are frozen, so that two estimators may share one.
        copied = copy.copy(self)
        copied.model_ = model
        return copied


class ReportedMixin(FittedMixin):
    """An estimator that also keeps ``report_``, the figures of the engine about the fit."""

    report_: FitReport

    def _get_report(self) -> FitReport:
        self._get_model()
        return self.report_

    @property
    def objective_(self) -> float:
        """The value of the minimised objective."""
        return self._get_report().objective

    @property
    def dual_gap_(self) -> float:
        """Bound on how far the objective is above its optimum."""
        return self._get_report().gap

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        # scikit-learn's checks ask for at least one iteration, also where the start is optimal.
        return max(1, self._get_report().iterations)

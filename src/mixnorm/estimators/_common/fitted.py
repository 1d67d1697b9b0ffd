"""What every fitted estimator is: its parameters, and a model."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from mixnorm._array import MatrixLike, follow, is_foreign
from mixnorm.estimators._common.validation import validate_data
from mixnorm.exceptions import ModelFileError
from mixnorm.models import FitReport
from mixnorm.selection import FixedScores

# Empty arrays of the namespace and device of the training data, and of its targets, where these are
# not NumPy's. They are not part of the model.
_LIKE = ("_like", "_like_y")


class FittedMixin:
    """An estimator whose fit leaves a ``model_``; its other attributes are read off that.

    Beside ``model_`` a fit may leave ``report_``, what the engine said of it, ``search_``, what a
    search found, and ``_resume``, what a later fit needs to go on.
    """

    model_: Any
    #: What the scores of the model must stand for.
    _output_kind: type = object

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def _get_model(self) -> Any:
        """Return the model, or raise that there is none yet."""
        check_is_fitted(self)
        return self.model_

    def __mixnorm_check__(self, model: Any) -> None:
        """Raise unless the parameters are valid, and a model from a file is one of this class."""
        if not isinstance(model.outputs, self._output_kind):
            raise ModelFileError(f"a {type(self).__name__} has no outputs of this kind")
        check = getattr(self, "_check_parameters", None)  # that of CheckedParameters
        if check is not None:
            check()

    @property
    def _model_outputs(self) -> Any:
        """What the scores of the model mean."""
        return self._get_model().outputs

    def _check_new(self, X: MatrixLike) -> Any:
        """Return new data, checked."""
        self._get_model()
        return validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype="numeric")

    def _scores(self, X: MatrixLike) -> Any:
        """Return the scores of new data."""
        model = self._get_model()
        return model.scores(X if isinstance(model, FixedScores) else self._check_new(X))

    def _remember(self, *data: Any) -> None:
        """Remember the namespaces of the training data and its targets."""
        for name, array in zip(_LIKE, data, strict=True):
            vars(self).pop(name, None)
            if is_foreign(array):
                setattr(self, name, array[:0, ...])

    def _follow_fit(self, array: Any, like: str = "_like") -> Any:
        """Return an array of the model in the namespace and on the device of the training data."""
        return follow(array, getattr(self, like, None))

    def _copy_with(self, model: Any) -> Self:
        """Return a copy with another model."""
        made = copy.copy(self)
        made.model_ = model
        return made

    def __copy__(self) -> Self:  # not by way of a pickle, which forgets the namespace
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _LIKE}


class ReportedMixin(FittedMixin):
    """An estimator that also keeps what the engine said of the fit, as ``report_``."""

    report_: FitReport

    def _get_report(self) -> FitReport:
        self._get_model()
        return self.report_

    @property
    def objective_(self) -> float:
        """What was minimised."""
        return self._get_report().objective

    @property
    def dual_gap_(self) -> float:
        """The objective is at most this much above its optimum."""
        return self._get_report().gap

    @property
    def n_iter_(self) -> int:
        """Iterations."""
        return max(1, self._get_report().iterations)

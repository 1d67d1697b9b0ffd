"""What a model file keeps of an estimator on the proximal engine, and how the rest is rebuilt."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm.estimators._common.stored import _check_columns, _check_floats

# What every fit sets, as numbers.
_NUMBERS = {"dual_gap_": float, "objective_": float, "norm_value_": float, "n_iter_": int}


class StoredWeightsMixin:
    """The two methods that :mod:`mixnorm.storage` asks for, for estimators with ``coef_``.

    The file has the weights of the features in use alone; ``coef_`` is rebuilt from them.
    """

    def _fitted_state(self: Any) -> dict[str, Any]:
        """Return the fitted attributes, with weights for the features in use."""
        left_out = {*self.get_params(deep=False), "coef_"}
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        state["_used"] = np.ascontiguousarray(np.atleast_2d(self.coef_)[:, self.support_])
        return dict(sorted(state.items()))

    def _restore(self: Any, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        used = state.pop("_used")
        # Turned, since there may be no features in use, but never no outputs.
        _check_floats(used.T if isinstance(used, np.ndarray) else used, (None, None), "the weights")
        self.__dict__.update(state)
        n_outputs = used.shape[0]
        _check_columns(self, n_outputs, max_bytes)
        _check_support(self.support_, used.shape[1], int(self.n_features_in_))
        for name, kind in _NUMBERS.items():
            if type(state.get(name)) is not kind:
                raise ValueError(f"{name} must be a number")
        coef = np.zeros((n_outputs, int(self.n_features_in_)), used.dtype)
        coef[:, self.support_] = used
        self._check_fitted(n_outputs)
        self.coef_ = self._shaped(coef, np.zeros(n_outputs))[0]

    def _check_fitted(self: Any, n_outputs: int) -> None:
        """Raise unless intercept, labels and all that is fitted fit the number of outputs."""
        check_intercept(self.intercept_, n_outputs)


def check_intercept(intercept: Any, n_outputs: int, *, single: bool = False) -> None:
    """Raise unless the intercept is a number (``single``), or has one for each output."""
    if not single:
        _check_floats(intercept, (n_outputs,), "the intercept")
    elif type(intercept) is not float or not math.isfinite(intercept):
        raise ValueError("the intercept must be a number")


def _check_support(support: Any, n_used: int, n_features: int) -> None:
    whole = isinstance(support, np.ndarray) and support.dtype == np.intp
    if not whole or support.shape != (n_used,):
        raise ValueError(f"support_ must be an array of {n_used} whole numbers")
    inside = n_used == 0 or (support[0] >= 0 and support[-1] < n_features)
    if not inside or np.any(np.diff(support) <= 0):
        raise ValueError(f"support_ must rise, within {n_features} features")

"""What a model file keeps of a learner with several kernels."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from mixnorm.models import check_floats

# Numbers that a fit reports, and what kind of number each is.
_FACTS = {
    "n_features_in_": numbers.Integral,
    "n_iter_": numbers.Integral,
    "dual_gap_": numbers.Real,
    "objective_": numbers.Real,
}
# Kept to go on from, and no part of the model.
_PASSING = ("_last",)


class StoredKernelsMixin:
    """The two methods that :mod:`mixnorm.storage` asks for."""

    def _fitted_state(self: Any) -> dict[str, Any]:
        """Return the fitted attributes."""
        left_out = {*self.get_params(deep=False), *_PASSING}
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        return dict(sorted(state.items()))

    def _restore(self: Any, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        self.__dict__.update(state)
        check_floats(self.kernel_weights_, (None,), "kernel_weights_")
        check_floats(self.dual_coef_, (None, None), "dual_coef_")
        if not np.all((self.kernel_weights_ >= 0.0) & np.isfinite(self.kernel_weights_)):
            raise ValueError("kernel_weights_ must be finite and not negative")
        support = self.support_
        if (
            not isinstance(support, np.ndarray)
            or support.dtype.kind != "i"
            or support.shape != (len(self.dual_coef_),)
        ):
            raise ValueError(f"support_ must be {len(self.dual_coef_)} whole numbers")
        n_kernels = len(self.kernel_weights_)
        names = self.kernel_names_
        if (
            not isinstance(names, list)
            or len(names) != n_kernels
            or not all(isinstance(name, str) for name in names)
        ):
            raise ValueError(f"kernel_names_ must be a list of {n_kernels} names")
        check_facts(self)
        self._check_bank()

    def _check_bank(self: Any) -> None:
        """Raise unless the bank fits the weights."""
        n_kernels, n_support = len(self.kernel_weights_), len(self.support_)
        if self._precomputed:
            inside = n_support == 0 or (
                np.min(self.support_) >= 0 and np.max(self.support_) < self.n_features_in_
            )
            if self.bank_ is not None or not inside:
                raise ValueError("support_ is not within the training rows")
            return
        bank = self.bank_
        if getattr(bank, "n_kernels", None) != n_kernels:
            raise ValueError(f"the bank must have {n_kernels} kernels")
        if bank.n_features_in != self.n_features_in_:
            raise ValueError(f"the bank is of {bank.n_features_in} columns")
        if bank.factors is None:
            if self._features is not None or bank.n_samples != n_support:
                raise ValueError(f"the bank must have {n_support} rows, and no features")
            return
        ranks = bank.ranks(np.flatnonzero(self.kernel_weights_).tolist())
        shape = (sum(ranks), self.dual_coef_.shape[1]) if ranks else (0, 1)
        check_floats(self._features, shape, "_features")


def check_facts(model: Any) -> None:
    """Raise unless the numbers that a fit reports are numbers."""
    for name, kind in _FACTS.items():
        value = vars(model).get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise ValueError(f"{name} must be a number, got {value!r}")
    if not model.n_features_in_ >= 1:
        raise ValueError(f"n_features_in_ must be at least 1, got {model.n_features_in_!r}")

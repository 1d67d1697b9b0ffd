"""What a model file keeps of a learner with several kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm.estimators._stored import _check_floats

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
        _check_floats(self.kernel_weights_, (None,), "kernel_weights_")
        _check_floats(self.dual_coef_, (None, None), "dual_coef_")
        if np.any(self.kernel_weights_ < 0.0):
            raise ValueError("kernel_weights_ must not be negative")
        support = self.support_
        if (
            not isinstance(support, np.ndarray)
            or support.dtype.kind != "i"
            or support.shape != (len(self.dual_coef_),)
        ):
            raise ValueError(f"support_ must be {len(self.dual_coef_)} whole numbers")
        n_kernels = len(self.kernel_weights_)
        if not isinstance(self.kernel_names_, list) or len(self.kernel_names_) != n_kernels:
            raise ValueError(f"kernel_names_ must be a list of {n_kernels} names")
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
        if getattr(self.bank_, "n_kernels", None) != n_kernels:
            raise ValueError(f"the bank must have {n_kernels} kernels")
        if self._features is None and self.bank_.n_samples != n_support:
            raise ValueError(f"the bank must have {n_support} rows")

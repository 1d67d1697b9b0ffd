"""What a model file keeps of a learner that chose a few kernels."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mixnorm.engines.sparse_kernels import KernelPath
from mixnorm.losses import SmoothLoss
from mixnorm.models import check_floats

# Attributes that follow from the path.
_REBUILT = {"selected_kernels_", "selected_names_", "dual_coef_", "null_loss_", "path_", "n_iter_"}
_REBUILT |= {"intercept_", "_recipe"}


class StoredKernelPathMixin:
    """The two methods that :mod:`mixnorm.storage` asks for."""

    def _fitted_state(self: Any) -> dict[str, Any]:
        """Return the fitted attributes that cannot be rebuilt."""
        left_out = {*self.get_params(deep=False), *_REBUILT}
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        state["_continues"] = self._recipe == self._settings()
        return dict(sorted(state.items()))

    def _restore(self: Any, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        self.__dict__.update(state)
        continues = vars(self).pop("_continues")
        names = self.kernel_names_
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("kernel_names_ must be a list of names")
        width = self.n_features_in_
        if not isinstance(width, numbers.Integral) or isinstance(width, bool) or width < 1:
            raise ValueError("n_features_in_ must be a whole number from 1 up")
        n_samples, n_outputs = _check_path(self._path, len(names))
        _check_support(self, n_samples)
        _check_bank(self, n_samples)
        _check_outputs(self, n_outputs)
        vars(self).update(self._attributes(self._path, self.bank_))
        if continues is not True:
            self._recipe = ()


def _check_path(path: Any, n_kernels: int) -> tuple[int, int]:
    """Raise unless the parts of a path fit; return the numbers of samples and outputs."""
    if not isinstance(path, KernelPath):
        raise ValueError("_path must be a KernelPath")
    check_floats(path.terms, (None, None, None), "the terms of the path")
    n_samples, n_outputs = path.terms.shape[1:]
    check_floats(path.null_intercept, (n_outputs,), "the intercept without kernels")
    before: tuple[Any, ...] = ()
    n_terms = 0
    for step in path.rounds:
        support = step.support
        sound = (
            isinstance(support, tuple)
            and all(type(kernel) is int and 0 <= kernel < n_kernels for kernel in support)
            and len(set(support)) == len(support) > 0
            and support[: len(before)] == before
            and step.atom in support
        )
        if not sound:
            raise ValueError("a round has kernels that are none, or others than the round before")
        check_floats(step.weights, (len(support), None), "the weights of a round")
        if not n_terms < step.weights.shape[1] <= len(path.terms):
            raise ValueError("a round has weights for terms that are none of its own")
        n_terms = step.weights.shape[1]
        check_floats(step.intercept, (n_outputs,), "the intercept of a round")
        before = support
    return n_samples, n_outputs


def _check_support(model: Any, n_samples: int) -> None:
    support = model.support_
    whole = isinstance(support, np.ndarray) and support.dtype.kind == "i"
    if not whole or support.shape != (n_samples,) or (n_samples and np.min(support) < 0):
        raise ValueError(f"support_ must be {n_samples} numbers of rows")
    if model._precomputed and n_samples and np.max(support) >= model.n_features_in_:
        raise ValueError("support_ is not within the training rows")


def _check_bank(model: Any, n_samples: int) -> None:
    bank, rounds = model.bank_, model._path.rounds
    if model._precomputed:
        if bank is not None:
            raise ValueError("a model of given matrices has no bank")
        return
    chosen = max(1, len(rounds[-1].support) if rounds else 0)
    if getattr(bank, "n_kernels", None) != chosen or bank.n_samples != n_samples:
        raise ValueError(f"the bank must have {chosen} kernels and {n_samples} rows")
    if bank.n_features_in != model.n_features_in_:
        raise ValueError(f"the bank is of {bank.n_features_in} columns")


def _check_outputs(model: Any, n_outputs: int) -> None:
    loss = model._fitted_loss
    if not isinstance(loss, SmoothLoss) or (loss.is_classifier and not is_classifier(model)):
        raise ValueError("_fitted_loss must be a loss that this model has")
    if is_classifier(model):
        classes = model.classes_
        if not isinstance(classes, np.ndarray) or classes.shape != (n_outputs,) or n_outputs < 2:
            raise ValueError(f"classes_ must be an array of {n_outputs} labels, at least 2")
        return
    if type(model._unit) is not float or not 0.0 < model._unit < math.inf:
        raise ValueError("the unit of the targets must be a positive number")
    if type(model._single) is not bool or (model._single and n_outputs != 1):
        raise ValueError("targets are said to be one column, but the path has several outputs")

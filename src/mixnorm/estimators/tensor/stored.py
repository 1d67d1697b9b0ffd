"""What a model file keeps of a learner with a tensor kernel."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from mixnorm.engines.tensor import REPRESENTATIONS
from mixnorm.kernels import FeatureExpansion, PairExpansion, TensorExpansion, TensorKernel
from mixnorm.models import Inputs, check_floats


class StoredTensorMixin:
    """The two methods that :mod:`mixnorm.storage` asks for."""

    def _fitted_state(self: Any) -> dict[str, Any]:
        """Return the fitted attributes."""
        left_out = self.get_params(deep=False)
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        return dict(sorted(state.items()))

    def _restore(self: Any, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        self.__dict__.update(state)
        check_facts(self)
        check_floats(self._unit, (None,), "_unit")
        n_outputs = len(self._unit)
        Inputs.of(self).check(n_outputs, max_bytes)
        width = int(self.n_features_in_)
        for name in ("_centre", "_norm"):
            check_floats(vars(self).get(name), (n_outputs,), name)
        check_floats(self._frame, (3, width), "_frame")
        if not np.all(self._unit > 0.0) or not np.all(self._frame[[0, 2]] > 0.0):
            raise ValueError("units of targets and columns must be positive")
        if not isinstance(self.representation_, str) or self.representation_ not in REPRESENTATIONS:
            raise ValueError(f"representation_ must be one of {list(REPRESENTATIONS)}")
        for name in ("kernel_error_", "kernel_mass_"):
            if type(vars(self).get(name)) is not float:
                raise ValueError(f"{name} must be a number")
        _check_single(self, n_outputs)
        if not isinstance(self.kernel_, TensorKernel):
            raise ValueError("kernel_ must be a tensor kernel")
        _check_expansion(self, n_outputs, width)


def _check_single(model: Any, n_outputs: int) -> None:
    """Raise unless what is told of outputs fits their number."""
    single = model._single_output()
    if single and n_outputs != 1:
        raise ValueError(f"there is one output, and not {n_outputs}")
    shape = (None,) if single else (None, n_outputs)
    check_floats(model.dual_coef_, shape, "dual_coef_")
    if single:
        if type(model.gamma_raw_) is not float:
            raise ValueError("gamma_raw_ must be a number")
    else:
        check_floats(model.gamma_raw_, (n_outputs,), "gamma_raw_")


def _check_expansion(model: Any, n_outputs: int, width: int) -> None:
    """Raise unless the function that was fitted takes such rows, and has so many outputs."""
    found = model._expansion
    if not isinstance(found, (FeatureExpansion, TensorExpansion, PairExpansion)):
        raise ValueError("_expansion must be a function of a tensor kernel")
    kernel = found.kernel
    if not isinstance(kernel, TensorKernel) or kernel != model.kernel_:
        raise ValueError("the kernel of the function must be that of the model")
    if kernel.fitted(np.zeros((1, width))) != kernel:
        raise ValueError("the parameters of the kernel are not settled")
    if type(found.unit) is not float or not 0.0 < found.unit < math.inf:
        raise ValueError("the unit of the function must be a positive number")
    if not isinstance(found, PairExpansion) and found.q != float(model.q):
        raise ValueError("the exponent of the function must be that of the model")
    columns = kernel.columns(np.zeros((1, width))).shape[1]
    if isinstance(found, FeatureExpansion):
        _check_features(found, kernel, n_outputs, columns, width)
        return
    if not kernel.has_products or float(model.q) % 2.0 or not 4.0 <= float(model.q) <= 8.0:
        raise ValueError("a function by rows needs products, and 4, 6 or 8 arguments")
    check_floats(found.columns, (None, columns), "the columns of the function")
    check_floats(found.alpha, (len(found.columns), n_outputs), "the dual variables")
    if isinstance(found, PairExpansion):
        check_floats(found.coef, (None, n_outputs), "the coefficients of pairs")
        _check_whole(found.pairs, (2, len(found.coef)), len(found.columns), "the pairs")


def _check_features(
    found: FeatureExpansion, kernel: TensorKernel, n_outputs: int, columns: int, width: int
) -> None:
    check_floats(found.weights, (None, n_outputs), "the weights of features")
    if found.exponents is not None:
        if not kernel.has_products:
            raise ValueError("features of your own have no exponents")
        shape = (len(found.weights), columns)
        _check_whole(found.exponents, shape, 2**15, "the exponents")
        kernel.log_rho(np.zeros(1))
    elif not kernel.finite or kernel.n_features(width) != len(found.weights):
        raise ValueError("there must be a weight for every feature of the kernel")


def _check_whole(array: Any, shape: tuple[int, ...], below: int, what: str) -> None:
    """Raise unless an array has whole numbers of such a shape, from zero up."""
    sound = isinstance(array, np.ndarray) and array.dtype.kind == "i" and array.shape == shape
    if not sound or (array.size and not 0 <= array.min() <= array.max() < below):
        raise ValueError(f"{what} must be an array of shape {shape} of whole numbers below {below}")


def check_intercept(intercept: Any, n_outputs: int, *, single: bool = False) -> None:
    """Raise unless the intercept is a number (``single``), or has one for each output."""
    if not single:
        check_floats(intercept, (n_outputs,), "the intercept")
    elif type(intercept) is not float or not math.isfinite(intercept):
        raise ValueError("the intercept must be a number")


# Numbers that a fit reports, and what kind of number each is.
_FACTS = {
    "n_features_in_": numbers.Integral,
    "n_iter_": numbers.Integral,
    "dual_gap_": numbers.Real,
    "objective_": numbers.Real,
}


def check_facts(model: Any) -> None:
    """Raise unless the numbers that a fit reports are numbers."""
    for name, kind in _FACTS.items():
        value = vars(model).get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise ValueError(f"{name} must be a number, got {value!r}")
    if not model.n_features_in_ >= 1:
        raise ValueError(f"n_features_in_ must be at least 1, got {model.n_features_in_!r}")

"""Parameters and inputs of learners with kernels: rows for a bank, or kernel matrices."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.utils import check_consistent_length

from mixnorm._array import Array, ArrayLike, MatrixLike, is_sparse
from mixnorm.data import check_in_memory
from mixnorm.engines.multikernel import check_row_costs
from mixnorm.estimators._common.inputs import check_weights, row_weights
from mixnorm.estimators._common.parameters import (
    CheckedParameters,
    Count,
    ListOf,
    Number,
    Of,
    OneOf,
    Or,
    Switch,
    Tolerance,
    Whole,
    maybe,
)
from mixnorm.estimators._common.units import safe_unit
from mixnorm.estimators._common.validation import validate_data
from mixnorm.kernels import KernelBank, KernelStack

_EXPONENT = Number(
    least=1, finite=False, why="1 for few kernels, 2 for many, numpy.inf for the average"
)
_ADVICE = (
    "'bank' computes the kernels of bank, and 'precomputed' takes kernel matrices in place of X"
)
_BANK = "make one with mixnorm.kernels.KernelBank or gaussian_bank, or leave it at None"
_FLOOR_ADVICE = "a kernel of tail sum zero would take all weight. 0.01 is a good start"
_CONVEX = "below that the penalty is not strongly convex"

# --- parameters of several learners; those in the plural list what a search tries

Bank = Annotated[Any, maybe(Of(KernelBank, why=_BANK))]
GivenKernels = Annotated[str, OneOf(("bank", "precomputed"), why=_ADVICE)]
LossWeight = Annotated[float, Number(above=0, why="it is the weight of the losses")]
LossWeights = Annotated[Any, ListOf(Number(above=0))]
Exponent = Annotated[float, _EXPONENT]
Exponents = Annotated[Any, ListOf(_EXPONENT)]
Tail = Annotated[int, Whole(least=0)]
Tails = Annotated[Any, ListOf(Whole(least=0))]
Beta = Annotated[float, Number(least=0)]
Betas = Annotated[Any, ListOf(Number(least=0))]
Floor = Annotated[float, Number(above=0, why=_FLOOR_ADVICE)]
BlockExponent = Annotated[Any, Or(Number(least=2, finite=False, why=_CONVEX), (None, "classes"))]


@dataclass(eq=False, repr=False)
class BankParameters:
    """Parameters of every learner with a bank of kernels."""

    bank: Bank = None
    _: KW_ONLY
    kernel: GivenKernels = "bank"
    tol: Tolerance = 1e-2
    max_iter: Count = 200


@dataclass(eq=False, repr=False, kw_only=True)
class MachineParameters(BankParameters):
    """Parameters of every learner that weighs the kernels of a bank."""

    C: LossWeight = 10.0
    warm_start: Switch = False


class KernelInputsMixin(CheckedParameters):
    """Rows or kernel matrices in, for estimators with the parameters ``bank`` and ``kernel``."""

    bank: Any
    kernel: Any
    n_features_in_: int

    @property
    def _precomputed(self) -> bool:
        """Whether kernel matrices are given in place of rows."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _takes_raw_rows(self) -> bool:
        """Whether rows go to the bank unchecked, since it selects and prepares the columns."""
        return self.bank is not None and (
            self.bank.preprocess is not None or self.bank.columns is not None
        )

    def _validate(self, X: MatrixLike | KernelStack) -> Any:
        """Return training rows as the bank takes them, or their kernels."""
        check_in_memory(X, type(self).__name__)
        if self._precomputed:
            # Kernel matrices have no columns with names; those of an earlier fit would be wrong.
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return KernelStack(X)
        if isinstance(X, KernelStack):
            raise TypeError(
                "X is a KernelStack, which holds kernel matrices; set kernel='precomputed'."
            )
        return self._validate_rows(X, self._takes_raw_rows(), reset=True)

    def _check_new(self: Any, X: MatrixLike | KernelStack) -> Any:
        """Return new rows as the bank takes them, or their kernels with the training rows."""
        model = self._get_model()
        if model.bank is None:
            return _check_new_stack(X, len(model.names), model.inputs.n_features)
        return self._validate_rows(X, model.raw_rows, reset=False)

    def _validate_rows(self, X: MatrixLike, raw: bool, reset: bool) -> Any:
        if raw:
            X = as_rows(X)
            # Only names and the number of columns are noted: the bank's transformers take texts and
            # dates.
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        dtypes = [np.float64, np.float32]
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=dtypes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags


def _check_new_stack(X: MatrixLike | KernelStack, n_kernels: int, n_rows: int) -> KernelStack:
    """Return given kernels of new rows with the training rows, checked."""
    stack = KernelStack(X)
    stack.check(square=False)
    if stack.n_kernels != n_kernels or stack.shape[1] != n_rows:
        raise ValueError(
            f"X holds {stack.n_kernels} kernels of shape {stack.shape}, but this model was "
            f"fitted on {n_kernels} kernels of {n_rows} training rows; give an "
            f"array of shape ({n_kernels}, n_new, {n_rows})."
        )
    return stack


def as_rows(X: MatrixLike) -> Any:
    """Return a table that goes to a bank unchecked, and from which rows can be taken."""
    rows = _ensure_shape(X)
    if is_sparse(rows):
        # Other sparse formats have no rows to take.
        rows = rows.tocsr()
    if rows.shape[0] == 0:
        raise ValueError("X has no rows; give at least one.")
    return rows


def take_rows(X: Array, rows: np.ndarray) -> Any:
    """Return some rows of a table, in increasing order; the table itself if these are all rows."""
    # The table itself, without a copy; ``iloc`` takes rows of a data frame by position.
    return X if len(rows) == X.shape[0] else getattr(X, "iloc", X)[rows]


def check_targets(estimator: object, X: MatrixLike | KernelStack, y: ArrayLike | None) -> None:
    """Raise unless there is one target for each row."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    check_consistent_length(X, _ensure_shape(y))


def _ensure_shape(table: object) -> Any:
    return np.asarray(table) if getattr(table, "shape", None) is None else table


def prepare_weights(sample_weight: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Return checked weights, with their size; ones by default."""
    weight = row_weights(sample_weight, n_samples)
    # Weights whose sum overflows become shares of the largest float.
    shares = check_weights(weight, n_samples, np.float64)
    with np.errstate(over="ignore"):
        huge = not np.isfinite(np.sum(weight))
    return shares * float(np.finfo(np.float64).max) if huge else weight


def prepare_row_costs(sample_weight: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Return checked weights that multiply ``C``, so that their size is limited."""
    weight = prepare_weights(sample_weight, n_samples)
    check_row_costs(weight, "sample_weight", "divide it by its mean")
    return weight


def compute_target_centre(table: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted mean of targets; all weights are positive.

    Division by powers of two keeps the products finite, and changes no digit.
    """
    unit, shares = safe_unit(table), weight / safe_unit(weight)
    return np.asarray(np.average(table / unit, axis=0, weights=shares) * unit)

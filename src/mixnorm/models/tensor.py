"""Functions in the space of a tensor kernel, of columns in units of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixnorm.kernels import FeatureExpansion, PairExpansion, TensorExpansion, TensorKernel
from mixnorm.models.checks import check_floats, check_positive, check_whole
from mixnorm.models.inputs import Inputs
from mixnorm.models.outputs import BinaryOutputs, NumberOutputs


@dataclass(frozen=True, eq=False)
class TensorModel:
    """A function for every output, given by weights of features or dual variables of rows.

    Parameters
    ----------
    expansion : FeatureExpansion, TensorExpansion or PairExpansion
        The functions, with their kernel, whose parameters are settled.
    frame : ndarray of shape (3, n_features)
        Divisors, centres and scales of the columns.
    units : ndarray of shape (n_scores,)
        Factors of the functions.
    norms : ndarray of shape (n_scores,)
        The norms, to the power p, of the weights of all features.
    q : float
        The number of arguments of the kernel.
    representation : str
        How the kernel of the training rows was stored.
    dual_coef : ndarray of shape (n_samples, n_scores)
        The dual variables, in units of the kernel and the targets; not used by ``scores``.
    inputs : Inputs
        The columns.
    outputs : BinaryOutputs or NumberOutputs
        What the scores mean.
    """

    expansion: FeatureExpansion | TensorExpansion | PairExpansion
    frame: np.ndarray
    units: np.ndarray
    norms: np.ndarray
    q: float
    representation: str
    dual_coef: np.ndarray
    inputs: Inputs
    outputs: BinaryOutputs | NumberOutputs

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of new rows: ``(n_samples, n_scores)``."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.expansion.scores(apply_frame(X, self.frame))
        # Powers of a row far from the training rows overflow, and its score would say nothing.
        bad = np.flatnonzero(~np.all(np.isfinite(found), axis=1))
        if len(bad):
            raise ValueError(
                f"Row {bad[0]} of X is so far from the training rows that its features are out of "
                f"the range of floats ({len(bad)} of {len(X)} rows are). Look at these rows."
            )
        return np.asarray(found * self.units + self.outputs.centre)

    def cost(self) -> dict[str, int]:
        """Return how many numbers are stored, and about how many multiplications a row takes."""
        return self.expansion.cost()

    def check(self, max_bytes: int) -> None:
        """Raise unless ``scores`` can work with the parts, which may come from anybody's file."""
        check_floats(self.units, (None,), "the units of the outputs")
        n_scores, width = len(self.units), self.inputs.n_features
        self.inputs.check(n_scores, max_bytes)
        self.outputs.check(n_scores)
        check_floats(self.norms, (n_scores,), "the norms")
        check_floats(self.frame, (3, width), "the frame of the columns")
        check_floats(self.dual_coef, (None, n_scores), "dual_coef_")
        if not np.all(self.units > 0.0) or not np.all(self.frame[[0, 2]] > 0.0):
            raise ValueError("units of targets and columns must be positive")
        if type(self.q) is not float or not 2.0 < self.q <= 100.0:
            raise ValueError("the exponent must be a number above 2, and at most 100")
        self._check_expansion(n_scores, width)

    def _check_expansion(self, n_scores: int, width: int) -> None:
        """Raise unless the function takes rows of this width and has as many outputs."""
        found, kernel, row = self.expansion, self.expansion.kernel, np.zeros((1, width))
        if not isinstance(kernel, TensorKernel):
            raise ValueError("kernel_ must be a tensor kernel")
        # Parameters that depend on training rows must have been replaced by numbers: other rows
        # would give other ones.
        if kernel.resolve(row) != kernel:
            raise ValueError("the parameters of the kernel are not settled")
        check_positive(found.unit, "the unit of the function")
        if not isinstance(found, PairExpansion) and found.q != self.q:
            raise ValueError("the exponent of the function must be that of the model")
        # A kernel may add a constant column to those of the data.
        columns = kernel.columns(row).shape[1]
        if isinstance(found, FeatureExpansion):
            _check_features(found, n_scores, columns, width)
            return
        if not kernel.has_products or self.q not in (4.0, 6.0, 8.0):
            raise ValueError("a function by rows needs products, and 4, 6 or 8 arguments")
        check_floats(found.columns, (None, columns), "the columns of the function")
        check_floats(found.alpha, (len(found.columns), n_scores), "the dual variables")
        if isinstance(found, PairExpansion):
            check_floats(found.coef, (None, n_scores), "the coefficients of pairs")
            check_whole(found.pairs, (2, len(found.coef)), len(found.columns), "the pairs")


def apply_frame(X: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Return columns in the units of a frame, which has their divisors, centres and scales."""
    divisor, centre, scale = frame
    # First divided, so that the difference of huge entries does not overflow.
    return np.asarray((X / divisor - centre) / scale)


def _check_features(found: FeatureExpansion, n_scores: int, columns: int, width: int) -> None:
    kernel = found.kernel
    check_floats(found.weights, (None, n_scores), "the weights of features")
    if found.exponents is not None:
        if not kernel.has_products:
            raise ValueError("features of your own have no exponents")
        shape = (len(found.weights), columns)
        check_whole(found.exponents, shape, 2**15, "the exponents")
        # Fails for a kernel of the user's whose monomials have no coefficients.
        kernel.log_rho(np.zeros(1))
    elif not kernel.finite or kernel.n_features(width) != len(found.weights):
        raise ValueError("there must be a weight for every feature of the kernel")

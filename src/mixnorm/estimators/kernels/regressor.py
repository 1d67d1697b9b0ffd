"""Multiple kernel learning with squared losses: regression with one or several outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm._checks import check_array
from mixnorm.engines.multikernel import SquaredTarget
from mixnorm.estimators._common.blocks.parts import map_parts
from mixnorm.estimators._common.fitted import FittedMixin
from mixnorm.estimators._common.inputs import check_number_targets, unit_of
from mixnorm.estimators._common.regressor import RegressorMixin
from mixnorm.estimators.kernels.base import KernelTraining, WeightedKernelLearner
from mixnorm.estimators.kernels.inputs import Exponent, MachineParameters, compute_target_centre
from mixnorm.losses import Squared
from mixnorm.models import NumberOutputs


class KernelRegressionFace(MultiOutputMixin, RegressorMixin, FittedMixin):
    """Predictions of numbers, for estimators with kernels."""

    _output_kind = NumberOutputs

    @map_parts
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            New data; with ``kernel="precomputed"`` their kernels with the training rows, of shape
            ``(n_kernels, n_samples, n_training)``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return np.asarray(self._get_model().outputs.labels(self._scores(X)))


def check_target_table(y: ArrayLike) -> tuple[np.ndarray, bool]:
    """Return checked targets with one column per output, and whether ``y`` has one axis."""
    check_number_targets(y)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return y.reshape(len(y), -1), y.ndim == 1


class KernelRegressor(KernelRegressionFace, WeightedKernelLearner):
    """Squared losses on a sum of kernels."""

    _squares = True

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, NumberOutputs]:
        table, single = check_target_table(y)
        kept = weight > 0.0
        centre = compute_target_centre(table[kept], weight[kept])
        # The intercept is the mean of the targets, as :eq:`weights-problem` has none: kernels
        # explain the rest.
        rest = table - centre
        unit = unit_of(rest[kept])
        return rest / unit, weight, NumberOutputs(single, unit, centre, Squared())

    def _adapt_to_fold(self, training: KernelTraining) -> KernelTraining:
        # The mean of a fold's training rows differs from that of all rows.
        shift = np.average(training.y, axis=0, weights=training.weight)
        centre = training.outputs.centre + training.outputs.unit * shift
        outputs = replace(training.outputs, centre=centre)
        return replace(training, y=training.y - shift, outputs=outputs)

    def _objective_unit(self, training: KernelTraining) -> float:
        # Squared errors are in units of the squared unit of the targets.
        return 1.0 / float(training.outputs.unit) ** 2

    def _build_target(self, y: np.ndarray, caps: np.ndarray, outputs: Any) -> SquaredTarget:
        return SquaredTarget(y, caps)

    @property
    def intercept_(self) -> Any:
        """The mean of the targets."""
        outputs = self._get_model().outputs
        return float(outputs.centre[0]) if outputs.single else outputs.centre


@dataclass(eq=False, repr=False, kw_only=True)
class MKLRegressor(MachineParameters, KernelRegressor):
    r"""Kernel ridge regression that learns the weights of its kernels, shared by all outputs.

    Minimises

    .. math::

        \min_{w,\ b,\ \mu \ge 0,\ \|\mu\|_p \le 1} \tfrac12 \sum_m \frac{\|w_m\|^2}{\mu_m}
        + \tfrac{C}{2} \sum_i \|y_i - b - f(x_i)\|^2

    with a duality gap, where the intercept ``b`` is the mean of the targets.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels. By default Gaussian kernels of eleven widths, in units of the mean squared
        distance of the training rows.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    p : float, default=1.2
        Exponent on the weights: 1 for few kernels, 2 for many, ``numpy.inf`` for the average.
    C : float, default=10.0
        Weight of each sample's squared error; ``1 / C`` is the ridge.
    tol : float, default=1e-2
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most iterations, each with new weights of the kernels.
    warm_start : bool, default=False
        Start from the last fit, which must have had the same rows and kernels.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        The weights, none negative; their p-norm is one.
    intercept_ : float or ndarray of shape (n_outputs,)
        The mean of the targets.
    kernel_names_, bank_, support_, dual_coef_, dual_gap_, objective_, cost_, n_iter_
        As in :class:`MKLClassifier`.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    Notes
    -----
    Each iteration solves one system of ``n_samples`` equations, or of as many as there are columns
    of factors. Several labels for a row may be given as columns of zeros and ones: predictions
    above one half are labels.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import MKLRegressor
    >>> x = np.linspace(-3.0, 3.0, 60)[:, None]
    >>> model = MKLRegressor(C=100.0).fit(x, np.sin(2.0 * x[:, 0]))
    >>> model.score(x, np.sin(2.0 * x[:, 0])) > 0.99
    True
    """

    p: Exponent = 1.2

"""Rates of greedy kernel learning: as the theory predicts them, and as measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixnorm.kernels import KernelGeometry, kernel_geometry

# Losses above the best by less than this part of the first excess are rounding.
_ROUNDING_OF_EXCESS = 1e-12


@dataclass(frozen=True)
class KernelRates:
    r"""Convergence along a path of kernels, as predicted and as measured.

    Attributes
    ----------
    geometry : KernelGeometry
        Eigenvalues and angles of the chosen kernels on the given rows.
    loss : ndarray of shape (n_rounds + 1,)
        Half the mean squared error of the model without kernels, and after each round.
    floor : float
        The same of the best model of the chosen kernels, without a penalty.
    predicted : float
        The factor by which :math:`E_k - E_{\min}` falls at least in a round, :math:`1 - 1 / (8
        \gamma^2)` (:eq:`geometric-rate`): Lemma 3 of Jin, Yang and Mahdavi for Algorithm 2,
        corrected, and for kernels of any size. One, if the theory promises nothing.
    measured : float
        The mean factor by which it fell, from the slope of its logarithm (:eq:`measured-rate`).
    """

    geometry: KernelGeometry
    loss: np.ndarray
    floor: float
    predicted: float
    measured: float

    @property
    def correlation(self) -> float:
        """The largest cosine between the spans of two chosen kernels."""
        return self.geometry.correlation

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue of a chosen kernel that is not zero, divided by the rows."""
        return self.geometry.smallest

    @property
    def gamma(self) -> tuple[float, float]:
        """Bounds from below and above of the constant of the theory."""
        return self.geometry.gamma

    @property
    def excess(self) -> np.ndarray:
        """The loss above that of the best model of the chosen kernels."""
        return np.maximum(self.loss - self.floor, 0.0)

    @property
    def bound(self) -> np.ndarray:
        """The bound of the theory on the excess after each round."""
        return np.asarray(self.excess[0] * self.predicted ** np.arange(len(self.loss)))


def measure_rates(factors: list[np.ndarray], target: np.ndarray, losses: np.ndarray) -> KernelRates:
    """Return the rates of a path.

    Parameters
    ----------
    factors : list of array of shape (n_samples, rank)
        Factors of the chosen kernels.
    target : array of shape (n_samples, n_outputs)
        Targets less the intercept.
    losses : array of shape (n_rounds + 1,)
        Half the mean squared error, before the first round and after each.
    """
    geometry = kernel_geometry(factors)
    # An orthonormal basis of all that the chosen kernels can express on these rows; what is left of
    # the targets outside of it no model of them can reach.
    vectors, values, _ = np.linalg.svd(np.concatenate(factors, axis=1), full_matrices=False)
    span = vectors[:, values > 1e-10 * max(float(values[0]), np.finfo(np.float64).tiny)]
    left = target - span @ (span.T @ target)
    floor = 0.5 * float(np.sum(left * left)) / len(target)
    return KernelRates(geometry, losses, floor, geometry.rate, _fit_slope(losses - floor))


def _fit_slope(excess: np.ndarray) -> float:
    """Return the factor by which numbers fall from one to the next, on the average."""
    # A geometric rate is a straight line in the logarithm, until rounding bends it.
    rounds = np.flatnonzero(excess > _ROUNDING_OF_EXCESS * excess[0])
    if len(rounds) < 2:
        return 0.0
    return float(np.exp(np.polyfit(rounds, np.log(excess[rounds]), 1)[0]))

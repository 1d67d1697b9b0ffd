"""What the theory of greedy kernel learning predicts, beside what is measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixnorm.kernels import KernelGeometry, kernel_geometry

# Losses closer to the best than this share of the first are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class KernelRates:
    r"""Convergence along a path of kernels, as predicted and as measured.

    Attributes
    ----------
    geometry : KernelGeometry
        What the chosen kernels have in common on the rows given.
    loss : ndarray of shape (n_rounds + 1,)
        Half the mean squared error of the model without kernels, and after each round.
    floor : float
        The same of the best model that the chosen kernels can make, without any penalty.
    predicted : float
        The factor by which :math:`E_k - E_{\min}` falls in a round at least, :math:`1 - 1 / (8
        \gamma^2)`: what Lemma 3 of Jin, Yang and Mahdavi says of Algorithm 2, corrected, and for
        kernels of any size. One, where the theory promises nothing.
    measured : float
        The factor by which it did fall, on the average: from the slope of its logarithm.
    """

    geometry: KernelGeometry
    loss: np.ndarray
    floor: float
    predicted: float
    measured: float

    @property
    def correlation(self) -> float:
        """The largest cosine between what two chosen kernels can make of the rows."""
        return self.geometry.correlation

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue of a chosen kernel, divided by the rows, that is not zero."""
        return self.geometry.smallest

    @property
    def gamma(self) -> tuple[float, float]:
        """Below and above the constant of the theory."""
        return self.geometry.gamma

    @property
    def excess(self) -> np.ndarray:
        """The loss above the best that the chosen kernels can do."""
        return np.maximum(self.loss - self.floor, 0.0)

    @property
    def bound(self) -> np.ndarray:
        """What the theory says that the excess is at most, after each round."""
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
    vectors, values, _ = np.linalg.svd(np.concatenate(factors, axis=1), full_matrices=False)
    span = vectors[:, values > 1e-10 * max(float(values[0]), np.finfo(np.float64).tiny)]
    left = target - span @ (span.T @ target)
    floor = 0.5 * float(np.sum(left * left)) / len(target)
    return KernelRates(geometry, losses, floor, geometry.rate, _fit_slope(losses - floor))


def _fit_slope(excess: np.ndarray) -> float:
    """Return the factor by which numbers fall from one to the next, on the average."""
    rounds = np.flatnonzero(excess > _ROUNDING * excess[0])
    if len(rounds) < 2:
        return 0.0
    return float(np.exp(np.polyfit(rounds, np.log(excess[rounds]), 1)[0]))

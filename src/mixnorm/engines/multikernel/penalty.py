r"""What the blocks of weights of several kernels cost.

With :math:`v_m = \sqrt{\rho_m} |w_m|` and :math:`1/s + 1/q = 1` the penalty is

.. math:: \tfrac12 \|v\|_s^2 + \sum_m b_m v_m,

and its conjugate :math:`\tfrac12 \|(|\theta_m| / \sqrt{\rho_m} - b_m)_+\|_q^2`. Both the norms of
lp-norm multiple kernel learning, where :math:`q = 2p / (p - 1)`, and those of UFO-MKL and SMSD-MKL
are of this form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# Sizes of blocks are kept above this part of the largest: a weight of zero would stay zero.
_LEAST_SIZE = 1e-9


@dataclass(frozen=True)
class KernelPenalty:
    """Half the square of a norm of block sizes, and a multiple of each.

    Parameters
    ----------
    q : float
        Dual exponent, from 2 to infinity.
    scales : array of shape (n_kernels,)
        Squares of block sizes are multiplied by these.
    offsets : array of shape (n_kernels,)
        What the scaled size of a block costs in proportion.
    """

    q: float
    scales: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of_weights(cls, p: float, scales: np.ndarray) -> KernelPenalty:
        """Return the penalty that weights of a ``p``-norm of at most one amount to."""
        q = math.inf if p == 1.0 else 2.0 if math.isinf(p) else 2.0 * p / (p - 1.0)
        return cls(q, np.asarray(scales, dtype=np.float64), np.zeros(len(scales)))

    @property
    def s(self) -> float:
        """Exponent of the block sizes."""
        return 1.0 if math.isinf(self.q) else self.q / (self.q - 1.0)

    @property
    def fixed(self) -> bool:
        """Whether the best weights are the same whatever the blocks."""
        return self.q == 2.0 and not np.any(self.offsets)

    @property
    def sharp(self) -> bool:
        """Whether weights may be zero at the optimum, or nearly so."""
        return self.q > 24.0 or bool(np.any(self.offsets))

    def sizes(self, weights: np.ndarray, energies: np.ndarray) -> np.ndarray:
        """Return the scaled sizes of the blocks ``w_m = weights_m * theta_m``."""
        return np.asarray(weights * np.sqrt(np.maximum(energies, 0.0) * self.scales))

    def value(self, sizes: np.ndarray) -> float:
        """Return the penalty of blocks of scaled sizes."""
        size = _norm(sizes, self.s)
        return 0.5 * size * size + float(np.sum(self.offsets * sizes))

    def excess(self, energies: np.ndarray) -> np.ndarray:
        """Return by how much ``|theta_m|`` exceeds what its offset forgives."""
        roots = np.sqrt(np.maximum(energies, 0.0) / self.scales)
        return np.asarray(np.maximum(roots - self.offsets, 0.0))

    def conjugate(self, energies: np.ndarray) -> float:
        """Return the conjugate, given the squares ``|theta_m|^2``."""
        size = _norm(self.excess(energies), self.q)
        return 0.5 * size * size

    def link(self, energies: np.ndarray) -> np.ndarray:
        """Return weights such that the blocks ``weights_m * theta_m`` attain the conjugate."""
        excess = self.excess(energies)
        size = _norm(excess, self.q)
        if not size > 0.0:
            return np.zeros_like(excess)
        if math.isinf(self.q):
            shares = np.where(excess >= size, 1.0, 0.0)
            shares /= np.sum(shares)
        else:
            shares = (excess / size) ** (self.q - 1.0)
        roots = np.sqrt(np.maximum(energies, 0.0) * self.scales)
        return np.asarray(
            np.divide(size * shares, roots, out=np.zeros_like(shares), where=roots > 0.0)
        )

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Return the weights of the quadratic penalty that touches this one at some sizes.

        That is ``|w_m|^2 / (2 weights_m)`` in each kernel, which is nowhere smaller, up to a
        constant.
        """
        size = _norm(sizes, self.s)
        if not size > 0.0:
            return np.zeros_like(sizes)
        inside = np.maximum(sizes, _LEAST_SIZE * size)
        slope = size * (inside / size) ** (self.s - 1.0) + self.offsets
        return np.asarray(inside / (slope * self.scales))

    def normalize(self, weights: np.ndarray) -> np.ndarray:
        """Return weights scaled to the norm they have at the optimum; with offsets they have none.

        Examples
        --------
        >>> KernelPenalty.of_weights(2.0, np.ones(2)).normalize(np.array([3.0, 4.0]))
        array([0.6, 0.8])
        """
        if np.any(self.offsets):
            return weights
        p = 1.0 if math.isinf(self.q) else math.inf if self.q == 2.0 else self.q / (self.q - 2.0)
        return np.asarray(weights / _norm(weights * self.scales, p))


def _norm(values: np.ndarray, p: float) -> float:
    """Return the ``p``-norm of values that are zero or more; no power of them overflows."""
    largest = float(np.max(values, initial=0.0))
    if not largest > 0.0 or math.isinf(p):
        return largest
    return largest * math.pow(float(np.sum((values / largest) ** p)), 1.0 / p)

r"""The penalty of the blocks of weights of several kernels.

With :math:`v_m = \sqrt{\rho_m} |w_m|` and :math:`1/s + 1/q = 1` the penalty is

.. math:: \tfrac12 \|v\|_s^2 + \sum_m b_m v_m,

and its conjugate :math:`\tfrac12 \|(|\theta_m| / \sqrt{\rho_m} - b_m)_+\|_q^2`. The norms of
lp-norm multiple kernel learning, with :math:`q = 2p / (p - 1)`, and those of UFO-MKL and SMSD-MKL
have this form (:eq:`kernel-penalty`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Sizes of blocks are kept above this part of their norm: a weight of zero would stay zero. It is a
#: constant, because the compiled loop of the reduced problem needs the same number.
LEAST_SIZE = 1e-9
# Above this exponent, weights are as good as zero for all but the best kernels: by
# :eq:`kernel-link`, one of a tenth of the largest energy has less than (1/10)^(q/2 - 1) = 1e-11 of
# the largest weight. The alternation alone would take many rounds to bring it there.
_SHARP_EXPONENT = 24.0


@dataclass(frozen=True)
class KernelPenalty:
    """Half the square of a norm of block sizes, plus a multiple of each size.

    Parameters
    ----------
    q : float
        Dual exponent, from 2 to infinity.
    scales : array of shape (n_kernels,)
        Factors of the squares of block sizes.
    offsets : array of shape (n_kernels,)
        Factors of the scaled sizes of blocks.
    """

    q: float
    scales: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of_weights(cls, p: float, scales: np.ndarray) -> KernelPenalty:
        """Return the penalty that is equivalent to weights with a ``p``-norm of at most one."""
        # q = 2p / (p - 1), with both limits written out.
        q = math.inf if p == 1.0 else 2.0 if math.isinf(p) else 2.0 * p / (p - 1.0)
        return cls(q, np.asarray(scales, dtype=np.float64), np.zeros(len(scales)))

    @property
    def s(self) -> float:
        """Exponent of the block sizes."""
        return 1.0 if math.isinf(self.q) else self.q / (self.q - 1.0)

    @property
    def fixed(self) -> bool:
        """Whether the best weights do not depend on the blocks."""
        # Half of a plain sum of squares: the penalty is its own touching quadratic.
        return self.q == 2.0 and not np.any(self.offsets)

    @property
    def sharp(self) -> bool:
        """Whether weights may be zero at the optimum, or nearly so."""
        return self.q > _SHARP_EXPONENT or bool(np.any(self.offsets))

    def sizes(self, weights: np.ndarray, energies: np.ndarray) -> np.ndarray:
        """Return the scaled sizes of the blocks ``w_m = weights_m * theta_m``."""
        return np.asarray(weights * np.sqrt(np.maximum(energies, 0.0) * self.scales))

    def value(self, sizes: np.ndarray) -> float:
        """Return the penalty of blocks of scaled sizes (:eq:`kernel-penalty`)."""
        size = _compute_norm(sizes, self.s)
        return 0.5 * size * size + float(np.sum(self.offsets * sizes))

    def excess(self, energies: np.ndarray) -> np.ndarray:
        r"""Return the excess of the scaled ``|theta_m|`` over the offsets.

        It is the :math:`\nu` of :eq:`kernel-conjugate`.
        """
        # Energies that are zero up to rounding may be negative.
        roots = np.sqrt(np.maximum(energies, 0.0) / self.scales)
        return np.asarray(np.maximum(roots - self.offsets, 0.0))

    def conjugate(self, energies: np.ndarray) -> float:
        """Return the conjugate, given the squares ``|theta_m|^2`` (:eq:`kernel-conjugate`)."""
        size = _compute_norm(self.excess(energies), self.q)
        return 0.5 * size * size

    def link(self, energies: np.ndarray) -> np.ndarray:
        """Return weights whose blocks ``weights_m * theta_m`` attain the conjugate.

        These are the weights of :eq:`kernel-link`.
        """
        excess = self.excess(energies)
        size = _compute_norm(excess, self.q)
        if not size > 0.0:
            return np.zeros_like(excess)
        if math.isinf(self.q):
            # The limit of the powers: all weight on the largest, shared equally between ties.
            shares = np.where(excess >= size, 1.0, 0.0)
            shares /= np.sum(shares)
        else:
            shares = (excess / size) ** (self.q - 1.0)  # of ratios, as powers of sizes overflow
        roots = np.sqrt(np.maximum(energies, 0.0) * self.scales)
        return np.asarray(
            np.divide(size * shares, roots, out=np.zeros_like(shares), where=roots > 0.0)
        )

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Return the weights of the quadratic penalty that touches this one at some sizes.

        The quadratic penalty is the sum of ``|w_m|^2 / (2 weights_m)`` and a constant, and nowhere
        smaller than this one (:eq:`touching-weights`).
        """
        size = _compute_norm(sizes, self.s)
        if not size > 0.0:
            return np.zeros_like(sizes)
        inside = np.maximum(sizes, LEAST_SIZE * size)
        slope = size * (inside / size) ** (self.s - 1.0) + self.offsets
        return np.asarray(inside / (slope * self.scales))

    def normalize(self, weights: np.ndarray) -> np.ndarray:
        """Return weights scaled to their norm at the optimum; with offsets they stay as they are.

        Examples
        --------
        >>> KernelPenalty.of_weights(2.0, np.ones(2)).normalize(np.array([3.0, 4.0]))
        array([0.6, 0.8])
        """
        if np.any(self.offsets):  # the norm at the optimum is not known
            return weights
        # The touching weights have this norm one, which steps beyond them and pruning must restore.
        p = 1.0 if math.isinf(self.q) else math.inf if self.q == 2.0 else self.q / (self.q - 2.0)
        return np.asarray(weights / _compute_norm(weights * self.scales, p))


def _compute_norm(values: np.ndarray, p: float) -> float:
    """Return the ``p``-norm of values that are not negative, without overflow of powers."""
    largest = float(np.max(values, initial=0.0))
    if not largest > 0.0 or math.isinf(p):
        return largest
    return largest * math.pow(float(np.sum((values / largest) ** p)), 1.0 / p)

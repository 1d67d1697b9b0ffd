"""Constants of a set of kernels that the rates of greedy learning depend on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

# Directions of a kernel below this part of its largest eigenvalue are taken for rounding.
_ZERO_EIGENVALUE = 1e-12


@dataclass(frozen=True)
class KernelGeometry:
    r"""Eigenvalues and angles of kernel matrices, with :math:`\hat K_j = K_j / n`.

    Attributes
    ----------
    correlation : float
        :math:`\delta`, the largest cosine between the spans of two kernels
        (:eq:`kernel-correlation`).
    smallest : float
        :math:`\sigma_{\min}^+`, the smallest eigenvalue of a :math:`\hat K_j` that is not zero.
    gamma : tuple of two floats
        Bounds from below and above of :math:`\gamma`, the smallest number with :math:`\sum_j
        \|a_j\| \le \gamma \|\sum_j \hat K_j a_j\|` for all :math:`a_j` in the span of
        :math:`K_j` (:eq:`gamma-bound`). Infinite if the kernels together have more directions than
        there are rows, or share one.
    ranks : tuple of int
        How many directions each kernel has.
    largest : float
        The largest eigenvalue of a :math:`\hat K_j`.
    """

    correlation: float
    smallest: float
    gamma: tuple[float, float]
    ranks: tuple[int, ...]
    largest: float

    @property
    def rate(self) -> float:
        r"""The factor :math:`1 - \tau` of Algorithm 2, with :math:`\tau = 1 / (8 \gamma^2)`.

        In each step the loss above the best of these kernels falls at least by this factor
        (:eq:`geometric-rate`). If eigenvalues exceed one, :math:`\tau` is divided by the square of
        the largest.
        """
        scale = self.gamma[1] * max(1.0, self.largest)
        return 1.0 - 1.0 / (8.0 * scale**2) if math.isfinite(scale) else 1.0


def kernel_geometry(factors: Sequence[np.ndarray]) -> KernelGeometry:
    r"""Return eigenvalues and angles of kernels, given factors :math:`K_j = \Phi_j \Phi_j^\top`.

    Parameters
    ----------
    factors : list of array of shape (n_samples, rank)
        One per kernel.

    Examples
    --------
    >>> import numpy as np
    >>> apart = kernel_geometry([np.eye(4)[:, :2], np.eye(4)[:, 2:]])
    >>> apart.correlation, apart.gamma[0]
    (0.0, 4.0)
    """
    if len(factors) == 0:
        raise ValueError("there are no kernels; give at least one factor.")
    spans, sizes = [], []
    for number, phi in enumerate(map(_check_factor, factors)):
        if len(phi) != len(factors[0]):
            raise ValueError(
                f"factor {number} has {len(phi)} rows, but the first has {len(factors[0])}; all "
                "must be of the same samples."
            )
        vectors, roots, _ = np.linalg.svd(phi, full_matrices=False)
        values = roots**2 / len(phi)
        kept = values > _ZERO_EIGENVALUE * max(float(values[0]), 0.0)
        spans.append(vectors[:, kept])
        sizes.append(values[kept])
    correlation = max((_cosine(one, other) for one, other in combinations(spans, 2)), default=0.0)
    ranks = tuple(len(values) for values in sizes)
    smallest = min((float(values[-1]) for values in sizes if len(values)), default=0.0)
    largest = max((float(values[0]) for values in sizes if len(values)), default=0.0)
    return KernelGeometry(correlation, smallest, _gamma(spans, sizes), ranks, largest)


def _check_factor(factor: np.ndarray) -> np.ndarray:
    phi = np.asarray(factor, dtype=np.float64)
    if phi.ndim != 2 or 0 in phi.shape or not np.all(np.isfinite(phi)):
        raise ValueError(
            f"a factor has shape {phi.shape}, or entries that are not finite; give finite numbers, "
            "one row per sample and at least one column."
        )
    return phi


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest cosine between two spans (:eq:`kernel-correlation`)."""
    if one.shape[1] == 0 or other.shape[1] == 0:
        return 0.0
    return min(1.0, float(np.linalg.norm(one.T @ other, 2)))


def _gamma(spans: list[np.ndarray], sizes: list[np.ndarray]) -> tuple[float, float]:
    r"""Return bounds of :math:`\gamma` from below and above (:eq:`measured-rate`).

    ``spans`` are orthonormal bases of the kernels, and ``sizes`` the eigenvalues that belong to
    their columns.
    """
    together = np.concatenate(
        [span * values for span, values in zip(spans, sizes, strict=True)], axis=1
    )
    # More directions than rows are linearly dependent: some of their combinations vanish, and no
    # finite gamma bounds the parts by the whole.
    if together.shape[1] == 0 or together.shape[1] > together.shape[0]:
        return math.inf, math.inf
    values = np.linalg.svd(together, compute_uv=False)
    least = float(values[-1])
    # The smallest singular value is known to a few rounding errors of the largest. Below that it
    # may be zero, and a bound computed from it would be noise.
    if not least > 64.0 * np.finfo(np.float64).eps * float(values[0]):
        return math.inf, math.inf
    return 1.0 / least, math.sqrt(len(spans)) / least

"""Compiled loops of the soft-max losses. The tests compare each with plain NumPy."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY

_SAMPLES_PER_HESSIAN_BLOCK = 1024  # whose sums stay in the nearest cache


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
def curve(direction, shares, inverse):  # type: ignore[no-untyped-def]
    """Overwrite ``direction`` with the Hessian times it; arrays lie (output, sample).

    ``shares`` are the probabilities times the weights, ``inverse`` is one over the weights.
    """
    n_outputs, n_samples = direction.shape
    buffer = np.empty(_SAMPLES_PER_HESSIAN_BLOCK, direction.dtype)
    for start in range(0, n_samples, _SAMPLES_PER_HESSIAN_BLOCK):
        stop = min(n_samples, start + _SAMPLES_PER_HESSIAN_BLOCK)
        # The means of a block of samples are summed output by output, along the memory of the
        # arrays, and used while they are still in the cache.
        mean = buffer[: stop - start]
        mean[:] = 0.0
        for r in range(n_outputs):
            part, share = direction[r, start:stop], shares[r, start:stop]
            for i in range(part.shape[0]):
                mean[i] += part[i] * share[i]
        scale = inverse[start:stop]
        for i in range(mean.shape[0]):
            mean[i] *= scale[i]
        for r in range(n_outputs):
            part, share = direction[r, start:stop], shares[r, start:stop]
            for i in range(part.shape[0]):
                part[i] = share[i] * (part[i] - mean[i])

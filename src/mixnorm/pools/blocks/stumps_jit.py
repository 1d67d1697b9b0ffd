"""Compiled loops of stumps of tables of row blocks. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

from numba import njit

from mixnorm._compile import ENTRY


@njit(**ENTRY, cache=True, nogil=True)
def add_by_code(codes, modes, starts, residual, sums):  # type: ignore[no-untyped-def]
    """Add the residuals of the rows of each code to ``sums``.

    Those of row ``j`` of ``codes`` go to ``sums[starts[j]:starts[j + 1]]``, except for the rows of
    the code ``modes[j]``: their sum is what is left of the total.
    """
    n_samples, n_outputs = residual.shape
    for j in range(len(codes)):
        first, mode = starts[j], modes[j]
        if starts[j + 1] - first < 2:
            continue
        for i in range(n_samples):
            code = codes[j, i]
            if code != mode:
                for k in range(n_outputs):
                    sums[first + code, k] += residual[i, k]

"""The nearest kernel matrix to a matrix that is not positive semi-definite."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import MatrixLike
from mixnorm.kernels.grams.check import check_finite
from mixnorm.kernels.grams.stack import KernelStack


def clip_negative(K: MatrixLike | KernelStack) -> Any:
    """Return the nearest positive semi-definite matrix, in the Frobenius norm.

    This is the symmetric part with its negative eigenvalues set to zero.

    Parameters
    ----------
    K : array of shape (n, n) or (n_kernels, n, n), list of matrices, or KernelStack
        Similarities that are not a kernel, or a kernel that rounding made indefinite.

    Returns
    -------
    array, list or KernelStack
        The same kind of object; float32 stays float32.

    References
    ----------
    N. Higham, "Computing a nearest symmetric positive semidefinite matrix", Linear Algebra and its
    Applications 103, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> clip_negative(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    stack = KernelStack(K)
    stack.check_square("clip_negative")
    for m, matrix in enumerate(stack.matrices):
        check_finite(matrix, m)
    clipped = [_clip(matrix) for matrix in stack.matrices]
    if isinstance(K, KernelStack):
        return KernelStack._of(clipped, True)
    if not isinstance(K, np.ndarray):
        return clipped
    return clipped[0] if K.ndim == 2 else np.stack(clipped)


def _clip(matrix: np.ndarray) -> np.ndarray:
    # In double precision: the eigenvalues that matter are those near zero, whose signs float32
    # would lose. Halves are taken before the sum, because the sum of two large entries could
    # overflow.
    wide = matrix.astype(np.float64)
    wide = 0.5 * wide + 0.5 * wide.T
    values, vectors = np.linalg.eigh(wide)
    if len(values) == 0 or values[0] >= 0.0:
        return wide.astype(matrix.dtype)
    # A matrix times its own transpose is symmetric to the last bit, and has no negative eigenvalue
    # but for the rounding of one product.
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(roots @ roots.T, dtype=matrix.dtype)

"""The matrix for a dense or a sparse table."""

from __future__ import annotations

from typing import Any

from mixnorm._array import MatrixLike, is_sparse
from mixnorm.data.dense import DenseMatrix
from mixnorm.data.sparse import SparseMatrix

#: Any matrix: both kinds have the same methods.
Matrix = DenseMatrix | SparseMatrix


def as_matrix(X: Any, dtype: Any) -> Matrix:
    """Return ``X`` as a matrix whose products are in ``dtype``.

    Parameters
    ----------
    X : array of any array namespace, memory map or sparse matrix
        The table, of shape ``(n_samples, n_features)``. Sparse matrices are kept by columns.
    dtype : dtype
        A dtype of floats; entries of other dtypes are converted as they are read.

    Examples
    --------
    >>> import numpy as np
    >>> as_matrix(np.eye(3, dtype=int), np.dtype(float)).gradient(np.ones((3, 1))).ravel()
    array([1., 1., 1.])
    """
    return SparseMatrix(X, dtype) if is_sparse(X) else DenseMatrix(X, dtype)


def is_list_of_tables(X: MatrixLike) -> bool:
    """Tell whether ``X`` is a list of tables, the rows of one task each."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and getattr(X[0], "ndim", 1) == 2

"""Rows of groups of columns: as kernels compare them, and packed as a model file holds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixnorm._array import MatrixLike, is_sparse
from mixnorm.kernels.functions.kernels import check_not_negative
from mixnorm.kernels.functions.metrics import Rows, as_rows

#: Dense rows, or the parts of a CSR matrix: data, indices, indptr and shape.
Packed = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]


def rows_of(table: MatrixLike, what: str, strict: bool) -> Rows:
    """Return the rows of a table for kernels; a single column becomes a table of one column.

    With ``strict`` they must be numbers. Kernels that are functions may also take other values.
    """
    if getattr(table, "ndim", 2) == 1:
        table = np.asarray(table).reshape(-1, 1)
    try:
        return as_rows(table, what)
    except ValueError:
        # Kernels that are functions may compare texts; metrics need numbers.
        if strict or is_sparse(table):
            raise
        return np.asarray(table)


def rows_like(known: Rows, table: MatrixLike, metrics: Sequence[str | None]) -> Rows:
    """Return new rows for kernels of these metrics, whose training rows are ``known``."""
    rows = convert_like(rows_of(table, "X", any(metrics)), known)
    if rows.shape[1] != known.shape[1]:
        raise ValueError(
            f"the preprocess transformer makes {rows.shape[1]} columns of these rows, but "
            f"made {known.shape[1]} of the training rows; it must always make the same."
        )
    # The metric divides by sums of entries, which could be zero or negative.
    if "chi2" in metrics:
        check_not_negative(rows, "X")
    return rows


def convert_like(rows: Rows, pattern: Rows) -> Rows:
    """Return rows, made sparse if the pattern is sparse, and dense if it is dense."""
    if is_sparse(rows) == is_sparse(pattern):
        return rows
    if not isinstance(rows, np.ndarray):
        return rows.toarray()
    from scipy.sparse import csr_array

    return csr_array(rows)


def append_rows(rows: Rows, others: Rows) -> Rows:
    """Return rows with others below them, sparse or dense like the first."""
    if isinstance(rows, np.ndarray):
        return np.concatenate([rows, convert_like(others, rows)])
    from scipy.sparse import csr_array, vstack

    return vstack([rows, csr_array(others)], format="csr")


def pack(rows: Rows) -> Packed:
    """Return a copy of rows as plain arrays."""
    if isinstance(rows, np.ndarray):
        return np.array(rows)
    return (rows.data.copy(), rows.indices.copy(), rows.indptr.copy(), rows.shape)


def unpack(packed: Packed) -> Rows:
    """Return the rows that were packed, without a copy."""
    if isinstance(packed, np.ndarray):
        return packed
    from scipy.sparse import csr_array

    data, indices, indptr, shape = packed
    return csr_array((data, indices, indptr), shape=shape, copy=False)


def shape_of(packed: Packed) -> tuple[int, int]:
    """Return the shape of packed rows."""
    n_rows, n_columns = packed.shape if isinstance(packed, np.ndarray) else packed[3]
    return int(n_rows), int(n_columns)


def check_packed(packed: object, what: str) -> None:
    """Raise a ValueError unless :func:`pack` can have made this; files may hold anything."""
    if isinstance(packed, np.ndarray):
        if packed.ndim != 2:
            raise ValueError(f"{what} has {packed.ndim} axes instead of 2")
        return
    if not isinstance(packed, tuple) or len(packed) != 4:
        raise ValueError(f"{what} is neither an array nor the parts of a sparse matrix")
    data, indices, indptr, shape = packed
    for part, kind in ((data, "f"), (indices, "i"), (indptr, "i")):
        if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype.kind != kind:
            raise ValueError(f"{what} has a damaged part of a sparse matrix")
    if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"{what} has the shape {shape!r}")
    rows = unpack((data, indices, indptr, shape))
    if not isinstance(rows, np.ndarray):
        # Index arrays of a file could point outside of the data, where SciPy's compiled loops would
        # read.
        rows.check_format(full_check=True)

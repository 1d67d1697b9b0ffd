"""Rows of groups of columns: as kernels compare them, and as a model file holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.kernels.functions.metrics import as_rows

#: Dense rows, or the parts of a CSR matrix: data, indices, indptr and shape.
Packed = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]


def rows_of(table: Any, what: str, strict: bool) -> Any:
    """Return the rows of a table for kernels; one column alone becomes a table of one.

    With ``strict`` they must be numbers. Kernels that are functions may know what to do with
    others.
    """
    if getattr(table, "ndim", 2) == 1:
        table = np.asarray(table).reshape(-1, 1)
    try:
        return as_rows(table, what)
    except ValueError:
        if strict or is_sparse(table):
            raise
        return np.asarray(table)


def like(rows: Any, pattern: Any) -> Any:
    """Return rows sparse or dense as those they will be compared with."""
    sparse = is_sparse(rows)
    if sparse == is_sparse(pattern):
        return rows
    if sparse:
        return rows.toarray()
    from scipy.sparse import csr_array

    return csr_array(rows)


def below(rows: Any, others: Any) -> Any:
    """Return other rows below rows, sparse or dense as these are."""
    others = like(others, rows)
    if not is_sparse(rows):
        return np.concatenate([rows, others])
    from scipy.sparse import vstack

    return vstack([rows, others], format="csr")


def pack(rows: Any) -> Packed:
    """Return rows as plain arrays that are nobody else's."""
    if not is_sparse(rows):
        return np.array(rows)
    return (rows.data.copy(), rows.indices.copy(), rows.indptr.copy(), rows.shape)


def unpack(packed: Packed) -> Any:
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


def check_packed(packed: Any, what: str) -> None:
    """Raise a ValueError unless this is what :func:`pack` makes; files may hold anything."""
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
    unpack(packed).check_format(full_check=True)

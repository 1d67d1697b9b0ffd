"""Compiled passes over kernel matrices: weighted sums, copies and quadratic forms."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY


# Of fastmath only "contract" is allowed, a fused multiply and add. Every entry keeps the order of
# its sum, so that a sum of kernels does not depend on how rows are cut into blocks.
@njit(**ENTRY, cache=True, error_model="numpy", fastmath={"contract"})
def add_block(total: np.ndarray, matrix: np.ndarray, weight: float) -> None:
    """Add a matrix times a weight, in the dtype of the sum."""
    # A factor of float64 would turn every product with a float32 matrix into float64.
    factor = total.dtype.type(weight)
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] += factor * matrix[i, j]


@njit(**ENTRY, cache=True, error_model="numpy", fastmath={"contract"})
def add_columns(total: np.ndarray, matrix: np.ndarray, columns: np.ndarray, weight: float) -> None:
    """Add some columns of a matrix times a weight, in the dtype of the sum."""
    factor = total.dtype.type(weight)
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] += factor * matrix[i, columns[j]]


@njit(**ENTRY, cache=True, error_model="numpy")
def mirror(total: np.ndarray, begin: int, stop: int) -> None:
    """Copy what is below the diagonal in some rows to above it, tile by tile."""
    # Writing along a column touches a new cache line for every entry. Within a tile the lines are
    # still in the cache when their next entry comes.
    tile = 64
    for top in range(begin, stop, tile):
        end = min(top + tile, stop)
        for left in range(0, end, tile):
            for i in range(top, end):
                for j in range(left, min(left + tile, i)):
                    total[j, i] = total[i, j]


@njit(**ENTRY, cache=True, error_model="numpy")
def take_half(
    matrix: np.ndarray, index: np.ndarray, out: np.ndarray, begin: int, stop: int
) -> None:
    """Copy some rows and columns of a symmetric matrix; ``index`` is in increasing order.

    Writes the rows of ``out`` from ``begin`` to ``stop`` up to the diagonal, and their mirror
    images.
    """
    for i in range(begin, stop):
        for j in range(i + 1):
            out[i, j] = matrix[index[i], index[j]]
    mirror(out, begin, stop)


# Here the sum may be reordered: without "reassoc" it is one chain of additions, which no processor
# can do several at a time.
@njit(**ENTRY, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def energy_of_rows(matrix: np.ndarray, rows: np.ndarray, products: np.ndarray) -> float:
    """Return the sum of ``matrix[i, j] * products[i, j]`` over some rows, and by symmetry columns.

    What lies below the diagonal counts twice, and what lies above it is not read.
    """
    total = 0.0
    for place in range(rows.shape[0]):
        i = rows[place]
        part = 0.0
        for j in range(i):
            part += matrix[i, j] * products[place, j]
        total += 2.0 * part + matrix[i, i] * products[place, i]
    return total

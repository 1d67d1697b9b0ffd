"""Compiled loops over kernel matrices. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER

# Rows of a tile, which stays with its mirror image in the first-level cache.
TILE = 64


@njit(**ENTRY, cache=True, error_model="numpy", fastmath={"contract"}, nogil=True)
def survey(K, roots, begin, stop):  # type: ignore[no-untyped-def]
    """Look once at every entry of some tiles of a square matrix.

    The tiles are those on the diagonal from row ``begin``, a multiple of their width, to ``stop``,
    and all to the right of these and below them.

    Returns the largest magnitude, the largest difference of an entry from its mirror image, the
    largest excess of a magnitude over ``roots[i] * roots[j]``, and zero; the last is NaN if any
    entry is not finite. The maxima are kept by column of a tile, so that the loop needs no order
    of comparisons and several entries are done at once.
    """
    n = len(K)
    mirrored = np.empty((TILE, TILE), dtype=K.dtype)
    largest, uneven = np.zeros(TILE, dtype=K.dtype), np.zeros(TILE, dtype=K.dtype)
    excess, nothing = np.zeros(TILE, dtype=K.dtype), np.zeros(TILE, dtype=K.dtype)
    for top in range(begin, stop, TILE):
        height = min(TILE, n - top)
        for left in range(top, n, TILE):
            width = min(TILE, n - left)
            _mirror(K[left : left + width, top : top + height], mirrored)
            for i in range(height):
                row, other = K[top + i, left : left + width], mirrored[i]
                # One pass finds all that the checks need: the time is that of reading the matrix.
                root, others = roots[top + i], roots[left : left + width]
                for j in range(width):
                    size, gap = abs(row[j]), abs(row[j] - other[j])
                    over = size - root * others[j]
                    nothing[j] += gap - gap  # NaN for what is not finite on either side
                    largest[j] = size if size > largest[j] else largest[j]
                    uneven[j] = gap if gap > uneven[j] else uneven[j]
                    excess[j] = over if over > excess[j] else excess[j]
    return largest.max(), uneven.max(), excess.max(), nothing.sum()


@njit(**INNER, cache=True, error_model="numpy", nogil=True)
def _mirror(tile, mirrored):  # type: ignore[no-untyped-def]
    """Write the transpose of a tile into ``mirrored``.

    Eight rows are read at once, so that eight neighbours are written at once.
    """
    height, width = tile.shape
    whole = height // 8 * 8
    for i in range(0, whole, 8):
        a, b, c, d = tile[i], tile[i + 1], tile[i + 2], tile[i + 3]
        e, f, g, h = tile[i + 4], tile[i + 5], tile[i + 6], tile[i + 7]
        for j in range(width):
            row = mirrored[j, i : i + 8]
            row[0], row[1], row[2], row[3] = a[j], b[j], c[j], d[j]
            row[4], row[5], row[6], row[7] = e[j], f[j], g[j], h[j]
    for i in range(whole, height):
        for j in range(width):
            mirrored[j, i] = tile[i, j]

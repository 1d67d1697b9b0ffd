"""The compiled loop for deformed images. Its twin for other arrays is in ``deform.py``."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY


@njit(**ENTRY, cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def warp(padded, maps, waves, rows, columns, out, begin, stop):  # type: ignore[no-untyped-def]
    """Write into ``out`` the values of ``padded`` images at the places of the pixels of ``out``.

    Images are those from ``begin`` to ``stop``.

    The place of pixel ``(y, x)`` of image ``i`` is ``maps[i] @ (y, x, 1)`` plus the displacement
    ``(rows @ waves[i] @ columns)[:, y, x]``, counted from the corner of the frame of zeros, one
    pixel wide, around the image. All arrays have one floating dtype.
    """
    height, width = out.shape[1:]
    n_rows, n_columns = len(rows[0]), len(columns)
    line = np.arange(width).astype(out.dtype)
    for i in range(begin, stop):
        # rows @ (waves @ columns): the inner product is shared by all rows of the image.
        half = np.zeros((2, n_rows, width), out.dtype)
        for d in range(2):
            for r in range(n_rows):
                for c in range(n_columns):
                    wave = waves[i, d, r, c]
                    for x in range(width):
                        half[d, r, x] += wave * columns[c, x]
        places = np.empty((2, width), out.dtype)
        for y in range(height):
            for d in range(2):
                start = maps[i, d, 0] * line.dtype.type(y) + maps[i, d, 2]
                for x in range(width):
                    places[d, x] = start + maps[i, d, 1] * line[x]
                for r in range(n_rows):
                    amount = rows[y, r]
                    for x in range(width):
                        places[d, x] += amount * half[d, r, x]
            for x in range(width):
                # Values beyond the frame are zero, as on the frame.
                down = min(max(places[0, x], 0.0), height + 1.0)
                right = min(max(places[1, x], 0.0), width + 1.0)
                j, k = min(int(down), height), min(int(right), width)
                down, right = down - j, right - k
                upper = (1.0 - right) * padded[i, j, k] + right * padded[i, j, k + 1]
                lower = (1.0 - right) * padded[i, j + 1, k] + right * padded[i, j + 1, k + 1]
                out[i, y, x] = (1.0 - down) * upper + down * lower

"""Compiled loops of the patches pool. Each has a plain NumPy twin in the tests.

A mask is a product of a weight by row and one by column, zero outside a window. Responses below
zero count as zero, as outside the window, so that the largest one over a window is the largest over
its rows of the row's weight times the largest of the row (:eq:`patch-rows`). Images are processed
side by side, a lane each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER

#: Images that are processed side by side; loops over 32 or fewer are not vectorised.
LANES = 64

#: Atoms that are processed together.
ATOMS = 128
# Images whose residuals fit in the cache.
_IMAGES_IN_CACHE = 1024

_PATCH_MATH = {"nnan", "nsz", "contract", "reassoc"}


@njit(**ENTRY, cache=True, nogil=True, fastmath=_PATCH_MATH)
def respond(images, width, templates, size, down, across, steps, out, begin, stop):  # type: ignore[no-untyped-def]
    """Write the responses of all templates under all masks into ``out``, an atom per row.

    Parameters
    ----------
    images : array of shape (n_images, height * width)
        The images, in any dtype.
    width : int
        Columns of an image.
    templates : array of shape (n_templates, size * size)
        The templates.
    size : int
        Rows and columns of a template.
    down, across : arrays of shape (n_down, n_rows) and (n_across, n_columns)
        The weights of the masks by row and by column of positions.
    steps : array of shape (n_atoms,) or (0,)
        If there are any: responses are divided by them, rounded and cut at 255.
    out : array of shape (n_templates * n_down * n_across, n_images)
        The responses; atoms are numbered by template, then by row and column of masks.
    begin, stop : int
        The range of chunks of images; each chunk has ``LANES`` images, except the last one.
    """
    n_down, n_rows = down.shape
    n_across, n_columns = across.shape
    coded = len(steps) > 0
    for chunk in range(begin, stop):
        block, first, count = _load_lanes(images, chunk, templates)
        blank = _find_blanks(block, width, size, n_rows, n_columns)
        response = np.empty(LANES, templates.dtype)
        row_best = np.empty((n_across, LANES), templates.dtype)
        best = np.empty((n_down * n_across, LANES), templates.dtype)
        for t in range(len(templates)):
            best[:] = 0.0
            for y in range(n_rows):
                row_best[:] = 0.0
                for x in range(n_columns):
                    if blank[y, x]:  # zero in all lanes: as on the border of digits
                        continue
                    _convolve(block, y * width + x, width, templates[t], size, response)
                    for j in range(n_across):
                        if across[j, x] > 0.0:
                            _keep_larger(row_best[j], across[j, x], response)
                # The largest over a row is shared by all masks above each other (:eq:`patch-rows`).
                for k in range(n_down):
                    if down[k, y] > 0.0:
                        for j in range(n_across):
                            _keep_larger(best[k * n_across + j], down[k, y], row_best[j])
            for mask in range(len(best)):
                atom = t * len(best) + mask
                for i in range(count):
                    value = best[mask, i]
                    # A half is added, as the conversion to a byte cuts (:eq:`patch-rounding`).
                    out[atom, first + i] = min(value / steps[atom] + 0.5, 255.0) if coded else value


@njit(**ENTRY, cache=True, nogil=True, fastmath=_PATCH_MATH)
def respond_few(images, width, templates, starts, sizes, windows, down, across, out, begin, stop):  # type: ignore[no-untyped-def]
    """Write the responses of chosen atoms into ``out``, an image per row.

    Images are those of the chunks of ``LANES`` from ``begin`` to ``stop``.

    Each atom has its template, as ``sizes[a] ** 2`` taps from ``starts[a]`` on, and its window:
    first row, end of rows, first column, end of columns of positions. Its weights are
    ``down[a]`` and ``across[a]``, from the window's first row and column on. Only positions in the
    window are visited.
    """
    for chunk in range(begin, stop):
        block, first, count = _load_lanes(images, chunk, templates)
        response = np.empty(LANES, templates.dtype)
        row_best = np.empty(LANES, templates.dtype)
        best = np.empty(LANES, templates.dtype)
        for atom in range(len(starts)):
            size = sizes[atom]
            taps = templates[starts[atom] : starts[atom] + size * size]
            top, left = windows[atom, 0], windows[atom, 2]
            best[:] = 0.0
            for y in range(top, windows[atom, 1]):
                row_best[:] = 0.0
                for x in range(left, windows[atom, 3]):
                    _convolve(block, y * width + x, width, taps, size, response)
                    _keep_larger(row_best, across[atom, x - left], response)
                _keep_larger(best, down[atom, y - top], row_best)
            for i in range(count):
                out[first + i, atom] = best[i]


@njit(**ENTRY, cache=True, nogil=True, fastmath=_PATCH_MATH)
def locate(images, width, taps, size, window, down, across, best, places, begin, stop):  # type: ignore[no-untyped-def]
    """Write the first pixel of the patch to which an atom responds most, for each image.

    Images are those of the chunks of ``LANES`` from ``begin`` to ``stop``. ``best`` gets a row of
    responses, and a row of the mask's weights there; both are zero where no response is positive.
    """
    for chunk in range(begin, stop):
        block, first, count = _load_lanes(images, chunk, taps)
        response = np.empty(LANES, taps.dtype)
        found = np.zeros((2, LANES), taps.dtype)
        at = np.zeros(LANES, np.int64)
        for y in range(window[0], window[1]):
            for x in range(window[2], window[3]):
                corner = y * width + x
                _convolve(block, corner, width, taps, size, response)
                weight = down[y - window[0]] * across[x - window[2]]
                for lane in range(LANES):
                    value = weight * response[lane]
                    # Selections in place of a branch, so that the lanes run side by side.
                    larger = value > found[0, lane]
                    found[0, lane] = value if larger else found[0, lane]
                    found[1, lane] = weight if larger else found[1, lane]
                    at[lane] = corner if larger else at[lane]
        for i in range(count):
            best[0, first + i] = found[0, i]
            best[1, first + i] = found[1, i]
            places[first + i] = at[i]


@njit(nogil=True, inline="always")
def _load_lanes(images, chunk, like):  # type: ignore[no-untyped-def]
    """Return a chunk of images by pixel and lane, the number of the first one, and their count.

    Zeros pad the lanes of the last chunk.
    """
    first = chunk * LANES
    count = min(LANES, len(images) - first)
    block = np.zeros((images.shape[1], LANES), like.dtype)
    for i in range(count):
        for pixel in range(images.shape[1]):
            block[pixel, i] = images[first + i, pixel]
    return block, first, count


@njit(nogil=True, inline="always")
def _find_blanks(block, width, size, n_rows, n_columns):  # type: ignore[no-untyped-def]
    """Tell at which positions the patches of all lanes are zero."""
    blank = np.ones((n_rows, n_columns), np.bool_)
    for pixel in range(len(block)):
        if np.any(block[pixel]):
            y, x = pixel // width, pixel % width
            blank[max(0, y - size + 1) : y + 1, max(0, x - size + 1) : x + 1] = False
    return blank


@njit(nogil=True, fastmath=_PATCH_MATH, inline="always")
def _keep_larger(best, weight, values):  # type: ignore[no-untyped-def]
    for lane in range(LANES):
        best[lane] = max(best[lane], weight * values[lane])


@njit(nogil=True, fastmath=_PATCH_MATH, inline="always")
def _convolve(block, corner, width, taps, size, response):  # type: ignore[no-untyped-def]
    """Write the products of one template with the patches of all lanes at ``corner``."""
    # Four taps at a time, then two, then one: each pass over the lanes reads and writes the
    # responses once, which costs more than the products.
    response[:] = 0.0
    for dy in range(size):
        k, pixel = dy * size, corner + dy * width
        dx = 0
        while dx + 4 <= size:  # dx grows
            a, b, c, d = taps[k + dx], taps[k + dx + 1], taps[k + dx + 2], taps[k + dx + 3]
            p = pixel + dx
            one, two, three, four = block[p], block[p + 1], block[p + 2], block[p + 3]
            for lane in range(LANES):
                response[lane] += a * one[lane] + b * two[lane] + c * three[lane] + d * four[lane]
            dx += 4
        if dx + 2 <= size:
            a, b = taps[k + dx], taps[k + dx + 1]
            one, two = block[pixel + dx], block[pixel + dx + 1]
            for lane in range(LANES):
                response[lane] += a * one[lane] + b * two[lane]
            dx += 2
        if dx < size:
            a, one = taps[k + dx], block[pixel + dx]
            for lane in range(LANES):
                response[lane] += a * one[lane]


@njit(**ENTRY, cache=True, nogil=True, fastmath=_PATCH_MATH)
def coded_gradient(codes, residual, gradient, begin, stop):  # type: ignore[no-untyped-def]
    """Write the products of rows of bytes with the rows of ``residual`` into ``gradient``.

    Rows are those of the groups of ``ATOMS`` from ``begin`` to ``stop``. Some images at a time are
    processed, whose residuals stay in the cache while all atoms of a group pass.
    """
    n_atoms, n_images = codes.shape
    n_outputs = len(residual)
    for part in range(begin, stop):
        first = part * ATOMS
        end = min(first + ATOMS, n_atoms)
        gradient[first:end] = 0.0
        room = np.empty(_IMAGES_IN_CACHE, residual.dtype)
        for start in range(0, n_images, _IMAGES_IN_CACHE):
            end_of_images = min(start + _IMAGES_IN_CACHE, n_images)
            values = room[: end_of_images - start]
            for atom in range(first, end):
                row = codes[atom, start:end_of_images]
                # Converted once for all outputs.
                for i in range(len(row)):
                    values[i] = row[i]
                for k in range(n_outputs):
                    gradient[atom, k] += _multiply(values, residual[k, start:end_of_images])


@njit(**INNER, nogil=True, fastmath=_PATCH_MATH)
def _multiply(values, others):  # type: ignore[no-untyped-def]
    total = values.dtype.type(0.0)
    for i in range(len(values)):
        total += values[i] * others[i]
    return total

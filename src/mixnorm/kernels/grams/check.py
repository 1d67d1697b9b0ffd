"""Checks that matrices can be kernels, with errors that name the first that cannot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import numpy as np
from numpy.typing import DTypeLike

from mixnorm._chunks import chunks
from mixnorm._threads import one_thread

# Rows of the principal block whose eigenvalues are checked.
# All eigenvalues of a matrix would take O(n^3) for each kernel. Every principal block of a positive
# semi-definite matrix is positive semi-definite, so a negative eigenvalue of one block is proof
# enough against the matrix; that a block passes is no proof for it.
_ROWS_OF_BLOCK = 128


def check_matrices(
    matrices: Sequence[np.ndarray], square: bool, labels: Sequence[object] | None = None
) -> None:
    """Raise a ValueError for the first matrix that cannot be a kernel.

    The error names it by its number, or by its label.
    """
    labels = range(len(matrices)) if labels is None else [repr(label) for label in labels]
    n_rows, n_columns = matrices[0].shape
    if 0 in (n_rows, n_columns):
        raise ValueError(
            f"the kernels have {n_rows} rows and {n_columns} columns; give at least one of each."
        )
    if square and n_rows != n_columns:
        raise ValueError(
            f"the kernels have {n_rows} rows and {n_columns} columns; kernels to learn from must "
            "be square, training rows against themselves."
        )
    rows = block_rows(n_rows)
    for label, matrix in zip(labels, matrices, strict=True):
        if square:
            _check_square(matrix, label, rows)
        else:
            check_finite(matrix, label)


def block_rows(n: int) -> np.ndarray:
    """Return the rows of the block, the same for all kernels and in every call."""
    if n <= _ROWS_OF_BLOCK:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, _ROWS_OF_BLOCK, replace=False))


def check_finite(matrix: np.ndarray, m: object) -> None:
    """Raise a ValueError if an entry is not finite."""
    # The sum of finite entries is finite, unless it overflows: then the entries decide.
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.all(np.isfinite(matrix)):
        _refuse_infinite(matrix, m)


def _refuse_infinite(matrix: np.ndarray, m: object) -> NoReturn:
    i, j = np.argwhere(~np.isfinite(matrix))[0]
    raise ValueError(
        f"kernel {m} has {matrix[i, j]} in row {i}, column {j}; all entries must be finite. Look "
        "for missing values in the data, or for a kernel that overflows."
    )


def _check_square(matrix: np.ndarray, m: object, rows: np.ndarray) -> None:
    """Check that the kernel of training rows is finite, symmetric and, in samples, positive."""
    from mixnorm.kernels.grams.survey_jit import TILE, survey

    diagonal = np.diagonal(matrix)
    roots = np.sqrt(np.maximum(diagonal, 0))
    # The transpose of a symmetric matrix is the same matrix, and may be the one in C order.
    laid = matrix.T if matrix.flags.f_contiguous else np.ascontiguousarray(matrix)
    found = [
        survey(laid, roots, TILE * part.start, min(TILE * part.stop, len(laid)))
        for part in chunks(-(-len(laid) // TILE), TILE * len(laid))
    ]
    largest, uneven, excess, nothing = (float(value) for value in np.max(found, axis=0))
    if nothing != 0.0:
        if not np.all(np.isfinite(matrix)):
            _refuse_infinite(matrix, m)
        uneven = largest  # all entries are finite, but the difference of two overflows
    # About a thousand rounding errors of float32. Of float64 much more is allowed, one rounding
    # error of float32, because stored matrices were often computed in single precision.
    allowed = 1e-4 if matrix.dtype == np.float32 else 1e-7
    if uneven > allowed * largest:
        raise ValueError(
            f"kernel {m} is not symmetric: an entry and its mirror image differ by {uneven:.3g}, "
            f"{uneven / largest:.1e} of the largest entry, where {allowed:g} is allowed. Check "
            "that rows and columns are the same samples in the same order, or use (K + K.T) / 2."
        )
    lowest = float(diagonal.min())
    if lowest < -allowed * largest:
        _refuse_negative(m, f"entry {lowest:.3g} on its diagonal in row {diagonal.argmin()}")
    # By Cauchy and Schwarz |K_ij| is at most the root of K_ii K_jj. A larger entry makes the
    # principal block of the two rows indefinite, wherever in the matrix it lies.
    if excess > allowed * largest:
        _refuse_negative(
            m, f"an entry larger by {excess:.3g} than the root of the product of the diagonal's"
        )
    _check_block(matrix[np.ix_(rows, rows)].astype(np.float64), m, matrix.dtype)


def _check_block(block: np.ndarray, m: object, dtype: DTypeLike) -> None:
    """Raise if a principal block has a negative eigenvalue that rounding cannot explain."""
    unit = max(0.0, float(np.max(np.diagonal(block)))) or 1.0  # large traces may overflow
    # Halves are taken before the sum, so that no entry overflows.
    block = 0.5 * (block / unit) + 0.5 * (block / unit).T
    trace = float(np.trace(block))
    allowed = (1e-5 if dtype == np.float32 else 1e-7) * trace
    shift = allowed + np.finfo(np.float64).tiny  # so that zeros pass
    with one_thread(), suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(block + shift * np.eye(len(block)))  # far cheaper than eigenvalues
        return
    least = float(np.linalg.eigvalsh(block)[0])
    if least < -allowed:
        of = f"{len(block)} of its rows" if len(block) == _ROWS_OF_BLOCK else "its rows"
        what = f"eigenvalue {least * unit:.3g} on {of}, {-least / trace:.1e} of their trace"
        _refuse_negative(m, what)


def _refuse_negative(m: object, what: str) -> NoReturn:
    raise ValueError(
        f"kernel {m} is not positive semi-definite: it has {what}. Repair it with "
        "mixnorm.kernels.clip_negative(K), or use another kernel."
    )

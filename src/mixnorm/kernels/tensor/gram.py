"""A tensor kernel on training rows: its Gram matrix, drawn features, or a factor of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mixnorm._chunks import row_blocks
from mixnorm.kernels.tensor.index_sets import multisets
from mixnorm.kernels.tensor.kernels import TensorKernel

# Entries of a Gram matrix that are computed at a time, which stay in the cache; and the least rows.
_ENTRIES_OF_GRAM, _LEAST_ROWS_OF_GRAM = 2**18, 16
# Shares of a kernel are known up to this error, and are lowered by it.
_ROUNDING_OF_MASS = 1e-14


@dataclass(frozen=True)
class DrawSettings:
    """How many monomials are drawn.

    Attributes
    ----------
    draws_per_feature, batches : int
        Monomials are drawn this often for each that may be kept, in this number of batches.
    enough_mass, least_gain : float
        The last batch is the first one after which the monomials hold this mean share of the
        kernel, or that adds less than ``least_gain`` to the share.
    """

    draws_per_feature: int = 40
    batches: int = 8
    enough_mass: float = 0.999
    least_gain: float = 1e-4


_DRAWS = DrawSettings()


def products_of(columns: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return the products of the rows of each multiset, column by column."""
    # An index array makes a copy, so that the products below do not change the columns.
    found = columns[sets[0]]
    for rows in sets[1:]:
        found *= columns[rows]
    return np.asarray(found)


def tensor_gram(kernel: TensorKernel, columns: np.ndarray, half: int) -> np.ndarray:
    """Return the kernel of all multisets of ``half`` rows; only its lower triangle is filled.

    For four arguments it is the matrix ``M`` of :eq:`tensor-pairs`.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel.
    columns : array of shape (n_rows, n_columns)
        The rows, as columns of the kernel.
    half : int
        Half the number of arguments.
    """
    _, Z, shift = _set_products(kernel, columns, half)
    gram = np.empty((len(Z), len(Z)))
    for rows in row_blocks(len(Z), max(_ENTRIES_OF_GRAM, _LEAST_ROWS_OF_GRAM * len(Z)), len(Z)):
        # The kernel of two multisets is symmetric: only the lower triangle is computed, and the
        # entries above it are never read.
        lower = slice(rows.stop)
        added = shift[rows, None] + shift[lower]
        with np.errstate(over="ignore", invalid="ignore"):
            gram[rows, lower] = kernel.of_products(Z[rows] @ Z[lower].T, added)
        # A sum is not finite if one entry is not, and costs one pass.
        if not math.isfinite(float(np.sum(gram[rows, lower]))):
            raise ValueError(
                f"{kernel!r} has values that are out of the range of floats on these rows; divide "
                "the columns of X by their size, or set standardize=True."
            )
    return gram


def _set_products(
    kernel: TensorKernel, columns: np.ndarray, half: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all multisets of ``half`` rows, their products, and the sums of their shifts."""
    sets = multisets(len(columns), half)
    with np.errstate(over="ignore"):
        Z = products_of(columns, sets)
    shifts = kernel.shifts(columns, 2 * half)
    return sets, Z, np.zeros(len(Z)) if shifts is None else shifts[sets].sum(axis=0)


# --- few features


@dataclass(frozen=True)
class DrawnFeatures:
    r"""Features that were drawn, and their share of the kernel.

    Attributes
    ----------
    exponents : array of shape (n_features, n_columns)
        The monomials.
    features : array of shape (n_features, n_rows)
        Their values at the training rows.
    mass : array of shape (n_rows,)
        Their share of :math:`K(x, \dots, x)`, for each row. It bounds the error of the kernel that
        they leave out (:eq:`tensor-hoelder`).
    """

    exponents: np.ndarray
    features: np.ndarray
    mass: np.ndarray


def draw_features(
    kernel: TensorKernel, columns: np.ndarray, q: float, most: int, rng: np.random.Generator
) -> DrawnFeatures:
    """Draw the monomials with the largest shares of a kernel on rows (:eq:`tensor-shares`).

    If there are no more than ``most``, all are returned. Otherwise rows take turns: each draws a
    monomial with its share of the kernel of that row alone as probability. Of all that were drawn,
    those with the largest shares are kept.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel.
    columns : array of shape (n_rows, n_columns)
        The rows, as columns of the kernel.
    q : float
        The exponent.
    most : int
        Most monomials to keep.
    rng : Generator
        The source of random numbers.
    """
    with np.errstate(over="ignore"):
        # A share is a power of a column over the kernel of its row, so powers must be in range.
        powers = np.abs(columns) ** q
    if not np.all(np.isfinite(powers)):
        raise ValueError(
            f"Columns are as large as {float(np.max(np.abs(columns))):.2g}, so that their powers "
            f"with q={q:g} overflow; divide the columns of X by their size, or lower q."
        )
    whole = np.maximum(kernel.diagonal(columns, q), 1e-300)
    n, width = columns.shape
    if kernel.finite and kernel.count(width) <= most:
        every = kernel.exponents(range(int(kernel.count(width))), width)
        return _keep_heaviest(kernel, columns, q, every, whole, most)
    made = DrawnFeatures(np.zeros((0, width), np.int16), np.zeros((0, n)), np.zeros(n))
    # Each row draws at least once per batch: a monomial that matters for few rows can be found.
    size = max(n, _DRAWS.draws_per_feature * most // _DRAWS.batches)
    for _ in range(_DRAWS.batches):
        # Rows take turns in random order; a batch that is no multiple of n favours none on average.
        rows = np.resize(rng.permutation(n), size)
        new = kernel.draw(columns[rows], q, rng)
        if np.max(new, initial=0) > np.iinfo(np.int16).max:
            raise ValueError(
                f"{kernel!r} has monomials of degree {int(np.max(new))} on these rows for q={q:g}; "
                "lower sigma or q, or divide the columns of X by their size."
            )
        before = float(np.mean(made.mass))
        fresh = _new_rows(made.exponents, new.astype(np.int16))
        made = _keep_heaviest(kernel, columns, q, fresh, whole, most, made)
        mass = float(np.mean(made.mass))
        if mass >= _DRAWS.enough_mass or mass < before + _DRAWS.least_gain:
            break
    return made


def _new_rows(known: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return the drawn rows that are not known, each once."""
    both = np.concatenate([known, drawn])
    _, first = np.unique(both, axis=0, return_index=True)
    # numpy.unique sorts; the order of the draws is restored, on which ties between shares depend.
    return np.asarray(both[np.sort(first[first >= len(known)])])


def _keep_heaviest(
    kernel: TensorKernel,
    columns: np.ndarray,
    q: float,
    exponents: np.ndarray,
    whole: np.ndarray,
    most: int,
    known: DrawnFeatures | None = None,
) -> DrawnFeatures:
    """Return the monomials with the largest shares of the kernel, known ones included."""
    features = kernel.features_with(columns, exponents, q)
    if known is not None:
        exponents = np.concatenate([known.exponents, exponents])
        features = np.concatenate([known.features, features])
    parts = np.abs(features) ** q / whole
    # A stable sort, so that ties go to the monomial that was known first, on every platform.
    order = np.argsort(-parts.sum(axis=1), kind="stable")[:most]
    # Lowered by its rounding error, so that 1 - mass is a true bound in :eq:`tensor-hoelder`.
    mass = np.clip(parts[order].sum(axis=0) - _ROUNDING_OF_MASS, 0.0, 1.0)
    return DrawnFeatures(exponents[order], features[order], mass)


# --- few pairs


@dataclass(frozen=True)
class PairFactor:
    """A factor of few columns of the kernel of pairs, for four arguments.

    Attributes
    ----------
    factor : array of shape (n_pairs, n_columns)
        The kernel of pairs is about this times its transpose.
    pivots : array of shape (n_columns,)
        The pairs at which it is exact, and the factor triangular.
    error : float
        The largest error of the kernel of two pairs, relative to its largest entry.
    mass : float
        The mean share of the kernel of a row with itself that the factor keeps.
    """

    factor: np.ndarray
    pivots: np.ndarray
    error: float
    mass: float


def pair_factor(
    kernel: TensorKernel, columns: np.ndarray, most: int, enough: float = 1e-10
) -> PairFactor:
    """Factor the kernel of pairs by Cholesky's method, the worst pair first.

    See :eq:`tensor-low-rank` for what such a factor keeps of the problem, and what it does not.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel.
    columns : array of shape (n_rows, n_columns)
        The rows, as columns of the kernel.
    most : int
        Most columns of the factor.
    enough : float
        The largest relative error at which it stops.
    """
    sets, Z, shift = _set_products(kernel, columns, 2)
    # The remainder of each pair: the diagonal of the kernel of pairs less that of the factor. No
    # entry off the diagonal exceeds the largest of these, because the remainder is positive
    # semi-definite.
    left = np.array(kernel.of_products((Z * Z).sum(axis=1), 2.0 * shift))
    largest, whole = float(np.max(left)), left
    if not math.isfinite(largest):
        raise ValueError(f"{kernel!r} is out of the range of floats on these rows; scale X.")
    factor = np.zeros((min(most, len(Z)), len(Z)))
    pivots: list[int] = []
    while len(pivots) < len(factor):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough * largest:
            break
        column = kernel.of_products(Z @ Z[pivot], shift + shift[pivot])
        done = factor[: len(pivots)]
        # The kernel's column less what the factor already explains of it.
        column = column - done[:, pivot] @ done
        column /= math.sqrt(left[pivot])
        factor[len(pivots)] = column
        # Rounding must not make a remainder negative, and a pivot must not be chosen again.
        left = np.maximum(left - column * column, 0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
    error = float(np.max(left)) / largest if largest > 0.0 else 0.0
    same = (sets[0] == sets[1]) & (whole > 0.0)
    mass = 1.0 - float(np.mean(left[same] / whole[same])) if np.any(same) else 1.0
    made = np.ascontiguousarray(factor[: len(pivots)].T)
    return PairFactor(made, np.array(pivots, int), error, mass)

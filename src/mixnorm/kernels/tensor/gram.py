"""What is computed once of a tensor kernel on training rows: its Gram matrix, or parts of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mixnorm.kernels.tensor.index_sets import multisets
from mixnorm.kernels.tensor.kernels import TensorKernel

# Entries that are computed at a time, which stay in the cache.
_BLOCK = 2**18
# Draws of a feature, for each that is kept at most, and how many make a batch.
_DRAWS, _BATCHES = 40, 8
# Mean part of the kernel that a batch must add, or it is the last.
_GAIN = 1e-4
# Parts of a kernel are known up to this, and are told so that they are no more than there is.
_ROUNDING = 1e-14


def products_of(columns: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return the products of the rows of each multiset, column by column."""
    found = columns[sets[0]]
    for rows in sets[1:]:
        found *= columns[rows]
    return np.asarray(found)


def tensor_gram(kernel: TensorKernel, columns: np.ndarray, half: int) -> np.ndarray:
    """Return the kernel of all multisets of ``half`` rows: its lower triangle alone is filled.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel.
    columns : array of shape (n_rows, n_columns)
        What its ``columns`` returned.
    half : int
        Half the number of arguments.
    """
    _, Z, shift = _set_products(kernel, columns, half)
    gram = np.empty((len(Z), len(Z)))
    step = max(16, _BLOCK // max(1, len(Z)))
    for start in range(0, len(Z), step):
        stop = min(len(Z), start + step)
        added = shift[start:stop, None] + shift[:stop]
        with np.errstate(over="ignore", invalid="ignore"):
            P = Z[start:stop] @ Z[:stop].T
            gram[start:stop, :stop] = kernel.of_products(P, added)
        if not math.isfinite(float(np.sum(gram[start:stop, :stop]))):
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
    r"""Features that were drawn, and what part of the kernel they hold.

    Attributes
    ----------
    exponents : array of shape (n_features, n_columns)
        The monomials.
    features : array of shape (n_features, n_rows)
        Their values at the training rows.
    mass : array of shape (n_rows,)
        What part of :math:`K(x, \dots, x)` they hold, for each row.
    """

    exponents: np.ndarray
    features: np.ndarray
    mass: np.ndarray


def drawn_features(
    kernel: TensorKernel,
    columns: np.ndarray,
    q: float,
    most: int,
    rng: np.random.Generator,
    enough: float = 0.999,
) -> DrawnFeatures:
    """Draw the monomials that hold most of a kernel on rows.

    Where there are no more than may be kept, all are. Else rows are taken in turn, and a monomial
    is drawn with the part that it has of the kernel of that row alone. Of all that were drawn
    those are kept that hold most.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel.
    columns : array of shape (n_rows, n_columns)
        What its ``columns`` returned.
    q : float
        The exponent.
    most : int
        Most monomials to keep.
    rng : Generator
        Random numbers.
    enough : float
        The mean part of the kernel with which no more are drawn.
    """
    with np.errstate(over="ignore"):
        powers = np.abs(columns) ** q
    if not np.all(np.isfinite(powers)):
        raise ValueError(
            f"Columns are as large as {float(np.max(np.abs(columns))):.2g}, too large for their "
            f"powers of q={q:g} to be numbers; divide the columns of X by their size, or lower q."
        )
    whole = np.maximum(kernel.diagonal(columns, q), 1e-300)
    if kernel.finite and kernel.count(columns.shape[1]) <= most:
        every = kernel.exponents(range(int(kernel.count(columns.shape[1]))), columns.shape[1])
        return _keep_heaviest(kernel, columns, q, every, whole, most)
    made = DrawnFeatures(
        np.zeros((0, columns.shape[1]), dtype=np.int16),
        np.zeros((0, len(columns))),
        np.zeros(len(columns)),
    )
    size = max(len(columns), _DRAWS * most // _BATCHES)
    for _ in range(_BATCHES):
        rows = np.resize(rng.permutation(len(columns)), size)
        new = kernel.draw(columns[rows], q, rng)
        if np.max(new, initial=0) > np.iinfo(np.int16).max:
            raise ValueError(
                f"{kernel!r} has monomials of degree {int(np.max(new))} on these rows for q={q:g}; "
                "lower sigma or q, or divide the columns of X by their size."
            )
        before = float(np.mean(made.mass))
        fresh = _new_rows(made.exponents, new.astype(np.int16))
        made = _keep_heaviest(kernel, columns, q, fresh, whole, most, made)
        if float(np.mean(made.mass)) >= enough or float(np.mean(made.mass)) < before + _GAIN:
            break
    return made


def _new_rows(known: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return the rows that are drawn and not known, each once."""
    both = np.concatenate([known, drawn])
    _, first = np.unique(both, axis=0, return_index=True)
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
    """Return those of known and of more monomials that hold most of the kernel."""
    features = kernel.listed(columns, exponents, q)
    if known is not None:
        exponents = np.concatenate([known.exponents, exponents])
        features = np.concatenate([known.features, features])
    parts = np.abs(features) ** q / whole
    order = np.argsort(-parts.sum(axis=1), kind="stable")[:most]
    mass = np.clip(parts[order].sum(axis=0) - _ROUNDING, 0.0, 1.0)
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
        What the kernel of any two pairs is off by at most, beside the largest.
    mass : float
        The part of the kernel of a row with itself that is kept, on average.
    """

    factor: np.ndarray
    pivots: np.ndarray
    error: float
    mass: float


def pair_factor(
    kernel: TensorKernel, columns: np.ndarray, most: int, enough: float = 1e-10
) -> PairFactor:
    """Factor the kernel of pairs by Cholesky's method, the worst pair first.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel.
    columns : array of shape (n_rows, n_columns)
        What its ``columns`` returned.
    most : int
        Most columns of the factor.
    enough : float
        What is left of the largest entry, with which it stops.
    """
    sets, Z, shift = _set_products(kernel, columns, 2)
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
        column = column - done[:, pivot] @ done
        column /= math.sqrt(left[pivot])
        factor[len(pivots)] = column
        left = np.maximum(left - column * column, 0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
    error = float(np.max(left)) / largest if largest > 0.0 else 0.0
    same = (sets[0] == sets[1]) & (whole > 0.0)
    mass = 1.0 - float(np.mean(left[same] / whole[same])) if np.any(same) else 1.0
    made = np.ascontiguousarray(factor[: len(pivots)].T)
    return PairFactor(made, np.array(pivots, int), error, mass)

"""Expansions: functions in the space of a tensor kernel, as models store them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._chunks import row_blocks
from mixnorm.kernels.tensor.gram import products_of
from mixnorm.kernels.tensor.index_sets import multiplicities, multisets
from mixnorm.kernels.tensor.kernels import TensorKernel

# Features that are computed at a time.
_FEATURES_PER_ROW_BLOCK = 2**22
# Multisets of rows whose kernel with new rows is computed at a time.
_SETS_AT_A_TIME = 2**14
# Sums below this share of the magnitudes of their terms have no digits left.
# The signs of such scores would be random, and with them the predicted classes.
_NOISE_OF_SUMS = 1e-15


@dataclass
class FeatureExpansion:
    """A function given by weights of features: of all or of some that a kernel has.

    The features are the monomials of :eq:`tensor-monomials`, or those of a user's own kernel.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel, as its ``resolve`` returns it.
    q : float
        The exponent.
    unit : float
        The divisor of columns.
    weights : array of shape (n_features, n_outputs)
        The weights.
    exponents : array of shape (n_features, n_columns), optional
        The exponents of the features; by default the weights are those of all features.
    """

    kernel: Any
    q: float
    unit: float
    weights: np.ndarray
    exponents: np.ndarray | None = None

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return the features of rows, one in each row."""
        columns = self.kernel.columns(X) / self.unit
        if self.exponents is None:
            return np.asarray(self.kernel.features_of_columns(columns, self.q))
        return np.asarray(self.kernel.features_with(columns, self.exponents, self.q))

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the function at rows, ``(n_rows, n_outputs)``."""
        found, sizes = np.empty((len(X), self.weights.shape[1])), np.abs(self.weights)
        for rows in row_blocks(len(X), _FEATURES_PER_ROW_BLOCK, len(self.weights)):
            features = self.features(X[rows]).T
            part = features @ self.weights
            # Terms that cancel leave rounding, whose sign is random.
            part[np.abs(part) < _NOISE_OF_SUMS * (np.abs(features) @ sizes)] = 0.0
            found[rows] = part
        return found

    def cost(self) -> dict[str, int]:
        """Return numbers stored, and multiplications for a row: one for each power of a column."""
        floats = self.weights.size
        powers = len(self.weights) if self.exponents is None else int(self.exponents.sum())
        return {"floats": floats, "multiplications": floats + powers}


@dataclass
class TensorExpansion:
    r"""A function given by dual variables of rows (:eq:`tensor-score`).

    .. math:: f(x) = \sum_{i_1, \dots, i_{q-1}} K(x_{i_1}, \dots, x_{i_{q-1}}, x)
              \alpha_{i_1} \cdots \alpha_{i_{q-1}}

    Parameters
    ----------
    kernel : TensorKernel
        The kernel, as its ``resolve`` returns it.
    q : float
        The number of its arguments, even.
    unit : float
        The divisor of columns.
    columns : array of shape (n_rows, n_columns)
        Columns of the training rows, divided by ``unit``.
    alpha : array of shape (n_rows, n_outputs)
        The dual variables.
    """

    kernel: Any
    q: float
    unit: float
    columns: np.ndarray
    alpha: np.ndarray

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the function at rows; every multiset of training rows is visited once."""
        new = self.kernel.columns(X) / self.unit
        shifts = (self.kernel.shifts(self.columns, self.q), self.kernel.shifts(new, self.q))
        found = np.zeros((len(X), self.alpha.shape[1]))
        # Multisets are listed by their smallest row, so that only those of one row are in memory.
        for first in range(len(self.columns)):
            rest = multisets(len(self.columns) - first, int(self.q) - 2) + first
            sets = np.concatenate([np.full((1, rest.shape[1]), first), rest])
            for part in row_blocks(sets.shape[1], _SETS_AT_A_TIME, 1):
                self._add_sets(found, sets[:, part], new, shifts)
        return found

    def _add_sets(
        self,
        found: np.ndarray,
        sets: np.ndarray,
        new: np.ndarray,
        shifts: tuple[np.ndarray | None, np.ndarray | None],
    ) -> None:
        """Add the contribution of some multisets of training rows."""
        own, shift = shifts
        Z = products_of(self.columns, sets)
        # The sum over ordered rows has each multiset once per order of its members.
        beta = multiplicities(sets)[:, None] * np.prod(self.alpha[sets], axis=0)
        added: Any = 0.0
        # Row by row: large terms cancel here, so the order of sums, which products of several rows
        # change, would show in the result.
        for i, row in enumerate(new):
            if own is not None and shift is not None:
                added = own[sets].sum(axis=0) + shift[i]
            found[i] += self.kernel.of_products(Z @ row, added) @ beta

    def cost(self) -> dict[str, int]:
        """Return numbers stored, and multiplications for a row."""
        (n, width), n_outputs = self.columns.shape, self.alpha.shape[1]
        n_sets = math.comb(n + int(self.q) - 2, int(self.q) - 1)
        floats = self.columns.size + self.alpha.size
        return {"floats": floats, "multiplications": n_sets * (width + n_outputs)}


@dataclass
class PairExpansion:
    r"""A function given by a few pairs of rows and dual variables of all, for four arguments.

    The pairs are the pivots of a factor of low rank (:eq:`tensor-low-rank`).

    .. math:: f(x) = \sum_p c_p \sum_i K(x_{p_1}, x_{p_2}, x_i, x) \alpha_i

    Parameters
    ----------
    kernel : TensorKernel
        The kernel, as its ``resolve`` returns it.
    unit : float
        The divisor of columns.
    columns : array of shape (n_rows, n_columns)
        Columns of the training rows, divided by ``unit``.
    alpha : array of shape (n_rows, n_outputs)
        The dual variables.
    pairs : array of shape (2, n_pairs)
        The rows of each pair.
    coef : array of shape (n_pairs, n_outputs)
        The coefficients of the pairs.
    """

    kernel: Any
    unit: float
    columns: np.ndarray
    alpha: np.ndarray
    pairs: np.ndarray
    coef: np.ndarray

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the function at rows, one by one, so that rows do not depend on each other."""
        new = self.kernel.columns(X) / self.unit
        Z = products_of(self.columns, self.pairs)
        found = np.empty((len(X), self.alpha.shape[1]))
        shift, own = (self.kernel.shifts(part, 4) for part in (new, self.columns))
        added: Any = 0.0
        for i, row in enumerate(new):
            if own is not None and shift is not None:
                added = shift[i] + own[self.pairs].sum(axis=0)[:, None] + own
            # K(p1, p2, i, x) is a function of the product of four rows, column by column: the pair
            # times the new row, times each training row.
            K = self.kernel.of_products((row * Z) @ self.columns.T, added)
            found[i] = np.sum((K @ self.alpha) * self.coef, axis=0)
        return found

    def cost(self) -> dict[str, int]:
        """Return numbers stored, and multiplications for a row."""
        (n, width), (n_pairs, n_outputs) = self.columns.shape, self.coef.shape
        floats = self.columns.size + self.alpha.size + self.coef.size
        each = width + n * (width + n_outputs) + n_outputs
        return {"floats": floats, "multiplications": n_pairs * each}


def weights_of_sums(u: np.ndarray, q: float) -> np.ndarray:
    """Return the weights of features from their sums: ``sign(u) |u|^(q-1)`` (:eq:`tensor-kkt`)."""
    return np.asarray(u * np.abs(u) ** (q - 2.0))


def feature_sums(
    kernel: TensorKernel, columns: np.ndarray, alpha: np.ndarray, q: float
) -> np.ndarray:
    """Return the sums ``u`` of all features, weighted by dual variables (:eq:`tensor-dual`)."""
    total = np.zeros((int(kernel.count(columns.shape[1])), alpha.shape[1]))
    for rows in row_blocks(len(columns), _FEATURES_PER_ROW_BLOCK, len(total)):
        total += kernel.features_of_columns(columns[rows], q) @ alpha[rows]
    return total

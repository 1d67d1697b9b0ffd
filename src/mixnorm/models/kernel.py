"""Models of weighted kernels, and of training rows with dual variables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._linear import add_products, even_ties
from mixnorm.kernels import FittedBank
from mixnorm.models.checks import check_floats, check_whole
from mixnorm.models.inputs import Inputs
from mixnorm.models.outputs import ClassOutputs, NumberOutputs

# New rows that are compared with the support at a time.
_ROWS_COMPARED = 2048


@dataclass(frozen=True, eq=False)
class KernelModelBase:
    """Training rows, and the kernels that compare new rows with them.

    Parameters
    ----------
    support : ndarray of shape (n_support,)
        Training rows that have a weight.
    bank : FittedBank, optional
        The kernels, with the rows of the support; None if users give kernel matrices.
    names : tuple of str
        The names of the kernels, chosen or not.
    raw_rows : bool
        Whether the bank takes rows as they are, because it knows what its columns are.
    inputs : Inputs
        The columns; of given matrices, the training rows.
    outputs : ClassOutputs or NumberOutputs
        What the scores mean.
    """

    support: np.ndarray
    bank: FittedBank | None
    names: tuple[str, ...]
    raw_rows: bool
    inputs: Inputs
    outputs: ClassOutputs | NumberOutputs

    def _finish(self, sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return scores for sums of terms of some sizes: classes may tie, numbers have a unit."""
        if isinstance(self.outputs, ClassOutputs):
            # Scores that differ by the rounding of their terms are equal: the first class wins,
            # whatever the order of the sums was.
            return even_ties(sums, sizes)
        return np.asarray(sums * self.outputs.unit + self.outputs.centre)

    def _check_rows(
        self, n_kernels: int, n_support: int, max_bytes: int, n_rows: int | None
    ) -> None:
        """Raise unless support and bank fit the model; any number of rows if that is None."""
        self.inputs.check(1, max_bytes)
        bank, width = self.bank, self.inputs.n_features
        check_whole(self.support, (n_support,), width if bank is None else math.inf, "support_")
        if bank is None:
            return
        if bank.n_kernels != n_kernels:
            raise ValueError(f"the bank must have {n_kernels} kernels")
        if bank.n_features_in != width:
            raise ValueError(f"the bank is of {bank.n_features_in} columns")
        if n_rows not in (None, bank.n_samples):
            raise ValueError(f"the bank must have {n_rows} rows")


@dataclass(frozen=True, eq=False)
class KernelModel(KernelModelBase):
    """A weighted sum of kernels, and a table of dual variables for the support.

    Parameters
    ----------
    kernel_weights : ndarray of shape (n_kernels,)
        The weights, none negative.
    dual_coef : ndarray of shape (n_support, n_scores)
        Scores are the sum of kernels with the support times these, in the units of ``outputs``.
    features : ndarray of shape (n_columns, n_scores), optional
        Weights of the features of a bank with factors, side by side for kernels with weight.
    support, bank, names, raw_rows, inputs, outputs
        As in the base class.
    """

    kernel_weights: np.ndarray
    dual_coef: np.ndarray
    features: np.ndarray | None

    def scores(self, X: object) -> np.ndarray:
        """Return the scores of new rows, or of a stack of their kernels with the training rows.

        See :eq:`kernel-scores`. They are in double precision, so that they hardly depend on the
        other rows of ``X``.
        """
        found = self._products(X)
        return self._finish(found[:, :-1], found[:, -1])

    def _products(self, X: Any) -> np.ndarray:
        """Return the sums behind the scores, and a last column with the sums of magnitudes."""
        if self.bank is None:
            return self._multiply(
                X.combine(self.kernel_weights, columns=self.support, dtype=np.float64)
            )
        return np.concatenate([self._products_of_rows(self.bank, rows) for rows in split_rows(X)])

    def _products_of_rows(self, bank: FittedBank, X: Any) -> np.ndarray:
        if self.features is None:
            return self._multiply(bank.combine(X, self.kernel_weights, dtype=np.float64))
        # Features are stored side by side for the kernels with weight alone.
        which = np.flatnonzero(self.kernel_weights > 0.0).tolist()
        if len(which) == 0:
            return np.zeros((X.shape[0], self.dual_coef.shape[1] + 1))
        return bank.feature_products(X, which, self.features)

    def _multiply(self, K: np.ndarray) -> np.ndarray:
        # The last column takes the sums of magnitudes, from which the rounding of a score is
        # estimated.
        found = np.zeros((len(K), self.dual_coef.shape[1] + 1))
        add_products(found, K, self.dual_coef)
        return found

    def cost(self) -> dict[str, int]:
        """Return kernels, support vectors, numbers stored, and multiplications for a row."""
        n_support = len(self.support)
        if self.bank is None:
            n = int(np.count_nonzero(self.kernel_weights))
            sizes = {"floats": n, "multiplications": n_support * n}
            return add_table_cost({"kernels": n, "support": n_support, **sizes}, self.dual_coef)
        coef = self.dual_coef if self.features is None else self.features
        return add_table_cost(self.bank.cost(self.kernel_weights, n_support), coef)

    def check(self, max_bytes: int) -> None:
        """Raise unless ``scores`` can work with the parts, which may come from anybody's file."""
        weights = self.kernel_weights
        check_floats(weights, (None,), "kernel_weights_")
        check_floats(self.dual_coef, (None, None), "dual_coef_")
        if not np.all((weights >= 0.0) & np.isfinite(weights)):
            raise ValueError("kernel_weights_ must be finite and not negative")
        if len(self.names) != len(weights):
            raise ValueError(f"kernel_names_ must be {len(weights)} names")
        n_support, n_scores = self.dual_coef.shape
        self.outputs.check(n_scores)
        factored = self.bank is not None and self.bank.factors is not None
        self._check_rows(len(weights), n_support, max_bytes, None if factored else n_support)
        if self.bank is None or not factored:
            if self.features is not None:
                raise ValueError("a model without factors has no features")
            return
        # A model whose kernels have no weight at all keeps a table without rows.
        ranks = self.bank.ranks(np.flatnonzero(weights).tolist())
        shape = (sum(ranks), n_scores) if ranks else (0, 1)
        check_floats(self.features, shape, "the weights of features")


def split_rows(X: Any) -> Iterator[Any]:
    """Yield ranges of the rows of a table, one after the other."""
    # Blocks bound the memory of the kernels between new rows and the support.
    rows = getattr(X, "iloc", X)
    for start in range(0, X.shape[0], _ROWS_COMPARED):
        yield rows[start : start + _ROWS_COMPARED]


def add_table_cost(cost: dict[str, int], table: np.ndarray) -> dict[str, int]:
    """Return the cost of kernels plus that of multiplying them by a table."""
    size = int(table.size)
    added = {name: cost[name] + size for name in ("floats", "multiplications")}
    return cost | added

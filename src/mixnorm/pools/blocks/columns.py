"""Columns of a table of blocks as atoms."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import is_sparse, to_dense
from mixnorm.data import ALL_COLUMNS, as_matrix
from mixnorm.pools.base import Curvature
from mixnorm.pools.blocks.base import BlockData, BlockPool, ResidualSums
from mixnorm.pools.columns import PreparedColumns


@dataclass(frozen=True, eq=False)
class StandardRows:
    """The recipe of columns less their means, in their scales."""

    token: str
    features: tuple[int, ...]
    centre: np.ndarray
    scale: np.ndarray
    dtype: np.dtype[Any]

    @property
    def keys(self) -> list[Hashable]:
        """The fit and the feature of each row."""
        return [(self.token, feature) for feature in self.features]

    def columns(self, keys: Sequence[Hashable]) -> np.ndarray:
        """Return the features of some rows."""
        return np.asarray([key[1] for key in keys], dtype=np.intp)  # type: ignore[index]

    def make(self, X: Any, keys: Sequence[Hashable]) -> np.ndarray:
        """Return some rows of a block with these features."""
        places = {feature: place for place, feature in enumerate(self.features)}
        at = [places[feature] for feature in self.columns(keys).tolist()]
        rows = np.asarray(to_dense(X)).T.astype(np.float64)
        # In double precision: the mean may be large beside the spread.
        rows -= self.centre[at, None]
        rows /= self.scale[at, None]
        return rows.astype(self.dtype, order="C")


@dataclass(frozen=True)
class ColumnProducts:
    """Products of all columns of a block with a residual."""

    dtype: np.dtype[Any]

    def __call__(self, X: Any, residual: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ residual`` in double precision."""
        if is_sparse(X):
            found = X.T.astype(self.dtype) @ np.ascontiguousarray(residual)
        else:
            found = X.T.astype(self.dtype, copy=False) @ residual
        return np.asarray(found, dtype=np.float64)


class BlockColumns(BlockPool, PreparedColumns):
    """Columns bound to a table of blocks."""

    def __init__(
        self,
        data: BlockData,
        members: list[np.ndarray] | None,
        usable: np.ndarray,
        scales: np.ndarray,
        fit_intercept: bool,
        prices: np.ndarray | None,
    ) -> None:
        self.data, self._centred = data, fit_intercept
        statistics, sample = data.statistics, data.sample
        PreparedColumns.__init__(
            self, as_matrix(sample.X, data.dtype), members, usable, scales, statistics,
            sample.weight, prices,
        )  # fmt: skip

    def recipe(self, atoms: Sequence[Hashable]) -> StandardRows:
        """Return the recipe of the scaled columns of atoms, less their means."""
        features = [feature for atom in atoms for feature in self._get_features(atom)]  # type: ignore[arg-type]
        scale = np.asarray(self._scales[features], dtype=np.float64)
        centre = self._means(features) * scale
        return StandardRows(self.data.token, tuple(features), centre, scale, self.data.dtype)

    def _means(self, features: list[int]) -> np.ndarray:
        """Return the means of scaled columns, or zeros without an intercept."""
        if not self._centred:
            return np.zeros(len(features))
        scale = np.asarray(self._scales[features], dtype=np.float64)
        return np.asarray(self._statistics.mean[features] / scale, dtype=np.float64)

    def offset(self, atom: Any) -> np.ndarray:
        """Return the means of the scaled columns of an atom."""
        return self._means(self._get_features(atom))

    def reach(self, atom: Any) -> float:
        """Return half the ranges of the scaled columns of an atom, added up."""
        features = self._get_features(atom)
        if self._centred:
            half = 0.5 * (self._statistics.high[features] - self._statistics.low[features])
        else:
            half = self._statistics.largest[features]
        return float(np.sum(half / self._scales[features]))

    def _scaled_gradient(self, residual: Any) -> np.ndarray:
        """Return the gradient in the weights of all scaled columns, from one read of the table."""
        sums: ResidualSums = residual
        found = sums.sum(ColumnProducts(self.data.dtype), ALL_COLUMNS)
        if self._centred:
            # The residual does not quite sum to zero, and the mean of a column may be large.
            found = found - self._statistics.mean[:, None] * sums.total[None, :]
        return np.asarray(found / self._divisors[:, None].astype(np.float64))

    def _error_sums(self, residual: Any) -> np.ndarray:
        """Return the sum of the magnitudes of the residual, by output."""
        return np.asarray(residual.errors)

    def _compute_second_derivatives(self, curvature: Curvature) -> Any:
        found = super()._compute_second_derivatives(curvature)
        return np.asarray(found, dtype=np.float64)

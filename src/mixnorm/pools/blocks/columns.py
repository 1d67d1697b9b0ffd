"""Columns of a table of blocks as atoms."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import is_sparse, to_dense
from mixnorm.data import ALL_COLUMNS, as_matrix
from mixnorm.pools.base import Curvature, Excluded, Inputs, Offers, best_places
from mixnorm.pools.blocks.base import LARGEST_SHARE_OF_ROW, BlockData, BlockPool, ResidualSums
from mixnorm.pools.blocks.screen import ColumnScreen, Gradients
from mixnorm.pools.columns import PreparedColumns

# Rows of these columns are kept, in memory or files; where more are wanted, all are read instead.
_LEAST_COLUMNS_KEPT, _SHARE_OF_COLUMNS_KEPT = 64, 0.5


class Ranking:
    """The rule and the limits of a request, by which gradients are turned into worth."""

    def __init__(
        self,
        pool: BlockColumns,
        rule: str,
        curvature: Curvature | None,
        errors: np.ndarray,
        exclude: Excluded,
        inputs: Inputs,
        budget: float | None,
    ) -> None:
        self._pool, self._rule, self._curvature, self._errors = pool, rule, curvature, errors
        self._limits = exclude, inputs, budget

    def score(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and worth of all atoms."""
        return self._pool._score(gradient, self._errors, self._rule, self._curvature)

    def limit(self, worth: np.ndarray) -> np.ndarray:
        """Return worth per price, minus infinity for atoms that are not allowed."""
        return self._pool._limit(worth, *self._limits)

    def most(self, gradients: Gradients) -> np.ndarray:
        """Return the largest worth that each atom may have."""
        return self.limit(self.score(gradients.most)[1])

    def least_of_best(self, known: np.ndarray, exact: np.ndarray) -> float:
        """Return the worth of the last of the best atoms that are known."""
        best = best_places(np.where(exact, known, -np.inf), _BEST_COMPARED)
        return float(known[best[-1]]) if len(best) == _BEST_COMPARED else 0.0


# The engine compares this many of the best atoms more closely, or fewer.
_BEST_COMPARED = 8


@dataclass(frozen=True, eq=False)
class StandardRows:
    """The recipe of columns less their means, in their scales.

    No row that counts is farther than ``limit`` from the mean.
    """

    token: str
    features: tuple[int, ...]
    centre: np.ndarray
    scale: np.ndarray
    limit: np.ndarray
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
        # Rows that do not count may hold anything, and must not overflow.
        np.clip(rows, -self.limit[at, None], self.limit[at, None], out=rows)
        rows /= self.scale[at, None]
        return rows.astype(self.dtype, order="C")


@dataclass(frozen=True)
class ColumnProducts:
    """Products of all columns of a block with a residual."""

    dtype: np.dtype[Any]

    def __call__(self, X: Any, residual: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ residual`` in double precision."""
        if is_sparse(X):
            found = X.T.astype(self.dtype, copy=False) @ np.ascontiguousarray(residual)
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
        self._screen: ColumnScreen | None = None
        if data.screen is not None:
            n_rows = data.screen.population
            self._screen = ColumnScreen(
                data.screen, statistics, self._divisors, fit_intercept, n_rows
            )
        self._gradients: Gradients | None = None
        self._ranking: Ranking | None = None
        #: The columns whose rows are kept for the fit.
        self._read_columns = np.zeros(len(usable), dtype=bool)
        # The largest share of a column's squares that one row may have.
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = statistics.half_farthest / statistics.deviation
        self._spikes = np.where(usable, 4.0 * spread * spread, 0.0)

    def recipe(self, atoms: Sequence[Hashable]) -> StandardRows:
        """Return the recipe of the scaled columns of atoms, less their means."""
        features = [feature for atom in atoms for feature in self._get_features(atom)]  # type: ignore[arg-type]
        scale = np.asarray(self._scales[features], dtype=np.float64)
        centre = self._means(features) * scale
        with np.errstate(over="ignore"):  # twice the farthest: no row that counts is changed
            limit = 4.0 * self._statistics.half_farthest[features]
        name, dtype = self.data.token, self.data.dtype
        return StandardRows(name, tuple(features), centre, scale, limit, dtype)

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

    def is_spiky(self, atom: Any) -> bool:
        """Tell whether some row may have much of an atom's curvature, which a sample can miss."""
        most = float(np.max(self._spikes[self._get_features(atom)]))
        return not most < LARGEST_SHARE_OF_ROW * len(self.data.sample.rows)

    # --- ranking

    def top(
        self,
        residual: Any,
        rule: str,
        m: int,
        exclude: Excluded,
        inputs: Inputs = None,
        curvature: Curvature | None = None,
        budget: float | None = None,
    ) -> Offers:
        """Return the ``m`` best atoms of which the gradients are known, best first.

        None of the others is better than the first (with a probability of a millionth that one is).
        """
        errors = self._error_sums(residual)
        ranking = Ranking(self, rule, curvature, errors, exclude, inputs, budget)
        if self._screen is None:
            scores, worth = ranking.score(self._scaled_gradient(residual))
            return [(atom, float(scores[atom])) for atom in best_places(ranking.limit(worth), m)]
        self._ranking, gradients = ranking, self._known_gradients(residual)
        while True:
            scores, worth = ranking.score(gradients.guess)
            guess, most = ranking.limit(worth), ranking.most(gradients)
            exact = self._are_exact(gradients)
            known = np.where(exact, guess, -np.inf)
            best = best_places(known, m)
            if len(best) < m:  # compare some more than are asked for
                more = [atom for atom in best_places(most, 2 * m) if not exact[atom]]
                more = [atom for atom in best_places(guess, 2 * m) if not exact[atom]] or more
            else:
                more = np.flatnonzero(~exact & (most > known[best[0]])).tolist()
            if not more:
                return [(atom, float(scores[atom])) for atom in best]
            self.learn(residual, more)

    def _known_gradients(self, residual: ResidualSums) -> Gradients:
        """Return what is known of all gradients at the model of the residual."""
        screen: Any = self._screen
        if self._gradients is None or self._gradients.at is not residual.at:
            found = screen.estimate(residual.on_screen(), residual.largest)
            self._gradients = Gradients(residual.at, *found)
        return self._gradients

    def _are_exact(self, gradients: Gradients) -> np.ndarray:
        """Tell for each atom whether all its gradients are known."""
        if self._members is None:
            return gradients.exact
        unknown = np.bincount(self._atom_of, weights=~gradients.exact, minlength=self.n_atoms)
        return unknown == 0

    def open_offers(self, atom: Any) -> list[tuple[Any, np.ndarray, bool]]:
        """Return the atoms that might be better than a chosen one, for all that is known."""
        gradients, ranking = self._gradients, self._ranking
        if gradients is None or ranking is None:
            return []
        exact, most = self._are_exact(gradients), ranking.most(gradients)
        known = ranking.limit(ranking.score(gradients.guess)[1])
        # A better candidate must be among the best by the cheap rule.
        candidates = np.flatnonzero(~exact & (most > ranking.least_of_best(known, exact)))
        bounds = gradients.most
        return [
            (each, bounds[self._get_features(each)], bool(most[each] > known[atom]))
            for each in candidates.tolist()
        ]

    def learn(self, residual: ResidualSums, atoms: Sequence[Any]) -> None:
        """Compute the gradients of atoms on all rows: read their columns, or where many, all."""
        gradients = self._known_gradients(residual)
        features = [feature for atom in atoms for feature in self._get_features(atom)]
        kept = self._read_columns.copy()
        kept[features] = True
        if np.count_nonzero(kept) > max(_LEAST_COLUMNS_KEPT, _SHARE_OF_COLUMNS_KEPT * len(kept)):
            gradients.set_exact(ALL_COLUMNS, self._scaled_gradient(residual))
            return
        self._read_columns = kept
        gradients.set_exact(np.asarray(features), residual.contract(atoms))

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

"""Stumps of a table of blocks: thresholds from sketches, and sums of residuals by bins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mixnorm._array import is_sparse, to_dense
from mixnorm._chunks import blocks as split
from mixnorm.data import Block
from mixnorm.pools.base import Excluded, Inputs
from mixnorm.pools.blocks.base import (
    LARGEST_SHARE_OF_ROW,
    ROWS_KEPT,
    BlockData,
    BlockPool,
    ResidualSums,
    RowShares,
)
from mixnorm.pools.blocks.quantiles import JoinSketches, QuantileSketch, SketchColumns, count_parts
from mixnorm.pools.stumps import (
    ROWS_FOR_QUANTILES,
    Atom,
    PreparedStumps,
    code_type,
    compute_middles,
    find_quantiles,
)

# Share of the memory for the sketches of a pass; a few of each column are in memory at a time.
_SHARE_FOR_SKETCHES, _SKETCHES_AT_ONCE = 0.25, 16
# Bytes of the codes of a block that are made in one pass.
_BYTES_OF_CODES = 1 << 26


def bind_stumps(data: BlockData, max_bins: int | None, fit_intercept: bool) -> BlockStumps:
    """Find the thresholds of a table from one pass, and count the rows between them in another."""
    edges = _find_edges(data, max_bins)
    counts = [len(part) for part in edges]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    kind = np.dtype(code_type(max(counts, default=0)))
    codes = CodeRows(data.token, np.arange(len(edges)), tuple(edges), kind)
    return BlockStumps(data, codes, np.concatenate([*edges, np.empty(0)]), starts, fit_intercept)


def _find_edges(data: BlockData, max_bins: int | None) -> list[np.ndarray]:
    """Return the thresholds of each column."""
    table, parts = data.table, count_parts(max_bins)
    points, X = table.shape[0], data.sample.X
    if is_sparse(X):
        points = int(points * X.nnz / max(1, X.shape[0] * X.shape[1])) + 1
    points = max(1, points if parts is None else min(points, 2 * parts))
    step = max(1, int(_SHARE_FOR_SKETCHES * table.memory) // (_SKETCHES_AT_ONCE * 16 * points))
    sketches, n_used = list[QuantileSketch](), 0
    for part in split(table.shape[1], step):
        whole = part.stop - part.start == table.shape[1]
        n_used, found = table.sum(
            SketchColumns(data.shares, parts),
            columns=slice(None) if whole else np.arange(part.start, part.stop),
            target=data.shares.target,
            combine=JoinSketches(parts),
        )
        sketches += found
    most = max_bins if n_used > ROWS_FOR_QUANTILES else None
    return [_find_thresholds(sketch, most, table.dtype) for sketch in sketches]


def _find_thresholds(sketch: QuantileSketch, most: int | None, dtype: np.dtype[Any]) -> np.ndarray:
    """Return the thresholds of a column; those of data in memory where no value is missing."""
    values = sketch.values
    if most is None or len(values) - 1 <= most:
        found = compute_middles(values[:-1].astype(dtype), values[1:].astype(dtype))
    else:
        place = find_quantiles(sketch.ranks(), most)
        if sketch.error > 0.0:  # the next value may be missing
            return values[place].astype(np.float64)
        found = compute_middles(values[place].astype(dtype), values[place + 1].astype(dtype))
    return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CodeRows:
    """The recipe of codes: the number of thresholds below each entry of some features.

    Parameters
    ----------
    token : str
        Names the fit.
    features : ndarray of int
        The features, in increasing order.
    edges : tuple of ndarray
        Their thresholds.
    kind : dtype
        The type of codes.
    """

    token: str
    features: np.ndarray
    edges: tuple[np.ndarray, ...]
    kind: np.dtype[Any]

    @property
    def keys(self) -> list[Hashable]:
        """The fit and the feature of each row."""
        return [(self.token, feature) for feature in self.features.tolist()]

    def columns(self, keys: Sequence[Hashable]) -> np.ndarray:
        """Return the features of some rows."""
        return np.asarray([key[1] for key in keys], dtype=np.intp)  # type: ignore[index]

    def make(self, X: Any, keys: Sequence[Hashable]) -> np.ndarray:
        """Return the codes of a block with these features."""
        codes = np.empty((len(keys), X.shape[0]), dtype=self.kind)
        places = np.searchsorted(self.features, self.columns(keys))
        matrix = X.tocsc() if is_sparse(X) else X
        for row, place in enumerate(places):
            edges = self.edges[place]
            if is_sparse(X):
                part = slice(matrix.indptr[row], matrix.indptr[row + 1])
                codes[row] = np.searchsorted(edges, 0.0)
                codes[row, matrix.indices[part]] = np.searchsorted(edges, matrix.data[part])
            else:
                codes[row] = np.searchsorted(edges, matrix[:, row])
        return codes

    def part(self, features: np.ndarray) -> CodeRows:
        """Return the recipe of some of the features."""
        if len(features) == len(self.features):
            return self
        places = np.searchsorted(self.features, features)
        return replace(self, features=features, edges=tuple(self.edges[j] for j in places))

    def bin_starts(self) -> np.ndarray:
        """Return where the bins of each feature begin, and where the last ones end."""
        counts = [len(edges) + 1 for edges in self.edges]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class CountRows:
    """Adds up the weights of the rows of a block by feature and code."""

    shares: RowShares
    starts: np.ndarray

    def __call__(self, block: Block) -> np.ndarray:
        """Return the sums, those of all features in turn."""
        weight, counts = self.shares(block), np.diff(self.starts)
        found = [
            np.bincount(row, weights=weight, minlength=count)
            for row, count in zip(block.codes, counts, strict=True)
        ]
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class AddByCode:
    """Adds up the residuals of a block by feature and code.

    ``modes`` are frequent codes, whose rows are left out: their sums are what is left of the total.
    """

    modes: np.ndarray
    starts: np.ndarray

    def __call__(self, codes: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums by code, and those over all rows."""
        from mixnorm.pools.blocks.stumps_jit import add_by_code

        sums = np.zeros((self.starts[-1], residual.shape[1]))
        add_by_code(codes, self.modes, self.starts, np.ascontiguousarray(residual), sums)
        return sums, residual.sum(axis=0, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class IndicatorRows:
    """The recipe of indicators of stumps, less their means."""

    token: str
    atoms: tuple[Atom, ...]
    means: np.ndarray
    dtype: np.dtype[Any]

    most_kept: ClassVar[int] = ROWS_KEPT

    @property
    def keys(self) -> list[Hashable]:
        """The fit and the stump of each row."""
        return [(self.token, *atom) for atom in self.atoms]

    def columns(self, keys: Sequence[Hashable]) -> np.ndarray:
        """Return the features of some rows, each once."""
        return np.unique([key[1] for key in keys]).astype(np.intp)  # type: ignore[index]

    def make(self, X: Any, keys: Sequence[Hashable]) -> np.ndarray:
        """Return some rows of a block with these features."""
        columns, X = self.columns(keys).tolist(), to_dense(X)
        means = dict(zip(self.keys, self.means.tolist(), strict=True))
        rows = np.empty((len(keys), X.shape[0]), dtype=self.dtype)
        for row, key in zip(rows, keys, strict=True):
            feature, threshold = key[1:]  # type: ignore[index]
            below = X[:, columns.index(feature)] <= np.float64(threshold)
            row[:] = np.where(below, 1.0 - means[key], -means[key])
        return rows


class BlockStumps(BlockPool, PreparedStumps):
    """Stumps bound to a table of blocks.

    The codes of the table, a byte per entry, are kept from one round to the next, so that a round
    does not read the table.
    """

    def __init__(
        self,
        data: BlockData,
        codes: CodeRows,
        edges: np.ndarray,
        starts: np.ndarray,
        fit_intercept: bool,
    ) -> None:
        # All stumps are scored on all rows: none are needed to rank them.
        self.data = data = replace(data, screen=None)
        self._recipe, self._edges, self._starts = codes, edges, starts
        self._dtype, self._centred = data.dtype, fit_intercept
        self.n_usable = len(edges)
        #: The share of the rows at or below each threshold, and a frequent code of each feature.
        self._below_share, self._modes = self._count_rows()

    def _parts(self, features: np.ndarray) -> Iterator[CodeRows]:
        """Yield recipes of some features, of so many at a time as fit into memory."""
        each = self.table.block_rows * self._recipe.kind.itemsize
        for part in split(len(features), max(1, _BYTES_OF_CODES // each)):
            yield self._recipe.part(features[part])

    def _count_rows(self) -> tuple[np.ndarray, np.ndarray]:
        shares, below, modes = self.data.shares, [np.empty(0)], []
        for codes in self._parts(np.arange(len(self._starts) - 1)):
            starts = codes.bin_starts()
            count = CountRows(shares, starts)
            found = self.table.sum(count, target=shares.target, codes=codes)
            for j in range(len(starts) - 1):
                bins = found[starts[j] : starts[j + 1]]
                below.append(np.cumsum(bins)[:-1])
                modes.append(int(np.argmax(bins)))
        return np.concatenate(below), np.asarray(modes, dtype=np.int64)

    def _compute_scores(
        self, residual: Any, rule: str, exclude: Excluded, inputs: Inputs
    ) -> np.ndarray:
        """Return the scores of all stumps, zero for those that are excluded."""
        sums: ResidualSums = residual
        features = np.arange(len(self._starts) - 1)
        if inputs is not None:
            features = features[np.isin(features, sorted(inputs))]
        scores = np.zeros(len(self._edges))
        for codes in self._parts(features):
            starts, modes = codes.bin_starts(), self._modes[codes.features]
            found, total = sums.sum(AddByCode(modes, starts), None, codes)
            for place, j in enumerate(codes.features):
                bins = found[starts[place] : starts[place + 1]]
                bins[modes[place]] = total - bins.sum(axis=0)
                at = slice(self._starts[j], self._starts[j + 1])
                gradient = np.cumsum(bins, axis=0)[:-1]
                if self._centred:  # the residual does not quite sum to zero
                    gradient -= self._below_share[at, None] * sums.total[None, :]
                if rule == "l1":
                    scores[at] = np.abs(gradient).sum(axis=1)
                else:
                    scores[at] = np.sqrt(np.square(gradient).sum(axis=1))
        for atom in exclude:
            scores[self._place(*atom)] = 0.0  # type: ignore[misc]
        return scores

    def recipe(self, atoms: Sequence[Any]) -> IndicatorRows:
        """Return the recipe of indicators, less their means."""
        means = np.concatenate([self.offset(atom) for atom in atoms])
        return IndicatorRows(self.data.token, tuple(atoms), means, self._dtype)

    def offset(self, atom: Any) -> np.ndarray:
        """Return the mean of an indicator, or zero without an intercept."""
        share = float(self._below_share[self._place(*atom)])
        return np.asarray([share if self._centred else 0.0])

    def reach(self, atom: Any) -> float:
        """Return half the range of an indicator; without an intercept its largest value."""
        return 0.5 if self._centred else 1.0

    def is_spiky(self, atom: Any) -> bool:
        """Tell whether some row may have much of an atom's curvature, which a sample can miss."""
        share = float(self._below_share[self._place(*atom)])
        rare = min(share, 1.0 - share) if self._centred else share
        # A row of the rarer side has this share of the squares, times its weight.
        return not (1.0 - rare) < LARGEST_SHARE_OF_ROW * len(self.data.sample.rows) * rare

"""Scorers: the scores of chosen atoms, prepared once and computed for many rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixnorm._array import to_dense
from mixnorm._chunks import run_loop
from mixnorm._linear import linear_scores

if TYPE_CHECKING:
    from mixnorm.pools.base import Pool

# Below this number of rows NumPy is quicker than compiled code and its threads.
_FEWEST_COMPILED_ROWS = 256
# Beyond this number of boxes their weights are not added up in tables.
_MOST_TABLED_BOXES = 1000


def for_compiled(X: np.ndarray) -> np.ndarray:
    """Return an array in a dtype that loops are compiled for, the same array where possible.

    These are bytes and floating-point numbers. Each dtype more would be compiled for seconds.
    """
    if X.dtype in (np.uint8, np.float32, np.float64) and X.dtype.isnative:
        return X
    exact = X.dtype.kind in "biuf" and X.dtype.itemsize <= 2  # in single precision
    return X.astype(np.float32 if exact else np.float64)


class Scorer:
    """Base of scorers: called with rows of a NumPy array, they return scores."""

    def row(self, x: np.ndarray) -> np.ndarray:
        """Return the scores of one row."""
        scores: np.ndarray = self(x[None, :])[0]
        return scores

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows: ``(n_samples, n_outputs)``."""
        raise NotImplementedError


@dataclass(eq=False)
class PoolScorer(Scorer):
    """Scorer for the atoms of any pool: the weighted sum of their columns.

    Parameters
    ----------
    pool : pool
        The pool that evaluates the atoms.
    atoms : sequence
        The atoms.
    weights : ndarray of shape (n_columns, n_outputs)
        Weights of their columns.
    intercept : ndarray of shape (n_outputs,)
        Added to every row.
    """

    pool: Pool
    atoms: Sequence[Any]
    weights: np.ndarray
    intercept: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows: ``(n_samples, n_outputs)``."""
        columns = to_dense(self.pool.evaluate(X, self.atoms))
        return linear_scores(columns, self.weights, self.intercept)


@dataclass(eq=False)
class ColumnScorer(Scorer):
    """Scorer for plain columns of the data.

    Parameters
    ----------
    index : ndarray of int
        The columns.
    weights : ndarray of shape (n_columns, n_outputs)
        Their weights.
    intercept : ndarray of shape (n_outputs,)
        Added to every row.
    """

    index: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray

    def row(self, x: np.ndarray) -> np.ndarray:
        """Return the scores of one row."""
        scores: np.ndarray = x[self.index] @ self.weights + self.intercept
        return scores

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows: ``(n_samples, n_outputs)``."""
        return linear_scores(np.take(X, self.index, axis=1), self.weights, self.intercept)


class IndicatorScorer(Scorer):
    """Base of scorers for atoms that are zero or one: stumps and boxes.

    Few rows are compared with all thresholds at once; many go through compiled loops.

    Parameters
    ----------
    weights : ndarray of shape (n_atoms, n_outputs)
        Weights of the indicators.
    intercept : ndarray of shape (n_outputs,)
        Added to every row.
    """

    def __init__(self, weights: np.ndarray, intercept: np.ndarray) -> None:
        # In double precision, sums of many weights do not depend on their order.
        self._weights = np.ascontiguousarray(weights, np.float64)
        self._intercept = np.asarray(intercept, np.float64)

    def row(self, x: np.ndarray) -> np.ndarray:
        """Return the scores of one row."""
        scores: np.ndarray = self._evaluate_atoms(x).astype(np.float64) @ self._weights
        return scores + self._intercept

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows: ``(n_samples, n_outputs)``."""
        if len(X) < _FEWEST_COMPILED_ROWS:
            return self.row(X)  # which takes several rows as well
        scores = np.repeat(self._intercept[None, :], len(X), axis=0)
        self._add_scores(for_compiled(X), scores)
        return scores

    def _evaluate_atoms(self, X: np.ndarray) -> np.ndarray:
        """Tell which atoms hold, for one row or for each of several."""
        raise NotImplementedError

    def _add_scores(self, X: np.ndarray, scores: np.ndarray) -> None:
        """Add the weights of the atoms that hold to ``scores``, in compiled code."""
        raise NotImplementedError


class StumpScorer(IndicatorScorer):
    """Scorer for stumps, which needs one search among the thresholds of each column.

    The weights of a column's stumps are added up beforehand.

    Parameters
    ----------
    atoms : sequence of (int, float)
        Columns and thresholds.
    weights : ndarray of shape (n_atoms, n_outputs)
        Weights of the indicators.
    intercept : ndarray of shape (n_outputs,)
        Added to every row.
    """

    def __init__(
        self, atoms: Sequence[tuple[int, float]], weights: np.ndarray, intercept: np.ndarray
    ) -> None:
        super().__init__(weights, intercept)
        self._index = np.asarray([column for column, _ in atoms], dtype=np.intp)
        self._thresholds = np.asarray([threshold for _, threshold in atoms], dtype=np.float64)
        # Sums by column: a row needs a search and one addition for each column, not for each stump.
        self._columns = np.unique(self._index)
        edges, tables, starts = [np.empty(0)], [self._weights[:0]], [0]
        for column in self._columns:
            own = np.flatnonzero(self._index == column)
            own = own[np.argsort(self._thresholds[own], kind="stable")]
            edges.append(self._thresholds[own])
            starts.append(starts[-1] + len(own))
            # With c thresholds below an entry, the stumps from the c-th on are one. Sums from the
            # end give each of these, and a last row of zeros is for entries above all.
            above = np.cumsum(self._weights[own][::-1], axis=0)[::-1]
            tables.append(np.vstack([above, np.zeros_like(above[:1])]))
        self._edges, self._tables = np.concatenate(edges), np.concatenate(tables)
        self._starts = np.asarray(starts, dtype=np.int64)

    def _evaluate_atoms(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X[..., self._index] <= self._thresholds)

    def _add_scores(self, X: np.ndarray, scores: np.ndarray) -> None:
        from mixnorm.pools.stumps_jit import stump_scores

        parts = X, self._columns, self._starts, self._edges, self._tables, scores
        each = len(self._edges) + len(self._columns) * scores.shape[1]
        run_loop(stump_scores, *parts, items=len(X), operations=each)


class BoxScorer(IndicatorScorer):
    """Scorer for boxes: the sum of the weights of the boxes that contain a row.

    The weights of all boxes that read the same one or two columns are added up beforehand, by
    where a row lies among the thresholds of these columns. Boxes that read more columns are
    evaluated one by one.

    Parameters
    ----------
    atoms : sequence of tuples of sides
        Each side has a column, ``"<="`` or ``">"``, and a threshold.
    weights : ndarray of shape (n_atoms, n_outputs)
        Weights of the indicators.
    intercept : ndarray of shape (n_outputs,)
        Added to every row.
    """

    def __init__(self, atoms: Sequence[Any], weights: np.ndarray, intercept: np.ndarray) -> None:
        super().__init__(weights, intercept)
        shape = (len(atoms), max([len(atom) for atom in atoms], default=1))
        self._columns = np.zeros(shape, dtype=np.intp)
        self._lows, self._highs = np.full(shape, -np.inf), np.full(shape, np.inf)
        for box, atom in enumerate(atoms):
            self._columns[box] = atom[0][0]  # missing sides are always true
            for place, (column, kind, threshold) in enumerate(atom):
                self._columns[box, place] = column
                (self._highs if kind == "<=" else self._lows)[box, place] = threshold
        self._atoms = list(atoms)
        self._tables: BoxTables | None = None

    def _evaluate_atoms(self, X: np.ndarray) -> np.ndarray:
        values = X[..., self._columns]
        return np.asarray(((self._lows < values) & (values <= self._highs)).all(axis=-1))

    def _add_scores(self, X: np.ndarray, scores: np.ndarray) -> None:
        from mixnorm.pools.boxes_jit import box_scores, table_scores

        if self._tables is None:  # made for the first large call: a single row is faster without
            self._tables = BoxTables.of(self._atoms, self._weights)
        tables = self._tables
        rest = tables.rest
        boxes = self._columns[rest], self._lows[rest], self._highs[rest], self._weights[rest]
        each = len(tables.edges) + len(tables.pairs) * scores.shape[1]
        run_loop(
            table_scores, X, tables.columns, tables.starts, tables.edges, tables.pairs,
            tables.firsts, tables.sums, scores, items=len(X), operations=each,
        )  # fmt: skip
        each = boxes[0].size + boxes[3].size
        run_loop(box_scores, X, *boxes, scores, items=len(X), operations=each)


@dataclass(frozen=True)
class BoxTables:
    """Sums of the weights of boxes that read at most two columns.

    Parameters
    ----------
    columns : ndarray of int
        The columns of ``X`` that such boxes read.
    starts, edges : ndarray
        ``edges[starts[c]:starts[c + 1]]`` are the thresholds in the ``c``-th of them.
    pairs : ndarray of shape (n_tables, 2)
        Places in ``columns``; -1 for the second of a table of one column.
    firsts : ndarray of int
        Row of ``sums`` where each table begins. Its rows are ordered by the number of thresholds of
        the first column below an entry, then by that of the second.
    sums : ndarray of shape (n_cells, n_outputs)
        Sums of weights.
    rest : ndarray of int
        Boxes that are in no table.
    """

    columns: np.ndarray
    starts: np.ndarray
    edges: np.ndarray
    pairs: np.ndarray
    firsts: np.ndarray
    sums: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, atoms: Sequence[Any], weights: np.ndarray) -> Self:
        """Add up the weights of some boxes."""
        groups, rest = group_boxes(atoms)
        found = defaultdict[int, set[float]](set)
        for boxes in groups.values():
            for box in boxes:
                for column, _, threshold in atoms[box]:
                    found[column].add(threshold)
        # The thresholds of a column are those of all groups: one search serves every table.
        edges = {column: sorted(found[column]) for column in sorted(found)}
        sums, firsts = [weights[:0]], [0]
        for group, boxes in groups.items():
            table = np.zeros((*(len(edges[column]) + 1 for column in group), weights.shape[1]))
            for box in boxes:
                spans = [_find_span(atoms[box], column, edges[column]) for column in group]
                table[tuple(spans)] += weights[box]  # a box is a rectangle of cells
            sums.append(table.reshape(-1, weights.shape[1]).astype(weights.dtype))
            firsts.append(firsts[-1] + len(sums[-1]))
        places = {column: place for place, column in enumerate(edges)}
        pairs = [(places[group[0]], places[group[1]] if len(group) > 1 else -1) for group in groups]
        starts = np.cumsum([0, *map(len, edges.values())])
        return cls(
            np.asarray(list(edges), dtype=np.intp),
            starts.astype(np.int64),
            np.asarray(list(chain(*edges.values())), dtype=np.float64),
            np.asarray(pairs, dtype=np.int64).reshape(-1, 2),
            np.asarray(firsts[:-1], dtype=np.int64),
            np.concatenate(sums),
            np.asarray(rest, dtype=np.intp),
        )


def group_boxes(atoms: Sequence[Any]) -> tuple[dict[tuple[int, ...], list[int]], list[int]]:
    """Return the boxes by the one or two columns that they read, and the boxes that read more.

    A table grows with the square of the number of thresholds, so very many boxes have none.
    """
    groups = defaultdict[tuple[int, ...], list[int]](list)
    rest = []
    if len(atoms) > _MOST_TABLED_BOXES:
        return groups, list(range(len(atoms)))
    for box, atom in enumerate(atoms):
        read = tuple(dict.fromkeys(column for column, _, _ in atom))
        if len(read) > 2:
            rest.append(box)
        else:
            groups[read].append(box)
    return groups, rest


def _find_span(atom: Any, column: int, edges: list[float]) -> slice:
    """Return for which numbers of thresholds below an entry of a column a box holds."""
    # With c thresholds below an entry, ``x <= edges[i]`` holds for c up to i, ``x > edges[i]``
    # beyond.
    low, high = 0, len(edges) + 1
    for other, kind, threshold in atom:
        if other == column and kind == "<=":
            high = edges.index(threshold) + 1
        elif other == column:
            low = edges.index(threshold) + 1
    return slice(low, high)

"""Scores of chosen atoms, ready to be computed many times: what prediction runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixnorm._array import MatrixLike, to_dense
from mixnorm._chunks import chunks
from mixnorm._linear import linear_scores

if TYPE_CHECKING:
    from mixnorm.pools.base import Pool

# Fewer rows than this are quicker without compiled code, and its threads.
_FEW_ROWS = 256
# With more boxes than this, their weights are not added up beforehand.
_MOST_TABLED = 1000


def for_compiled(X: np.ndarray) -> np.ndarray:
    """Return an array in a dtype that compiled code knows, the same one if possible."""
    known = X.dtype.kind in "iuf" and X.dtype.isnative and X.dtype.itemsize <= 8
    if known and X.dtype != np.float16:
        return X
    return X.astype(np.float64)


def _in_double(weights: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both in double precision: sums of many weights then do not depend on their order."""
    return np.ascontiguousarray(weights, np.float64), np.asarray(intercept, np.float64)


class Scorer:
    """Base of scores of chosen atoms."""

    def row(self, x: np.ndarray) -> np.ndarray:
        """Return the scores of one row."""
        scores: np.ndarray = self(x[None, :])[0]
        return scores

    def __call__(self, X: MatrixLike) -> Any:
        """Return the scores of some rows: ``(n_samples, n_outputs)``."""
        raise NotImplementedError


@dataclass(eq=False)
class PoolScorer(Scorer):
    """Scores of the atoms of any pool: its columns, weighted.

    Parameters
    ----------
    pool : pool
        What evaluates the atoms.
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

    def __call__(self, X: MatrixLike) -> np.ndarray:
        """Return the scores of some rows: ``(n_samples, n_outputs)``."""
        columns = to_dense(self.pool.evaluate(X, self.atoms))
        return linear_scores(columns, self.weights, self.intercept)


@dataclass(eq=False)
class ColumnScorer(Scorer):
    """Scores of columns as they are.

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
        """Return the scores of some rows: ``(n_samples, n_outputs)``."""
        return linear_scores(np.take(X, self.index, axis=1), self.weights, self.intercept)


class StumpScorer:
    """Scores of stumps: their weights added up by column, so that one search finds all of a column.

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
        weights, intercept = _in_double(weights, intercept)
        self._index = np.asarray([column for column, _ in atoms], dtype=np.intp)
        self._thresholds = np.asarray([threshold for _, threshold in atoms], dtype=np.float64)
        self._weights, self._intercept = weights, intercept
        self._columns = np.unique(self._index)
        edges, tables, starts = [], [], [0]
        for column in self._columns:
            own = np.flatnonzero(self._index == column)
            own = own[np.argsort(self._thresholds[own], kind="stable")]
            edges.append(self._thresholds[own])
            starts.append(starts[-1] + len(own))
            # With c thresholds below an entry, the stumps from the c-th on are one.
            above = np.cumsum(weights[own][::-1], axis=0)[::-1]
            tables.append(np.vstack([above, np.zeros_like(weights[:1])]))
        self._edges = np.concatenate([*edges, np.empty(0)])
        self._tables = np.concatenate([*tables, weights[:0]])
        self._starts = np.asarray(starts, dtype=np.int64)

    def row(self, x: np.ndarray) -> np.ndarray:
        """Return the scores of one row."""
        below = (x[self._index] <= self._thresholds).astype(self._weights.dtype)
        scores: np.ndarray = below @ self._weights + self._intercept
        return scores

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of some rows: ``(n_samples, n_outputs)``."""
        if len(X) < _FEW_ROWS:
            below = (X[:, self._index] <= self._thresholds).astype(self._weights.dtype)
            few: np.ndarray = below @ self._weights + self._intercept
            return few
        from mixnorm.pools.stumps_jit import stump_scores

        scores = np.repeat(self._intercept[None, :], len(X), axis=0)
        values = for_compiled(X)
        parts = values, self._columns, self._starts, self._edges, self._tables, scores
        each = len(self._edges) + len(self._columns) * scores.shape[1]
        for rows in chunks(len(X), each, parallel=True):
            stump_scores(*parts, rows.start, rows.stop)
        return scores


class BoxScorer:
    """Scores of boxes: the weights of those that a row lies in.

    The weights of all boxes that read the same one or two columns are added up beforehand, by
    where a row lies among the thresholds of these columns; boxes that read more are looked at one
    by one.

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
        self._weights, self._intercept = _in_double(weights, intercept)
        shape = (len(atoms), max([len(atom) for atom in atoms], default=1))
        self._columns = np.zeros(shape, dtype=np.intp)
        self._lows, self._highs = np.full(shape, -np.inf), np.full(shape, np.inf)
        for box, atom in enumerate(atoms):
            self._columns[box] = atom[0][0]  # a box of fewer sides has some that are always true
            for place, (column, kind, threshold) in enumerate(atom):
                self._columns[box, place] = column
                (self._highs if kind == "<=" else self._lows)[box, place] = threshold
        self._atoms = list(atoms)
        self._tables: BoxTables | None = None

    def row(self, x: np.ndarray) -> np.ndarray:
        """Return the scores of one row."""
        values = x[self._columns]
        inside = ((self._lows < values) & (values <= self._highs)).all(axis=1)
        scores: np.ndarray = inside.astype(self._weights.dtype) @ self._weights + self._intercept
        return scores

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of some rows: ``(n_samples, n_outputs)``."""
        if len(X) < _FEW_ROWS:  # not worth adding weights up for
            sides = X[:, self._columns]
            inside = ((self._lows < sides) & (sides <= self._highs)).all(axis=2)
            few: np.ndarray = inside.astype(self._weights.dtype) @ self._weights + self._intercept
            return few
        from mixnorm.pools.boxes_jit import box_scores, table_scores

        scores = np.repeat(self._intercept[None, :], len(X), axis=0)
        values = for_compiled(X)
        if self._tables is None:
            self._tables = BoxTables.of(self._atoms, self._weights)
        tables = self._tables
        rest = tables.rest
        boxes = self._columns[rest], self._lows[rest], self._highs[rest], self._weights[rest]
        each = len(tables.edges) + len(tables.pairs) * scores.shape[1]
        each += boxes[0].size + boxes[3].size
        for rows in chunks(len(X), each, parallel=True):
            table_scores(
                values, tables.columns, tables.starts, tables.edges, tables.pairs, tables.firsts,
                tables.sums, scores, rows.start, rows.stop,
            )  # fmt: skip
            box_scores(values, *boxes, scores, rows.start, rows.stop)
        return scores


@dataclass(frozen=True)
class BoxTables:
    """The weights of boxes that read at most two columns, added up.

    Parameters
    ----------
    columns : ndarray of int
        The columns of ``X`` that such boxes read.
    starts, edges : ndarray
        ``edges[starts[c]:starts[c + 1]]`` are the thresholds in the ``c``-th of them.
    pairs : ndarray of shape (n_tables, 2)
        Places in ``columns``; -1 for the second of a table of one column.
    firsts : ndarray of int
        Row of ``sums`` where each table begins; then it goes by how many thresholds of the first
        column lie below an entry, and for each of these by those of the second.
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
        groups, rest = grouped(atoms)
        columns = sorted({column for group in groups for column in group})
        edges = {
            column: sorted(
                {
                    threshold
                    for boxes in groups.values()
                    for box in boxes
                    for other, _, threshold in atoms[box]
                    if other == column
                }
            )
            for column in columns
        }
        sums, firsts = [weights[:0]], [0]
        for group, boxes in groups.items():
            table = np.zeros((*(len(edges[column]) + 1 for column in group), weights.shape[1]))
            for box in boxes:
                spans = [_span(atoms[box], column, edges[column]) for column in group]
                table[tuple(spans)] += weights[box]
            sums.append(table.reshape(-1, weights.shape[1]).astype(weights.dtype))
            firsts.append(firsts[-1] + len(sums[-1]))
        places = {column: place for place, column in enumerate(columns)}
        pairs = [(places[group[0]], places[group[1]] if len(group) > 1 else -1) for group in groups]
        starts = np.cumsum([0, *(len(edges[column]) for column in columns)])
        return cls(
            np.asarray(columns, dtype=np.intp),
            starts.astype(np.int64),
            np.asarray([edge for column in columns for edge in edges[column]], dtype=np.float64),
            np.asarray(pairs, dtype=np.int64).reshape(-1, 2),
            np.asarray(firsts[:-1], dtype=np.int64),
            np.concatenate(sums),
            np.asarray(rest, dtype=np.intp),
        )


def grouped(atoms: Sequence[Any]) -> tuple[dict[tuple[int, ...], list[int]], list[int]]:
    """Return boxes by the one or two columns that they read, and those that read more.

    A table goes with the square of the number of thresholds: of very many boxes none is made.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    rest = []
    if len(atoms) > _MOST_TABLED:
        return groups, list(range(len(atoms)))
    for box, atom in enumerate(atoms):
        read = tuple(dict.fromkeys(column for column, _, _ in atom))
        if len(read) > 2:
            rest.append(box)
        else:
            groups.setdefault(read, []).append(box)
    return groups, rest


def _span(atom: Any, column: int, edges: list[float]) -> slice:
    """Return the numbers of thresholds below an entry, in a column, with which a box holds."""
    low, high = 0, len(edges) + 1
    for other, kind, threshold in atom:
        if other == column and kind == "<=":
            high = edges.index(threshold) + 1
        elif other == column:
            low = edges.index(threshold) + 1
    return slice(low, high)

"""Functions of a block of rows: the loss of a model there, its gradient, and facts of new columns.

A cluster's workers get these with the weights of the model, and return small arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm._chunks import row_blocks
from mixnorm.data import Block, add
from mixnorm.losses import SmoothLoss

# Bytes of an array of scores: a few of them fit into the second-level cache of a processor.
_BYTES_IN_CACHE = 1 << 18


@dataclass(frozen=True, eq=False)
class RowModel:
    """A model of some columns, as a block needs it.

    Parameters
    ----------
    loss : SmoothLoss
        The loss.
    weights : ndarray of shape (n_columns, n_outputs)
        The weights of the first rows that a block has made, the chosen columns.
    intercept : ndarray of shape (n_outputs,)
        The intercept.
    total : float
        The weights of all rows, added up.
    class_weight : ndarray or None
        The weight of each class, for targets that are codes of classes.
    dtype : dtype
        The dtype to compute in.
    """

    loss: SmoothLoss
    weights: np.ndarray
    intercept: np.ndarray
    total: float
    class_weight: np.ndarray | None
    dtype: np.dtype[Any]

    @property
    def n_columns(self) -> int:
        """Number of chosen columns."""
        return len(self.weights)

    def weigh(self, block: Block) -> np.ndarray:
        """Return the weights of the rows, as shares of the weight of all rows."""
        weight = weigh_rows(block.y, block.weight, self.class_weight, block.size)
        return np.asarray(weight / self.total, dtype=self.dtype)

    def cut(self, block: Block) -> Iterator[Block]:
        """Yield parts of a block that are small enough for arrays of scores to stay in the cache.

        Workers on several processors then do not wait for the memory that they share.
        """
        each = len(self.intercept) * self.dtype.itemsize
        for part in row_blocks(block.size, _BYTES_IN_CACHE, each):
            rows = slice(block.rows.start + part.start, block.rows.start + part.stop)
            y, weight, made = block.y[part], block.weight, block.made
            yield replace(
                block,
                rows=rows,
                X=None,
                y=y,
                weight=None if weight is None else weight[part],
                made=None if made is None else made[:, part],
                codes=None,
            )

    def evaluate(self, block: Block) -> tuple[float, np.ndarray, Any, np.ndarray]:
        """Return loss, residual, encoded targets and weights of the rows of a block."""
        weight, k = self.weigh(block), len(self.intercept)
        target = self.loss.encode(block.y, k, weight)
        # Scores lie output by output, as losses read them.
        if self.n_columns:
            design = block.made[: self.n_columns]
            scores = (self.weights.T.astype(self.dtype) @ design).T
            scores += self.intercept.astype(self.dtype)
        else:
            row = self.intercept.astype(self.dtype)
            scores = np.repeat(row[:, None], block.size, axis=1).T
        value, residual = self.loss.value_and_residual(scores, target, weight)
        return value, residual, target, weight


def weigh_rows(
    y: np.ndarray, weight: np.ndarray | None, class_weight: np.ndarray | None, size: int
) -> np.ndarray:
    """Return the weights of rows, times those of their classes, in double precision."""
    found = np.ones(size) if weight is None else np.asarray(weight, dtype=np.float64)
    return found if class_weight is None else found * class_weight[y]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The loss of a model on all rows, and sums that follow from its residual.

    Attributes
    ----------
    value : float
        The loss.
    gradient : ndarray of shape (n_columns, n_outputs)
        The gradient in the weights of the chosen columns.
    total, errors, largest : ndarray of shape (n_outputs,)
        The sums of the residual and of its magnitudes, and the largest of these.
    """

    value: float
    gradient: np.ndarray
    total: np.ndarray
    errors: np.ndarray
    largest: np.ndarray


def join_evaluations(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add the parts of two evaluations; of the last, the largest magnitudes, take the larger."""
    return *add(left[:-1], right[:-1]), np.maximum(left[-1], right[-1])


@dataclass(frozen=True, eq=False)
class Evaluate:
    """Computes the parts of an :class:`Evaluation`."""

    model: RowModel

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return the attributes of the evaluation of a block."""
        return functools.reduce(join_evaluations, map(self._evaluate, self.model.cut(block)))

    def _evaluate(self, block: Block) -> tuple[Any, ...]:
        value, residual, _, _ = self.model.evaluate(block)
        shape = 0, residual.shape[1]
        gradient = block.made @ residual if self.model.n_columns else np.zeros(shape)
        sizes = np.abs(residual)
        # Output by output in memory: all of these run along contiguous numbers.
        total = residual.sum(axis=0, dtype=np.float64)
        errors = sizes.sum(axis=0, dtype=np.float64)
        return value, _double(gradient), total, errors, _double(sizes.max(axis=0))


@dataclass(frozen=True, eq=False)
class SumOver:
    """Computes a function of the columns or codes of a block and of the residual of a model."""

    model: RowModel
    function: Callable[[Any, np.ndarray], Any]

    def __call__(self, block: Block) -> Any:
        """Return the value of the function."""
        X = block.X if block.codes is None else block.codes
        return self.function(X, self.model.evaluate(block)[1])


@dataclass(frozen=True, eq=False)
class Probe:
    """Computes facts of the columns of new atoms, which the recipe makes after the chosen ones.

    ``widths`` has the number of columns of each atom; ``curved`` asks for curvatures.
    """

    model: RowModel
    widths: tuple[int, ...]
    curved: bool = True

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return slopes, touched errors, their squares and curvatures.

        Slopes and curvatures have a row for each column, ``sizes @ errors`` and
        ``sizes² @ errors`` (:eq:`touched-loss`) one for each atom.
        """
        found: tuple[Any, ...] = functools.reduce(add, map(self._probe, self.model.cut(block)))
        return found

    def _probe(self, block: Block) -> tuple[Any, ...]:
        model, rows = self.model, block.made[self.model.n_columns :]
        _, residual, target, weight = model.evaluate(block)
        errors, squares = np.abs(residual), rows * rows
        if len(self.widths) == len(rows):  # the usual case, an atom of one column
            sizes, squared_sizes = np.abs(rows), squares
        else:
            ends = np.concatenate([[0], np.cumsum(self.widths)[:-1]]).astype(np.intp)
            squared_sizes = np.add.reduceat(squares, ends, axis=0)
            sizes = np.sqrt(squared_sizes)
        curvature = None
        if self.curved:
            curvature = _double(squares @ model.loss.curvature(residual, target, weight))
        return (
            _double(rows @ residual),
            _double(sizes @ errors),
            _double(squared_sizes @ errors),
            curvature,
        )


def _double(array: np.ndarray) -> np.ndarray:
    """Return an array in double precision: sums of many blocks keep their digits."""
    return np.asarray(array, dtype=np.float64)

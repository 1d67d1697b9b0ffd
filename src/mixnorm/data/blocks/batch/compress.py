"""A small table with the same squared loss as a large one (:eq:`compressed-squares`).

Least squares see a table through its means and its second moments alone. A factor of the moments
has as many rows as there are columns and outputs together, and gives the same loss for all weights:
one pass over the table serves every penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm._chunks import blocks as split_rows
from mixnorm.data.blocks.batch.survey import Survey, check_row_weights
from mixnorm.data.blocks.batch.targets import as_targets
from mixnorm.data.blocks.sources import ALL_COLUMNS
from mixnorm.data.blocks.table import Block, BlockTable

#: Most columns and outputs together: the moments then take 32 MB.
LARGEST_WIDTH = 2048
# Bytes of the rows of a block that are converted at a time.
_BYTES_CONVERTED = 1 << 21


@dataclass(frozen=True, eq=False)
class Compressed:
    """A small table that stands for a large one under the squared loss.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        The columns in standard deviations, about their means (or, without an intercept, in roots of
        their mean squares about zero). Columns that do not vary are zero.
    Y : ndarray of shape (n_rows, n_outputs)
        The targets, likewise.
    weight : ndarray of shape (n_rows,)
        Equal weights, which sum to one.
    centre, scale : ndarray of shape (n_features,)
        What was subtracted from the columns, and what they were divided by; zero for those that do
        not vary.
    target_centre, target_scale : ndarray of shape (n_outputs,)
        The same for the targets.
    """

    X: np.ndarray
    Y: np.ndarray
    weight: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    target_centre: np.ndarray
    target_scale: np.ndarray


def compress(
    table: BlockTable, survey: Survey, *, centred: bool = True, weight: np.ndarray | None = None
) -> Compressed:
    """Return a small table with the same squared loss, from one pass.

    With ``centred`` the loss is that with the best intercept, which is zero in the small table:
    its columns and targets have mean zero.

    Parameters
    ----------
    table : BlockTable
        The table, with targets that are numbers.
    survey : Survey
        The results of one pass, with :class:`OutputFacts` as the facts of the targets.
    centred : bool
        Measure columns and targets about their means, as with an intercept.
    weight : array of shape (n_rows,), optional
        Weights in place of those of the table, the same as in the survey.

    Returns
    -------
    Compressed
        It has one row for each column and output, and one more if it is centred.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.data import from_arrays, join_numbers, number_facts, survey
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> table = from_arrays(X, X @ [1.0, 2.0] + 3.0)
    >>> found = survey(table, X.dtype, target=number_facts, join_targets=join_numbers)
    >>> small = compress(table, found)
    >>> small.X.shape, small.Y.shape
    ((4, 2), (4, 1))
    >>> slope = np.linalg.lstsq(small.X, small.Y, rcond=None)[0].ravel()
    >>> (slope * small.target_scale / small.scale).round(9).tolist()
    [1.0, 2.0]
    """
    width = table.shape[1]
    parts = survey.statistics, survey.target.moments
    low, high, centre, scale = (
        np.concatenate([np.asarray(getattr(part, name), np.float64) for part in parts])
        for name in ("low", "high", "mean", "deviation")
    )
    if centred:
        varies = high > low
    else:
        scale, centre = np.hypot(centre, scale), np.zeros_like(centre)
        varies = np.maximum(np.abs(low), np.abs(high)) > 0.0
    # The inverse of a scale must be a number.
    scale = np.where(varies & (scale > 4.0 * np.finfo(np.float64).tiny), scale, 0.0)
    function = _SecondMoments(centre, scale, width)
    beside = () if weight is None else (weight,)
    total, first, second = table.sum(function, columns=ALL_COLUMNS, target=True, beside=beside)
    second /= total
    if centred:
        # The means of a survey are as exact as its dtype; what they are off by is known now.
        first /= total
        second -= np.outer(first, first)
        centre = centre + scale * first
    rows = _factor(second)
    rows[:, scale == 0.0] = 0.0  # and not the rounding of the factor
    if centred:
        rows = _balance(rows)
    rows *= np.sqrt(len(rows))
    return Compressed(
        np.ascontiguousarray(rows[:, :width]),
        np.ascontiguousarray(rows[:, width:]),
        np.full(len(rows), 1.0 / len(rows)),
        centre[:width],
        scale[:width],
        centre[width:],
        scale[width:],
    )


def _factor(second: np.ndarray) -> np.ndarray:
    """Return a matrix whose product with itself, transposed first, is given."""
    values, vectors = np.linalg.eigh(second)
    # Rounding makes zeros slightly negative.
    found: np.ndarray = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return found


def _balance(rows: np.ndarray) -> np.ndarray:
    """Return one row more, such that columns sum to zero and their products stay as they are."""
    # The reflection that swaps the last unit vector and the constant one keeps products; columns
    # without a last entry become orthogonal to the constant vector.
    count = len(rows) + 1
    mirror = np.full(count, -1.0 / np.sqrt(count))
    mirror[-1] += 1.0
    found = np.concatenate([rows, np.zeros((1, rows.shape[1]))])
    found -= np.outer(mirror, (2.0 / (mirror @ mirror)) * (mirror @ found))
    return found


@dataclass(frozen=True, eq=False)
class _SecondMoments:
    """Sums the weights of a block, and first and second moments of its columns and targets."""

    centre: np.ndarray
    scale: np.ndarray
    width: int

    def __call__(self, block: Block) -> tuple[Any, ...]:
        size = len(self.centre)
        given = block.beside[0] if block.beside else block.weight
        weight, Y = check_row_weights(given, block.size), as_targets(block.y)
        safe = np.where(self.scale > 0.0, self.scale, 1.0)
        first, second = np.zeros(size), np.zeros((size, size))
        step = max(1, _BYTES_CONVERTED // (8 * size))
        for rows in split_rows(block.size, step):
            part, used = block.X[rows], weight[rows] > 0.0
            values = np.empty((part.shape[0], size))
            values[:, : self.width] = part.toarray() if is_sparse(part) else part
            values[:, self.width :] = Y[rows]
            if not np.all(used):  # such rows may hold anything
                values = values[used]
            values -= self.centre
            values /= safe
            values[:, self.scale == 0.0] = 0.0
            root = np.sqrt(weight[rows][used])
            values *= root[:, None]
            first += root @ values
            second += values.T @ values
        return float(np.sum(weight)), first, second

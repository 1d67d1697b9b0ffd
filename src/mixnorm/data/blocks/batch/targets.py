"""Facts about the targets of a table: labels, or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.data.blocks.batch.survey import (
    Moments,
    RowError,
    check_row_weights,
    join_moments,
    placed_errors,
    shifted_errors,
)
from mixnorm.data.blocks.table import Block, BlockTable

# --- labels


@dataclass(frozen=True, eq=False)
class LabelFacts:
    """The labels of some rows.

    Attributes
    ----------
    classes : ndarray
        The labels, sorted.
    counts, weights : ndarray of shape (n_classes,)
        The rows of each, and the sum of their weights.
    """

    classes: np.ndarray
    counts: np.ndarray
    weights: np.ndarray


def label_facts(y: np.ndarray, weight: np.ndarray | None) -> LabelFacts:
    """Return the labels of some rows, with their rows and weights.

    Examples
    --------
    >>> import numpy as np
    >>> first = label_facts(np.array(["b", "a", "b"]), None)
    >>> both = join_labels(first, label_facts(np.array(["cc"]), np.array([0.5])))
    >>> both.classes.tolist(), both.counts.tolist(), both.weights.tolist()
    (['a', 'b', 'cc'], [1, 2, 1], [1.0, 2.0, 0.5])
    """
    y = check_labels(y)
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, minlength=len(classes))
    weights = counts.astype(np.float64)
    if weight is not None:
        weights = np.bincount(codes, np.asarray(weight, np.float64), minlength=len(classes))
    return LabelFacts(classes, counts, weights)


def join_labels(left: LabelFacts, right: LabelFacts) -> LabelFacts:
    """Return the labels of two parts of a table."""
    if len(left.classes) == 0 or len(right.classes) == 0:
        return left if len(right.classes) == 0 else right
    if _kind(left.classes[0]) != _kind(right.classes[0]):
        kinds = sorted({type(each.classes.tolist()[0]).__name__ for each in (left, right)})
        raise TypeError(_MIXED.format(", ".join(kinds)))
    classes, codes = np.unique(np.concatenate([left.classes, right.classes]), return_inverse=True)
    counts = np.zeros(len(classes), dtype=left.counts.dtype)
    weights, middle = np.zeros(len(classes)), len(left.classes)
    for part, places in ((left, codes[:middle]), (right, codes[middle:])):
        counts[places] += part.counts
        weights[places] += part.weights
    return LabelFacts(classes, counts, weights)


_MIXED = (
    "The labels of the table are of several types ({}), which cannot be sorted. Give labels of one "
    "type, for example str(label) for each."
)


def check_labels(y: np.ndarray) -> np.ndarray:
    """Return the labels of a block as one column; raise for what cannot be a label."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim > 2:
        raise ValueError(f"The targets have {y.ndim} dimensions, and labels are one column.")
    if y.ndim != 1:
        raise ValueError(
            f"The table has {y.shape[1]} target columns, and labels are one column; name one of "
            "them as the target."
        )
    if y.dtype.kind in "cS":
        what = "complex numbers" if y.dtype.kind == "c" else "bytes"
        raise TypeError(
            f"The labels of the table are {what}; give whole numbers, texts or booleans."
        )
    if y.dtype.kind == "f":
        odd = ~np.isfinite(y) | (y != np.floor(y))
        if np.any(odd):
            row = int(np.flatnonzero(odd)[0])
            raise RowError(
                f"The target is {y[row]} in {{place}}, which is not a label: classes are whole "
                "numbers, texts or booleans. Leave out rows without a label; for numbers use a "
                "regressor.",
                row,
                row,
            )
    if y.dtype.kind == "O":
        values = y.tolist()
        for row, value in enumerate(values):
            if value is None or value != value:
                raise RowError(
                    f"The target is {value} in {{place}}, which is not a label; leave such rows "
                    "out.",
                    row,
                    row,
                )
        if len({_kind(value) for value in values}) > 1:
            kinds = sorted({type(value).__name__ for value in values})
            raise TypeError(_MIXED.format(", ".join(kinds)))
    return y


def _kind(value: object) -> Any:
    """Return a kind within which labels can be sorted: text, number, or their type."""
    for kind in (str, (int, float, np.number, np.bool_)):
        if isinstance(value, kind):
            return kind
    return type(value)


# --- numbers


@dataclass(frozen=True, eq=False)
class OutputFacts:
    """Facts about targets that are numbers.

    Attributes
    ----------
    single : bool
        Whether they are one column, and not a table with one.
    moments : Moments or None
        Statistics of the outputs over rows of positive weight, without rows that lack a target.
    missing : int
        Number of targets that are NaN.
    n_outputs : int
        Number of columns of the targets.
    """

    single: bool
    moments: Moments | None
    missing: int
    n_outputs: int


def number_facts(
    y: np.ndarray, weight: np.ndarray | None, *, allow_missing: bool = False
) -> OutputFacts:
    """Return facts about the targets of some rows; raise for those that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> found = number_facts(np.array([1.0, 3.0]), None)
    >>> found.single, found.moments.mean.tolist(), found.moments.deviation.tolist()
    (True, [2.0], [1.0])
    """
    given = check_row_weights(weight, len(y))
    Y = as_targets(y)
    bad = np.isinf(Y) if allow_missing else ~np.isfinite(Y)
    if np.any(bad):
        row, output = (int(each) for each in np.argwhere(bad)[0])
        raise RowError(
            f"The target is {Y[row, output]} in {{place}}; targets must be finite numbers: leave "
            "out such rows.",
            row,
            row,
        )
    lacks = np.isnan(Y)
    if np.any(lacks):
        used = ~np.any(lacks, axis=1)
        Y, given = Y[used], given[used]
    moments = Moments.of(Y, given, np.dtype(np.float64))
    return OutputFacts(np.ndim(y) == 1, moments, int(np.sum(lacks)), Y.shape[1])


def join_numbers(left: OutputFacts, right: OutputFacts) -> OutputFacts:
    """Return the facts of two parts of a table."""
    moments = join_moments(left.moments, right.moments)
    return OutputFacts(left.single, moments, left.missing + right.missing, left.n_outputs)


def as_targets(y: np.ndarray) -> np.ndarray:
    """Return the targets of a block in float64, ``(n_samples, n_outputs)``."""
    y = np.asarray(y)
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: the targets of the table.")
    try:
        Y = y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The targets of the table, such as {y.ravel()[0]!r}, are not numbers; regression "
            "needs numeric targets."
        ) from None
    return Y[:, None] if Y.ndim == 1 else Y


# --- arrays by row, in memory


def gather_labels(table: BlockTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of a table, sorted, and the place of each row's label among them.

    It reads the targets twice, and never holds the labels of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.data import from_arrays
    >>> classes, codes = gather_labels(from_arrays(np.ones((3, 1)), np.array(["b", "a", "b"])))
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    with placed_errors(table):
        classes = table.sum(_FindLabels(), target=True, combine=join_labels).classes
        codes = np.empty(len(table), dtype=np.intp)
        for rows, part in table.scan(_Encode(classes), target=True):
            codes[rows] = part
    return classes, codes


def gather_numbers(table: BlockTable) -> np.ndarray:
    """Return the targets of a table in float64; raise for those that are not finite."""
    found: Any = None
    with placed_errors(table):
        for rows, part in table.scan(_ReadNumbers(), target=True):
            if found is None:
                found = np.empty((len(table), *part.shape[1:]))
            found[rows] = part
    return np.asarray(found)


def gather_targets(table: BlockTable) -> np.ndarray:
    """Return the targets of a table as they are."""
    parts = [part for _, part in table.scan(_read_target, target=True)]
    return np.concatenate(parts)


def gather_weights(table: BlockTable) -> np.ndarray | None:
    """Return the weights of the rows of a table, None where it has none."""
    if not table.source.has_weight:
        return None
    found = np.empty(len(table))
    with placed_errors(table):
        for rows, part in table.scan(_read_weight):
            found[rows] = part
    return found


@dataclass(frozen=True)
class _FindLabels:
    def __call__(self, block: Block) -> LabelFacts:
        with shifted_errors(block):
            return label_facts(block.y, None)


@dataclass(frozen=True, eq=False)
class _Encode:
    classes: np.ndarray

    def __call__(self, block: Block) -> np.ndarray:
        return np.searchsorted(self.classes, check_labels(block.y)).astype(np.int32)


@dataclass(frozen=True)
class _ReadNumbers:
    def __call__(self, block: Block) -> np.ndarray:
        with shifted_errors(block):
            number_facts(block.y, None)
        Y = as_targets(block.y)
        return Y[:, 0] if np.ndim(block.y) == 1 else Y


def _read_target(block: Block) -> np.ndarray:
    return np.asarray(block.y)


def _read_weight(block: Block) -> np.ndarray:
    with shifted_errors(block):
        return check_row_weights(block.weight, block.size)

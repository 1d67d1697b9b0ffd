"""ShareBoost on tables of row blocks: what a fit gathers before the engine begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.data import (
    BlockTable,
    ColumnStatistics,
    LabelFacts,
    OutputFacts,
    RowBlock,
    Survey,
    as_targets,
    compress,
    join_labels,
    join_numbers,
    label_facts,
    number_facts,
    survey,
)
from mixnorm.engines import greedy
from mixnorm.estimators._common.inputs import weigh_classes
from mixnorm.estimators._common.units import check_alike, check_sizes
from mixnorm.losses import Squared
from mixnorm.models import ClassOutputs, NumberOutputs
from mixnorm.pools import BlockData, Columns, RowSample, RowShares

# From this many rows on, second derivatives are those of a sample of half as many, the same rows
# that the engine would draw from rows in memory.
_ROWS_TO_SAMPLE = 16_384
# Rows that rank the columns before the best are compared on all rows, and the rows that a table
# must have for that: the bounds of a small sample rule out too little.
_ROWS_TO_SCREEN, _LEAST_ROWS_TO_SCREEN = 1 << 17, 1 << 17
# Tables with more columns are not compressed: the moments would cost more than the rounds.
_WIDTH_TO_COMPRESS = 512
# Where less than this share of the rows has a positive weight, rows are drawn from these alone: of
# all rows, a sample would show too few that count.
_SHARE_USED = 0.5
# Share of the memory that the rows that rank columns may take.
_SHARE_FOR_SAMPLES = 0.125


@dataclass(frozen=True)
class LabelCodes:
    """Makes codes of the labels of a block: their places among the classes."""

    classes: Any

    @property
    def key(self) -> str:
        """The name under which codes are kept."""
        return "codes"

    def make(self, y: np.ndarray) -> np.ndarray:
        """Return the codes in the smallest type that holds them."""
        kind = np.int16 if len(self.classes) < 2**15 else np.int32
        y = np.asarray(y)
        return np.searchsorted(self.classes, y[:, 0] if y.ndim == 2 else y).astype(kind)


@dataclass(frozen=True, eq=False)
class Deviations:
    """Makes deviations of the targets of a block from their centre, in a unit."""

    centre: np.ndarray
    unit: float
    dtype: np.dtype[Any]

    @property
    def key(self) -> tuple[Any, ...]:
        """The name under which they are kept."""
        return ("deviations", self.unit, *self.centre.tolist())

    def make(self, y: np.ndarray) -> np.ndarray:
        """Return the deviations."""
        return np.asarray((as_targets(y) - self.centre) / self.unit, dtype=self.dtype)


@dataclass(frozen=True, eq=False)
class BlockTraining:
    """A table of blocks as the engine takes it.

    Attributes
    ----------
    data : BlockData
        For the pool.
    target : BlockTarget
        For the engine.
    weight : ndarray
        The weights of the sample.
    n_rows : float
        Number of rows, counted by their weights.
    """

    data: BlockData
    target: greedy.BlockTarget
    weight: np.ndarray
    n_rows: float
    survey: Survey

    def compresses(self, pool: Any, loss: Any) -> bool:
        """Tell whether a small table has the same loss for columns of this table."""
        width = self.data.table.shape[1]
        return isinstance(loss, Squared) and type(pool) is Columns and width <= _WIDTH_TO_COMPRESS

    def compress(self, outputs: NumberOutputs, centred: bool) -> CompressedRows:
        """Return the small table."""
        small = compress(self.data.table, self.survey, centred=centred)
        X = small.X * small.scale + small.centre
        Y = small.Y * small.target_scale + small.target_centre
        target = (Y - outputs.centre) / outputs.unit
        return CompressedRows(X, target, small.weight, self.survey.statistics)


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """A small table with the same squared loss as a large one (:eq:`compressed-squares`)."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    statistics: ColumnStatistics


def survey_labels(
    table: BlockTable, class_weight: Any, dtype: np.dtype[Any], name: str
) -> tuple[Survey, Any]:
    """Return a survey of a table with labels, and the weight of each class or None."""
    factors: Any = None
    weigh = None
    if class_weight is not None:
        found: LabelFacts = table.sum(_Labels(), target=True, combine=join_labels)
        factors = weigh_classes(class_weight, found.classes, found.weights)
        weigh = _ClassWeights(LabelCodes(found.classes), factors)
    result = survey(
        table, dtype, target=label_facts, join_targets=join_labels, samples=draw_rows(table),
        weigh=weigh,
    )  # fmt: skip
    classes = result.target.classes
    if len(classes) < 2:
        raise ValueError(
            f"{name} needs labels of at least two classes; the table has only {classes.tolist()!r}."
        )
    return result, factors


def survey_numbers(table: BlockTable, dtype: np.dtype[Any]) -> Survey:
    """Return a survey of a table with targets that are numbers."""
    samples = draw_rows(table)
    return survey(table, dtype, target=number_facts, join_targets=join_numbers, samples=samples)


@dataclass(frozen=True, eq=False)
class _Labels:
    """Finds the labels of a block."""

    def __call__(self, block: Any) -> LabelFacts:
        return label_facts(block.y, block.weight)


@dataclass(frozen=True, eq=False)
class _ClassWeights:
    """Multiplies the weights of rows by those of their classes."""

    codes: LabelCodes
    factors: np.ndarray

    def __call__(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weight * self.factors[self.codes.make(y)]


def draw_rows(table: BlockTable) -> tuple[np.ndarray, ...]:
    """Return the numbers of the rows for second derivatives, and of those that rank columns.

    They are drawn from the rows of positive weight where these are few, and else from all.
    """
    used = find_used_rows(table)
    found = _draw(table, table.shape[0] if used is None else used.size)
    return found if used is None else tuple(used.take(each) for each in found)


def _draw(table: BlockTable, n: int) -> tuple[np.ndarray, ...]:
    """Return samples of the numbers below ``n``, the number of rows to draw from."""
    generator = np.random.default_rng(0)
    if n < _ROWS_TO_SAMPLE:
        return (np.arange(n),)
    bends = np.sort(generator.choice(n, _ROWS_TO_SAMPLE // 2, replace=False))
    each = table.source.row_bytes
    most = int(_SHARE_FOR_SAMPLES * table.memory) // each
    screen = min(_ROWS_TO_SCREEN, most, n // 4)
    if screen < len(bends) or n < _LEAST_ROWS_TO_SCREEN:
        return (bends,)
    return bends, np.sort(generator.choice(n, screen, replace=False))


@dataclass(frozen=True, eq=False)
class UsedRows:
    """The rows of positive weight, as a bit for each row, by blocks."""

    blocks: list[slice]
    bits: list[np.ndarray]

    @property
    def size(self) -> int:
        """Number of rows of positive weight."""
        return sum(int(np.unpackbits(each).sum()) for each in self.bits)

    def take(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers of the rows at some places among those used, both rising."""
        found, first = [], 0
        for rows, bits in zip(self.blocks, self.bits, strict=True):
            own = rows.start + np.flatnonzero(np.unpackbits(bits))
            ends = np.searchsorted(places, [first, first + len(own)])
            found.append(own[places[slice(*ends)] - first])
            first += len(own)
        return np.concatenate(found)


def find_used_rows(table: BlockTable) -> UsedRows | None:
    """Return the rows of positive weight; None unless they are a small share of many rows."""
    n = table.shape[0]
    if not table.source.has_weight or n < _ROWS_TO_SAMPLE:
        return None
    found = UsedRows(table.blocks, [bits for _, bits in table.scan(_mark_used)])
    return found if 0 < found.size < _SHARE_USED * n else None


def _mark_used(block: Any) -> np.ndarray:
    # Weights that are no weights are an error of the survey, which comes next.
    try:
        weight = np.asarray(block.weight, dtype=np.float64)
    except (TypeError, ValueError):
        weight = np.ones(block.size)
    return np.packbits(weight > 0.0)


def train_on_labels(
    table: BlockTable, found: Survey, factors: Any, outputs: ClassOutputs, dtype: np.dtype[Any]
) -> BlockTraining:
    """Return a table with labels as the engine takes it."""
    codes = LabelCodes(outputs.classes)
    counts: LabelFacts = found.target
    total = float(counts.weights.sum() if factors is None else counts.weights @ factors)
    return _train(table, found, codes, total, factors, dtype)


def train_on_numbers(
    table: BlockTable, found: Survey, outputs: NumberOutputs, dtype: np.dtype[Any]
) -> BlockTraining:
    """Return a table with numbers as targets as the engine takes it."""
    recipe = Deviations(np.asarray(outputs.centre, np.float64), float(outputs.unit), dtype)
    return _train(table, found, recipe, found.total_weight, None, dtype)


def number_outputs(found: Survey, fit_intercept: bool, dtype: np.dtype[Any], loss: Any) -> Any:
    """Return the outputs of a regressor: targets are centred and divided by one unit."""
    facts: OutputFacts = found.target
    moments: Any = facts.moments
    low, high = moments.low, moments.high
    sizes = np.maximum(np.abs(low), np.abs(high))
    check_sizes(sizes, str(dtype))
    centre = moments.mean if fit_intercept else np.zeros_like(moments.mean)
    spread = np.maximum(high - centre, centre - low)
    check_alike(spread, sizes)
    unit = float(np.max(spread)) or 1.0
    return NumberOutputs(facts.single, unit, centre, loss)


def _train(
    table: BlockTable,
    found: Survey,
    recipe: Any,
    total: float,
    factors: np.ndarray | None,
    dtype: np.dtype[Any],
) -> BlockTraining:
    numbers, used = draw_rows(table), find_used_rows(table)
    population = table.shape[0] if used is None else used.size
    samples = [
        _stand_for_all(population, rows, sample, recipe, total, factors, dtype)
        for rows, sample in zip(numbers, found.samples, strict=True)
    ]
    screened = len(samples) > 1
    shares = RowShares(total, None if factors is None else recipe, factors)
    seen_rows = samples[1] if screened else None
    data = BlockData(table, found.statistics, dtype, samples[0], shares, seen_rows)
    targets = [recipe.make(sample.y) for sample in found.samples]
    seen = targets[1] if screened else None
    target = greedy.BlockTarget(recipe, targets[0], seen, total, factors)
    return BlockTraining(data, target, samples[0].weight, total, found)


def _stand_for_all(
    population: int,
    rows: np.ndarray,
    sample: RowBlock,
    recipe: Any,
    total: float,
    factors: np.ndarray | None,
    dtype: np.dtype[Any],
) -> RowSample:
    """Return rows of a table with weights such that sums over them stand for sums over all."""
    weight = greedy.weigh_rows(recipe.make(sample.y), sample.weight, factors, len(rows))
    weight = weight * (population / len(rows) / total)
    # By columns, which are taken one by one.
    X = sample.X.tocsc() if is_sparse(sample.X) else np.asarray(sample.X)
    idle = weight == 0.0
    if np.any(idle):  # they may hold anything, and must not overflow
        X = X.copy()
        if is_sparse(X):
            X.data[idle[X.indices]] = 0
        else:
            X[idle] = 0
    return RowSample(rows, X.astype(dtype, copy=False), weight.astype(dtype), population)

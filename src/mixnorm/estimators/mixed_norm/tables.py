"""Tables of row blocks as the proximal engine takes them, and their units."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mixnorm.data import (
    LARGEST_WIDTH,
    BlockMatrix,
    BlockTable,
    Survey,
    compress,
    join_numbers,
    number_facts,
    survey,
)
from mixnorm.engines.proximal import SharedDesign
from mixnorm.estimators._common.blocks.tables import require_target, validate_table
from mixnorm.estimators._common.units import squared_frame
from mixnorm.estimators.mixed_norm.training import (
    ColumnUnits,
    Training,
    check_offsets,
    column_units,
    moderate,
    power_of_two,
)
from mixnorm.losses import Squared


def open_table(estimator: Any, table: BlockTable, dtypes: Any) -> BlockMatrix:
    """Return a table as a matrix, and note its columns in the estimator.

    ``dtypes`` are those to work in: the first one unless the table has another of them.
    """
    validate_table(estimator, table)
    require_target(estimator, table)
    allowed = dtypes if isinstance(dtypes, list) else [dtypes]
    found = table.dtype in [np.dtype(each) for each in allowed]
    return BlockMatrix(table, table.dtype if found else np.dtype(allowed[0]))


def refuse_table(search: Any, X: Any) -> None:
    """Raise for a table of row blocks, whose rows a search cannot split into folds."""
    if isinstance(X, BlockTable):
        name = type(search).__name__
        raise TypeError(
            f"{name} takes arrays in memory, not a table of row blocks. Choose alpha by it on a "
            f"sample of the rows, and fit the table with {name.removesuffix('CV')}; or call its "
            "path(table), and score the penalties on other rows."
        )


def convert_blocks(
    matrix: BlockMatrix, weight: np.ndarray, *, standardize: bool, centred: bool
) -> tuple[BlockMatrix, dict[str, Any]]:
    """Return a table in the units that the norm sees, and these units for ``Training``.

    One pass finds the units; columns are converted as they are read. The units are those of
    :func:`moderate` and of :func:`standardize_columns`.
    """
    table, dtype = matrix.table, matrix.dtype
    found = matrix.statistics(np.asarray(weight, dtype=np.float64))
    if not standardize:
        unit = power_of_two(float(np.max(found.largest, initial=0.0)), dtype)
        units = {"input_unit": unit, "largest_input": float(np.max(found.largest)) / unit}
        if unit == 1.0:
            return matrix, units
        width = matrix.shape[1]
        return BlockMatrix(table, dtype, ColumnUnits(np.zeros(width), np.full(width, unit))), units
    moved = centred and not table.sparse
    columns = column_units([found], centred=centred, moved=moved)
    if centred and not moved:
        check_offsets([found], columns.scale)
    safe = np.where(columns.scale > 0.0, columns.scale, np.inf)
    # Halves: the whole deviation may be beyond the largest float.
    farthest = found.half_farthest if moved else 0.5 * found.largest
    largest = 2.0 * float(np.max(farthest / safe, initial=0.0))
    return BlockMatrix(table, dtype, columns), {"columns": columns, "largest_input": largest}


def survey_numbers(table: BlockTable, dtype: Any, *, allow_missing: bool = False) -> Survey:
    """Return what one pass finds of a table whose targets are numbers."""
    facts = partial(number_facts, allow_missing=allow_missing)
    return survey(table, dtype, target=facts, join_targets=join_numbers)


def is_compressible(table: BlockTable, n_outputs: int = 1) -> bool:
    """Tell whether a small table can stand for a large one under the squared loss."""
    width = table.shape[1] + n_outputs
    return width <= LARGEST_WIDTH and width < table.shape[0]


def compress_training(
    table: BlockTable, found: Survey, *, standardize: bool, centred: bool
) -> Training:
    """Return the squared loss of a table as the engine takes it (:eq:`compressed-squares`)."""
    small, facts = compress(table, found, centred=centred), found.target.moments
    frame = squared_frame(facts.low, facts.high, small.target_centre, centred=centred)
    Y = small.Y * (small.target_scale / frame.unit)
    if standardize:
        largest = float(np.max(np.abs(small.X), initial=0.0))
        columns = ColumnUnits(small.centre, small.scale)
        X, units = small.X, {"columns": columns, "largest_input": largest}
    else:
        (X,), units = moderate([small.X * small.scale])
        units["columns"] = ColumnUnits(small.centre, np.ones(len(small.centre)))
    loss, n_outputs = Squared(), Y.shape[1]
    target = loss.encode(Y, n_outputs, small.weight)
    return Training(SharedDesign(X, n_outputs), loss, target, small.weight, frame, **units)

"""Tables of row blocks as the data of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm.data import BlockTable


def validate_table(estimator: Any, table: BlockTable, *, reset: bool = True) -> BlockTable:
    """Note the columns of a table in an estimator, or check that they are those of the fit.

    Its numbers are checked where they are read.
    """
    check_not_empty(estimator, table)
    n_features, name = table.shape[1], type(estimator).__name__
    names = None if table.names is None else np.asarray(table.names, dtype=object)
    if reset:
        estimator.n_features_in_ = n_features
        if names is not None:
            estimator.feature_names_in_ = names
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return table
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"The table has {n_features} columns, but {name} was fitted with "
            f"{estimator.n_features_in_}; give the same columns."
        )
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and names is not None and not np.array_equal(known, names):
        odd = next(place for place in range(n_features) if known[place] != names[place])
        raise ValueError(
            f"Column {odd} of the table is {names[odd]!r}, but was {known[odd]!r} in the fit; give "
            "the same columns in the same order."
        )
    return table


def check_not_empty(estimator: Any, table: BlockTable) -> None:
    """Raise for a table without rows or columns."""
    if 0 in table.shape:
        what = "rows" if table.shape[0] == 0 else "columns"
        raise ValueError(
            f"The table has no {what} (shape {table.shape}), and {type(estimator).__name__} needs "
            "at least one."
        )


def require_target(estimator: Any, table: BlockTable) -> None:
    """Raise for a table without targets."""
    if not table.source.has_target:
        raise ValueError(
            f"{type(estimator).__name__} requires targets, and the table has none; name its column "
            "with read_parquet(..., target=...), or give y to from_arrays."
        )


def require_y(estimator: Any, y: Any) -> Any:
    """Return the targets; raise if there are none."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Give "
            "one label or target per row, or a table of blocks, which has its own."
        )
    return y

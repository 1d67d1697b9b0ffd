"""Tables that are not in memory, and the error of what needs them there."""

from __future__ import annotations

import sys

from mixnorm.data.blocks.table import BlockTable


def is_collection(X: object) -> bool:
    """Tell whether ``X`` is a Dask collection, such as a Dask array or a Dask DataFrame."""
    # Nobody can have made one before Dask is imported.
    return "dask" in sys.modules and hasattr(type(X), "__dask_graph__")


def check_in_memory(X: object, taker: str) -> None:
    """Raise for a table of row blocks or a Dask collection, which ``taker`` does not work on.

    Examples
    --------
    >>> check_in_memory([[1.0, 2.0]], "MKLClassifier")
    """
    blocks = isinstance(X, BlockTable)
    if not blocks and not is_collection(X):
        return
    what = "a table of row blocks" if blocks else f"a Dask collection ({type(X).__name__})"
    give = (
        "Give a sample of rows: X, y, weight = table.sample(10_000, random_state=0)"
        if blocks
        else "If it fits into memory, give X.compute(); else some of its rows, such as "
        "mixnorm.data.from_arrays(X, y).sample(10_000, random_state=0)"
    )
    raise TypeError(
        f"{taker} takes arrays in memory, and X is {what}. {give}. ShareBoost*, MixedNorm*, "
        "MultiTaskLearner and the online learners work on blocks."
    )

"""What a search chooses from: the pools that ``--pool`` names, and how large a table they take."""

from __future__ import annotations

from typing import Any

from mixnorm.exceptions import TableError

#: The pools of ``mixnorm.pools`` that ``--pool`` names, in lower case, and what their features are
#: called.
FEATURE_WORDS = {
    "columns": "feature",
    "stumps": "stump",
    "boxes": "condition",
    "products": "product",
    "pieces": "piece",
}

# A piece has a weight for every column, and centres are compared with all rows in all columns.
_PIECES_COLUMNS = 1_000
# Some numbers are kept for every pair of columns: 2 GB.
_PRODUCTS_COLUMNS = 10_000
# A byte is kept for every entry, also of a sparse table.
_STUMPS_ENTRIES = 8_000_000_000


def make_pool(name: str, groups: list[int] | None) -> Any:
    """Return the pool of a name; None for columns that are features each.

    Parameters
    ----------
    name : str
        What ``--pool`` says, a key of ``FEATURE_WORDS``.
    groups : list of int, optional
        The feature that each column of the matrix belongs to, for a pool of columns.
    """
    from mixnorm import pools

    if name == "columns":
        return None if groups is None else pools.Columns(groups=groups)
    return getattr(pools, name.capitalize())()


def check_size(name: str, rows: int, columns: int) -> None:
    """Raise for a table that is too large for a pool, before time and memory are spent on it."""
    entries = rows * columns
    if name == "pieces" and columns > _PIECES_COLUMNS:
        raise TableError(
            f"--pool pieces takes at most {_PIECES_COLUMNS:,} columns, since each piece reads all "
            f"of them; the table gives {columns:,}. Leave columns out, or choose another pool."
        )
    if name == "products" and columns > _PRODUCTS_COLUMNS:
        raise TableError(
            f"--pool products takes at most {_PRODUCTS_COLUMNS:,} columns, since it looks at every "
            f"pair of them; the table gives {columns:,}. Leave columns out, or choose another pool."
        )
    if name in ("stumps", "boxes") and entries > _STUMPS_ENTRIES:
        raise TableError(
            f"--pool {name} keeps a byte for each of {rows:,} × {columns:,} entries, zeros too, "
            f"and takes at most {_STUMPS_ENTRIES / 1e9:g} billion. Give fewer rows or columns, or "
            "choose another pool."
        )

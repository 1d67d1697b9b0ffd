"""The pools that ``--pool`` names, and the largest tables that they accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixnorm.exceptions import TableError

if TYPE_CHECKING:
    from mixnorm.pools import Pool

#: The word for a feature of each pool. Keys are classes of ``mixnorm.pools`` in lower case.
FEATURE_WORDS = {
    "columns": "feature",
    "stumps": "stump",
    "boxes": "condition",
    "products": "product",
    "pieces": "piece",
}

# A piece has a weight for each column, and its centre is compared with all rows in all columns.
_PIECES_COLUMNS = 1_000
# A few numbers are stored for each pair of columns: 2 GB.
_PRODUCTS_COLUMNS = 10_000
# A byte is stored for each entry, zeros of a sparse table included.
_STUMPS_ENTRIES = 8_000_000_000


def make_pool(name: str, groups: list[int] | None) -> Pool | None:
    """Return the pool of a name; None if each column is a feature.

    Parameters
    ----------
    name : str
        The value of ``--pool``, a key of ``FEATURE_WORDS``.
    groups : list of int, optional
        The feature of each column of the matrix, for a pool of columns.
    """
    from mixnorm import pools

    if name == "columns":
        return None if groups is None else pools.Columns(groups=groups)
    made: Pool = getattr(pools, name.capitalize())()
    return made


def check_size(name: str, rows: int, columns: int) -> None:
    """Raise if a table is too large for a pool, before time and memory are spent on it."""
    limits = {
        "pieces": (_PIECES_COLUMNS, "each piece reads all of them"),
        "products": (_PRODUCTS_COLUMNS, "it examines all pairs of them"),
    }
    most, why = limits.get(name, (columns, ""))
    if columns > most:
        raise TableError(
            f"--pool {name} accepts at most {most:,} columns, because {why}; the table gives "
            f"{columns:,}. Leave columns out, or choose another pool."
        )
    if name in ("stumps", "boxes") and rows * columns > _STUMPS_ENTRIES:
        raise TableError(
            f"--pool {name} stores a byte for each of {rows:,} × {columns:,} entries, zeros "
            f"included, and accepts at most {_STUMPS_ENTRIES / 1e9:g} billion. Use fewer rows or "
            "columns, or choose another pool."
        )

"""Data: one view of dense and sparse tables, with products and some of the columns.

Open ``matrix.py``. The room imports no other.
"""

from mixnorm.data.matrix import (
    ColumnStatistics,
    DenseScan,
    SparseScan,
    column_ranges,
    column_statistics,
    is_list_of_tables,
    scan,
)

__all__ = [
    "ColumnStatistics",
    "DenseScan",
    "SparseScan",
    "column_ranges",
    "column_statistics",
    "is_list_of_tables",
    "scan",
]

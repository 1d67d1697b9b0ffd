"""Data: one view of dense, sparse and memory-mapped tables, with products and some of the columns.

Open ``base.py`` first, which says what every matrix can do; ``dense.py`` and ``sparse.py`` have the
two kinds. The room imports no other.
"""

from mixnorm.data.base import ColumnSet, ColumnStatistics, Matrix
from mixnorm.data.dense import DenseColumns, DenseMatrix
from mixnorm.data.matrix import as_matrix, is_list_of_tables
from mixnorm.data.sparse import SparseColumns, SparseMatrix

__all__ = [
    "ColumnSet",
    "ColumnStatistics",
    "DenseColumns",
    "DenseMatrix",
    "Matrix",
    "SparseColumns",
    "SparseMatrix",
    "as_matrix",
    "is_list_of_tables",
]

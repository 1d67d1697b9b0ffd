"""Tables of people: files in, matrices out, and models that remember how.

Open ``read.py`` first, then ``encoder.py``; ``rows`` has tables that come row by row. The room
imports no other: it takes the estimator of a ``TableModel`` as it is.
"""

from mixnorm.tables.columns import CategoryColumn, DateColumn, NumberColumn
from mixnorm.tables.encoder import SparseEncoder, TableEncoder, describe_encoding
from mixnorm.tables.marks import detect_decimal_mark
from mixnorm.tables.model import Predictions, TableModel
from mixnorm.tables.read import read_table
from mixnorm.tables.rows.columns import DECIDED_AT, RowColumn
from mixnorm.tables.rows.encoder import Features, RowEncoder, feature_names
from mixnorm.tables.rows.model import StreamModel
from mixnorm.tables.rows.reader import BadRow, Row, RowReader
from mixnorm.tables.table import SparseTable, Table
from mixnorm.tables.target import (
    Target,
    Task,
    as_target_numbers,
    compare_labels,
    find_column,
    read_target,
)
from mixnorm.tables.words import join_names, pluralize

__all__ = [
    "DECIDED_AT",
    "BadRow",
    "CategoryColumn",
    "DateColumn",
    "Features",
    "NumberColumn",
    "Predictions",
    "Row",
    "RowColumn",
    "RowEncoder",
    "RowReader",
    "SparseEncoder",
    "SparseTable",
    "StreamModel",
    "Table",
    "TableEncoder",
    "TableModel",
    "Target",
    "Task",
    "as_target_numbers",
    "compare_labels",
    "describe_encoding",
    "detect_decimal_mark",
    "feature_names",
    "find_column",
    "join_names",
    "pluralize",
    "read_table",
    "read_target",
]

"""Tables of people: files in, matrices out, and models that remember how."""

from mixnorm.tables._columns import CategoryColumn, DateColumn, NumberColumn
from mixnorm.tables._encoder import SparseEncoder, TableEncoder, remarks
from mixnorm.tables._marks import table_mark
from mixnorm.tables._model import Predictions, TableModel
from mixnorm.tables._read import SparseTable, Table, read_table
from mixnorm.tables._row_columns import DECIDED_AT, RowColumn
from mixnorm.tables._row_encoder import Features, RowEncoder, feature_names
from mixnorm.tables._rows import BadRow, Row, RowReader
from mixnorm.tables._stream import StreamModel
from mixnorm.tables._target import (
    Target,
    Task,
    as_target_numbers,
    compare_labels,
    find_column,
    read_target,
)
from mixnorm.tables._words import counted

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
    "counted",
    "feature_names",
    "find_column",
    "read_table",
    "read_target",
    "remarks",
    "table_mark",
]

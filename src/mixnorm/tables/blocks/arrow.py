"""Columns of Arrow tables as pandas has them when a file is read at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.tables.table import convert_arrow_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def as_series(column: pa.ChunkedArray, name: str) -> pd.Series[Any]:
    """Return a column of an Arrow table as a series."""
    import pyarrow as pa

    return convert_arrow_table(pa.table([column], names=[name]), name, [], {}).frame[name]


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table, whose names are those of the table, as a data frame."""
    return convert_arrow_table(table, "", [], {}).frame


def is_text_type(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of texts."""
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    return str(kind) == "string_view"  # not known to older versions of Arrow


def find_distinct(column: pa.ChunkedArray, name: str) -> tuple[pd.Series[Any], np.ndarray]:
    """Return the distinct entries of a column, a missing one last, and the place of each row's."""
    import pyarrow as pa

    coded = column.combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = pa.concat_arrays(coded.chunks) if coded.num_chunks else pa.array([], column.type)
    coded = coded.dictionary_encode()
    words = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
    codes = coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    return as_series(pa.chunked_array([words]), name), np.asarray(codes, dtype=np.intp)


def apply_to_rows(
    column: pa.ChunkedArray, name: str, function: Callable[[pd.Series[Any]], np.ndarray]
) -> np.ndarray:
    """Return a function of the entries of a column, row by row.

    Texts repeat, and work on them is slow: each different one is looked at once.
    """
    if not is_text_type(column.type):
        return function(as_series(column, name))
    values, codes = find_distinct(column, name)
    return function(values)[codes]

"""Parquet files of one table: which they are, and what their footers say."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mixnorm.exceptions import TableError

_SUFFIXES = (".parquet", ".pq", ".parq")
# Columns in which pandas and Dask write the index of a data frame.
_INDEX_COLUMN = re.compile(r"__index_level_\d+__|__null_dask_index__")
# Footers of many columns and row groups take long to parse, and every task needs one.
_FOOTERS_KEPT = 32


class RowGroups(NamedTuple):
    """A file, and the number of rows of each of its row groups."""

    path: str
    rows: tuple[int, ...]


class TableColumns(NamedTuple):
    """The columns of a table: names of features, targets and weights, and their dtypes."""

    names: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    dtype: np.dtype[Any]
    #: The dtype of the targets; None where they are texts.
    target_dtype: np.dtype[Any] | None


def import_parquet() -> Any:
    """Return ``pyarrow.parquet``."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise TableError('Reading Parquet needs pyarrow: pip install "mixnorm[cli]"') from error
    return pq


def find_files(path: Any) -> list[str]:
    """Return the files that a path, a folder, a pattern or a list of these stands for."""
    if not isinstance(path, str | os.PathLike):
        if not isinstance(path, Iterable) or isinstance(path, bytes):
            raise TypeError(
                f"path={path!r} must be a file, a folder, a pattern such as 'data/*.parquet', or "
                f"a list of these, got {type(path).__name__}."
            )
        parts = [found for each in path for found in find_files(each)]
        if not parts:
            raise TableError("The list of Parquet files is empty; name at least one file.")
        return parts
    text = os.fspath(path)
    if os.path.isdir(text):
        found = _files_in(text)
    elif os.path.exists(text):
        found = [text]
    elif glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True), key=_natural)
        found = [each for match in matches for each in _expand(match)]
    else:
        raise TableError(f"{text} does not exist; give a Parquet file, a folder, or a pattern.")
    if not found:
        if glob.has_magic(text) and not os.path.exists(text):
            raise TableError(f"{text} matches no Parquet files.")
        raise TableError(
            f"{text} holds no Parquet files; files in folders need a name that ends in "
            f"{', '.join(_SUFFIXES)}."
        )
    # Workers of a cluster may run in other folders.
    return [os.path.abspath(each) for each in found]


def _expand(path: str) -> list[str]:
    return _files_in(path) if os.path.isdir(path) else [path]


def _files_in(folder: str) -> list[str]:
    """Return the Parquet files in a folder and below, without hidden ones."""
    found = []
    for each in Path(folder).rglob("*"):
        parts = each.relative_to(folder).parts
        hidden = any(part.startswith((".", "_")) for part in parts)
        if each.suffix.lower() in _SUFFIXES and not hidden and each.is_file():
            found.append(str(each))
    return sorted(found, key=_natural)


def _natural(path: str) -> list[Any]:
    """Return a key that sorts ``part.2`` before ``part.10``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path)]


class Footer(NamedTuple):
    """What the footer of a file says."""

    metadata: Any
    #: Arrow's type of each column.
    types: dict[str, Any]
    #: The numbers of the columns in the file.
    places: dict[str, int]
    rows: tuple[int, ...]


def read_footer(path: str) -> Footer:
    """Return the footer of a file; raise if the file has none."""
    import_parquet()
    try:
        found = os.stat(path)
    except OSError as error:
        raise TableError(
            f"{path} cannot be read ({error.strerror}). Every process that reads the table needs "
            "the file under this path."
        ) from error
    return _read_footer(path, found.st_mtime_ns, found.st_size)


@lru_cache(_FOOTERS_KEPT)
def _read_footer(path: str, changed: int, size: int) -> Footer:
    import pyarrow as pa

    pq = import_parquet()
    try:
        metadata = pq.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise TableError(damage_message(path, error)) from error
    doubled = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if doubled:
        raise TableError(
            f"{path} has several columns with the name {doubled[0]!r}; rename all but one."
        )
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    rows = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    return Footer(metadata, dict(zip(schema.names, schema.types, strict=True)), places, rows)


def damage_message(path: str, error: BaseException, where: str = "") -> str:
    """Return the message for a file that cannot be read."""
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return (
        f"{path}{where} cannot be read as Parquet ({reason}). The file is damaged or is not "
        "complete; write it again, or leave it out."
    )


def find_columns(
    files: Sequence[str], target: Any, weight: str | None, columns: Sequence[str] | None
) -> tuple[list[RowGroups], TableColumns]:
    """Return the row groups of all files that have rows, and the columns of the table."""
    targets = _as_names("target", target)
    if not (weight is None or isinstance(weight, str)):
        raise TypeError(f"weight={weight!r} must be the name of a column.")
    # Without the rest of the footer, which is large where there are many columns and row groups.
    footers = [(path, read_footer(path)._replace(metadata=None)) for path in files]
    full = [(path, footer) for path, footer in footers if sum(footer.rows)]
    if not full:
        which = f"{files[0]} has" if len(files) == 1 else f"The {len(files)} files have"
        more = "" if len(files) == 1 else f" (the first is {files[0]})"
        raise TableError(f"{which} no rows{more}; a table needs at least one.")
    roles = {**dict.fromkeys(targets, "target"), **({} if weight is None else {weight: "weight"})}
    if weight in targets:
        raise ValueError(f"weight={weight!r} is also the target; they are two columns.")
    names = _choose_features(*full[0], roles, columns)
    for path, footer in full:
        _check_names(path, footer, full[0][0], (*names, *roles), columns is None)
        for name in (*names, *([] if weight is None else [weight])):
            _check_number(path, name, footer.types[name], roles.get(name, "feature"))
    narrow = all(_is_narrow(footer.types[name]) for _, footer in full for name in names)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    known = TableColumns(tuple(names), targets, weight, dtype, _target_dtype(full, targets))
    return [RowGroups(path, footer.rows) for path, footer in full], known


def _choose_features(
    path: str, footer: Footer, roles: dict[str, str], columns: Sequence[str] | None
) -> list[str]:
    """Return the names of the features; raise if the file lacks a column."""
    known = list(footer.types)
    for name, role in roles.items():
        if name not in known:
            raise TableError(_unknown_message(path, role, name, known))
    if columns is None:
        names = [one for one in known if one not in roles and not _INDEX_COLUMN.fullmatch(one)]
        if not names:
            raise TableError(f"{path} has no columns beside the target and the weight.")
        return names
    names = list(_as_names("columns", columns))
    if not names:
        raise ValueError("columns=[] is empty; name at least one column, or leave it out.")
    for name in names:
        if name not in known:
            raise TableError(_unknown_message(path, "columns", name, known))
        if name in roles:
            raise ValueError(f"columns names {name!r}, which is also the {roles[name]}.")
    return names


def _as_names(parameter: str, value: Any) -> tuple[str, ...]:
    """Return names as a tuple."""
    if value is None:
        return ()
    if not isinstance(value, Iterable):
        raise TypeError(f"{parameter}={value!r} must be the name of a column, or a list of names.")
    names = (value,) if isinstance(value, str) else tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{parameter} must hold names of columns, got {name!r}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{parameter}={list(names)} names a column twice.")
    return names


def _unknown_message(path: str, parameter: str, name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3)
    listed = ", ".join(map(repr, near or names[:10]))
    lead = "Did you mean" if near else "Its columns are"
    more = " …" if not near and len(names) > 10 else ""
    return f"{path} has no column {name!r} ({parameter}). {lead} {listed}{more}{'?' * bool(near)}"


def _check_names(path: str, footer: Footer, first: str, names: Sequence[str], alone: bool) -> None:
    """Raise unless a file has the columns of the first one, and no others if ``alone``."""
    lacking = [one for one in names if one not in footer.types]
    if lacking:
        raise TableError(
            f"{path} has no column {lacking[0]!r}, which {first} has. Give the columns that all "
            "files have as columns=[...], or leave the file out."
        )
    known = set(names)
    extra = [one for one in footer.types if one not in known and not _INDEX_COLUMN.fullmatch(one)]
    if alone and extra:
        raise TableError(
            f"{path} has a column {extra[0]!r}, which {first} lacks. Give the columns that all "
            "files have as columns=[...], or leave the file out."
        )


def _check_number(path: str, name: str, kind: Any, role: str) -> None:
    if _value_dtype(kind) is None:
        needs = "weights" if role == "weight" else "features"
        advice = (
            "Convert it."
            if role == "weight"
            else "Leave it out with columns=[...]; mixnorm fit on the command line takes texts and "
            "dates too."
        )
        raise TableError(
            f"{path}: column {name!r} is of type {kind}, but {needs} must be numbers (integers, "
            f"floats, decimals or bools). {advice}"
        )


def is_text(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of texts, maybe with codes for them."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or str(kind) == "string_view"  # not known to older versions of Arrow
    )


def _value_dtype(kind: Any) -> np.dtype[Any] | None:
    """Return the dtype of numbers of a type of Arrow; None if it is not one of numbers."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        return np.dtype(np.float64)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    return None


def _is_narrow(kind: Any) -> bool:
    """Tell whether float32 holds all numbers of a type."""
    dtype = _value_dtype(kind)
    return dtype is not None and dtype.itemsize <= (4 if dtype.kind == "f" else 2)


def _target_dtype(
    full: Sequence[tuple[str, Footer]], targets: tuple[str, ...]
) -> np.dtype[Any] | None:
    """Return the dtype of the targets, or None for texts; raise for other types, and for both."""
    dtypes: list[np.dtype[Any]] = []
    texts = False
    for path, footer in full:
        for name in targets:
            kind = footer.types[name]
            dtype, place = _value_dtype(kind), f"{path}: target {name!r}"
            if dtype is None and not is_text(kind):
                raise TableError(
                    f"{place} is of type {kind}; targets are numbers, bools or texts. Convert it."
                )
            if dtype is None:
                texts = True
            else:
                dtypes.append(dtype)
            if texts and dtypes:
                raise TableError(
                    f"{place} is of type {kind}, unlike a target before it; targets are numbers "
                    "in all files, or texts in all files."
                )
    return np.result_type(*dtypes) if dtypes else None

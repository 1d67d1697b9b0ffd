"""Which commands read Parquet files block by block, and which files these are."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Sequence
from pathlib import Path

from mixnorm.cli.arguments.parser import UsageError
from mixnorm.exceptions import TableError

_OPTIONS = ("memory", "cluster", "checkpoint")
_PARQUET_MAGIC = b"PAR1"
# Predictions for a larger file are made block by block.
_LARGE_FILE = 1 << 26


def find_block_files(options: argparse.Namespace) -> list[str] | None:
    """Return the Parquet files to read block by block; None for a table that fits into memory.

    Parameters
    ----------
    options : Namespace
        The options of ``mixnorm fit`` or ``predict``.
    """
    asked = [f"--{name}" for name in _OPTIONS if getattr(options, name, None) is not None]
    many = names_many(options.files)
    if not asked and not many and not _writes_parquet(options):
        return None
    why = asked[0] if asked else "A table of several files" if many else "--output"
    if "-" in options.files:
        raise UsageError(f"{why} needs files; standard input is read into memory")
    if getattr(options, "format", None) not in (None, "parquet"):
        raise UsageError(f"{why} needs Parquet files, so that --format {options.format} is wrong")
    from mixnorm.data import find_files

    found = find_files(options.files)
    for path in found:
        if not is_parquet(path):
            raise TableError(_explain_convert(why, path))
    return found


def names_many(files: Sequence[str]) -> bool:
    """Tell whether the words on the command line name several files, a folder or a pattern."""
    if len(files) > 1 or os.path.isdir(files[0]):
        return True
    return glob.has_magic(files[0]) and not os.path.exists(files[0])


def _writes_parquet(options: argparse.Namespace) -> bool:
    """Tell whether predictions for one Parquet file are made block by block."""
    if options.command != "predict":
        return False
    path = options.files[0]
    if not os.path.isfile(path) or not is_parquet(path):
        return False
    return is_parquet_name(options.output) or os.path.getsize(path) > _LARGE_FILE


def is_parquet_name(place: str | None) -> bool:
    """Tell whether the name of an output asks for Parquet."""
    return place is not None and place.lower().endswith((".parquet", ".pq", ".parq"))


def is_parquet(path: str) -> bool:
    """Tell whether a file begins as a Parquet file does."""
    with open(path, "rb") as file:
        return file.read(4) == _PARQUET_MAGIC


def _explain_convert(why: str, path: str) -> str:
    """Return the error for a file that is not Parquet, with a command that converts it."""
    if os.path.getsize(path) == 0:
        return f"{path} is empty; leave it out, or write it again as Parquet."
    if not path.lower().endswith((".csv", ".tsv", ".txt", ".gz")):
        return f"{why} needs Parquet files, and {path} is none."
    new = Path(path).name.split(".")[0] + ".parquet"
    return (
        f"{why} needs Parquet files, and {path} is none. This converts a CSV file, a part at a "
        f'time: python -c "import pyarrow.csv as c, pyarrow.parquet as p; '
        f"r = c.open_csv('{path}'); w = p.ParquetWriter('{new}', r.schema); "
        '[w.write_batch(b) for b in r]; w.close()"'
    )


def name_table(files: Sequence[str]) -> str:
    """Return the name of a table in messages."""
    first = files[0]
    if len(files) > 1:
        return f"{Path(first).name} and {len(files) - 1} more"
    return Path(first).name if not glob.has_magic(first) else first


def name_model(files: Sequence[str]) -> str:
    """Return the first part of the default name of a model file."""
    first = Path(files[0])
    if first.is_dir():
        first = first.resolve()
    while glob.has_magic(first.name):
        first = first.parent
    if not first.name:
        first = Path.cwd()
    return first.name.split(".")[0] or "model"

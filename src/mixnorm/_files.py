"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces ``path`` only if the block ends without an error.

    Readers see the old file or the new one, never a part: the bytes go to a temporary file beside
    it, which is flushed to the disk and then renamed. If the block fails, nothing is left behind.
    An existing file keeps its mode, and links are followed. Anything but a regular file (a pipe,
    ``/dev/null``) is written to directly.

    Parameters
    ----------
    path : path-like
        Where to write the file.

    Yields
    ------
    binary file
        Open for writing.
    """
    given = Path(path)
    if given.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if given.exists() and not given.is_file():
        with given.open("wb") as straight:
            yield straight
        return
    place = given.resolve()
    # A part of the name, since the whole may already be as long as a file name can be.
    part = place.with_name(f".{place.name[:40]}.{secrets.token_hex(6)}.part")
    try:
        with _create(part, path) as file:
            yield file
            file.flush()
            # Without it a power failure could leave an empty file under the new name.
            os.fsync(file.fileno())
        if place.exists():
            part.chmod(place.stat().st_mode & 0o777)
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _create(part: Path, path: str | os.PathLike[str]) -> BinaryIO:
    """Create the temporary file; an error names the file that the user asked for."""
    try:
        return part.open("xb")
    except OSError as error:
        error.filename = os.fspath(path)
        raise

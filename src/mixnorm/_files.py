"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write, which takes its place only when the block has ended well.

    Readers see the old file or the new one, never a part: the bytes go to a file beside it, which
    is flushed to the disk and then renamed. If the block fails, nothing is left behind. The mode of
    an existing file is kept; a link is followed. What is no regular file (a pipe, ``/dev/null``) is
    written straight.

    Parameters
    ----------
    path : path-like
        Where the file shall be.

    Yields
    ------
    binary file
        To write to.
    """
    given = Path(path)
    if given.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if given.exists() and not given.is_file():
        with given.open("wb") as straight:
            yield straight
        return
    place = given.resolve()
    # Not the whole name, which may be as long as names can be.
    part = place.with_name(f".{place.name[:40]}.{secrets.token_hex(6)}.part")
    try:
        with _opened(part, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if place.exists():
            part.chmod(place.stat().st_mode & 0o777)
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _opened(part: Path, path: str | os.PathLike[str]) -> BinaryIO:
    """Create the file to write to; an error names the file that the user asked for."""
    try:
        return part.open("xb")
    except OSError as error:
        error.filename = os.fspath(path)
        raise

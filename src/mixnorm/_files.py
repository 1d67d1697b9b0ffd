"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
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
    place = Path(path).resolve()
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if place.exists() and not place.is_file():
        with place.open("wb") as straight:
            yield straight
        return
    handle, name = tempfile.mkstemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(place))
        os.replace(name, place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(place: Path) -> int:
    """Return the mode of the file that is replaced, or what a new file would get."""
    if place.exists():
        return place.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask

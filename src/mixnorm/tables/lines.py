"""Lines of a file or a pipe as they arrive, compressed or not, in UTF-8 or UTF-16."""

from __future__ import annotations

import bz2
import codecs
import hashlib
import lzma
import os
import select
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff

# Bytes requested at a time; a pipe returns what it has.
_BYTES_PER_READ = 1 << 18
# A longer line cannot be a row of a table.
_BYTES_PER_LINE = 1 << 26
_UNPACKERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}


class Lines(AbstractContextManager["Lines"]):
    r"""The lines of a source, read as they arrive.

    Each read takes what a single system call returns, so that lines of a slow pipe are read as soon
    as they arrive.

    Parameters
    ----------
    source : path-like
        A file, or ``"-"`` for standard input. It may be compressed (gzip, bzip2, xz).
    waiting : callable, optional
        Returns the context manager in which to wait for the source.

    Attributes
    ----------
    name : str
        The name of the source in messages.
    regular : bool
        Whether the source is a regular file, which can be read again.
    ahead : list of bytes
        Lines that were read but not taken, without line breaks.
    taken : int
        Number of lines taken.
    ended : bool
        Whether ``ahead`` holds the last lines of the source.
    unfinished : bool
        Whether the source ended with a line without a line break.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cars.csv"
    >>> _ = path.write_text("class;power\nvan;90\n")
    >>> with Lines(path) as lines:
    ...     lines.fill(1)
    ...     lines.take(1)
    ...     lines.ahead
    True
    [b'class;power']
    [b'van;90']
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.regular = False
        if str(source) == "-":
            self.name = "standard input"
            given = sniff.open_standard_input()
            self._file: Any = getattr(given, "raw", given)
        else:
            path = Path(source)
            if path.is_dir():
                raise TableError(f"{source} is a folder; name a file in it.")
            self.name, self.regular = path.name, path.is_file()
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._own, self._waiting = str(source) != "-", waiting
        self.ahead: list[bytes] = []
        self.taken, self.ended, self.unfinished = 0, False, False
        self._digest = hashlib.sha256()
        self._blocks = self._split()

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._own:
            self._file.close()

    def fill(self, count: int) -> bool:
        """Wait until ``count`` lines are ahead; return False if the source ends before."""
        while len(self.ahead) < count and not self.ended:
            block = next(self._blocks, None)
            if block is None:
                self.ended = True
            else:
                self.ahead += block
        return len(self.ahead) >= count

    def take(self, count: int) -> list[bytes]:
        """Remove the next lines from ``ahead`` and return them."""
        found = self.ahead[:count]
        del self.ahead[:count]
        self.taken += len(found)
        if found:
            self._digest.update(b"\n".join(found) + b"\n")
        return found

    def skip(self, count: int, digest: str) -> bool:
        """Take the first ``count`` lines; return False if their digest differs."""
        while self.taken < count and self.fill(1):
            self.take(count - self.taken)
        return self.taken == count and self.digest == digest

    @property
    def digest(self) -> str:
        """A checksum of the lines taken."""
        return self._digest.hexdigest()

    def _split(self) -> Iterator[list[bytes]]:
        """Yield the lines of each block that ends at least one."""
        parts: list[bytes] = []
        for block in as_utf8(self._read_unpacked(), self.name):
            lines = block.split(b"\n")
            parts.append(lines[0])
            if len(lines) == 1:
                if sum(map(len, parts)) > _BYTES_PER_LINE:
                    raise TableError(f"{self.name} is not a table: a line has more than 64 MB.")
                continue
            lines[0] = b"".join(parts)
            parts = [lines.pop()]
            yield [line.removesuffix(b"\r") for line in lines]
        rest = b"".join(parts)
        if rest:
            self.unfinished = True
            yield [rest.removesuffix(b"\r")]

    def _read_unpacked(self) -> Iterator[bytes]:
        head, blocks = _peek(self._read())
        packed = sniff.detect_compression(head[:8])
        if packed is None:
            yield from blocks
            return
        if packed not in _UNPACKERS:
            raise TableError(
                f"{self.name} is compressed with {packed}; decompress it into a pipe: "
                f"{packed}cat {self.name} | mixnorm stream - ..."
            )
        yield from unpack_blocks(blocks, packed, self.name)

    def _read(self) -> Iterator[bytes]:
        while True:
            with self._waiting():
                block = self._file.read(_BYTES_PER_READ)
                if block is None:  # a non-blocking source has nothing yet
                    select.select([self._file], [], [])
                    continue
            if not block:
                return
            yield block


def _peek(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes, enough to detect a format, and an iterator of all blocks."""
    head = b""
    for block in blocks:
        head += block
        if len(head) >= 8 or b"\n" in head:
            break
    return head, chain([head], blocks)


def unpack_blocks(blocks: Iterator[bytes], packed: str, name: str) -> Iterator[bytes]:
    """Yield the uncompressed blocks of a file; raise if it is damaged."""
    try:
        yield from _unpack(blocks, _UNPACKERS[packed])
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise TableError(f"{name} is a damaged {packed} file ({error}).") from error


def _unpack(blocks: Iterator[bytes], unpacker: Callable[[], Any]) -> Iterator[bytes]:
    """Yield uncompressed blocks; a file may consist of several compressed ones in a row."""
    current = unpacker()
    for packed in blocks:
        block = packed
        while block:
            if current.eof:
                block = block.lstrip(b"\0")  # padding between compressed files
                if not block:
                    break
                current = unpacker()
            yield current.decompress(block)
            block = current.unused_data if current.eof else b""
    if not current.eof:
        raise EOFError("it ends too early")


def as_utf8(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield blocks in UTF-8 without a byte order mark."""
    head, blocks = _peek(blocks)
    if sniff.detect_encoding(head[:2]) != "utf-16":
        first = next(blocks)
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise TableError(f"{name} is damaged: not valid utf-16 text ({error}).") from error


def decode_line(line: bytes) -> str:
    """Return a line as text: UTF-8 if it is valid, else a western encoding."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(sniff.detect_western_encoding(line))

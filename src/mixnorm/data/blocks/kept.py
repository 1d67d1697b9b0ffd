"""Arrays that are kept for each block from one sum to the next, in memory or in files.

Every process has its own. They are caches: what is not there is made again from the source, with
the same bits.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mixnorm.data.blocks.sources import ColumnChoice

# Rows that a block's array has room for at first, and the factor by which it grows.
_FIRST_ROOM, _GROWTH = 8, 2


class RowRecipe(Protocol):
    """Rows made of the columns of a block, such as chosen columns in standard units.

    They are kept from one sum to the next, under their keys. A recipe of very many rows, of which
    few matter for long, has an attribute ``most_kept``: with more rows than that, those that a sum
    does not ask for are dropped.
    """

    @property
    def keys(self) -> Sequence[Hashable]:
        """A key for each row, the same in every sum."""
        ...

    def columns(self, keys: Sequence[Hashable]) -> np.ndarray:
        """Return the columns of the table that the rows of some keys are made of."""
        ...

    def make(self, X: Any, keys: Sequence[Hashable]) -> np.ndarray:
        """Return the rows of some keys, ``(len(keys), n)``, of a block with those columns."""
        ...


class TargetRecipe(Protocol):
    """Targets in another form, such as codes of labels, kept from one sum to the next."""

    @property
    def key(self) -> Hashable:
        """The name under which they are kept."""
        ...

    def make(self, y: np.ndarray) -> np.ndarray:
        """Return the targets of a block."""
        ...


class Kept:
    """Arrays by block: rows of one dtype, and single arrays by name.

    Parameters
    ----------
    limit : int
        Bytes of rows to hold in memory; the rows of further blocks are in files, one per block.
    folder : str, optional
        Where to make the folder of these files; the system's folder for temporary files by
        default.
    """

    def __init__(self, limit: int, folder: str | None = None) -> None:
        self._limit, self._given = limit, folder
        self._place: OwnFolder | None = None
        self._blocks: dict[tuple[int, str], _KeptBlock] = {}
        self._lock = threading.Lock()
        self._used = 0

    def block(self, number: int, kind: str = "rows") -> _KeptBlock:
        """Return what is kept of a block, of a kind: rows of one kind have one dtype."""
        name = number, kind
        with self._lock:
            if name not in self._blocks:
                self._blocks[name] = _KeptBlock(self, name)
            return self._blocks[name]

    def reserve(self, amount: int) -> bool:
        """Take bytes of memory; return whether there were so many left."""
        with self._lock:
            if self._used + amount > self._limit:
                return False
            self._used += amount
            return True

    def release(self, amount: int) -> None:
        """Give bytes of memory back."""
        with self._lock:
            self._used -= amount

    def path(self, name: tuple[int, str]) -> Path:
        """Return the path of the file of a block, for rows of a kind."""
        with self._lock:
            if self._place is None:
                folder = self._given or _FOLDER.get("folder")
                self._place = OwnFolder("mixnorm-rows-", folder)
            return self._place.path / "{}.{}".format(*name)

    def clear(self) -> None:
        """Forget all, and delete the files."""
        with self._lock:
            self._blocks, self._used = {}, 0
            place, self._place = self._place, None
        if place is not None:
            place.delete()


class OwnFolder:
    """A new folder for files of this process.

    Parameters
    ----------
    prefix : str
        How its name begins.
    folder : str, optional
        Where to make it; the system's folder for temporary files by default.
    """

    def __init__(self, prefix: str, folder: str | None) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
        except OSError as error:
            where = "the system's folder for temporary files" if folder is None else repr(folder)
            raise type(error)(
                error.errno,
                f"no files for rows can be made in {where} ({error.strerror}). Name another one "
                "with folder=..., or give more memory=...",
            ) from error
        self._process = os.getpid()

    def delete(self) -> None:
        """Delete the folder, unless this process is a fork of the one that made it."""
        if os.getpid() == self._process:
            shutil.rmtree(self.path, ignore_errors=True)


class _KeptBlock:
    """What is kept of one block."""

    def __init__(self, kept: Kept, name: tuple[int, str]) -> None:
        self._kept, self._name = kept, name
        self._rows: dict[Hashable, int] = {}
        self._room: np.ndarray | None = None
        self._path: Path | None = None
        self._named: dict[Hashable, np.ndarray] = {}
        self.lock = threading.RLock()

    def missing(self, keys: Sequence[Hashable]) -> list[Hashable]:
        """Return the keys whose rows are not kept."""
        with self.lock:
            return [key for key in keys if key not in self._rows]

    def find(self, name: Hashable) -> np.ndarray | None:
        """Return the array of a name, or None."""
        return self._named.get(name)

    def keep_named(self, name: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the array of a name; make and keep it if it is not there."""
        with self.lock:
            if name not in self._named:
                self._named[name] = make()
            return self._named[name]

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def drop_others(self, keys: Sequence[Hashable]) -> None:
        """Drop all rows but those of some keys; they are made again when they are asked for."""
        with self.lock:
            left = [key for key in keys if key in self._rows]
            places = [self._rows[key] for key in left]
            if self._room is not None:
                self._room[: len(left)] = self._room[places]
            elif self._path is not None:
                rows = self.read(left, Workspace())
                with self._path.open("wb") as file:
                    rows.tofile(file)
            self._rows = {key: place for place, key in enumerate(left)}

    def append(self, keys: Sequence[Hashable], rows: np.ndarray) -> None:
        """Keep further rows, one per key; those that are kept already are left out."""
        with self.lock:
            new = [place for place, key in enumerate(keys) if key not in self._rows]
            if not new:
                return
            rows = rows if len(new) == len(keys) else rows[new]
            if self._path is None and not self._make_room(len(new), rows):
                self._move_to_file()
            start = len(self._rows)
            if self._path is None and self._room is not None:
                self._room[start : start + len(new)] = rows
            else:
                with self._require_file().open("ab") as file:
                    np.ascontiguousarray(rows).tofile(file)
            for place in new:
                self._rows[keys[place]] = len(self._rows)

    def read(self, keys: Sequence[Hashable], workspace: Workspace) -> np.ndarray:
        """Return the rows of some keys, all of them kept, as a contiguous array.

        The array may be the kept one or in the workspace, so that it must not be changed, and is
        valid until the next call with the same workspace.
        """
        with self.lock:
            places = [self._rows[key] for key in keys]
            in_order = places == list(range(len(places)))
            room: Any = self._room
            if self._path is None and in_order:
                return np.asarray(room[: len(places)])
            width, dtype = self._shape
            # Memory that was used before: new memory costs more than the copy.
            rows = workspace.array(len(places), width, dtype)
            if self._path is None:
                return np.take(room, places, axis=0, out=rows, mode="clip")
            with self._path.open("rb", buffering=0) as file:
                for row, place in zip(rows, places, strict=True):
                    file.seek(place * row.nbytes)
                    file.readinto(row.data.cast("B"))
            return rows

    _shape: tuple[int, np.dtype[Any]]

    def _make_room(self, count: int, rows: np.ndarray) -> bool:
        """Make room in memory for more rows; return whether there is enough."""
        needed, width = len(self._rows) + count, rows.shape[1]
        self._shape = width, rows.dtype
        before = 0 if self._room is None else len(self._room)
        if needed <= before:
            return True
        after = max(needed, _GROWTH * before, _FIRST_ROOM)
        each = width * rows.dtype.itemsize
        if not self._kept.reserve((after - before) * each):
            after = needed
            if not self._kept.reserve((after - before) * each):
                return False
        room = np.empty((after, width), dtype=rows.dtype)
        if self._room is not None:
            room[: len(self._rows)] = self._room[: len(self._rows)]
        self._room = room
        return True

    def _move_to_file(self) -> None:
        """Write the rows in memory to the file of the block."""
        self._path = self._kept.path(self._name)
        room, self._room = self._room, None
        with self._path.open("wb") as file:
            if room is not None:
                room[: len(self._rows)].tofile(file)
        if room is not None:
            self._kept.release(room.nbytes)

    def _require_file(self) -> Path:
        if self._path is None:
            raise RuntimeError("The rows of the block have neither memory nor a file.")
        return self._path


class Workspace:
    """Memory of one task that arrays from files are read into, block after block."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def array(self, height: int, width: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Return an array in the memory, which the next call takes again."""
        needed = height * width * dtype.itemsize
        if len(self._bytes) < needed:
            self._bytes = np.empty(needed, dtype=np.uint8)
        return self._bytes[:needed].view(dtype).reshape(height, width)


class KeptRows:
    """The rows of a recipe for the blocks of a task: kept ones, and others made of columns."""

    def __init__(
        self, recipe: RowRecipe | None, kept: Kept, kind: str, numbers: Sequence[int]
    ) -> None:
        self._recipe, self._kept, self._kind = recipe, kept, kind
        self._keys = [] if recipe is None else list(recipe.keys)
        lacking = set[Hashable]()
        if self._keys:
            for number in numbers:
                lacking.update(kept.block(number, kind).missing(self._keys))
        self._missing = [key for key in self._keys if key in lacking]
        self._workspace = Workspace()
        #: Where the columns that missing rows are made of are among those that are read.
        self._places: Any = None

    def add_columns(self, columns: ColumnChoice) -> ColumnChoice:
        """Return the columns to read, with those of the missing rows."""
        if not self._missing or self._recipe is None:
            return columns
        extra = np.asarray(self._recipe.columns(self._missing), dtype=np.intp)
        start = 0 if columns is None or isinstance(columns, slice) else len(columns)
        within = isinstance(columns, slice)
        self._places = extra if within else slice(start, start + len(extra))
        return join_columns(columns, extra)

    def take(self, number: int, X: Any) -> np.ndarray | None:
        """Return the rows of a block, made of the columns that were read where not kept."""
        if self._recipe is None or not self._keys:
            return None
        here = self._kept.block(number, self._kind)
        if self._missing:
            part, most = X[:, self._places], getattr(self._recipe, "most_kept", None)
            if most is not None and here.size + len(self._missing) > most:
                here.drop_others(self._keys)
            here.append(self._missing, self._recipe.make(part, self._missing))
        return here.read(self._keys, self._workspace)


def join_columns(columns: ColumnChoice, extra: np.ndarray) -> ColumnChoice:
    """Return columns followed by others; all columns have the others already."""
    if columns is None or isinstance(columns, slice):
        return extra if columns is None else columns
    return np.concatenate([columns, extra])


_ALL: dict[str, Kept] = {}
_FOLDER: dict[str, str] = {}
_LOCK = threading.Lock()


def use_folder(folder: str) -> None:
    """Put the files of this process in a folder, where users do not name another."""
    _FOLDER["folder"] = folder


def find_kept(token: str, limit: int, folder: str | None) -> Kept:
    """Return what this process keeps for a token."""
    with _LOCK:
        if token not in _ALL:
            _ALL[token] = Kept(limit, folder)
        return _ALL[token]


def forget(token: str) -> None:
    """Forget what this process keeps for a token."""
    with _LOCK:
        kept = _ALL.pop(token, None)
    if kept is not None:
        kept.clear()

"""The file that keeps the path of a long fit, so that a fit that was killed can go on."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from mixnorm._files import write_atomically
from mixnorm.models import Path, Round

_FORMAT_OF_CHECKPOINT = 1
# The fields of a round that are numbers.
_NUMBERS_OF_ROUND = ("loss", "objective", "gradient", "seconds", "gap", "alpha")


@dataclass(frozen=True)
class Checkpoint:
    """A file with the path of a fit after each round.

    Parameters
    ----------
    path : str
        The file.
    mark : str
        A hash of the data and the settings; a file with another one belongs to another fit.
    """

    path: str | os.PathLike[str]
    mark: str

    def read(self) -> Path | None:
        """Return the path in the file, or None if there is no file yet."""
        place = FilePath(self.path)
        if place.is_dir():
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} is a folder; name a file, such as "
                f"{str(place / 'run.ckpt')!r}."
            )
        # Now, not after the first round, which may take long.
        folder = place.absolute().parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            reason = "cannot be written to" if folder.is_dir() else "is not a folder"
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} cannot be written: {folder} {reason}. Make "
                "the folder, or name a file elsewhere."
            )
        if not place.exists():
            return None
        try:
            with np.load(io.BytesIO(place.read_bytes()), allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                arrays = {name: file[name] for name in file.files if name != "header"}
            if header.get("format") != _FORMAT_OF_CHECKPOINT:
                raise ValueError(f"its format is {header.get('format')!r}")
            mark, found = header["mark"], _make_path(header, arrays)
        except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} is not a file that a fit has written, or is "
                f"damaged ({error}). Delete it to start again, or name another file."
            ) from error
        if mark != self.mark:
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} belongs to a fit of other data or with other "
                "parameters. Delete it to start again, or name another file."
            )
        return found

    def write(self, path: Path) -> None:
        """Write a path; the file has the old one or the new one at any time."""
        arrays = {"null_intercept": np.asarray(path.null_intercept)}
        rounds = []
        for place, step in enumerate(path.rounds):
            arrays[f"weights{place}"] = np.asarray(step.weights)
            arrays[f"intercept{place}"] = np.asarray(step.intercept)
            rounds.append(
                {name: float(getattr(step, name)) for name in _NUMBERS_OF_ROUND}
                | {"atom": step.atom, "support": list(step.support)}
                | {"iterations": int(step.iterations), "converged": bool(step.converged)}
            )
        header = {"format": _FORMAT_OF_CHECKPOINT, "mark": self.mark, "rounds": rounds}
        header["null_loss"] = float(path.null_loss)
        with write_atomically(self.path) as file:
            np.savez(file, header=np.asarray(json.dumps(header)), **arrays)  # type: ignore[arg-type]


def _make_path(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Path:
    rounds = []
    for place, step in enumerate(header["rounds"]):
        rounds.append(
            Round(
                atom=_freeze(step["atom"]),
                support=tuple(map(_freeze, step["support"])),
                weights=arrays[f"weights{place}"],
                intercept=arrays[f"intercept{place}"],
                iterations=int(step["iterations"]),
                converged=bool(step["converged"]),
                **{name: float(step[name]) for name in _NUMBERS_OF_ROUND},
            )
        )
    return Path(tuple(rounds), float(header["null_loss"]), arrays["null_intercept"])


def _freeze(atom: Any) -> Any:
    """Return an atom as it was: JSON has lists in place of tuples."""
    return tuple(map(_freeze, atom)) if isinstance(atom, list) else atom

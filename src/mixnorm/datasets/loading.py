"""Stored data sets: find, read and check them."""

import os
import sys
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from mixnorm._files import write_atomically
from mixnorm.datasets.catalogue import NAMES, OPENML, SCIKIT_LEARN
from mixnorm.exceptions import DatasetFormatError, DatasetNotFoundError

if TYPE_CHECKING:
    from sklearn.utils import Bunch


_CSR_KEYS = ("data", "indices", "indptr", "shape")


def load(name: str, *, download_if_missing: bool = True) -> "Bunch":
    """Load a stored data set by name.

    These places are searched in order: the folder in the environment variable ``MIXNORM_DATA``;
    the cache folder (``MIXNORM_CACHE``, or ``mixnorm`` in the user's cache folder, such as
    ``~/.cache/mixnorm``); scikit-learn itself (iris, wine); and OpenML, whose copy is then written
    to the cache.

    Parameters
    ----------
    name : str
        ``"mnist"``, ``"isolet"``, ``"reuters_r52"``, ...: any ``NAME.npz`` in
        one of the two folders. OpenML has dna, glass, isolet, letter, mnist,
        pendigits, satimage, segment, vehicle and vowel.
    download_if_missing : bool, default=True
        Whether the data set may be downloaded from OpenML. ``False`` never uses the network.

    Returns
    -------
    data : :class:`sklearn.utils.Bunch`
        ``X`` and ``y``, with ``X_test`` and ``y_test`` if the set has an established split (``X``
        is then the training part), and other stored arrays: ``feature_names``, ``class_names``,
        ``task``. Class labels are integers from 0, features are raw, images keep two dimensions
        per row, and sparse sets are CSR matrices. ``name`` and ``source`` (a path or the name of
        the source) are always present.

    Raises
    ------
    DatasetNotFoundError
        No data set has that name, or it could not be downloaded.
    DatasetFormatError
        A file was found but is damaged or incomplete.

    Notes
    -----
    A copy from OpenML has the features, labels and types of the stored set as far as the source
    allows. As in the stored set, the training part is a fixed number of rows from the top, but in
    OpenML's order. OpenML's satimage lacks five rows, and isolet comes without ``task``.

    Examples
    --------
    >>> from mixnorm import datasets
    >>> wine = datasets.load("wine")
    >>> wine.X.shape, wine.X.dtype.name, wine.class_names.tolist()
    ((178, 13), 'float32', ['class_0', 'class_1', 'class_2'])
    """
    _check_name(name)
    from sklearn.utils import Bunch

    path = _find(name)
    if path is not None:
        return Bunch(name=name, source=str(path), **_read(path))
    from mixnorm.datasets import fetch as _fetch  # which imports scikit-learn's loaders

    if name in SCIKIT_LEARN:
        return Bunch(name=name, source="scikit-learn", **_fetch.from_scikit_learn(name))
    if name not in OPENML or not download_if_missing:
        raise DatasetNotFoundError(_not_found_message(name))
    arrays = _fetch.from_openml(name)
    folder = _cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(folder / f"{name}.npz") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    return Bunch(name=name, source=f"openml:{OPENML[name].data_id}", **arrays)


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name must be a str such as 'mnist', got {type(name).__name__}.")
    if not name or name != Path(name).name or name.startswith("."):
        raise ValueError(
            f"{name!r} is not the name of a data set. Give the name alone, without "
            "folder; set MIXNORM_DATA to the folder."
        )


def _find(name: str) -> Path | None:
    """Return the stored file of a data set, or None."""
    folders = [_cache_folder()]
    given = os.environ.get("MIXNORM_DATA")
    if given:
        folder = Path(given).expanduser()
        if not folder.is_dir():
            raise DatasetNotFoundError(
                f"MIXNORM_DATA={given!r} is not a folder. Set it to the folder with the "
                ".npz files, or unset it."
            )
        folders.insert(0, folder)
    for folder in folders:
        path = folder / f"{name}.npz"
        if path.is_file():
            return path
    return None


def _cache_folder() -> Path:
    """Return the folder for downloaded sets, which need not exist."""
    given = os.environ.get("MIXNORM_CACHE")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mixnorm"


def _not_found_message(name: str) -> str:
    remedy = (
        f"Put {name}.npz into a folder and set MIXNORM_DATA to it (now "
        f"{os.environ.get('MIXNORM_DATA') or 'unset'}), or into the cache {_cache_folder()}."
    )
    if name in OPENML:
        return f"Data set {name!r} is not stored here. {remedy} Or allow download_if_missing=True."
    if name in NAMES:
        return f"Data set {name!r} is not stored here and has no copy to fetch. {remedy}"
    return f"No data set {name!r}. Known: {', '.join(NAMES)}. For one of your own: {remedy}"


def _read(path: Path) -> dict[str, Any]:
    """Read an archive, assemble sparse matrices, and check the arrays."""
    try:
        # Opened here, because np.load leaves the file open when the archive is damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays: dict[str, Any] = {key: archive[key] for key in archive.files}
        for suffix in ("", "_test"):
            keys = [key + suffix for key in _CSR_KEYS]
            if all(key in arrays for key in keys):
                data, indices, indptr, shape = (arrays.pop(key) for key in keys)
                matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=tuple(shape))
                matrix.check_format(full_check=True)
                arrays["X" + suffix] = matrix
    # TypeError: the file holds one bare array, which is no context manager.
    except (ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise DatasetFormatError(
            f"{path} cannot be read as a data set ({error}). It is damaged or not an .npz "
            "of plain arrays: delete it and copy or fetch it again."
        ) from error
    _check(path, arrays)
    return arrays


def _check(path: Path, arrays: dict[str, Any]) -> None:
    for suffix in ("", "_test"):
        X, y = arrays.get("X" + suffix), arrays.get("y" + suffix)
        if X is None and y is None and suffix:
            continue
        if X is None or y is None:
            missing = ("X" if X is None else "y") + suffix
            raise DatasetFormatError(
                f"{path} has no array {missing!r}; it has {', '.join(sorted(arrays)) or 'none'}. "
                "A data set needs X and y (for sparse X: data, indices, indptr, shape)."
            )
        if X.shape[:1] != y.shape[:1]:
            raise DatasetFormatError(
                f"{path}: X{suffix} has shape {X.shape} but y{suffix} has shape {y.shape}. "
                "They must have one row per example; copy or fetch the file again."
            )

"""Saving and loading models.

An estimator of :mod:`mixnorm.estimators` is stored as its parameters and what a fit leaves, of
which its class declares the types: its ``model_``, a value of :mod:`mixnorm.models`, and what else
it keeps beside it. An online learner, whose model changes with each row, has ``_resume`` alone.
Either value has ``inputs``, ``outputs`` and ``check(max_bytes)``. The file may come from a
stranger: ``check`` raises for whatever ``predict`` could not work with, and before allocating more
than ``max_bytes`` for what is rebuilt.

A dataclass of another room is stored by its fields and rebuilt through its constructor, with the
types of the fields checked against their annotations. It may have a method ``_check_stored()``,
which is then called and raises for what does not fit together.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixnorm._files import write_atomically
from mixnorm._version import __version__
from mixnorm.exceptions import ModelFileError
from mixnorm.storage.container import pack, read_arrays, unpack
from mixnorm.storage.decode import Decoder
from mixnorm.storage.encode import Encoder
from mixnorm.storage.registry import is_model

_ENTRIES_OF_DOCUMENT = {"mixnorm", "python", "numpy", "scikit-learn", "model", "arrays"}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that anybody can open without running code.

    The file takes its place only when it is complete: if anything fails, a file that was there
    before stays as it was.

    Parameters
    ----------
    model : estimator or table model
        A fitted estimator of :mod:`mixnorm.estimators`, or a table model.
    path : path-like
        Where to write the file; ``.mixnorm`` is a good suffix.

    Raises
    ------
    ModelFileError
        If the model holds something that a model file cannot hold, such as a function or an object
        of your own. The message names the parameter.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    See Also
    --------
    load : Reads the model back.

    Examples
    --------
    >>> import os, tempfile
    >>> import mixnorm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mixnorm.ShareBoostClassifier(n_features_to_select=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.mixnorm")
    ...     mixnorm.save(model, path)
    ...     again = mixnorm.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    # Everything that can fail happens before the file is opened.
    parts = _pack_model(model)
    with write_atomically(path) as file:
        for part in parts:
            file.write(part)


def load(path: str | os.PathLike[str], *, max_bytes: int = 2**30) -> Any:
    """Read a model that :func:`save` wrote.

    No code runs that the file could choose: it holds numbers and texts, and names of mixnorm's own
    classes. A file that is damaged, foreign or made to do harm is refused.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int, default=2**30
        Most memory to take for what is not in the file but follows from it: ``coef_``, which has
        an entry for every column seen in ``fit``, though the file holds the chosen ones only.
        Raise it for a model of very many columns that you trust.

    Returns
    -------
    estimator or table model
        The model, fitted; it predicts what the saved one did, to the last bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, is no model file, or was written by a newer mixnorm.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    save : Writes the file, with an example.
    """
    if Path(path).is_dir():
        raise ModelFileError(f"{path} is a folder, not a mixnorm model file; name a file in it.")
    with open(path, "rb") as file:
        return _read(file, str(path), max_bytes)


def _pack_model(model: Any) -> list[bytes | memoryview]:
    """Return the parts of the file, after checking that they can be read."""
    if not is_model(model):
        raise ModelFileError(
            f"Cannot store a {type(model).__name__}: a model file holds an estimator of "
            "mixnorm.estimators, of that very class, or a table model of mixnorm.tables."
        )
    encoder = Encoder()
    document = {
        "mixnorm": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "model": encoder.node(model),
    }
    try:
        # Reading the model back finds what was changed on it since the fit, while it can still be
        # repaired.
        _decode(document["model"], encoder.arrays, sys.maxsize)
    except Exception as error:
        raise ModelFileError(
            f"Cannot store this {type(model).__name__}, which could not be read again: "
            f"{_reason(error)}. Check what was changed on it since it was fitted."
        ) from error
    return pack(document, encoder.arrays)


def _read(stream: BinaryIO, name: str, max_bytes: int = 2**30) -> Any:
    """Return the model in an open file that is called ``name`` in messages."""
    try:
        document, raw = unpack(stream, name)
    # Not the file's fault, perhaps: a larger machine could read it.
    except MemoryError as error:
        raise ModelFileError(f"{name} does not fit into memory.") from error
    try:
        if not isinstance(document, dict) or document.keys() != _ENTRIES_OF_DOCUMENT:
            raise ModelFileError("its JSON document has other entries than it must have")
        return _decode(document["model"], read_arrays(document["arrays"], raw), max_bytes)
    except MemoryError as error:
        raise ModelFileError(f"{name} takes too much memory. {error}.") from error
    # Whatever fails on values of a file that may come from anybody, the file is at fault.
    except Exception as error:
        writer = document.get("mixnorm") if isinstance(document, dict) else None
        raise ModelFileError(
            f"{name} is complete, but holds no model that can be used: {_reason(error)}."
            f"{_advice(writer)}"
        ) from error


def _decode(node: object, arrays: list[np.ndarray], max_bytes: int) -> Any:
    decoder = Decoder(arrays, max_bytes)
    model = decoder.value(node)
    if not is_model(model):
        raise ModelFileError(f"it holds a {type(model).__name__} instead of a model")
    decoder.finish()
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    return model


def _reason(error: Exception) -> str:
    text = str(error).rstrip(".")
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"


def _advice(writer: object) -> str:
    if not isinstance(writer, str) or writer == __version__ or len(writer) > 40:
        return " Get another copy of the file, or save the model again."
    return f" It says that mixnorm {writer!r} wrote it, and this is {__version__}: try that one."

"""Columns of a table: how groups of kernels choose them, and how they are selected."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mixnorm._array import MatrixLike, is_sparse

#: Where a group's columns are: all of them, one (selected as an array of one axis), or several.
Where = int | np.ndarray | None


def names_of(X: object) -> list[str] | None:
    """Return the names of the columns of a data frame; None unless all are strings."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def width_of(X: object) -> int:
    """Return the number of columns of a table; raise a ValueError if ``X`` is not a table."""
    shape = getattr(X, "shape", None)
    if shape is None or len(shape) != 2:
        got = f"shape {tuple(shape)}" if shape is not None else f"type {type(X).__name__}"
        raise ValueError(
            f"X must be a table of shape (n_rows, n_columns), got {got}; reshape(-1, 1) makes one "
            "of a single column."
        )
    return int(shape[1])


def as_input_table(X: Any) -> Any:
    """Return a table whose columns can be selected; lists become arrays."""
    if getattr(X, "shape", None) is not None:
        return X.tocsr() if is_sparse(X) else X
    if isinstance(X, (list, tuple)):
        return np.asarray(X)
    raise TypeError(
        f"X must be an array, a sparse matrix or a data frame, got {type(X).__name__}; convert it "
        "with numpy.asarray."
    )


def select(X: Any, where: Where) -> Any:
    """Return some columns of a table; a single position gives an array of one axis."""
    if where is None:
        return X
    by_position = getattr(X, "iloc", None)
    if by_position is not None:
        return by_position[:, where]
    if isinstance(where, np.ndarray) and getattr(X, "columns", None) is not None:
        return X[:, where.tolist()]  # polars
    if is_sparse(X):
        return X[:, [where] if isinstance(where, int) else where]
    return X[:, where]


def align_columns(X: MatrixLike, n_features: int, names: Sequence[str] | None) -> Any:
    """Return new rows with the columns of the training rows, by name where both have names."""
    X = as_input_table(X)
    given = names_of(X)
    # Columns in another order are put into that of the training rows.
    if names is not None and given is not None and list(names) != given:
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(
                f"X has no column {missing[0]!r}, which the training rows had; it has "
                f"{_list_first(given)}. Give the same columns."
            )
        X = X[list(names)]
    if width_of(X) != n_features:
        raise ValueError(
            f"X has {width_of(X)} columns, but the training rows had {n_features}; give the same "
            "columns."
        )
    return X


def locate(
    spec: Any, names: Sequence[str] | None, n_columns: int, what: str, made: bool = False
) -> Where:
    """Return the positions of the columns that a specification chooses.

    Parameters
    ----------
    spec : None, int, str, slice, mask, or list of positions or names
        The choice.
    names : list of str or None
        The names of the columns, if they have any.
    n_columns : int
        Number of columns.
    what : str
        The chooser, for messages.
    made : bool
        Whether a transformer made the columns; a name then means all columns made from it.

    Examples
    --------
    >>> locate(["b", "a"], ["a", "b"], 2, "group 'x'")
    array([1, 0])
    >>> locate("a", ["scaled__a", "onehot__b_x", "onehot__b_y"], 3, "group 'x'", made=True)
    array([0])
    >>> locate(["b"], ["scaled__a", "onehot__b_x", "onehot__b_y"], 3, "group 'x'", made=True)
    array([1, 2])
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        found = _by_name(spec, names, what, made)
        return np.asarray(found, dtype=np.intp) if made else found[0]
    if isinstance(spec, slice):
        where = _by_slice(spec, n_columns, what)
    elif isinstance(spec, numbers.Integral) and not isinstance(spec, (bool, np.bool_)):
        return int(_by_position(np.asarray([spec]), n_columns, what)[0])
    elif isinstance(spec, Iterable):
        where = _by_list(list(spec), names, n_columns, what, made)
    else:
        raise TypeError(
            f"{what} chooses columns by {spec!r}; give positions, names, a slice or a mask."
        )
    if len(where) == 0:
        raise ValueError(f"{what} has no columns; give it at least one, or leave it out.")
    return where


def _by_slice(spec: slice, n_columns: int, what: str) -> np.ndarray:
    try:
        return np.arange(n_columns)[spec]
    except TypeError:
        raise TypeError(
            f"{what} chooses columns by {spec!r}; slices go by position, from 0 to "
            f"{n_columns - 1}. Use whole numbers, or a list of names."
        ) from None


def _by_list(
    items: list[Any], names: Sequence[str] | None, n_columns: int, what: str, made: bool
) -> np.ndarray:
    """Return the positions of a list of names, truth values or positions."""
    if all(isinstance(item, str) for item in items):
        found = [place for item in items for place in _by_name(item, names, what, made)]
        return np.asarray(list(dict.fromkeys(found)), dtype=np.intp)
    if all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != n_columns:
            raise ValueError(
                f"{what} has a mask of length {len(items)}, but there are {n_columns} columns; "
                "give one truth value for each."
            )
        return np.flatnonzero(items)
    kinds = (bool, np.bool_, str)
    if any(isinstance(item, kinds) or not isinstance(item, numbers.Integral) for item in items):
        raise TypeError(
            f"{what} chooses columns by {_list_first(items)}; give either positions, or names, or "
            "one truth value per column."
        )
    return _by_position(np.asarray(items, dtype=np.intp), n_columns, what)


def _by_position(places: np.ndarray, n_columns: int, what: str) -> np.ndarray:
    stray = places[(places < -n_columns) | (places >= n_columns)]
    if len(stray):
        raise ValueError(
            f"{what} chooses column {stray[0]}, but there are {n_columns}; positions run from 0 "
            f"to {n_columns - 1}."
        )
    return np.where(places < 0, places + n_columns, places)


def _by_name(name: str, names: Sequence[str] | None, what: str, made: bool) -> list[int]:
    """Return the position of a name, or those of all columns made from it."""
    if names is None:
        source = "the preprocess transformer names no outputs" if made else "X has no column names"
        raise ValueError(
            f"{what} chooses column {name!r} by name, but {source}; give positions, or a data "
            "frame whose columns have names."
        )
    # An exact name comes first: an output may be called like the input of another.
    found = [place for place, known in enumerate(names) if known == name]
    if not found and made:
        found = [place for place, known in enumerate(names) if _belongs_to(known, name)]
    if not found:
        raise ValueError(
            f"{what} chooses the unknown column {name!r}; the columns are {_list_first(names)}."
        )
    return found


def _belongs_to(output: str, name: str) -> bool:
    """Tell whether a transformer made an output from an input column, or has this name itself.

    scikit-learn joins the names of a transformer and an input by two underscores, and those of an
    input and an output made from it by one.
    """
    own = output.partition("__")[2] or output
    return (
        output.endswith(f"__{name}")
        or output.startswith((f"{name}__", f"{name}_"))
        or own.startswith(f"{name}_")
    )


def _list_first(items: Sequence[Any]) -> str:
    """Return the first few of a list, for messages."""
    shown = ", ".join(repr(item) for item in items[:8])
    return f"[{shown}, ...]" if len(items) > 8 else f"[{shown}]"

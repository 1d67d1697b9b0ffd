"""Tables of blocks made from arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import is_numpy, is_sparse
from mixnorm.data.blocks.remote.collections import DaskSource, frame_dtype, is_collection
from mixnorm.data.blocks.sources import ArraySource, Source
from mixnorm.data.blocks.table import BlockTable


def from_arrays(X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> BlockTable:
    """Return arrays as a table of row blocks.

    Parameters
    ----------
    X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
        The columns, all of them real numbers: an array, a file mapped by NumPy, a data frame, a
        sparse matrix, or a Dask array or data frame. Dask computes each partition again for every
        sum that reads it, so ``persist`` saves time where memory allows it.
    y : array of shape (n_samples,) or (n_samples, n_outputs), optional
        Targets or labels.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows.
    **options
        The options of :class:`BlockTable`: ``block_rows``, ``memory``, ``executor``, ``folder`` and
        ``checkpoint``.

    Returns
    -------
    BlockTable

    Examples
    --------
    >>> import numpy as np
    >>> table = from_arrays(np.ones((10, 3)), block_rows=4)
    >>> table.n_blocks, table.sum(lambda block: block.X.sum(axis=0), columns=slice(None)).tolist()
    (3, [10.0, 10.0, 10.0])
    """
    return BlockTable(_as_source(X, y, sample_weight), **options)


def find_table(X: Any, y: Any = None, sample_weight: Any = None) -> BlockTable | None:
    """Return the data of an estimator as a table of blocks, or None for arrays in memory.

    Dask arrays and data frames become one. A table has its own targets and weights.
    """
    if is_collection(X):
        # Asked of the class: a Delayed seems to have every attribute.
        if not hasattr(type(X), "shape"):
            raise TypeError(
                f"X is a Dask {type(X).__name__}; give a Dask array or DataFrame, or X.compute()."
            )
        return from_arrays(X, y, sample_weight)
    if not isinstance(X, BlockTable):
        return None
    for name, each in (("y", y), ("sample_weight", sample_weight)):
        if each is not None:
            raise TypeError(
                f"{name} is given beside a table of blocks, which has its own; leave {name} out, "
                "or make the table with mixnorm.data.from_arrays(X, y, sample_weight)."
            )
    return X


def check_in_memory(X: object, taker: str) -> None:
    """Raise for a table of row blocks or a Dask collection, which ``taker`` does not work on.

    Examples
    --------
    >>> check_in_memory([[1.0, 2.0]], "MKLClassifier")
    """
    blocks = isinstance(X, BlockTable)
    if not blocks and not is_collection(X):
        return
    what = "a table of row blocks" if blocks else f"a Dask collection ({type(X).__name__})"
    give = (
        "Give a sample of rows: X, y, weight = table.sample(10_000, random_state=0)"
        if blocks
        else "If it fits into memory, give X.compute(); else some of its rows, such as "
        "mixnorm.data.from_arrays(X, y).sample(10_000, random_state=0)"
    )
    raise TypeError(
        f"{taker} takes arrays in memory, and X is {what}. {give}. ShareBoost*, "
        "MixedNormClassifier, MixedNormRegressor, MultiTaskLearner with one X, and the online "
        "learners work on blocks."
    )


def _as_source(X: Any, y: Any, weight: Any) -> Source:
    if is_collection(X):
        others = [
            each if each is None or is_collection(each) else np.asarray(each)
            for each in (y, weight)
        ]
        return DaskSource(X, *others)
    X, names = _as_columns(X)
    y, weight = (None if each is None else np.asarray(each) for each in (y, weight))
    for name, each, most in (("y", y, 2), ("sample_weight", weight, 1)):
        if each is None:
            continue
        if not 1 <= each.ndim <= most:
            raise ValueError(
                f"{name} has shape {each.shape}; give an array of shape ({X.shape[0]},)"
                f"{' or (n_samples, n_outputs)' if most == 2 else ''}."
            )
        if len(each) != X.shape[0]:
            raise ValueError(
                f"{name} has {len(each)} rows, but X has {X.shape[0]}; give one value per row."
            )
    return ArraySource(X, y, weight, names=names)


def _as_columns(X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return columns as an array or a CSR matrix of numbers, and their names where all have one."""
    names = None
    if is_sparse(X):
        given, X = X, X.tocsr()
        # Sums over the squares or the places of entries take each stored one as a whole.
        if not X.has_canonical_format:
            X = X.copy() if X is given else X
            X.sum_duplicates()
    elif not is_numpy(X):
        columns = list(getattr(X, "columns", []))
        if columns and all(isinstance(name, str) for name in columns):
            names = tuple(columns)
        # pandas would make objects of columns of several types.
        is_pandas = hasattr(X, "iloc") and X.ndim == 2
        X = X.to_numpy(frame_dtype(X), na_value=np.nan) if is_pandas else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; give a table of shape (n_samples, n_features).")
    if X.dtype == object:
        # Such arrays are in memory anyway. What is missing becomes NaN, which a fit reports.
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"X has columns that are not numbers ({error}). Encode texts and categories as "
                "numbers, and fill in missing values."
            ) from None
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X is of dtype {X.dtype}, but a table of row blocks takes real numbers.")
    return X, names

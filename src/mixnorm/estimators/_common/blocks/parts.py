"""Predictions for Dask collections, part by part when they are computed, and for tables of blocks.

The decorators here are the one place that knows of either: a method below them gets arrays.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixnorm._array import is_sparse
from mixnorm.data import (
    ALL_COLUMNS,
    Block,
    BlockTable,
    RowError,
    find_table,
    is_collection,
    join_rows,
)
from mixnorm.estimators._common.blocks.tables import require_target, validate_table
from mixnorm.models import LinearModel, PathModel

_Method = TypeVar("_Method", bound=Callable[..., Any])


def map_parts(method: _Method) -> _Method:
    """Let a method that predicts take Dask collections and tables of blocks.

    Of a Dask collection it returns a lazy Dask array in the chunks of ``X``. Of a table it returns
    what it returns for the rows in memory.
    """

    @functools.wraps(method)
    def call(estimator: Any, X: Any, *args: Any, **options: Any) -> Any:
        if isinstance(X, BlockTable):
            return _Parts.of(estimator, method.__name__, X, args, options).compute(X)
        if is_collection(X):
            return _Parts.of(estimator, method.__name__, X, args, options).delay(X)
        return method(estimator, X, *args, **options)

    return cast("_Method", call)


def score_parts(method: _Method) -> _Method:
    """Let ``score`` take Dask collections and tables: scores of rows are computed part by part."""

    @functools.wraps(method)
    def call(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        if isinstance(X, BlockTable):
            find_table(X, y, sample_weight)  # raises for targets beside a table
            require_target(estimator, X)
            found = _Parts.of(estimator, "_scores", X).compute(X)
            y, sample_weight = X.sum(_take_targets, target=True, combine=join_rows)
        elif is_collection(X):
            import dask.base

            compute: Any = dask.base.compute
            lazy = _Parts.of(estimator, "_scores", X).delay(X)
            # Dask warns where arrays and frames are computed together.
            given = (_as_array(each) for each in (y, sample_weight))
            found, y, sample_weight = compute(lazy, *given)
        else:
            return method(estimator, X, y, sample_weight)
        scorer = copy.copy(estimator)
        # Every prediction is made from scores; these are known now, for rows that are not needed.
        scorer.__dict__["_scores"] = lambda rows: found
        return method(scorer, np.broadcast_to(0.0, (len(found), 1)), y, sample_weight)

    return cast("_Method", call)


@dataclass(frozen=True, eq=False)
class _Parts:
    """A prediction of which the parts are yet to be computed.

    Attributes
    ----------
    estimator : estimator
        A slim copy of the estimator.
    method : str
        The name of the method.
    args, options : tuple and dict
        What the method is given besides rows.
    like : ndarray or sparse matrix
        The result for no rows.
    widths : tuple of int, optional
        How many columns each array of the result has, if there are several.
    """

    estimator: Any
    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    like: Any = None
    widths: tuple[int, ...] | None = None

    @classmethod
    def of(cls, estimator: Any, method: str, X: Any, args: Any = (), options: Any = None) -> _Parts:
        """Return the prediction for ``X``, whose names and width are checked here."""
        options = {} if options is None else options
        for each in (*args, *options.values()):
            if getattr(each, "ndim", 0) or isinstance(each, (list, tuple)) or is_collection(each):
                raise TypeError(
                    f"{method} was given a value for each row beside a {_describe(X)}, which is "
                    "read in parts. Leave it out, and take what you need from the result for all "
                    "tasks."
                )
        _refuse_frames(estimator, method)
        check_is_fitted(estimator)
        slim = estimator._slim()
        named = _is_frame(X)
        if isinstance(X, BlockTable):
            validate_table(estimator, X, reset=False)
        if not named or isinstance(X, BlockTable):
            # The parts have no names, of which scikit-learn would warn for each.
            slim.__dict__.pop("feature_names_in_", None)
        # Two rows tell the form of the result, and all that is wrong with names and columns.
        teller = slim if isinstance(X, BlockTable) else estimator
        found = getattr(teller, method)(_make_rows(X), *args, **options)
        widths = None
        if isinstance(found, list):
            widths = tuple(each.shape[1] for each in found)
            found = np.concatenate(found, axis=1)
        return cls(slim, method, tuple(args), options, found[:0], widths)

    def predict(self, rows: Any) -> Any:
        """Return the result for some rows in memory."""
        if rows.shape[0] == 0:
            return self.like
        found = getattr(self.estimator, self.method)(rows, *self.args, **self.options)
        return np.concatenate(found, axis=1) if self.widths is not None else found

    def split(self, found: Any) -> Any:
        """Return the result in the form that the method has."""
        if self.widths is None:
            return found
        ends = np.cumsum(self.widths).tolist()
        return [found[:, end - width : end] for end, width in zip(ends, self.widths, strict=True)]

    def compute(self, table: BlockTable) -> Any:
        """Return the result for a table, in memory."""
        columns = _find_columns(self, table)
        visit = _PredictBlock(self, None if isinstance(columns, slice) else columns)
        sparse = is_sparse(self.like)
        found: Any = (
            [] if sparse else np.empty((table.shape[0], *self.like.shape[1:]), self.like.dtype)
        )
        try:
            for rows, part in table.scan(visit, columns=columns):
                if sparse:
                    found.append(part)
                else:
                    found[rows] = part
        except RowError as error:
            raise error.name_place(table) from None
        if sparse:
            from scipy.sparse import vstack

            found = vstack(found, format="csr")
        return self.split(found)

    def delay(self, X: Any) -> Any:
        """Return the lazy result for a Dask collection."""
        import dask.array
        import dask.base
        from dask.delayed import delayed

        map_blocks: Any = dask.array.map_blocks
        # One key of the graph, which each worker gets once. Tasks hold no copies of it.
        whole = delayed(self, traverse=False)
        if _is_frame(X):
            found = X.map_partitions(_predict_partition, whole, meta=self.like)
        else:
            X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
            chunks = (X.chunks[0], *((width,) for width in self.like.shape[1:]))
            found = map_blocks(
                _predict_chunk,
                X,
                whole,
                drop_axis=list(range(self.like.ndim, X.ndim)),
                chunks=chunks,
                dtype=self.like.dtype,
                meta=self.like,
                name=f"{self.method}-{dask.base.tokenize(X.name, whole.key)}",
            )
        return self.split(found)


@dataclass(frozen=True, eq=False)
class _PredictBlock:
    """Predicts for a block of a table, of which some columns may be read alone."""

    parts: _Parts
    columns: np.ndarray | None

    def __call__(self, block: Block) -> Any:
        X = block.X
        if self.columns is not None:
            # Columns that the model does not read are zeros, which take no memory until written to.
            width = self.parts.estimator.n_features_in_
            X = np.zeros((block.size, width), dtype=block.X.dtype, order="F")
            X[:, self.columns] = block.X
        try:
            return self.parts.predict(X)
        except ValueError as error:
            text = str(error).replace("{", "(").replace("}", ")")
            last = block.rows.stop - 1
            raise RowError(f"In {{place}}: {text}", block.rows.start, last) from None


def _predict_chunk(rows: Any, parts: _Parts, block_id: Any = None) -> Any:
    try:
        return parts.predict(rows)
    except ValueError as error:
        place = "" if block_id is None else f"In chunk {block_id[0]} of X: "
        raise ValueError(f"{place}{error}") from None


def _predict_partition(rows: Any, parts: _Parts) -> Any:
    return parts.predict(rows)


def _find_columns(parts: _Parts, table: BlockTable) -> Any:
    """Return the columns that a model reads, if these are few, or all."""
    model, n_features = parts.estimator.model_, table.shape[1]
    read: Any = None
    if parts.method == "transform":
        read = parts.estimator.get_support(indices=True)
    elif isinstance(model, PathModel):
        read = np.sort(model.selected)
    elif isinstance(model, LinearModel):
        read = model.features
    few = read is not None and 0 < 2 * len(read) < n_features
    return read if few and not table.sparse else ALL_COLUMNS


def _is_frame(X: Any) -> bool:
    """Tell whether ``X`` is a Dask DataFrame or one of its columns."""
    # Asked of the class: a Delayed seems to have every attribute.
    return hasattr(type(X), "to_dask_array")


def _describe(X: Any) -> str:
    return "table of blocks" if isinstance(X, BlockTable) else "Dask collection"


def _as_array(y: Any) -> Any:
    """Return targets of a Dask DataFrame as a Dask array, and anything else unchanged."""
    if not _is_frame(y):
        return y
    return y.map_partitions(np.asarray, meta=np.asarray(_make_rows(y))[:0])


def _refuse_frames(estimator: Any, method: str) -> None:
    """Raise if ``set_output`` asks ``transform`` for frames."""
    config = getattr(estimator, "_sklearn_output_config", {}).get("transform", "default")
    if method == "transform" and config != "default":
        raise TypeError(
            f"set_output(transform={config!r}) makes frames in memory, and parts of a Dask "
            "collection or a table of blocks become arrays; set_output(transform='default')."
        )


def _make_rows(X: Any) -> Any:
    """Return two rows of zeros like those of a Dask collection or a table."""
    if _is_frame(X):
        from dask.dataframe.dispatch import meta_nonempty

        return meta_nonempty(X._meta)
    if not isinstance(X, BlockTable) and not hasattr(type(X), "rechunk"):
        raise TypeError(
            f"X is a Dask {type(X).__name__}; give a Dask array or DataFrame, or X.compute()."
        )
    shape = tuple(X.shape[1:])
    if any(size != size for size in shape):
        raise ValueError(
            "X is a Dask array with an unknown number of columns; call X.compute_chunk_sizes() "
            "first."
        )
    rows = np.zeros((2, *shape), dtype=X.dtype)
    if X.sparse if isinstance(X, BlockTable) else is_sparse(X._meta):
        from scipy.sparse import csr_array

        return csr_array(rows)
    return rows


def _take_targets(block: Block) -> Any:
    return block.y, block.weight

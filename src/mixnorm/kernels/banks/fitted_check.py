"""Checks of a fitted bank that comes from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixnorm.kernels.banks.rows import check_packed, shape_of
from mixnorm.kernels.functions.base import Kernel
from mixnorm.kernels.functions.kernels import GaussianKernel, LaplacianKernel

if TYPE_CHECKING:
    from mixnorm.kernels.banks.fitted import FittedBank


def check_fitted_bank(bank: FittedBank) -> None:
    """Raise a ValueError unless the parts of a bank fit one another."""
    n_kernels, n_groups = len(bank.kernels), len(bank.rows)
    _require(n_kernels > 0 and n_groups > 0, "a bank has no kernels or no rows")
    for name in ("names", "scales", "group_of"):
        _require(len(getattr(bank, name)) == n_kernels, f"{name} has not one entry per kernel")
    for name in ("columns", "centres"):
        _require(len(getattr(bank, name)) == n_groups, f"{name} has not one entry per group")
    _require(
        all(isinstance(kernel, Kernel) for kernel in bank.kernels), "a kernel is of another type"
    )
    _require(
        not any(getattr(kernel, "relative", False) for kernel in bank.kernels),
        "a kernel has a relative width",
    )
    _require(all(0 <= group < n_groups for group in bank.group_of), "a kernel has no group")
    _require(
        bank.scales.shape == (n_kernels,)
        and bank.scales.dtype == np.float64
        and bool(np.all(np.isfinite(bank.scales) & (bank.scales > 0.0))),
        "scales must be positive numbers",
    )
    _require(bank.precision in ("float32", "float64"), "precision is not a dtype of kernels")
    _require(bank.memory > 0 and bank.n_features_in > 0, "memory and columns must be positive")
    _require(
        bank.feature_names_in is None or len(bank.feature_names_in) == bank.n_features_in,
        "feature_names_in has not one name per column",
    )
    steps = bank.preprocess if isinstance(bank.preprocess, list) else [bank.preprocess] * n_groups
    known = (step is None or callable(getattr(step, "transform", None)) for step in steps)
    _require(len(steps) == n_groups and all(known), "preprocess has no steps that transform rows")
    _check_groups(bank)
    _check_factors(bank)


def _check_groups(bank: FittedBank) -> None:
    """Check the rows of every group, and where its columns come from."""
    n_rows = None
    for group, packed in enumerate(bank.rows):
        check_packed(packed, f"group {group}")
        metrics = {
            kernel.metric
            for kernel, of in zip(bank.kernels, bank.group_of, strict=True)
            if of == group
        }
        values = packed if isinstance(packed, np.ndarray) else packed[0]
        _require(
            metrics <= {None} or (values.dtype.kind == "f" and bool(np.all(np.isfinite(values)))),
            f"group {group} has rows that are not numbers",
        )
        n_rows = shape_of(packed)[0] if n_rows is None else n_rows
        width = shape_of(packed)[1]
        _require(shape_of(packed)[0] == n_rows and width > 0, f"group {group} has other rows")
        _check_columns(bank, group, width)
        centre = bank.centres[group]
        _require(
            centre is None or (_is_floats(centre, 1) and centre.shape == (width,)),
            f"group {group} has a damaged centre",
        )


def _check_columns(bank: FittedBank, group: int, width: int) -> None:
    """Check the positions of the columns of a group."""
    where = bank.columns[group]
    if type(where) is int:
        where = np.asarray([where])
    if where is not None:
        _require(
            isinstance(where, np.ndarray) and where.ndim == 1 and where.dtype.kind == "i",
            f"group {group} has damaged columns",
        )
        _require(bool(np.all(where >= 0)), f"group {group} has columns that are nowhere")
    if bank.preprocess is None:
        count = bank.n_features_in if where is None else len(where)
        _require(count == width, f"group {group} has rows of other columns")
        _require(
            where is None or bool(np.all(where < bank.n_features_in)),
            f"group {group} has columns that are nowhere",
        )


def _check_factors(bank: FittedBank) -> None:
    """Check the landmarks and maps that make features."""
    if bank.factors is None:
        _require(not (bank.landmarks or bank.maps or bank.map_of), "a bank has stray factors")
        return
    _require(bank.factors in ("nystrom", "random"), "factors is not known")
    _require(len(bank.map_of) == len(bank.kernels), "map_of has not one entry per kernel")
    _require(all(0 <= place < len(bank.maps) for place in bank.map_of), "a kernel has no map")
    _require(all(_is_floats(part, 2) and part.size for part in bank.maps), "a map is damaged")
    widths = [shape_of(packed)[1] for packed in bank.rows]
    if bank.factors == "random":
        known = (GaussianKernel, LaplacianKernel)
        _require(all(isinstance(kernel, known) for kernel in bank.kernels), "a kernel is unknown")
        sizes = [widths[group] for group in bank.group_of]
    else:
        _require(len(bank.landmarks) == len(bank.rows), "landmarks has not one entry per group")
        for group, packed in enumerate(bank.landmarks):
            check_packed(packed, f"the landmarks of group {group}")
            _require(shape_of(packed)[1] == widths[group], f"landmarks {group} are of others")
        counts = {shape_of(packed)[0] for packed in bank.landmarks}
        _require(len(counts) == 1, "landmarks have different numbers")
        sizes = [*counts] * len(bank.kernels)
    for place, size in zip(bank.map_of, sizes, strict=True):
        _require(len(bank.maps[place]) == size, "a map does not fit what it is applied to")


def _is_floats(part: object, ndim: int) -> bool:
    return (
        isinstance(part, np.ndarray)
        and part.ndim == ndim
        and part.dtype == np.float64
        and bool(np.all(np.isfinite(part)))
    )


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise ValueError(f"FittedBank: {complaint}")

"""Fitted banks from the plan of a bank and training rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, as_generator
from mixnorm._distinct import draw_rows, find_distinct_rows
from mixnorm._memory import as_bytes, format_bytes
from mixnorm.kernels.banks.fitted import FittedBank
from mixnorm.kernels.banks.inputs import as_input_table, locate, names_of, select, width_of
from mixnorm.kernels.banks.plan import BankPlan, make_plan
from mixnorm.kernels.banks.rows import pack, rows_of, shape_of, unpack
from mixnorm.kernels.functions.base import Kernel
from mixnorm.kernels.functions.kernels import WidthKernel
from mixnorm.kernels.functions.metrics import Rows, centre_of
from mixnorm.kernels.grams.base import as_row_weights
from mixnorm.kernels.grams.check import block_rows, check_matrices
from mixnorm.kernels.grams.factors import landmark_maps, random_maps

if TYPE_CHECKING:
    from mixnorm.kernels.banks.bank import KernelBank

# Features of a kernel, if the parameter ``rank`` is None.
_DEFAULT_RANK = 256
# The least tail sum that a kernel is divided by, in parts of its mean diagonal.
_LEAST_TAIL_SUM = 1e-2


def build(
    bank: KernelBank, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> FittedBank:
    """Return a bank with valid parameters, bound to training rows."""
    X = as_input_table(X)
    n_features = width_of(X)
    if 0 in X.shape:
        raise ValueError(
            f"X has {X.shape[0]} rows and {n_features} columns; a bank needs one of each at least."
        )
    weight = as_row_weights(sample_weight, X.shape[0])
    plan, fitted, columns, tables, group_of = _prepare_tables(
        make_plan(bank.kernels, bank.columns), X, y, weight, bank.preprocess
    )
    # Rows are kept by group of columns, each packed once however many kernels compare it.
    rows = _prepare_rows(plan, tables, group_of)
    kernels = _fit_kernels(plan.kernels, rows, weight, group_of)
    made = FittedBank(
        names=plan.names,
        kernels=kernels,
        scales=np.ones(len(kernels)),
        unit=bank.normalize == "unit",
        rows=[pack(table) for table in rows],
        group_of=group_of,
        columns=columns,
        centres=_compute_centres(kernels, rows, group_of),
        preprocess=fitted,
        n_features_in=n_features,
        feature_names_in=names_of(X),
        precision=as_precision(bank.dtype),
        memory=as_bytes(bank.memory),
    )
    sizes = _measure_diagonals(made, weight)
    if bank.factors is not None:
        add_factors(made, bank.factors, bank.rank, weight, as_generator(bank.random_state))
    _normalize(made, bank.normalize, int(bank.tail), weight, sizes)
    return made


def _fit_kernels(
    kernels: list[Kernel], rows: list[Rows], weight: np.ndarray | None, group_of: list[int]
) -> list[Kernel]:
    """Return kernels with final parameters; relative widths on the same rows share the spread."""
    found: list[Kernel] = []
    spreads: dict[tuple[int, type], float] = {}
    for kernel, group in zip(kernels, group_of, strict=True):
        if not isinstance(kernel, WidthKernel) or not kernel.relative:
            found.append(kernel.resolve(rows[group]))
            continue
        # The spread costs a pass over the rows; many widths share it.
        key = (group, type(kernel))
        if key not in spreads:
            spreads[key] = kernel.spread(rows[group], weight)
        found.append(kernel.resolve(rows[group], spreads[key]))
    return found


def _prepare_rows(plan: BankPlan, tables: list[Any], group_of: list[int]) -> list[Rows]:
    """Return the rows of every group, which must be numbers for kernels of a metric."""
    rows, members = [], [list[int]() for _ in tables]
    for m, group in enumerate(group_of):
        members[group].append(m)
    for own, table in zip(members, tables, strict=True):
        what = _name_chooser(plan.labels[plan.group_of[own[0]]]) if len(tables) > 1 else "X"
        rows.append(rows_of(table, what, any(plan.kernels[m].metric for m in own)))
    return rows


def _compute_centres(
    kernels: list[Kernel], rows: list[Rows], group_of: list[int]
) -> list[np.ndarray | None]:
    """Return the centre of each group of columns, for groups with Euclidean distances."""
    near = {
        group
        for kernel, group in zip(kernels, group_of, strict=True)
        if kernel.metric == "sqeuclidean"
    }
    return [centre_of(table) if group in near else None for group, table in enumerate(rows)]


def _name_chooser(label: object) -> str:
    """Return a name for what chooses columns, for messages."""
    if label is None:
        return "columns"
    return f"entry {label} of columns" if isinstance(label, int) else f"group {label!r}"


# --- columns


def _prepare_tables(
    plan: BankPlan, X: Any, y: ArrayLike | None, weight: np.ndarray | None, preprocess: Any
) -> tuple[BankPlan, Any, list[Any], list[Any], list[int]]:
    """Return the plan for the columns of ``X``, and the tables that it leads to.

    After the plan come the fitted transformers, the positions of columns by table, the tables, and
    the number of each kernel's table.
    """
    if isinstance(preprocess, Mapping):
        return plan, *_prepare_tables_by_group(plan, X, y, weight, preprocess)
    fitted, Z, names = None, X, names_of(X)
    made = preprocess is not None
    # A transformer of all columns makes one table, from which groups choose.
    if made:
        fitted, Z = _fit_transform(preprocess, X, y, weight)
        Z = as_input_table(Z)
        names = names_of(Z) or _get_output_names(fitted)
    width = width_of(Z)
    plan = plan.spread(width, names)
    group_of: list[int] = []
    columns: list[Any] = []
    known: dict[Any, int] = {}
    for label, spec in zip(plan.labels, plan.columns, strict=True):
        where = locate(spec, names, width, _name_chooser(label), made)
        if isinstance(where, int):
            # One column chosen by position is a table of one column here; only transformers get an
            # array of one axis.
            where = np.asarray([where])
        # All columns, however they were chosen, are the table itself, and share its distances.
        if where is not None and np.array_equal(where, np.arange(width)):
            where = None
        key = None if where is None else tuple(where.tolist())
        if key not in known:  # kernels on the same columns share their metrics
            known[key] = len(columns)
            columns.append(where)
        group_of.append(known[key])
    tables = [select(Z, where) for where in columns]
    return plan, fitted, columns, tables, [group_of[group] for group in plan.group_of]


def _prepare_tables_by_group(
    plan: BankPlan,
    X: Any,
    y: ArrayLike | None,
    weight: np.ndarray | None,
    preprocess: Mapping[Any, Any],
) -> tuple[Any, list[Any], list[Any], list[int]]:
    """Return the same, for transformers that see the columns of their group only."""
    names, width = names_of(X), width_of(X)
    fitted: list[Any] = []
    columns, tables = [], []
    for label, spec in zip(plan.labels, plan.columns, strict=True):
        where = locate(spec, names, width, _name_chooser(label))
        table = select(X, where)
        transformer = preprocess.get(label)
        if transformer is not None:
            transformer, table = _fit_transform(transformer, table, y, weight)
        elif isinstance(where, int):
            where = np.asarray([where])
            table = select(X, where)
        fitted.append(transformer)
        columns.append(where)
        tables.append(table)
    return fitted, columns, tables, list(plan.group_of)


def _fit_transform(
    transformer: Any, X: Any, y: ArrayLike | None, weight: np.ndarray | None
) -> tuple[Any, Any]:
    """Return a fitted clone of a transformer, and what it makes of the rows."""
    if getattr(transformer, "transform", None) is None or isinstance(transformer, type):
        raise TypeError(
            f"preprocess has {transformer!r}, which is not a transformer; give an object with fit "
            "and transform, such as sklearn.preprocessing.StandardScaler(), or None."
        )
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    transformer = clone(transformer)
    # ``fit_transform`` of many transformers takes no weights.
    if weight is not None and has_fit_parameter(transformer, "sample_weight"):
        found = transformer.fit(X, y, sample_weight=weight).transform(X)
    elif getattr(transformer, "fit_transform", None) is not None:
        found = transformer.fit_transform(X, y)
    else:
        found = transformer.fit(X, y).transform(X)
    # Text vectorisers take a list of texts: given a table, they would go through its columns
    # instead.
    n_rows = getattr(found, "shape", (len(X),))[0]
    if n_rows != X.shape[0]:
        raise ValueError(
            f"preprocess has {transformer!r}, which made {n_rows} rows of {X.shape[0]}; it is "
            "given a table where the columns of its group are a list. For one that expects a list "
            "of texts give a single name instead."
        )
    return transformer, found


def _get_output_names(transformer: Any) -> list[str] | None:
    """Return the names of a transformer's output columns; None if it has none."""
    try:
        return [str(name) for name in transformer.get_feature_names_out()]
    except (AttributeError, NotImplementedError, ValueError):
        return None


# --- kernels


def _measure_diagonals(bank: FittedBank, weight: np.ndarray | None) -> np.ndarray:
    """Return mean diagonals; raise if a kernel overflows, or if a function is not a kernel."""
    limit = float(np.finfo(bank.dtype).max)
    sizes = np.empty(len(bank.kernels))
    for m, kernel in enumerate(bank.kernels):
        rows = unpack(bank.rows[bank.group_of[m]])
        diagonal = np.asarray(kernel.diagonal(rows), dtype=np.float64)
        # No entry exceeds the largest of the diagonal (Cauchy and Schwarz), so that none overflows
        # if the diagonal does not. A comparison with NaN is false.
        if not np.all(diagonal <= limit):
            worst = int(np.flatnonzero(~(diagonal <= limit))[0])
            if np.isnan(diagonal[worst]):
                raise ValueError(
                    f"kernel {bank.names[m]!r} is NaN between row {worst} and itself; look at the "
                    "function, or for missing values in its columns."
                )
            raise ValueError(
                f"kernel {bank.names[m]!r} of bank has the value {diagonal[worst]:.3g} in row "
                f"{worst} of X, too large for {bank.dtype}. Scale the columns of X, or lower the "
                "parameters of the kernel."
            )
        # Metrics give kernels that are positive semi-definite by construction; a user's function
        # may not.
        if kernel.metric is None:
            some = rows[block_rows(rows.shape[0])]
            check_matrices([np.asarray(kernel.between(some, some))], True, [bank.names[m]])
        sizes[m] = np.average(diagonal, weights=weight)
    return sizes


def _normalize(
    bank: FittedBank,
    normalize: str | None,
    tail: int,
    weight: np.ndarray | None,
    sizes: np.ndarray,
) -> None:
    """Set the scales of kernels."""
    if normalize not in ("trace", "tail"):
        return
    # First by the mean diagonal: the matrices of which tail sums are taken are then in the range of
    # float32.
    bank.scales = _invert_sizes(sizes)
    if normalize == "tail":
        grams = bank.grams()  # entries of about one, whatever the units of the data
        # A kernel with almost no tail would be multiplied by almost infinity.
        least = _LEAST_TAIL_SUM * np.average(grams.diagonals(), axis=1, weights=weight)
        factors = _invert_sizes(np.maximum(grams.tail_sums(tail, weight), least))
        bank.scales = bank.scales * factors
        grams.rescale(factors.astype(bank.dtype), bank._evaluator)
        # The tail sums needed the matrices; the next call of ``grams`` takes them over.
        bank._kept["grams"] = grams


def _invert_sizes(sizes: np.ndarray) -> np.ndarray:
    """Return the inverse of sizes; a kernel that is zero is not scaled."""
    return np.asarray(1.0 / np.where(sizes > np.finfo(np.float64).tiny, sizes, 1.0))


# --- factors


def add_factors(
    bank: FittedBank,
    factors: str,
    rank: int | None,
    weight: np.ndarray | None,
    generator: np.random.Generator,
) -> None:
    """Add factors to a bank: landmarks or random frequencies, and the maps to features."""
    first, which = find_distinct_rows([unpack(packed) for packed in bank.rows])
    rank = _choose_rank(bank, factors, rank, len(first))
    bank.factors = factors
    if factors == "random":
        widths = {group: shape_of(packed)[1] for group, packed in enumerate(bank.rows)}
        bank.maps, bank.map_of = random_maps(bank._exact, widths, rank, generator)
        return
    # Among distinct rows: a second copy of a landmark would add nothing.
    chosen = first[draw_rows(np.bincount(which, weights=weight), rank, generator)]
    bank.landmarks = [pack(unpack(packed)[chosen]) for packed in bank.rows]
    bank.maps = landmark_maps(bank._exact, bank._landmark_side)
    bank.map_of = list(range(bank.n_kernels))


def _choose_rank(bank: FittedBank, factors: str, rank: int | None, n_distinct: int) -> int:
    """Return the number of features of a kernel; distinct rows and memory limit it."""
    n, n_kernels = bank.n_samples, bank.n_kernels
    # One column of factors of all kernels.
    column = bank.dtype.itemsize * n * n_kernels
    least = 2 if factors == "random" else 1
    most = bank.memory // column
    wanted = least if rank is None else (rank if factors == "random" else min(rank, n_distinct))
    if most < wanted:
        raise ValueError(
            f"factors of rank {wanted} of {n_kernels} kernels on {n} rows need "
            f"{format_bytes(column * wanted)}, more than memory={format_bytes(bank.memory)}. Raise "
            f"memory{', use fewer kernels' if rank is None else ', lower rank'} or give fewer rows."
        )
    return max(least, min(n_distinct, _DEFAULT_RANK, most)) if rank is None else wanted


def as_precision(dtype: Any) -> str:
    """Return the name of the dtype of kernel matrices."""
    try:
        name = np.dtype(dtype).name if dtype is not None else None
    except TypeError:
        name = None
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} is not offered; choose 'float32' or 'float64'.")
    return str(name)

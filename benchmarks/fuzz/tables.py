"""Draw tables, targets and sample weights: ordinary, extreme and invalid ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

#: Factors from the smallest subnormal number to the largest finite one.
SCALES = (5e-324, 1e-310, 1e-200, 1e-100, 1e-30, 1e-8, 1e8, 1e30, 1e100, 1e140, 1e200, 1e300)

SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok")
ROWS, COLUMNS = 300, 30


@dataclass
class Table:
    """One drawn input: ``X``, ``y``, the sample weights, and what is wrong with them.

    ``dense`` is ``X`` as a float array, or None if there is none. ``wrong`` names the arguments
    that must be refused.
    """

    X: Any
    y: Any
    weight: Any = None
    dense: np.ndarray | None = None
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def draw_chance(rng: np.random.Generator, share: float) -> bool:
    """Return True with this probability."""
    return bool(rng.random() < share)


def pick(rng: np.random.Generator, values: Any) -> Any:
    """Return one of some values."""
    return values[int(rng.integers(len(values)))]


def draw_log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def draw_columns(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Return a table with columns of many kinds; some repeat or depend on others."""
    X = np.empty((rows, columns))
    for j in range(columns):
        X[:, j] = _draw_column(rng, rows)
        if j and draw_chance(rng, 0.1):  # a copy of an earlier column, or one that depends on two
            k = int(rng.integers(j))
            X[:, j] = X[:, k] if draw_chance(rng, 0.5) else X[:, k] - 2 * X[:, int(rng.integers(j))]
    if rows > 1 and draw_chance(rng, 0.2):  # repeated rows
        X = X[rng.integers(max(1, rows // 2), size=rows)]
    return X


def _draw_column(rng: np.random.Generator, rows: int) -> np.ndarray:
    kind = int(rng.choice(9, p=[0.4, 0.1, 0.15, 0.05, 0.05, 0.05, 0.05, 0.1, 0.05]))
    if kind == 0:
        return rng.standard_normal(rows)
    if kind == 1:
        return rng.integers(0, 4, rows).astype(float)
    if kind == 2:
        return rng.integers(0, 2, rows).astype(float)
    if kind == 3:
        return np.full(rows, float(rng.integers(-2, 3)))  # constant, often zero
    if kind == 4:
        return rng.standard_cauchy(rows)
    if kind == 5:
        return np.sort(rng.uniform(-1, 1, rows))
    if kind == 6:
        return 10.0 ** rng.integers(2, 13) + rng.standard_normal(rows)  # far from zero
    if kind == 7:
        return rng.standard_normal(rows) * (rng.random(rows) < 0.2)  # mostly zero
    return np.round(rng.standard_normal(rows), 1)  # ties


def scale_columns(rng: np.random.Generator, X: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the table with all or some columns in extreme units, and a note of the change."""
    draw = rng.random()
    if draw < 0.75 or not X.size:
        return X, ""
    with np.errstate(all="ignore"):
        if draw < 0.87:
            factor = pick(rng, SCALES)
            found, note = X * factor, f"X times {factor:g}"
        else:
            factors = 10.0 ** rng.uniform(-300, 300, X.shape[1])
            factors[rng.random(X.shape[1]) < 0.5] = 1.0
            found, note = X * factors, "columns of mixed scale"
    largest = np.finfo(float).max
    return np.clip(found, -largest, largest), note


def compute_signal(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Return one score per row, of about unit size, that depends on a few columns."""
    rows, columns = X.shape
    score = rng.standard_normal(rows) * pick(rng, (0.0, 0.1, 1.0))
    for j in rng.permutation(columns)[:3]:
        largest = np.abs(X[:, j]).max(initial=0.0)
        if largest > 0:
            score += rng.standard_normal() * (X[:, j] / largest)
    return score


def draw_labels(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Return class labels of some type; there may be tiny classes, or a single one."""
    rows = X.shape[0]
    classes = int(rng.choice([1, 2, 3, 4, 10], p=[0.02, 0.38, 0.35, 0.15, 0.1]))
    score = compute_signal(rng, X)
    edges = np.sort(rng.uniform(score.min(initial=0), score.max(initial=1), classes - 1))
    codes = (
        np.searchsorted(edges, score) if draw_chance(rng, 0.8) else rng.integers(classes, size=rows)
    )
    if classes > 1 and rows > 1 and len(np.unique(codes)) == 1:
        codes[int(rng.integers(rows))] += 1 if codes[0] == 0 else -1
    kinds: list[Any] = [
        lambda: codes,
        lambda: codes.astype(float),
        lambda: np.array(["red", "green", "blue", "zoé", "", "a b", "1", "2", "3", "4"])[codes],
        lambda: np.array(["red", "green", "blue", "x", "y", "z", "p", "q", "r", "s"], object)[
            codes
        ],
        lambda: codes * 1000 - 3,
        lambda: codes == 0,
        lambda: codes.astype(np.int8),
    ]
    found: np.ndarray = kinds[int(rng.choice(7, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]))]()
    return found


def draw_targets(rng: np.random.Generator, X: np.ndarray, outputs: int = 0) -> np.ndarray:
    """Return numbers to predict, in one column or ``outputs`` columns, also in extreme units."""
    columns = [compute_signal(rng, X) for _ in range(max(1, outputs))]
    y = np.column_stack(columns)
    draw = rng.random()
    with np.errstate(all="ignore"):
        if draw < 0.1:
            y = y * pick(rng, SCALES)
        elif draw < 0.2:
            y = y + 10.0 ** rng.integers(2, 15)
        elif draw < 0.23:
            y = np.sign(y) * 1.7e308
        elif draw < 0.28:
            y[:] = pick(rng, (0.0, 1.0, -3.0))
        elif draw < 0.38:
            y = np.round(y)
    largest = np.finfo(float).max
    y = np.clip(y, -largest, largest)
    return y if outputs else y[:, 0]


def draw_weights(rng: np.random.Generator, rows: int) -> tuple[Any, bool]:
    """Return sample weights or None, and whether they must be refused."""
    draw = rng.random()
    if draw < 0.6 or not rows:
        return None, False
    if draw < 0.75:
        return rng.uniform(0.1, 2, rows), False
    if draw < 0.88:
        return rng.integers(0, 3, rows) + (np.arange(rows) == 0), False
    if draw < 0.94:
        return rng.uniform(0.5, 1, rows) * pick(rng, SCALES), False
    kinds = [
        lambda: np.zeros(rows),
        lambda: -np.ones(rows),
        lambda: np.full(rows, np.nan),
        lambda: np.full(rows, np.inf),
        lambda: np.ones(rows + 1),
        lambda: ["a"] * rows,
    ]
    return pick(rng, kinds)(), True


def as_container(rng: np.random.Generator, X: np.ndarray, allow_sparse: bool) -> tuple[Any, str]:
    """Return the same table as another kind of object, and its name."""
    draw = rng.random()
    if draw < 0.5:
        return X, "array"
    if draw < 0.65 and allow_sparse and X.size and X.dtype != np.float16:
        name = pick(rng, SPARSE_FORMATS)
        make = getattr(sparse, f"{name}_{pick(rng, ('array', 'matrix'))}")
        return make(X), name
    if draw < 0.75:
        import pandas as pd

        return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])]), "frame"
    if draw < 0.8:
        return X.tolist(), "list"
    if draw < 0.85:
        return np.asfortranarray(X), "Fortran order"
    if draw < 0.9:
        wide = np.empty((X.shape[0], 2 * X.shape[1]))
        wide[:, ::2] = X
        return wide[:, ::2], "strided"
    if draw < 0.95:
        frozen = X.copy()
        frozen.flags.writeable = False
        return frozen, "read-only"
    return X.astype(">f8"), "big-endian"


def cast(rng: np.random.Generator, X: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the table in another number type if it fits that, and its name."""
    if draw_chance(rng, 0.85):
        return X, ""
    kind = pick(rng, (np.float32, np.int64, np.int32, np.uint8, bool, np.float16))
    with np.errstate(all="ignore"):
        found = X.astype(kind)
        same = bool(np.all(np.isfinite(found.astype(float))))
    if not same or (kind is not np.float32 and not np.array_equal(found.astype(float), X)):
        return X, ""
    return found, np.dtype(kind).name


def spoil(rng: np.random.Generator, table: Table) -> None:
    """Put something into ``X`` or ``y`` that must be refused."""
    X, y, rows = table.dense, table.y, len(table.y)
    assert X is not None
    kinds = {
        "NaN in X": ("X", lambda: _put(X, np.nan, rng)),
        "infinity in X": ("X", lambda: _put(X, pick(rng, (np.inf, -np.inf)), rng)),
        "no rows": ("X", lambda: X[:0]),
        "no columns": ("X", lambda: X[:, :0]),
        "one dimension": ("X", lambda: X.ravel()),
        "text in X": ("X", lambda: _put(X.astype(object), "text", rng)),
        "None in X": ("X", lambda: _put(X.astype(object), None, rng)),
        "complex X": ("X", lambda: X + 1j),
        "X is None": ("X", lambda: None),
        "X is a word": ("X", lambda: "table"),
        "y too short": ("y", lambda: y[:-1]),
        "y empty": ("y", lambda: y[:0]),
        "NaN in y": ("y", lambda: _put(_as_numbers(y), np.nan, rng)),
        "infinity in y": ("y", lambda: _put(_as_numbers(y), np.inf, rng)),
        "y is None": ("y", lambda: None),
        "mixed labels": ("y", lambda: np.array([1, "a", None] * rows, object)[:rows]),
    }
    note = pick(rng, sorted(kinds))
    if rows < 3 and note == "mixed labels":
        note = "y is None"
    name, make = kinds[note]
    setattr(table, name, make())
    if name == "X":
        table.dense = None
        if note == "no rows":
            table.y = y[:0]
    table.wrong.append(name)
    table.notes.append(note)


def _as_numbers(y: np.ndarray) -> np.ndarray:
    """Return targets as numbers; text labels become row numbers."""
    return y.astype(float) if y.dtype.kind in "fiub" else np.arange(len(y), dtype=float)


def _put(values: np.ndarray, item: Any, rng: np.random.Generator) -> np.ndarray:
    found = values.copy()
    if found.size:
        found.flat[int(rng.integers(found.size))] = item
    return found


def draw_table(
    rng: np.random.Generator,
    *,
    labels: bool,
    outputs: int = 0,
    sparse_too: bool = True,
    weights: bool = True,
    spoiled: float = 0.1,
) -> Table:
    """Return a drawn table, which with probability ``spoiled`` has something to be refused."""
    rows = int(
        draw_log_uniform(rng, 2, 60)
        if draw_chance(rng, 0.8)
        else draw_log_uniform(rng, 60, ROWS + 1)
    )
    columns = int(
        draw_log_uniform(rng, 1, 8)
        if draw_chance(rng, 0.8)
        else draw_log_uniform(rng, 8, COLUMNS + 1)
    )
    X = draw_columns(rng, rows, columns)
    y = draw_labels(rng, X) if labels else draw_targets(rng, X, outputs)
    X, unit = scale_columns(rng, X)
    table = Table(X, y, dense=X, notes=[f"{rows} x {columns}"])
    if unit:
        table.notes.append(unit)
    if weights:
        table.weight, refused = draw_weights(rng, rows)
        if table.weight is not None:
            table.notes.append("wrong weights" if refused else "weights")
        if refused:
            table.wrong.append("sample_weight")
    if draw_chance(rng, spoiled):
        spoil(rng, table)
        return table
    X, kind = cast(rng, X)
    table.dense = X.astype(float)
    table.X, container = as_container(rng, X if kind else X.astype(float), sparse_too)
    table.notes += [note for note in (kind, container) if note]
    return table

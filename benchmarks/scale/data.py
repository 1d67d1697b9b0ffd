"""The drawn tables: a softmax model on 25 columns as Parquet files, and a sparse panel of counts.

Each row group is drawn from a seed of its own. A table of fewer rows is therefore the beginning of
a table of more rows, and a process that draws a table holds one row group at a time.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 10
USEFUL = 25  # columns that matter
STEP = 0.05  # the strengths are STEP, 2 STEP, ..., USEFUL * STEP
# The standard deviation of a score, beside Gumbel noise. The true model then errs on a third of the
# rows (chance: nine tenths), and on 0.8 points more of them without its five weakest columns.
SIGNAL = 3.0
TEST_ROWS = 200_000
TARGET = "label"
GROUP_ROWS, FILE_ROWS = 1 << 17, 1 << 20  # rows of a row group, and of a file
# What the numbers after the seed mean, so that no two draws share a stream.
_TRUTH, _TRAIN, _TEST, _PANEL, _CELLS = range(5)


@dataclass(frozen=True)
class Truth:
    """The model behind a table: ``weights`` is ``(n_columns, CLASSES)``.

    ``order`` has the columns that matter, the strongest first, and ``strengths`` the root mean
    squares of their weights, in units of which the weakest is STEP.
    """

    weights: np.ndarray
    order: np.ndarray
    strengths: np.ndarray


@dataclass(frozen=True)
class Table:
    """A stored table: the folders of its training and test part."""

    folder: Path
    rows: int
    columns: int

    @property
    def train(self) -> Path:
        """The folder of the training part's files."""
        return self.folder / "train"

    @property
    def test(self) -> Path:
        """The folder of the test part's file."""
        return self.folder / "test"

    @property
    def bytes(self) -> int:
        """Bytes of the training part's files."""
        return sum(path.stat().st_size for path in self.train.glob("*.parquet"))


def find_cache() -> Path:
    """Return the folder of the drawn tables, which need not exist."""
    base = os.environ.get("MIXNORM_CACHE")
    if base:
        return Path(base).expanduser() / "scale"
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "mixnorm" / "scale"


def draw_truth(columns: int, seed: int = 0) -> Truth:
    """Draw which columns matter, and their weights."""
    rng = np.random.default_rng([seed, _TRUTH, columns])
    useful = min(USEFUL, columns)
    order = rng.permutation(columns)[:useful]
    strengths = STEP * np.arange(useful, 0, -1)
    found = rng.standard_normal((useful, CLASSES))
    found -= found.mean(axis=1, keepdims=True)
    found *= (strengths / np.sqrt(np.mean(found**2, axis=1)))[:, None]
    weights = np.zeros((columns, CLASSES))
    weights[order] = found * (SIGNAL / np.sqrt(np.sum(strengths**2)))
    return Truth(weights, order, strengths)


def draw_rows(
    truth: Truth, rows: int, seed: int = 0, part: int = _TRAIN
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield row groups: float32 columns, one per row of the first array, and labels."""
    columns, weights = len(truth.weights), truth.weights[truth.order]
    for number, start in enumerate(range(0, rows, GROUP_ROWS)):
        rng = np.random.default_rng([seed, part, columns, number])
        # Noise of a whole group comes first, so that a part of a group is its beginning.
        noise = rng.gumbel(size=(GROUP_ROWS, CLASSES))
        X = rng.standard_normal((GROUP_ROWS, columns), dtype=np.float32)
        size = min(GROUP_ROWS, rows - start)
        noise[:size] += X[:size, truth.order] @ weights
        yield X[:size].T, np.argmax(noise[:size], axis=1)


def write_rows(
    folder: Path, groups: Iterator[tuple[np.ndarray, np.ndarray]], file_rows: int = FILE_ROWS
) -> None:
    """Write row groups as Parquet files of at most ``file_rows`` rows."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True)
    writer, rows, number = None, 0, 0
    for X, y in groups:
        names = [*name_columns(len(X)), TARGET]
        group = pa.table([*map(np.ascontiguousarray, X), y], names=names)
        if writer is not None and rows + len(y) > file_rows:
            writer.close()
            writer = None
        if writer is None:
            path, rows = folder / f"part-{number:03d}.parquet", 0
            writer = parquet.ParquetWriter(path, group.schema, use_dictionary=[TARGET])
            number += 1
        writer.write_table(group, row_group_size=len(y))
        rows += len(y)
    if writer is not None:
        writer.close()


def name_columns(columns: int) -> list[str]:
    """Return the names of the columns."""
    return [f"x{number:04d}" for number in range(columns)]


def prepare_table(
    rows: int, columns: int, folder: Path | None = None, seed: int = 0, test_rows: int = TEST_ROWS
) -> Table:
    """Return a table, drawn if the folder of all tables (by default the cache) does not have it.

    The files appear under their name when all are written.
    """
    name = f"rows-{rows}-columns-{columns}-seed-{seed}"
    if test_rows != TEST_ROWS:
        name += f"-test-{test_rows}"
    place = (folder or find_cache()) / name
    table = Table(place, rows, columns)
    if place.exists():
        return table
    partial = place.with_name(f"{name}.{os.getpid()}.partial")
    try:
        truth = draw_truth(columns, seed)
        write_rows(partial / "train", draw_rows(truth, rows, seed))
        write_rows(partial / "test", draw_rows(truth, test_rows, seed, _TEST))
        described = describe_truth(truth, seed) | {"rows": rows, "columns": columns}
        (partial / "truth.json").write_text(json.dumps(described, indent=1))
        partial.replace(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return table


def describe_truth(truth: Truth, seed: int = 0) -> dict[str, Any]:
    """Return the columns that matter, and the errors of the true model in percent.

    ``best_error`` is with all its columns, ``best_error_20`` with the 20 strongest alone; nothing
    that is learned can do better on average.
    """
    wrong = np.zeros(2)
    few = np.zeros_like(truth.weights)
    few[truth.order[:20]] = truth.weights[truth.order[:20]]
    (X, y), *_ = draw_rows(truth, GROUP_ROWS, seed, _TEST)
    for place, weights in enumerate((truth.weights, few)):
        wrong[place] = np.mean(np.argmax(X.T @ weights, axis=1) != y)
    return {
        "useful": truth.order.tolist(),
        "strengths": truth.strengths.round(6).tolist(),
        "best_error": 100 * wrong[0],
        "best_error_20": 100 * wrong[1],
        "seed": seed,
    }


def read_truth(table: Table) -> dict[str, Any]:
    """Return what is stored of the model behind a table."""
    found: dict[str, Any] = json.loads((table.folder / "truth.json").read_text())
    return found


def read_groups(folder: Path) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
    """Yield the columns and the labels of a part's row groups."""
    from pyarrow import parquet

    for path in sorted(folder.glob("*.parquet")):
        file = parquet.ParquetFile(path)
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            columns = [group[name].to_numpy() for name in group.column_names if name != TARGET]
            yield columns, group[TARGET].to_numpy()


def read_arrays(folder: Path, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Read the first rows of a part: float32 columns, each of which lies together, and labels.

    Greedy fits read single columns, so this order suits them. One row group is in memory twice.
    """
    y, start = np.empty(rows, dtype=np.int64), 0
    X: np.ndarray | None = None
    for columns, labels in read_groups(folder):
        if X is None:
            X = np.empty((rows, len(columns)), dtype=np.float32, order="F")
        stop = min(rows, start + len(labels))
        for place, values in enumerate(columns):
            X[start:stop, place] = values[: stop - start]
        y[start:stop] = labels[: stop - start]
        start = stop
        if start == rows:
            break
    if X is None or start < rows:
        raise ValueError(f"{folder} has {start} rows, but {rows} are asked for.")
    return X, y


def find_scale(table: Table) -> dict[str, float]:
    """Return ``alpha_max`` of l2,1 for a table, and the loss of the best intercept.

    They need the sums of the columns by class. The result is stored beside the files.
    """
    path = table.folder / "scale.json"
    if not path.exists():
        sums, counts = np.zeros((CLASSES, table.columns)), np.zeros(CLASSES)
        for columns, labels in read_groups(table.train):
            counts += np.bincount(labels, minlength=CLASSES)
            member = np.equal.outer(np.arange(CLASSES), labels).astype(np.float64)
            sums += member @ np.stack(columns, axis=1)
        shares = counts / counts.sum()
        gradient = (np.outer(shares, sums.sum(axis=0)) - sums) / counts.sum()
        known = shares[shares > 0]
        found = {
            "alpha_max": float(np.linalg.norm(gradient, axis=0).max()),
            "null_loss": float(-np.sum(known * np.log(known))),
        }
        path.write_text(json.dumps(found))
    made: dict[str, float] = json.loads(path.read_text())
    return made

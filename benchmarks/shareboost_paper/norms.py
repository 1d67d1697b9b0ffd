"""Mixed norms on products of two inputs: the upper half of the paper's Figure 5.

Each method follows a path of penalties once. A point is the model at one penalty: its features are
counted, and nothing is fitted again on them. Columns are the products that ShareBoost chooses from,
divided by their largest magnitude as in ShareBoost, or standardised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Job, Record
from benchmarks.harness.methods import Method, Point
from benchmarks.harness.splits import Matrix
from benchmarks.shareboost_paper import products
from benchmarks.shareboost_paper.products import ATOMS, FEW, get_seconds, multiply_columns

SUITE = "benchmarks.shareboost_paper.norms"
PENALTIES, RATIO, TOL = 50, 1e-3, 1e-3
SHOWN = (5, 10, 20, 40, 60, 100, 200, 400)
SPARSE = (10, 20, 40)
GREEDY = ("products", "products, as in the paper")


@dataclass(frozen=True)
class Path(Method):
    """A path of ``MixedNormClassifier``, with columns scaled by the training part."""

    needs: ClassVar[str] = "mixnorm"
    path: ClassVar[bool] = True
    norm: str = "l2,1"
    standardise: bool = False
    expand: bool = True
    penalties: int = PENALTIES
    ratio: float = RATIO

    def setup(self) -> None:
        import mixnorm

        _ = mixnorm.MixedNormClassifier

    def convert(self, X: Matrix) -> Matrix:
        return multiply_columns(X) if self.expand else X

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from mixnorm import MixedNormClassifier

        shift, scale = self._scale(X)
        scaled = (X - shift) / scale if self.standardise else X / scale
        model = MixedNormClassifier(self.norm, tol=TOL)
        found = model.path(scaled, y, alphas=size, alpha_ratio=self.ratio)
        return np.unique(y), shift, scale, found

    def _scale(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = X.min(axis=0), X.max(axis=0)
        shift = X.mean(axis=0) if self.standardise else np.zeros_like(high)
        scale = X.std(axis=0) if self.standardise else np.maximum(-low, high)
        return shift, np.where(high > low, scale, np.ones_like(high))

    def most(self, X: Matrix) -> int:
        return self.penalties

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        classes, shift, scale, path = fitted
        return [
            Point(
                int(path.n_features[at]),
                int(path.n_features[at]),
                _make_predictor(classes, shift, scale, path, at),
            )
            for at in range(len(path))
        ]


def _make_predictor(
    classes: np.ndarray, shift: np.ndarray, scale: np.ndarray, path: Any, at: int
) -> Callable[[Matrix], np.ndarray]:
    def predict(X: Matrix) -> np.ndarray:
        used = path.supports[at]
        coef = path.coef(at)[:, used]
        scores = (X[:, used] - shift[used]) / scale[used] @ coef.T + path.intercepts[at]
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        found: np.ndarray = classes[scores.argmax(axis=1)]
        return found

    return predict


# All products of isolet take 4.7 GB, so there are fewer penalties, to about 200 features.
_VARIANTS: dict[str, dict[str, Any]] = {
    "": {"only": FEW},
    ", standardised": {"standardise": True, "only": FEW},
    ", 25 penalties": {"penalties": 25, "ratio": 0.05, "only": ("isolet",)},
    " of inputs": {"expand": False, "ratio": 1e-2, "only": ("isolet",)},
}
METHODS: dict[str, Method] = {
    f"{norm}{words}": Path(norm=norm, **settings)
    for words, settings in _VARIANTS.items()
    for norm in ("l2,1", "linf,1")
}


def plan(datasets: Sequence[str], penalties: int = PENALTIES) -> list[Job]:
    """List the jobs: every norm on each of its datasets."""
    return [
        Job(SUITE, data, name, penalties)
        for data in datasets
        for name, method in METHODS.items()
        if data in method.only
    ]


# --- the report


def select_records(runs: Mapping[str, Record], data: str) -> dict[str, Record]:
    """Return the records of one dataset: first ShareBoost's, then those of the norms."""
    greedy = products.select_records(runs, data)
    found = {r["method"]: r for r in runs.values() if r["method"] in METHODS and r["data"] == data}
    norms = {name: found[name] for name in METHODS if name in found}
    return {name: greedy[name] for name in GREEDY if name in greedy} | norms if norms else {}


def find_error(record: Record, size: int) -> float | None:
    """Return the test error of the last model on the path with at most ``size`` features.

    Return None if no model has as many features, because the path ended before.
    """
    points = record.get("points", [])
    inside = [point["error"] for point in points if 0 < point["features"] <= size]
    reached = any(point["features"] >= size for point in points)
    return float(inside[-1]) if inside and reached else None


def make_tables(runs: Mapping[str, Record]) -> Iterator[Table]:
    """Yield a table for each dataset: test error by number of features."""
    for data in ATOMS:
        records = select_records(runs, data)
        if not records:
            continue
        title = f"{data}: test error in percent, by number of features"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("", no_wrap=True)
        for column in (*map(str, SHOWN), "last", "features", "seconds"):
            table.add_column(column, justify="right", no_wrap=True)
        for name, record in records.items():
            table.add_row(name, *_format_cells(record))
        yield table


def _format_cells(record: Record) -> Iterator[str]:
    for size in SHOWN:
        found = find_error(record, size)
        yield "" if found is None else f"{found:.1f}"
    last = record["points"][-1] if "points" in record else None
    yield f"{last['error']:.1f}" if last else ""
    yield str(last["features"]) if last else ""
    spent, stopped = get_seconds(record)
    yield "failed" if spent is None else f"{'> ' if stopped else ''}{spent:.3g}"


def check_bar(runs: Mapping[str, Record]) -> Iterator[Check]:
    """Check that ShareBoost has a lower error with few features of the same products."""
    for data in ATOMS:
        records = select_records(runs, data)
        for name, record in records.items():
            if name in GREEDY or "products" not in records or " of inputs" in name:
                continue
            pairs = {
                size: (find_error(records["products"], size), find_error(record, size))
                for size in SPARSE
            }
            known = {s: (a, b) for s, (a, b) in pairs.items() if a is not None and b is not None}
            if not known:
                continue
            worse = [size for size, (ours, theirs) in known.items() if ours >= theirs]
            text = ", ".join(f"{a:.1f} against {b:.1f} at {s}" for s, (a, b) in known.items())
            asked = f"lower error at {', '.join(map(str, known))}"
            yield Check("norms", f"{data}: products / {name}", asked, text, not worse)

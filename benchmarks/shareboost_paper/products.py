"""Products of two inputs, and JointBoost: the paper's Figure 5.

The upper half of the figure has linear functions of products (``norms.py`` has the mixed norms
beside them), the lower half stumps of products for both ShareBoost and JointBoost.
The 190,036 products of isolet are too many for tables of stumps; each method names its replacement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness import splits
from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Job, Record
from benchmarks.harness.methods import Method, Point
from benchmarks.harness.splits import Matrix, Split
from benchmarks.shareboost_paper.classes import choose_alpha

SUITE = "benchmarks.shareboost_paper.products"
# Products of two different inputs.
ATOMS = {"satimage": 630, "pendigits": 120, "isolet": 190_036}
ROUNDS = 60
SHOWN = (1, 2, 5, 10, 20, 40, 60)
FEW = ("satimage", "pendigits")


def multiply_columns(X: np.ndarray) -> np.ndarray:
    """Return the products of all pairs of different columns."""
    left, right = np.triu_indices(X.shape[1], 1)
    made = np.empty((len(X), len(left)), dtype=X.dtype)
    for row, values in enumerate(X):  # row by row, to avoid temporary arrays of gigabytes
        np.multiply(values[left], values[right], out=made[row])
    return made


@dataclass(frozen=True)
class Boosted(Method):
    """A method with rounds, on the input columns or on columns of their products."""

    needs: ClassVar[str] = "mixnorm"
    path: ClassVar[bool] = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    expand: bool = False

    def setup(self) -> None:
        import mixnorm

        _ = mixnorm.ShareBoostClassifier, mixnorm.JointBoostClassifier

    def convert(self, X: Matrix) -> Matrix:
        return multiply_columns(X) if self.expand else X

    def most(self, X: Matrix) -> int:
        pairs: int = X.shape[1] * (X.shape[1] - 1) // 2  # of products; there are more stumps
        return pairs

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        rounds = np.asarray(fitted.path_["seconds"], dtype=float)
        shares = np.cumsum(rounds) / rounds.sum()
        chosen = [str(feature) for feature in fitted.path_["feature"]]
        return [
            Point(t, len(set(chosen[:t])), fitted.truncate(t).predict, float(shares[t - 1]))
            for t in range(1, len(rounds) + 1)
        ]


@dataclass(frozen=True)
class ShareBoost(Boosted):
    """``ShareBoostClassifier`` with the paper's scaling; held-out rows choose its ridge."""

    ours: ClassVar[bool] = True
    stumps: bool = False

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        if "alpha" in self.settings:
            return {}
        return {"alpha": choose_alpha(lambda alpha: self._model(size, alpha=alpha), X, y)}

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        return self._model(size, **tuned).fit(X, y)

    def _model(self, size: int, **tuned: Any) -> Any:
        from mixnorm import GreedyOptions, ShareBoostClassifier
        from mixnorm.pools import Products, Stumps

        pool = Stumps() if self.stumps else Products(linear=False, squares=False)
        model = ShareBoostClassifier(size, pool=pool, options=GreedyOptions(scale="max"))
        return model.set_params(**self.settings, **tuned)


@dataclass(frozen=True)
class JointBoost(Boosted):
    """``JointBoostClassifier``."""

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from mixnorm import JointBoostClassifier

        return JointBoostClassifier(size, random_state=0, **self.settings).fit(X, y)


_PAPER = {"options__rule": "l1", "alpha": 0.0}
_ISOLET = ("isolet",)
METHODS: dict[str, Method] = {
    "products": ShareBoost(),
    "products, as in the paper": ShareBoost(settings=_PAPER),
    "stumps": ShareBoost(stumps=True, expand=True, only=FEW),
    "stumps, as in the paper": ShareBoost(stumps=True, expand=True, settings=_PAPER, only=FEW),
    "JointBoost": JointBoost(expand=True, only=FEW),
    "JointBoost, all cuts": JointBoost(expand=True, settings={"n_bins": None}, only=FEW),
    "stumps of inputs": ShareBoost(stumps=True, only=_ISOLET),
    "JointBoost of inputs": JointBoost(only=_ISOLET),
    "JointBoost of inputs, all cuts": JointBoost(settings={"n_bins": None}, only=_ISOLET),
    "JointBoost, 1 % a round": JointBoost(
        expand=True, settings={"n_bins": 32, "max_features": 0.01}, only=_ISOLET
    ),
    "JointBoost, 32 bins": JointBoost(expand=True, settings={"n_bins": 32}, only=_ISOLET),
}
# Our methods that each JointBoost is compared with.
RIVALS = {
    "JointBoost": ("products", "stumps"),
    "JointBoost, all cuts": ("products", "stumps"),
    "JointBoost of inputs": ("stumps of inputs",),
    "JointBoost of inputs, all cuts": ("stumps of inputs",),
    "JointBoost, 1 % a round": ("products",),
    "JointBoost, 32 bins": ("products",),
}


def load(name: str) -> Split:
    """Return a stored dataset in float32 without scaling; every method scales for itself."""
    X, y, X_test, y_test = splits.load_parts(name)
    X, X_test = (np.ascontiguousarray(part, dtype=np.float32) for part in (X, X_test))
    return Split(X, y, X_test, y_test)


def count_atoms(X: np.ndarray) -> int:
    """Return the number of products in the pool."""
    from mixnorm.pools import Products

    return int(Products(linear=False, squares=False).prepare(X).n_usable)


def plan(datasets: Sequence[str], rounds: int) -> list[Job]:
    """List the jobs: every method on each of its datasets."""
    return [
        Job(SUITE, data, name, rounds)
        for data in datasets
        for name, method in METHODS.items()
        if not method.only or data in method.only
    ]


# --- the report


def select_records(runs: Mapping[str, Record], data: str) -> dict[str, Record]:
    """Return the records of one dataset by method, in the order of ``METHODS``."""
    mine = [r for r in runs.values() if r["method"] in METHODS and r["data"] == data]
    found = {r["method"]: r for r in sorted(mine, key=lambda r: r["size"])}  # the longest path
    return {name: found[name] for name in METHODS if name in found}


def list_errors(record: Record) -> dict[int, float]:
    """Return the test error in percent by round."""
    return {point["size"]: point["error"] for point in record.get("points", [])}


def get_seconds(record: Record) -> tuple[float | None, bool]:
    """Return the CPU seconds of the fit, and whether it was stopped then."""
    if record["status"] == "timeout":
        return record["limit"], True
    return record.get("seconds"), False


def make_tables(runs: Mapping[str, Record]) -> Iterator[Table]:
    """Yield a table for each dataset: test error by round, seconds, ratio to "products"."""
    for data in ATOMS:
        records = select_records(runs, data)
        if not records:
            continue
        title = f"{data}, {ATOMS[data]:,} products: test error in percent, by round"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("", no_wrap=True)
        for column in (*map(str, SHOWN), "columns", "alpha", "seconds", "ratio"):
            table.add_column(column, justify="right", no_wrap=True)
        ours = get_seconds(records["products"])[0] if "products" in records else None
        for name, record in records.items():
            table.add_row(name, *_format_cells(record, ours))
        yield table


def _format_cells(record: Record, ours: float | None) -> Iterator[str]:
    found = list_errors(record)
    for size in SHOWN:
        yield f"{found[size]:.1f}" if size in found else ""
    yield str(record["points"][-1]["features"]) if "points" in record else ""
    alpha = (METHODS[record["method"]].settings | record.get("tuned", {})).get("alpha")  # type: ignore[attr-defined]
    yield "" if alpha is None else f"{alpha:g}"
    spent, stopped = get_seconds(record)
    sign = "> " if stopped else ""
    yield "failed" if spent is None else f"{sign}{spent:.3g}"
    yield f"{sign}{spent / ours:.1f}" if spent and ours else ""


def check_bar(runs: Mapping[str, Record], counted: Mapping[str, int]) -> Iterator[Check]:
    """Check the number of products, and ShareBoost against JointBoost after equal rounds."""
    for data, atoms in ATOMS.items():
        if data in counted:
            found = counted[data]
            yield Check("products", f"{data}: atoms", f"{atoms:,}", f"{found:,}", found == atoms)
        records = select_records(runs, data)
        for peer, rivals in RIVALS.items():
            for rival in rivals:
                if peer in records and rival in records:
                    yield from _check_against(data, rival, peer, records)


def _check_against(
    data: str, rival: str, peer: str, records: Mapping[str, Record]
) -> Iterator[Check]:
    name = f"{data}: {rival} / {peer}"
    ours, theirs = list_errors(records[rival]), list_errors(records[peer])
    common = sorted(ours.keys() & theirs.keys() & set(SHOWN[2:]))
    if common:
        worse = [size for size in common if ours[size] >= theirs[size]]
        text = f"{ours[common[-1]]:.1f} against {theirs[common[-1]]:.1f} at {common[-1]}"
        text += f"; worse at {worse}" if worse else ""
        yield Check("products", name, "lower error from 5", text, not worse)
    (mine, _), (other, stopped) = get_seconds(records[rival]), get_seconds(records[peer])
    if mine and other:
        sign = "> " if stopped else ""
        text = f"{sign}{other / mine:.1f} ({sign}{other:.3g} s / {mine:.3g} s)"
        yield Check("products", name, "faster", text, other > mine)

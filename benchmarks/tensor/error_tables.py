"""The part ``tables`` of ``benchmarks.tensor``: errors over splits, with those of the paper."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.harness.terminal import describe_status, make_table
from benchmarks.mkl_table1.report import Figure
from benchmarks.tensor.models import DEGREES, MODELS
from benchmarks.tensor.paper import PAPER, PROTOTYPE, SPLITS

TARGETS = {"raw": "target as it is", "centred": "target less the mean of the training part"}
EXACT = "l4/3"  # has the prototype's grid, and so the same figures up to rounding
CLOSE = 0.01
MOST_SPLITS = 9  # of ten; by chance this has a probability of one percent
SHARE = 0.2  # upper bound of the growth with centred targets over that with raw targets
ERRORS = 2.0  # standard errors within which there is no difference

DATA = "wpbc"  # the dataset of the published figures

Key = tuple[str, int]  # model and degree
Found = Mapping[str, Record]


@dataclass(frozen=True)
class Results:
    """The records of one target, by model, degree and split."""

    target: str
    records: Mapping[Key, Mapping[int, Record]]

    @classmethod
    def of(cls, target: str, found: Found, data: str = DATA) -> Results:
        """Return the results of one target from all records."""
        groups: dict[Key, dict[int, Record]] = {}
        for record in _select_part(found, data):
            if record["status"] == "ok":
                key = (record["model"], record["degree"])
                groups.setdefault(key, {})[record["seed"]] = record[target]
        order = [(model, degree) for model in MODELS for degree in DEGREES.get(model, (0,))]
        return cls(target, {key: groups[key] for key in order if key in groups})

    def values(self, key: Key, name: str = "mse") -> list[float]:
        """Return a figure on all splits that have it."""
        records = self.records.get(key, {}).values()
        return [record[name] for record in records if record.get(name) is not None]

    def less(self, key: Key, other: Key) -> np.ndarray:
        """Return the errors less those of another model, on their common splits."""
        mine, theirs = self.records.get(key, {}), self.records.get(other, {})
        both = sorted(mine.keys() & theirs.keys())
        return np.array([mine[seed]["mse"] - theirs[seed]["mse"] for seed in both])

    def whole(self, *keys: Key) -> bool:
        """Return whether all splits of the prototype were run."""
        return all(self.records.get(key, {}).keys() == set(range(SPLITS)) for key in keys)


# --- tables


def make_tables(found: Found, data: str = DATA) -> Iterator[Table]:
    """Yield a table for each target, and one of failures."""
    for target in TARGETS:
        results = Results.of(target, found, data)
        if results.records:
            yield make_target_table(data, results)
    rest = [record for record in _select_part(found, data) if record["status"] != "ok"]
    if rest:
        yield make_trouble_table(rest)


def make_target_table(data: str, results: Results) -> Table:
    """Return the errors of every model, with the prototype's and, for raw targets, the paper's."""
    columns = ("splits", "mean", "median", "less ridge", "count", "CPU s")
    published = ("prototype", "paper") if results.target == "raw" else ("prototype",)
    title = f"Tables 3 and 4, {data}: test errors, {TARGETS[results.target]}"
    table = make_table(title, *columns, *(published if data == DATA else ()))
    table.caption_justify = "left"
    table.caption = (
        "± standard error over splits. less ridge: of the same degree, split by split (without "
        "one: of degree 1). count: weights two deviations from their mean; of the Lasso, not zero. "
        "CPU s: 100 penalties, every width, errors. paper: its only split."
    )
    keys = list(results.records)
    for key, later in zip(keys, [*keys[1:], ("", 0)], strict=True):
        last = key[0] != later[0] and key[0] in DEGREES
        cells = _format_cells(results, key)[: len(table.columns) - 1]
        table.add_row(name_model(key, results.target), *cells, end_section=last)
    return table


def _format_cells(results: Results, key: Key) -> tuple[str, ...]:
    values, counts = results.values(key), results.values(key, "count")
    rival = ("ridge", key[1] or 1)
    less = results.less(key, rival) if key != rival else np.zeros(0)
    published = PROTOTYPE.get((results.target, *key))
    return (
        str(len(values)),
        format_figure(Figure.of(np.array(values))),
        f"{statistics.median(values):.0f}",
        format_figure(Figure.of(less), "+") if len(less) else "",
        f"{statistics.mean(counts):.1f}" if counts else "",
        f"{statistics.mean(results.values(key, 'seconds')):.2g}",
        ""
        if published is None
        else f"{published.mean:.0f}" + (f"/{published.median:.0f}" if published.median else ""),
        PAPER.get(key, ""),
    )


def make_trouble_table(records: list[Record]) -> Table:
    """Return the table of failures."""
    table = make_table("Without figures", "split", "why")
    for record in records:
        key = name_model((record["model"], record["degree"]))
        table.add_row(key, str(record["seed"]), describe_status(record))
    return table


def name_model(key: Key, target: str = "") -> str:
    """Return the name of a model with its degree."""
    if key[0] == "constant" and target:
        return "zero" if target == "raw" else "training mean"
    return f"{key[0]}, degree {key[1]}" if key[1] else key[0]


def format_figure(figure: Figure, sign: str = "") -> str:
    """Return mean and standard error without decimals."""
    return f"{figure.mean:{sign}.0f}" + (f" ± {figure.error:.0f}" if figure.sure else "")


# --- the bar


def check_bar(found: Found) -> Iterator[Check]:
    """Check the figures against the prototype's, and the effect of centring by split."""
    some = {key: record for key, record in found.items() if record.get("seed", 0) < SPLITS}
    raw, centred = (Results.of(target, some) for target in TARGETS)
    for results in (raw, centred):
        for model in MODELS:
            yield _check_same(results, model)
        yield _check_counts(results)
    for model in (EXACT, "ridge"):
        yield _check_growth(raw, model)
        yield _check_centred_growth(raw, centred, model)
        yield _check_flat(centred, model)


def _list_keys(target: str, model: str) -> list[Key]:
    return [(m, degree) for t, m, degree in PROTOTYPE if (t, m) == (target, model)]


def _check_same(results: Results, model: str) -> Check:
    """Check means to a standard error; for the exact model, means and medians to a percent."""
    keys, exact = _list_keys(results.target, model), model == EXACT
    name = f"{results.target}: {name_model((model, 0), results.target)}"
    asked = "prototype ± " + (f"{100 * CLOSE:g} %" if exact else "1 s.e.")
    off: list[float] = []
    for key in keys:
        values, published = results.values(key), PROTOTYPE[(results.target, *key)]
        if not values:
            continue
        if exact:
            off.append(100.0 * (statistics.mean(values) / published.mean - 1.0))
            if published.median:
                off.append(100.0 * (statistics.median(values) / published.median - 1.0))
        else:
            figure = Figure.of(np.array(values))
            off.append((figure.mean - published.mean) / figure.error)
    if not off:
        return Check("tables", name, asked)
    most = 100.0 * CLOSE if exact else 1.0
    found = f"off by {min(off):+.2f} to {max(off):+.2f} {'%' if exact else 's.e.'}"
    passed = max(map(abs, off)) <= most if results.whole(*keys) else None
    return Check("tables", name, asked, found, passed)


def _check_counts(results: Results) -> Check:
    """Check the numbers of weights that matter; the prototype rounds them."""
    keys = _list_keys(results.target, EXACT)
    name, asked = f"{results.target}: {EXACT}, weights far out", "prototype ± 1 % ± 0.5"
    if not all(results.values(key, "count") for key in keys):
        return Check("tables", name, asked)
    means = [statistics.mean(results.values(key, "count")) for key in keys]
    published = [PROTOTYPE[(results.target, *key)].count or 0.0 for key in keys]
    near = all(abs(m - t) <= CLOSE * t + 0.5 for m, t in zip(means, published, strict=True))
    shown = ", ".join(f"{mean:.1f}" for mean in means)
    return Check("tables", name, asked, shown, near if results.whole(*keys) else None)


def _check_growth(raw: Results, model: str) -> Check:
    low, high = (model, 1), (model, 4)
    name = f"raw: {model}, degree 4 less 1"
    asked = f"> 0 in {MOST_SPLITS} of {SPLITS}"
    growth = raw.less(high, low)
    if not len(growth):
        return Check("tables", name, asked)
    above = int(np.sum(growth > 0))
    found = f"{above} of {len(growth)}; {format_figure(Figure.of(growth), '+')}"
    return Check(
        "tables", name, asked, found, above >= MOST_SPLITS if raw.whole(low, high) else None
    )


def _check_centred_growth(raw: Results, centred: Results, model: str) -> Check:
    low, high = (model, 1), (model, 4)
    name = f"centred: {model}, degree 4 less 1"
    asked = f"<= {SHARE:g} raw's in {MOST_SPLITS} of {SPLITS}"
    before, after = raw.less(high, low), centred.less(high, low)
    if not len(after) or len(after) != len(before):
        return Check("tables", name, asked)
    small = int(np.sum(after <= SHARE * before))
    found = f"{small} of {len(after)}; {format_figure(Figure.of(after), '+')}"
    passed = small >= MOST_SPLITS if centred.whole(low, high) else None
    return Check("tables", name, asked, found, passed)


def _check_flat(centred: Results, model: str) -> Check:
    low, high = (model, 2), (model, 4)
    name, asked = f"centred: {model}, degree 4 less 2", f"<= {ERRORS:g} s.e."
    growth = centred.less(high, low)
    if not len(growth):
        return Check("tables", name, asked)
    figure = Figure.of(growth)
    passed = figure.mean <= ERRORS * figure.error if centred.whole(low, high) else None
    return Check("tables", name, asked, format_figure(figure, "+"), passed)


def _select_part(found: Found, data: str) -> Iterator[Record]:
    return (r for r in found.values() if (r["part"], r.get("data")) == ("tables", data))

"""Tables and the bar of ``benchmarks.online``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.harness.terminal import new_table, status
from benchmarks.online.data import DATA
from benchmarks.online.learners import BATCH, METHODS, SECONDS

VW = "vw"
# Last methods of the sections of a table.
LAST = ("trace", "vw-text", "sklearn-passive-tuned")
# Rows a second that the group perceptron must learn from, and its least ratios.
RATES = {"mnist": 350_000.0, "isolet": 250_000.0}
OVER_VW, OVER_RIVER = 3.0, 500.0
# Mirror descent: most mistakes for one of Vowpal Wabbit's.
MISTAKES, DENSE = 1.05, ("mnist", "isolet", "pendigits", "letter")
# Most seconds for one row of 784 features.
ONE_ROW = {"learn_one": 10e-6, "partial_fit": 200e-6}

Found = Mapping[str, Record]  # by "data/method"


def tables(found: Found) -> Iterator[Table]:
    """Yield a table for every dataset, and one of single rows."""
    for data in DATA:
        records = {m: found[f"{data}/{m}"] for m in METHODS if f"{data}/{m}" in found}
        if records:
            yield data_table(data, records)
    single = {key: record for key, record in found.items() if "learn_one_seconds" in record}
    if single:
        yield row_table(single)


def data_table(data: str, records: Found) -> Table:
    """Return the rates and mistakes of every method on one dataset."""
    table = new_table(data, "rows", "rows / s", "/ vw", "first + s", "mistakes", "%", "tuned to")
    table.caption_justify = "left"
    table.caption = (
        f"* predicted in batches of {BATCH} before each is learned from, in a pass not timed; "
        f"river: defaults, the rows of {SECONDS:.0f} s; tuned: the settings with the fewest "
        "mistakes on this stream, the search is not timed."
    )
    for method, record in records.items():
        end = method in LAST or (method == "mirror-tuned" and "trace" not in records)
        table.add_row(method, *_cells(record, records.get(VW, {})), end_section=end)
    return table


def _cells(record: Record, vw: Record) -> tuple[str, ...]:
    if record["status"] != "ok":
        return ("", status(record))
    mark = "*" if record["batched"] else ""
    settings: dict[str, object] = record.get("settings", {})
    return (
        f"{record['rows']:,}",
        f"{record['rate']:,.0f}",
        f"{record['rate'] / vw['rate']:.3g}" if "rate" in vw else "",
        "" if settings else f"{record['extra_seconds']:.2f}",
        f"{record['mistakes']:,}{mark}",
        f"{100 * record['mistakes'] / record['rows']:.2f}",
        ", ".join(f"{name}={value}" for name, value in settings.items()),
    )


def row_table(found: Found) -> Table:
    """Return the times of rows that come one by one."""
    table = new_table("One row at a time", "learn_one us", "partial_fit us")
    for key, record in found.items():
        times = (record[f"{name}_seconds"] for name in ONE_ROW)
        table.add_row(key, *(f"{1e6 * seconds:.1f}" for seconds in times))
    return table


def checks(found: Found) -> Iterator[Check]:
    """Check rates, ratios, mistakes and single rows."""
    for data, least in RATES.items():
        group = found.get(f"{data}/group", {})
        yield _rate(data, group, least)
        yield _ratio("group", data, group, found, VW, OVER_VW)
        for river in ("river", "river-zeros"):
            if not METHODS[river].only or data in METHODS[river].only:
                yield _ratio("group", data, group, found, river, OVER_RIVER)
    # Defaults beside defaults, tuned beside tuned.
    for ours, peer in (("mirror", VW), ("mirror-tuned", "vw-tuned")):
        for data in DATA:
            mine, theirs = found.get(f"{data}/{ours}", {}), found.get(f"{data}/{peer}", {})
            yield _mistakes(ours, data, mine, peer, theirs)
            if data in DENSE:
                yield _ratio(ours, data, mine, found, peer, OVER_VW)
    single = (name for name, each in METHODS.items() if each.ours and not (each.only or each.grid))
    for method in single:
        record = found.get(f"mnist/{method}", {})
        for name, most in ONE_ROW.items():
            yield _one_row(f"{method}: {name}", record.get(f"{name}_seconds"), most)


def _rate(data: str, record: Record, least: float) -> Check:
    name, asked, rate = f"{data}: rows a second", f">= {least:,.0f}", record.get("rate")
    if rate is None:
        return Check("group", name, asked)
    return Check("group", name, asked, f"{rate:,.0f}", rate >= least)


def _ratio(group: str, data: str, ours: Record, found: Found, peer: str, least: float) -> Check:
    name, asked = f"{data}: speed", f">= {least:g} times {peer}"
    mine, theirs = ours.get("rate"), found.get(f"{data}/{peer}", {}).get("rate")
    if mine is None or theirs is None:
        return Check(group, name, asked)
    text = f"{mine / theirs:.3g} ({mine:,.0f} / {theirs:,.0f})"
    return Check(group, name, asked, text, mine >= least * theirs)


def _mistakes(group: str, data: str, ours: Record, peer: str, vw: Record) -> Check:
    name, asked = f"{data}: mistakes", f"<= {MISTAKES:g} times {peer}"
    mine, theirs = ours.get("mistakes"), vw.get("mistakes")
    if mine is None or not theirs:
        return Check(group, name, asked)
    text = f"{mine / theirs:.3f} ({mine:,} / {theirs:,})"
    return Check(group, name, asked, text, mine <= MISTAKES * theirs)


def _one_row(name: str, seconds: float | None, most: float) -> Check:
    asked = f"< {1e6 * most:.0f} us"
    if seconds is None:
        return Check("one row", name, asked)
    return Check("one row", name, asked, f"{1e6 * seconds:.1f} us", seconds < most)

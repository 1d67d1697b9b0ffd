"""Tables and the bar of ``benchmarks.online``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.harness.terminal import describe_status, make_table
from benchmarks.online.data import DATA
from benchmarks.online.learners import BATCH, METHODS, SECONDS

VW = "vw"
# The last method of each section of a table.
LAST = ("trace", "vw-text", "sklearn-passive-tuned")
# Rows per second that the group perceptron must reach, and its smallest ratios to others.
RATES = {"mnist": 350_000.0, "isolet": 250_000.0}
OVER_VW, OVER_RIVER = 3.0, 500.0
# Upper bound of mirror descent's mistakes, as a multiple of Vowpal Wabbit's.
MISTAKES, DENSE = 1.05, ("mnist", "isolet", "pendigits", "letter")
# Upper bounds of seconds for one row of 784 features.
ONE_ROW = {"learn_one": 10e-6, "partial_fit": 200e-6}

Found = Mapping[str, Record]  # by "data/method"


def make_tables(found: Found) -> Iterator[Table]:
    """Yield a table for each dataset, and one for single rows."""
    for data in DATA:
        records = {m: found[f"{data}/{m}"] for m in METHODS if f"{data}/{m}" in found}
        if records:
            yield make_data_table(data, records)
    single = {key: record for key, record in found.items() if "learn_one_seconds" in record}
    if single:
        yield make_row_table(single)


def make_data_table(data: str, records: Found) -> Table:
    """Return the rates and mistakes of every method on one dataset."""
    table = make_table(data, "rows", "rows / s", "/ vw", "first + s", "mistakes", "%", "tuned to")
    table.caption_justify = "left"
    table.caption = (
        f"* predicted in batches of {BATCH} before each is learned from, in a pass not timed; "
        f"river: defaults, the rows of {SECONDS:.0f} s; tuned: the settings with the fewest "
        "mistakes on this stream, the search is not timed."
    )
    for method, record in records.items():
        end = method in LAST or (method == "mirror-tuned" and "trace" not in records)
        table.add_row(method, *_format_cells(record, records.get(VW, {})), end_section=end)
    return table


def _format_cells(record: Record, vw: Record) -> tuple[str, ...]:
    if record["status"] != "ok":
        return ("", describe_status(record))
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


def make_row_table(found: Found) -> Table:
    """Return a table of the times of single rows."""
    table = make_table("One row at a time", "learn_one us", "partial_fit us")
    for key, record in found.items():
        times = (record[f"{name}_seconds"] for name in ONE_ROW)
        table.add_row(key, *(f"{1e6 * seconds:.1f}" for seconds in times))
    return table


def check_bar(found: Found) -> Iterator[Check]:
    """Check rates, ratios, mistakes and single rows."""
    for data, least in RATES.items():
        group = found.get(f"{data}/group", {})
        yield _check_rate(data, group, least)
        yield _check_ratio("group", data, group, found, VW, OVER_VW)
        for river in ("river", "river-zeros"):
            if not METHODS[river].only or data in METHODS[river].only:
                yield _check_ratio("group", data, group, found, river, OVER_RIVER)
    # Defaults are compared with defaults, and tuned with tuned.
    for ours, peer in (("mirror", VW), ("mirror-tuned", "vw-tuned")):
        for data in DATA:
            mine, theirs = found.get(f"{data}/{ours}", {}), found.get(f"{data}/{peer}", {})
            yield _check_mistakes(ours, data, mine, peer, theirs)
            if data in DENSE:
                yield _check_ratio(ours, data, mine, found, peer, OVER_VW)
    single = (name for name, each in METHODS.items() if each.ours and not (each.only or each.grid))
    for method in single:
        record = found.get(f"mnist/{method}", {})
        for name, most in ONE_ROW.items():
            yield _check_one_row(f"{method}: {name}", record.get(f"{name}_seconds"), most)


def _check_rate(data: str, record: Record, least: float) -> Check:
    name, asked, rate = f"{data}: rows a second", f">= {least:,.0f}", record.get("rate")
    if rate is None:
        return Check("group", name, asked)
    return Check("group", name, asked, f"{rate:,.0f}", rate >= least)


def _check_ratio(
    group: str, data: str, ours: Record, found: Found, peer: str, least: float
) -> Check:
    name, asked = f"{data}: speed", f">= {least:g} times {peer}"
    mine, theirs = ours.get("rate"), found.get(f"{data}/{peer}", {}).get("rate")
    if mine is None or theirs is None:
        return Check(group, name, asked)
    text = f"{mine / theirs:.3g} ({mine:,.0f} / {theirs:,.0f})"
    return Check(group, name, asked, text, mine >= least * theirs)


def _check_mistakes(group: str, data: str, ours: Record, peer: str, vw: Record) -> Check:
    name, asked = f"{data}: mistakes", f"<= {MISTAKES:g} times {peer}"
    mine, theirs = ours.get("mistakes"), vw.get("mistakes")
    if mine is None or not theirs:
        return Check(group, name, asked)
    text = f"{mine / theirs:.3f} ({mine:,} / {theirs:,})"
    return Check(group, name, asked, text, mine <= MISTAKES * theirs)


def _check_one_row(name: str, seconds: float | None, most: float) -> Check:
    asked = f"< {1e6 * most:.0f} us"
    if seconds is None:
        return Check("one row", name, asked)
    return Check("one row", name, asked, f"{1e6 * seconds:.1f} us", seconds < most)

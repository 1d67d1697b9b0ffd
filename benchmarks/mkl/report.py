"""Tables and the bar of ``benchmarks.mkl``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.harness.terminal import describe_status, make_table
from benchmarks.mkl.methods import METHODS

SVC, MADE, EASY = "svc-average", "svc-average-made", "mklpy-easy"
# himalaya's fit is compared with our fits, and its search with our search, which has as many fits.
FIT, SEARCH = "himalaya-fit", "himalaya-short"
BAR_DATA = "segment"
# Upper bounds of seconds, as multiples of EasyMKL's and of those of SVC on the average kernel.
OF_EASY = 1 / 25
TIMES_SVC = {"lp": 10.0, "smsd": 50.0, "smsd-mirror": 6.0, "ufo-mirror": 6.0}
GAP = 0.01
MEMORY = 1.2  # kernels and growth together, as a multiple of the kernels in float32
LARGE_SECONDS, LARGE_BYTES, SYNTHETIC_BYTES = 180.0, 4 * 2**30, 2 * 2**30

Found = Mapping[str, Record]  # by "part/data/method"


def make_tables(found: Found) -> Iterator[Table]:
    """Yield a table for each dataset with stored kernels, and one for many rows."""
    for data in dict.fromkeys(record["data"] for record in found.values()):
        records = {m: found[f"stack/{data}/{m}"] for m in METHODS if f"stack/{data}/{m}" in found}
        if records:
            yield make_stack_table(data, records)
    many = {key: record for key, record in found.items() if record["part"] != "stack"}
    if many:
        yield make_rows_table(many)


def make_stack_table(data: str, records: Found) -> Table:
    """Return seconds, accuracy and memory of every method on one dataset."""
    known = next((r for r in records.values() if r["status"] == "ok"), {"rows": 0})
    size = known.get("stack_bytes", 0) / 2**20
    columns = ("fits", "seconds", "/ fits", "/ svc", "easy /", "him /", "first +", "test %")
    columns = (*columns, "gap %", "peak MiB", "in stacks")
    table = make_table(f"{data}: {known['rows']} rows, 21 kernels, {size:.0f} MiB", *columns)
    table.caption_justify = "left"
    table.caption = (
        "fits: number of fits of a search, without the final one; / fits: seconds "
        "over these. / svc: times SVC given the average kernel. easy /: EasyMKL's seconds over "
        f"these. him /: {FIT}'s seconds over those of one fit, {SEARCH}'s over those of a search. "
        "peak: growth in the first call; in stacks: that and the kernels as held, over those in "
        "float32."
    )
    for method, record in records.items():
        end = method in (FIT, "ufo-mirror")
        table.add_row(method, *_format_cells(method, record, records), end_section=end)
    return table


def _format_cells(method: str, record: Record, records: Found) -> tuple[str, ...]:
    if record["status"] != "ok":
        return ("", describe_status(record))
    seconds, fits, ours = record["seconds"], record.get("fits", 1), METHODS[method].ours
    one = fits == 1
    svc, easy, theirs = (
        records.get(name, {}).get("seconds") for name in (SVC, EASY, FIT if one else SEARCH)
    )
    once = "" if record["later_seconds"] else " (1st)"
    return (
        str(fits),
        f"{seconds:.3g}{once}",
        "" if one else f"{seconds / fits:.2g}",
        f"{seconds / svc:.3g}" if svc and one else "",
        f"{easy / seconds:.3g}" if easy and ours and one else "",
        f"{theirs / seconds:.3g}" if theirs and ours else "",
        f"{record['extra_seconds']:.2f}",
        f"{record['accuracy']:.2f}",
        f"{100 * record['gap']:.2g}" if "gap" in record else "",
        f"{record['peak_bytes'] / 2**20:.0f}",
        f"{count_stacks(record):.2f}",
    )


def count_stacks(record: Record) -> float:
    """Return the bytes of a method's kernels and growth over those of the kernels in float32."""
    return float((record["held_bytes"] + record["peak_bytes"]) / record["stack_bytes"])


def make_rows_table(found: Found) -> Table:
    """Return the table for many rows."""
    title = "Many rows: 21 kernels by Nystrom factors, lp"
    columns = ("rows", "rank", "seconds", "first +", "right %", "gap %", "growth GiB", "peak GiB")
    table = make_table(title, *columns)
    for key, record in found.items():
        if record["status"] != "ok":
            table.add_row(key, describe_status(record))
            continue
        table.add_row(
            key,
            f"{record['rows']:,}",
            str(record["rank"]),
            f"{record['seconds']:.3g}",
            f"{record['extra_seconds']:.2f}",
            f"{record['accuracy']:.2f}" + (" (seen)" if record.get("seen") else ""),
            f"{100 * record['gap']:.2g}",
            f"{record['peak_bytes'] / 2**30:.2f}",
            f"{record['total_bytes'] / 2**30:.2f}",
        )
    return table


def check_bar(found: Found) -> Iterator[Check]:
    """Check seconds, gap and memory on segment, and the parts with many rows."""
    records = {m: found.get(f"stack/{BAR_DATA}/{m}", {}) for m in METHODS}
    yield _check_easy(records)
    for method, most in TIMES_SVC.items():
        yield _check_svc(method, records, most)
    for method in ("lp", "smsd"):
        yield _check_at_most(
            BAR_DATA, f"{method}: relative gap", records[method].get("gap"), GAP, ".4f"
        )
    lp = records["lp"]
    stacks = count_stacks(lp) if "peak_bytes" in lp else None
    yield _check_at_most(BAR_DATA, "lp: memory, in stacks", stacks, MEMORY, ".3f")
    large, many = found.get("large/letter/lp", {}), found.get("rows50k/synthetic/lp", {})
    yield _check_seconds("letter: seconds", large, LARGE_SECONDS)
    yield _check_bytes("letter: peak", large.get("total_bytes"), LARGE_BYTES)
    yield _check_bytes("50,000 rows: growth", many.get("peak_bytes"), SYNTHETIC_BYTES)


def _check_easy(records: Found) -> Check:
    name, asked = "lp: seconds", f"<= 1/{1 / OF_EASY:g} of EasyMKL"
    mine, theirs = records["lp"].get("seconds"), records[EASY].get("seconds")
    if mine is None or theirs is None:
        return Check(BAR_DATA, name, asked)
    text = f"1/{theirs / mine:.3g} ({mine:.3g} / {theirs:.3g} s)"
    return Check(BAR_DATA, name, asked, text, mine <= OF_EASY * theirs)


def _check_svc(method: str, records: Found, most: float) -> Check:
    name, asked = f"{method}: seconds", f"<= {most:g} SVC"
    mine, theirs = records[method].get("seconds"), records[SVC].get("seconds")
    if mine is None or theirs is None:
        return Check(BAR_DATA, name, asked)
    text = f"{mine / theirs:.3g} ({mine:.3g} / {theirs:.3g} s)"
    made = records[MADE].get("seconds")
    if made:
        text += f"; {mine / made:.3g} with averaging"
    return Check(BAR_DATA, name, asked, text, mine <= most * theirs)


def _check_at_most(group: str, name: str, value: float | None, most: float, form: str) -> Check:
    asked = f"<= {most:g}"
    if value is None:
        return Check(group, name, asked)
    return Check(group, name, asked, format(value, form), value <= most)


def _check_seconds(name: str, record: Record, most: float) -> Check:
    if record.get("status") != "timeout":
        return _check_at_most("many rows", name, record.get("seconds"), most, ".1f")
    # A method that was stopped earlier than the bound has neither passed nor missed.
    missed = False if record["limit"] >= most else None
    return Check("many rows", name, f"<= {most:g}", f"> {record['limit']:g}", missed)


def _check_bytes(name: str, value: float | None, most: float) -> Check:
    asked = f"<= {most / 2**30:g} GiB"
    if value is None:
        return Check("many rows", name, asked)
    return Check("many rows", name, asked, f"{value / 2**30:.2f} GiB", value <= most)

"""Tables and the bar of ``benchmarks.mnist``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.harness.terminal import describe_status
from benchmarks.mnist.methods import PEERS

OURS = ("mixnorm-cpu", "mixnorm-cuda")
# By number of features: the bound on the error in percent, and the bound in words.
ORIGINAL: dict[int, tuple[float, str]] = {75: (1.05, "<= 1.05 %"), 266: (0.65, "<= 0.65 %")}
DEFORMED: dict[int, tuple[float, str]] = {75: (1.0, "< 1 %"), 305: (0.47, "<= 0.47 %, aim 0.40")}
PAPER: dict[int, tuple[float, str]] = {266: (0.71, "<= 0.71 %")}  # the paper's error
ERRORS = {
    "paper": PAPER,
    "original": ORIGINAL,
    "upright": ORIGINAL,
    "deformed": DEFORMED,
    "deformed-upright": DEFORMED,
    "tuned": DEFORMED,
}
# Upper bounds of seconds from a file of images to a model; on the CPU, without copies.
WHOLE = {"mixnorm-cpu": 1200.0, "mixnorm-cuda": 30.0}
MEMORY = 12.0  # GiB, on the CPU
MULTIPLY_ADDS, RATE = 3.3e6, 5000.0
STAGES = ("load", "deform", "upright", "templates", "responses", "rounds", "whole", "warm-up")

Found = Mapping[str, Record]  # by "judged/variant/method"


def list_ours(found: Found) -> Iterator[tuple[str, str, str, Record]]:
    """Yield evaluation images, variant, method and record of each record of ours."""
    for key, record in found.items():
        judged, variant, method = key.split("/")
        if method in OURS and record["status"] == "ok":
            yield judged, variant, method, record


# --- tables


def make_tables(found: Found) -> Iterator[Table]:
    """Yield tables of our errors, of seconds by stage, and of the comparison with others."""
    for judged, variant, method, record in list_ours(found):
        yield make_error_table(f"{variant} images, {method}: errors by {judged}", record)
    for judged in dict.fromkeys(judged for judged, *_ in list_ours(found)):
        yield make_stage_table(judged, found)
    for place in dict.fromkeys(key.rsplit("/", 1)[0] for key in found):
        own = {key: record for key, record in found.items() if key.startswith(f"{place}/")}
        records = {key.rsplit("/", 1)[1]: record for key, record in own.items()}
        if any(method in PEERS for method in records):
            yield make_peer_table(place, records)


def make_error_table(title: str, record: Record) -> Table:
    """Return errors, costs and rates of some models of a path."""
    table = _make_table(title, "features", "error %", "wrong", "multiply-adds", "images / s")
    for point in record["points"]:
        table.add_row(
            str(point["size"]),
            f"{point['error']:.2f}",
            f"{point['error'] * record['judged'] / 100:.0f}",
            f"{point['multiply_adds']:,}",
            f"{point['rate']:,.0f}",
        )
    return table


def make_stage_table(judged: str, found: Found) -> Table:
    """Return seconds by stage, and memory."""
    titles = ("images", "features", *STAGES, "GiB", "GPU GiB")
    table = _make_table(f"Seconds by stage, and memory: {judged}", "", *titles)
    for place, variant, method, record in list_ours(found):
        if place == judged:
            gpu = record.get("gpu_memory")
            table.add_row(
                f"{variant}, {_name_device(method)}",
                f"{record['images']:,}",
                str(record["features"]),
                *(f"{record['seconds'][stage]:.2f}" for stage in STAGES),
                f"{record['memory']:.2f}",
                "" if gpu is None else f"{gpu:.2f}",
            )
    return table


def make_peer_table(place: str, records: Found) -> Table:
    """Return a table of ours and others, with their seconds over ours and our rate over theirs."""
    fine = {method: record for method, record in records.items() if record["status"] == "ok"}
    name = next((method for method in OURS if method in fine), None)
    titles = ("error %", "fit s", "ratio", "images / s", "ratio", "vectors", "GiB")
    judged, variant = place.split("/")
    table = _make_table(f"{variant} images, beside others: errors by {judged}", "method", *titles)
    table.caption_justify = "left"
    table.caption = f"Ratios to {name}: their seconds over ours, our images a second over theirs."
    for method, record in records.items():
        if method not in fine:
            table.add_row(method, "", describe_status(record))
            continue
        rate = _get_last(record)["rate"]
        against = fine[name] if name and method in PEERS else None
        table.add_row(
            method,
            f"{_get_last(record)['error']:.2f}",
            f"{record['fit_seconds']:.3g}",
            ""
            if against is None
            else _format_ratio(record["fit_seconds"] / against["fit_seconds"]),
            f"{rate:,.0f}",
            "" if against is None else _format_ratio(_get_last(against)["rate"] / rate),
            f"{record['vectors']:,}" if "vectors" in record else "",
            f"{record['memory']:.2f}",
        )
    return table


def _format_ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}"


def _name_device(method: str) -> str:
    return method.removeprefix("mixnorm-")


def _get_last(record: Record) -> Record:
    """Return the largest model of a path; other libraries have one model."""
    found: Record = record["points"][-1] if "points" in record else record
    return found


def _make_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        words = column in ("", "method")
        table.add_column(column, justify="left" if words else "right", no_wrap=True)
    return table


# --- the bar


def check_bar(found: Found) -> Iterator[Check]:
    """Check the records of the test part with all images and features."""
    for judged, variant, method, record in list_ours(found):
        if judged != "test":
            continue
        group = f"{variant}, {_name_device(method)}"
        for size, (bound, asked) in ERRORS[variant].items():
            if size <= len(record["curve"]):
                error = record["curve"][size - 1]
                good = error < bound if asked.startswith("< ") else error <= bound
                yield Check(group, f"error with {size} features", asked, f"{error:.2f} %", good)
        if method == "mixnorm-cuda" or ERRORS[variant] is not DEFORMED:
            whole, most = record["seconds"]["whole"], WHOLE[method]
            yield Check(group, "whole run", f"< {most:g} s", f"{whole:.1f} s", whole < most)
        if method == "mixnorm-cpu":
            memory, rate = record["memory"], _get_last(record)["rate"]
            text = f"{memory:.1f} GiB"
            yield Check(group, "memory", f"< {MEMORY:g} GiB", text, memory < MEMORY)
            text = f"{rate:,.0f} ({record['threads']} threads)"
            yield Check(group, "images a second", f">= {RATE:,.0f}", text, rate >= RATE)
        adds = _get_last(record)["multiply_adds"]
        asked = f"<= {MULTIPLY_ADDS / 1e6:g} million"
        text = f"{adds / 1e6:.2f} million"
        yield Check(group, "multiply-adds an image", asked, text, adds <= MULTIPLY_ADDS)

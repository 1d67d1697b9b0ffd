"""Tables and the bar of ``benchmarks.matrix``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.matrix.child import OURS, list_solvers
from benchmarks.matrix.data import GAPS, MULTITASK, NORMS, Place
from benchmarks.matrix.tasks import LOW_RANK_PEERS
from benchmarks.matrix.tasks import PEERS as TASK_PEERS

RIVALS = tuple(TASK_PEERS)
FIRST_EXTRA = 3.0
FIFTH = 5.0
WIDE = ("pendigits", "satimage", "isolet")
LARGE_SECONDS, LARGE_BYTES = 120.0, 4 * 2**30
TRUE_WITHIN = 1e-6


def get_seconds(record: Record | None) -> float | None:
    """Return the seconds of a record, or its limit if it was stopped."""
    if record is None or record["status"] not in ("ok", "timeout"):
        return None
    found: float = record["seconds"] if record["status"] == "ok" else record["limit"]
    return found


def compute_extra(record: Record) -> float:
    """Return the extra seconds of the first call in a process, imports included."""
    more: float = record["first_seconds"] - record["seconds"]
    return float(record["import_seconds"]) + max(0.0, more)


def make_problem_table(place: Place, records: Mapping[str, Record]) -> Table:
    """Return a table of one problem: gap, time and memory of every method, and the ratio to ours.

    A ratio compares a solver with our solver that does the same work.
    """
    title = f"{place.part}: {place.data}, {place.norm}, relative gap {GAPS[place.part]:g}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    table.add_column("work", no_wrap=True)
    columns = ("tol", "gap", "objective", "features", "rank", "seconds", "first +", "peak MiB")
    for column in (*columns, "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for method, record in records.items():
        beside = records.get(name_our_method(place, method))
        table.add_row(method, list_solvers(place)[method].work, *_format_cells(record, beside))
    return table


def name_our_method(place: Place, method: str) -> str:
    """Return the name of our solver that does the same work."""
    known = list_solvers(place)
    return next(
        name for name, solver in known.items() if solver.ours and solver.work == known[method].work
    )


def _format_cells(record: Record, ours: Record | None) -> tuple[str, ...]:
    if record["status"] == "absent":
        return ("not installed", *[""] * 8)
    if record["status"] == "failed":
        return ("failed", *[""] * 8)
    spent, own = get_seconds(record), get_seconds(ours)
    sign = "> " if record["status"] == "timeout" else ""
    ratio = f"{sign}{spent / own:.2f}" if spent and own and record is not ours else ""
    if sign:
        return (f"{record.get('tol', 0):.0e}", *[""] * 4, f"{sign}{spent:g}", "", "", ratio)
    return (
        f"{record['tol']:.0e}",
        f"{record['relative_gap']:.1e}" + ("" if is_reached(record) else " !"),
        f"{record['objective']:.7g}",
        str(record["features"]),
        str(record.get("rank", "")),
        f"{spent:.3g}",
        f"{compute_extra(record):.2f}",
        f"{record['peak_bytes'] / 2**20:.0f}",
        ratio,
    )


def is_reached(record: Record) -> bool:
    """Return whether the gap at the solution is small enough, up to rounding."""
    return bool(record["relative_gap"] <= record["asked"] * (1 + 1e-6))


def make_truth_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of small problems: our objective and gap, and cvxpy's optimum."""
    table = Table(title="truth: beside cvxpy", title_justify="left", box=SIMPLE_HEAD)
    for column in ("norm", "loss", "form"):
        table.add_column(column)
    for column in ("objective", "cvxpy", "relative difference", "our gap"):
        table.add_column(column, justify="right")
    for each in found:
        table.add_row(
            each["norm"],
            each["loss"],
            each["form"],
            f"{each['objective']:.8g}",
            f"{each['optimum']:.8g}",
            f"{each['difference']:.1e}",
            f"{each['gap']:.1e}",
        )
    return table


def check_bar(found: Mapping[str, Record], truth: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Check every figure of the bar."""
    for setting in MULTITASK:
        yield from _check_multitask(Place("multitask", setting, "l2,1"), found)
    for data in WIDE:
        for norm in NORMS:
            yield from _check_multiclass(Place("multiclass", data, norm), found)
    yield from _check_trace(found)
    if truth:
        far = max(abs(each["difference"]) for each in truth)
        text = f"{far:.1e} in {len(truth)} problems"
        yield Check("truth", "objective", f"<= {TRUE_WITHIN:g} off", text, far <= TRUE_WITHIN)
        wrong = [each for each in truth if not each["bound"]]
        names = ", ".join(f"{each['norm']} {each['loss']} {each['form']}" for each in wrong)
        yield Check("truth", "gap >= distance", "always", names or "always", not wrong)


def _check_multitask(place: Place, found: Mapping[str, Record]) -> Iterator[Check]:
    ours = found.get(f"{place.key}/{OURS}", {"status": "absent"})
    peers = {name: found.get(f"{place.key}/{name}", {"status": "absent"}) for name in RIVALS}
    usable = {n: each for n, each in peers.items() if each["status"] == "ok" and is_reached(each)}
    asked = f"<= best of {', '.join(RIVALS)}"
    if ours["status"] != "ok" or not usable:
        yield Check("multitask", place.data, asked)
        return
    best = min(usable, key=lambda name: usable[name]["seconds"])
    theirs, own = usable[best]["seconds"], ours["seconds"]
    # A rival that took longer than we did is slower even if it was stopped or left a larger gap.
    # If the result of some rival is unknown, the check does not pass, but it may fail.
    slower = [n for n, each in peers.items() if n not in usable and (get_seconds(each) or 0) > own]
    known = len(usable) + len(slower)
    text = f"{own:.3g} s / {theirs:.3g} s ({best}; {known} of {len(RIVALS)} measured)"
    passed = own <= theirs and (None if known < len(RIVALS) else True)
    yield Check("multitask", place.data, asked, text, passed)
    more = compute_extra(ours)
    name, asked = f"{place.data}: first call", f"< {FIRST_EXTRA:g} s more"
    yield Check("multitask", name, asked, f"{more:.2f} s", more < FIRST_EXTRA)
    yield _check_gap("multitask", place.data, ours)


def _check_multiclass(place: Place, found: Mapping[str, Record]) -> Iterator[Check]:
    label, known = f"{place.data}, {place.norm}", list_solvers(place)
    for peer in (name for name, solver in known.items() if not solver.ours):
        ours, theirs = (
            found.get(f"{place.key}/{name_our_method(place, peer)}"),
            f"{place.key}/{peer}",
        )
        yield _check_ratio("multiclass", label, ours, peer, found.get(theirs), FIFTH)
    for name in (name for name, solver in known.items() if solver.ours):
        ours = found.get(f"{place.key}/{name}")
        if ours and ours["status"] == "ok":
            yield _check_gap("multiclass", f"{label}, {name}", ours)


def _check_trace(found: Mapping[str, Record]) -> Iterator[Check]:
    ours = found.get(f"trace/isolet/trace/{OURS}")
    yield _check_ratio("trace", "isolet", ours, "spams", found.get("trace/isolet/trace/spams"), 1.0)
    if ours and ours["status"] == "ok":
        yield _check_gap("trace", "isolet", ours)
    large = found.get(f"trace/low-rank/trace/{OURS}", {"status": "absent"})
    wanted = (("seconds", f"< {LARGE_SECONDS:g} s"), ("memory", "< 4 GiB"))
    if large["status"] != "ok":
        yield from (Check("trace", f"low-rank: {part}", asked) for part, asked in wanted)
        return
    spent, peak = max(large["seconds"], large["first_seconds"]), large["peak_total_bytes"]
    yield Check("trace", "low-rank: seconds", wanted[0][1], f"{spent:.3g} s", spent < LARGE_SECONDS)
    text = f"{peak / 2**30:.2f} GiB, the whole process"
    yield Check("trace", "low-rank: memory", wanted[1][1], text, peak < LARGE_BYTES)
    yield _check_gap("trace", "low-rank", large)
    for peer in LOW_RANK_PEERS:
        theirs = found.get(f"trace/low-rank/trace/{peer}")
        yield _check_ratio("trace", "low-rank", large, peer, theirs, 1.0)


def _check_ratio(
    group: str, label: str, ours: Record | None, peer: str, theirs: Record | None, least: float
) -> Check:
    name, asked = f"{label}: {peer}", f">= {least:g} times ours"
    own, other = get_seconds(ours), get_seconds(theirs)
    if not own or not other or ours["status"] != "ok":  # type: ignore[index]
        return Check(group, name, asked)
    sign = ">" if theirs["status"] == "timeout" else ""  # type: ignore[index]
    text = f"{sign}{other / own:.2f} ({other:.3g} s / {own:.3g} s)"
    passed = other >= least * own
    return Check(group, name, asked, text, None if sign and not passed else passed)


def _check_gap(group: str, label: str, ours: Record) -> Check:
    text = f"{ours['relative_gap']:.1e}"
    return Check(group, f"{label}: gap", f"<= {ours['asked']:g}", text, is_reached(ours))

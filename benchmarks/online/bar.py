"""Tables and the bar of ``benchmarks.online``: raw tables, units, an earlier commit, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.online.parts import MAP, MEMORY_CALLS, NOW, SPEED_DATA, SPEED_METHODS, THEN
from benchmarks.online.raw_tables import FEW_ROWS, METHODS, ORDERS, TABLES

OURS, OURS_TUNED = "mirror", "mirror-tuned"
# Our learner with its defaults is compared with these.
RIVALS = ("vw-tuned", "river")
# Bounds: share of mistakes that changes, speed relative to the earlier commit, extra memory for a
# read-only map relative to X, and time of the first call relative to the earlier commit.
CHANGE, SPEED, MEMORY, FIRST = 0.02, 0.7, 0.05, 1.0

Found = Mapping[str, Record]


def get_figure(found: Found, key: str, name: str) -> float | None:
    """Return a figure of a finished measurement, or None."""
    value = found.get(key, {}).get(name)
    return None if value is None else float(value)


def find_fastest(found: Found, prefix: str, name: str) -> float | None:
    """Return the best figure of all turns: most rows per second, or fewest seconds.

    Other work on the machine can only add seconds, and if it lasts, it also changes a median.
    """
    values = [one[name] for key, one in found.items() if key.startswith(prefix) and name in one]
    best = max if name == "rate" else min
    return float(best(values)) if values else None


# --- tables


def make_tables(found: Found) -> Iterator[Table]:
    """Yield a table for each part with measurements."""
    makers = {
        "tables/": make_mistakes_table,
        "affine/": make_affine_table,
        "speed/": make_speed_table,
        "memory/": make_memory_table,
        "first/": make_first_table,
    }
    for prefix, make in makers.items():
        records = {key: record for key, record in found.items() if key.startswith(prefix)}
        if records:
            yield make(records)


def make_mistakes_table(found: Found) -> Table:
    """Return the mistakes of all methods on raw tables, and ratios of ours to the others."""
    pairs = (*((OURS, rival) for rival in RIVALS), (OURS_TUNED, "river-tuned"))
    ratios = (*(f"/ {rival}" for rival in RIVALS), "tuned / tuned")
    table = _make_table("Mistakes on raw tables", "table", "rows", *METHODS, *ratios)
    for name in TABLES:
        values = {
            method: get_figure(found, f"tables/{name}/{method}", "mistakes") for method in METHODS
        }
        rows = [found.get(f"tables/{name}/{method}", {}).get("rows") for method in METHODS]
        known = [each for each in rows if each is not None]
        if known:
            cells = (_format_number(values[method], _choose_format(known[0])) for method in METHODS)
            shares = (_compute_ratio(values[ours], values[rival]) for ours, rival in pairs)
            table.add_row(
                name, f"{known[0]:,}", *cells, *(_format_number(each, ".3f") for each in shares)
            )
    table.caption = (
        f"Rows predicted before they are learned from; means over {ORDERS} orders where there are "
        f"fewer than {FEW_ROWS:,} rows. Tuned: the fewest mistakes on these very rows. Ratios: "
        "mirror to the peers of the bar, mirror-tuned to river-tuned."
    )
    return table


def make_affine_table(found: Found) -> Table:
    """Return a table of the changes of mistakes with units and origins of columns."""
    title = "Columns in other units and with another origin"
    table = _make_table(
        title, "table", "rows", "mistakes", "one column %", "of", "all %", "of", "worst"
    )
    for key, record in found.items():
        if record["status"] != "ok":
            table.add_row(key.split("/")[1], record["status"])
            continue
        kinds = [record["single"], record["together"]]
        worst = max(kinds, key=lambda kind: kind["change"])
        cells = [cell for k in kinds for cell in (f"{100 * k['change']:.2f}", f"{k['tried']:,}")]
        counts = (f"{record['rows']:,}", f"{record['mistakes']:,}")
        largest = f"{worst['mistakes']:,}, {worst['worst']}" if worst["change"] else ""
        table.add_row(key.split("/")[1], *counts, *cells, largest)
    table.caption = "Mistakes are summed over all orders; changes are the largest of those tried."
    return table


def make_speed_table(found: Found) -> Table:
    """Return a table of rows per second, of this and of the earlier commit."""
    table = _make_table(
        "Rows per CPU second beside the earlier commit", "data", "now", "then", "ratio"
    )
    for data in SPEED_DATA:
        for method in SPEED_METHODS:
            now, then = (
                find_fastest(found, f"speed/{data}/{method}/{s}/", "rate") for s in (NOW, THEN)
            )
            cells = (
                _format_number(now, ",.0f"),
                _format_number(then, ",.0f"),
                _format_number(_compute_ratio(now, then), ".2f"),
            )
            table.add_row(f"{data}, {method}", *cells)
    table.caption = "The fastest of the turns of each side."
    return table


def make_memory_table(found: Found) -> Table:
    """Return a table of memory growth for rows in several layouts."""
    table = _make_table("Memory beside X", "call, X", "X MiB", "growth MiB", "growth / X")
    for call, kinds in MEMORY_CALLS.items():
        for kind in kinds:
            size, growth = _get_sizes(found, call, kind)
            if size is not None and growth is not None:
                cells = (f"{size / 2**20:.0f}", f"{growth / 2**20:.1f}", f"{growth / size:.3f}")
                table.add_row(f"{call}, {kind}", *cells)
    return table


def make_first_table(found: Found) -> Table:
    """Return a table of seconds of a first call, of this and of the earlier commit."""
    title = "First partial_fit with an empty compiler cache, CPU seconds"
    table = _make_table(title, "", "now", "then", "ratio")
    names = {
        "seconds": "first call, import included",
        "layout_seconds": "then Fortran and read-only rows",
        "sparse_seconds": "then CSR rows",
        "single_seconds": "then learn_one",
    }
    for name, words in names.items():
        now, then = (find_fastest(found, f"first/{side}/", name) for side in (NOW, THEN))
        cells = (
            _format_number(now, ".2f"),
            _format_number(then, ".2f"),
            _format_number(_compute_ratio(now, then), ".2f"),
        )
        table.add_row(words, *cells)
    table.caption = "The fastest of the turns of each side."
    return table


# --- the bar


def check_bar(found: Found) -> Iterator[Check]:
    """Check mistakes, their changes, speed, memory and the first call."""
    for name in TABLES:
        for rival in RIVALS:
            yield _check_mistakes(found, name, rival)
    for name in TABLES:
        yield _check_affine(found, name)
    for data in SPEED_DATA:
        for method in SPEED_METHODS:
            pair = [find_fastest(found, f"speed/{data}/{method}/{s}/", "rate") for s in (NOW, THEN)]
            asked = f">= {SPEED:g} times the earlier"
            yield _check_beside("speed", f"{data}: {method}", asked, pair, ",.0f", least=SPEED)
    for call in MEMORY_CALLS:
        yield _check_memory(found, call)
    pair = [find_fastest(found, f"first/{side}/", "seconds") for side in (NOW, THEN)]
    yield _check_beside(
        "first call", OURS, f"<= {FIRST:g} times the earlier", pair, ".1f", most=FIRST
    )


def _check_mistakes(found: Found, name: str, rival: str) -> Check:
    keys = (f"tables/{name}/{OURS}", f"tables/{name}/{rival}")
    ours, theirs = (get_figure(found, key, "mistakes") for key in keys)
    asked = f"<= {rival}"
    if ours is None or theirs is None:
        return Check("tables", name, asked)
    form = _choose_format(int(found[keys[0]]["rows"]))
    text = (
        f"{_format_number(_compute_ratio(ours, theirs), '.3f')} ({ours:{form}} / {theirs:{form}})"
    )
    return Check("tables", name, asked, text, ours <= theirs)


def _check_affine(found: Found, name: str) -> Check:
    asked, record = f"<= {100 * CHANGE:g} % of mistakes change", found.get(f"affine/{name}", {})
    if record.get("status") != "ok":
        return Check("affine", name, asked)
    change = max(record[kind]["change"] for kind in ("single", "together"))
    text = f"{100 * change:.2f} % of {record['mistakes']:,}"
    return Check("affine", name, asked, text, change <= CHANGE)


def _check_beside(
    group: str,
    name: str,
    asked: str,
    pair: list[float | None],
    form: str,
    least: float = 0.0,
    most: float = float("inf"),
) -> Check:
    now, then = pair
    ratio = _compute_ratio(now, then)
    if ratio is None:
        return Check(group, name, asked)
    text = f"{ratio:.2f} ({_format_number(now, form)} / {_format_number(then, form)})"
    return Check(group, name, asked, text, least <= ratio <= most)


def _check_memory(found: Found, call: str) -> Check:
    name, asked = f"{call}, {MAP}", f"<= {MEMORY:g} of X extra"
    size, growth = _get_sizes(found, call, MAP)
    share = _compute_ratio(growth, size)
    if share is None:
        return Check("memory", name, asked)
    return Check("memory", name, asked, f"{share:.3f}", share <= MEMORY)


def _get_sizes(found: Found, call: str, kind: str) -> tuple[float | None, float | None]:
    """Return the bytes of ``X`` and the growth of the resident size."""
    key = f"memory/{call}/{kind}"
    return get_figure(found, key, "x_bytes"), get_figure(found, key, "peak_bytes")


def _compute_ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _choose_format(rows: int) -> str:
    """Return the format of mistakes, with a decimal if they are means over orders."""
    return ",.1f" if rows < FEW_ROWS else ",.0f"


def _format_number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _make_table(title: str, first: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.caption_justify = "left"
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="left" if column == "worst" else "right", no_wrap=True)
    return table

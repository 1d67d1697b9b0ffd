"""The tables of ``benchmarks.scale``, and its figures beside the bar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.harness.terminal import describe_status, make_table
from benchmarks.scale import peers
from benchmarks.scale.parts import LARGE, OURS, SMALL, WORKERS
from benchmarks.shareboost.growth import fit_slope

GIB = 2**30
BLOCK_TIMES = {SMALL: 2.5, LARGE: 1.5}  # of the fit in memory
BLOCK_BYTES = {SMALL: GIB, LARGE: 4 * GIB}
READS = 4.0  # times the table
FASTER, KILLED = 1.6, 1.5
POINTS, PEER_TIMES = 0.5, 5.0
GENE_SECONDS, GENE_BYTES = 300.0, 8 * GIB
NORM_TIMES, NORM_GAP = 2.0, 1e-4
EXPONENT = 1.05
GROUPS = (
    ("single", "in memory, and by blocks"),
    ("cluster", "on a cluster"),
    ("kill", "with a worker killed"),
    ("peers", "beside peers"),
    ("expression", "expression panel"),
    ("norm", "l2,1 multinomial"),
    ("growth", "growth of the cost"),
)


class Results:
    """The records of a run by key; ``None`` stands for what was not measured."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self.records = records

    def find(self, key: str) -> Record | None:
        """Return a record that has figures."""
        record = self.records.get(key)
        return record if record is not None and record["status"] == "ok" else None

    def get(self, key: str, name: str) -> Any:
        """Return one figure of a record."""
        record = self.find(key)
        return None if record is None else record.get(name)

    def ratio(self, key: str, other: str) -> float | None:
        """Return the seconds of one run over those of another."""
        mine, theirs = self.get(key, "wall"), self.get(other, "wall")
        return None if mine is None or theirs is None else mine / theirs

    def same_bits(self, *keys: str) -> bool | None:
        """Return whether the weights of some runs of one version are equal to the last bit."""
        bits = [self.get(key, "bits") for key in keys]
        if None in bits or len({self.get(key, "source") for key in keys}) > 1:
            return None
        return len(set(bits)) == 1


def check_bar(
    records: Mapping[str, Record], null_loss: float | None = None, *, full: bool = True
) -> list[Check]:
    """Compare all figures with the bar; at sizes that are not ``full`` none passes or fails."""
    found = Results(records)
    checks = [
        *_check_single(found),
        *_check_cluster(found),
        *_check_peers(found),
        *_check_expression(found),
        *_check_norm(found, null_loss),
        *_check_growth(found),
    ]
    if full:
        return checks
    return [Check(each.group, each.name, each.asked, each.found) for each in checks]


def _compare(
    group: str, name: str, value: float | None, most: float, text: str, unit: str = ""
) -> Check:
    """Return the check that a value is at most a limit."""
    asked = f"<= {most:g}{unit}"
    if value is None:
        return Check(group, name, asked)
    return Check(group, name, asked, text, bool(value <= most))


def _check_single(found: Results) -> Iterator[Check]:
    group, base = "single", "single/memory"
    for memory, most in BLOCK_TIMES.items():
        key = f"single/{memory}"
        ratio, seconds, whole = found.ratio(key, base), *_walls(found, key, base)
        text = "" if ratio is None else f"{ratio:.2f} ({seconds:.1f} s to {whole:.1f} s)"
        yield _compare(group, f"{memory}: seconds, to those in memory", ratio, most, text)
        peak = found.get(key, "anonymous_peak")
        limit, size = BLOCK_BYTES[memory] / GIB, None if peak is None else peak / GIB
        text = "" if size is None else f"{size:.2f} GiB"
        yield _compare(group, f"{memory}: memory beyond the page cache", size, limit, text, " GiB")
        read, table = found.get(key, "bytes_read"), found.get(key, "table_bytes")
        times = None if read is None or not table else read / table
        rows = found.get(key, "row_file_bytes") or 0
        text = "" if times is None else f"{times:.2f} (row files {rows / GIB:.2f} GiB)"
        yield _compare(group, f"{memory}: Parquet read, to the table", times, READS, text)
        yield _same_features(found, key, base)


def _same_features(found: Results, key: str, base: str) -> Check:
    mine, theirs = found.get(key, "selected"), found.get(base, "selected")
    name = f"{key.split('/')[1]}: features of the fit in memory"
    if mine is None or theirs is None:
        return Check("single", name, "the same")
    shared = len(set(mine) & set(theirs))
    text = "the same" if mine == theirs else f"{shared} of {len(theirs)}, or in another order"
    return Check("single", name, "the same", text, mine == theirs)


def _walls(found: Results, *keys: str) -> list[float]:
    return [found.get(key, "wall") or 0.0 for key in keys]


def _check_cluster(found: Results) -> Iterator[Check]:
    one, two, killed = "cluster/1", f"cluster/{WORKERS}", f"kill/{WORKERS}"
    ratio, asked, name = (
        found.ratio(one, two),
        f">= {FASTER:g}",
        f"{WORKERS} workers: speed, to one",
    )
    if ratio is None:
        yield Check("cluster", name, asked)
    else:
        seconds = "{:.1f} s to {:.1f} s".format(*_walls(found, one, two))
        yield Check("cluster", name, asked, f"{ratio:.2f} ({seconds})", ratio >= FASTER)
    yield _same_weights("cluster", found, f"{WORKERS} workers: weights of one", one, two)
    single = f"single/{LARGE}"
    yield _same_weights("cluster", found, f"{WORKERS} workers: weights of threads", single, two)
    ratio = found.ratio(killed, two)
    struck = found.get(killed, "killed_after")
    if struck is None:
        ratio = None
    text = ""
    if ratio is not None:
        seconds = "{:.1f} s to {:.1f} s".format(*_walls(found, killed, two))
        text = f"{ratio:.2f} ({seconds}, killed at {struck:.1f} s)"
    yield _compare("kill", "seconds, to those with no kill", ratio, KILLED, text)
    yield _same_weights("kill", found, "weights of the run with no kill", two, killed)


def _same_weights(group: str, found: Results, name: str, *keys: str) -> Check:
    same = found.same_bits(*keys)
    text = {None: "not measured", True: "same bits", False: "other bits"}[same]
    return Check(group, name, "same bits", text, same)


def _check_peers(found: Results) -> Iterator[Check]:
    group, ours = "peers", f"peers/{OURS}"
    mine, theirs = found.get(ours, "error"), found.get(f"peers/{peers.DASK_ML}", "error_all")
    gap = None if mine is None or theirs is None else mine - theirs
    text = "" if gap is None else f"{gap:+.2f} ({mine:.2f} % to {theirs:.2f} %)"
    name = f"error at our size, less {peers.DASK_ML}'s on all columns"
    yield _compare(group, name, gap, POINTS, text, " points")
    for peer in peers.FITS:
        yield _check_speed(found, peer)


def _check_speed(found: Results, peer: str) -> Check:
    asked, name = f">= {PEER_TIMES:g}", f"{peer}: seconds, to ours"
    record, seconds = found.records.get(f"peers/{peer}"), found.get(f"peers/{OURS}", "wall")
    if record is None or seconds is None or record["status"] not in ("ok", "timeout"):
        return Check("peers", name, asked)
    if record["status"] == "timeout":
        # The limit has room for the start of the cluster, which is on no clock.
        ratio = record["order"]["limit"] / seconds
        text = f"> {ratio:.1f} (> {record['order']['limit']:g} s to {seconds:.1f} s)"
        return Check("peers", name, asked, text, True if ratio >= PEER_TIMES else None)
    ratio = record["wall"] / seconds
    text = f"{ratio:.1f} ({record['wall']:.1f} s to {seconds:.1f} s)"
    return Check("peers", name, asked, text, ratio >= PEER_TIMES)


def _check_expression(found: Results) -> Iterator[Check]:
    key = "expression/blocks"
    seconds, peak = found.get(key, "wall"), found.get(key, "resident_peak")
    text = "" if seconds is None else f"{seconds:.1f} s"
    yield _compare("expression", "seconds of the path", seconds, GENE_SECONDS, text, " s")
    size = None if peak is None else peak / GIB
    text = "" if size is None else f"{size:.2f} GiB"
    yield _compare("expression", "memory, the whole process", size, GENE_BYTES / GIB, text, " GiB")


def _check_norm(found: Results, null_loss: float | None) -> Iterator[Check]:
    group, key, base = "norm", f"norm/{LARGE}", "norm/memory"
    ratio = found.ratio(key, base)
    seconds = "{:.1f} s to {:.1f} s".format(*_walls(found, key, base))
    text = "" if ratio is None else f"{ratio:.2f} ({seconds})"
    yield _compare(group, f"{LARGE}: seconds, to those in memory", ratio, NORM_TIMES, text)
    gap = found.get(key, "gap")
    share = None if gap is None or not null_loss else gap / null_loss
    text = "" if share is None else f"{share:.1e}"
    yield _compare(group, f"{LARGE}: gap, to the null loss", share, NORM_GAP, text)
    peak = found.get(key, "anonymous_peak")
    size, limit = None if peak is None else peak / GIB, BLOCK_BYTES[LARGE] / GIB
    text = "" if size is None else f"{size:.2f} GiB"
    yield _compare(group, f"{LARGE}: memory beyond the page cache", size, limit, text, " GiB")


def compute_exponents(records: Mapping[str, Record]) -> dict[str, tuple[float, dict[int, float]]]:
    """Return the exponents of the growth with rows and columns, and the seconds by size."""
    made = {}
    for what in ("rows", "columns"):
        keys = [key for key in records if key.startswith(f"growth/{what}/")]
        found = Results(records)
        seconds = {int(key.split("/")[2]): found.get(key, "wall") for key in keys}
        known = {size: wall for size, wall in sorted(seconds.items()) if wall is not None}
        if len(known) > 1:
            made[what] = fit_slope(known.keys(), known.values()), known
    return made


def _check_growth(found: Results) -> Iterator[Check]:
    exponents = compute_exponents(found.records)
    for what in ("rows", "columns"):
        value, seconds = exponents.get(what, (None, {}))
        texts = ", ".join(f"{size:,}: {wall:.1f} s" for size, wall in seconds.items())
        text = "" if value is None else f"{value:.2f} ({texts})"
        yield _compare("growth", f"exponent of {what}", value, EXPONENT, text)


def make_tables(records: Mapping[str, Record]) -> Iterator[Table]:
    """Yield a table of all figures for each part that has records."""
    for group, title in GROUPS:
        found = {key: each for key, each in records.items() if key.split("/")[0] == group}
        if found:
            yield _make_peer_table(found) if group == "peers" else _make_table(title, found)


def _make_table(title: str, records: Mapping[str, Record]) -> Table:
    columns = ("wall s", "CPU s", "read s", "first s", "anon GiB", "file GiB")
    columns += ("Parquet GiB", "row files GiB", "loss", "error %", "bits")
    table = make_table(title.capitalize(), *columns, first="run")
    for key, record in records.items():
        name = key.partition("/")[2]
        if record["status"] != "ok":
            table.add_row(name, describe_status(record))
            continue
        cells = [f"{record[name]:.1f}" for name in ("wall", "cpu")]
        cells += [_show(record, name, 1, ".1f") for name in ("read_seconds", "first_seconds")]
        memory = "worker_anonymous_peak" if record.get("worker_anonymous_peak") else ""
        cells.append(_show(record, memory or "anonymous_peak", GIB, ".2f"))
        names = ("file_peak", "bytes_read", "row_file_bytes")
        cells += [_show(record, name, GIB, ".2f") for name in names]
        cells += [_show(record, "loss", 1, ".6f"), _show(record, "error", 1, ".2f")]
        table.add_row(name, *cells, record["bits"][:8])
    return table


def _show(record: Record, name: str, unit: float, form: str) -> str:
    return format(record[name] / unit, form) if record.get(name) is not None else "-"


def _make_peer_table(records: Mapping[str, Record]) -> Table:
    columns = ("wall s", "read s", "fit on all s", "fits s", "error on all %", "error at size %")
    table = make_table("Beside peers on one cluster", *columns)
    for key, record in records.items():
        name, figures = key.partition("/")[2], ("read_seconds", "all_seconds", "fit_seconds")
        if record["status"] in ("failed", "absent"):
            table.add_row(name, describe_status(record))
            continue
        wall = _show(record, "wall", 1, ".1f")
        if record["status"] == "timeout":
            wall = f"> {record['order']['limit']:g}"
        seconds = [_show(record, name, 1, ".1f") for name in figures]
        if name == OURS:
            seconds = ["-", "-", "-"]  # the fit reads the files itself
        errors = [_show(record, name, 1, ".2f") for name in ("error_all", "error")]
        table.add_row(name, wall, *seconds, *errors)
    return table

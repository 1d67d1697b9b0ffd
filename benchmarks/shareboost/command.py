"""``python -m benchmarks shareboost``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.harness import commands, splits, terminal
from benchmarks.harness.jobs import Job, Store, run_jobs, run_module
from benchmarks.harness.methods import Method
from benchmarks.harness.peers import PEERS
from benchmarks.shareboost import bar
from benchmarks.shareboost.ours import OURS
from benchmarks.shareboost.report import (
    make_growth_table,
    make_paths_table,
    make_results_table,
    make_summary_table,
)
from benchmarks.shareboost.results import Results

SUITE = "benchmarks.shareboost.command"
METHODS: dict[str, Method] = OURS | PEERS
SIZES = (5, 10, 20, 40)
QUICK_DATA = ("digits", "segment")
QUICK_METHODS = ("mixnorm", "mixnorm-tuned", "abess-10", "skscope", "rfe")
# Further sizes for our default setting, which the bar needs.
FURTHER = {"reuters_r52": bar.SPARSE_SIZE, "mnist": 10}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks shareboost``."""
    add = parser.add_argument
    add("--data", type=commands.parse_names, help="datasets, separated by commas (default: all)")
    add(
        "--methods",
        type=commands.parse_names,
        help="methods, separated by commas (default: all installed)",
    )
    add(
        "--sizes",
        type=_parse_sizes,
        default=SIZES,
        help="numbers of features (default: 5,10,20,40)",
    )
    add("--resamplings", type=int, help="resamplings of the training rows (default: 5)")
    add("--limit", type=float, default=300.0, help="CPU seconds allowed per fit (default: 300)")
    add("--quick", action="store_true", help="two small datasets, five methods, one resampling")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--gemm", action="store_true", help="also measure the selection step's rate")
    add("--growth", action="store_true", help="also fit growth exponents in n, d and k")
    add("--no-runs", action="store_true", help="run no method; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")
    add("--list", action="store_true", help="list datasets and methods, and stop")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run the benchmark; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    if args.list:
        terminal.print_choices(console, splits.RECIPES, METHODS)
        return 0
    datasets, names = _choose(args, console)
    store = Store(args.json, resume=args.resume or args.no_runs)
    status = 0
    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-data-") as scratch:
        try:
            if not args.no_runs:
                jobs = plan(datasets, names, args.sizes, _count_resamplings(args))
                run(jobs, Path(scratch), store, args, console)
            measure_parts(args, Path(scratch), store)
        except KeyboardInterrupt:
            console.print("[yellow]Interrupted; finished runs are reported.[/]")
            status = 130
    missed = report(store, datasets, names, args, console)
    return status or int(args.check and missed)


def plan(
    datasets: Sequence[str], names: Sequence[str], sizes: Sequence[int], resamplings: int
) -> list[Job]:
    """List the jobs: one per size or path, with all methods of a resampling together."""
    jobs = []
    for data in datasets:
        for resampling in range(resamplings):
            for name in names:
                method = METHODS[name]
                if resampling and method.once:
                    continue
                jobs += [
                    Job(SUITE, data, name, size, resampling)
                    for size in _choose_sizes(method, data, sizes, further=resampling == 0)
                ]
    return jobs


def _choose_sizes(method: Method, data: str, sizes: Sequence[int], further: bool) -> list[int]:
    if method.only and data not in method.only:
        return []
    if not splits.RECIPES[data].standardise and not method.sparse:
        return []
    kept = [size for size in sizes if size <= method.largest.get(data, size)]
    asked = [max(kept)] if method.path and kept else kept
    if further and method is METHODS["mixnorm"] and data in FURTHER:
        asked = sorted({*asked, FURTHER[data]})
    return asked


def run(
    jobs: list[Job], scratch: Path, store: Store, args: argparse.Namespace, console: Console
) -> None:
    """Run the jobs dataset by dataset, with a line for each that is finished."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(jobs))
        for data in dict.fromkeys(job.data for job in jobs):
            mine = [job for job in jobs if job.data == data]
            waiting = [job for job in mine if store.runs.get(job.key, {}).get("status") != "ok"]
            progress.update(task, description=f"{data}: preparing")
            if waiting:
                splits.save(splits.load(data), scratch / data)
            progress.update(task, description=mine[0].key)
            following = iter([*mine[1:], None])
            for job, record, fresh in run_jobs(mine, {data: scratch / data}, store, args.limit):
                if fresh:
                    console.print(f"{job.key:<40} {terminal.describe(record)}", highlight=False)
                upcoming = next(following)
                label = upcoming.key if upcoming else data
                progress.update(task, advance=1, description=label)


def measure_parts(args: argparse.Namespace, scratch: Path, store: Store) -> None:
    """Measure the parts that are not jobs: the selection step's rate, and growth."""
    if args.gemm:
        store.put("gemm", run_module(["benchmarks.shareboost.gemm"]))
    if args.growth:
        folder = scratch / "mnist"
        if not folder.exists():
            splits.save(splits.load("mnist"), folder)
        store.put("growth", run_module(["benchmarks.shareboost.growth", str(folder)]))


def report(
    store: Store,
    datasets: Sequence[str],
    names: Sequence[str],
    args: argparse.Namespace,
    console: Console,
) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    results = Results(store.runs, max(args.sizes))
    shown = {name: METHODS[name] for name in names}
    for data in datasets:
        table = make_results_table(results, data, shown, args.sizes)
        if table.row_count:
            console.print(table)
            console.print(make_paths_table(results, data, shown, args.sizes))
    console.print(make_summary_table(results, datasets, args.sizes))
    if "growth" in store.content:
        console.print(make_growth_table(store.content["growth"]))
    found = bar.check_bar(results, store.content.get("gemm"))
    store.put("summary", [dataclasses.asdict(check) for check in found])
    passed = [check.passed for check in found]
    if set(passed) != {None}:
        console.print(terminal.make_bar_table(check for check in found if check.passed is not None))
    console.print(
        f"{passed.count(True)} passed, {passed.count(False)} missed, "
        f"{passed.count(None)} not measured."
    )
    return False in passed


def _choose(args: argparse.Namespace, console: Console) -> tuple[list[str], list[str]]:
    datasets = args.data or list(QUICK_DATA if args.quick else splits.RECIPES)
    names = args.methods or list(QUICK_METHODS if args.quick else METHODS)
    commands.check_names(dataset=(datasets, splits.RECIPES), method=(names, METHODS))
    missing = [name for name in names if not METHODS[name].available()]
    if missing and args.methods:
        raise SystemExit(
            f"{missing[0]} needs {METHODS[missing[0]].needs}, which is not installed here. "
            "`make bench` installs benchmarks/requirements.txt."
        )
    if missing:
        console.print(f"[yellow]Not installed, left out: {', '.join(missing)}.[/]")
    return datasets, [name for name in names if name not in missing]


def _count_resamplings(args: argparse.Namespace) -> int:
    return args.resamplings or (1 if args.quick else 5)


def _parse_sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in commands.parse_names(text)}))

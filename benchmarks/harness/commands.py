"""Parts of benchmarks with a bar: names, the run of missing jobs, and the verdict."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Collection, Iterable
from typing import Any

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record, Store


def names(text: str) -> tuple[str, ...]:
    """Return names that are separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def check_names(**asked: tuple[Iterable[str], Collection[str]]) -> None:
    """End with a message when a name is not known."""
    for kind, (given, known) in asked.items():
        unknown = [name for name in given if name not in known]
        if unknown:
            raise SystemExit(f"Unknown {kind} {unknown[0]!r}. Choose from {', '.join(known)}.")


def run_command(
    args: argparse.Namespace,
    console: Console,
    run: Callable[[argparse.Namespace, Store, Console], Any],
    report: Callable[[Store, Console], bool],
) -> int:
    """Run what is not in the store, and report; return 1 for a miss with ``--check``, or 130.

    ``run`` is left out with ``--no-runs``; what was finished before an interrupt is reported.
    """
    store, ended = Store(args.json, resume=args.resume or args.no_runs), 0
    try:
        if not args.no_runs:
            run(args, store, console)
    except KeyboardInterrupt:
        console.print("[yellow]Interrupted; what was finished is reported.[/]")
        ended = 130
    missed = report(store, console)
    return ended or int(args.check and missed)


def verdict(
    checked: list[Check], store: Store, console: Console, records: Iterable[Record] = ()
) -> bool:
    """Print the bar and keep it in the store; return whether a measured figure misses it.

    ``records`` are what it was computed from: those of several versions of mixnorm are told of.
    """
    store.put("summary", [dataclasses.asdict(check) for check in checked])
    console.print(terminal.bar_table(checked))
    if len({record["source"] for record in records if "source" in record}) > 1:
        console.print(
            "[yellow]mixnorm was changed between these figures: they are not of one version.[/]"
        )
    passed = [check.passed for check in checked]
    console.print(
        f"{passed.count(True)} passed, {passed.count(False)} missed, "
        f"{passed.count(None)} not measured."
    )
    return False in passed

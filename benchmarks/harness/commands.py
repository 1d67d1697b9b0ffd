"""Shared steps of the commands: parse names, run missing jobs, and print the bar."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Collection, Iterable
from typing import Any

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record, Store


def parse_names(text: str) -> tuple[str, ...]:
    """Return the names in a text, which commas separate."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def check_names(**asked: tuple[Iterable[str], Collection[str]]) -> None:
    """End the program with a message if a name is unknown."""
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
    """Run what is missing, and report; return 1 for a miss with ``--check``, 130 if interrupted.

    ``--no-runs`` skips ``run``. After an interrupt, the finished records are reported.
    """
    store, ended = Store(args.json, resume=args.resume or args.no_runs), 0
    try:
        if not args.no_runs:
            run(args, store, console)
    except KeyboardInterrupt:
        console.print("[yellow]Interrupted; finished runs are reported.[/]")
        ended = 130
    missed = report(store, console)
    return ended or int(args.check and missed)


def report_bar(
    checked: list[Check], store: Store, console: Console, records: Iterable[Record] = ()
) -> bool:
    """Print the bar and put it into the store; return whether a measured figure misses it.

    ``records`` are the records behind the figures. A line warns if they are of several versions of
    mixnorm.
    """
    store.put("summary", [dataclasses.asdict(check) for check in checked])
    console.print(terminal.make_bar_table(checked))
    if len({record["source"] for record in records if "source" in record}) > 1:
        console.print("[yellow]These figures were measured with different versions of mixnorm.[/]")
    passed = [check.passed for check in checked]
    console.print(
        f"{passed.count(True)} passed, {passed.count(False)} missed, "
        f"{passed.count(None)} not measured."
    )
    return False in passed

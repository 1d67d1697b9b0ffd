"""``python -m benchmarks NAME``: run one benchmark."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path


def find_packages() -> dict[str, str]:
    """Return the packages that have a command, by the name on the command line."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("*/command.py"))
    return {folder.replace("_", "-"): f"benchmarks.{folder}" for folder in folders}


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run the benchmark it names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    commands = {}
    for name, package in find_packages().items():
        text = importlib.import_module(package).__doc__ or ""
        commands[name] = importlib.import_module(f"{package}.command")
        own = names.add_parser(name, help=text.splitlines()[0], description=text)
        commands[name].add_arguments(own)
    args = parser.parse_args(argv)
    status: int = commands[args.name].main(args)
    return status


if __name__ == "__main__":
    sys.exit(main())

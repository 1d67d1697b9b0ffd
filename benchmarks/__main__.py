"""``python -m benchmarks NAME``: run one benchmark."""

from __future__ import annotations

import argparse
import importlib
import sys

# Name on the command line -> module with ``add_arguments(parser)`` and ``main(args)``.
BENCHMARKS = {
    "advise": "benchmarks.advise",
    "cli": "benchmarks.cli",
    "defaults": "benchmarks.defaults",
    "fuzz": "benchmarks.fuzz",
    "matrix": "benchmarks.matrix",
    "memory": "benchmarks.memory",
    "mkl": "benchmarks.mkl",
    "mkl-table1": "benchmarks.mkl_table1",
    "mnist": "benchmarks.mnist",
    "online": "benchmarks.online",
    "shareboost": "benchmarks.shareboost",
    "shareboost-paper": "benchmarks.shareboost_paper",
    "sparse-mkl": "benchmarks.sparse_mkl",
    "tensor": "benchmarks.tensor",
    "trees": "benchmarks.trees",
}


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run the benchmark it names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, place in BENCHMARKS.items():
        module = importlib.import_module(place)
        summary = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=summary, description=module.__doc__))
    args = parser.parse_args(argv)
    status: int = importlib.import_module(BENCHMARKS[args.name]).main(args)
    return status


if __name__ == "__main__":
    sys.exit(main())

"""Compare tricks with simpler replacements."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

_NORMS = {"norm (2, 1.3)": (2, 1.3), "norm (1.3, 1.3)": (1.3, 1.3)}
_PASS = "import sys; from benchmarks.tricks.command import print_pass; print_pass(sys.argv[1])"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--repeats", type=int, default=5)


def main(args: argparse.Namespace) -> int:
    """Print one line per comparison: milliseconds with and without the trick, and their ratio."""
    print(f"{'':<40}{'with':>10}{'without':>10}{'ratio':>8}")
    _compare_powers(args.repeats)
    return 0


def _report(name: str, times: list[tuple[float, float]]) -> None:
    """Print the medians of milliseconds with a trick and without it."""
    one, other = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{name:<40}{one:>10.4g}{other:>10.4g}{other / one:>8.2f}", flush=True)


def _time_call(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return 1e3 * (time.process_time() - start)


def _compute_powers(values, exponent, out, held, other, count):
    """Compute powers by the C library, as a plain twin of ``raise_to``."""
    for j in range(count):
        out[j] = math.pow(values[j], exponent) if values[j] > 0.0 else 0.0


def _compare_powers(repeats: int) -> None:
    from numba import njit

    from mixnorm.engines.mirror.vectors_jit import plain, raise_to

    twin = plain(_compute_powers)

    def repeat(raise_values):
        @njit
        def run(values, out, held, other):
            for _ in range(200_000 // len(values)):
                raise_values(values, 1.65, out, held, other, len(values))

        return run

    functions = repeat(raise_to), repeat(twin)
    for size in (10, 100, 1000):
        arrays = np.random.default_rng(0).random((4, size))
        calls = [lambda f=f, a=arrays: _time_call(lambda: f(*a)) for f in functions]
        pairs = [(calls[0](), calls[1]()) for _ in range(repeats + 1)]
        _report(f"200,000 powers, {size} at a time", pairs[1:])
    with tempfile.TemporaryDirectory() as folder:
        pairs = [
            (_compare_passes(folder, "1"), _compare_passes(folder, "0")) for _ in range(repeats)
        ]
    for k, name in enumerate(_NORMS):
        _report(f"2,000 rows of 784, {name}", [(one[k], other[k]) for one, other in pairs])


def _compare_passes(folder: str, trick: str) -> list[float]:
    """Return what :func:`print_pass` prints in a process of its own."""
    environment = dict(os.environ, NUMBA_CACHE_DIR=f"{folder}/{trick}")
    command = [sys.executable, "-c", _PASS, trick]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def print_pass(trick: str) -> None:
    """Print the milliseconds of passes over rows, with ``raise_to`` or (for 0) its twin."""
    from mixnorm import MirrorDescentClassifier
    from mixnorm.engines.mirror import sums_jit
    from mixnorm.engines.mirror.vectors_jit import plain
    from mixnorm.norms import MixedNorm

    if trick == "0":
        sums_jit.raise_to = plain(_compute_powers)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 784)), rng.integers(0, 10, 2000)
    for inner, outer in _NORMS.values():
        norm = MixedNorm(inner=inner, outer=outer)
        model = MirrorDescentClassifier(norm).partial_fit(X[:50], y[:50], classes=np.arange(10))
        print(statistics.median(_time_call(lambda m=model: m.partial_fit(X, y)) for _ in range(5)))

"""One process that tries inputs: ``python -m benchmarks.fuzz.worker '{"seed": 0, ...}'``.

It prints a line before and after each input, so that the parent knows which input killed a process.
The system ends a process that spends three times the limit in one input.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time

from benchmarks.fuzz.cases import run
from benchmarks.fuzz.verdict import LIMIT, Outcome

_MEMORY = 8 * 2**30  # bytes that a process may allocate


def time_input(seed: int, number: int, kinds: tuple[str, ...]) -> tuple[Outcome, float]:
    """Try one input, and return its outcome and CPU seconds.

    An input over the limit is tried again, because the first time may have included compilation.
    """
    for _ in range(2):
        signal.setitimer(signal.ITIMER_PROF, 3 * LIMIT)  # SIGPROF ends the process
        start = time.process_time()
        outcome = run(seed, number, kinds)
        seconds = time.process_time() - start
        signal.setitimer(signal.ITIMER_PROF, 0)
        if seconds <= LIMIT:
            break
    else:
        outcome.kind, outcome.message = "failed", f"took {seconds:.1f} CPU seconds"
    return outcome, seconds


def main(seed: int, numbers: list[int], kinds: list[str], until: float) -> None:
    """Try the inputs one after the other; start none after the time ``until``."""
    lines, sys.stdout = sys.stdout, sys.stderr  # no library prints between our lines
    for number in numbers:
        if time.time() > until:
            break
        print(json.dumps({"number": number}), file=lines, flush=True)
        outcome, seconds = time_input(seed, number, tuple(kinds))
        record = {"number": number, "seconds": round(seconds, 3), **vars(outcome)}
        if outcome.kind != "failed":
            del record["message"], record["notes"]
        print(json.dumps(record), file=lines, flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    os.environ.setdefault("MPLBACKEND", "Agg")
    main(**json.loads(sys.argv[1]))

"""Amounts of memory, and memory that the C library keeps."""

import platform
import resource
import subprocess
import sys

import pytest

from mixnorm._memory import format_bytes

# Faults of a process that makes and frees an array of 2 MB many times, as a Dask worker would.
COUNT = """
import resource, sys
import numpy as np
from mixnorm._memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    np.ones(1 << 18)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries lack the option")
def test_freed_memory_is_used_again():
    faults = {
        mode: int(
            subprocess.run(
                [sys.executable, "-c", COUNT, mode],
                env={"MALLOC_TRIM_THRESHOLD_": "65536", "PYTHONPATH": ":".join(sys.path)},
                capture_output=True,
                check=True,
                text=True,
            ).stdout
        )
        for mode in ("keep", "as it is")
    }
    page = resource.getpagesize()
    assert faults["as it is"] > 50 * (1 << 21) / page / 2
    assert faults["keep"] < faults["as it is"] / 10


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2**40, "1 TiB")]
)
def test_amounts_have_units(amount, text):
    assert format_bytes(amount) == text

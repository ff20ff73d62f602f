"""The growth of memory, measured in a process that does nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onlearn.models.resident_memory import peak_bytes, resident_bytes

CODE = """
from onlearn.models.resident_memory import MemoryGrowth

with MemoryGrowth() as nothing:
    pass
with MemoryGrowth() as kept:
    numbers = bytearray(b"x" * 50_000_000)
with MemoryGrowth() as small:
    more = bytearray(b"x" * 1_000_000)
print(nothing.peak, kept.peak, small.peak)
"""


@pytest.mark.skipif(resident_bytes() is None, reason="the memory of a process cannot be read here")
def test_growth_is_that_of_what_is_made_inside() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    nothing, kept, small = map(int, done.stdout.split())
    assert nothing < 5_000_000
    assert 45_000_000 < kept < 120_000_000
    assert small < 10_000_000


def test_the_peak_is_that_of_the_process_alone() -> None:
    """Not of the one that has started it, as ``getrusage`` has it on Linux."""
    peak = peak_bytes()
    if peak is None:
        pytest.skip("the system does not say")
    ours = bytearray(b"x" * 300_000_000)
    assert peak_bytes() >= len(ours)
    code = "from onlearn.models.resident_memory import peak_bytes; print(peak_bytes())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200_000_000

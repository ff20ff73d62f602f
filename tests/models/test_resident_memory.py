"""The growth of memory, measured in a process that does nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onlearn.models.resident_memory import resident_bytes

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

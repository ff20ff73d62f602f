"""Thousands of damaged files of every format, read in processes of their own. What must hold is in ``targets.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import TARGETS
from fuzz.worker import shown

QUICK, LONG = 300, 5000  # damaged files of each format
MOST = 5  # findings after which a format is given up
TESTS = Path(__file__).parents[1]


def findings(name: str, first: int, stop: int) -> list[str]:
    """What is found in the damaged files of some numbers."""
    found: list[str] = []
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")])),
    }
    while first < stop and len(found) < MOST:
        command = [sys.executable, "-m", "fuzz.worker", name, str(first), str(stop)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
        lines = done.stdout.splitlines()
        said = [json.loads(line) for line in lines if not line.isdecimal()]
        found += [finding(name, one["number"], one["why"]) for one in said]
        numbers = [int(line) for line in lines if line.isdecimal()]
        assert numbers, f"the process did not start: {done.stderr}"
        first = numbers[-1] + 1
        if done.returncode:  # it has crashed, or was ended because it hung
            found.append(finding(name, numbers[-1], f"the process ended with {done.returncode}: {done.stderr[-3000:]}"))
    return found[:MOST]


def finding(name: str, number: int, why: str) -> str:
    return (
        f"{name} {number}: {why[:2000]}\n  the damaged file: {shown(name, number)}\n"
        f"  again: PYTHONPATH=tests python -m fuzz.worker {name} {number}\n"
    )


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files(name):
    if found := findings(name, 0, QUICK):
        pytest.fail("\n".join(["", *found]), pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_more_damaged_files(name):
    if found := findings(name, QUICK, QUICK + LONG):
        pytest.fail("\n".join(["", *found]), pytrace=False)

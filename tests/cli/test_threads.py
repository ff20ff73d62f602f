"""Commands on files that several threads parse: they must work every time, from the first import on."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CSV file of several blocks, so that threads parse the first of them while modules are still imported."""
    place = tmp_path_factory.mktemp("threads")
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.6f},{b:.6f},{colour},{'yes' if a + b > 0 else 'no'}\n"
        for (a, b), colour in zip(rng.normal(size=(200_000, 2)), rng.choice(["red", "green", "blue"], 200_000))
    ]
    (place / "large.csv").write_text("a,b,colour,label\n" + "".join(rows) * 2)
    return place


def commands(folder, times):
    """Train, evaluate and predict in new processes; the digests of the models."""
    models = set()
    for _ in range(times):
        for arguments in (
            ["train", "large.csv", "-o", "m.onl", "--passes", "1", "--quiet"],
            ["evaluate", "m.onl", "large.csv"],
            ["predict", "m.onl", "large.csv", "-o", "p.csv"],
        ):
            done = subprocess.run(
                [sys.executable, "-m", "onlearn", *arguments], cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        models.add(hashlib.sha256((folder / "m.onl").read_bytes()).hexdigest())
    return models


def test_commands_work_on_a_file_that_threads_parse(folder):
    assert len(commands(folder, 2)) == 1


@pytest.mark.slow
def test_commands_work_twenty_times(folder):
    assert len(commands(folder, 20)) == 1

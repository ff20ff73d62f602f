"""From a file of 1 GB to a model: logistic regression, one pass, both cores, as commands with their start-up.

Rows of 32 features, as svmlight and as Vowpal Wabbit text. Each contender is a process of its own. Vowpal Wabbit:
--loss_function logistic with its defaults, on its own format, run through its Python package. The last rows are peak
memory, of a file twice as long: it should be the same. Both save the model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from parse import write
from timing import OURS, Row, race

LEARNER = ["--rule", "logistic", "--geometry", "adagrad(0.1)", "--stabilizer", "last", "--passes", "1", "--quiet"]
VW = "import sys; from vowpalwabbit import pyvw; pyvw.Workspace(sys.argv[1]).finish()"


# A small process between this large one and the command: a child's peak begins at the size of its parent.
PEAK = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


def command(path: Path, model: Path) -> list[str]:
    return [sys.executable, "-m", "onlearn.cli", "train", str(path), "-o", str(model), *LEARNER]


def ours(path: Path, model: Path) -> None:
    subprocess.run(command(path, model), check=True)


def theirs(path: Path, model: Path) -> None:
    subprocess.run([sys.executable, "-c", VW, f"-d {path} -f {model} --loss_function logistic --quiet"], check=True)


def peak(path: Path, model: Path) -> float:
    """The most memory, in bytes, that training takes."""
    line = [sys.executable, "-c", PEAK, *command(path, model)]
    return 1024.0 * int(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    vw = find_spec("vowpalwabbit") is not None
    with tempfile.TemporaryDirectory() as folder:
        svmlight, text, _ = write(Path(folder), 10_000_000 if quick else 1_000_000_000)
        model = Path(folder) / "m.onl"
        small = peak(svmlight, model)
        peer = (lambda: theirs(text, model.with_suffix(".vw"))) if vw else None
        for path in (svmlight, text):
            megabytes = os.path.getsize(path) / 1e6
            contenders = {OURS: lambda path=path: ours(path, model), "Vowpal Wabbit": peer}
            yield race(f"{path.suffix[1:]}, {megabytes:,.0f} MB", contenders, repeat)
        with open(svmlight, "rb") as once, open(Path(folder) / "twice.svm", "wb") as twice:
            for _ in range(2):
                once.seek(0)
                shutil.copyfileobj(once, twice)
        yield Row("svm, peak memory", {OURS: [small]}, {}, unit="bytes")
        yield Row(
            "svm, twice as long, peak memory", {OURS: [peak(Path(folder) / "twice.svm", model)]}, {}, unit="bytes"
        )

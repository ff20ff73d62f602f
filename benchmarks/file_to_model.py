"""From a file of 1 GB to a model: logistic regression, one pass, both cores, as commands with their start-up.

Rows of 32 features, as svmlight and as Vowpal Wabbit text. Each contender is a process of its own. Vowpal Wabbit:
--loss_function logistic with its defaults, on its own format, run through its Python package. The last rows are peak
memory, of a file twice as long: it should be the same.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from parse import write
from timing import OURS, Row, race

LEARNER = ["--rule", "logistic", "--geometry", "adagrad(0.1)", "--stabilizer", "last", "--passes", "1", "--quiet"]
VW = "import sys; from vowpalwabbit import pyvw; pyvw.Workspace(f'-d {sys.argv[1]} --loss_function logistic --quiet')"


def ours(path: Path, model: Path) -> None:
    subprocess.run([sys.executable, "-m", "onlearn.cli", "train", str(path), "-o", str(model), *LEARNER], check=True)


def theirs(path: Path) -> None:
    subprocess.run([sys.executable, "-c", VW, str(path)], check=True)


def peak(path: Path, model: Path) -> float:
    """The most memory, in bytes, that training takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    ours(path, model)
    return 1024.0 * max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    vw = find_spec("vowpalwabbit") is not None
    with tempfile.TemporaryDirectory() as folder:
        svmlight, text, _ = write(Path(folder), 10_000_000 if quick else 1_000_000_000)
        model = Path(folder) / "m.onl"
        small = peak(svmlight, model)
        peer = (lambda: theirs(text)) if vw else None
        for path in (svmlight, text):
            megabytes = os.path.getsize(path) / 1e6
            contenders = {OURS: lambda path=path: ours(path, model), "Vowpal Wabbit": peer}
            yield race(f"{path.suffix[1:]}, {megabytes:,.0f} MB", contenders, repeat)
        whole = svmlight.read_bytes()
        with open(svmlight, "ab") as file:
            file.write(whole)
        yield Row("svm, peak memory", {OURS: [small]}, {}, unit="bytes")
        yield Row("svm, twice as long, peak memory", {OURS: [peak(svmlight, model)]}, {}, unit="bytes")

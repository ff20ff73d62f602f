"""Start: what a new process waits for.

The first fit includes all imports. It finds what an earlier process compiled; "nothing cached" does not. The command
learns from 50 rows of Vowpal Wabbit text, and Vowpal Wabbit does, through its Python package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from timing import OURS, Row, race

WATCHED = "numba", "sklearn", "scipy", "numpy", "pyarrow"
FIT = """
import numpy as np, scipy.sparse as sp
X, y = np.random.default_rng(0).normal(size=(200, 10)), np.arange(200) % {classes}
X = {layout}(X)
model.fit(X, y).predict(X)
"""
OWN = "import onlearn; model = onlearn.OnlineClassifier()"
SKLEARN = "from sklearn.linear_model import SGDClassifier; model = SGDClassifier(average=True)"


def python(code: str, **env: str) -> str:
    """Run code in a new process; returns what it prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=dict(os.environ, **env), check=True, stdout=subprocess.PIPE, text=True).stdout


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    brought = python(f"import onlearn, sys; print(*[m for m in {WATCHED} if m in sys.modules])").split()
    yield race(
        f"import (brings in: {', '.join(brought) or 'none of ' + ', '.join(WATCHED)})",
        {
            OURS: lambda: python("import onlearn"),
            "bare Python": lambda: python("pass"),
            "scikit-learn": lambda: python("import sklearn.linear_model"),
        },
        2 * repeat,
    )
    yield command(repeat)
    for layout, classes in (("np.asarray", 2), ("sp.csr_matrix", 2), ("sp.csr_matrix", 20)):
        work = f"first fit and predict: {layout}, {classes} classes"
        yield first_fit(work, FIT.format(layout=layout, classes=classes), 1 if quick else min(repeat, 3))


def command(repeat: int) -> Row:
    with tempfile.TemporaryDirectory() as place:
        rows = Path(place, "rows.vw")
        rows.write_text("".join(f"{1 - n % 2 * 2} |f {n % 7}:0.5 {n % 11 + 7}:{n % 3}\n" for n in range(50)))
        ours = [sys.executable, "-m", "onlearn.cli", "train", str(rows), "-o", f"{place}/m.onl", "-q"]
        told = f"-d {rows} -f {place}/m.vw --loss_function logistic --quiet"
        vw = f"from vowpalwabbit import pyvw; pyvw.Workspace({told!r}).finish()"
        contenders = {
            OURS: lambda: subprocess.run(ours, check=True) and None,
            "bare Python": lambda: python("pass"),
            "Vowpal Wabbit": (lambda: python(vw)) if find_spec("vowpalwabbit") else None,
        }
        return race("a command: train on 50 rows", contenders, 2 * repeat)


def first_fit(work: str, fit: str, repeat: int) -> Row:
    def in_empty_cache() -> None:
        with tempfile.TemporaryDirectory() as empty:
            python(OWN + fit, NUMBA_CACHE_DIR=empty)

    def in_cache(folder: str) -> Callable[[], str]:
        return lambda: python(OWN + fit, NUMBA_CACHE_DIR=folder)

    with tempfile.TemporaryDirectory() as kept:
        peers = {"scikit-learn": lambda: python(SKLEARN + fit), "nothing cached": in_empty_cache}
        return race(work, {OURS: in_cache(kept), **peers}, repeat)

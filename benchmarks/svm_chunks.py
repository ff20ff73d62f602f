"""Chunking: 100,000 rows of covtype (class 2 against the rest, Gaussian kernel), peak memory of the whole process.

Standardised numbers, gamma = 0.1, C = 1, chunks of 10,000 rows, 512 MB for kernel values. "At once" is the same
machine without chunks. Each learns in a process of its own; the accuracy is that of 20,000 other rows. Needs
ONLEARN_DATA/covtype.
``python benchmarks/svm_chunks.py ROWS CHUNK`` shows time and memory of one run.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from timing import OURS, Row

ROWS, TEST, CHUNK = 100_000, 20_000, 10_000
WAYS = {OURS: CHUNK, "at once": None}


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    if not _file().exists():
        print("svm_chunks: set ONLEARN_DATA to the folder that holds covtype/covtype.csv.gz")
        return
    rows = 5000 if quick else ROWS
    found = {}
    for name, chunk in WAYS.items():
        command = [sys.executable, __file__, str(rows), str(rows // 10 if quick and chunk else chunk)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
    accuracy = {name: [one["accuracy"]] for name, one in found.items()}
    yield Row(f"covtype, {rows:,} rows: time", {name: [one["seconds"]] for name, one in found.items()}, accuracy)
    peaks = {name: [one["peak"]] for name, one in found.items()}
    yield Row(f"covtype, {rows:,} rows: peak memory", peaks, {}, unit="bytes")


def child(rows: int, chunk: int | None) -> dict[str, float]:
    """Time, peak memory and accuracy of one machine."""
    import onlearn
    from onlearn.models.resident_memory import peak_bytes

    X, y = _read(rows + TEST)
    machine = onlearn.SVC(
        "gaussian(gamma=0.1)", chunk_size=chunk, cache_mb=512, calibration="none", verbose=int(sys.stderr.isatty())
    )
    start = time.perf_counter()
    machine.fit(X[:rows], y[:rows])
    seconds = time.perf_counter() - start
    print(machine.report_, file=sys.stderr)
    return {
        "seconds": seconds,
        "accuracy": float(machine.score(X[rows:], y[rows:])),
        "peak": peak_bytes(),
    }


def _file() -> Path:
    return Path(os.environ.get("ONLEARN_DATA", "")) / "covtype" / "covtype.csv.gz"


def _read(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, drawn from all, with standardised numbers, and whether they are of class 2."""
    with gzip.open(_file(), "rt") as file:
        next(file)
        kept = [line for number, line in enumerate(file) if number % 581_012 * 131 % 581_012 < count]
    values = np.array([line.split(",") for line in kept], dtype=np.float32)[:count]
    values = values[np.random.default_rng(0).permutation(len(values))]
    X, y = values[:, :-1], values[:, -1] == 2
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1), y


if __name__ == "__main__":
    print(json.dumps(child(int(sys.argv[1]), None if sys.argv[2] == "None" else int(sys.argv[2]))))

"""From a file to sparse rows: svmlight and Vowpal Wabbit text of about 280 MB, 32 features a row.

"One core" parses when a batch is asked for; "both" parses ahead in two threads. The file is in memory (the page
cache) from the first turn on. scikit-learn: load_svmlight_file on a part of the rows. "Memory read": the bytes are
read and their newlines counted, which is as fast as any reader could be.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import data
import numpy as np
from sklearn.datasets import load_svmlight_file
from timing import OURS, Part, Row, race

from onlearn.data import read

PART = 20  # scikit-learn gets one row in so many


def write(folder: Path, size: int) -> tuple[Path, Path, Path]:
    """The same rows as svmlight and as Vowpal Wabbit text, and the first of them apart."""
    X = data.sparse_rows(20_000, 50_000, 32, "zipf")
    y = np.where(data.labels(X) == 1, "+1", "-1")
    svmlight, vw = [], []
    for row, label in enumerate(y):
        at = slice(X.indptr[row], X.indptr[row + 1])
        words = " ".join(f"{index + 1}:{value:.6g}" for index, value in zip(X.indices[at], X.data[at]))
        svmlight.append(f"{label} {words}\n")
        vw.append(f"{label} |f {words}\n")
    paths = folder / "rows.svm", folder / "rows.vw", folder / "part.svm"
    for path, lines in zip(paths, (svmlight, vw)):
        text = "".join(lines).encode()
        with open(path, "wb") as file:
            while file.tell() < size:
                file.write(text)
    whole = paths[0].read_bytes()
    paths[2].write_bytes(whole[: whole.index(b"\n", len(whole) // PART) + 1])
    return paths


def parse(path: Path, workers: int) -> None:
    for _ in read(path, workers=workers):
        pass


def glance(path: Path) -> int:
    """What cannot be done without: every byte is read and looked at."""
    buffer, lines = np.empty(1 << 22, dtype=np.uint8), 0
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(memoryview(buffer)):
            lines += int(np.count_nonzero(buffer[:count] == 10))
    return lines


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        svmlight, vw, part = write(Path(folder), 10_000_000 if quick else 280_000_000)
        theirs = Part(lambda: load_svmlight_file(str(part)), os.path.getsize(svmlight) / os.path.getsize(part))
        for name, path in (("svmlight", svmlight), ("vw", vw)):
            for cores, workers in (("one core", 0), ("both cores", 2)):
                contenders = {
                    OURS: lambda path=path, workers=workers: parse(path, workers),
                    "scikit-learn": theirs if name == "svmlight" else None,
                    "memory read": lambda path=path: glance(path),
                }
                if name == "vw":
                    del contenders["scikit-learn"]
                row = race(f"{name}, {cores}", contenders, repeat)
                yield row
                megabytes = os.path.getsize(path) / 1e6
                speeds = {who: [megabytes / row.best(who)] for who in row.taken if row.taken[who]}
                yield Row(f"{name}, {cores}, MB/s", speeds, {}, row.estimated, "MB/s")

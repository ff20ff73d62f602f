"""From a file to rows: svmlight and Vowpal Wabbit text of about 280 MB, 32 features a row; CSV with and without quotes;
JSON lines, all of them sound, or with a malformed line and a column of texts and numbers in each block.

"One core" parses when a batch is asked for; "both" parses ahead in two threads. The file is in memory (the page
cache) from the first turn on. scikit-learn: load_svmlight_file on a part of the rows. "Memory read": the bytes are
read and their newlines counted, which is as fast as any reader could be. pyarrow.csv alone reads the same columns as
the same types, in one thread or in two, but finds no bad rows; so does pandas, if it is there, with its C parser.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data
import numpy as np
from pyarrow import csv
from pyarrow import json as arrow_json
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


def write_csv(folder: Path, size: int) -> tuple[Path, Path]:
    """Ten numbers, a word and a label a row; and a text in quotes, a number and a label."""
    rng = np.random.default_rng(0)
    numbers = [",".join(f"{value:.5f}" for value in row) for row in rng.normal(size=(20_000, 10))]
    words = np.array([f"w{n}" for n in range(500)])
    paths = folder / "numbers.csv", folder / "texts.csv"
    parts = (
        ("a,b,c,d,e,f,g,h,i,j,colour,label\n", [f"{row},{words[n % 9]},y{n % 2}\n" for n, row in enumerate(numbers)]),
        (
            "text,n,label\n",
            [f'"{" ".join(rng.choice(words, 40))}, ""so""",{n},y{n % 2}\n' for n in range(20_000)],
        ),
    )
    for path, (header, lines) in zip(paths, parts):
        text = "".join(lines).encode()
        with open(path, "wb") as file:
            file.write(header.encode())
            while file.tell() < size:
                file.write(text)
    return paths


def by_pyarrow(path: Path, threads: bool) -> None:
    csv.read_csv(path, csv.ReadOptions(use_threads=threads, block_size=4 << 20))


def bench_csv(folder: Path, quick: bool, repeat: int) -> Iterator[Row]:
    for path in write_csv(folder, 10_000_000 if quick else 140_000_000):
        for cores, workers in (("one core", 0), ("both cores", 2)):
            contenders: dict[str, Any] = {
                OURS: lambda path=path, workers=workers: parse(path, workers),
                "pyarrow.csv": lambda path=path, workers=workers: by_pyarrow(path, workers > 0),
            }
            if importlib.util.find_spec("pandas") is not None and not workers:
                contenders["pandas"] = lambda path=path: importlib.import_module("pandas").read_csv(path)
            contenders["memory read"] = lambda path=path: glance(path)
            yield from with_speed(race(f"{path.name}, {cores}", contenders, repeat), path)


def write_json(folder: Path, size: int) -> tuple[Path, Path]:
    """Numbers, a word, a text and a label a row; and the same with a malformed line and a text label here and there."""
    rng = np.random.default_rng(0)
    rows = [
        {"label": 1.0 + n % 2, "a": float(a), "b": int(100 * b), "word": f"w{n % 9}", "text": f"some words, and {n}"}
        for n, (a, b) in enumerate(rng.normal(size=(20_000, 2)))
    ]
    sound = [json.dumps(row) + "\n" for row in rows]
    damaged = [*sound]
    damaged[5_000], damaged[15_000] = "{\n", sound[15_000].replace('"label": 1.0', '"label": "other"')
    paths = folder / "sound.jsonl", folder / "damaged.jsonl"
    for path, lines in zip(paths, (sound, damaged)):
        with open(path, "w") as file:
            while file.tell() < size:
                file.writelines(lines)
    return paths


def bench_json(folder: Path, quick: bool, repeat: int) -> Iterator[Row]:
    for path in write_json(folder, 10_000_000 if quick else 140_000_000):
        for cores, workers in (("one core", 0), ("both cores", 2)):
            how = arrow_json.ReadOptions(use_threads=workers > 0, block_size=4 << 20)
            contenders: dict[str, Any] = {
                OURS: lambda path=path, workers=workers: parse(path, workers),
                "pyarrow.json": lambda path=path, how=how: arrow_json.read_json(path, how),
                "memory read": lambda path=path: glance(path),
            }
            if path.stem == "damaged":
                del contenders["pyarrow.json"]  # which refuses the file
            yield from with_speed(race(f"{path.name}, {cores}", contenders, repeat), path)


def with_speed(row: Row, path: Path) -> Iterator[Row]:
    """A row of times, and the same as speeds."""
    yield row
    megabytes = os.path.getsize(path) / 1e6
    speeds = {who: [megabytes / row.best(who)] for who in row.taken if row.taken[who]}
    yield Row(f"{row.work}, MB/s", speeds, {}, row.estimated, "MB/s")


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from bench_csv(Path(folder), quick, repeat)
        yield from bench_json(Path(folder), quick, repeat)
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
                yield from with_speed(race(f"{name}, {cores}", contenders, repeat), path)

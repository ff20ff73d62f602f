"""From raw rows to a model with nothing said: imdb and 20news as JSON lines, adult as CSV.

``onlearn train FILE -o MODEL`` as a command, start-up and saving included. scikit-learn, in this process: for text
TfidfVectorizer of words and pairs with SGDClassifier (hinge, averaged) or LinearSVC; for adult a one-hot encoder and a
standard scaler with LogisticRegression. Vowpal Wabbit: --ngram 2 -b 24, three passes; the time it takes to write its
input, tokens in lower case, is part of its work. So it is of fastText's: pairs of words, five epochs. Below each time
is the accuracy on the test rows; the log-loss of adult's is in the last row. Needs ONLEARN_DATA.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fast_text
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from timing import OURS, Row, race

import onlearn

NUMBERS = [0, 2, 4, 10, 11, 12]  # adult's numeric columns
VW = "import sys; from vowpalwabbit import pyvw; pyvw.Workspace(sys.argv[1])"


def texts(folder: Path, quick: bool) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    read = []
    for part in ("train", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
            read.append([json.loads(line) for line in lines][: 1000 if quick else None])
    return read[0], read[1]


def train(source: Path, model: Path) -> Callable[[Any], np.ndarray]:
    subprocess.run([sys.executable, "-m", "onlearn.cli", "train", str(source), "-o", str(model), "-q"], check=True)
    return lambda rows: onlearn.load(model).predict(rows)


def vw(rows: list[dict[str, str]], folder: Path) -> None:
    """Write its input, and learn."""
    number = {label: k + 1 for k, label in enumerate(sorted({row["label"] for row in rows}))}
    several = len(number) > 2
    with open(folder / "rows.vw", "w", encoding="utf-8") as file:
        for row in rows:
            label = number[row["label"]] if several else 2 * number[row["label"]] - 3
            words = re.findall(r"\w+", row["text"].lower())
            file.write(f"{label} |t {' '.join(words)}\n")
    (folder / "cache").unlink(missing_ok=True)
    kind = f"--oaa {len(number)}" if several else "--loss_function logistic"
    command = f"-d {folder}/rows.vw {kind} --ngram 2 -b 24 --passes 3 --holdout_off --cache_file {folder}/cache --quiet"
    subprocess.run([sys.executable, "-c", VW, command], check=True)


def fasttext(rows: list[dict[str, str]], folder: Path) -> Callable[[list[str]], np.ndarray]:
    return fast_text.learn([row["text"] for row in rows], [row["label"] for row in rows], folder, epochs=5)


def sklearn_text(rows: list[dict[str, str]], learner: Any) -> Callable[[list[str]], np.ndarray]:
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), learner)
    return model.fit([row["text"] for row in rows], [row["label"] for row in rows]).predict


def adult(path: Path) -> tuple[list[list[str]], np.ndarray]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    return [row[:-1] for row in rows], np.array([row[-1].rstrip(".") for row in rows], dtype=object)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    home = Path(os.environ.get("ONLEARN_DATA", ""))
    if not os.environ.get("ONLEARN_DATA") or not home.is_dir():
        print("raw_to_model: set ONLEARN_DATA to the folder that holds imdb, 20news and adult")
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model = folder / "m.onl"
        for name in ("imdb", "20news"):
            rows, test = texts(home / name, quick)
            source = folder / f"{name}.jsonl"
            source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            contenders = {
                OURS: lambda source=source: train(source, model),
                "Vowpal Wabbit": (lambda rows=rows: vw(rows, folder)) if find_spec("vowpalwabbit") else None,
                "fastText": (lambda rows=rows: fasttext(rows, folder)) if fast_text.THERE else None,
                "tf-idf + SGD": lambda rows=rows: sklearn_text(rows, SGDClassifier(average=True)),
                "tf-idf + LinearSVC": lambda rows=rows: sklearn_text(rows, LinearSVC()),
            }
            answers = [row["text"] for row in test], np.array([row["label"] for row in test], dtype=object)
            yield race(name, contenders, repeat, answers)
        yield from bench_adult(home / "adult", model, repeat)


def bench_adult(folder: Path, model: Path, repeat: int) -> Iterator[Row]:
    X, y = adult(folder / "adult.data")
    test_X, test_y = adult(folder / "adult.test")
    words = [n for n in range(14) if n not in NUMBERS]
    columns = make_column_transformer(
        (StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore", dtype=np.float64), words)
    )
    peer = make_pipeline(columns, LogisticRegression(max_iter=1000))

    def table(rows: list[list[str]]) -> np.ndarray:
        return np.array([[float(v) if n in NUMBERS else v for n, v in enumerate(row)] for row in rows], dtype=object)

    def named(rows: list[list[str]]) -> list[dict[str, Any]]:
        return [
            {f"c{n}": float(v) if n in NUMBERS else (None if v == "?" else v) for n, v in enumerate(row)}
            for row in rows
        ]

    def ours() -> Callable[[list[list[str]]], np.ndarray]:
        trained = train(folder / "adult.data", model)
        return lambda rows: trained(named(rows))

    def theirs() -> Callable[[list[list[str]]], np.ndarray]:
        peer.fit(table(X), y)
        return lambda rows: peer.predict(table(rows))

    yield race("adult", {OURS: ours, "LogisticRegression": theirs}, repeat, (test_X, test_y))
    losses = {
        OURS: [log_loss(test_y, onlearn.load(model).predict_proba(named(test_X)))],
        "LogisticRegression": [log_loss(test_y, peer.predict_proba(table(test_X)))],
    }
    yield Row("adult, log-loss of the test rows", losses, {}, unit="nats")

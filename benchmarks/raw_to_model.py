"""From raw rows to a model with nothing said: imdb and 20news as JSON lines, adult as CSV.

``onlearn train FILE -o MODEL`` as a command, start-up and saving included. All contenders for text begin with the same
file. Vowpal Wabbit, in a process of its own: JSON lines to its format, tokens in lower case, then --ngram 2 -b 24 and
three passes, and the model saved. fastText, in this process: the same tokens, pairs of words, five epochs.
scikit-learn, in this process: for text TfidfVectorizer of words and pairs with SGDClassifier (hinge, averaged) or
LinearSVC; for adult a one-hot encoder and a standard scaler with LogisticRegression. Below each time is the accuracy
on the test rows; the log-loss of adult's is in the last row. Needs ONLEARN_DATA.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
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
# Its arguments: a file of JSON lines, the number of each label, a folder, and what else the command says.
VW = """
import json, re, sys
from vowpalwabbit import pyvw

source, numbers, folder, said = sys.argv[1:]
numbers = json.loads(numbers)
with open(source, encoding="utf-8") as lines, open(f"{folder}/rows.vw", "w", encoding="utf-8") as rows:
    for line in lines:
        row = json.loads(line)
        rows.write(f"{numbers[row['label']]} |t " + " ".join(re.findall(r"\\w+", row["text"].lower())) + "\\n")
pyvw.Workspace(f"-d {folder}/rows.vw --cache_file {folder}/cache -f {folder}/model.vw --quiet {said}").finish()
"""


def texts(folder: Path, quick: bool) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    read = []
    for part in ("train", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
            read.append([json.loads(line) for line in lines][: 1000 if quick else None])
    return read[0], read[1]


def train(source: Path, model: Path) -> Callable[[Any], np.ndarray]:
    subprocess.run([sys.executable, "-m", "onlearn.cli", "train", str(source), "-o", str(model), "-q"], check=True)
    return lambda rows: onlearn.load(model).predict(rows)


def read(source: Path) -> tuple[list[str], list[str]]:
    """The texts and labels of a file of JSON lines."""
    with open(source, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def vw(source: Path, labels: list[str], folder: Path) -> None:
    """From JSON lines to a model."""
    several = len(labels) > 2
    numbers = {label: k + 1 if several else 2 * k - 1 for k, label in enumerate(labels)}
    kind = f"--oaa {len(labels)}" if several else "--loss_function logistic"
    said = f"{kind} --ngram 2 -b 24 --passes 3 --holdout_off"
    (folder / "cache").unlink(missing_ok=True)
    subprocess.run([sys.executable, "-c", VW, str(source), json.dumps(numbers), str(folder), said], check=True)


def fasttext(source: Path, folder: Path) -> Callable[[list[str]], np.ndarray]:
    return fast_text.learn(*read(source), folder, epochs=5)


def sklearn_text(source: Path, learner: Any) -> Callable[[list[str]], np.ndarray]:
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), learner)
    return model.fit(*read(source)).predict


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
            labels = sorted({row["label"] for row in rows})
            contenders = {
                OURS: lambda s=source: train(s, model),
                "Vowpal Wabbit": (lambda s=source, n=labels: vw(s, n, folder)) if find_spec("vowpalwabbit") else None,
                "fastText": (lambda s=source: fasttext(s, folder)) if fast_text.THERE else None,
                "tf-idf + SGD": lambda s=source: sklearn_text(s, SGDClassifier(average=True)),
                "tf-idf + LinearSVC": lambda s=source: sklearn_text(s, LinearSVC()),
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

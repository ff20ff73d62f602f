"""Learners without a learning rate against AdaGrad at rate 0.1: log-loss, not time.

One pass in a shuffled order, logistic loss; columns of numbers as they come, but for those of adult, which are
standardised. Of each set two lines: the mean log-loss of every row before it is learned from ("progressive"), and that
of the last tenth of the rows by the hypothesis handed out after one pass over the others ("held out"), which is the
mean of all ("averaged") or the last one. The last lines are geometric means of the losses, over all sets. Needs
ONLEARN_DATA.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
from mixture import mixture_of_rates
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import log_loss
from timing import Row

import onlearn
from onlearn.features import Category, Features, Number, Text

CONTENDERS: dict[str, Callable[..., Any]] = {
    "AdaGrad, rate 0.1": onlearn.LogisticRegression,
    "ScInOL": onlearn.ScInOL,
    "mixture of 8 rates": mixture_of_rates,
}
NUMBERS = [0, 2, 4, 10, 11, 12]  # adult's numeric columns
QUICK = 1000  # rows

Loaded = tuple[Any, np.ndarray]


def svmlight(path: Path) -> Loaded:
    X, y = load_svmlight_file(str(path))
    return X, y


def table(path: Path, header: bool) -> np.ndarray:
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=not header)
    return np.column_stack(pyarrow.csv.read_csv(path, options).columns)


def covtype(folder: Path) -> Loaded:
    """As it comes: distances in metres beside zeros and ones."""
    rows = table(folder / "covtype.csv.gz", header=True).astype(np.float64)
    return rows[:, :-1], rows[:, -1].astype(int)


def covtype_2(folder: Path) -> Loaded:
    X, y = covtype(folder)
    return X, y == 2


def adult(folder: Path) -> Loaded:
    """By the features that ``onlearn train`` makes, which standardise numbers."""
    with open(folder / "adult.data", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    columns = {f"c{n}": [float(v) if n in NUMBERS else v for v in column] for n, column in enumerate(zip(*rows))}
    kinds = [Number(f"c{n}") if n in NUMBERS else Category(f"c{n}") for n in range(14)]
    return Features(kinds).fit_transform(columns), np.array(columns["c14"])


def texts(folder: Path) -> Loaded:
    with gzip.open(folder / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    X = Features([Text("text", weighting="idf")]).fit_transform([row["text"] for row in rows])
    return X, np.array([row["label"] for row in rows])


def letter(folder: Path) -> Loaded:
    rows = table(folder / "letter-recognition.data", header=False)
    return rows[:, 1:].astype(np.float64), rows[:, 0].astype(str)


def spambase(folder: Path) -> Loaded:
    rows = table(folder / "spambase.data", header=False).astype(np.float64)
    return rows[:, :-1], rows[:, -1]


SETS: dict[str, tuple[str, Callable[[Path], Loaded]]] = {
    "a9a": ("a9a", lambda folder: svmlight(folder / "a9a.svm")),
    "adult": ("adult", adult),
    "covtype, class 2": ("covtype", covtype_2),
    "covtype": ("covtype", covtype),
    "letter": ("letter", letter),
    "mushroom": ("mushroom", lambda folder: svmlight(folder / "agaricus.txt.train")),
    "spambase": ("spambase", spambase),
    "20news": ("20news", texts),
    "imdb": ("imdb", texts),
}


def progressive(make: Callable[..., Any], X: Any, y: np.ndarray) -> float:
    """The mean log-loss of the rows, each before it is learned from."""
    return make(epochs=1, random_state=0).fit(X, y).history_["passes"][0]["loss"]


def held_out(make: Callable[..., Any], X: Any, y: np.ndarray, stabilizer: str) -> float:
    """The log-loss of a tenth of the rows after a pass over the others."""
    order = np.random.default_rng(0).permutation(len(y))
    learned, kept = order[len(y) // 10 :], order[: len(y) // 10]
    model = make(epochs=1, random_state=0, stabilizer=stabilizer).fit(X[learned], y[learned])
    known = np.isin(y[kept], model.classes_)
    return log_loss(y[kept][known], model.predict_proba(X[kept][known]), labels=model.classes_)


def means(rows: list[Row]) -> dict[str, list[float]]:
    names = dict.fromkeys(name for row in rows for name in row.taken)
    return {name: [float(np.exp(np.mean([np.log(row.best(name)) for row in rows])))] for name in names}


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    home = Path(os.environ.get("ONLEARN_DATA", ""))
    if not os.environ.get("ONLEARN_DATA") or not home.is_dir():
        print("no_rate: set ONLEARN_DATA to the folder that holds a9a, covtype and the others")
        return
    found: dict[str, list[Row]] = {"progressive": [], "held out": []}
    for name, (folder, load) in SETS.items():
        X, y = load(home / folder)
        if quick:
            some = np.random.default_rng(1).permutation(len(y))[:QUICK]
            X, y = X[some], y[some]
        seen = {who: [progressive(make, X, y)] for who, make in CONTENDERS.items()}
        kept = {
            f"{who}, {stabilizer}": [held_out(make, X, y, stabilizer)]
            for who, make in CONTENDERS.items()
            for stabilizer in ("averaged", "last")
        }
        for kind, losses in (("progressive", seen), ("held out", kept)):
            found[kind].append(Row(f"{name}, {kind}", losses, {}, unit="nats"))
            yield found[kind][-1]
    for kind, rows in found.items():
        yield Row(f"geometric mean, {kind}", means(rows), {}, unit="nats")

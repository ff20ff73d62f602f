"""Rounds that mixing takes, by the number of shards: until errors on test rows are at most 0.3 points above one machine's.

One machine learns from all rows in its usual number of passes. Rows are shuffled and cut into shards of one size, which
are learned from in this process; up to 100 rounds. "25 %": the same with a quarter of the rows, which tells apart what
more shards and what fewer rows in each cost. Below there is a law with these measurements as its points, fitted by least
squares: log rounds = a + b log shards + c log rows, with an a of its own for each set and learner, of the points with
2 rounds or more. "Heaps": the words of the first m tokens of imdb are K m^beta. Needs ONLEARN_DATA.

    python benchmarks/cluster_rounds.py [--quick] [--write]

writes the points to cluster_rounds.json beside this file, where ``cluster_plan.py`` looks for them.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from timing import Row
from unseen import SETS

from onlearn.engine import mixing
from onlearn.engine.learner import Learner

SHARDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
MOST = 100  # rounds
WORSE = 0.003
LEARNERS = ("LogisticRegression", "AveragedPerceptron")
PARTS = (1.0, 0.25)
POINTS = Path(__file__).with_suffix(".json")


class Loaded(NamedTuple):
    """Rows to learn from and to test on, with classes 0, 1, ..."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class Point(NamedTuple):
    """One measurement: the rounds that so many shards of so many rows took; None: more than ``MOST``."""

    group: str  # set and learner
    shards: int
    rows: int
    rounds: int | None


def load(name: str, folder: Path) -> Loaded:
    """A set with its features as numbers: words of texts by tf-idf, columns of tables standardised."""
    from defaults import table, texts
    from sklearn.datasets import load_svmlight_file

    made = SETS[name](Path(os.environ["ONLEARN_DATA"]), folder)
    if made.kind == "svmlight":
        X, y = load_svmlight_file(str(made.train))
        X_test, y_test = load_svmlight_file(str(made.test), n_features=X.shape[1])
    elif made.kind == "text":
        (X, y), (X_test, y_test) = texts(made.train), texts(made.test)
        words = TfidfVectorizer(sublinear_tf=True)
        X, X_test = words.fit_transform(X), words.transform(X_test)
    else:
        (X, y), (X_test, y_test) = table(made.train), table(made.test)
        X, X_test = (np.array(rows, dtype=np.float64) for rows in (X, X_test))
        mean, deviation = X.mean(axis=0), X.std(axis=0) + 1e-12
        X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
    names, codes = np.unique(y, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(codes))
    return Loaded(X[order], codes[order], X_test, np.searchsorted(names, y_test))


def error(learner: Learner, data: Loaded) -> float:
    return float(np.mean(learner.predict(data.X_test) != data.y_test))


def rounds_of(name: str, data: Loaded, rows: int, shards: int, target: float) -> int | None:
    """Rounds of so many shards until the error is at most ``target``; None: more than ``MOST``."""
    X, y = data.X[:rows], data.y[:rows]
    learner = Learner(name, random_state=0)
    learner._start(X.shape[1], np.bincount(y).astype(float), X.dtype)
    parts = np.array_split(np.arange(rows), shards)
    for number in range(MOST):
        sent = []
        for shard, part in enumerate(parts):
            own = copy.copy(learner)
            own.training = mixing.begin_shard(learner.training, shards)
            order = np.random.default_rng([0, number, shard]).permutation(part)
            own._learn_rows(X, y, None, order, first=False)
            sent.append(mixing.contribution(learner.training, own.training))
        learner.training = mixing.mixed(learner.training, mixing.added(sent))
        if error(learner, data) <= target:
            return number + 1
    return None


def measure(name: str, learner: str, data: Loaded, part: float, counts: tuple[int, ...]) -> Iterator[Point]:
    rows = int(part * len(data.y))
    serial = Learner(learner, random_state=0).fit(data.X[:rows], data.y[:rows])
    target = error(serial, data) + WORSE
    for shards in counts:
        found = rounds_of(learner, data, rows, shards, target)
        yield Point(f"{name}, {learner}", shards, rows, found)
        if found is None:
            break  # more shards take longer yet


class Law(NamedTuple):
    """rounds = e^a shards^b rows^c, and how far from it the measurements lie."""

    a: dict[str, float]  # of each set and learner
    b: float
    c: float
    b_error: float  # standard errors
    c_error: float
    spread: float  # the deviation of log rounds from the law


def fit(points: list[Point]) -> Law:
    """The law by least squares, of the points with more than one round: with one, fewer may have been enough."""
    used = [one for one in points if one.rounds is not None and one.rounds > 1]
    groups = sorted({one.group for one in used})
    A = np.zeros((len(used), len(groups) + 2))
    for place, one in enumerate(used):
        A[place, groups.index(one.group)] = 1.0
        A[place, -2:] = np.log(one.shards), np.log(one.rows)
    y = np.log([float(one.rounds or 0) for one in used])
    found, *_ = np.linalg.lstsq(A, y)
    left = y - A @ found
    variance = float(left @ left) / max(1, len(y) - A.shape[1])
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(A.T @ A)))
    a = dict(zip(groups, found.tolist()))
    return Law(a, float(found[-2]), float(found[-1]), float(errors[-2]), float(errors[-1]), variance**0.5)


def heaps(X: Any) -> tuple[float, float]:
    """K and beta of Heaps' law, by least squares on the words of the first 100, 200, 400, ... rows."""
    tokens, words = [], []
    rows = 100
    while rows <= X.shape[0]:
        some = X[:rows]
        tokens.append(math.log(some.nnz))
        words.append(math.log(len(np.unique(some.indices))))
        rows *= 2
    beta, log_k = np.polyfit(tokens, words, 1)
    return math.exp(log_k), float(beta)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    if os.environ.get("ONLEARN_DATA"):
        yield from measured(quick, [])


def measured(quick: bool, points: list[Point]) -> Iterator[Row]:
    """The rows of the table; the points are added to the list."""
    counts = SHARDS[:4] if quick else SHARDS
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a9a",) if quick else ("a9a", "covtype", "imdb"):
            data = load(name, Path(folder))
            for learner in LEARNERS:
                for part in PARTS:
                    found = list(measure(name, learner, data, part, counts))
                    points += found
                    told = {one.shards: float(one.rounds or math.nan) for one in found}
                    columns = {f"{count}": [told.get(count, math.nan)] for count in counts}
                    yield Row(f"{name}, {learner}, {part:.0%}", columns, {}, unit="")
            if name == "imdb":
                k, beta = heaps(data.X)
                yield Row("Heaps", {"K": [k], "beta": [beta]}, {}, unit="")
    law = fit(points)
    told_law = {"b": law.b, "its error": law.b_error, "c": law.c, "error of c": law.c_error, "spread": law.spread}
    yield Row("law", {name: [value] for name, value in told_law.items()}, {}, unit="")
    yield Row("e^a", {name: [math.exp(a)] for name, a in law.a.items()}, {}, unit="")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one set and few shards: whether it runs")
    parser.add_argument("--write", action="store_true", help="write the points to cluster_rounds.json")
    args = parser.parse_args()
    if not os.environ.get("ONLEARN_DATA"):
        parser.error("set ONLEARN_DATA to the folder that holds the data")
    warnings.simplefilter("ignore")
    points: list[Point] = []
    for row in measured(args.quick, points):
        print(f"{row.work}: " + ", ".join(f"{name} {values[0]:.4g}" for name, values in row.taken.items()), flush=True)
    if args.write:
        POINTS.write_text(json.dumps([one._asdict() for one in points], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

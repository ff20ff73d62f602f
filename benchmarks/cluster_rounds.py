"""Rounds that mixing takes, by the number of shards, until errors are at most 0.3 points above those of one machine.

One machine learns from all rows in its usual number of passes; errors are those on test rows. Rows are shuffled and cut
into shards of one size, which are learned from in this process; up to 100 rounds. "25%": the same with a quarter of the
rows, which tells apart what more shards cost, and what fewer rows in each. The law is rounds = factor n^-power, for n
rows in each shard, by least squares on logarithms, of the points with at least twice the rounds of one shard, with a
factor for each set and learner. "spread": the deviation of points from it; "factors": that of the logarithms of the
factors. "powers apart": a law with a power of its own for the shards and for all rows. "Heaps": the words of the first
m tokens of imdb are K m^beta. Needs ONLEARN_DATA.

    python benchmarks/cluster_rounds.py [--quick] [--write | --fit]

``--write`` writes the points to cluster_rounds.json beside this file, where ``cluster_plan.py`` looks for them.
``--fit`` reads them there, and measures nothing.
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
    """rounds = factor n^-power for n rows in each shard, and how far the measurements are from it."""

    factors: dict[str, float]  # of each set and learner
    power: float
    error: float  # standard error of the power
    spread: float  # deviation of log rounds from the law of their set and learner
    apart: float  # deviation of the logarithms of the factors
    by_shards: float  # if shards and rows may have powers of their own
    by_rows: float
    errors: tuple[float, float]

    @property
    def factor(self) -> float:
        """The geometric mean of the factors."""
        return math.exp(sum(map(math.log, self.factors.values())) / len(self.factors))


def past_the_knee(points: list[Point]) -> list[Point]:
    """The points with at least twice as many rounds as one shard of the same rows: before, shards cost nothing."""
    alone = {(one.group, one.rows): one.rounds for one in points if one.shards == 1}
    return [one for one in points if one.rounds and one.rounds >= 2 * (alone[one.group, one.rows] or MOST)]


def fit(points: list[Point]) -> Law:
    """The law by least squares."""
    used = past_the_knee(points)
    groups = sorted({one.group for one in used})
    kinds = np.array([[one.group == group for group in groups] for one in used], dtype=np.float64)
    shards, rows = np.log([one.shards for one in used]), np.log([one.rows for one in used])
    found, errors, spread = least_squares([*kinds.T, shards - rows], used)
    both, both_errors, _ = least_squares([*kinds.T, shards, rows], used)
    factors = found[:-1]
    return Law(
        {group: math.exp(factor) for group, factor in zip(groups, factors)},
        float(found[-1]),
        float(errors[-1]),
        spread,
        float(np.std(factors, ddof=1)) if len(factors) > 1 else 0.0,
        float(both[-2]),
        float(both[-1]),
        (float(both_errors[-2]), float(both_errors[-1])),
    )


def least_squares(columns: list[np.ndarray], points: list[Point]) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients of log rounds, their standard errors, and the deviation of what is left."""
    A, y = np.column_stack(columns), np.log([float(one.rounds or 0) for one in points])
    found, *_ = np.linalg.lstsq(A, y)
    left = y - A @ found
    variance = float(left @ left) / max(1, len(y) - A.shape[1])
    return found, np.sqrt(variance * np.diag(np.linalg.pinv(A.T @ A))), variance**0.5


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
    yield from rows_of(fit(points))


def rows_of(law: Law) -> Iterator[Row]:
    """A law as rows of the table."""
    told = {"factor": law.factor, "power": law.power, "error of it": law.error, "spread": law.spread}
    yield Row("law", {name: [value] for name, value in {**told, "factors": law.apart}.items()}, {}, unit="")
    yield Row("factor", {name: [value] for name, value in law.factors.items()}, {}, unit="")
    apart = {"shards": law.by_shards, "+-": law.errors[0], "rows": law.by_rows, "+- ": law.errors[1]}
    yield Row("powers apart", {name: [value] for name, value in apart.items()}, {}, unit="")


def show(rows: Iterator[Row]) -> None:
    for row in rows:
        print(f"{row.work}: " + ", ".join(f"{name} {values[0]:.4g}" for name, values in row.taken.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one set and few shards: whether it runs")
    parser.add_argument("--write", action="store_true", help="write the points to cluster_rounds.json")
    parser.add_argument("--fit", action="store_true", help="fit the law to the points in cluster_rounds.json")
    args = parser.parse_args()
    if args.fit:
        show(rows_of(fit([Point(**one) for one in json.loads(POINTS.read_text(encoding="utf-8"))])))
        return
    if not os.environ.get("ONLEARN_DATA"):
        parser.error("set ONLEARN_DATA to the folder that holds the data")
    warnings.simplefilter("ignore")
    points: list[Point] = []
    show(measured(args.quick, points))
    if args.write:
        POINTS.write_text(json.dumps([one._asdict() for one in points], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

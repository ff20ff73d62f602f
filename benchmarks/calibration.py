"""Probabilities: log-loss on rows that were not learned from.

"ours" is what predict_proba gives with nothing said; "own" takes the scores for log-odds as they are; "best" is the
better of the sigmoid and the temperature that fit the scores of the test rows themselves, in hindsight. scikit-learn's
CalibratedClassifierCV fits sigmoids in 3-fold cross-validation around the same learner, for which that learns three
times. The accuracy beside a figure is 1 less the calibration error. All learners make 5 passes; 20news and imdb are
presence times idf, 20news is split by date, so that test rows are harder than those kept back; of covtype a tenth is
tested on. Needs ONLEARN_DATA.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import no_rate
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from timing import OURS, Row

import onlearn
from onlearn.engine.calibration import curve_of
from onlearn.features import Category, Features, Number, Text
from onlearn.models.reliability import Reliability

Split = tuple[Any, np.ndarray, Any, np.ndarray]
QUICK = 6000  # rows
LEARNERS: dict[str, Callable[..., Any]] = {
    "averaged perceptron": onlearn.AveragedPerceptron,
    "PA-I": onlearn.PassiveAggressive,
    "balanced Winnow": onlearn.BalancedWinnow,
    "Winnow": onlearn.Winnow,
    "logistic": onlearn.LogisticRegression,
    "AROW": onlearn.AROW,
}


def texts(folder: Path) -> Split:
    parts = []
    for name in ("train", "test"):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        parts.append(([row["text"] for row in rows], np.array([row["label"] for row in rows])))
    features = Features([Text("text", weighting="idf")])
    return features.fit_transform(parts[0][0]), parts[0][1], features.transform(parts[1][0]), parts[1][1]


def adult(folder: Path) -> Split:
    columns = []
    for name in ("adult.data", "adult.test"):
        with open(folder / name, newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
        numbers = no_rate.NUMBERS
        columns.append({
            f"c{n}": [float(v) if n in numbers else v.rstrip(".") for v in column]
            for n, column in enumerate(zip(*rows))
        })  # fmt: skip
    features = Features([Number(f"c{n}") if n in no_rate.NUMBERS else Category(f"c{n}") for n in range(14)])
    train, test = columns
    return features.fit_transform(train), np.array(train["c14"]), features.transform(test), np.array(test["c14"])


def covtype(folder: Path) -> Split:
    """Standardised, and moved to be positive: Winnow takes no negative values."""
    X, y = no_rate.covtype(folder)
    order = np.random.default_rng(0).permutation(len(y))
    learned, kept = order[len(y) // 10 :], order[: len(y) // 10]
    X = (X - X[learned].min(axis=0)) / (X[learned].std(axis=0) + 1e-12)
    return X[learned], y[learned], np.maximum(X[kept], 0.0), y[kept]


SETS: dict[str, tuple[str, Callable[[Path], Split], tuple[str, ...]]] = {
    "adult": ("adult", adult, ("averaged perceptron", "PA-I", "logistic", "AROW")),
    "imdb": ("imdb", texts, ("averaged perceptron", "PA-I", "logistic", "AROW")),
    "20news": ("20news", texts, tuple(LEARNERS)),
    "covtype": ("covtype", covtype, tuple(LEARNERS)),
}


def figures(proba: np.ndarray, gold: np.ndarray) -> tuple[float, float]:
    """Log-loss and calibration error."""
    found = Reliability(proba.shape[1])
    found.add(gold, proba)
    report = found.report()
    return report["log_loss"], report["calibration_error"]


def judged(make: Callable[..., Any], split: Split, peer: bool) -> dict[str, tuple[float, float]]:
    """Log-loss and calibration error by contender."""
    X, y, test, labels = split
    gold = np.searchsorted(np.unique(y), labels)
    model = make(random_state=0).fit(X, y)
    scores = np.asarray(model.decision_function(test), dtype=np.float64)
    columns = scores[:, None] if scores.ndim == 1 else scores
    hindsight = [curve_of(columns, gold, method).probabilities(scores) for method in ("sigmoid", "temperature")]
    found = {
        OURS: figures(model.predict_proba(test), gold),
        "own": figures(model.set_params(calibration="own").predict_proba(test), gold),
        "best": min(figures(proba, gold) for proba in hindsight),
    }
    if peer:
        theirs = CalibratedClassifierCV(make(random_state=0, calibration="own"), cv=3).fit(X, y)
        found["CalibratedClassifierCV"] = figures(theirs.predict_proba(test), gold)
    return found


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    home = Path(os.environ.get("ONLEARN_DATA", ""))
    if not os.environ.get("ONLEARN_DATA") or not home.is_dir():
        print("calibration: set ONLEARN_DATA to the folder that holds adult, imdb, 20news and covtype")
        return
    for name, (folder, load, learners) in SETS.items():
        if not (home / folder).is_dir():
            continue
        split = load(home / folder)
        if quick:
            some = np.random.default_rng(1).permutation(len(split[1]))[:QUICK]
            split = (split[0][some], split[1][some], *split[2:])
        for learner in learners:
            found = judged(LEARNERS[learner], split, peer=not quick)
            losses = {who: [loss] for who, (loss, _) in found.items()}
            errors = {who: [1.0 - error] for who, (_, error) in found.items()}
            yield Row(f"{name}, {learner}", losses, errors, unit="nats")

"""Spam: e-mails as 57 numbers (spambase), by an averaged perceptron, plain and on random kitchen sinks.

A decision tree, scikit-learn's with its usual settings, is there to compare with.

The split is fixed. All numbers are frequencies or lengths with long tails: log(1 + c x) and standardising prepare them
for a linear learner and for one width of a Gaussian kernel.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from onlearn.estimators.kitchen_sinks import RandomKitchenSinks
from onlearn.estimators.linear import OnlineClassifier
from onlearn.reproduce.table import MissingDataError, Row, Table, folder

FILES = ["spambase.data", "traintest.txt"]
PUBLISHED = {"averaged perceptron": 0.0827, "random kitchen sinks": 0.0612}
GOALS = {"averaged perceptron": 0.073, "random kitchen sinks": 0.057}
PASSES = {"averaged perceptron": 128, "random kitchen sinks": 64}
TREE, TREE_PUBLISHED = "decision tree, scikit-learn's", 0.093
SINKS, SIGMA, SCALE = 2000, 7.0, 100.0


def spam(
    data: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    report: Callable[[str], Any] = lambda name: None,
) -> Table:
    """Test errors on the 1,536 e-mails of the published split.

    ``data`` is the folder with the two files; by default ``spambase`` in the folder ONLEARN_DATA. ``report`` is called
    with the name of each finished line.
    """
    place = folder(data, "spambase", FILES)
    rows, test = _numbers(place / FILES[0]), _numbers(place / FILES[1])[:, 0] == 1
    if len(test) != len(rows):
        raise MissingDataError(f"{place / FILES[1]} has {len(test)} lines, but there are {len(rows)} e-mails")
    X, y = np.log1p(SCALE * rows[:, :-1]), rows[:, -1].astype(int)
    centre, size = X[~test].mean(axis=0), X[~test].std(axis=0)
    X = (X - centre) / np.where(size > 0, size, 1.0)
    title = f"test error, spambase, {np.sum(~test):,} e-mails to learn from and {np.sum(test):,} to test on"
    table = Table(title, ["error"])
    sinks = RandomKitchenSinks(f"gaussian({SIGMA})", n_components=SINKS, random_state=seed)
    maps = {"averaged perceptron": X, "random kitchen sinks": sinks.fit(X[~test]).transform(X)}
    for name, Z in maps.items():
        start = perf_counter()
        model = OnlineClassifier(epochs=PASSES[name], random_state=seed).fit(Z[~test], y[~test])
        error = float(np.mean(model.predict(Z[test]) != y[test]))
        table.rows.append(Row(name, [error], [PUBLISHED[name]], [GOALS[name]], perf_counter() - start))
        report(name)
    from sklearn.tree import DecisionTreeClassifier

    start = perf_counter()
    tree = DecisionTreeClassifier(random_state=seed).fit(X[~test], y[~test])
    error = float(np.mean(tree.predict(X[test]) != y[test]))
    table.rows.append(Row(TREE, [error], [TREE_PUBLISHED], [None], perf_counter() - start))
    report(TREE)
    return table


def _numbers(path: Path) -> np.ndarray:
    """A file of numbers separated by commas."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file is reported below
            rows = np.loadtxt(path, delimiter=",", ndmin=2)
    except ValueError as error:
        raise MissingDataError(f"{path} is not a file of numbers: {error}") from None
    if not rows.size:
        raise MissingDataError(f"{path} is empty")
    if not np.isfinite(rows).all():
        raise MissingDataError(f"{path} holds NaN or infinity, which the published data do not")
    return rows

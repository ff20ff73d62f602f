"""A mixture of 8 learning rates, beside one learner and beside 8 learners one after another: one pass.

Logistic regression by AdaGrad, going on after a first pass. Sparse: 50,000 x 50,000, about 60 non-zeros a row; dense:
50,000 x 100, doubles. The first column is one learner, and 'x' is how many times that the others take. Turns are short
and three times as many as asked for, for the ratio suffers where another program takes a part of one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import data
import numpy as np
from timing import OURS, Row, race

import onlearn
from onlearn.engine.mixture import RATES


def mixture_of_rates(stabilizer: str = "last", **settings: Any) -> onlearn.Mixture:
    """The usual mixture, with any stabilizer."""
    return onlearn.Mixture([onlearn.LogisticRegression(rate=rate, stabilizer=stabilizer) for rate in RATES], **settings)


def contenders(X: Any, y: np.ndarray, stabilizer: str) -> dict[str, Any]:
    """Learners that have seen the rows once, and see them again."""
    several = [onlearn.LogisticRegression(rate=rate, stabilizer=stabilizer) for rate in RATES]
    mixture = mixture_of_rates(stabilizer)
    for one in (mixture, *several):
        one.partial_fit(X, y, np.unique(y))
    return {
        OURS: lambda: several[4].partial_fit(X, y) and None,
        "mixture of 8": lambda: mixture.partial_fit(X, y) and None,
        "8 one by one": lambda: [one.partial_fit(X, y) for one in several] and None,
    }


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows, turns = (5_000, repeat) if quick else (50_000, 3 * repeat)
    for popularity in ("zipf", "uniform"):
        X = data.sparse_rows(rows, rows, 60, popularity)
        for stabilizer in ("last", "averaged"):
            yield race(f"sparse, {popularity}, {stabilizer}", contenders(X, data.labels(X), stabilizer), turns)
    yield race("sparse, uniform, 5 classes, last", contenders(X, data.labels(X, 5), "last"), turns)
    dense = data.dense_rows(rows, 100, np.float64)
    for stabilizer in ("last", "averaged"):
        yield race(f"dense, {stabilizer}", contenders(dense, data.labels(dense), stabilizer), turns)

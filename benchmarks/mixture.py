"""A mixture of 8 learning rates, beside one learner and beside 8 learners one after another: one pass.

Logistic regression by AdaGrad. Sparse: 200,000 x 50,000, about 60 non-zeros a row; dense: 100,000 x 100, doubles. The
first column is one learner, and 'x' is how many times that the others take.
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
    classes = np.unique(y)

    def one(rate: float) -> Any:
        return onlearn.LogisticRegression(rate=rate, stabilizer=stabilizer).partial_fit(X, y, classes)

    return {
        OURS: lambda: one(0.1) and None,
        "mixture of 8": lambda: mixture_of_rates(stabilizer).partial_fit(X, y, classes) and None,
        "8 one by one": lambda: [one(rate) for rate in RATES] and None,
    }


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows, features = (5_000, 5_000) if quick else (200_000, 50_000)
    for popularity in ("zipf", "uniform"):
        X = data.sparse_rows(rows, features, 60, popularity)
        for stabilizer in ("last", "averaged"):
            yield race(f"sparse, {popularity}, {stabilizer}", contenders(X, data.labels(X), stabilizer), repeat)
    some = X[: rows // 4]
    yield race("sparse, uniform, 5 classes, last", contenders(some, data.labels(some, 5), "last"), repeat)
    dense = data.dense_rows(rows // 2, 100, np.float64)
    for stabilizer in ("last", "averaged"):
        yield race(f"dense, {stabilizer}", contenders(dense, data.labels(dense), stabilizer), repeat)

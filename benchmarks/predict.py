"""Predicting 200,000 rows, on all cores, with the same weights.

Sparse rows are 50,000 wide with about 60 non-zeros, dense ones 100 wide. "Product alone" is X @ W as SciPy or
the BLAS does it: no checks, no class chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import data
import numpy as np
from sklearn.linear_model import SGDClassifier
from timing import OURS, Row, race

import onlearn

LEARNED = 20_000  # rows to learn from: the weights need not be good


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows = 20_000 if quick else 200_000
    inputs = {
        "sparse float64": data.sparse_rows(rows, 50_000, 60, "zipf"),
        "dense float32": data.dense_rows(rows, 100),
        "dense float64": data.dense_rows(rows, 100, np.float64),
    }
    for kind, X in inputs.items():
        for classes in (2, 20):
            yield predict(f"{kind}, {classes} classes", X, classes, repeat)
    for kind, X in inputs.items():
        yield predict(f"{kind}, 2 classes, 1 row", X[:1], 2, 20 * repeat, X)


def predict(work: str, X: Any, classes: int, repeat: int, learned: Any = None) -> Row:
    learned = (X if learned is None else learned)[:LEARNED]
    y = data.labels(learned, classes)
    model = onlearn.OnlineClassifier(epochs=1, random_state=0).fit(learned, y)
    peer = SGDClassifier(max_iter=1, tol=None).fit(learned[:1000], y[:1000])
    peer.classes_, peer.coef_, peer.intercept_ = model.classes_, model.coef_, model.intercept_
    W = np.ascontiguousarray(model.coef_.T)
    contenders = {
        OURS: lambda: model.predict(X),
        "scikit-learn": lambda: peer.predict(X),
        "product alone": lambda: X @ W,
    }
    return race(work, contenders, repeat)

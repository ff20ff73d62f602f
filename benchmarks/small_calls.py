"""Small calls: a service that learns from and predicts a handful of rows at a time waits for the call around them.

100 calls each, of dense rows with 20 features. scikit-learn: SGDClassifier, averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from timing import OURS, Row, race

import onlearn

CALLS = 100


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for rows in (1, 64):
        X = rng.normal(size=(rows, 20))
        y = (X[:, 0] > 0).astype(int)
        models = {
            OURS: onlearn.AveragedPerceptron(random_state=0),
            "scikit-learn": SGDClassifier(average=True, random_state=0),
        }
        for model in models.values():
            model.partial_fit(X, y, classes=[0, 1])
        for name in ("partial_fit", "predict"):
            contenders = {
                who: calls(getattr(model, name), X, *([y] if name == "partial_fit" else []))
                for who, model in models.items()
            }
            yield race(f"{CALLS} x {name}, {rows} row{'s' if rows > 1 else ''}", contenders, repeat)


def calls(method: Callable[..., Any], *given: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in range(CALLS):
            method(*given)

    return run

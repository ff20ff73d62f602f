"""One example at a time: 1,000 calls each, on rows of 20 numbers, against river and scikit-learn.

Rows are a NumPy array or a dict of 20 names; river takes dicts only, and reads the same rows as dicts where ours are
arrays. All learn logistic regression of two classes. The last rows call the scikit-learn interface with one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from timing import OURS, Row, race

import onlearn

CALLS, FEATURES = 1000, 20


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(CALLS, FEATURES))
    y = (X[:, 0] + rng.normal(size=CALLS) > 0).tolist()
    dicts = [{f"feature{k}": value for k, value in enumerate(row)} for row in X.tolist()]
    arrays = onlearn.LogisticRegression(random_state=0).partial_fit(X, y, classes=[False, True])
    named = onlearn.LogisticRegression(random_state=0, grow="features")
    peer = _river()
    for row, label in zip(dicts, y):
        named.learn_one(row, label)
        if peer is not None:
            peer.learn_one(row, label)

    def theirs(name: str) -> Callable[[], None] | None:
        return None if peer is None else _calls(getattr(peer, name), dicts, *([y] if name == "learn_one" else []))

    for name in ("learn_one", "predict_one", "predict_proba_one"):
        labels = [y] if name == "learn_one" else []
        for work, model, rows in (("an array", arrays, list(X)), ("a dict", named, dicts)):
            contenders = {OURS: _calls(getattr(model, name), rows, *labels), "river": theirs(name)}
            yield race(f"{CALLS:,} x {name}, {work} of {FEATURES}", contenders, repeat)
    sgd = SGDClassifier(loss="log_loss", average=True, random_state=0).partial_fit(X, y, classes=[False, True])
    single, labels = [X[n : n + 1] for n in range(CALLS)], [np.array([label]) for label in y]
    for name, given in (("partial_fit", [single, labels]), ("predict", [single])):
        both = {OURS: _calls(getattr(arrays, name), *given), "scikit-learn": _calls(getattr(sgd, name), *given)}
        yield race(f"{CALLS:,} x {name} of one row", both, repeat)


def _river() -> Any:
    if find_spec("river") is None:
        return None
    from river import linear_model

    return linear_model.LogisticRegression()


def _calls(method: Callable[..., Any], *given: list[Any]) -> Callable[[], None]:
    def run() -> None:
        for one in zip(*given):
            method(*one)

    return run

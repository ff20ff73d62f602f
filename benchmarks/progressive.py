"""Progressive validation: predict, score and learn 10,000 rows of 20 numbers, one after another.

Logistic regression with the accuracy as metric; rows are mappings of 20 names to numbers. "with drift": ADWIN watches
the errors. river: ``evaluate.progressive_val_score``, and the same loop written out with its ADWIN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import OURS, Row, race

import onlearn

try:
    from river import drift, evaluate, linear_model, metrics
except ImportError:
    evaluate = None


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000 if quick else 10_000, 20))
    names = [f"f{k}" for k in range(20)]
    rows = list(zip((dict(zip(names, row)) for row in X.tolist()), (X @ rng.normal(size=20) > 0).tolist()))
    for title, detector in (("", None), (", with drift", "adwin")):
        contenders: dict[str, Any] = {OURS: _ours(rows, detector), "river": None}
        if evaluate is not None:
            contenders["river"] = _river(rows) if detector is None else _river_with_drift(rows)
        yield race(f"{len(rows):,} rows{title}", contenders, repeat)


def _ours(rows: list[Any], detector: str | None) -> Callable[[], None]:
    def run() -> None:
        for _ in onlearn.stream(rows, onlearn.LogisticRegression(grow=True, random_state=0), drift=detector):
            pass

    return run


def _river(rows: list[Any]) -> Callable[[], None]:
    return lambda: evaluate.progressive_val_score(rows, linear_model.LogisticRegression(), metrics.Accuracy())


def _river_with_drift(rows: list[Any]) -> Callable[[], None]:
    def run() -> None:
        model, metric, detector = linear_model.LogisticRegression(), metrics.Accuracy(), drift.ADWIN()
        for x, y in rows:
            predicted = model.predict_one(x)
            metric.update(y, predicted)
            detector.update(predicted != y)
            model.learn_one(x, y)

    return run

"""A rule of one's own against the built-in one that does the same: one pass, averaged.

Dense rows: 200,000 x 100, float32. Sparse rows: 200,000 x 50,000, about 60 non-zeros a row. Narrow rows: a million x 5,
where the rule is a good part of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import data
from timing import OURS, Row, race

import onlearn


@onlearn.rule
def own_perceptron(score: float, y: float) -> float:
    return y if score * y <= 0 else 0.0


@onlearn.rule
def own_pa1(score: float, y: float, sqnorm: float, C: float = 1.0) -> float:
    return y * min(C, max(0.0, 1 - score * y) / sqnorm) if sqnorm > 0 else 0.0


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows = 20_000 if quick else 200_000
    works = {
        "dense": data.dense_rows(rows, 100),
        "sparse": data.sparse_rows(rows, rows // 4, 60, "zipf"),
        "narrow": data.dense_rows(5 * rows, 5),
    }
    for name, X in works.items():
        y = data.labels(X)
        for rule in ("perceptron", "pa1"):
            contenders = {OURS: learner(f"own_{rule}", X, y), "built in": learner(rule, X, y)}
            yield race(f"{rule}, {name} rows", contenders, repeat)


def learner(rule: str, X: Any, y: Any) -> Any:
    return lambda: onlearn.OnlineClassifier(rule, stabilizer="averaged", epochs=1, random_state=0).fit(X, y) and None

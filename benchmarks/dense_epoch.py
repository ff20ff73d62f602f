"""One pass over dense rows: 200,000 x 100, float32.

scikit-learn: SGDClassifier(average=True), and Perceptron for "not averaged". "Written by hand" is the
fused Numba loop in dense_epoch.py: the same algorithm in the same order, no checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import data
import numpy as np
from numba import njit
from peers import LEARNERS, one_pass, pa1
from timing import Row


@cache
def loop(step: Callable[..., float], average: bool) -> Any:
    """The pass a good programmer would write for one rule and one layout."""
    rule, measured = njit(step, fastmath=True), step is pa1

    @njit(fastmath=True, error_model="numpy")
    def one_pass(X, y, order, w, u):
        b = ub = 0.0
        for c in range(len(order)):
            row = X[order[c]]
            s, q = b, 1.0
            for k in range(len(row)):
                s += row[k] * w[k]
                if measured:
                    q += row[k] * row[k]
            t = rule(s, y[order[c]], q)
            if t != 0.0:
                b += t
                ub += t * c
                for k in range(len(row)):
                    d = t * row[k]
                    w[k] += d
                    if average:
                        u[k] += d * c
        return b, ub

    return one_pass


def by_hand(step: Callable[..., float], average: bool, X: Any, y: np.ndarray) -> tuple[np.ndarray, float]:
    n, signs = len(y), np.where(y == 1, 1.0, -1.0)
    w, u = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    b, ub = loop(step, average)(X, signs, np.random.default_rng([0, 0]).permutation(n), w, u)
    return (w - u / n, b - ub / n) if average else (w, b)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows = 20_000 if quick else 200_000
    X = data.dense_rows(rows * 11 // 10, 100)
    parts = data.halves(X, data.labels(X), rows)
    for learner in LEARNERS:
        yield one_pass(learner, by_hand, parts, repeat)

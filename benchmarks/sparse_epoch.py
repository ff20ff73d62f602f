"""One pass over sparse rows: 200,000 x 50,000, about 60 non-zeros a row.

Features are popular as words are (Zipf), or all alike. scikit-learn: SGDClassifier(average=True), and
Perceptron for "not averaged"; on sparse rows its intercept learns at 1/100 of the rate. "Written by hand" is
the fused Numba loop in sparse_epoch.py: the same algorithm in the same order, no checks.
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
    def one_pass(values, indices, indptr, y, order, w, u):
        b = ub = 0.0
        for c in range(len(order)):
            i = order[c]
            start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            s, q = b, 1.0
            for p in range(start, stop):
                x = values[p]
                s += x * w[np.uint64(indices[p])]
                if measured:
                    q += x * x
            t = rule(s, y[i], q)
            if t != 0.0:
                b += t
                ub += t * c
                for p in range(start, stop):
                    j, d = np.uint64(indices[p]), t * values[p]
                    w[j] += d
                    if average:
                        u[j] += d * c
        return b, ub

    return one_pass


def by_hand(step: Callable[..., float], average: bool, X: Any, y: np.ndarray) -> tuple[np.ndarray, float]:
    n, signs = len(y), np.where(y == 1, 1.0, -1.0)
    w, u = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    order = np.random.default_rng([0, 0]).permutation(n)
    b, ub = loop(step, average)(X.data, X.indices, X.indptr, signs, order, w, u)
    return (w - u / n, b - ub / n) if average else (w, b)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows, features = (20_000, 5_000) if quick else (200_000, 50_000)
    for popularity in ("zipf", "uniform"):
        X = data.sparse_rows(rows * 11 // 10, features, 60, popularity)
        parts = data.halves(X, data.labels(X), rows)
        for learner in LEARNERS:
            yield one_pass(learner, by_hand, parts, repeat, f" ({popularity})")

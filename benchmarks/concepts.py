"""Ten of a hundred of 100,000 attributes: one pass over 50,000 sparse rows of about 1,000 each, by both families.

Perceptron and Winnow (alpha 1.1) in the order of the rows; scikit-learn's Perceptron is the peer of both. "With the
rows made" is all of it: the rows are drawn as CSR, and both families learn from them. The goal is 10 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import scipy.sparse as sp
from sklearn.linear_model import Perceptron
from timing import OURS, Row, race

import onlearn
from onlearn.theory.plots.attributes import ALPHA, ten_of_hundred_rows

PEER = "scikit-learn's Perceptron"


def rows_of(n: int, examples: int, seed: int) -> tuple[Any, Any]:
    X, y = ten_of_hundred_rows(n, examples, seed)
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape), y


def additive(X: Any, y: Any) -> Any:
    return onlearn.Perceptron(epochs=1, shuffle=False).fit(X, y)


def multiplicative(X: Any, y: Any) -> Any:
    return onlearn.Winnow(alpha=ALPHA, stabilizer="last", epochs=1, shuffle=False).fit(X, y)


def peer(X: Any, y: Any) -> Any:
    return Perceptron(penalty=None, max_iter=1, tol=None, shuffle=False).fit(X, y)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    n, examples = (5_000, 2_000) if quick else (100_000, 50_000)
    rows, test = rows_of(n, examples, seed=0), rows_of(n, 2_000, seed=1)
    for name, ours in (("Perceptron", additive), ("Winnow", multiplicative)):
        contenders = {OURS: lambda ours=ours: ours(*rows).predict, PEER: lambda: peer(*rows).predict}
        yield race(f"{name}, {examples:,} x {n:,}", contenders, repeat, test)

    def both() -> Any:
        drawn = rows_of(n, examples, seed=0)
        additive(*drawn)
        return multiplicative(*drawn).predict

    contenders = {OURS: both, PEER: lambda: peer(*rows_of(n, examples, seed=0)).predict}
    yield race("with the rows made, both families", contenders, repeat, test)

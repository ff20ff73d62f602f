"""k nearest neighbours: learning and predicting, against scikit-learn's brute force.

MNIST: 10,000 test rows among 60,000, k = 3, Euclidean, pixels as they are (needs ONLEARN_DATA/mnist). Bits: 1,000 rows
of 256 among 50,000, Hamming. The others are generated. "FAISS" is ``engine="faiss"``, which searches a part of the
million rows: the accuracy beside it is the share of the exact neighbours it finds. There the index is made before; all other
times include it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from data import sparse_rows
from sklearn.neighbors import KNeighborsClassifier
from timing import OURS, Row, race

from onlearn import KNNClassifier
from onlearn.reproduce.ocr import FILES, digits

PEER = "scikit-learn"


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    shrink = 20 if quick else 1
    place = Path(os.environ.get("ONLEARN_DATA", "")) / "mnist"
    if all((place / file).exists() for file in FILES):
        yield _mnist(place, shrink, min(repeat, 3))
    else:
        print("neighbors: set ONLEARN_DATA to the folder that holds mnist/train-images-idx3-ubyte.gz")
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (51_000 // shrink, 256)).astype(bool)
    yield _neighbours("bits, Hamming, 50,000 by 1,000, 256", bits, 1000 // shrink, repeat, metric="hamming")
    X = rng.normal(size=(21_000 // shrink, 50))
    for metric in ("euclidean", "manhattan", "cosine"):
        yield _neighbours(f"normal, {metric}, 20,000 by 1,000, 50", X, 1000 // shrink, repeat, metric=metric)
    words = sparse_rows(21_000 // shrink, 50_000, 100, "zipf")
    yield _neighbours("sparse, cosine, 20,000 by 1,000, 100 of 50,000", words, 1000 // shrink, repeat, metric="cosine")
    yield _many(rng, shrink, min(repeat, 2))


def _mnist(place: Path, shrink: int, repeat: int) -> Row:
    X, y, T, u = digits(place)
    X, y, T, u = (array[: len(array) // shrink] for array in (X, y, T, u))

    def learn(model: Any) -> Callable[[], Any]:
        def run() -> Any:
            found = model.fit(X, y).predict(T)
            return lambda rows: found

        return run

    contenders = {
        OURS: learn(KNNClassifier(3, metric="euclidean", scale=False)),
        PEER: learn(KNeighborsClassifier(3, algorithm="brute")),
    }
    return race(f"MNIST, k = 3, {len(X):,} by {len(T):,}", contenders, repeat, (T, u))


def _neighbours(work: str, X: Any, queries: int, repeat: int, metric: str) -> Row:
    Z, Q, y = X[queries:], X[:queries], np.arange(X.shape[0] - queries) % 2

    def ours() -> None:
        KNNClassifier(5, metric=metric, scale=False).fit(Z, y).kneighbors(Q, 5)

    def theirs() -> None:
        KNeighborsClassifier(5, metric=metric, algorithm="brute").fit(Z, y).kneighbors(Q)

    return race(work, {OURS: ours, PEER: theirs}, repeat)


def _many(rng: np.random.Generator, shrink: int, repeat: int) -> Row:
    """A million rows around 1,000 centres."""
    count = 1_000_000 // shrink
    X = (rng.normal(size=(1000, 32))[rng.integers(0, 1000, count)] + 0.5 * rng.normal(size=(count, 32))).astype("f4")
    Z, Q, y = X[1000:], X[:1000], np.arange(count - 1000) % 2
    exact = KNNClassifier(10, scale=False).fit(Z, y)
    numbers = exact.kneighbors(Q)[1]

    def search(model: Any) -> Callable[[], Any]:
        def run() -> Any:
            found = model.kneighbors(Q)[1]
            shares = np.array([len(set(a) & set(b)) / 10 for a, b in zip(found, numbers, strict=True)])
            return lambda rows: shares

        return run

    there = find_spec("faiss") is not None
    contenders = {
        OURS: search(exact),
        "FAISS": search(KNNClassifier(10, scale=False, engine="faiss").fit(Z, y)) if there else None,
        PEER: search(KNeighborsClassifier(10, algorithm="brute").fit(Z, y)),
    }
    return race(f"{count:,} rows of 32, 1,000 queries, k = 10", contenders, repeat, (Q, np.ones(len(Q))))

"""Naive Bayes: 20 newsgroups and film reviews as counts of words, and dense numbers.

"fit" and "predict" are timed apart; "fit, predict" is both, for scikit-learn makes its table of logarithms in fit and
we in the first predict. Accuracy is that of the predictions, which are the same. Counts are float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import data
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from text import reviews
from timing import OURS, Row, race

from onlearn import NaiveBayes

PEERS = {
    "multinomial": MultinomialNB,
    "bernoulli": BernoulliNB,
    "complement": ComplementNB,
    "gaussian": GaussianNB,
}
PEER = "scikit-learn"


def contest(kind: str, title: str, sets: Any, repeat: int) -> Iterator[Row]:
    """Fit, predict, and both."""
    X, y, T, gold = sets
    fitted = {OURS: NaiveBayes(kind).fit(X, y), PEER: PEERS[kind]().fit(X, y)}
    if not np.array_equal(fitted[OURS].predict(T), fitted[PEER].predict(T)):
        raise AssertionError(f"{kind} on {title} predicts otherwise than scikit-learn")
    fits = {OURS: lambda: NaiveBayes(kind).fit(X, y), PEER: lambda: PEERS[kind]().fit(X, y)}
    yield race(f"{kind}, {title}: fit", {name: lambda run=run: run() and None for name, run in fits.items()}, repeat)
    yield race(f"{kind}, {title}: predict", {name: lambda m=m: m.predict(T) for name, m in fitted.items()}, repeat)
    both = {name: lambda run=run: _answers(run().predict(T)) for name, run in fits.items()}
    yield race(f"{kind}, {title}: fit, predict", both, repeat, (T, gold))


def _answers(found: np.ndarray) -> Any:
    return lambda T: found


def counted(train: list[str], test: list[str], most: int | None) -> tuple[Any, Any]:
    words = CountVectorizer(max_features=most, dtype=np.float64)
    return words.fit_transform(train), words.transform(test)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    news = data.newsgroups()
    if news is not None:
        train, labels, test, gold = (part[: 1000 if quick else None] for part in news)
        X, T = counted(train, test, None)
        for kind in ("multinomial", "bernoulli", "complement"):
            yield from contest(kind, "20 newsgroups", (X, np.array(labels), T, np.array(gold)), repeat)
    found = reviews()
    if found is not None:
        texts, stars = (part[: 1000 if quick else None] for part in found)
        half = len(texts) // 2
        order = np.random.default_rng(0).permutation(len(texts))
        texts, stars = [texts[n] for n in order], np.array(stars)[order]
        X, T = counted(texts[:half], texts[half:], None)
        for kind in ("multinomial", "bernoulli"):
            yield from contest(kind, "film reviews", (X, stars[:half], T, stars[half:]), repeat)
    rows = 2_000 if quick else 60_000
    dense = data.dense_rows(rows * 7 // 6, 200, np.float64)
    y = data.labels(dense, 10)
    yield from contest("gaussian", f"{rows:,} x 200", data.halves(dense, y, rows), repeat)

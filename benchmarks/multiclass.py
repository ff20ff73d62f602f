"""Twenty classes: TF-IDF of 20news, 5 passes, averaged.

onlearn learns all classes in one go (true multiclass: promote the right class, demote its best rival; or
softmax). scikit-learn's SGDClassifier learns one against all others, class by class, with its default penalty
and rates. Needs ONLEARN_DATA/20news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import data
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from timing import OURS, Row, race

import onlearn

PASSES = 5
WORKS = {  # ours, and the loss of the SGDClassifier that it is put against
    "perceptron": (dict(rule="perceptron", multiclass="true"), dict(loss="perceptron", penalty=None)),
    "PA-I": (dict(rule="pa1", multiclass="true"), dict(loss="hinge")),
    "hinge": (dict(rule="hinge", multiclass="true"), dict(loss="hinge")),
    "softmax": (dict(rule="logistic", multiclass="softmax"), dict(loss="log_loss")),
    "hinge, one-vs-all": (dict(rule="hinge", multiclass="one-vs-all"), dict(loss="hinge")),
}


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    texts = data.newsgroups()
    if texts is None:
        print("multiclass: set ONLEARN_DATA to the folder that holds 20news/train.jsonl.gz and test.jsonl.gz")
        return
    train, y, test, yt = texts
    vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=10_000 if quick else None)
    X, Xt = vectorizer.fit_transform(train), vectorizer.transform(test)
    y, yt = np.array(y), np.array(yt)
    for name, (own, theirs) in WORKS.items():
        yield race(
            name,
            {
                OURS: ours(X, y, own),
                "SGDClassifier": sgd(X, y, 1, theirs),
                "SGDClassifier, n_jobs=2": sgd(X, y, 2, theirs),
                "SGDClassifier, not averaged": sgd(X, y, 1, dict(theirs, average=False)),
            },
            repeat,
            (Xt, yt),
        )


def ours(X: Any, y: np.ndarray, settings: dict[str, Any]) -> Callable[[], Any]:
    return lambda: onlearn.OnlineClassifier(epochs=PASSES, random_state=0, **settings).fit(X, y).predict


def sgd(X: Any, y: np.ndarray, n_jobs: int, settings: dict[str, Any]) -> Callable[[], Any]:
    settings = dict(average=True, max_iter=PASSES, tol=None, random_state=0) | settings
    return lambda: SGDClassifier(n_jobs=n_jobs, **settings).fit(X, y).predict

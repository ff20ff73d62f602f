"""Twenty classes: TF-IDF of 20news, 5 passes, averaged; every turn shuffles anew.

onlearn learns all classes in one go (true multiclass: promote the right class, demote its best rival; or
softmax). scikit-learn's SGDClassifier learns one against all others, class by class. "Tuned" is what 3-fold
cross-validation on the training part alone chose for either side: rule and intercept of ours, loss and alpha of
theirs. The other rows are as the rule's name says, on both sides. Needs ONLEARN_DATA/20news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import data
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from timing import OURS, Row, race

import onlearn

PASSES = 5
HINGE = dict(loss="hinge", alpha=1e-4)
WORKS = {  # settings of ours, and of the SGDClassifier it is put against
    "tuned: PA-II, hinge": (dict(rule="pa2(1.0)", multiclass="true", fit_intercept=False), HINGE),
    "PA-I": (
        dict(rule="pa1", multiclass="true"),
        dict(loss="hinge", learning_rate="pa1", eta0=1.0, penalty=None),
    ),
    "perceptron": (dict(rule="perceptron", multiclass="true"), dict(loss="perceptron", penalty=None)),
    "hinge": (dict(rule="hinge", multiclass="true"), HINGE),
    "softmax, logistic": (dict(rule="logistic", multiclass="softmax"), dict(loss="log_loss", alpha=1e-4)),
    "hinge, both one-vs-all": (dict(rule="hinge", multiclass="one-vs-all"), HINGE),
}


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    texts = data.newsgroups()
    if texts is None:
        print("multiclass: set ONLEARN_DATA to the folder that holds 20news/train.jsonl.gz and test.jsonl.gz")
        return
    train, y, test, yt = texts
    vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=10_000 if quick else None)
    X, Xt = vectorizer.fit_transform(train), vectorizer.transform(test)
    for name, (own, theirs) in WORKS.items():
        contenders = {
            OURS: fits(onlearn.OnlineClassifier, X, np.array(y), epochs=PASSES, **own),
            "SGDClassifier": sgd(X, np.array(y), average=True, **theirs),
            "SGDClassifier, n_jobs=2": sgd(X, np.array(y), average=True, n_jobs=2, **theirs),
            "SGDClassifier, not averaged": sgd(X, np.array(y), **theirs),
        }
        yield race(name, contenders, repeat, (Xt, np.array(yt)))


def sgd(X: Any, y: np.ndarray, **settings: Any) -> Callable[[], Any]:
    return fits(SGDClassifier, X, y, max_iter=PASSES, tol=None, **settings)


def fits(learner: Any, X: Any, y: np.ndarray, **settings: Any) -> Callable[[], Any]:
    """Fit with another seed at every call."""
    seeds = count()
    return lambda: learner(random_state=next(seeds), **settings).fit(X, y).predict

"""Multi-layer perceptrons: passes of back-propagation, against scikit-learn's MLPClassifier with the same batches.

Adam at its usual rate on both sides. Dense: MNIST, pixels / 255 in single precision, 784-256-10. Sparse: tf-idf of
20news, 32 hidden units; scikit-learn's gradient of the first layer is dense, ours is of the words of the batch, and
Adam's steps of the other words are made up for when they come again. Batches of 1 learn on-line; scikit-learn does a
part of those. The threads of the BLAS wait for each other: on a busy machine, OPENBLAS_NUM_THREADS=1 measures more
evenly.
Needs ONLEARN_DATA/mnist and ONLEARN_DATA/20news.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import data
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neural_network import MLPClassifier
from timing import OURS, Part, Row, race

import onlearn
from onlearn.reproduce.ocr import FILES, digits

PEER = "MLPClassifier"


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    place = Path(os.environ.get("ONLEARN_DATA", "")) / "mnist"
    if all((place / file).exists() for file in FILES):
        X, y, T, u = digits(place)
        yield from _rows(
            "MNIST", X[: 3000 if quick else None], y[: 3000 if quick else None], (T, u), 256, quick, repeat
        )
    else:
        print("mlp: set ONLEARN_DATA to the folder that holds mnist/train-images-idx3-ubyte.gz")
    texts = data.newsgroups()
    if texts is None:
        print("mlp: set ONLEARN_DATA to the folder that holds 20news/train.jsonl.gz and test.jsonl.gz")
        return
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, max_features=10_000 if quick else None)
    words, others = vectorizer.fit_transform(texts[0]), vectorizer.transform(texts[2])
    yield from _rows("20news", words, np.array(texts[1]), (others, np.array(texts[3])), 32, quick, repeat)


def _rows(name: str, X: Any, y: np.ndarray, test: Any, hidden: int, quick: bool, repeat: int) -> Iterator[Row]:
    shape = f"{name}, {X.shape[1]:,}-{hidden}-{len(np.unique(y))}"
    for batch, passes in ((200, 1), (32, 1), (200, 2 if quick else 20)):
        learners = {OURS: _ours(X, y, passes, hidden, batch), PEER: _theirs(X, y, passes, hidden, batch)}
        yield race(
            f"{shape}, batches of {batch}, passes: {passes}", learners, min(repeat, 3 if passes == 1 else 1), test
        )
    part = 500 if X.shape[1] < 1000 else 50
    slow = Part(_theirs(X[:part], y[:part], 1, hidden, 1), X.shape[0] / part)
    yield race(f"{shape}, batches of 1, passes: 1", {OURS: _ours(X, y, 1, hidden, 1), PEER: slow}, min(repeat, 2))


def _ours(X: Any, y: np.ndarray, passes: int, hidden: int, batch: int) -> Callable[[], Any]:
    settings: Any = dict(batch_size=batch, epochs=passes, tol=0.0, patience=passes, standardize=False, random_state=1)
    return lambda: onlearn.MLPClassifier(hidden, **settings).fit(X, y).predict


def _theirs(X: Any, y: np.ndarray, passes: int, hidden: int, batch: int) -> Callable[[], Any]:
    settings: Any = dict(batch_size=batch, max_iter=passes, tol=0.0, n_iter_no_change=passes, alpha=0.0, random_state=1)
    return lambda: MLPClassifier((hidden,), **settings).fit(X, y).predict

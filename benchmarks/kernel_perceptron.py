"""MNIST, degree 4: exact passes of the kernel perceptron, against the bare product and SVMs with the same kernel.

"Bare product" multiplies all rows by as many rows as there are support examples in the end, as dense rows: nothing that
computes these products densely can undercut it. (Ours leave out the zeros, four fifths of these rows.) The SVMs
(scikit-learn's, and scikit-learn-intelex's where it is installed) solve another problem, the large margin, on the same
kernel, (1 + x.z)^4, with C = 1. scikit-learn's takes minutes, so it has one turn, and none at ten classes. Needs
ONLEARN_DATA/mnist.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import timing
from sklearn.svm import SVC
from timing import OURS, Row, race

import onlearn
from onlearn.reproduce.ocr import FILES, digits

SETTINGS = dict(kernel="polynomial(4)", cache_mb=1024)
SVM = dict(kernel="poly", degree=4, coef0=1.0, gamma=1.0, C=1.0, cache_size=1000)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    place = Path(os.environ.get("ONLEARN_DATA", "")) / "mnist"
    if not all((place / file).exists() for file in FILES):
        print("kernel_perceptron: set ONLEARN_DATA to the folder that holds mnist/train-images-idx3-ubyte.gz")
        return
    X, y, T, u = digits(place)
    if quick:
        X, y = X[:3000], y[:3000]
    yield _nine(X, y == 9, T, u == 9, repeat, quick)
    for name, settings in {
        "ten classes, 1 pass": dict(epochs=1),
        "ten classes, 10 passes": dict(epochs=10),
        "ten classes, 10 passes, margin": dict(epochs=10, rule="margin(1e7)"),
    }.items():
        contenders: dict[str, Any] = {OURS: _learn(X, y, **settings)}
        contenders["bare product"] = _product(X, _learn(X, y, **settings)().__self__.n_support_)
        if name.endswith("10 passes"):
            contenders["SVC, intelex"] = _intelex(X, y)
        yield race(f"{len(X):,} rows, {name}", contenders, min(repeat, 3), (T, u))


def _nine(X: np.ndarray, y: np.ndarray, T: np.ndarray, u: np.ndarray, repeat: int, quick: bool) -> Row:
    ours = _learn(X, y, epochs=10)
    contenders = {OURS: ours, "bare product": _product(X, ours().__self__.n_support_), "SVC, intelex": _intelex(X, y)}
    row = race(f"{len(X):,} rows, 9 against the rest, 10 passes", contenders, repeat, (T, u))
    start = timing.clock()
    machine = SVC(**SVM).fit(X, y)
    row.taken["SVC"] = [timing.clock() - start]
    row.accuracy["SVC"] = [machine.score(T[:1000], u[:1000]) if quick else machine.score(T, u)]
    return row


def _learn(X: np.ndarray, y: np.ndarray, **settings: Any) -> Callable[[], Any]:
    return lambda: onlearn.KernelClassifier(**SETTINGS, **settings, random_state=1).fit(X, y).predict


def _product(X: np.ndarray, rows: int) -> Callable[[], None]:
    some, out = np.ascontiguousarray(X[:rows].T), np.empty((512, rows), X.dtype)

    def run() -> None:
        for start in range(0, len(X), 512):
            few = X[start : start + 512]
            np.matmul(few, some, out=out[: len(few)])

    return run


def _intelex(X: np.ndarray, y: np.ndarray) -> Callable[[], Any] | None:
    try:
        from sklearnex import svm
    except ImportError:
        return None
    return lambda: svm.SVC(**SVM).fit(X, y).predict

"""A grid of six values of C with five folds, MNIST: one cross-validation with shared kernel columns, against 30 fits.

10,000 rows of unit length, kernel (1 + x.z)^4, the same folds for all; ten classes are learned one-vs-one. The
peers (scikit-learn-intelex's SVC, and with ``--repeat`` of at least 5 scikit-learn's) fit and predict each fold at each
C. Below the time stands the accuracy that cross-validation gives the best C. Needs
ONLEARN_DATA/mnist.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import OURS, Row, race

import onlearn
from onlearn.reproduce.ocr import FILES, digits

ROWS, FOLDS = 10_000, 5
CS = (0.01, 0.03, 0.1, 0.3, 1.0, 10.0)
PEER = dict(kernel="poly", degree=4, coef0=1.0, gamma=1.0, cache_size=1000)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    place = Path(os.environ.get("ONLEARN_DATA", "")) / "mnist"
    if not all((place / file).exists() for file in FILES):
        print("svm_grid: set ONLEARN_DATA to the folder that holds mnist/train-images-idx3-ubyte.gz")
        return
    X, y, _, _ = digits(place)
    rows = 1000 if quick else ROWS
    X, y = X[:rows] / np.linalg.norm(X[:rows], axis=1, keepdims=True), y[:rows]
    fold_of = np.arange(rows) % FOLDS
    for name, classes in {"9 against the rest": y == 9, "ten classes": y}.items():
        contenders: dict[str, Any] = {OURS: _ours(X, classes, fold_of), "SVC, intelex": _intelex(X, classes, fold_of)}
        if repeat >= 5:
            contenders["SVC"] = _grid(_peer(), X, classes, fold_of)
        row = race(f"{rows:,} rows, {name}, 6 x 5", contenders, min(repeat, 3), (X, classes))
        yield row


def _ours(X: np.ndarray, y: np.ndarray, fold_of: np.ndarray) -> Callable[[], Any]:
    def run() -> Any:
        found = onlearn.SVC("polynomial(4)", calibration="none").cross_validate(X, y, CS, fold_of)
        return _told(found.errors.mean(axis=1), y)

    return run


def _grid(machine: Any, X: np.ndarray, y: np.ndarray, fold_of: np.ndarray) -> Callable[[], Any]:
    def run() -> Any:
        errors = np.zeros((len(CS), FOLDS))
        for n, C in enumerate(CS):
            for fold in range(FOLDS):
                held = fold_of == fold
                predicted = machine(C=C, **PEER).fit(X[~held], y[~held]).predict(X[held])
                errors[n, fold] = np.mean(predicted != y[held])
        return _told(errors.mean(axis=1), y)

    return run


def _told(errors: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Predictions that are right as often as cross-validation says of the best C: the table shows their accuracy."""
    wrong = round(float(errors.min()) * len(y))

    def predict(X: np.ndarray) -> np.ndarray:
        made = np.array(y)
        made[:wrong] = np.where(y[:wrong] == y[0], y[y != y[0]][0], y[0])
        return made

    return predict


def _peer() -> Any:
    from sklearn.svm import SVC

    return SVC


def _intelex(X: np.ndarray, y: np.ndarray, fold_of: np.ndarray) -> Callable[[], Any] | None:
    try:
        from sklearnex import svm
    except ImportError:
        return None
    return _grid(svm.SVC, X, y, fold_of)

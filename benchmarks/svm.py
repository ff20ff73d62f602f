"""Soft margin in the dual: ``onlearn.SVC`` against scikit-learn's SVC and scikit-learn-intelex's, on the same kernel.

MNIST with (1 + x.z)^4 on rows of length 1, C = 1: nine against the rest, and ten classes one against one. a9a with a
Gaussian kernel, gamma = 1/123, C = 1. The tolerance is 1e-3 everywhere, the cache 1024 MB.
Times are those of training; the accuracy is that of test rows. scikit-learn takes minutes, so it has one turn, and
none at ten classes. ``python benchmarks/svm.py --rows 10000`` takes the first rows. Needs ONLEARN_DATA/mnist and a9a.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import timing
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC
from timing import OURS, Row, race

import onlearn
from onlearn.reproduce.ocr import FILES, digits

CACHE = 1024  # MB
POLYNOMIAL = dict(kernel="poly", degree=4, coef0=1.0, gamma=1.0)


def bench(quick: bool, repeat: int, rows: int | None = None) -> Iterator[Row]:
    folder = Path(os.environ.get("ONLEARN_DATA", ""))
    rows, repeat = rows or (3000 if quick else None), min(repeat, 3)
    if all((folder / "mnist" / file).exists() for file in FILES):
        X, y, T, u = digits(folder / "mnist")
        X, T = (images / np.linalg.norm(images, axis=1, keepdims=True) for images in (X, T))
        X, y = X[:rows], y[:rows]
        work = f"MNIST, {len(X):,} rows"
        yield compared(f"{work}, 9 against the rest", "polynomial(4)", POLYNOMIAL, X, y == 9, T, u == 9, repeat)
        yield compared(f"{work}, ten classes", "polynomial(4)", POLYNOMIAL, X, y, T, u, repeat)
    else:
        print("svm: set ONLEARN_DATA to the folder that holds mnist/train-images-idx3-ubyte.gz")
    if (folder / "a9a" / "a9a.svm").exists():
        (X, y), (T, u) = (_sparse(folder / "a9a" / file) for file in ("a9a.svm", "a9a.t.svm"))
        X, y = X[:rows], y[:rows]
        peer = dict(kernel="rbf", gamma=1 / 123)
        yield compared(f"a9a, {len(y):,} rows", f"gaussian(gamma={1 / 123!r})", peer, X, y > 0, T, u > 0, repeat)
    else:
        print("svm: set ONLEARN_DATA to the folder that holds a9a/a9a.svm")


def _sparse(file: Path) -> tuple[Any, np.ndarray]:
    X, y = load_svmlight_file(file, n_features=123, dtype=np.float32)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # scikit-learn's SVC takes no others
    return X, y


def compared(
    work: str, kernel: str, peer: dict[str, Any], X: Any, y: np.ndarray, T: Any, u: np.ndarray, repeat: int
) -> Row:
    contenders = {OURS: lambda: train(kernel, X, y), "SVC, intelex": _intelex(peer, X, y)}
    row = race(work, contenders, repeat, (T, u))
    if y.dtype == bool:
        start = timing.clock()
        machine = SVC(C=1.0, cache_size=CACHE, **peer).fit(X, y)
        row.taken["SVC"] = [timing.clock() - start]
        row.accuracy["SVC"] = [machine.score(T, u)]
    return row


def train(kernel: str, X: Any, y: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Our machine; like the peers', without probabilities."""
    machine = onlearn.SVC(kernel, C=1.0, cache_mb=CACHE, calibration="none").fit(X, y)
    predict: Callable[[Any], np.ndarray] = machine.predict
    return predict


def _intelex(peer: dict[str, Any], X: Any, y: np.ndarray) -> Callable[[], Any] | None:
    try:
        from sklearnex import svm
    except ImportError:
        return None
    return lambda: svm.SVC(C=1.0, cache_size=CACHE, **peer).fit(X, y).predict


if __name__ == "__main__":
    from rich.console import Console

    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rows", type=int, metavar="N", help="the first rows of each data set (all)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="turns that count (1)")
    args = parser.parse_args()
    for row in bench(False, args.repeat, args.rows):
        Console(width=150, highlight=False).print(timing.table("support vector machines", [row]))

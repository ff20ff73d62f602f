"""Several passes with a kernel: the cache against none, the whole Gram matrix, the SVM, and the choice of a form.

"No cache" is ``cache_mb=0``, "Gram matrix" the kernel matrix of all rows computed beforehand, its time included, and
learned from as ``precomputed``. Images are rows of MNIST averaged to 16 x 16, as many as USPS has, with black as 1 and
white as 0, or in the range of USPS (white is -1; divided by 16, so that no row is longer than 1); the SVM is
scikit-learn's on the same kernel, with C = 1. "auto" is ``representation="auto"``, beside both of the forms that it
chooses from. Strings need ONLEARN_DATA/splice, images ONLEARN_DATA/mnist.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC
from timing import OURS, Row, race

import onlearn
from onlearn.kernels import get
from onlearn.reproduce.ocr import FILES, digits

NO_CACHE, GRAM = "no cache", "Gram matrix"
USPS = 7291  # rows
STRINGS = "normalize(substrings(2, 6))"


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    yield from _forms(quick, repeat)
    yield _cheap(quick, repeat)
    place = Path(os.environ.get("ONLEARN_DATA", ""))
    if (place / "splice" / "splice.data").exists():
        yield _strings(place / "splice" / "splice.data", quick, repeat)
    else:
        print("kernel_passes: strings need ONLEARN_DATA/splice/splice.data")
    if all((place / "mnist" / file).exists() for file in FILES):
        yield from _images(place / "mnist", quick, repeat)
    else:
        print("kernel_passes: images need ONLEARN_DATA/mnist")


def _learn(X: Any, y: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: onlearn.KernelClassifier(**settings, random_state=0).fit(X, y).predict


def _forms(quick: bool, repeat: int) -> Iterator[Row]:
    """Small tables of numbers, where features are cheap."""
    for rows, width in ((300, 8), (500, 10)) if quick else ((1500, 8), (5000, 30), (2000, 100)):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(rows, width))
        y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
        ways = {OURS: "auto", "dual": "dual", "primal": "primal"}
        learned = {
            name: _learn(X, y, kernel="polynomial(2)", representation=form, epochs=5) for name, form in ways.items()
        }
        yield race(f"polynomial(2), {rows:,} x {width}, 5 passes, auto", learned, repeat)


def _cheap(quick: bool, repeat: int) -> Row:
    """A kernel whose values take no longer to compute than to store."""
    rows = 1000 if quick else 12_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 10))
    y = (np.linalg.norm(X, axis=1) + rng.normal(size=rows) > 3.2).astype(int)
    settings: dict[str, Any] = dict(kernel="gaussian", epochs=8)
    ways = {OURS: _learn(X, y, **settings), NO_CACHE: _learn(X, y, **settings, cache_mb=0)}
    return race(f"gaussian, {rows:,} x 10, 8 passes", ways, repeat)


def _strings(file: Path, quick: bool, repeat: int) -> Row:
    """A kernel whose values are costly."""
    rows = 200 if quick else 2000
    lines = [line.split(",") for line in file.read_text().split("\n") if line.strip()]
    order = np.random.default_rng(0).permutation(len(lines))[:rows]
    X, y = [lines[n][2].strip() for n in order], np.array([lines[n][0].strip() for n in order])
    settings: dict[str, Any] = dict(kernel=STRINGS, epochs=10)

    def gram() -> Any:
        return _learn(get(STRINGS)(X), y, kernel="precomputed", epochs=10)()

    ways = {OURS: _learn(X, y, **settings), NO_CACHE: _learn(X, y, **settings, cache_mb=0), GRAM: gram}
    return race(f"{STRINGS}, {rows:,} strings of splice, 10 passes", ways, min(repeat, 3))


def _images(place: Path, quick: bool, repeat: int) -> Iterator[Row]:
    X, y, T, u = digits(place)
    rows, some = (500, 500) if quick else (USPS, 2007)
    y, u, images = y[:rows], u[:some], (small(X[:rows]), small(T[:some]))
    ranges = {"0 to 1": images, "-1 to 1": tuple((2.0 * part.astype(np.float64) - 1.0) / 16.0 for part in images)}
    for name, (shades, tests) in ranges.items():
        yield from _race_with_svm(shades, y, tests, u, name, repeat)


def _race_with_svm(X: Any, y: Any, T: Any, u: Any, scale: str, repeat: int) -> Iterator[Row]:
    svm: dict[str, Any] = dict(kernel="poly", degree=3, coef0=1.0, gamma=1.0, C=1.0, cache_size=1000)
    for name, gold, target in (("9 against the rest", y == 9, u == 9), ("ten classes", y, u)):
        settings: dict[str, Any] = dict(kernel="polynomial(3)", epochs=10)
        ways = {
            OURS: _learn(X, gold, **settings),
            NO_CACHE: _learn(X, gold, **settings, cache_mb=0),
            "SVC": lambda gold=gold: SVC(**svm).fit(X, gold).predict,
        }
        yield race(f"polynomial(3), {len(X):,} images, {scale}, {name}, 10 passes", ways, repeat, (T, target))


def small(images: np.ndarray) -> np.ndarray:
    """Images of 28 x 28 with a border of 2, as means of squares of 2 x 2."""
    padded = np.pad(images.reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
    return padded.reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4)).reshape(len(images), 256)

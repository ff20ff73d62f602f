"""Handwritten digits by kernel perceptrons: the averaged perceptron, 9 against the rest.

Freund and Schapire (1999), "Large margin classification using the perceptron algorithm". Pixels are divided by 255, and
each pass has a new random order. A fraction of a pass is the beginning of the first one. Ten classes are ten problems
of one class against the rest, as in the paper. The Gaussian kernel, which is not in the paper, works on images blurred
by a pixel, since it overrates small shifts of the pen.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onlearn.estimators.kernel import KernelClassifier
from onlearn.estimators.linear import OnlineClassifier
from onlearn.reproduce.table import MissingDataError, Row, Table, folder

FILES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
PASSES = [0.1, 1, 2, 3, 4, 10]
WITHIN = 0.001


class Line(NamedTuple):
    """A line of the table: the kernel, the published errors, and our goals."""

    kernel: str
    published: list[float | None]
    goal: list[float | None]
    blur: float = 0.0  # of the images, in pixels


def _line(kernel: str, *published: float) -> Line:
    return Line(kernel, list(published), [round(error + WITHIN, 6) for error in published])


LINES = {
    "linear": _line("linear", 0.045, 0.039, 0.038, 0.038, 0.038, 0.037),
    "degree 2": _line("polynomial(2)", 0.024, 0.012, 0.010, 0.010, 0.009, 0.009),
    "degree 4": _line("polynomial(4)", 0.020, 0.009, 0.008, 0.007, 0.007, 0.006),
    "gaussian, images blurred": Line("gaussian(3.5)", [None] * 6, [None] * 5 + [0.006], blur=1.0),
    "ten classes, degree 4": Line("polynomial(4)", [None] * 6, [None] * 5 + [0.016]),
}


def ocr(
    data: str | os.PathLike[str] | None = None,
    lines: Sequence[str] = tuple(LINES),
    *,
    seed: int = 1,
    seeds: int = 3,
    rows: int | None = None,
    report: Callable[[str], Any] = lambda name: None,
) -> Table:
    """Test errors after 0.1 to 10 passes, for the given ``lines`` of the table.

    ``data`` is the folder with the four files of MNIST; by default ``mnist`` in the folder ONLEARN_DATA. ``rows``
    limits the training rows. ``report`` is called with the name of each finished line. The errors are those of
    ``seed``; beside them is the mean over it and the next ones, ``seeds`` in all.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, not {seeds}")
    unknown = [name for name in lines if name not in LINES]
    if unknown:
        raise ValueError(f"there is no line {unknown[0]!r} in the table; there are {', '.join(map(repr, LINES))}")
    X, y, T, u = digits(folder(data, "mnist", FILES))
    title = "test error after so many passes, MNIST, 9 against the rest"
    if rows is not None and rows < len(X):
        title += f"; learned from the first {rows:,} of {len(X):,} rows only"
    X, y = X[:rows], y[:rows]
    columns = [f"{passes:g}" for passes in PASSES]
    table = Table(title, columns)
    for name in lines:
        line = LINES[name]
        gold, target = (y, u) if name.startswith("ten") else (y == 9, u == 9)
        images, tests = (X, T) if not line.blur else (_blurred(X, line.blur), _blurred(T, line.blur))
        start = perf_counter()
        errors = _errors(line.kernel, images, gold, tests, target, seed)
        took = perf_counter() - start
        several = [errors, *(_errors(line.kernel, images, gold, tests, target, seed + n) for n in range(1, seeds))]
        mean = np.mean(several, axis=0).tolist() if seeds > 1 else None
        table.rows.append(Row(name, errors, line.published, line.goal, took, mean, seeds))
        report(name)
    return table


def _errors(kernel: str, X: np.ndarray, y: np.ndarray, T: np.ndarray, target: np.ndarray, seed: int) -> list[float]:
    """The test errors after each number of passes."""
    return [float(np.mean(found != target)) for found in _predictions(kernel, X, y, T, seed)]


def _predictions(kernel: str, X: np.ndarray, y: np.ndarray, T: np.ndarray, seed: int) -> list[np.ndarray]:
    """The predictions after each number of passes."""
    classes = np.unique(y)
    order = np.random.default_rng([seed, 0]).permutation(len(X))  # that of the first pass of fit
    begin = order[: round(PASSES[0] * len(X))]
    wanted = [int(passes) for passes in PASSES[1:]]
    if kernel == "linear":  # primal, pass by pass
        first = OnlineClassifier(random_state=seed).partial_fit(X[begin], y[begin], classes=classes)
        model = OnlineClassifier(epochs=1, warm_start=True, random_state=seed)
        found = [model.fit(X, y).predict(T) for _ in range(max(wanted))]
        return [first.predict(T), *(found[passes - 1] for passes in wanted)]
    settings: dict[str, Any] = dict(kernel=kernel, multiclass="one-vs-all", random_state=seed)
    early = KernelClassifier(**settings).partial_fit(X[begin], y[begin], classes=classes)
    dual = KernelClassifier(**settings, epochs=max(wanted), keep_stages=True).fit(X, y)
    if dual.stopped_:  # by Ctrl-C: half a table is of no use
        raise KeyboardInterrupt
    stages = list(dual.staged_decision_function(T))
    return [early.predict(T), *(_decide(stages[passes - 1], classes) for passes in wanted)]


def _decide(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return classes[(scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)]


def digits(place: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images (black is 1) and labels, for training and for testing."""
    images, labels, more_images, more_labels = (_idx(place / file) for file in FILES)
    return _scaled(images), labels.astype(int), _scaled(more_images), more_labels.astype(int)


def _blurred(images: np.ndarray, pixels: float) -> np.ndarray:
    from scipy.ndimage import gaussian_filter

    side = round(images.shape[1] ** 0.5)
    return gaussian_filter(images.reshape(-1, side, side), (0, pixels, pixels)).reshape(images.shape)


def _scaled(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def _idx(path: Path) -> np.ndarray:
    """An array in the format of the MNIST files: a magic number, the sizes, then the bytes."""
    try:
        with gzip.open(path) as file:
            content = file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise MissingDataError(f"{path} is not a complete gzip file: {error}") from None
    dimensions = content[3] if len(content) > 4 and content[:3] == b"\0\0\x08" else 0
    shape = np.frombuffer(content, ">i4", dimensions, 4) if dimensions else np.zeros(0, int)
    if not dimensions or len(content) != 4 + 4 * dimensions + int(np.prod(shape)):
        raise MissingDataError(f"{path} is not a file of images or labels in the format of MNIST")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)

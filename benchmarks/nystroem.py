"""MNIST, ten classes, a Gaussian kernel and 1,000 landmarks: Nystroem and a linear learner, against Falkon's way.

onlearn: Nystroem (uniform landmarks) maps the 60,000 rows, one learner makes one or two passes over them; the time is
that of both. Falkon's way (Rudi, Carratino and Rosasco 2017) is written out below: kernel ridge regression on the same
kind of landmarks and ten one-hot targets, by 20 steps of conjugate gradient with the Nystrom preconditioner, products
with the 60,000 x 1,000 kernel matrix block by block. "Blocks": each is computed anew at every step, as where it would
not fit into memory; "kept": the matrix is computed once, which takes 240 MB here. The kernel's blocks are onlearn's
for all. Rates and passes are the best of a few on 10,000 held-out training rows. Needs ONLEARN_DATA/mnist.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from timing import OURS, Row, race

import onlearn
from onlearn import kernels

KERNEL = "gaussian(sigma=5)"
LANDMARKS, STEPS, RIDGE, ROWS = 1000, 20, 1e-6, 5000
LEARNERS = {  # rule, rate, passes
    "hinge": ("hinge", "adagrad(1.0)", 2),
    "logistic": ("logistic", "adagrad(1.0)", 1),
}


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    digits = mnist()
    if digits is None:
        print("nystroem: set ONLEARN_DATA to the folder that holds mnist/train-images-idx3-ubyte.gz and the others")
        return
    X, y, Xt, yt = digits
    if quick:
        X, y = X[:5000], y[:5000]
    marks = 200 if quick else LANDMARKS
    for name, (rule, geometry, passes) in LEARNERS.items():
        seeds, own, other = count(), count(), count()

        def ours(rule: str = rule, geometry: str = geometry, passes: int = passes, seeds: Any = seeds) -> Any:
            seed = next(seeds)
            learner = onlearn.OnlineClassifier(rule, geometry, multiclass="true", epochs=passes, random_state=seed)
            return make_pipeline(onlearn.Nystroem(KERNEL, marks, random_state=seed), learner).fit(X, y).predict

        contenders = {OURS: ours, "Falkon's way, blocks": lambda: falkon(X, y, marks, next(own), keep=False)}  # noqa: B023
        contenders["Falkon's way, kept"] = lambda: falkon(X, y, marks, next(other), keep=True)  # noqa: B023
        yield race(f"{len(X)} rows, {marks} landmarks, {name}", contenders, repeat, (Xt, yt))


def falkon(X: np.ndarray, y: np.ndarray, marks: int, seed: int, keep: bool) -> Callable[[Any], np.ndarray]:
    """Kernel ridge regression on one-hot targets by preconditioned conjugate gradient; returns ``predict``.

    Minimises |K_nm a - Y|^2 / n + ridge a' K_mm a, with T'T = K_mm, A'A = T T'/m + ridge I and a = T^-1 A^-1 b.
    """
    n, kernel = len(X), kernels.get(KERNEL)
    centres = kernel.points(X[np.random.default_rng(seed).choice(n, marks, replace=False)])
    blocks = [kernel.points(X[start : start + ROWS]) for start in range(0, n, ROWS)]
    classes, codes = np.unique(y, return_inverse=True)
    Y = np.eye(len(classes), dtype=X.dtype)[codes]
    kept: list[np.ndarray] = [kernel.block(block, centres) for block in blocks] if keep else []

    K = kernel.block(centres, centres).astype(np.float64)
    T = np.linalg.cholesky(K + 1e-6 * marks * np.eye(marks)).T
    A = np.linalg.cholesky(T @ T.T / marks + RIDGE * np.eye(marks)).T
    to_a, to_v = np.linalg.inv(T) @ np.linalg.inv(A), np.linalg.inv(A)

    def both_ways(a: np.ndarray, targets: np.ndarray | None) -> np.ndarray:
        """K_nm' (K_nm a), or K_nm' (targets)."""
        total = np.zeros((marks, len(classes)))
        for number, block in enumerate(blocks):
            B = kept[number] if keep else kernel.block(block, centres)
            rows = slice(number * ROWS, number * ROWS + len(B))
            total += B.T @ (B @ a.astype(B.dtype) if targets is None else targets[rows])
        return total

    def matrix(b: np.ndarray) -> np.ndarray:
        return to_a.T @ (both_ways(to_a @ b, None) / n) + RIDGE * (to_v.T @ (to_v @ b))

    residual = to_a.T @ (both_ways(np.empty(0), Y) / n)
    b, direction, size = np.zeros_like(residual), residual.copy(), (residual**2).sum(axis=0)
    for _ in range(STEPS):
        turned = matrix(direction)
        step = size / (direction * turned).sum(axis=0)
        b += step * direction
        residual -= step * turned
        before, size = size, (residual**2).sum(axis=0)
        direction = residual + size / before * direction
    weights = (to_a @ b).astype(X.dtype)
    return lambda rows: classes[np.argmax(kernel.block(kernel.points(rows), centres) @ weights, axis=1)]


def mnist() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Images in [0, 1] as float32, and digits; train and test."""
    folder = Path(os.environ.get("ONLEARN_DATA", "")) / "mnist"
    if not os.environ.get("ONLEARN_DATA") or not folder.is_dir():
        return None

    def read(start: str, header: int) -> np.ndarray:
        path = next(iter(sorted(folder.glob(f"{start}*"))))
        with gzip.open(path, "rb") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    parts = []
    for part in ("train", "t10k"):
        images, digits = read(f"{part}-images", 16).reshape(-1, 784), read(f"{part}-labels", 8)
        parts += [images.astype(np.float32) / np.float32(255), digits.astype(np.int64)]
    return parts[0], parts[1], parts[2], parts[3]

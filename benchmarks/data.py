"""The data the benchmarks learn from: generated, with a hidden separator and some noise; and 20news."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

NOISE = 0.05  # labels turned around


def sparse_rows(rows: int, features: int, per_row: int, popularity: str, seed: int = 0) -> sp.csr_matrix:
    """Unit-length rows of about ``per_row`` non-zeros; features alike, or popular as words are ("zipf")."""
    rng = np.random.default_rng(seed)
    rank = np.arange(1, features + 1)
    weight = 1.0 / (rank + 5) if popularity == "zipf" else np.ones(features)
    drawn = round(per_row * (1.06 if popularity == "zipf" else 1.0))  # popular features are drawn repeatedly
    cumulative = np.cumsum(weight) / weight.sum()
    picked = np.searchsorted(cumulative, rng.random(rows * drawn)).clip(max=features - 1)
    indices = rng.permutation(features)[picked].astype(np.int32)  # a vocabulary is not sorted by popularity
    indptr = np.arange(0, rows * drawn + 1, drawn, dtype=np.int32)
    X = sp.csr_matrix((rng.random(rows * drawn) + 0.1, indices, indptr), shape=(rows, features))
    X.sum_duplicates()
    lengths = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return X


def dense_rows(rows: int, features: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Normal features, rows of about unit length."""
    values = np.random.default_rng(seed).standard_normal((rows, features), dtype=np.float32)
    return (values / np.float32(np.sqrt(features))).astype(dtype, copy=False)


def labels(X: Any, classes: int = 2, seed: int = 0) -> np.ndarray:
    """The class a hidden linear separator gives each row, but for a few at random."""
    rng = np.random.default_rng([seed, 1])
    scores = np.asarray(X @ rng.standard_normal((X.shape[1], 1 if classes == 2 else classes)))
    scores -= np.median(scores, axis=0)
    y = (scores[:, 0] > 0).astype(np.int64) if classes == 2 else scores.argmax(axis=1)
    return np.where(rng.random(len(y)) < NOISE, rng.integers(classes, size=len(y)), y)


def halves(X: Any, y: np.ndarray, train: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """The first rows to learn from, the others to test on."""
    return X[:train], y[:train], X[train:], y[train:]


def newsgroups() -> tuple[list[str], list[str], list[str], list[str]] | None:
    """Texts and labels of 20news, train and test; None where ONLEARN_DATA does not hold them."""
    folder = Path(os.environ.get("ONLEARN_DATA", "")) / "20news"
    if not os.environ.get("ONLEARN_DATA") or not folder.is_dir():
        return None
    read: list[list[str]] = []
    for part in ("train", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
            posts = [json.loads(line) for line in lines]
        read += [[post["text"] for post in posts], [post["label"] for post in posts]]
    return read[0], read[1], read[2], read[3]

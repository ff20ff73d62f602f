"""Scores of many rows by a hypothesis, on all cores: threads over ranges of rows, since the loops release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.inputs import as_rows
from onlearn.rows import span
from onlearn.stabilizers import cast_votes
from onlearn.weave import Loop

LARGE = 1e25  # weights beyond which single precision might overflow
WORTHWHILE = 1 << 17  # multiplications below which a second thread costs more than it saves


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_rows(work: Callable[[int, int], Any], rows: int, cost: int) -> None:
    """Call ``work(start, stop)`` so that all rows are covered, in threads if that is worthwhile."""
    workers = min(cores(), rows, max(1, cost // WORTHWHILE))
    if workers <= 1:
        work(0, rows)
        return
    edges = np.linspace(0, rows, workers + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


@Loop
def sparse_score(rows, w, b, out, start, stop):
    """out[i] = x_i . w + b[0]"""
    for i in range(start, stop):
        first, past = span(rows, i)
        s = 0.0
        for p in range(first, past):
            s += rows.data[p] * w[np.uint64(rows.indices[p])]
        out[i] = s + b[0]


@Loop
def sparse_scores(rows, w, b, out, start, stop):
    """out[i, c] = x_i . w[:, c] + b[c]; w has the outputs of a feature side by side"""
    outputs = w.shape[1]
    for i in range(start, stop):
        first, past = span(rows, i)
        for c in range(outputs):
            out[i, c] = b[c]
        for p in range(first, past):
            x, k = rows.data[p], np.uint64(rows.indices[p])
            for c in range(outputs):
                out[i, c] += x * w[k, c]


def narrow(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values in another precision, the largest it has standing for those beyond."""
    if values.dtype == dtype:
        return values
    most = np.finfo(dtype).max
    return np.clip(values, -most, most).astype(dtype)


def linear_scores(X: Any, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """X w + b with w of shape (features, outputs), in the precision of X where that can hold it."""
    single = X.dtype == np.float32 and max(np.abs(w).max(initial=0.0), np.abs(b).max(initial=0.0)) < LARGE
    w, b = (narrow(w, X.dtype), narrow(b, X.dtype)) if single else (w, b)
    if not sp.issparse(X):
        scores = X @ w
        scores += b
        return scores
    rows = as_rows(X, 0.0)
    out = np.empty((X.shape[0], w.shape[1]), w.dtype)
    if w.shape[1] == 1:
        flat, line = np.ascontiguousarray(w[:, 0]), out.reshape(-1)

        def work(start: int, stop: int) -> None:
            sparse_score(rows, flat, b, line, start, stop)
    else:
        square = np.ascontiguousarray(w)

        def work(start: int, stop: int) -> None:
            sparse_scores(rows, square, b, out, start, stop)

    over_rows(work, X.shape[0], X.nnz * w.shape[1])
    return out


@Loop
def vote(rows, theta, st, out, start, stop):
    """The votes on a range of rows."""
    outputs = out.shape[1]
    x, s = np.zeros(len(st.base) // outputs), np.empty(outputs)
    for i in range(start, stop):
        cast_votes(st, rows, i, theta, x, s, out[i])


def voted_scores(rows: Any, count: int, theta: float, st: Any, outputs: int) -> np.ndarray:
    """The share of votes of each output (for one output: for less against) by all hypotheses of an electorate."""
    out = np.empty((count, outputs))

    def work(start: int, stop: int) -> None:
        vote(rows, theta, st, out, start, stop)

    over_rows(work, count, int(st.used[0]) * count)
    return out

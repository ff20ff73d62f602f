"""Scores of many rows by a hypothesis, on all cores: threads over ranges of rows, since the loops release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.inputs import LAST, as_rows
from onlearn.rows import FOUR, ONE, THREE, TWO, Dense, add_products, span
from onlearn.stabilizers import cast_votes
from onlearn.weave import Loop, helper

LARGE = 1e25  # weights beyond which single precision might overflow
CACHED = 1 << 18  # bytes of weights up to which dense rows are faster one by one than by the BLAS
VECTOR = 8  # numbers that are multiplied at once
PIECES = 8  # for each thread: one whose processor has other work to do takes fewer
WORTHWHILE = 1 << 17  # multiplications below which a second thread costs more than it saves


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_rows(work: Callable[[int, int], Any], rows: int, cost: int) -> list[Any]:
    """Call ``work(start, stop)`` so that all rows are covered, in threads if that is worthwhile; what it returned."""
    workers = min(cores(), rows, max(1, cost // WORTHWHILE))
    if workers <= 1:
        return [work(0, rows)]
    pieces = min(rows, workers * PIECES)
    edges = [rows * n // pieces for n in range(pieces + 1)]
    return list(_pool(os.getpid()).map(work, edges[:-1], edges[1:]))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Threads that stay: to start them takes longer than many a task. A fork has its own."""
    return ThreadPoolExecutor(cores(), thread_name_prefix="onlearn")


@Loop
def sparse_score(rows, w, b, out, start, stop):
    """out[i] = x_i . w + b[0]; returns whether all of them are finite."""
    strange = 0
    for i in range(start, stop):
        first, past = span(rows, i)
        s = b[0]
        for p in range(first, past):
            s += rows.data[p] * w[np.uint64(rows.indices[p])]
        out[i] = s
        strange += not abs(s) <= LAST
    return strange == 0


@Loop
def sparse_scores(rows, w, b, out, best, start, stop):
    """out[i, c] = x_i . w[c] + b[c], all flat; w has the outputs of a feature side by side.

    If there is room in ``best``, the output with the highest score goes there, and ``out`` is room for one row only.
    Returns whether all scores are finite.
    """
    outputs, strange = np.uint64(len(b)), 0
    for i in range(start, stop):
        at = np.uint64(i) * outputs if len(best) == 0 else np.uint64(0)
        line = out[at : at + outputs]
        for c in range(outputs):
            line[c] = b[c]
        add_products(rows, i, w, np.uint64(0), line)
        strange += choose(line, best, i)
    return strange == 0


@Loop
def dense_scores(x, width, w, b, out, best, start, stop):
    """The same for dense rows, w having the features of an output side by side; ``out`` has room for two rows.

    Two rows by four outputs at a time, so that what is loaded is used often. The weights of an output are followed by
    zeros, up to whole vectors: what is read past the end of a row is the next row, and counts nothing. (Were it not
    finite, it would show, but then X is to be refused anyway.)
    """
    outputs, d = np.uint64(len(b)), np.uint64(width)
    padded = np.uint64(len(w)) // outputs
    strange = 0
    i, end = np.uint64(start), np.uint64(stop)
    while i < end:
        k = min(i + ONE, end - ONE)  # the last row of an odd number keeps itself company
        p, q, c = i * d, k * d, np.uint64(0)
        length = padded if q + padded <= np.uint64(len(x)) else d
        here, there = (i * outputs, k * outputs) if len(best) == 0 else (np.uint64(0), outputs)
        while c + THREE < outputs:
            s0, s1, s2, s3 = b[c], b[c + ONE], b[c + TWO], b[c + THREE]
            t0, t1, t2, t3 = s0, s1, s2, s3
            w0 = c * padded
            w1, w2, w3 = w0 + padded, w0 + TWO * padded, w0 + THREE * padded
            for n in range(length):
                s0 += x[p + n] * w[w0 + n]
                s1 += x[p + n] * w[w1 + n]
                s2 += x[p + n] * w[w2 + n]
                s3 += x[p + n] * w[w3 + n]
                t0 += x[q + n] * w[w0 + n]
                t1 += x[q + n] * w[w1 + n]
                t2 += x[q + n] * w[w2 + n]
                t3 += x[q + n] * w[w3 + n]
            at, too = here + c, there + c
            out[at], out[at + ONE], out[at + TWO], out[at + THREE] = s0, s1, s2, s3
            out[too], out[too + ONE], out[too + TWO], out[too + THREE] = t0, t1, t2, t3
            c += FOUR
        while c < outputs:
            s, t = b[c], b[c]
            for n in range(length):
                s += x[p + n] * w[c * padded + n]
                t += x[q + n] * w[c * padded + n]
            out[here + c], out[there + c] = s, t
            c += ONE
        strange += choose(out[here : here + outputs], best, i)
        strange += choose(out[there : there + outputs], best, k)
        i += TWO
    return strange == 0


@helper
def choose(scores: Any, best: Any, i: Any) -> int:
    """Put the first output with the highest score into best[i], if there is room; returns how many are not finite."""
    top, strange = scores[0], 0
    for c in range(len(scores)):
        top = max(top, scores[c])
        strange += not abs(scores[c]) <= LAST
    if len(best) > 0:
        first = len(scores)
        for c in range(len(scores)):  # without a branch that depends on the scores, which nobody can predict
            first = min(first, c if scores[c] == top else len(scores))
        best[i] = first
    return strange


def narrow(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values in another precision, the largest it has standing for those beyond."""
    if values.dtype == dtype:
        return values
    most = np.finfo(dtype).max
    return np.clip(values, -most, most).astype(dtype)


def linear_scores(X: Any, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, bool]:
    """X w + b with w of shape (features, outputs), in the precision of X if that can hold it; are they all finite?"""
    w, b = _precision(X, w, b)
    if _for_the_blas(X, w):
        scores = X @ w
        scores += b
        return scores, bool(np.isfinite(scores).all())
    out = np.empty(X.shape[0] * w.shape[1], w.dtype)
    finite = _run(X, w, b, lambda: out, np.empty(0, dtype=np.int64))
    return out.reshape(-1, w.shape[1]), finite


def best_outputs(X: Any, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, bool]:
    """For each row the first output with the highest score, of two or more; are all scores finite?"""
    w, b = _precision(X, w, b)
    if _for_the_blas(X, w):
        scores, finite = linear_scores(X, w, b)
        return np.argmax(scores, axis=1), finite
    best = np.empty(X.shape[0], dtype=np.int64)
    return best, _run(X, w, b, lambda: np.empty(2 * w.shape[1], w.dtype), best)


def _precision(X: Any, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    single = X.dtype == np.float32 and max(np.abs(w).max(initial=0.0), np.abs(b).max(initial=0.0)) < LARGE
    return (narrow(w, X.dtype), narrow(b, X.dtype)) if single else (w, b)


def _for_the_blas(X: Any, w: np.ndarray) -> bool:
    return not sp.issparse(X) and (not X.flags.c_contiguous or w.shape[1] == 1 or w.nbytes > CACHED)


def _run(X: Any, w: np.ndarray, b: np.ndarray, room: Callable[[], np.ndarray], best: np.ndarray) -> bool:
    """Score all rows, each thread into ``room()``."""
    rows: Any = as_rows(X, 0.0)
    if isinstance(rows, Dense):
        turned = np.zeros((len(b), -(-w.shape[0] // VECTOR) * VECTOR), w.dtype)
        turned[:, : w.shape[0]] = w.T
        cost, loop = X.size * len(b), partial(dense_scores, rows.data, rows.width, turned.reshape(-1), b)
    elif len(b) == 1:
        line = np.ascontiguousarray(w[:, 0])
        return all(over_rows(lambda *part: sparse_score(rows, line, b, room(), *part), X.shape[0], X.nnz))
    else:
        cost, loop = X.nnz * len(b), partial(sparse_scores, rows, np.ascontiguousarray(w).reshape(-1), b)
    return all(over_rows(lambda *part: loop(room(), best, *part), X.shape[0], cost))


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

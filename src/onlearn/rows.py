"""Rows of examples, dense or sparse, seen alike by compiled code.

Both layouts are one flat array of values and, for a row, the range of positions it takes; they differ
only in which feature a position holds. So every walk over a row is written once. The constant feature
of size ``bias`` (0 for none) belongs to every row and is feature 0; column k of the data is feature k + 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compile import prefetch
from onlearn.verbs import clock, move, note, weigh
from onlearn.weave import Verb, helper

LINE = 64  # bytes in a cache line
AHEAD = 4  # examples between asking for a row and using it: enough to cover memory's delay
MOST = 4096  # bytes to ask for of one row; the hardware follows a longer one by itself
ONE = np.uint64(1)
SOON = np.uint64(8)  # values between asking for the weights of a feature and using them


class Dense(NamedTuple):
    data: np.ndarray  # row after row
    width: int
    bias: float


class Sparse(NamedTuple):
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    bias: float


@Verb
def span(rows, i):
    """The positions of row i: where it starts, and one past where it ends."""


@Verb
def column(rows, p, start):
    """Which column the value at position p belongs to, in a row that starts at ``start``."""


@Verb
def look_ahead(rows, order, n):
    """Ask memory for what the examples after position n of the order will need."""


@span.on(Dense)
def _(rows, i):
    start = np.uint64(i) * np.uint64(rows.width)
    return start, start + np.uint64(rows.width)


@column.on(Dense)
def _(rows, p, start):
    return p - start


@look_ahead.on(Dense)
def _(rows, order, n):
    if n + AHEAD < len(order):
        p, stop = span(rows, order[n + AHEAD])
        stop = min(stop, p + np.uint64(MOST // rows.data.itemsize))
        while p < stop:
            prefetch(rows.data, p)
            p += np.uint64(LINE // rows.data.itemsize)


@span.on(Sparse)
def _(rows, i):
    return np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])


@column.on(Sparse)
def _(rows, p, start):
    return np.uint64(rows.indices[p])


@look_ahead.on(Sparse)
def _(rows, order, n):
    if n + 2 * AHEAD < len(order):
        prefetch(rows.indptr, np.uint64(order[n + 2 * AHEAD]))
    if n + AHEAD < len(order):
        start, stop = span(rows, order[n + AHEAD])
        stop = min(stop, start + np.uint64(MOST // rows.data.itemsize))
        p = start
        while p < stop:
            prefetch(rows.data, p)
            p += np.uint64(LINE // rows.data.itemsize)
        p = start
        while p < stop:
            prefetch(rows.indices, p)
            p += np.uint64(LINE // rows.indices.itemsize)


@helper
def score(rows: Any, i: int, g: Any, st: Any) -> float:
    """The weighted sum of row i by a learner with one output, in stored weights."""
    start, stop = span(rows, i)
    s = rows.bias * weigh(g, st, np.uint64(0))
    for p in range(start, stop):
        s += rows.data[p] * weigh(g, st, column(rows, p, start) + ONE)
    return s


@helper
def scores(rows: Any, i: int, g: Any, st: Any, out: np.ndarray) -> None:
    """The weighted sums of row i by a learner with several outputs, in stored weights."""
    start, stop = span(rows, i)
    outputs = np.uint64(len(out))
    for c in range(outputs):
        out[c] = rows.bias * weigh(g, st, c)
    for p in range(start, stop):
        if p + SOON < stop:  # the weights of a feature lie together, but far from those of the next
            far = (column(rows, p + SOON, start) + ONE) * outputs
            for c in range(np.uint64(0), outputs, np.uint64(LINE // 8)):
                prefetch(g.w, far + c)
        x, base = rows.data[p], (column(rows, p, start) + ONE) * outputs
        for c in range(outputs):
            out[c] += x * weigh(g, st, base + c)


@helper
def dot(rows: Any, i: int, w: np.ndarray, outputs: int, c: int) -> float:
    """The sum of row i times an array with one number a weight, for output c."""
    start, stop = span(rows, i)
    count, shift = np.uint64(outputs), np.uint64(c)
    s = rows.bias * w[shift]
    for p in range(start, stop):
        s += rows.data[p] * w[(column(rows, p, start) + ONE) * count + shift]
    return s


@Verb
def sqnorm(g, rows, i, outputs, c):
    """|x|^2 of row i, constant feature included, as the geometry measures it for output c."""


@sqnorm.on(object, object)
def _(g, rows, i, outputs, c):
    start, stop = span(rows, i)
    total = rows.bias * rows.bias
    for p in range(start, stop):
        x = np.float64(rows.data[p])
        total += x * x
    return total


@helper
def step(rows: Any, i: int, g: Any, st: Any, t: float, q: float, outputs: int, c: int) -> None:
    """Move output c by t along row i."""
    start, stop = span(rows, i)
    count, shift, at = np.uint64(outputs), np.uint64(c), clock(st, c)
    if rows.bias != 0.0:
        note(st, shift, move(g, shift, rows.bias, t, q), at)
    for p in range(start, stop):
        j = (column(rows, p, start) + ONE) * count + shift
        note(st, j, move(g, j, np.float64(rows.data[p]), t, q), at)


@Verb
def opinion(st, g, rows, i, theta, s):
    """Turn s, the weighted sums of row i in stored weights, into its scores by what would be handed out now."""

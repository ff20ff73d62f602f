"""Rows of examples, dense or sparse, seen alike by compiled code.

Both layouts are one flat array of values and, for a row, the range of positions it takes; they differ
only in which feature a position holds. So every walk over a row is written once. The constant feature
of size ``bias`` (0 for none) belongs to every row and is feature 0; column k of the data is feature k + 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import prefetch
from onlearn.compiler.inlining import Verb, helper
from onlearn.compiler.intrinsics import add_rows
from onlearn.engine.protocol import anticipate, catch_up, clock, expect, met, move, note

LINE = 64  # bytes in a cache line
AHEAD = 4  # examples between asking for a row and using it: enough to cover memory's delay
MOST = 4096  # bytes to ask for of one row; the hardware follows a longer one by itself
ONE, TWO, THREE, FOUR = (np.uint64(n) for n in (1, 2, 3, 4))
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


@Verb
def soon(rows, order, n):
    """The same for learners with one output; returns where a row begins that ``score`` is to ask for.

    Asked for bit by bit, between the numbers of another row, a row is there sooner: memory takes few questions at once.
    """


@soon.on(object)
def _(rows, order, n):
    look_ahead(rows, order, n)
    return np.uint64(0)


@Verb
def ask_ahead(rows, p, stop, w, shift, outputs):
    """Ask memory for the weights of the features some way after position p of a row."""


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


@ask_ahead.on(Dense)
def _(rows, p, stop, w, shift, outputs):
    pass  # they follow one another


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


@soon.on(Sparse)
def _(rows, order, n):
    if n + 2 * AHEAD < len(order):
        prefetch(rows.indptr, np.uint64(order[n + 2 * AHEAD]))
    return np.uint64(rows.indptr[order[min(n + AHEAD, len(order) - 1)]])


@ask_ahead.on(Sparse)
def _(rows, p, stop, w, shift, outputs):
    for n in range(p + SOON, min(p + SOON + FOUR, stop)):
        far = (np.uint64(rows.indices[n]) + shift) * outputs
        for c in range(np.uint64(0), outputs, np.uint64(LINE // 8)):
            prefetch(w, far + c)
        prefetch(w, far + outputs - ONE)  # which may be on a line more, for rows of weights start anywhere


@Verb
def score(rows, i, g, st, far):
    """The weighted sum of row i by a learner with one output, in stored weights; ``far`` is what ``soon`` returned."""


@score.on(object, object, object)
def _(rows, i, g, st, far):
    start, stop = span(rows, i)
    s = rows.bias * met(g, st, np.uint64(0), rows.bias)
    for p in range(start, stop):
        x = rows.data[p]
        s += x * met(g, st, column(rows, p, start) + ONE, x)
    return s


@score.on(Sparse, object, object)
def _(rows, i, g, st, far):
    p, stop = span(rows, i)
    s = rows.bias * met(g, st, np.uint64(0), rows.bias)
    while p < stop:
        prefetch(rows.data, far)
        prefetch(rows.indices, far)
        some = min(p + np.uint64(LINE // rows.data.itemsize), stop)
        far += some - p
        for k in range(p, some):
            j, x = np.uint64(rows.indices[k]) + ONE, rows.data[k]
            anticipate(g, j)
            s += x * met(g, st, j, x)
        p = some
    return s


@Verb
def scores(rows, i, g, st, out):
    """The weighted sums of row i by a learner with several outputs, in stored weights, into ``out``."""


@scores.on(object, object, object)
def _(rows, i, g, st, out):
    outputs = np.uint64(len(out))
    start, stop = span(rows, i)
    for p in range(start, stop):
        for c in range(outputs):
            catch_up(g, st, (column(rows, p, start) + ONE) * outputs + c)
    for c in range(outputs):
        out[c] = rows.bias * met(g, st, c, rows.bias)
    add_products(rows, i, g.w, ONE, out)


@helper
def add_products(rows: Any, i: int, w: np.ndarray, shift: Any, out: np.ndarray) -> None:
    """out[c] += the sum of row i times the weights of output c; column k has weights k + shift.

    Four features a turn, which is four times less traffic with ``out``.
    """
    start, stop = span(rows, i)
    outputs, p = np.uint64(len(out)), start
    while p + THREE < stop:
        ask_ahead(rows, p, stop, w, shift, outputs)
        j0, x0 = (column(rows, p, start) + shift) * outputs, rows.data[p]
        j1, x1 = (column(rows, p + ONE, start) + shift) * outputs, rows.data[p + ONE]
        j2, x2 = (column(rows, p + TWO, start) + shift) * outputs, rows.data[p + TWO]
        j3, x3 = (column(rows, p + THREE, start) + shift) * outputs, rows.data[p + THREE]
        add_rows(out, w, (j0, j1, j2, j3), (x0, x1, x2, x3))
        p += FOUR
    for n in range(p, stop):
        x, j = rows.data[n], (column(rows, n, start) + shift) * outputs
        for c in range(outputs):
            out[c] += x * w[j + c]


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


@Verb
def sqnorms(g, rows, i, q):
    """Fill in q with the |x|^2 of row i as the geometry measures it for each output."""


@sqnorm.on(object, object)
def _(g, rows, i, outputs, c):
    start, stop = span(rows, i)
    total = rows.bias * rows.bias
    for p in range(start, stop):
        x = np.float64(rows.data[p])
        total += x * x
    return total


@sqnorms.on(object, object)
def _(g, rows, i, q):
    same = sqnorm(g, rows, i, len(q), 0)
    for c in range(len(q)):
        q[c] = same


@Verb
def step(rows, i, g, st, t, q):
    """Move a learner with one output by t along row i."""


@step.on(object, object, object)
def _(rows, i, g, st, t, q):
    start, stop = span(rows, i)
    at = clock(st, 0)
    if rows.bias != 0.0:
        note(st, np.uint64(0), move(g, np.uint64(0), rows.bias, t, q), at)
    for p in range(start, stop):
        j = column(rows, p, start) + ONE
        note(st, j, move(g, j, np.float64(rows.data[p]), t, q), at)


@Verb
def step_some(rows, i, g, st, out, some):
    """Move the outputs that ``out.which[:some]`` names, each by its out.t, along row i."""


@step_some.on(object, object, object, object)
def _(rows, i, g, st, out, some):
    start, stop = span(rows, i)
    outputs = np.uint64(len(out.t))
    for n in range(some):
        c = out.which[n]
        if rows.bias != 0.0:
            note(st, c, move(g, c, rows.bias, out.t[c], out.q[c]), clock(st, c))
    for p in range(start, stop):
        if p + SOON < stop:
            far = (column(rows, p + SOON, start) + ONE) * outputs
            for n in range(some):
                expect(g, st, far + out.which[n])
        x, base = np.float64(rows.data[p]), (column(rows, p, start) + ONE) * outputs
        for n in range(some):
            c = out.which[n]
            note(st, base + c, move(g, base + c, x, out.t[c], out.q[c]), clock(st, c))


@helper
def step_two(rows: Any, i: int, g: Any, st: Any, out: Any, a: int, b: int) -> None:
    """Move outputs a and b, each by its out.t, along row i."""
    start, stop = span(rows, i)
    outputs = np.uint64(len(out.t))
    # by name, since from the arrays they would be loaded anew for every feature
    ta, qa, at_a = out.t[a], out.q[a], clock(st, a)
    tb, qb, at_b = out.t[b], out.q[b], clock(st, b)
    if rows.bias != 0.0:
        note(st, a, move(g, a, rows.bias, ta, qa), at_a)
        note(st, b, move(g, b, rows.bias, tb, qb), at_b)
    for p in range(start, stop):
        if p + SOON < stop:
            far = (column(rows, p + SOON, start) + ONE) * outputs
            expect(g, st, far + a)
            expect(g, st, far + b)
        x, base = np.float64(rows.data[p]), (column(rows, p, start) + ONE) * outputs
        note(st, base + a, move(g, base + a, x, ta, qa), at_a)
        note(st, base + b, move(g, base + b, x, tb, qb), at_b)


@Verb
def step_all(rows, i, g, st, out):
    """Move every output, each by its out.t, along row i."""


@step_all.on(object, object, object, object)
def _(rows, i, g, st, out):
    start, stop = span(rows, i)
    outputs = np.uint64(len(out.t))
    if rows.bias != 0.0:
        for c in range(outputs):
            note(st, c, move(g, c, rows.bias, out.t[c], out.q[c]), clock(st, c))
    for p in range(start, stop):
        if p + SOON < stop:
            far = (column(rows, p + SOON, start) + ONE) * outputs
            for c in range(np.uint64(0), outputs, np.uint64(LINE // 8)):
                expect(g, st, far + c)
        x, base = np.float64(rows.data[p]), (column(rows, p, start) + ONE) * outputs
        for c in range(outputs):
            note(st, base + c, move(g, base + c, x, out.t[c], out.q[c]), clock(st, c))


@Verb
def lacks(rows, i):
    """Whether something is missing that a step along row i needs; the loop then stops before that row."""


@lacks.on(object)
def _(rows, i):
    return False


@Verb
def stored_score(g, rows, i, s):
    """The weighted sum of row i by the stored weights as they are; ``s`` is what ``score`` found."""


@stored_score.on(object, object)
def _(g, rows, i, s):
    return s


@Verb
def stored_scores(g, rows, i, s):
    """The same for several outputs: what ``scores`` found is in ``s``."""


@stored_scores.on(object, object)
def _(g, rows, i, s):
    pass


@Verb
def one_opinion(st, g, rows, i, theta, raw):
    """The score of row i by what would be handed out now, from its ``stored_score``; of a learner with one output."""


@Verb
def opinion(st, g, rows, i, theta, s):
    """Turn s, the weighted sums of row i in stored weights, into its scores by what would be handed out now."""

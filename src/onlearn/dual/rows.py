"""Rows of the dual: the features of an example are its kernel values with the support examples.

A step along an example adds to one weight, its own; what that does to the scores of the other examples of the block
is done at once, with the example's column of kernel values. So the loops of the linear learners run in the dual as
they are, and rules, stabilizers and kinds of multiclass with them. The constant feature keeps its place as feature 0;
support example k is feature k + 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop, helper
from onlearn.engine.loops import decide
from onlearn.engine.protocol import clock, move, note, scale
from onlearn.engine.rows import (
    ask_ahead,
    column,
    lacks,
    look_ahead,
    score,
    scores,
    span,
    sqnorm,
    step,
    step_all,
    step_some,
)


class KernelRows(NamedTuple):
    """A block of examples in the order in which they are learned from; row i is the block's i-th."""

    data: np.ndarray  # kernel values of the examples in ``seat`` with all support examples, ``width`` to a row
    seat: np.ndarray  # of each example the row of ``data`` that is its own, or -1
    width: int
    standing: np.ndarray  # sums of stored weights times kernel values, ``outputs`` to an example; no constant feature
    length: np.ndarray  # k(x, x) and the square of the constant feature
    columns: np.ndarray  # kernel values of the block's examples with one of them, column after column
    slot: np.ndarray  # of each example the column that is its own, or -1
    place: np.ndarray  # of each example its number among the support examples, or -1
    admitted: np.ndarray  # the examples that became support examples, in that order
    at: np.ndarray  # weights that changed, counted from the first support example's
    change: np.ndarray  # and by how much
    used: np.ndarray  # how many support examples there are, and how many entries of ``at`` and ``admitted``
    first: int  # the examples before it are done with: steps move the standing of the others only
    upto: np.ndarray  # of each example that is done with: how many entries of ``change`` its standing goes up to
    bias: float


@span.on(KernelRows)
def _(rows, i):
    start = np.uint64(rows.seat[i]) * np.uint64(rows.width)
    return start, start + np.uint64(rows.used[0])


@column.on(KernelRows)
def _(rows, p, start):
    return p - start


@look_ahead.on(KernelRows)
def _(rows, order, n):
    pass


@ask_ahead.on(KernelRows)
def _(rows, p, stop, w, shift, outputs):
    pass


@lacks.on(KernelRows)
def _(rows, i):
    return rows.slot[i] < 0


@sqnorm.on(object, KernelRows)
def _(g, rows, i, outputs, c):
    return rows.length[i]


@score.on(KernelRows, object, object)
def _(rows, i, g, st, far):
    return rows.standing[i] + rows.bias * g.w[0]


@scores.on(KernelRows, object, object)
def _(rows, i, g, st, out):
    for c in range(len(out)):
        out[c] = rows.standing[i * len(out) + c] + rows.bias * g.w[c]


@helper
def admit(rows: Any, i: int) -> None:
    """Make example i a support example, if it is not."""
    if rows.place[i] < 0:
        k = rows.used[0]
        rows.place[i] = k
        rows.used[0] = k + 1
        rows.admitted[rows.used[2]] = i
        rows.used[2] += 1
        start = rows.slot[i] * len(rows.slot)
        for r in range(len(rows.seat)):
            if rows.seat[r] >= 0:
                rows.data[rows.seat[r] * rows.width + k] = rows.columns[start + r]


@helper
def press(rows: Any, i: int, g: Any, st: Any, outputs: int, c: int, t: float, q: float) -> None:
    """Move output c by t along example i, and with it the standing of the block, as far as it is not done with."""
    if rows.bias != 0.0:
        note(st, np.uint64(c), move(g, np.uint64(c), rows.bias, t, q), clock(st, c))
    j = rows.place[i] * outputs + c
    w = np.uint64(j + outputs)
    change = move(g, w, 1.0, t, q)
    note(st, w, change, clock(st, c))
    rows.at[rows.used[1]] = j
    rows.change[rows.used[1]] = change
    rows.used[1] += 1
    start = rows.slot[i] * len(rows.slot)
    for r in range(rows.first, len(rows.slot)):
        rows.standing[r * outputs + c] += change * rows.columns[start + r]


@step.on(KernelRows, object, object)
def _(rows, i, g, st, t, q):
    admit(rows, i)
    press(rows, i, g, st, 1, 0, t, q)


@step_some.on(KernelRows, object, object, object)
def _(rows, i, g, st, out, some):
    admit(rows, i)
    for n in range(some):
        c = np.int64(out.which[n])
        press(rows, i, g, st, len(out.t), c, out.t[c], out.q[c])


@step_all.on(KernelRows, object, object, object)
def _(rows, i, g, st, out):
    admit(rows, i)
    for c in range(len(out.t)):
        press(rows, i, g, st, len(out.t), c, out.t[c], out.q[c])


@Loop
def survey_one(rows, start, y, weight, rule, params, theta, g, st, steps):
    """Which examples from ``start`` on would be learned from, were the hypothesis to stay as it is; one output."""
    for i in range(start, len(y)):
        s = score(rows, i, g, st, np.uint64(0)) * scale(g, 0) - theta
        steps[i] = weight[i] != 0.0 and rule(s, y[i], rows.length[i], params) != 0.0


@Loop
def survey_many(rows, start, y, weight, out, rule, loss, params, theta, g, st, steps):
    """The same with several outputs."""
    for i in range(start, len(y)):
        scores(rows, i, g, st, out.s)
        for c in range(len(out.s)):
            out.s[c] = out.s[c] * scale(g, c) - theta
        decide(out, y[i], rule, loss, params, True, g, rows, i)
        steps[i] = False
        for c in range(len(out.t)):
            if weight[i] != 0.0 and out.t[c] != 0.0:
                steps[i] = True

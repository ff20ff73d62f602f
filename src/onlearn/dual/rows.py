"""Rows of the dual representation: the features of an example are its kernel values with the support examples.

The hypothesis is f(x) = sum over support examples s of w_s k(s, x), plus the constant feature times its weight
(Aizerman, Braverman & Rozonoer 1964; Freund & Schapire 1999). The constant feature is feature 0; support example k is
feature k + 1.

A step on an example changes one weight, that of the example itself. The change moves the scores of the other examples
of the block by the change times the example's column of kernel values, so the sums of the whole block are updated at
once. The loops of the linear learners run over these rows unchanged, with all rules, stabilizers and kinds of
multiclass.
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
    """A block of examples in the order of learning; row i is the i-th example of the block."""

    data: np.ndarray  # kernel values of the audited examples with all support examples, ``width`` to a row
    audit_row: np.ndarray  # row of ``data`` that belongs to each example, or -1
    width: int
    sums: np.ndarray  # sums of stored weights times kernel values, without the constant feature, ``outputs`` an example
    sqnorms: np.ndarray  # k(x, x) plus the square of the constant feature
    columns: np.ndarray  # kernel values of the block's examples with one of them, column after column
    column_of: np.ndarray  # column that belongs to each example, or -1
    support_of: np.ndarray  # number of each example among the support examples, or -1
    admitted: np.ndarray  # examples that became support examples, in that order
    changed: np.ndarray  # weights that changed, counted from the first weight of the first support example
    changes: np.ndarray  # amounts by which they changed
    counts: np.ndarray  # of support examples, entries of ``changed``, entries of ``admitted``
    first: int  # steps update the sums of this example and later ones only
    changes_in: np.ndarray  # of each example before ``first``: how many entries of ``changes`` its sums include
    bias: float


@span.on(KernelRows)
def _(rows, i):
    start = np.uint64(rows.audit_row[i]) * np.uint64(rows.width)
    return start, start + np.uint64(rows.counts[0])


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
    return rows.column_of[i] < 0


@sqnorm.on(object, KernelRows)
def _(g, rows, i, outputs, c):
    return rows.sqnorms[i]


@score.on(KernelRows, object, object)
def _(rows, i, g, st, far):
    return rows.sums[i] + rows.bias * g.w[0]


@scores.on(KernelRows, object, object)
def _(rows, i, g, st, out):
    for c in range(len(out)):
        out[c] = rows.sums[i * len(out) + c] + rows.bias * g.w[c]


@helper
def admit(rows: Any, i: int) -> None:
    """Make example i a support example, if it is none yet."""
    if rows.support_of[i] < 0:
        k = rows.counts[0]
        rows.support_of[i] = k
        rows.counts[0] = k + 1
        rows.admitted[rows.counts[2]] = i
        rows.counts[2] += 1
        start = rows.column_of[i] * len(rows.column_of)
        for r in range(len(rows.audit_row)):
            if rows.audit_row[r] >= 0:
                rows.data[rows.audit_row[r] * rows.width + k] = rows.columns[start + r]


@helper
def step_output(rows: Any, i: int, g: Any, st: Any, outputs: int, c: int, t: float, q: float) -> None:
    """Move output c by t along example i, and update the sums of the block from ``rows.first`` on."""
    if rows.bias != 0.0:
        note(st, np.uint64(c), move(g, np.uint64(c), rows.bias, t, q), clock(st, c))
    j = rows.support_of[i] * outputs + c
    w = np.uint64(j + outputs)
    change = move(g, w, 1.0, t, q)
    note(st, w, change, clock(st, c))
    rows.changed[rows.counts[1]] = j
    rows.changes[rows.counts[1]] = change
    rows.counts[1] += 1
    start = rows.column_of[i] * len(rows.column_of)
    for r in range(rows.first, len(rows.column_of)):
        rows.sums[r * outputs + c] += change * rows.columns[start + r]


@step.on(KernelRows, object, object)
def _(rows, i, g, st, t, q):
    admit(rows, i)
    step_output(rows, i, g, st, 1, 0, t, q)


@step_some.on(KernelRows, object, object, object)
def _(rows, i, g, st, out, some):
    admit(rows, i)
    for n in range(some):
        c = np.int64(out.which[n])
        step_output(rows, i, g, st, len(out.t), c, out.t[c], out.q[c])


@step_all.on(KernelRows, object, object, object)
def _(rows, i, g, st, out):
    admit(rows, i)
    for c in range(len(out.t)):
        step_output(rows, i, g, st, len(out.t), c, out.t[c], out.q[c])


@Loop
def survey_one(rows, order, y, weight, rule, params, theta, g, st, steps):
    """Mark the examples of the order that the present hypothesis would make a step on; one output."""
    for n in range(len(order)):
        i = order[n]
        s = score(rows, i, g, st, np.uint64(0)) * scale(g, 0) - theta
        steps[n] = weight[n] != 0.0 and rule(s, y[n], rows.sqnorms[i], params) != 0.0


@Loop
def survey_many(rows, order, y, weight, out, rule, loss, params, theta, g, st, steps):
    """Mark the examples of the order that the present hypothesis would make a step on; several outputs."""
    for n in range(len(order)):
        i = order[n]
        scores(rows, i, g, st, out.s)
        for c in range(len(out.s)):
            out.s[c] = out.s[c] * scale(g, c) - theta
        decide(out, y[n], 1.0, rule, loss, params, True, g, rows, i)
        steps[n] = False
        for c in range(len(out.t)):
            if weight[n] != 0.0 and out.t[c] != 0.0:
                steps[n] = True

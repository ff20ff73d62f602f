"""Rows of the dual representation under a budget: kernel values of a block of examples with all support examples.

Support examples are held in slots; slot k is feature k + 1, the constant feature is feature 0. There is one slot more
than the budget allows: an example may be added there during a step, until the policy has merged or removed one. Between
steps the budget holds. The kernel values of the whole block with every slot are kept current, so a score is the
weighted sum of a row, as for the linear learners.

A policy has its own type of rows, and registers bodies of these verbs for it: ``shrink`` and, where the default does
not suit it, ``represented``, ``add_support``, ``after_step`` and ``lacks``. A policy that changes weights changes all
``weight_arrays``: everything of which the learner keeps one number a weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop, Verb, helper
from onlearn.engine.protocol import clock, move, note
from onlearn.engine.rows import ask_ahead, column, lacks, look_ahead, span, sqnorm, step, step_all, step_some

ADD, COPY, BLEND = range(3)  # kinds of log entries


class BudgetRows(NamedTuple):
    """A block of examples in the order of learning; row i is the i-th example of the block."""

    data: np.ndarray  # kernel values of the block's examples with the slots, ``width`` to an example
    width: int  # slots in ``data``, ``gram`` and ``coefficients``
    capacity: int  # the budget plus one
    diagonal: np.ndarray  # k(x, x)
    sqnorms: np.ndarray  # k(x, x) plus the square of the constant feature
    columns: np.ndarray  # kernel values of all the block's examples with one of them, column after column
    column_of: np.ndarray  # column that belongs to each example, or -1
    row: np.ndarray  # row of the data set that each example is
    slot_of: np.ndarray  # slot that each row of the data set was last in, or -1
    row_in: np.ndarray  # row of the data set that is in each slot, or -1
    gram: (
        np.ndarray
    )  # width x width: kernel values of the slots with each other, or a policy's factor of them, or empty
    arrivals: np.ndarray  # when the example of each slot came; behind them how many came
    random: np.ndarray  # state of the random number generator
    policy_state: np.ndarray  # numbers that the policy keeps
    coefficients: np.ndarray  # of the support examples in the projection of an example on them
    counts: np.ndarray  # of used slots and of log entries; and the number of the current example
    log: np.ndarray  # what happened to the slots, three numbers an entry: its kind and two operands
    shares: np.ndarray  # of each log entry: the share of the first of two blended slots
    weight_arrays: tuple[np.ndarray, ...]  # all arrays that hold one number a weight
    bias: float


# What a policy does


@Verb
def represented(rows, i):
    """Whether support examples represent the example well enough, with ``rows.coefficients``, which it then sets."""


@represented.on(object)
def _(rows, i):
    return False


@Verb
def add_support(rows, i, k):
    """Keep what the policy needs to know of example i, which is about to be put into slot k, the last one."""


@add_support.on(object)
def _(rows, i, k):
    for m in range(k):
        value = np.float64(rows.data[i * rows.width + m])
        rows.gram[k * rows.width + m] = value
        rows.gram[m * rows.width + k] = value
    rows.gram[k * rows.width + k] = rows.diagonal[i]


@Verb
def after_step(rows, i, g, square):
    """Note a step on example i; ``square`` is the sum of its squares over the outputs, in units of stored weights."""


@after_step.on(object, object)
def _(rows, i, g, square):
    pass


@Verb
def shrink(rows, g, st, outputs):
    """Free the last slot, now that one slot too many is used."""


# What rows do, whatever the policy


@helper
def find_slot(rows: Any, i: int) -> int:
    """The slot of example i, or -1."""
    k = rows.slot_of[rows.row[i]]
    if k >= 0 and rows.row_in[k] != rows.row[i]:  # another example has replaced it
        k = np.int64(-1)
    return k


@helper
def admit(rows: Any, i: int) -> int:
    """The slot of example i, added if it has none yet; -1 if other support examples represent it."""
    rows.counts[2] = i
    k = find_slot(rows, i)
    if k < 0:
        is_represented = represented(rows, i)
        if not is_represented:
            k = rows.counts[0]
            add_support(rows, i, k)
            start = rows.column_of[i] * len(rows.column_of)
            for r in range(i, len(rows.column_of)):
                rows.data[r * rows.width + k] = rows.columns[start + r]
            rows.row_in[k] = rows.row[i]
            rows.slot_of[rows.row[i]] = k
            rows.arrivals[k] = rows.arrivals[rows.capacity]
            rows.arrivals[rows.capacity] += 1
            rows.counts[0] = k + 1
            append_log(rows, ADD, i, k, 0.0)
    return k


@helper
def append_log(rows: Any, kind: int, a: int, b: int, share: float) -> None:
    """Append an entry to the log, which `SupportSlots.apply_log` reads."""
    n = rows.counts[1]
    rows.log[3 * n] = kind
    rows.log[3 * n + 1] = a
    rows.log[3 * n + 2] = b
    rows.shares[n] = share
    rows.counts[1] = n + 1


@helper
def step_output(rows: Any, k: int, g: Any, st: Any, outputs: int, c: int, t: float, q: float) -> None:
    """Move output c by t along the example in slot k; if k is -1, along the projection that represents it."""
    if rows.bias != 0.0:
        note(st, np.uint64(c), move(g, np.uint64(c), rows.bias, t, q), clock(st, c))
    if k >= 0:
        w = np.uint64((k + 1) * outputs + c)
        note(st, w, move(g, w, 1.0, t, q), clock(st, c))
    else:
        for m in range(rows.counts[0]):
            w = np.uint64((m + 1) * outputs + c)
            note(st, w, move(g, w, rows.coefficients[m], t, q), clock(st, c))


@helper
def enforce_budget(rows: Any, g: Any, st: Any, outputs: int) -> None:
    """Return to the budget after a step."""
    if rows.counts[0] == rows.capacity:
        shrink(rows, g, st, outputs)


@helper
def free_slot(rows: Any, k: int, outputs: int) -> None:
    """Empty slot k by moving the last slot's example there."""
    n, last = rows.width, rows.counts[0] - 1
    if k != last:
        for r in range(rows.counts[2], len(rows.column_of)):
            rows.data[r * n + k] = rows.data[r * n + last]
        if len(rows.gram) > 0:
            for m in range(last):
                rows.gram[k * n + m] = rows.gram[last * n + m]
                rows.gram[m * n + k] = rows.gram[m * n + last]
            rows.gram[k * n + k] = rows.gram[last * n + last]
        rows.arrivals[k] = rows.arrivals[last]
        rows.row_in[k] = rows.row_in[last]
        if rows.row_in[k] >= 0:
            rows.slot_of[rows.row_in[k]] = k
        for weights in rows.weight_arrays:
            for c in range(outputs):
                weights[(k + 1) * outputs + c] = weights[(last + 1) * outputs + c]
        append_log(rows, COPY, last, k, 0.0)
    rows.row_in[last] = -1
    for weights in rows.weight_arrays:
        for c in range(outputs):
            weights[(last + 1) * outputs + c] = 0.0
    rows.counts[0] = last


# Bodies of the verbs that the loops call, the same for all policies


def _span(rows, i):
    start = np.uint64(i) * np.uint64(rows.width)
    return start, start + np.uint64(rows.counts[0])


def _column(rows, p, start):
    return p - start


def _look_ahead(rows, order, n):
    pass


def _ask_ahead(rows, p, stop, w, shift, outputs):
    pass


def _lacks(rows, i):
    k = find_slot(rows, i)
    return k < 0 and rows.column_of[i] < 0


def _sqnorm(g, rows, i, outputs, c):
    return rows.sqnorms[i]


def _step(rows, i, g, st, t, q):
    k = admit(rows, i)
    step_output(rows, k, g, st, 1, 0, t, q)
    after_step(rows, i, g, t * t)
    enforce_budget(rows, g, st, 1)


def _step_some(rows, i, g, st, out, some):
    k, square = admit(rows, i), 0.0
    for n in range(some):
        c = np.int64(out.which[n])
        step_output(rows, k, g, st, len(out.t), c, out.t[c], out.q[c])
        square += out.t[c] * out.t[c]
    after_step(rows, i, g, square)
    enforce_budget(rows, g, st, len(out.t))


def _step_all(rows, i, g, st, out):
    k, square = admit(rows, i), 0.0
    for c in range(len(out.t)):
        step_output(rows, k, g, st, len(out.t), c, out.t[c], out.q[c])
        square += out.t[c] * out.t[c]
    after_step(rows, i, g, square)
    enforce_budget(rows, g, st, len(out.t))


def register_rows(kind: Any) -> Any:
    """Register the verbs of the loops for a policy's type of rows; the policy may replace bodies afterwards."""
    plain: dict[Verb, Any] = {
        span: _span,
        column: _column,
        look_ahead: _look_ahead,
        ask_ahead: _ask_ahead,
        lacks: _lacks,
    }
    for verb, body in plain.items():
        verb.on(kind)(body)
    sqnorm.on(object, kind)(_sqnorm)
    step.on(kind, object, object)(_step)
    step_some.on(kind, object, object, object)(_step_some)
    step_all.on(kind, object, object, object)(_step_all)
    return kind


register_rows(BudgetRows)  # for `survey_one` and `survey_many`, which make no steps


@Loop
def find_missing_columns(rows, wanted, missing):
    """Mark the wanted examples whose column of kernel values is missing and needed for a step."""
    for n in range(len(wanted)):
        missing[n] = lacks(rows, wanted[n])

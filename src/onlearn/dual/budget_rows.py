"""Rows of the dual under a budget: the kernel values of a block of examples with the support examples, all at hand.

Support examples live in slots; slot k is feature k + 1, the constant feature keeps its place as feature 0. There is
one slot more than the budget allows, in which an example stands for the moment that it takes its policy to make one
of two or to send one away: outside a step the budget holds. Since the values of the whole block with every slot are
kept up to date, a score is the weighted sum of a row as in the linear learners, and so are opinions of stabilizers.

What a policy does is a few verbs on its own kind of rows: ``give_way`` and, if need be, ``represented``, ``enrol``,
``took`` and ``lacks``.
Whatever it does to the weights it does to all ``lines``: everything the learner keeps one number a weight of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop, Verb, helper
from onlearn.engine.protocol import clock, move, note
from onlearn.engine.rows import ask_ahead, column, lacks, look_ahead, span, sqnorm, step, step_all, step_some

ADD, COPY, MIX = range(3)  # kinds of entries of the log


class BudgetRows(NamedTuple):
    """A block of examples in the order in which they are learned from; row i is the block's i-th."""

    data: np.ndarray  # kernel values of the block's examples with the slots, ``width`` to an example
    width: int  # slots that there is room for
    limit: int  # one more than the budget
    own: np.ndarray  # k(x, x)
    length: np.ndarray  # the same and the square of the constant feature
    columns: np.ndarray  # kernel values of all the block's examples with one of them, column after column
    slot: np.ndarray  # of each example the column that is its own, or -1
    row: np.ndarray  # of each example the row of the data set
    place: np.ndarray  # of each row of the data set the slot it was last in, or -1
    owner: np.ndarray  # of each slot the row of the data set that is in it, or -1
    among: np.ndarray  # width x width: kernel values of the slots, or what a policy makes of them; or nothing
    ages: np.ndarray  # of each slot when its example came; at the end how many came
    random: np.ndarray  # state of the generator of random numbers
    numbers: np.ndarray  # a few of the policy's own
    mix: np.ndarray  # room for the coefficients of an example that is represented by others
    used: np.ndarray  # how many slots are used, how many entries of the log, and the example at hand
    log: np.ndarray  # what became of the slots: kind and two numbers an entry
    share: np.ndarray  # of the first of two slots in their mixture, for each entry
    lines: tuple[np.ndarray, ...]  # all that is kept of weights
    bias: float


@Verb
def represented(rows, i):
    """Whether the example is, well enough, a sum of support examples, with the coefficients now in ``rows.mix``."""


@represented.on(object)
def _(rows, i):
    return False


@Verb
def enrol(rows, i, k):
    """Example i has come into slot k, the last one: keep what the policy needs to know."""


@enrol.on(object)
def _(rows, i, k):
    for m in range(k):
        value = np.float64(rows.data[i * rows.width + m])
        rows.among[k * rows.width + m] = value
        rows.among[m * rows.width + k] = value
    rows.among[k * rows.width + k] = rows.own[i]


@Verb
def took(rows, i, g, square):
    """A step was taken on example i; ``square`` is the sum of its squares over the outputs, in stored weights."""


@took.on(object, object)
def _(rows, i, g, square):
    pass


@Verb
def give_way(rows, g, st, outputs):
    """One slot too many is used: free the last one."""


@helper
def slot_of(rows: Any, i: int) -> int:
    """The slot that example i is in, or -1."""
    k = rows.place[rows.row[i]]
    if k >= 0 and rows.owner[k] != rows.row[i]:  # another has taken its place
        k = np.int64(-1)
    return k


@helper
def admit(rows: Any, i: int) -> int:
    """The slot of example i, which may be a new one; -1 if it is represented by others."""
    rows.used[2] = i
    k = slot_of(rows, i)
    if k < 0:
        by_others = represented(rows, i)
        if not by_others:
            k = rows.used[0]
            enrol(rows, i, k)
            start = rows.slot[i] * len(rows.slot)
            for r in range(i, len(rows.slot)):
                rows.data[r * rows.width + k] = rows.columns[start + r]
            rows.owner[k] = rows.row[i]
            rows.place[rows.row[i]] = k
            rows.ages[k] = rows.ages[rows.limit]
            rows.ages[rows.limit] += 1
            rows.used[0] = k + 1
            write_down(rows, ADD, i, k, 0.0)
    return k


@helper
def write_down(rows: Any, kind: int, a: int, b: int, share: float) -> None:
    n = rows.used[1]
    rows.log[3 * n] = kind
    rows.log[3 * n + 1] = a
    rows.log[3 * n + 2] = b
    rows.share[n] = share
    rows.used[1] = n + 1


@helper
def press(rows: Any, k: int, g: Any, st: Any, outputs: int, c: int, t: float, q: float) -> None:
    """Move output c by t along the example in slot k; if that is -1, along the mixture that represents it."""
    if rows.bias != 0.0:
        note(st, np.uint64(c), move(g, np.uint64(c), rows.bias, t, q), clock(st, c))
    if k >= 0:
        w = np.uint64((k + 1) * outputs + c)
        note(st, w, move(g, w, 1.0, t, q), clock(st, c))
    else:
        for m in range(rows.used[0]):
            w = np.uint64((m + 1) * outputs + c)
            note(st, w, move(g, w, rows.mix[m], t, q), clock(st, c))


@helper
def fit_in(rows: Any, g: Any, st: Any, outputs: int) -> None:
    """Back to the budget, after a step."""
    if rows.used[0] == rows.limit:
        give_way(rows, g, st, outputs)


@helper
def let_go(rows: Any, k: int, outputs: int) -> None:
    """Forget what is in slot k, and let the last slot's example take its place."""
    n, last = rows.width, rows.used[0] - 1
    if k != last:
        for r in range(rows.used[2], len(rows.slot)):
            rows.data[r * n + k] = rows.data[r * n + last]
        if len(rows.among) > 0:
            for m in range(last):
                rows.among[k * n + m] = rows.among[last * n + m]
                rows.among[m * n + k] = rows.among[m * n + last]
            rows.among[k * n + k] = rows.among[last * n + last]
        rows.ages[k] = rows.ages[last]
        rows.owner[k] = rows.owner[last]
        if rows.owner[k] >= 0:
            rows.place[rows.owner[k]] = k
        for line in rows.lines:
            for c in range(outputs):
                line[(k + 1) * outputs + c] = line[(last + 1) * outputs + c]
        write_down(rows, COPY, last, k, 0.0)
    rows.owner[last] = -1
    for line in rows.lines:
        for c in range(outputs):
            line[(last + 1) * outputs + c] = 0.0
    rows.used[0] = last


# What the loops ask of rows, the same for all policies


def _span(rows, i):
    start = np.uint64(i) * np.uint64(rows.width)
    return start, start + np.uint64(rows.used[0])


def _column(rows, p, start):
    return p - start


def _look_ahead(rows, order, n):
    pass


def _ask_ahead(rows, p, stop, w, shift, outputs):
    pass


def _lacks(rows, i):
    k = slot_of(rows, i)
    return k < 0 and rows.slot[i] < 0


def _sqnorm(g, rows, i, outputs, c):
    return rows.length[i]


def _step(rows, i, g, st, t, q):
    k = admit(rows, i)
    press(rows, k, g, st, 1, 0, t, q)
    took(rows, i, g, t * t)
    fit_in(rows, g, st, 1)


def _step_some(rows, i, g, st, out, some):
    k, square = admit(rows, i), 0.0
    for n in range(some):
        c = np.int64(out.which[n])
        press(rows, k, g, st, len(out.t), c, out.t[c], out.q[c])
        square += out.t[c] * out.t[c]
    took(rows, i, g, square)
    fit_in(rows, g, st, len(out.t))


def _step_all(rows, i, g, st, out):
    k, square = admit(rows, i), 0.0
    for c in range(len(out.t)):
        press(rows, k, g, st, len(out.t), c, out.t[c], out.q[c])
        square += out.t[c] * out.t[c]
    took(rows, i, g, square)
    fit_in(rows, g, st, len(out.t))


def budget_rows(kind: Any) -> Any:
    """Make the rows of a policy known to the loops; what it does otherwise it registers afterwards."""
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


budget_rows(BudgetRows)  # as they are, for a look at them


@Loop
def find_lacking(rows, wanted, lacking):
    """Which of the wanted examples lack something that a step needs."""
    for n in range(len(wanted)):
        lacking[n] = lacks(rows, wanted[n])

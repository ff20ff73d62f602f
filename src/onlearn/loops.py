"""The compiled passes over data. Everything onlearn learns, it learns in one of these two loops.

Both take the examples in the given order and return the number of examples done, which is less than all only when
the rule returned something that is not a number, the rows lack what a step needs, or were not ``checked`` and one of
them has a score that is not finite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.inputs import LAST
from onlearn.outputs import decide, take_steps
from onlearn.rows import lacks, look_ahead, one_opinion, opinion, score, scores, soon, sqnorm, step
from onlearn.verbs import handed, live, scale, settle, stride, tick
from onlearn.weave import Loop, helper

# Places in a tally. DUE is the count of examples seen at which the first four are next remembered, KEPT how often
# they were.
MISTAKES, UPDATES, LOSS, SEEN, DUE, KEPT = range(6)
DOUBLINGS = 64  # more than there will ever be

LONGEST_STEP = 1e100  # no rule needs more; keeps diverging learners finite
HIGHEST_SCORE = 1e300
HIGHEST_LOSS = 1e200  # of one example: their sum must stay finite


class Audit(NamedTuple):
    """Scores by the hypothesis that would be handed out, of examples not yet learned from, for calibration.

    A ring of the latest ones; each time it has filled up, examples are taken half as often. So the cost
    stays small and what is kept spans at least the latter half of the stream.
    """

    scores: np.ndarray
    gold: np.ndarray
    now: np.ndarray  # room for the scores of one example
    due: np.ndarray  # examples until the next one (below 1: never), examples between two, taken so far


@helper
def audit_due(audit: Any, y: float) -> int:
    """The place in the ring for the present example, or -1."""
    audit.due[0] -= 1
    place = -1
    if audit.due[0] == 0:
        place = audit.due[2] % len(audit.gold)
        audit.gold[place] = y
        audit.due[2] += 1
        if audit.due[2] % len(audit.gold) == 0:
            audit.due[1] *= 2
        audit.due[0] = audit.due[1]
    return place


@helper
def strange(s: float) -> bool:
    """Whether a sum is not finite: there is NaN or infinity in the row, or its values are very large."""
    return not abs(s) <= LAST


@helper
def tame(s: float) -> float:
    """A finite score, even where large values made the sum overflow."""
    return 0.0 if s != s else min(max(s, -HIGHEST_SCORE), HIGHEST_SCORE)


@helper
def remember(tally: np.ndarray, doubling: np.ndarray) -> None:
    """Remember the tally when the number of examples is a power of two."""
    if tally[SEEN] == tally[DUE]:
        at = np.int64(tally[KEPT])
        for n in range(4):
            doubling[at * 4 + n] = tally[n]
        tally[KEPT] += 1.0
        tally[DUE] *= 2.0


@Loop
def learn_one(rows, order, y, weight, rule, loss, params, measured, theta, g, st, audit, tally, doubling, checked):
    """One output: binary classification (y is -1 or +1) and regression."""
    for n in range(len(order)):
        far = soon(rows, order, n)
        i, gold, importance = order[n], y[n], weight[n]
        if importance != 0.0:  # else it is as if the example were not there
            raw = score(rows, i, g, st, far)
            if strange(raw) and not checked:
                return n
            s = tame(raw * scale(g, 0) - theta)
            q = sqnorm(g, rows, i, 1, 0) if measured else 1.0
            t = rule(s, gold, q, params)
            wanting = lacks(rows, i)
            if t != t or (t != 0.0 and wanting):
                return n
            place = audit_due(audit, gold)
            if place >= 0:
                audit.scores[place] = tame(one_opinion(st, g, rows, i, theta, raw))
            mistake = s * gold <= 0.0
            tally[MISTAKES] += mistake
            tally[LOSS] += min(loss(s, gold, q, params), HIGHEST_LOSS)
            tally[SEEN] += 1.0
            live(st, g, mistake, t != 0.0)
            if t != 0.0:
                tally[UPDATES] += 1.0
                t = min(max(t, -LONGEST_STEP), LONGEST_STEP) * importance
                step(rows, i, g, st, stride(g, t, 0), q)
            settle(g, st)
            tick(st, g)
            remember(tally, doubling)
    return len(order)


@Loop
def learn_many(
    rows, order, y, weight, out, rule, loss, params, measured, theta, g, st, audit, tally, doubling, checked
):
    """Several outputs: multiclass classification, y being the index of the right class."""
    outputs = len(out.s)
    for c in range(outputs):
        out.q[c] = 1.0
    for n in range(len(order)):
        look_ahead(rows, order, n)
        i, gold, importance = order[n], y[n], weight[n]
        if importance != 0.0:
            scores(rows, i, g, st, out.s)
            if strange(out.s[0]) and not checked:  # what is strange in a row shows in every score
                return n
            if audit.due[0] == 1:  # this example will be audited, if it is learned from
                for c in range(outputs):
                    audit.now[c] = out.s[c]
            for c in range(outputs):
                out.s[c] = tame(out.s[c] * scale(g, c) - theta)
            margin, cost = decide(out, gold, rule, loss, params, measured, g, rows, i)
            change, wanting = False, lacks(rows, i)
            for c in range(outputs):
                change = change or out.t[c] != 0.0
                if out.t[c] != out.t[c] or (wanting and out.t[c] != 0.0):
                    return n
            place = audit_due(audit, gold)
            if place >= 0:
                opinion(st, g, rows, i, theta, audit.now)
                for c in range(outputs):
                    audit.scores[place * outputs + c] = tame(audit.now[c])
            tally[MISTAKES] += margin <= 0.0
            tally[LOSS] += min(cost, HIGHEST_LOSS)
            tally[SEEN] += 1.0
            live(st, g, margin <= 0.0, change)
            if change:
                tally[UPDATES] += 1.0
                for c in range(outputs):
                    if out.t[c] != 0.0:
                        t = min(max(out.t[c], -LONGEST_STEP), LONGEST_STEP) * importance
                        out.t[c] = stride(g, t, c)
                take_steps(out, rows, i, g, st)
            settle(g, st)
            tick(st, g)
            remember(tally, doubling)
    return len(order)


@Loop
def hand_out(g, st, outputs, weights):
    """Weights of the hypothesis that would be handed out now; returns |w|^2. Brings lazy weights up to date."""
    squares = 0.0
    for k in range(len(weights) // outputs):
        for c in range(outputs):
            j = np.uint64(k * outputs + c)
            weights[j] = handed(st, g, j, c)
            squares += weights[j] * weights[j]
    return squares

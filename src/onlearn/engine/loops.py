"""The compiled passes over data. Everything onlearn learns, it learns in one of these two loops.

Both take the examples in the given order and return the number of examples done, which is less than all only when
the rule returned something that is not a number, the rows lack what a step needs, or were not ``checked`` and one of
them has a score that is not finite; and when they are to pause after each step and each mistake.
``pause`` is where in the order to begin, and whether (1) to pause.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop, Verb, helper
from onlearn.engine.csr import LAST
from onlearn.engine.protocol import handed, live, scale, settle, stride, tick, weighted
from onlearn.engine.rows import (
    Dense,
    Sparse,
    lacks,
    look_ahead,
    one_opinion,
    opinion,
    score,
    scores,
    soon,
    sqnorm,
    sqnorms,
    step,
    step_all,
    step_some,
    step_two,
    stored_score,
    stored_scores,
)

# ----------------------------------------------------------------------------------------------------
# Several classes from one scalar rule: one-vs-all, true multiclass, softmax.
#
# ``decide`` looks at the scores ``s`` of one example and fills in the step ``t[c]`` of every class c, and the squared
# length ``q[c]`` that goes with it. It returns the margin of the right class over its best rival (not above zero is a
# mistake) and the loss. ``take_steps`` moves the classes whose step is not zero.


class OneVsAll(NamedTuple):
    """One binary problem a class."""

    s: np.ndarray
    t: np.ndarray
    q: np.ndarray
    which: np.ndarray  # room for the indices of classes


class TrueMulticlass(NamedTuple):
    """The rule sees the margin between the right class and its best rival; promote one, demote the other."""

    s: np.ndarray
    t: np.ndarray
    q: np.ndarray
    which: np.ndarray  # room for the indices of classes


class Softmax(NamedTuple):
    """Multinomial logistic regression: the step is the feature of the right class minus its expectation."""

    s: np.ndarray
    t: np.ndarray
    q: np.ndarray
    which: np.ndarray  # room for the indices of classes


def start(kind: str, outputs: int) -> Any:
    """Room for the scores and steps of one example."""
    return OUTPUTS[kind](*np.zeros((3, outputs)), np.zeros(outputs, dtype=np.uint64))


OUTPUTS: dict[str, Any] = {"one-vs-all": OneVsAll, "true": TrueMulticlass, "softmax": Softmax}


@helper
def heft(importance: float) -> float:
    """What multiplies the squared length of an example of some weight, as a rule sees it; never below 1.

    The step that minimises |v - w|^2 / 2 + h C loss(v) is h times that of an example whose squared length is h |x|^2:
    min(h C, loss / |x|^2) for passive-aggressive I, loss / (|x|^2 + 1/(2 h C)) for II and for AROW. So a heavy example
    is learned well, but no step goes past where its loss ends, as h times the usual step would. An example of a weight
    below 1 takes this part of its usual step.
    """
    return max(1.0, importance)


@Verb
def decide(out, gold, h, rule, loss, params, measured, g, rows, i):
    """Fill in out.t and out.q from out.s; h is the heft of the example, see ``heft``."""


@Verb
def take_steps(out, rows, i, g, st):
    """Move along row i all classes with a step."""


@Verb
def record(out, gold, importance, change, tally):
    """Take down what each member of a bank said of an example, before they learn from it; see ``bank``."""


@record.on(object)
def _(out, gold, importance, change, tally):
    pass


@take_steps.on(object, object, object, object)
def _(out, rows, i, g, st):
    some = 0
    for c in range(len(out.t)):
        if out.t[c] != 0.0:
            out.which[some] = c
            some += 1
    step_some(rows, i, g, st, out, some)


@take_steps.on(TrueMulticlass, Sparse, object, object)
@take_steps.on(TrueMulticlass, Dense, object, object)
def _(out, rows, i, g, st):
    step_two(rows, i, g, st, out, out.which[0], out.which[1])


@take_steps.on(Softmax, object, object, object)
def _(out, rows, i, g, st):
    step_all(rows, i, g, st, out)  # as good as always there is a step for every class


@helper
def best_rival(s: np.ndarray, gold: int) -> int:
    rival = 1 if gold == 0 else 0
    for c in range(len(s)):
        if c != gold and s[c] > s[rival]:
            rival = c
    return rival


@decide.on(TrueMulticlass, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    rival = best_rival(out.s, gold)
    margin, q, n = out.s[gold] - out.s[rival], 1.0, len(out.s)
    if measured:
        q = sqnorm(g, rows, i, n, gold) + sqnorm(g, rows, i, n, rival)
    t = rule(margin, 1.0, h * q, params)
    for c in range(n):
        out.t[c] = 0.0
        out.q[c] = q
    out.t[gold] = t
    out.t[rival] = -t
    out.which[0], out.which[1] = min(gold, rival), max(gold, rival)
    return margin, loss(margin, 1.0, q, params)


@decide.on(OneVsAll, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    n = len(out.s)
    if measured:
        sqnorms(g, rows, i, out.q)
    for c in range(n):
        out.t[c] = rule(out.s[c], 1.0 if c == gold else -1.0, h * out.q[c], params)
    margin = out.s[gold] - out.s[best_rival(out.s, gold)]
    return margin, loss(out.s[gold], 1.0, out.q[gold], params)


@decide.on(Softmax, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    n = len(out.s)
    if measured:
        sqnorms(g, rows, i, out.q)
    top, total = out.s[0], 0.0
    for c in range(n):
        top = max(top, out.s[c])
    for c in range(n):
        out.t[c] = np.exp(out.s[c] - top)
        total += out.t[c]
    cost = np.log(total) - (out.s[gold] - top)
    for c in range(n):
        out.t[c] = (1.0 if c == gold else 0.0) - out.t[c] / total
    return out.s[gold] - out.s[best_rival(out.s, gold)], cost


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
def learn_output(
    rows, order, y, weight, rule, loss, params, measured, theta, g, st, audit, tally, doubling, checked, pause
):
    """One output: binary classification (y is -1 or +1) and regression."""
    first, pausing = max(pause[0], 0), pause[1] == 1  # at least 0, so that the compiler knows
    for n in range(first, len(order)):
        far = soon(rows, order, n)
        i, gold, importance = order[n], y[n], weight[n]
        if importance != 0.0:  # else it is as if the example were not there
            raw = score(rows, i, g, st, far)
            if strange(raw) and not checked:
                return n
            s = tame(raw * scale(g, 0) - theta)
            q = sqnorm(g, rows, i, 1, 0) if measured else 1.0
            t = rule(s, gold, heft(importance) * q, params)
            wanting = lacks(rows, i)
            if t != t or (t != 0.0 and wanting):
                return n
            place = audit_due(audit, gold)
            if place >= 0:
                stored = stored_score(g, rows, i, raw)
                audit.scores[place] = tame(one_opinion(st, g, rows, i, theta, stored))
            mistake = s * gold <= 0.0
            tally[MISTAKES] += mistake
            tally[LOSS] += min(loss(s, gold, q, params), HIGHEST_LOSS)
            tally[SEEN] += 1.0
            live(st, g, mistake, t != 0.0)
            if t != 0.0:
                tally[UPDATES] += 1.0
                t = min(max(t, -LONGEST_STEP), LONGEST_STEP) * importance
                step(rows, i, g, st, stride(g, t, 0), weighted(g, q, importance))
            settle(g, st)
            tick(st, g)
            remember(tally, doubling)
            if pausing and (mistake or t != 0.0):
                return n + 1
    return len(order)


@Loop
def learn_outputs(
    rows, order, y, weight, out, rule, loss, params, measured, theta, g, st, audit, tally, doubling, checked, pause
):
    """Several outputs: multiclass classification, y being the index of the right class."""
    first, pausing = max(pause[0], 0), pause[1] == 1  # at least 0, so that the compiler knows
    outputs = len(out.s)
    for c in range(outputs):
        out.q[c] = 1.0
    for n in range(first, len(order)):
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
            margin, cost = decide(out, gold, heft(importance), rule, loss, params, measured, g, rows, i)
            change, wanting = False, lacks(rows, i)
            for c in range(outputs):
                change = change or out.t[c] != 0.0
                if out.t[c] != out.t[c] or (wanting and out.t[c] != 0.0):
                    return n
            record(out, gold, importance, change, tally)
            place = audit_due(audit, gold)
            if place >= 0:
                stored_scores(g, rows, i, audit.now)
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
                        out.q[c] = weighted(g, out.q[c], importance)
                take_steps(out, rows, i, g, st)
            settle(g, st)
            tick(st, g)
            remember(tally, doubling)
            if pausing and (change or margin <= 0.0):
                return n + 1
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

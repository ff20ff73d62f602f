"""Several classes from one scalar rule: one-vs-all, true multiclass, softmax.

``decide`` looks at the scores ``s`` of one example and fills in the step ``t[c]`` of every class c, and the squared
length ``q[c]`` that goes with it. It returns the margin of the right class over its best rival (not above zero is a
mistake) and the loss. ``take_steps`` moves the classes whose step is not zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.rows import Dense, Sparse, sqnorm, sqnorms, step_all, step_some, step_two
from onlearn.weave import Verb, helper


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


@Verb
def decide(out, gold, rule, loss, params, measured, g, rows, i):
    """Fill in out.t and out.q from out.s."""


@Verb
def take_steps(out, rows, i, g, st):
    """Move along row i all classes with a step."""


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
def _(out, gold, rule, loss, params, measured, g, rows, i):
    rival = best_rival(out.s, gold)
    margin, q, n = out.s[gold] - out.s[rival], 1.0, len(out.s)
    if measured:
        q = sqnorm(g, rows, i, n, gold) + sqnorm(g, rows, i, n, rival)
    t = rule(margin, 1.0, q, params)
    for c in range(n):
        out.t[c] = 0.0
        out.q[c] = q
    out.t[gold] = t
    out.t[rival] = -t
    out.which[0], out.which[1] = min(gold, rival), max(gold, rival)
    return margin, loss(margin, 1.0, q, params)


@decide.on(OneVsAll, object, object)
def _(out, gold, rule, loss, params, measured, g, rows, i):
    n = len(out.s)
    if measured:
        sqnorms(g, rows, i, out.q)
    for c in range(n):
        out.t[c] = rule(out.s[c], 1.0 if c == gold else -1.0, out.q[c], params)
    margin = out.s[gold] - out.s[best_rival(out.s, gold)]
    return margin, loss(out.s[gold], 1.0, out.q[gold], params)


@decide.on(Softmax, object, object)
def _(out, gold, rule, loss, params, measured, g, rows, i):
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

"""Stabilizers: which of the hypotheses met on the way is handed out in the end.

A hypothesis counts once for every example it is in force after, so the first c of them sum to what the
averaged perceptron of Freund & Schapire (1999) and Collins (2002) sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.rows import dot, opinion
from onlearn.spelling import Family, choice
from onlearn.verbs import (
    Ledger,
    Numbers,
    Outputs,
    Weights,
    clock,
    fold,
    handed,
    live,
    note,
    rescale,
    scale,
    tick,
    weigh,
)

STABILIZERS = Family("stabilizer")


@choice(STABILIZERS, "last")
class Last:
    """The last hypothesis, as it is."""

    def start(self, w, outputs):
        return Newest(np.zeros(1))


class Newest(NamedTuple):
    nothing: Numbers


@opinion.on(Newest, object, object)
def _(st, g, rows, i, raw, outputs, c):
    return raw * scale(g, c)


@choice(STABILIZERS, "averaged")
class Averaged:
    """The mean of all hypotheses, each weighted by the number of examples it lived through.

    A change d of a stored weight at clock S is missing from all hypotheses before it: with u the sum of all
    d S, the sum of the hypotheses is S_now v - u, for any geometry, at no cost for weights that do not change.
    """

    def start(self, w, outputs):
        return Mean(np.zeros(w.size), np.zeros(outputs), np.zeros(1))


class Mean(NamedTuple):
    u: Weights
    clock: Outputs
    seen: Numbers


@clock.on(Mean)
def _(st, c):
    return st.clock[c]


@note.on(Mean)
def _(st, j, change, at):
    st.u[j] += change * at


@tick.on(Mean, object)
def _(st, g):
    for c in range(len(st.clock)):
        st.clock[c] += scale(g, c)
    st.seen[0] += 1.0


@fold.on(Mean, object)
def _(st, g):
    outputs = len(st.clock)
    for j in range(len(st.u)):
        st.u[j] -= st.clock[j % outputs] * g.w[j]
    st.clock[:] = 0.0


@handed.on(Mean, object)
def _(st, g, j, c):
    v = weigh(g, st, j)  # first, for it may change u
    return (st.clock[c] * v - st.u[j]) / st.seen[0] if st.seen[0] > 0.0 else scale(g, c) * v


@opinion.on(Mean, object, object)
def _(st, g, rows, i, raw, outputs, c):
    if st.seen[0] == 0.0:
        return raw * scale(g, c)
    return (st.clock[c] * raw - dot(rows, i, st.u, outputs, c)) / st.seen[0]


@choice(STABILIZERS, "survivor")
class Survivor:
    """The hypothesis with the longest run of examples without a mistake."""

    def start(self, w, outputs):
        return Longest(w.copy(), np.zeros(outputs), np.zeros(2))


class Longest(NamedTuple):
    best: Weights
    outputs: Outputs  # its length counts them
    run: Numbers  # the present run, the longest run


@live.on(Longest, object)
def _(st, g, mistake, change):
    if not mistake:
        st.run[0] += 1.0
        return
    if st.run[0] > st.run[1]:
        outputs = len(st.outputs)
        for j in range(len(st.best)):
            st.best[j] = scale(g, j % outputs) * weigh(g, st, np.uint64(j))
        st.run[1] = st.run[0]
    st.run[0] = 0.0


@handed.on(Longest, object)
def _(st, g, j, c):
    return st.best[j] if st.run[1] > st.run[0] else scale(g, c) * weigh(g, st, j)


@opinion.on(Longest, object, object)
def _(st, g, rows, i, raw, outputs, c):
    return dot(rows, i, st.best, outputs, c) if st.run[1] > st.run[0] else raw * scale(g, c)


@choice(STABILIZERS, "voted")
class Voted:
    """All hypotheses, each with as many votes as the examples it lived through: sum of c_i sgn(v_i x).

    A hypothesis is kept as what changed since the one before it, so all of them take the space of the
    examples learned from. Prediction walks through them.
    """

    every_hypothesis = True

    def start(self, w, outputs):
        return Electorate(
            w.copy(),
            np.zeros(0, np.int64),
            np.zeros(0),
            np.zeros(2, np.int64),
            np.zeros(1),
            np.ones(outputs),
            np.zeros(outputs),
            np.zeros(2, np.int64),
        )

    def make_room(self, st, changes, hypotheses):
        """Room for so many more changes and hypotheses; the loop itself never asks."""

        def longer(array, size):
            return np.concatenate([array, np.zeros(max(size - array.size, 0), array.dtype)])

        size, count = st.at.size, st.votes.size
        if st.used[0] + changes > size:
            size = int(max(1.5 * size, st.used[0] + changes))
        if st.used[1] + hypotheses >= count:
            count = int(max(1.5 * count, st.used[1] + hypotheses + 1))
        return st._replace(
            at=longer(st.at, size),
            change=longer(st.change, size),
            start=longer(st.start, count + 1),
            votes=longer(st.votes, count),
            scales=longer(st.scales, count * st.outputs.size),
        )


class Electorate(NamedTuple):
    base: Weights  # the first hypothesis, in stored weights
    at: Ledger  # which weight changed
    change: Ledger  # by how much
    start: Ledger  # where the changes of a hypothesis begin
    votes: Ledger
    scales: Ledger  # of each output, for each hypothesis
    outputs: Outputs  # its length counts them
    used: Numbers  # changes, index of the present hypothesis


@note.on(Electorate)
def _(st, j, change, at):
    st.at[st.used[0]] = j
    st.change[st.used[0]] = change
    st.used[0] += 1


@live.on(Electorate, object)
def _(st, g, mistake, change):
    if change:
        st.used[1] += 1
        st.start[st.used[1]] = st.used[0]


@tick.on(Electorate, object)
def _(st, g):
    outputs = len(st.outputs)
    st.votes[st.used[1]] += 1.0
    for c in range(outputs):
        st.scales[st.used[1] * outputs + c] = scale(g, c)


@rescale.on(Electorate)
def _(st, c, factor):
    outputs = len(st.outputs)
    for j in range(c, len(st.base), outputs):
        st.base[j] *= factor
    for n in range(st.used[0]):
        if st.at[n] % outputs == c:
            st.change[n] *= factor
    for h in range(st.used[1] + 1):
        st.scales[h * outputs + c] /= factor


@opinion.on(Electorate, object, object)
def _(st, g, rows, i, raw, outputs, c):
    return raw * scale(g, c)

"""Stabilizers: which of the hypotheses met on the way is handed out in the end.

A hypothesis counts once for every example it is in force after, so the first c of them sum to what the
averaged perceptron of Freund & Schapire (1999) and Collins (2002) sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import borrow, give_back, prefetch
from onlearn.compiler.inlining import helper
from onlearn.engine import protocol
from onlearn.engine.protocol import (
    Ledger,
    Numbers,
    Outputs,
    Weights,
    clock,
    expect,
    fold,
    handed,
    live,
    note,
    rescale,
    scale,
    tick,
    truncates,
    weigh,
)
from onlearn.engine.rows import ONE, add_products, column, dot, one_opinion, opinion, span
from onlearn.engine.spec import choice, param

STABILIZERS = protocol.STABILIZERS
HEAVY = 2.0**100  # a hypothesis' weight in a fading average, beyond which all weights are divided by it, exactly


def _scales(g: Any, outputs: int) -> np.ndarray:
    return np.array([scale(g, c) for c in range(outputs)])


@choice(STABILIZERS, "last")
class Last:
    """The last hypothesis, as it is."""

    unmixed = None

    def start(self, w, outputs):
        return LastState(np.zeros(1))


class LastState(NamedTuple):
    nothing: Numbers


@one_opinion.on(LastState, object, object)
def _(st, g, rows, i, theta, raw):
    return raw * scale(g, 0) - theta


@opinion.on(LastState, object, object)
def _(st, g, rows, i, theta, s):
    for c in range(len(s)):
        s[c] = s[c] * scale(g, c) - theta


@choice(STABILIZERS, "averaged")
class Averaged:
    """The mean of all hypotheses, each weighted by the number of examples it lived through.

    A change d of a stored weight at clock S is missing from all hypotheses before it: with u the sum of all
    d S, the sum of the hypotheses is S_now v - u, for any geometry, at no cost for weights that do not change.

    The mean of a weight is hardly ever zero. Under l1 those that are zero in the last hypothesis are so in what is
    handed out: it has the features of the one, and their mean weights.

    With a window the past fades: the hypothesis after an example weighs 1 - 1/window of the one after the next. So each
    example adds more to the clock than the one before.
    """

    window: float | None = param(
        None, "about how many of the latest hypotheses the mean is of; None: all of them", at_least=2, words=(None,)
    )

    @property
    def fades(self):
        return self.window is not None

    @property
    def unmixed(self):
        return "its window is of the latest examples in one sequence" if self.fades else None

    def start(self, w, outputs):
        if self.fades:
            pace = np.array([1.0, 1.0 / (1.0 - 1.0 / self.window)])
            return FadingState(np.zeros(w.size), np.zeros(outputs), np.zeros(1), pace)
        return AveragedState(np.zeros(w.size), np.zeros(outputs), np.zeros(1))

    def mend(self, st, g, new):
        """After growth: what is new (a mask of outputs by feature) was there all along, at its present weight."""
        st.clock[new.all(axis=0)] = st.clock[0]
        v, scales = g.w.reshape(new.shape), _scales(g, new.shape[1])
        st.u.reshape(new.shape)[new] = ((st.clock - st.seen[0] * scales) * v)[new]
        return st

    def age(self, before, after):
        return np.append(after.clock - before.clock, after.seen - before.seen)

    def surplus(self, before, after, places, change):
        """With S' v' - u' and S v - u the sums of the hypotheses, their difference is (S' - S) v and this."""
        return after.clock[places % len(after.clock)] * change - (after.u[places] - before.u[places])

    def end_round(self, state, places, change, surplus, age):
        state.clock[:] += age[:-1]
        state.seen[:] += age[-1:]
        state.u[places] += state.clock[places % len(state.clock)] * change - surplus


class AveragedState(NamedTuple):
    u: Weights
    clock: Outputs
    seen: Numbers


class FadingState(NamedTuple):
    u: Weights
    clock: Outputs
    seen: Numbers  # the sum of the weights of all hypotheses
    pace: Numbers  # the weight of the next hypothesis, and how many times that of the one before it is


@clock.on(FadingState)
@clock.on(AveragedState)
def _(st, c):
    return st.clock[c]


@note.on(FadingState)
@note.on(AveragedState)
def _(st, j, change, at):
    st.u[j] += change * at


@expect.on(object, FadingState)
@expect.on(object, AveragedState)
def _(g, st, j):
    prefetch(st.u, j)


@tick.on(AveragedState, object)
def _(st, g):
    for c in range(len(st.clock)):
        st.clock[c] += scale(g, c)
    st.seen[0] += 1.0


@tick.on(FadingState, object)
def _(st, g):
    for c in range(len(st.clock)):
        st.clock[c] += scale(g, c) * st.pace[0]
    st.seen[0] += st.pace[0]
    st.pace[0] *= st.pace[1]
    if st.pace[0] > HEAVY:
        for j in range(len(st.u)):
            st.u[j] /= HEAVY
        for c in range(len(st.clock)):
            st.clock[c] /= HEAVY
        st.seen[0] /= HEAVY
        st.pace[0] /= HEAVY


@fold.on(FadingState, object)
@fold.on(AveragedState, object)
def _(st, g):
    outputs = len(st.clock)
    for j in range(len(st.u)):
        st.u[j] -= st.clock[j % outputs] * g.w[j]
    for c in range(outputs):
        st.clock[c] = 0.0


@handed.on(FadingState, object)
@handed.on(AveragedState, object)
def _(st, g, j, c):
    v = weigh(g, st, j)  # first, for it may change u
    mean = (st.clock[c] * v - st.u[j]) / st.seen[0] if st.seen[0] > 0.0 else scale(g, c) * v
    return 0.0 if truncates(g, j) and v == 0.0 else mean


@helper
def left_out(st: Any, g: Any, rows: Any, i: int, outputs: int, c: int) -> float:
    """The part of the sum of row i times u that belongs to weights which are handed out as zero, for output c."""
    start, stop = span(rows, i)
    count, total = np.uint64(outputs), 0.0
    for p in range(start, stop):
        j = (column(rows, p, start) + ONE) * count + np.uint64(c)
        v = weigh(g, st, j)
        total += rows.data[p] * st.u[j] if truncates(g, j) and v == 0.0 else 0.0
    return total


@one_opinion.on(FadingState, object, object)
@one_opinion.on(AveragedState, object, object)
def _(st, g, rows, i, theta, raw):
    s = raw * scale(g, 0)
    if st.seen[0] > 0.0:
        s = (st.clock[0] * raw - (dot(rows, i, st.u, 1, 0) - left_out(st, g, rows, i, 1, 0))) / st.seen[0]
    return s - theta


@opinion.on(FadingState, object, object)
@opinion.on(AveragedState, object, object)
def _(st, g, rows, i, theta, s):
    if st.seen[0] == 0.0:
        for c in range(len(s)):
            s[c] = s[c] * scale(g, c) - theta
    else:
        for c in range(len(s)):
            s[c] = rows.bias * st.u[c] - st.clock[c] * s[c]
        add_products(rows, i, st.u, ONE, s)  # all outputs in one walk
        for c in range(len(s)):
            s[c] = -(s[c] - left_out(st, g, rows, i, len(s), c)) / st.seen[0] - theta


@choice(STABILIZERS, "survivor")
class Survivor:
    """The hypothesis with the longest run of examples without a mistake."""

    def start(self, w, outputs):
        return SurvivorState(w.copy(), np.zeros(outputs), np.zeros(2))

    def mend(self, st, g, new):
        st.best.reshape(new.shape)[new] = (_scales(g, new.shape[1]) * g.w.reshape(new.shape))[new]
        return st


class SurvivorState(NamedTuple):
    best: Weights
    outputs: Outputs  # its length counts them
    run: Numbers  # the present run, the longest run


@live.on(SurvivorState, object)
def _(st, g, mistake, change):
    if mistake and st.run[0] > st.run[1]:
        outputs = len(st.outputs)
        for j in range(len(st.best)):
            st.best[j] = scale(g, j % outputs) * weigh(g, st, np.uint64(j))
        st.run[1] = st.run[0]
    st.run[0] = 0.0 if mistake else st.run[0] + 1.0


@handed.on(SurvivorState, object)
def _(st, g, j, c):
    return st.best[j] if st.run[1] > st.run[0] else scale(g, c) * weigh(g, st, j)


@one_opinion.on(SurvivorState, object, object)
def _(st, g, rows, i, theta, raw):
    s = raw * scale(g, 0)
    if st.run[1] > st.run[0]:
        s = dot(rows, i, st.best, 1, 0)
    return s - theta


@opinion.on(SurvivorState, object, object)
def _(st, g, rows, i, theta, s):
    for c in range(len(s)):
        s[c] = (dot(rows, i, st.best, len(s), c) if st.run[1] > st.run[0] else s[c] * scale(g, c)) - theta


@choice(STABILIZERS, "voted")
class Voted:
    """All hypotheses, each with as many votes as the examples it lived through: sum of c_i sgn(v_i x).

    A hypothesis is kept as what changed since the one before it, so all of them take the space of the
    examples learned from. Prediction walks through them.
    """

    every_hypothesis = True

    def start(self, w, outputs):
        return VotedState(
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

    def mend(self, st, g, new):
        """After growth: places are counted anew, and past hypotheses have the new outputs' present scale."""
        outputs = new.shape[1]
        before = outputs - np.count_nonzero(new.all(axis=0))
        scales = np.tile(_scales(g, outputs), (st.votes.size, 1))
        scales[:, :before] = st.scales.reshape(-1, before)
        st.base.reshape(new.shape)[new] = g.w.reshape(new.shape)[new]
        return st._replace(at=st.at // before * outputs + st.at % before, scales=scales.reshape(-1))

    def sound(self, st):
        """Whether a state read from a file keeps within its own arrays."""
        used, present = (int(n) for n in st.used)
        outputs, weights = st.outputs.size, st.base.size
        roomy = (
            st.at.size == st.change.size >= used >= 0 and st.start.size > present + 1 and st.votes.size > present >= 0
        )
        if not roomy or st.scales.size < (present + 1) * outputs:
            return False
        inside = not used or (st.at[:used].min() >= 0 and st.at[:used].max() < weights)
        starts = st.start[: present + 1]
        return bool(inside and starts.min() >= 0 and starts.max() <= used and (np.diff(starts) >= 0).all())


class VotedState(NamedTuple):
    base: Weights  # the first hypothesis, in stored weights
    at: Ledger  # which weight changed
    change: Ledger  # by how much
    start: Ledger  # where the changes of a hypothesis begin
    votes: Ledger
    scales: Ledger  # of each output, for each hypothesis
    outputs: Outputs  # its length counts them
    used: Numbers  # changes, index of the present hypothesis


@note.on(VotedState)
def _(st, j, change, at):
    st.at[st.used[0]] = j
    st.change[st.used[0]] = change
    st.used[0] += 1


@live.on(VotedState, object)
def _(st, g, mistake, change):
    if change:
        st.used[1] += 1
        st.start[st.used[1]] = st.used[0]


@tick.on(VotedState, object)
def _(st, g):
    outputs = len(st.outputs)
    st.votes[st.used[1]] += 1.0
    for c in range(outputs):
        st.scales[st.used[1] * outputs + c] = scale(g, c)


@rescale.on(VotedState)
def _(st, c, factor):
    outputs = len(st.outputs)
    for j in range(c, len(st.base), outputs):
        st.base[j] *= factor
    for n in range(st.used[0]):
        if st.at[n] % outputs == c:
            st.change[n] *= factor
    for h in range(st.used[1] + 1):
        st.scales[h * outputs + c] /= factor


@one_opinion.on(VotedState, object, object)
def _(st, g, rows, i, theta, raw):
    room = borrow(len(st.base) + 2)
    cast_votes(st, rows, i, theta, room[2:], room[1:2], room[:1])
    share = room[0]
    give_back(room)
    return share


@opinion.on(VotedState, object, object)
def _(st, g, rows, i, theta, s):
    room = borrow(len(st.base) // len(s) + len(s))
    cast_votes(st, rows, i, theta, room[len(s) :], room[: len(s)], s)
    give_back(room)


@helper
def cast_votes(st: Any, rows: Any, i: int, theta: float, x: np.ndarray, s: np.ndarray, out: np.ndarray) -> None:
    """Each hypothesis votes for the output it predicts; out[c] is the part of the votes that c got.

    With one output: the votes for it less those against it. ``x`` must be zero, and is again afterwards.
    """
    start, stop = span(rows, i)
    outputs, present = len(out), st.used[1]
    x[0] = rows.bias
    for p in range(start, stop):
        x[column(rows, p, start) + ONE] = rows.data[p]
    for c in range(outputs):
        s[c] = dot(rows, i, st.base, outputs, c)
        out[c] = 0.0
    total = 0.0
    for h in range(present + 1):
        if h > 0:
            for n in range(st.start[h], st.start[h + 1] if h < present else st.used[0]):
                s[st.at[n] % outputs] += st.change[n] * x[st.at[n] // outputs]
        total += st.votes[h]
        if outputs == 1:
            out[0] += st.votes[h] if s[0] * st.scales[h] > theta else -st.votes[h]
        else:
            best = 0
            for c in range(1, outputs):
                if s[c] * st.scales[h * outputs + c] > s[best] * st.scales[h * outputs + best]:
                    best = c
            out[best] += st.votes[h]
    for c in range(outputs):
        out[c] /= max(total, 1.0)
    for p in range(start, stop):
        x[column(rows, p, start) + ONE] = 0.0

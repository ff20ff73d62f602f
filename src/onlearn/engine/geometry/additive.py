"""Additive: w += r_t t x. Perceptron, passive-aggressive and gradient descent live here.

With l1 or l2 every example is followed by the proximal step of the penalty (the intercept's weight,
which is output c's coordinate of feature 0, is free of it). With G the sum of a weight's steps and Q that of its
penalties,

    Q += r_t l1;    (G, Q) <- (G, Q) / (1 + r_t l2);    w = soft(G, Q) = sign(G) max(0, |G| - Q)

which unlike the plain gradient step never overshoots zero, however large the rate, and under l1 gives weights that are
exactly zero (see ``penalties``). It costs nothing for the weights that an example does not touch.

l2 shrinks all weights by one factor, so weights are stored as v with w = M v and only M shrinks.

l1 takes the same amount off every |w|; in the units of v their sum, Q, only grows. A weight that was
last up to date at example a is brought to the present by taking Q_now - Q_a off |v|, down to zero: it is
late, not approximate. Averaging needs to know *when* the weight reached zero, so the past values of Q are
kept, and the moment is found by bisection; the idea is that of Lipton & Elkan (2015), the space is bounded
by bringing every weight up to date whenever the history is full.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import helper
from onlearn.engine.geometry.penalties import ZEROS, against_penalty
from onlearn.engine.protocol import (
    FASTEST,
    GEOMETRIES,
    LARGEST,
    Ledger,
    Numbers,
    Outputs,
    Weights,
    catch_up,
    clock,
    fold,
    move,
    note,
    rate_at,
    scale,
    settle,
    stride,
    truncates,
)
from onlearn.engine.spec import choice, param

POWERS = {"constant": 0.0, "1/sqrt(t)": 0.5, "1/(lambda t)": 1.0}


@choice(GEOMETRIES, "additive")
class Additive:
    """w += r_t t x, with r_t = rate, rate/sqrt(t) or rate/(l2 t), and l1 and l2 penalties."""

    rate: float = param(1.0, "learning rate", above=0, below=FASTEST)
    schedule: str = param("constant", "how the rate falls with the examples seen", words=tuple(POWERS))
    l1: float = param(0.0, "weight of |w|_1 in the objective (lasso)", at_least=0)
    l2: float = param(0.0, "weight of |w|_2^2 / 2 in the objective (ridge, SVM)", at_least=0)

    signed = True

    def check(self):
        if self.schedule == "1/(lambda t)" and not self.l2:
            raise ValueError('additive: the schedule "1/(lambda t)" needs l2 above 0, its lambda')
        if self.schedule == "1/(lambda t)" and not self.rate < FASTEST * self.l2:
            raise ValueError(
                f"additive: l2 = {self.l2:g} is so small that the rate, {self.rate:g}/(l2 t), has no bounds"
            )

    @property
    def drifts(self):
        return bool(self.l1 or self.l2)

    @property
    def lazy(self):
        return bool(self.l1)

    @property
    def penalties(self):
        return self.l1, self.l2

    @property
    def unmixed(self):
        return ZEROS if self.l1 else None

    def start(self, features, outputs):
        w, steps = np.zeros(features * outputs), np.zeros(1)
        rate = self.rate / self.l2 if self.schedule == "1/(lambda t)" else self.rate
        knobs = np.array([rate, POWERS[self.schedule], self.l1, self.l2])
        if self.l1:
            last = np.zeros(w.size, dtype=np.int64)
            last[:outputs] = -1  # the intercept is never truncated
            now, past = np.zeros(1, np.int64), np.zeros((3, history_length(w.size)))
            return TruncatedState(w, w.copy(), last, np.ones(1), steps, knobs, now, *past, np.zeros(outputs))
        if self.l2:
            return DecayedState(w, np.ones(1), steps, knobs, np.zeros(outputs))
        return AdditiveState(w, steps, knobs)

    def keep_rates(self, state, fresh):
        """The rate falls on, and a weight that is zero under l1 stays so as long as one that was learned would."""
        fresh.steps[:] = state.steps
        if self.l1:
            fresh.q[0] = state.q[state.now[0]] * state.m[0]

    def begin_shard(self, state, shards):
        """Under a rate of r/sqrt(t), r is for the distance to go: as with AdaGrad, it grows by the root of the shards.

        A constant rate is at most what is stable, whatever the number of shards; and 1/(lambda t) has none to choose.
        """
        if self.schedule == "1/sqrt(t)":
            state.knobs[0] *= math.sqrt(shards)

    def end_round(self, state, examples, scale):
        state.steps[0] += examples
        if self.l2:
            state.m[0] = scale[0]

    def sound(self, state):
        """Whether a state read from a file keeps within its own arrays."""
        if not self.l1:
            return True
        now = state.now[0]
        lengths = {state.q.size, state.taken.size, state.at.size}
        return len(lengths) == 1 and 0 <= now < state.q.size - 1 and (state.last <= now).all()


class AdditiveState(NamedTuple):
    w: Weights
    steps: Numbers
    knobs: Numbers  # rate, power of t


@stride.on(AdditiveState)
def _(g, t, c):
    return t * rate_at(g)


@move.on(AdditiveState)
def _(g, j, x, t, sqnorm):
    change = min(max(t * x, -LARGEST), LARGEST)
    g.w[j] += change
    return change


@settle.on(AdditiveState, object)
def _(g, st):
    g.steps[0] += 1.0


# ----------------------------------------------------------------------------------------------------
# Weights under l1 and l2.


SMALLEST = 1e-6  # of M: beyond it the average would lose digits to cancellation


def history_length(weights: int) -> int:
    """Long enough that bringing all weights up to date costs O(1) an example."""
    return int(min(max(weights, 1 << 12), 1 << 20))


class DecayedState(NamedTuple):
    w: Weights  # v, in units of M
    m: Numbers  # M
    steps: Numbers
    knobs: Numbers  # rate, power of t, l1, l2
    free: Outputs  # its length counts the weights without penalty


class TruncatedState(NamedTuple):
    w: Weights  # v, in units of M
    held: Weights  # the sum of the steps of a weight that is zero, in units of M
    last: Weights  # the place in the history up to which a weight is up to date; -1: always
    m: Numbers
    steps: Numbers
    knobs: Numbers
    now: Numbers  # the place in the history
    q: Ledger  # Q, in units of M: what would have been taken off |v| in all
    taken: Ledger  # the sum of each such amount times the clock when it was taken
    at: Ledger  # the clock when it was taken
    free: Outputs


@helper
def shrink(g: Any, st: Any) -> None:
    """M /= 1 + r l2, and the weights without penalty keep their size."""
    factor = 1.0 + rate_at(g) * g.knobs[3]
    g.m[0] /= factor
    for c in range(len(g.free)):
        change = g.w[c] * factor - g.w[c]
        g.w[c] += change
        note(st, np.uint64(c), change, clock(st, c))


@helper
def restart(g: Any, st: Any) -> None:
    """M = 1 again."""
    fold(st, g)
    for j in range(len(g.w)):
        g.w[j] *= g.m[0]
    g.m[0] = 1.0


@scale.on(TruncatedState)
@scale.on(DecayedState)
def _(g, c):
    return g.m[0]


@stride.on(TruncatedState)
@stride.on(DecayedState)
def _(g, t, c):
    return t * rate_at(g) / g.m[0]


@move.on(DecayedState)
def _(g, j, x, t, sqnorm):
    change = min(max(t * x, -LARGEST), LARGEST)
    g.w[j] += change
    return change


@move.on(TruncatedState)
def _(g, j, x, t, sqnorm):
    change = min(max(t * x, -LARGEST), LARGEST)
    if g.last[j] >= 0 and change != 0.0:
        change = against_penalty(g.held, j, g.w[j], change, g.q[g.now[0]])
    g.w[j] += change
    return change


@truncates.on(TruncatedState)
def _(g, j):
    return g.last[j] >= 0


@settle.on(DecayedState, object)
def _(g, st):
    shrink(g, st)
    g.steps[0] += 1.0
    if g.m[0] < SMALLEST:
        restart(g, st)


@catch_up.on(TruncatedState, object)
def _(g, st, j):
    last, now = g.last[j], g.now[0]
    if last >= 0 and last != now:
        truncate(g, st, j, last, now)


@helper
def truncate(g: Any, st: Any, j: int, last: int, now: int) -> None:
    """Take off weight j what was due between two places of the history."""
    g.last[j] = now
    v = g.w[j]
    sign, size, start = 1.0 if v > 0.0 else -1.0, abs(v), g.q[last]
    if size > g.q[now] - start:
        g.w[j] = v - sign * (g.q[now] - start)
        note(st, j, -sign * (g.taken[now] - g.taken[last]), 1.0)
    elif size > 0.0:
        low, high = last, now  # the first place with size <= q - start is in (low, high]
        while high - low > 1:
            middle = (low + high) // 2
            if size > g.q[middle] - start:
                low = middle
            else:
                high = middle
        rest = size - (g.q[low] - start)
        g.held[j] = sign * (size + start)
        g.w[j] = 0.0
        note(st, j, -sign * (g.taken[low] - g.taken[last] + rest * g.at[high]), 1.0)


@settle.on(TruncatedState, object)
def _(g, st):
    at, now = clock(st, 0), g.now[0]
    due = rate_at(g) * g.knobs[2] / g.m[0]
    g.q[now + 1] = g.q[now] + due
    g.taken[now + 1] = g.taken[now] + due * at
    g.at[now + 1] = at
    g.now[0] = now + 1
    shrink(g, st)
    g.steps[0] += 1.0
    if g.m[0] < SMALLEST or now + 2 == len(g.q):
        for j in range(len(g.w)):
            catch_up(g, st, np.uint64(j))
            g.last[j] = min(g.last[j], 0)
            g.held[j] *= g.m[0]
        g.q[0] = g.q[now + 1] * g.m[0]
        restart(g, st)
        g.now[0] = 0

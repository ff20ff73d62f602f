"""AdaGrad (Duchi, Hazan & Singer 2011): per-feature rate r / sqrt(G), G the sum of squared gradients so far.

With l1 or l2 each example is followed by the proximal step of the composite update, feature by feature
with the feature's own rate (the intercept is free of it). With S the sum of a weight's steps and Q that of its
penalties,

    Q += r l1 / sqrt(G);    (S, Q) <- (S, Q) / (1 + r l2 / sqrt(G));    w = soft(S, Q)

so that under l1 weights are exactly zero (see ``penalties``). A feature's rate changes only when an example holds the
feature. Between two such examples the step is one affine map repeated, so m of them, and the sum of the weights they
pass through, have a closed form.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import scratch
from onlearn.compiler.inlining import helper
from onlearn.engine.geometry.penalties import ZEROS, against_penalty
from onlearn.engine.protocol import (
    FASTEST,
    GEOMETRIES,
    LARGEST,
    Numbers,
    Outputs,
    Weights,
    catch_up,
    clock,
    move,
    note,
    settle,
    truncates,
)
from onlearn.engine.rows import ONE, Sparse, span, step
from onlearn.engine.spec import choice, param

SOME, FEW = np.uint64(64), np.uint64(16)  # weights that are moved together, if there are more than a few
ASIDE = 2 * 64  # numbers put aside for them


@choice(GEOMETRIES, "adagrad")
class AdaGrad:
    """w += r t x / sqrt(G): rare features keep a large rate."""

    rate: float = param(1.0, "learning rate", above=0, below=FASTEST)
    l1: float = param(0.0, "weight of |w|_1 in the objective", at_least=0)
    l2: float = param(0.0, "weight of |w|_2^2 / 2 in the objective", at_least=0)

    signed = True
    evidence = "squares"

    @property
    def unmixed(self):
        return ZEROS if self.l1 else None

    @property
    def drifts(self):
        return bool(self.l1 or self.l2)

    @property
    def lazy(self):
        return self.drifts

    @property
    def penalties(self):
        return self.l1, self.l2

    def start(self, features, outputs):
        w = np.zeros(features * outputs)
        if not self.drifts:
            return AdaGradState(w, w.copy(), np.array([self.rate]))
        knobs = np.array([self.rate, self.l1, self.l2])
        if self.l1:
            zeros, free = (w.copy() for _ in range(4)), np.zeros(outputs)
            return TruncatedAdaGradState(w, *zeros, np.zeros(1), free, knobs)
        return PenalisedAdaGradState(w, w.copy(), np.zeros(w.size), np.zeros(1), np.zeros(outputs), knobs)

    def keep_rates(self, state, fresh):
        """A weight that never made a step, but begins elsewhere than at zero, takes for granted one of size 1."""
        fresh.squares[:] = np.where((state.squares == 0.0) & (fresh.w != 0.0), 1.0, state.squares)
        if self.l1:
            fresh.most[:] = state.most

    def begin_shard(self, state, shards):
        """r grows by the root of the shards: so do the steps that one learner of all rows makes of their mean gradient.

        The mean of S gradients that differ by chance has a square of about g^2 / S, and r / sqrt(G / S) is
        r sqrt(S) / sqrt(G), with G that of one shard.
        """
        state.knobs[0] *= math.sqrt(shards)

    def end_round(self, state, examples, scale):
        if self.drifts:  # the weights were up to date when they were mixed
            state.steps[0] += examples
            state.last[:] = state.steps[0]


class AdaGradState(NamedTuple):
    w: Weights
    squares: Weights
    knobs: Numbers  # rate


class PenalisedAdaGradState(NamedTuple):
    w: Weights
    squares: Weights
    last: Weights  # the number of examples up to which a weight is up to date
    steps: Numbers  # examples so far
    free: Outputs  # its length counts the weights without penalty
    knobs: Numbers  # rate, l1, l2


class TruncatedAdaGradState(NamedTuple):
    w: Weights
    held: Weights  # the sum of the steps of a weight that is zero
    most: Weights  # Q, the sum of the l1 penalties
    squares: Weights
    last: Weights
    steps: Numbers
    free: Outputs
    knobs: Numbers


@move.on(PenalisedAdaGradState)
@move.on(AdaGradState)
def _(g, j, x, t, sqnorm):
    gradient = min(max(t * x, -LARGEST), LARGEST)
    g.squares[j] += gradient * gradient
    change = g.knobs[0] * gradient / np.sqrt(g.squares[j]) if g.squares[j] > 0.0 else 0.0
    g.w[j] += change
    return change


@move.on(TruncatedAdaGradState)
def _(g, j, x, t, sqnorm):
    gradient = min(max(t * x, -LARGEST), LARGEST)
    g.squares[j] += gradient * gradient
    change = g.knobs[0] * gradient / np.sqrt(g.squares[j]) if g.squares[j] > 0.0 else 0.0
    if j >= len(g.free) and change != 0.0:
        change = against_penalty(g.held, j, g.w[j], change, g.most[j])
    g.w[j] += change
    return change


@truncates.on(TruncatedAdaGradState)
def _(g, j):
    return j >= len(g.free)


@step.on(Sparse, AdaGradState, object)
def _(rows, i, g, st, t, q):
    """Some weights at a time, all of them different: so roots and quotients are taken in vectors, in half the time."""
    aside = scratch(ASIDE)
    p, stop = span(rows, i)
    at, rate = clock(st, 0), g.knobs[0]
    if rows.bias != 0.0:
        note(st, np.uint64(0), move(g, np.uint64(0), rows.bias, t, q), at)
    while stop - p >= FEW:
        some = min(stop - p, SOME)
        for k in range(some):
            aside[k] = g.squares[np.uint64(rows.indices[p + k]) + ONE]
        for k in range(some):
            gradient = min(max(t * np.float64(rows.data[p + k]), -LARGEST), LARGEST)
            squares = aside[k] + gradient * gradient
            aside[k] = squares
            aside[k + SOME] = rate * gradient / np.sqrt(squares) if squares > 0.0 else 0.0
        for k in range(some):
            j = np.uint64(rows.indices[p + k]) + ONE
            g.squares[j] = aside[k]
            g.w[j] += aside[k + SOME]
            note(st, j, aside[k + SOME], at)
        p += some
    for k in range(p, stop):
        j = np.uint64(rows.indices[k]) + ONE
        note(st, j, move(g, j, np.float64(rows.data[k]), t, q), at)


@settle.on(TruncatedAdaGradState, object)
@settle.on(PenalisedAdaGradState, object)
def _(g, st):
    g.steps[0] += 1.0


@catch_up.on(PenalisedAdaGradState, object)
def _(g, st, j):
    if j >= len(g.free) and g.last[j] != g.steps[0]:
        shrink(g, st, j, g.steps[0] - g.last[j], clock(st, 0))
        g.last[j] = g.steps[0]


@catch_up.on(TruncatedAdaGradState, object)
def _(g, st, j):
    if j >= len(g.free) and g.last[j] != g.steps[0]:
        m, most, before = g.steps[0] - g.last[j], g.most[j], g.w[j]
        whole = g.held[j] if before == 0.0 else before + most if before > 0.0 else before - most
        rate = g.knobs[0] / np.sqrt(g.squares[j]) if g.squares[j] > 0.0 else 0.0
        factor = 1.0 / (1.0 + rate * g.knobs[2])
        shrink(g, st, j, m, clock(st, 0))
        if g.w[j] == 0.0:
            g.held[j] = whole * (1.0 if factor == 1.0 else np.exp(m * np.log(factor)))
        g.most[j] = repeated(most, -rate * g.knobs[1], factor, m)
        g.last[j] = g.steps[0]


@helper
def shrink(g: Any, st: Any, j: int, m: float, at: float) -> None:
    """Make the m proximal steps that are due; ``at`` is the clock now, and it went by one a step."""
    w = abs(g.w[j])
    if w > 0.0:
        rate = g.knobs[0] / np.sqrt(g.squares[j]) if g.squares[j] > 0.0 else 0.0
        take, factor = rate * g.knobs[1], 1.0 / (1.0 + rate * g.knobs[2])
        zero = steps_to_zero(w, take, factor)  # the first step after which the weight is zero
        end = repeated(w, take, factor, m) if m < zero else 0.0
        passed = sum_of_repeated(w, take, factor, min(m, zero) - 1.0)
        # the change at step i, times the clock then, summed by parts
        account = (at - m) * (end - w) + (m - 1.0) * end - passed
        sign = 1.0 if g.w[j] > 0.0 else -1.0
        note(st, j, sign * account, 1.0)
        g.w[j] = sign * end


@helper
def repeated(w: float, take: float, factor: float, m: float) -> float:
    """w <- (w - take) * factor, m times."""
    if factor == 1.0:
        after = w - m * take
    else:
        power = np.exp(m * np.log(factor))
        after = power * w - take * factor * (1.0 - power) / (1.0 - factor)
    return after


@helper
def sum_of_repeated(w: float, take: float, factor: float, m: float) -> float:
    """The sum of what w is after 1, 2, ... m such steps."""
    if factor == 1.0:
        total = m * w - take * m * (m + 1.0) / 2.0
    else:
        fixed = take * factor / (1.0 - factor)
        power = np.exp(m * np.log(factor))
        total = (w + fixed) * factor * (1.0 - power) / (1.0 - factor) - m * fixed
    return total


@helper
def steps_to_zero(w: float, take: float, factor: float) -> float:
    """The number of such steps that first brings w to zero or below."""
    guess = np.inf
    if take > 0.0:
        if factor == 1.0:
            guess = np.ceil(w / take)
        else:
            fixed = take * factor / (1.0 - factor)
            guess = np.ceil(np.log(fixed / (w + fixed)) / np.log(factor))
        # the logarithms may be off by rounding
        if guess > 1.0:
            before = repeated(w, take, factor, guess - 1.0)
            guess = guess - 1.0 if before <= 0.0 else guess
        after = repeated(w, take, factor, guess)
        guess = guess + 1.0 if after > 0.0 else guess
    return guess

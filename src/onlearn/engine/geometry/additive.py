"""Additive: w += r_t t x. Perceptron, passive-aggressive and gradient descent live here.

With l1 or l2 every example is followed by the proximal step of the penalty (the intercept's weight,
which is output c's coordinate of feature 0, is free of it):

    w <- soft(w, r_t l1) / (1 + r_t l2),     soft(w, a) = sign(w) max(0, |w| - a)

which unlike the plain gradient step never overshoots zero, however large the rate. See ``decay`` for how
it costs nothing for the weights an example does not touch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.engine.geometry.penalties import DecayedState, TruncatedState, history_length
from onlearn.engine.protocol import FASTEST, GEOMETRIES, LARGEST, Numbers, Weights, move, rate_at, settle, stride
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

    def start(self, features, outputs):
        w, steps = np.zeros(features * outputs), np.zeros(1)
        rate = self.rate / self.l2 if self.schedule == "1/(lambda t)" else self.rate
        knobs = np.array([rate, POWERS[self.schedule], self.l1, self.l2])
        if self.l1:
            last = np.zeros(w.size, dtype=np.int64)
            last[:outputs] = -1  # the intercept is never truncated
            past = np.zeros((3, history_length(w.size)))
            return TruncatedState(w, last, np.ones(1), steps, knobs, np.zeros(1, np.int64), *past, np.zeros(outputs))
        if self.l2:
            return DecayedState(w, np.ones(1), steps, knobs, np.zeros(outputs))
        return AdditiveState(w, steps, knobs)

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

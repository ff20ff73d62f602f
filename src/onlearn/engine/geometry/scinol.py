"""ScInOL (Kempka, Kotlowski & Warmuth 2019, their second algorithm): no learning rate, and no scale of features.

Each weight is a bet on the sign of its next gradient. With G the sum of the steps t x of a coordinate so far, S2 the
sum of their squares, M the largest |x|, the present one included, and the wealth eta, which starts at epsilon:

    theta = G / sqrt(S2 + M^2);   w = eta sign(theta) min(|theta|, 1) / (2 sqrt(S2 + M^2))
    eta += t x w;   G += t x;   S2 += (t x)^2

A feature that is multiplied by a number has its weight divided by it, so no score changes. An example is scored by the
weights that know how large its values are (``met``): one that is a million times larger than any before does no harm.
Examples without a step change nothing, M included: they have no part in the paper's bound either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import prefetch
from onlearn.compiler.inlining import helper
from onlearn.engine.protocol import FASTEST, GEOMETRIES, LARGEST, Weights, anticipate, met, move
from onlearn.engine.rows import ONE, add_products, column, dot, scores, span, stored_score, stored_scores
from onlearn.engine.spec import choice, param

LEAST = 1e-150  # wealth: of nothing, nothing could be bet any more


@choice(GEOMETRIES, "scinol")
class ScInOL:
    """Weights bet on their next gradient: no rate, and the scale of a feature does not matter."""

    epsilon: float = param(1.0, "the wealth that each weight starts with", above=0, below=FASTEST)

    def start(self, features, outputs):
        w = np.zeros(features * outputs)
        return ScInOLState(w, w.copy(), w.copy(), np.full(w.size, self.epsilon), w.copy())


class ScInOLState(NamedTuple):
    w: Weights
    gradients: Weights  # G
    squares: Weights  # S2
    wealth: Weights  # eta
    largest: Weights  # M


@helper
def bet(g: Any, j: int, largest: float) -> float:
    """The weight j, were M so large."""
    root = np.sqrt(g.squares[j] + largest * largest)
    w = 0.0
    if root > 0.0:
        w = g.wealth[j] * min(max(g.gradients[j] / root, -1.0), 1.0) / (2.0 * root)
    return min(max(w, -LARGEST), LARGEST)


@met.on(ScInOLState, object)
def _(g, st, j, x):
    return bet(g, j, min(abs(x), LARGEST)) if abs(x) > g.largest[j] else g.w[j]


@move.on(ScInOLState)
def _(g, j, x, t, sqnorm):
    before, gradient = g.w[j], min(max(t * x, -LARGEST), LARGEST)
    if gradient != 0.0:
        if abs(x) > g.largest[j]:
            g.largest[j] = min(abs(x), LARGEST)
            g.w[j] = bet(g, j, g.largest[j])
        # Since |x w| is at most half the wealth, so is the loss of a step of length 1, and no more than that is paid
        # for a longer one (of squared losses, or heavy examples), which could take it all.
        wealth = max(g.wealth[j] + gradient * g.w[j], g.wealth[j] / 2.0)
        g.wealth[j] = min(max(wealth, LEAST), LARGEST)
        g.gradients[j] += gradient
        g.squares[j] += gradient * gradient
        g.w[j] = bet(g, j, g.largest[j])
    return g.w[j] - before


@anticipate.on(ScInOLState)
def _(g, j):
    prefetch(g.gradients, j)
    prefetch(g.squares, j)
    prefetch(g.wealth, j)


@scores.on(object, ScInOLState, object)
def _(rows, i, g, st, out):
    """By the stored weights, four features at a time, unless a value is larger than any before."""
    outputs, larger = np.uint64(len(out)), False
    start, stop = span(rows, i)
    for p in range(start, stop):
        x, base = abs(np.float64(rows.data[p])), (column(rows, p, start) + ONE) * outputs
        for c in range(outputs):
            larger |= x > g.largest[base + c]
    for c in range(outputs):
        out[c] = rows.bias * met(g, st, c, rows.bias)
    if larger:
        for p in range(start, stop):
            x, base = np.float64(rows.data[p]), (column(rows, p, start) + ONE) * outputs
            for c in range(outputs):
                out[c] += x * met(g, st, base + c, x)
    else:
        add_products(rows, i, g.w, ONE, out)


@stored_score.on(ScInOLState, object)
def _(g, rows, i, s):
    return dot(rows, i, g.w, 1, 0)


@stored_scores.on(ScInOLState, object)
def _(g, rows, i, s):
    for c in range(len(s)):
        s[c] = dot(rows, i, g.w, len(s), c)

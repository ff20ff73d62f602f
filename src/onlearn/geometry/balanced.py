"""Balanced Winnow (Littlestone 1989): two positive weights a feature, w = w+ - w-, so w has either sign.

w+ *= alpha^(t x) and w- *= alpha^(-t x) from w+ = w- = 1 keep w+ w- = 1, so one exponent e a feature says
it all: w = alpha^e - alpha^-e.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.geometry.family import GEOMETRIES
from onlearn.geometry.winnow import HEAVIEST
from onlearn.spelling import choice, param
from onlearn.verbs import LARGEST, Numbers, Weights, move


@choice(GEOMETRIES, "balanced")
class BalancedWinnow:
    """w = w+ - w-, w+ *= alpha^(t x), w- *= alpha^(-t x)."""

    alpha: float = param(2.0, "promotion factor", above=1)
    threshold: float = param(0.0, "what the weighted sum is compared with")

    def start(self, features, outputs):
        w = np.zeros(features * outputs)
        limit = np.log(HEAVIEST) / np.log(self.alpha)
        return Balanced(w, w.copy(), np.array([self.alpha, limit]))

    def theta(self, state):
        return self.threshold


class Balanced(NamedTuple):
    w: Weights
    exponent: Weights
    knobs: Numbers  # alpha, largest exponent


@move.on(Balanced)
def _(g, j, x, t, sqnorm):
    before = g.w[j]
    e = min(max(g.exponent[j] + min(max(t * x, -LARGEST), LARGEST), -g.knobs[1]), g.knobs[1])
    up = g.knobs[0] ** e
    g.exponent[j] = e
    g.w[j] = up - 1.0 / up
    return g.w[j] - before

"""FTRL-Proximal (McMahan et al. 2013): follow the regularised leader, with exact zeros under l1.

With the gradient q = -t x of a coordinate:

    sigma = (sqrt(n + q^2) - sqrt(n)) / rate;   z += q - sigma w;   n += q^2
    w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / rate + l2)

The intercept's weight is free of l1 and l2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.engine.protocol import FASTEST, GEOMETRIES, LARGEST, Numbers, Outputs, Weights, move, truncates
from onlearn.engine.spec import choice, param


@choice(GEOMETRIES, "ftrl")
class FTRL:
    """Per-feature rates like AdaGrad's, and weights that l1 makes exactly zero."""

    rate: float = param(0.1, "alpha of the paper", above=0, below=FASTEST)
    beta: float = param(1.0, "smooths the first steps", at_least=0)
    l1: float = param(0.0, "below this accumulated gradient a weight is zero", at_least=0)
    l2: float = param(0.0, "shrinks the weights", at_least=0)

    def start(self, features, outputs):
        w = np.zeros(features * outputs)
        knobs = np.array([self.rate, self.beta, self.l1, self.l2])
        return FTRLState(w, w.copy(), w.copy(), np.zeros(outputs), knobs)

    def begin_at(self, state, w):
        """z of which, with n = 0, these are the weights."""
        free = np.arange(w.size) < state.free.size
        strength = self.beta / self.rate + np.where(free, 0.0, self.l2)
        if (strength == 0.0).any():
            raise ValueError("ftrl cannot begin at given weights with beta=0: its first step would forget them")
        excess = np.where(w == 0.0, 0.0, np.where(free, 0.0, self.l1))
        state.z[:] = -(w * strength + np.sign(w) * excess)
        state.w[:] = w


class FTRLState(NamedTuple):
    w: Weights
    z: Weights
    n: Weights
    free: Outputs  # its length counts the weights without penalty
    knobs: Numbers  # rate, beta, l1, l2


@move.on(FTRLState)
def _(g, j, x, t, sqnorm):
    q = -min(max(t * x, -LARGEST), LARGEST)
    rate, before = g.knobs[0], g.w[j]
    l1, l2 = (0.0, 0.0) if j < len(g.free) else (g.knobs[2], g.knobs[3])
    root = np.sqrt(g.n[j])
    g.n[j] += q * q
    sigma = (np.sqrt(g.n[j]) - root) / rate
    g.z[j] += q - sigma * before
    z = g.z[j]
    excess = max(0.0, abs(z) - l1)
    size = excess / ((g.knobs[1] + np.sqrt(g.n[j])) / rate + l2) if excess > 0.0 else 0.0
    g.w[j] = -size if z > 0.0 else size
    return g.w[j] - before


@truncates.on(FTRLState)
def _(g, j):
    return g.knobs[2] > 0.0 and j >= len(g.free)

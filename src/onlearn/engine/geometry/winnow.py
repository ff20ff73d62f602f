"""Winnow (Littlestone 1988): w starts at 1 and is multiplied, w_i *= alpha^(t x_i); the threshold is n.

Relevant features grow geometrically, so among n features of which k matter it makes O(k log n) mistakes.
Weights are kept within fixed bounds, so no input makes one infinite or zero for good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.engine.protocol import GEOMETRIES, LARGEST, Numbers, Weights, move
from onlearn.engine.spec import choice, param

LIGHTEST, HEAVIEST = 1e-100, 1e100


@choice(GEOMETRIES, "winnow")
class Winnow:
    """w_i *= alpha^(t x_i), compared with a threshold; features must not be negative."""

    alpha: float = param(2.0, "promotion factor", above=1)
    threshold: float | None = param(None, "None: the number of features at the start", above=0, words=(None,))

    positive_only = True
    positive_weights = True

    def start(self, features, outputs):
        theta = features - 1 if self.threshold is None else self.threshold
        return WinnowState(np.ones(features * outputs), np.array([self.alpha, float(theta)]))

    def begin_at(self, state, w):
        """Weights must be positive: no factor makes one of zero."""
        if not ((w >= LIGHTEST) & (w <= HEAVIEST)).all():
            raise ValueError(f"winnow begins at positive weights, from {LIGHTEST:g} to {HEAVIEST:g}")
        state.w[:] = w

    def theta(self, state):
        return float(state.knobs[1])


class WinnowState(NamedTuple):
    w: Weights
    knobs: Numbers  # alpha, threshold


@move.on(WinnowState)
def _(g, j, x, t, sqnorm):
    before = g.w[j]
    g.w[j] = min(max(before * g.knobs[0] ** min(max(t * x, -LARGEST), LARGEST), LIGHTEST), HEAVIEST)
    return g.w[j] - before


# ----------------------------------------------------------------------------------------------------
# Balanced Winnow (Littlestone 1989): two positive weights a feature, w = w+ - w-, so w has either sign.
#
# w+ *= alpha^(t x) and w- *= alpha^(-t x) from w+ = w- = 1 keep w+ w- = 1, so one exponent e a feature says
# it all: w = alpha^e - alpha^-e.


@choice(GEOMETRIES, "balanced")
class BalancedWinnow:
    """w = w+ - w-, w+ *= alpha^(t x), w- *= alpha^(-t x)."""

    alpha: float = param(2.0, "promotion factor", above=1)
    threshold: float = param(0.0, "what the weighted sum is compared with")

    def start(self, features, outputs):
        w = np.zeros(features * outputs)
        limit = np.log(HEAVIEST) / np.log(self.alpha)
        return BalancedWinnowState(w, w.copy(), np.array([self.alpha, limit]))

    def begin_at(self, state, w):
        """alpha^e - alpha^-e = w."""
        state.exponent[:] = np.arcsinh(w / 2) / np.log(self.alpha)
        if (np.abs(state.exponent) > state.knobs[1]).any():
            raise ValueError(f"balanced begins at weights from {-HEAVIEST:g} to {HEAVIEST:g}")
        state.w[:] = w

    def theta(self, state):
        return self.threshold


class BalancedWinnowState(NamedTuple):
    w: Weights
    exponent: Weights
    knobs: Numbers  # alpha, largest exponent


@move.on(BalancedWinnowState)
def _(g, j, x, t, sqnorm):
    before = g.w[j]
    e = min(max(g.exponent[j] + min(max(t * x, -LARGEST), LARGEST), -g.knobs[1]), g.knobs[1])
    up = g.knobs[0] ** e
    g.exponent[j] = e
    g.w[j] = up - 1.0 / up
    return g.w[j] - before

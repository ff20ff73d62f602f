"""Winnow (Littlestone 1988): w starts at 1 and is multiplied, w_i *= alpha^(t x_i); the threshold is n.

Relevant features grow geometrically, so among n features of which k matter it makes O(k log n) mistakes.
Weights are kept within fixed bounds, so no input makes one infinite or zero for good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.geometry.family import GEOMETRIES
from onlearn.spelling import choice, param
from onlearn.verbs import LARGEST, Numbers, Weights, move

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
        return Multiplied(np.ones(features * outputs), np.array([self.alpha, float(theta)]))

    def theta(self, state):
        return float(state.knobs[1])


class Multiplied(NamedTuple):
    w: Weights
    knobs: Numbers  # alpha, threshold


@move.on(Multiplied)
def _(g, j, x, t, sqnorm):
    before = g.w[j]
    g.w[j] = min(max(before * g.knobs[0] ** min(max(t * x, -LARGEST), LARGEST), LIGHTEST), HEAVIEST)
    return g.w[j] - before

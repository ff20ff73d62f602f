"""AdaGrad that forgets: its sum of squared gradients fades, so the rate of a feature stays alive after a change.

    G <- (1 - 1/memory) G + (t x)^2;   w += r t x / sqrt(G)

at every step along an example that holds the feature. AdaGrad's rate falls for ever, so the longer a stream, the longer
it takes to learn that something has changed. Here the rate of a feature comes to rest at r / sqrt(memory) over the
root of its mean squared gradient, that is at RMSprop with a rate of r / sqrt(memory) (Tieleman & Hinton 2012).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.engine.protocol import FASTEST, GEOMETRIES, LARGEST, Numbers, Weights, move
from onlearn.engine.spec import choice, param


@choice(GEOMETRIES, "fading_adagrad")
class FadingAdaGrad:
    """AdaGrad whose sum of squared gradients fades, so that it can follow a change."""

    rate: float = param(1.0, "learning rate", above=0, below=FASTEST)
    memory: float = param(1000.0, "steps along a feature that its sum is about", at_least=1, below=1e7)

    signed = True

    def start(self, features, outputs):
        w = np.zeros(features * outputs)
        return FadingAdaGradState(w, w.copy(), np.array([self.rate, 1.0 - 1.0 / self.memory]))


class FadingAdaGradState(NamedTuple):
    w: Weights
    squares: Weights
    knobs: Numbers  # rate, what is left of the sum after a step


@move.on(FadingAdaGradState)
def _(g, j, x, t, sqnorm):
    gradient, change = min(max(t * x, -LARGEST), LARGEST), 0.0
    if gradient != 0.0:
        g.squares[j] = g.squares[j] * g.knobs[1] + gradient * gradient
        change = g.knobs[0] * gradient / np.sqrt(g.squares[j]) if g.squares[j] > 0.0 else 0.0
    g.w[j] += change
    return change

"""AROW, adaptive regularisation of weights (Crammer, Kulesza & Dredze 2009), diagonal.

Each weight has a variance S_j, from 1 downwards: w += t S x and S_j -= (S_j x_j)^2 / (x'Sx + r). A rule
sees x'Sx as the squared length of the example; with passive-aggressive II at C = 1/(2r) its step is the
paper's alpha = max(0, 1 - y s) / (x'Sx + r). An example of weight h above 1 counts in the paper's
objective h times, which puts r/h in the place of r; one of a weight below 1 takes this part of its usual step, and r/h
is in the place of r in the variances only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.compiler import prefetch
from onlearn.engine.protocol import GEOMETRIES, LARGEST, Numbers, Weights, anticipate, move, weighted
from onlearn.engine.rows import ONE, column, span, sqnorm, sqnorms
from onlearn.engine.spec import choice, param

SUREST = 1e-100  # a variance, below which weights are equally sure when they are mixed


@choice(GEOMETRIES, "arow")
class AROW:
    """A confidence for each weight: often seen features move less."""

    r: float = param(1.0, "how slowly confidence grows", above=0)

    measures = True
    signed = True
    unmixed = None
    evidence = "variance"
    confident = True

    def start(self, features, outputs):
        w = np.zeros(features * outputs)
        return AROWState(w, np.ones(w.size), np.array([self.r]))

    def precision(self, evidence):
        return 1.0 / np.maximum(evidence, SUREST)

    def from_precision(self, precision):
        return 1.0 / precision


class AROWState(NamedTuple):
    w: Weights
    variance: Weights
    knobs: Numbers  # r


@anticipate.on(AROWState)
def _(g, j):
    prefetch(g.variance, j)


@sqnorm.on(AROWState, object)
def _(g, rows, i, outputs, c):
    start, stop = span(rows, i)
    count, shift = np.uint64(outputs), np.uint64(c)
    total = rows.bias * rows.bias * g.variance[shift]
    for p in range(start, stop):
        x = np.float64(rows.data[p])
        total += x * x * g.variance[(column(rows, p, start) + ONE) * count + shift]
    return total


@sqnorms.on(AROWState, object)
def _(g, rows, i, q):
    start, stop = span(rows, i)
    outputs = np.uint64(len(q))
    for c in range(outputs):
        q[c] = rows.bias * rows.bias * g.variance[c]
    for p in range(start, stop):
        x, base = np.float64(rows.data[p]), (column(rows, p, start) + ONE) * outputs
        for c in range(outputs):
            q[c] += x * x * g.variance[base + c]


@weighted.on(AROWState)
def _(g, sqnorm, h):
    return sqnorm + g.knobs[0] * (1.0 / h - 1.0)


@move.on(AROWState)
def _(g, j, x, t, sqnorm):
    s = g.variance[j]
    change = min(max(t * s * x, -LARGEST), LARGEST)
    g.w[j] += change
    if t != 0.0:
        g.variance[j] = s * max(0.0, 1.0 - s * x * (x / (sqnorm + g.knobs[0])))
    return change

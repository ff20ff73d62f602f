"""Normalised Winnow, exponentiated gradient (Kivinen & Warmuth 1997): w = 1/p, w_j *= e^(eta t x_j) / Z.

The weights of an output stay on the simplex. Z is one number an output: stored are v_j = e^(l_j - shift)
and their sum, and w_j = v_j / sum. The logarithms l are kept beside them, so that v can be formed anew
before anything overflows.

With the margin g of the best separator on the simplex, eta = 1/2 ln((1+g)/(1-g)) makes the mistake bound
smallest (for |x|_inf <= 1).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import helper
from onlearn.engine.csr import dense_rows
from onlearn.engine.protocol import GEOMETRIES, Numbers, Outputs, Weights, fold, move, rescale, scale, settle, stride
from onlearn.engine.spec import choice, param

SAMPLED = 100_000  # numbers to estimate a margin from, which takes a second or two
LEAST_MARGIN = 0.05
NOTHING = -1e9  # the logarithm, as good as, of zero
LONGEST = 30.0  # of one change of a logarithm: e^30 leaves the average its digits
FINITE = 1e308  # of a step times eta, which is as large as features are small: infinity times zero is no number
SPREAD = 1e6  # the sum may grow or fall so much before v is formed anew
OFTEN = 1 << 16  # steps before it is formed anew in any case, so that rounding does not add up


@choice(GEOMETRIES, "exponentiated")
class Exponentiated:
    """w_j *= e^(eta t x_j) / Z: normalised Winnow."""

    eta: float | str = param(0.1, "learning rate, or from the margin", above=0, words=("auto",))
    margin: float | None = param(None, "for eta=auto; None: estimated from the data", above=0, below=1, words=(None,))

    positive_weights = True
    normalised = True

    def check(self):
        if self.margin is not None and self.eta != "auto":
            raise ValueError('exponentiated: margin is used only with eta="auto"')

    def start(self, features, outputs):
        if self.eta == "auto" and self.margin is None:
            raise ValueError('exponentiated: eta="auto" without a margin needs fit, which sees all the data')
        eta = self.eta if self.margin is None else _best_eta(self.margin)
        v = np.ones(features * outputs)
        total = np.full(outputs, float(features))
        return ExponentiatedState(
            v, np.zeros(v.size), total, total.copy(), np.zeros(outputs), np.zeros(outputs), np.array([eta])
        )

    def begin_at(self, state, w):
        """Weights must not be negative; those of an output are divided by their sum."""
        outputs = state.total.size
        total = w.reshape(-1, outputs).sum(axis=0)
        if (w < 0.0).any() or not (total > 0.0).all() or not np.isfinite(total).all():
            raise ValueError("exponentiated begins at weights that are not negative, with a sum above 0")
        state.w[:] = (w.reshape(-1, outputs) / total).ravel()
        with np.errstate(divide="ignore"):
            state.logarithm[:] = np.maximum(np.log(state.w), NOTHING)
        state.total[:] = state.w.reshape(-1, outputs).sum(axis=0)
        state.origin[:] = state.total

    @property
    def undecided(self):
        """Whether ``estimate`` must be asked before the start."""
        return self.eta == "auto" and self.margin is None

    def estimate(self, X, signs, bias):
        """This geometry with eta from the margin of the data, by linear programming on some of the rows."""
        from onlearn.theory.separable import simplex_margin  # which needs SciPy

        some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], 50 + SAMPLED // X.shape[1])).astype(int)
        rows = dense_rows(X, some)
        rows = np.column_stack([rows, np.full(len(rows), bias)]) if bias else rows
        size = float(np.abs(rows).max()) or 1.0
        margin, _ = simplex_margin(rows, signs[some])
        if margin <= 0:
            warnings.warn(
                'exponentiated: no weights on the simplex separate the data, so eta="auto" assumes a margin of '
                f"{LEAST_MARGIN} times the largest feature",
                stacklevel=6,  # where fit was called
            )
        return Exponentiated(eta=_best_eta(min(max(margin / size, LEAST_MARGIN), 0.999)) / size)

    def rate_of(self, state):
        """The eta in use."""
        return float(state.knobs[0])

    def without_constant(self, state):
        """Where there is no intercept, the constant feature has no part of the simplex."""
        outputs = state.total.size
        state.w[:outputs], state.logarithm[:outputs] = 0.0, NOTHING
        state.total[:] = state.w.reshape(-1, outputs).sum(axis=0)
        state.origin[:] = state.total

    def mend(self, state):
        """After growth: the new weights, of logarithm 0, count in the sums."""
        state.w.reshape(-1, state.total.size)[:] = np.exp(state.logarithm.reshape(-1, state.total.size) - state.shift)
        state.total[:] = state.w.reshape(-1, state.total.size).sum(axis=0)
        state.origin[:] = state.total


def _best_eta(margin: float) -> float:
    from onlearn.theory.bounds import best_eta  # where SciPy's sparse rows are known

    return best_eta(margin)


class ExponentiatedState(NamedTuple):
    w: Weights  # v
    logarithm: Weights
    total: Outputs
    origin: Outputs  # the total when v was last formed
    shift: Outputs
    steps: Outputs  # since then
    knobs: Numbers  # eta


@scale.on(ExponentiatedState)
def _(g, c):
    return 1.0 / g.total[c]


@stride.on(ExponentiatedState)
def _(g, t, c):
    g.steps[c] += 1.0
    return min(max(t * g.knobs[0], -FINITE), FINITE)


@move.on(ExponentiatedState)
def _(g, j, x, t, sqnorm):
    c = j % np.uint64(len(g.total))
    before = g.w[j]
    g.logarithm[j] += min(max(t * x, -LONGEST), LONGEST)
    g.w[j] = np.exp(g.logarithm[j] - g.shift[c])
    g.total[c] += g.w[j] - before
    return g.w[j] - before


@settle.on(ExponentiatedState, object)
def _(g, st):
    for c in range(len(g.total)):
        change = g.total[c] / g.origin[c]
        if not (1.0 / SPREAD < change < SPREAD) or g.steps[c] >= OFTEN:
            fold(st, g)
            rescale(st, c, form(g, c))


@helper
def form(g: Any, c: int) -> float:
    """v of output c from its logarithms, the largest being 1; returns what multiplied them."""
    outputs = len(g.total)
    top = g.logarithm[c]
    for j in range(c, len(g.w), outputs):
        top = max(top, g.logarithm[j])
    total = 0.0
    for j in range(c, len(g.w), outputs):
        g.w[j] = np.exp(g.logarithm[j] - top)
        total += g.w[j]
    g.total[c] = g.origin[c] = total
    factor = np.exp(g.shift[c] - top)
    g.shift[c] = top
    g.steps[c] = 0.0
    return factor

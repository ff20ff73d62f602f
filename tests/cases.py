"""What the engine's tests combine: rules, geometries, stabilizers, outputs, layouts and small data.

Each rule and geometry is named as the engine spells it and stands beside the reference's version of it.
Geometries are grouped by the kind of state they learn in, since that is what loops are compiled for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
import scipy.sparse as sp

import reference as ref

RULES = {
    "perceptron": ref.Perceptron(),
    "margin(0.73, 0.33)": ref.Margin(0.73, 0.33),
    "aggressive(0.8)": ref.Aggressive(0.8),
    "pa1(0.2)": ref.PassiveAggressive1(0.2),
    "pa2(0.3)": ref.PassiveAggressive2(0.3),
    "lms": ref.LeastMeanSquares(),
    "hinge": ref.Hinge(),
    "squared_hinge": ref.SquaredHinge(),
    "logistic": ref.Logistic(),
}
REGRESSION_RULES = {
    "lms": ref.LeastMeanSquares(),
    "epsilon(0.2)": ref.Epsilon(0.2),
    "nlms": ref.NormalisedLeastMeanSquares(),
    "pa_epsilon(0.2)": ref.PassiveAggressiveEpsilon(0.2, math.inf),
    "pa_epsilon(0.2, 0.1)": ref.PassiveAggressiveEpsilon(0.2, 0.1),
}

GEOMETRIES = {
    "plain": {
        "additive(0.1)": partial(ref.Additive, 0.1),
        "additive(0.5, schedule='1/sqrt(t)')": partial(ref.Additive, 0.5, "1/sqrt(t)"),
    },
    "decayed": {
        "additive(0.1, l2=0.2)": partial(ref.Additive, 0.1, l2=0.2),
        "additive(0.1, l2=4.0)": partial(ref.Additive, 0.1, l2=4.0),  # the scale is renewed on the way
        "additive(0.3, schedule='1/sqrt(t)', l2=0.2)": partial(ref.Additive, 0.3, "1/sqrt(t)", l2=0.2),
        "additive(0.1, schedule='1/(lambda t)', l2=0.5)": partial(ref.Additive, 0.1, "1/(lambda t)", l2=0.5),
    },
    "truncated": {
        "additive(0.1, l1=0.05)": partial(ref.Additive, 0.1, l1=0.05),
        "additive(0.1, l1=0.02, l2=0.3)": partial(ref.Additive, 0.1, l1=0.02, l2=0.3),
        "additive(0.1, l1=0.002, l2=4.0)": partial(ref.Additive, 0.1, l1=0.002, l2=4.0),
        "additive(0.3, schedule='1/sqrt(t)', l1=0.1)": partial(ref.Additive, 0.3, "1/sqrt(t)", l1=0.1),
        "additive(0.1, schedule='1/(lambda t)', l1=0.02, l2=0.5)": partial(
            ref.Additive, 0.1, "1/(lambda t)", l1=0.02, l2=0.5
        ),
    },
    "adagrad": {"adagrad(0.3)": partial(ref.AdaGrad, 0.3)},
    "penalised": {"adagrad(0.3, l2=0.2)": partial(ref.AdaGrad, 0.3, l2=0.2)},
    "arow": {"arow(0.5)": partial(ref.AROW, 0.5), "arow(10)": partial(ref.AROW, 10.0)},
    "ftrl": {
        "ftrl(0.3)": partial(ref.FTRL, 0.3),
        "ftrl(0.3, beta=0.0)": partial(ref.FTRL, 0.3, 0.0),
        "ftrl(0.3, l1=1.5)": partial(ref.FTRL, 0.3, l1=1.5),
        "ftrl(0.3, 0.5, l1=1.0, l2=0.2)": partial(ref.FTRL, 0.3, 0.5, l1=1.0, l2=0.2),
    },
    "winnow": {
        "winnow(1.03)": partial(ref.Winnow, 1.03),
        "winnow(1.05, threshold=2.5)": partial(ref.Winnow, 1.05, 2.5),
    },
    "balanced": {
        "balanced(1.03)": partial(ref.BalancedWinnow, 1.03),
        "balanced(1.05, threshold=0.2)": partial(ref.BalancedWinnow, 1.05, 0.2),
    },
    "exponentiated": {"exponentiated(0.4)": partial(ref.Exponentiated, 0.4)},
    "scinol": {"scinol": ref.ScInOL, "scinol(0.3)": partial(ref.ScInOL, 0.3)},
    "fading": {
        "fading_adagrad(0.3, memory=5)": partial(ref.FadingAdaGrad, 0.3, 5.0),
        "fading_adagrad(0.1, memory=2)": partial(ref.FadingAdaGrad, 0.1, 2.0),
    },
    "sparse adagrad": {
        "adagrad(0.3, l1=0.1)": partial(ref.AdaGrad, 0.3, l1=0.1),
        "adagrad(0.3, l1=0.05, l2=0.2)": partial(ref.AdaGrad, 0.3, l1=0.05, l2=0.2),
    },
}
DRIFTING = {"decayed", "truncated", "penalised", "sparse adagrad"}  # without a list of hypotheses to vote

STABILIZERS = ("last", "averaged", "survivor", "voted")
MULTICLASS = ("true", "one-vs-all", "softmax")
LAYOUTS = {
    "dense": lambda X: X,
    "csr": sp.csr_array,
    "fortran": np.asfortranarray,
    "dense32": lambda X: X.astype(np.float32),
    "csr32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr64": lambda X: long_indices(sp.csr_array(X)),
}


def long_indices(X):
    """The same matrix with int64 indices, which SciPy would rather shorten."""
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def example_geometry(group):
    """One spelling and its reference, for tests that do not need all of a group."""
    return list(GEOMETRIES[group].items())[-1]


@dataclass(frozen=True)
class Case:
    """A combination that needs a loop of its own."""

    group: str
    stabilizer: str
    output: str
    layout: str

    def __str__(self):
        return "-".join((self.group, self.stabilizer, self.output, self.layout))


def possible(group, stabilizer):
    return not (group in DRIFTING and stabilizer == "voted")


PAIRS = [pair for pair in product(GEOMETRIES, STABILIZERS) if possible(*pair)]
BINARY = [Case(*pair, "binary", layout) for pair in PAIRS for layout in ("dense", "csr")]
MANY = [Case(*pair, output, layout) for pair in PAIRS for output in MULTICLASS for layout in ("dense", "csr")]


def _covering(outputs):
    """For each geometry two cases, of one layout each; the other choices take turns."""
    for g, group in enumerate(GEOMETRIES):
        for n, layout in enumerate(("dense", "csr")):
            stabilizers = [name for name in STABILIZERS if possible(group, name)]
            output = outputs[(g + g // 4 + n) % len(outputs)]
            yield Case(group, stabilizers[(g + 2 * n) % len(stabilizers)], output, layout)


BINARY_COVERING, MANY_COVERING = list(_covering(["binary"])), list(_covering(MULTICLASS))
BINARY_OTHER = [case for case in BINARY if case not in BINARY_COVERING]
MANY_OTHER = [case for case in MANY if case not in MANY_COVERING]

# ---------------------------------------------------------------- data

ROWS, FEATURES, CLASSES = 30, 6, 3


@dataclass(frozen=True)
class Data:
    X: np.ndarray
    y: np.ndarray  # 0 and 1, or class indices, or numbers

    @property
    def signs(self):
        return np.where(self.y == 1, 1.0, -1.0)


@cache
def data(kind, positive):
    """Thirty noisy examples with zeros among the features. kind: binary, multiclass or regression."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(ROWS, FEATURES)) * (rng.random((ROWS, FEATURES)) < 0.6)
    X = np.abs(X) if positive else X
    target = rng.normal(size=(FEATURES, CLASSES))
    scores = (X - X.mean(axis=0)) @ target + 0.5 * rng.normal(size=(ROWS, CLASSES))
    if kind == "regression":
        return Data(X, scores[:, 0])
    return Data(X, (scores[:, 0] > 0).astype(int) if kind == "binary" else np.argmax(scores, axis=1))

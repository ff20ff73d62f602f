"""Probabilities of the classes: sigmoids of the scores of each problem, put together for several classes.

A and B of 1 / (1 + e^-(A s + B)) (Platt 1999) want the scores that examples have if they are not learned from. Two ways
to them, which cost little beside the solution, or a few solutions more:

``loo``  leave one out, estimated from the solution. Without an example that is no support vector the solution is the
         same. Without a support vector p its score falls by a_p S_p^2, where S_p is its distance in feature space from
         the span of the free support vectors (Vapnik & Chapelle 2000), the others' status unchanged:
         S_p^2 = 1 / (H^-1)_pp of a free one, k(p, p) - v'H^-1 v of others, where H are the kernel values of the free
         ones, with a line and a column of ones if there is a bias, and v those with p.
``cv``   cross-validation: each fold is scored by the solution of the others.

Of one-vs-one the probabilities r_ij of the pairs are coupled (Wu, Lin & Weng 2004): p minimises
sum_ij (r_ji p_i - r_ij p_j)^2. Where they contradict ``predict``, the predicted class is raised to the highest.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from onlearn.engine.calibration import expit, fit_sigmoid, sigmoid
from onlearn.engine.spec import Family, choice, param
from onlearn.svm.multiclass import Machine, pairs
from onlearn.svm.problem import KernelColumns, Solution

SAMPLE = 2000  # examples whose scores a sigmoid is fitted to
BASIS = 200  # free support vectors that span what others are measured from
FARTHEST = 0.9  # the quantile of the scores that no score of an example left out is beyond
RIDGE = 1e-8  # relative to the diagonal
BLOCK = 1 << 12  # rows whose pairs are coupled at a time


class Calibration(Protocol):
    """Which scores the sigmoids are fitted to."""

    name: str
    folds: int = 0


CALIBRATIONS = Family("calibration", Calibration)


@choice(CALIBRATIONS, "loo")
class LeaveOneOut:
    """Scores of examples left out one by one, estimated from the solution."""


@choice(CALIBRATIONS, "cv")
class CrossValidation:
    """Scores of examples by the solutions of the other folds."""

    folds: float = param(5, "into how many parts the examples are cut", at_least=2)


@choice(CALIBRATIONS, "none")
class NoProbabilities:
    """No probabilities."""


# ----------------------------------------------------------------------------------------------------
# Scores of examples that are left out


def left_out(machine: Machine, solution: Solution, columns: KernelColumns, C: float, bias: bool, seed: int,
             which: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Scores of some examples as if each had been left out, whether they are positive, and their weights.

    ``which`` are those examples; else some are drawn.
    """
    rng = np.random.default_rng([seed, 3])
    if which is None:
        which = some_of(np.arange(len(machine.signs)), SAMPLE, rng)
    scores = machine.sums(solution.gradient)[which] + solution.intercept
    held = which[solution.alpha[which] > 0]
    if len(held):
        top = np.quantile(np.abs(scores), FARTHEST)
        fall = np.zeros(len(machine.signs))
        fall[held] = solution.alpha[held] * spans(machine, solution, columns, C, bias, held, rng)
        # With a large C the others would change their status, and the score fall less.
        scores = np.clip(scores - machine.signs[which] * fall[which], -top, top)
    return scores, machine.signs[which] > 0, machine.weight[which]


def spans(machine: Machine, solution: Solution, columns: KernelColumns, C: float, bias: bool, which: np.ndarray,
          rng: np.random.Generator) -> np.ndarray:  # fmt: skip
    """S_p^2 of some support vectors, about; with more free ones than ``BASIS``, from the span of some of them."""
    alpha, upper = solution.alpha, C * machine.weight
    own = columns.diagonal[machine.examples[which]]
    free = some_of(np.flatnonzero((alpha > 0) & (alpha < upper)), BASIS, rng)
    if len(free) < 2:
        return own
    values = columns.values(machine.examples[free], machine.examples[np.concatenate([free, which])]).astype(np.float64)
    H, v = values[:, : len(free)], values[:, len(free) :]
    H[np.diag_indices(len(free))] *= 1.0 + RIDGE
    if bias:
        size = float(np.abs(H).max()) or 1.0  # a constant of the size of the values
        H = np.block([[H, np.full((len(free), 1), size)], [np.full((1, len(free)), size), np.zeros((1, 1))]])
        v = np.vstack([v, np.full((1, len(which)), size)])
    inverse = np.linalg.pinv(H, hermitian=True) if len(free) < 50 else _inverse(H)
    squares = own - np.einsum("ij,ij->j", v, inverse @ v)
    place = np.full(len(alpha), -1)
    place[free] = np.arange(len(free))
    inside = place[which] >= 0
    with np.errstate(divide="ignore"):
        squares[inside] = 1.0 / np.diag(inverse)[place[which[inside]]]
    return np.clip(np.nan_to_num(squares, nan=0.0, posinf=np.inf), 0.0, 2.0 * own)


def _inverse(H: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(H)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(H, hermitian=True)


def some_of(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def fit_curve(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """A and B of one problem; where scores left out tell nothing, or the contrary, A is next to 0, and B the share."""
    return fit_sigmoid(scores, positive, None if (weight == weight[:1]).all() else weight)


# ----------------------------------------------------------------------------------------------------
# From sigmoids to probabilities


def probabilities(decisions: np.ndarray, scores: np.ndarray, curves: np.ndarray, classes: int, kind: str) -> np.ndarray:
    """One column a class, from the decisions of the problems; the largest is where the largest score is."""
    if classes == 2:
        p = sigmoid(decisions[:, 0], *curves[0])
        return np.column_stack([1 - p, p])
    each = expit(np.clip(decisions * curves[:, 0] + curves[:, 1], -700, 700))
    p = coupled(each, classes) if kind == "one-vs-one" else each + 1e-300
    p /= p.sum(axis=1, keepdims=True)
    return agreed(p, np.argmax(scores, axis=1))


def coupled(each: np.ndarray, classes: int) -> np.ndarray:
    """p that minimises sum_ij (r_ji p_i - r_ij p_j)^2 and sums to 1; r_ij, of i beside j, are those of the pairs."""
    out = np.empty((len(each), classes))
    for start in range(0, len(each), BLOCK):
        part = np.clip(each[start : start + BLOCK], 1e-7, 1 - 1e-7)
        r = np.zeros((len(part), classes, classes))
        for n, (i, j) in enumerate(pairs(classes, "one-vs-one")):
            r[:, j, i], r[:, i, j] = part[:, n], 1.0 - part[:, n]
        Q = -r * r.transpose(0, 2, 1)
        Q[:, np.arange(classes), np.arange(classes)] = (r**2).sum(axis=1)
        bordered = np.ones((len(part), classes + 1, classes + 1))  # with the multiplier of the sum
        bordered[:, :-1, :-1], bordered[:, -1, -1] = Q, 0.0
        wanted = np.zeros((len(part), classes + 1, 1))
        wanted[:, -1] = 1.0
        out[start : start + BLOCK] = np.maximum(np.linalg.solve(bordered, wanted)[:, :-1, 0], 1e-12)
    return out


def agreed(p: np.ndarray, best: np.ndarray) -> np.ndarray:
    """The probabilities with that of the class ``best`` raised to the highest, where it is not."""
    wrong = np.flatnonzero(np.argmax(p, axis=1) != best)
    if len(wrong):
        p[wrong, best[wrong]] = p[wrong].max(axis=1)
        p[wrong] /= p[wrong].sum(axis=1, keepdims=True)
        p[wrong, best[wrong]] = np.nextafter(p[wrong].max(axis=1), 2)
    return p


def check_curves(curves: Any, problems: int) -> None:
    """Refuse what cannot be A and B of so many problems."""
    if curves.shape != (problems, 2) or curves.dtype != np.float64 or not (curves[:, 0] >= 0).all():
        raise ValueError("the curves of the probabilities do not fit the problems")

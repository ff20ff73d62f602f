"""The dual problem of soft-margin support vector machines, the limits of a solver, and what a solver returns.

    minimise  1/2 a'Qa + p'a   subject to  0 <= a_i <= C_i  and, with a bias, y'a = 0;   Q_ij = y_i y_j k(x_i, x_j)

Classification has p = -1 and one variable an example. Regression has two variables an example, with the signs +1 and
-1 and p = epsilon - target and epsilon + target. The decision is f(x) = sum_i a_i y_i k(x_i, x) + b.

The gradient is G_i = y_i F_i + p_i with F_i = sum_j a_j y_j k(x_i, x_j): all solvers keep F, one number an example.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onlearn.svm.columns import KernelColumns

FARTHEST = 1e12  # the largest variable, where C is larger: times p, for kernel values of 1
LITTLE = 1e-3  # of the sum of all variables of a sign
ROUNDING = 1e-13  # of the same: no difference

__all__ = [
    "KernelColumns",
    "Limits",
    "Problem",
    "Solution",
    "bounded",
    "check_problem",
    "feasible",
    "intercept",
    "solution",
    "violation",
]


class Problem(NamedTuple):
    """minimise 1/2 a'Qa + p'a  subject to 0 <= a_i <= C_i and, if bias, y'a = 0;  Q_ij = y_i y_j K(r_i, r_j)."""

    columns: KernelColumns  # of the examples: gives blocks of kernel rows, with a cache
    examples: np.ndarray  # int64: which example of ``columns`` variable i belongs to
    signs: np.ndarray  # float64: y_i, -1 or +1
    linear: np.ndarray  # float64: p_i
    upper: np.ndarray  # float64: C_i >= 0; 0 means that the variable stays 0
    bias: bool


class Limits(NamedTuple):
    """When a solver stops: at a violation of the KKT conditions of ``tol``, or earlier."""

    tol: float = 1e-3
    max_iter: int | None = None
    deadline: float | None = None  # of time.monotonic()
    interrupted: Callable[[], bool] = lambda: False
    progress: Callable[[int, float], None] | None = None

    def reached(self, iterations: int, violation: float) -> str:
        """Why to stop now: "iterations", "time" or "interrupt"; "" to go on. Reports the progress."""
        if self.progress is not None:
            self.progress(iterations, violation)
        if self.max_iter is not None and iterations >= self.max_iter:
            return "iterations"
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return "time"
        return "interrupt" if self.interrupted() else ""


class Solution(NamedTuple):
    """What a solver returns; ``alpha`` is feasible however it stopped."""

    alpha: np.ndarray
    intercept: float  # b; 0 without bias
    gradient: np.ndarray  # of what is minimised, Qa + p
    iterations: int
    objective: float  # of the dual problem, to maximise: -(1/2 a'Qa + p'a)
    gap: float  # primal - dual objective
    violation: float  # the largest violation of the KKT conditions
    stopped: str  # "tol", "iterations", "time", "interrupt", or "precision": rounding allows no progress


def check_problem(problem: Problem) -> None:
    """Refuse arrays that do not fit each other."""
    n = len(problem.examples)
    for name in ("signs", "linear", "upper"):
        if len(getattr(problem, name)) != n:
            raise ValueError(f"the problem has {n} variables, but {name} has {len(getattr(problem, name))} numbers")
    if n and not 0 <= problem.examples.min() <= problem.examples.max() < problem.columns.n:
        raise ValueError(f"examples must be numbers of the {problem.columns.n} examples of the columns")
    if not np.isin(problem.signs, (-1.0, 1.0)).all():
        raise ValueError("signs must be -1 or +1")
    if not np.isfinite(problem.linear).all():
        raise ValueError("linear must hold finite numbers")
    if not (problem.upper >= 0).all():
        raise ValueError("upper must hold numbers of at least 0: C times the weight of each example")


def bounded(problem: Problem) -> Problem:
    """The problem with a bound for variables without one, beyond all that a solution in double precision can reach."""
    scale = float(np.max(np.abs(problem.columns.diagonal), initial=0.0)) or 1.0
    size = float(np.max(np.abs(problem.linear), initial=0.0)) or 1.0
    return problem._replace(upper=np.minimum(problem.upper, FARTHEST * size / scale))


def feasible(problem: Problem, start: np.ndarray | None) -> np.ndarray:
    """``start`` (by default 0) clipped to the bounds, and with y'a = 0 if there is a bias."""
    if start is None:
        return np.zeros(len(problem.upper))
    if np.shape(start) != problem.upper.shape:
        raise ValueError(f"the start has {np.size(start)} variables, but the problem has {len(problem.upper)}")
    alpha = np.clip(np.nan_to_num(np.asarray(start, dtype=np.float64), posinf=0.0), 0.0, problem.upper)
    if problem.bias:
        _balance(alpha, problem)
    return alpha


def _balance(alpha: np.ndarray, problem: Problem) -> None:
    """Take from the sign with the larger sum what it has more than the other.

    A little is taken from the largest free variables, so that variables at their bounds stay there; much of all.
    """
    plus = problem.signs > 0
    more, less = (plus, ~plus) if alpha[plus].sum() > alpha[~plus].sum() else (~plus, plus)
    total, rest = float(alpha[more].sum()), float(alpha[more].sum() - alpha[less].sum())
    if rest <= ROUNDING * total:
        return
    if rest <= LITTLE * total:
        free = np.flatnonzero(more & (alpha > 0) & (alpha < problem.upper))
        for i in free[np.argsort(-alpha[free], kind="stable")]:
            taken = min(rest, alpha[i])
            alpha[i] -= taken
            rest -= taken
            if rest <= 0:
                return
    if rest > 0:
        alpha[more] *= float(alpha[less].sum()) / float(alpha[more].sum())


def violation(problem: Problem, alpha: np.ndarray, gradient: np.ndarray) -> float:
    """The largest violation of the KKT conditions: m(a) - M(a) with a bias, else of the projected gradient."""
    low, high = extremes(problem, alpha, gradient)
    if problem.bias:
        return float(max(0.0, high - low)) if np.isfinite(high) and np.isfinite(low) else 0.0
    grows = alpha < problem.upper
    return float(max(np.max(-gradient[grows], initial=0.0), np.max(gradient[alpha > 0], initial=0.0)))


def extremes(problem: Problem, alpha: np.ndarray, gradient: np.ndarray) -> tuple[float, float]:
    """M(a) and m(a): the bounds that the gradient puts on b, from above and from below."""
    slopes = -problem.signs * gradient
    plus, above, below = problem.signs > 0, alpha > 0, alpha < problem.upper
    up, down = np.where(plus, below, above), np.where(plus, above, below)
    return float(np.min(slopes[down], initial=np.inf)), float(np.max(slopes[up], initial=-np.inf))


def intercept(problem: Problem, alpha: np.ndarray, gradient: np.ndarray) -> float:
    """b: the mean of -y_i G_i of the free variables; without any, the middle of the interval of optimal values."""
    if not problem.bias:
        return 0.0
    free = (alpha > 0) & (alpha < problem.upper)
    if free.any():
        return float(np.mean(-problem.signs[free] * gradient[free]))
    ends = [end for end in extremes(problem, alpha, gradient) if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0


def solution(problem: Problem, alpha: np.ndarray, gradient: np.ndarray, iterations: int, stopped: str) -> Solution:
    """The solution with what follows from alpha and the gradient.

    The primal objective is 1/2 a'Qa + sum_i C_i max(0, -(G_i + y_i b)), so the gap is a sum of terms that are >= 0.
    """
    b = intercept(problem, alpha, gradient)
    margins = gradient + problem.signs * b
    short = margins < 0
    gap = float(alpha @ margins + np.minimum(problem.upper[short], np.finfo(float).max) @ -margins[short])
    objective = -0.5 * float(alpha @ (gradient + problem.linear))
    return Solution(alpha, b, gradient, iterations, objective, gap, violation(problem, alpha, gradient), stopped)

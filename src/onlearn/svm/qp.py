"""The dual problem by a general solver of quadratic programs: the reference for small problems.

``qpsolvers`` (``pip install onlearn[qp]``) calls PIQP, an interior-point method that takes matrices that are
positive semi-definite only. Memory grows with the square of the number of variables, time with its cube.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.svm.problem import Limits, Problem, Solution, bounded, check_problem, feasible, intercept, solution

ACCURACY = 1e-10  # of the interior-point method, for a problem whose numbers are about 1
NEAR = 1e-9  # a variable as near as this to a bound, beside the largest one, is at the bound
SMALLER = 1e-3  # or as this times its margin
NEGATIVE = 1e-7  # the part of the largest eigenvalue that a negative one may have


def solve(
    problem: Problem,
    limits: Limits = Limits(),  # noqa: B008
    start: np.ndarray | None = None,
    gradient: np.ndarray | None = None,
) -> Solution:
    """The solution by a quadratic program. Limits are looked at before it only, and a start changes nothing."""
    solve_qp = _package()
    check_problem(problem)
    problem = bounded(problem)
    p, y, movable = problem.linear, problem.signs, np.flatnonzero(problem.upper > 0)
    alpha = np.zeros(len(p))
    columns = problem.columns.precise() or problem.columns
    stopped = limits.reached(0, np.inf)
    if len(movable) and not stopped:
        K = columns.rows(problem.examples[movable], problem.examples[movable]).astype(np.float64)
        alpha[movable] = _program(solve_qp, problem, K, movable)
    used = np.flatnonzero(alpha)
    F = np.zeros(len(p))
    if len(used):
        F = (alpha * y)[used] @ columns.rows(problem.examples[used], problem.examples).astype(np.float64)
    return solution(problem, alpha, y * F + p, 1, stopped or "tol")


def _package() -> Any:
    try:
        import piqp  # noqa: F401
        from qpsolvers import solve_qp
    except ImportError:
        raise ImportError(
            'the solver "qp" needs the packages qpsolvers and piqp: pip install "onlearn[qp]", or choose "smo"'
        ) from None
    return solve_qp


def _program(solve_qp: Any, problem: Problem, K: np.ndarray, movable: np.ndarray) -> np.ndarray:
    """The variables that may move. They are scaled, so that the solver sees numbers of about 1."""
    y, p, C = problem.signs[movable], problem.linear[movable], problem.upper[movable]
    K = (K + K.T) / 2
    least = np.linalg.eigvalsh(K)[[0, -1]]
    if least[0] < -NEGATIVE * max(abs(least[0]), abs(least[1])):
        raise ValueError(
            f'the solver "qp" needs a kernel matrix that is positive semi-definite, but this one has the eigenvalue '
            f'{least[0]:.3g}: choose the solver "smo", or repair the kernel (onlearn.kernels.repair)'
        )
    scale = float(np.max(np.abs(K.diagonal()), initial=0.0)) or 1.0
    size = float(np.max(np.abs(p), initial=0.0)) or 1.0
    Q, high = np.outer(y, y) * (K / scale), C * (scale / size)
    found = solve_qp(
        Q, p / size,
        A=y[None] if problem.bias else None, b=np.zeros(1) if problem.bias else None,
        lb=np.zeros(len(y)), ub=high,
        solver="piqp", eps_abs=ACCURACY, eps_rel=ACCURACY, max_iter=1000,
    )  # fmt: skip
    if found is None or not np.isfinite(found).all():
        raise ValueError('the solver "qp" found no solution: scale the data, or choose the solver "smo"')
    a = _at_bounds(problem, movable, Q, p / size, np.clip(found, 0.0, high), high)
    return np.where(a < high, np.minimum(a * (size / scale), C), C)  # exactly at the bound, whatever the rounding


def _at_bounds(
    problem: Problem, movable: np.ndarray, Q: np.ndarray, p: np.ndarray, a: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Variables that the interior-point method left a little inside the bounds that they belong to, at their bounds."""
    sub = problem._replace(examples=movable, signs=problem.signs[movable], linear=p, upper=high)
    largest = float(np.max(a, initial=0.0))
    gradient = Q @ a + p
    inside = (a > NEAR * largest) & (a < high - NEAR * largest)
    b = intercept(sub, np.where(inside, a, 0.0), gradient) if inside.any() else 0.0
    # At the optimum a variable times its margin is 0: which of the two should be 0 shows in which is the smaller.
    margins = gradient + sub.signs * b
    a = np.where(a < NEAR * largest + SMALLER * largest * margins, 0.0, a)
    a = np.where(high - a < NEAR * largest - SMALLER * largest * margins, high, a)
    return feasible(sub, a)

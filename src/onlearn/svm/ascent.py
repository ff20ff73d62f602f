"""On-line gradient ascent in the dual, as textbooks have it: one variable after another, without a bias.

    a_i <- a_i + eta_i (1 - y_i sum_j a_j y_j k(x_i, x_j)),   eta_i = 1 / k(x_i, x_i),   clipped to [0, C_i]

In general a_i <- a_i - G_i / k(x_i, x_i): the step to the optimum of this one variable. Passes over all variables go on
until the KKT conditions hold. (Friess, Cristianini and Campbell 1998 call it the kernel adatron.)

A block of variables is taken at a time. Its steps need the kernel values of the block with itself, and one sum of
kernel rows brings F_i = sum_j a_j y_j k(x_i, x_j) of all others up to date. The steps are the same as without blocks.
"""

from __future__ import annotations

import numpy as np

from onlearn.kernels.tiles import fused
from onlearn.svm.problem import Limits, Problem, Solution, bounded, check_problem, feasible, solution, violation

BLOCK = 512  # variables
STEPS = 10_000_000  # and 100 passes: the limit where the caller has none


def solve(
    problem: Problem,
    limits: Limits = Limits(),  # noqa: B008
    start: np.ndarray | None = None,
    gradient: np.ndarray | None = None,
) -> Solution:
    """The solution by passes over all variables; ``iterations`` counts the steps that changed a variable.

    ``gradient`` is Qa + p at the start, if the caller knows it.
    """
    check_problem(problem)
    if problem.bias:
        raise ValueError('the solver "ascent" has no bias: solve without one, or choose the solver "smo"')
    problem = bounded(problem)
    alpha, steps, signs = feasible(problem, start), 0, problem.signs
    columns, n = problem.columns, len(problem.upper)
    examples, place = np.unique(problem.examples, return_inverse=True)
    window, sums = columns.window(examples), np.zeros(len(examples))
    floor = max(float(np.max(np.abs(columns.diagonal), initial=0.0)) * float(np.finfo(columns.dtype).eps), 1e-300)
    most = max(STEPS, 100 * n) if limits.max_iter is None else limits.max_iter
    limits = limits._replace(max_iter=most)

    def add(variables: np.ndarray, changes: np.ndarray) -> None:
        which, at = np.unique(problem.examples[variables], return_inverse=True)
        window.add(sums, which, np.bincount(at, changes * signs[variables], len(which)))

    def slopes() -> np.ndarray:
        return signs * sums[place] + problem.linear

    if gradient is not None and start is not None and np.array_equal(alpha, start):
        sums[place] = signs * (gradient - problem.linear)
    else:
        add(np.flatnonzero(alpha), alpha[alpha != 0])
    movable = np.flatnonzero(problem.upper > 0)
    worst, stopped = violation(problem, alpha, slopes()), ""
    while not stopped and worst > limits.tol:
        before = steps
        for first in range(0, len(movable), BLOCK):
            block = movable[first : first + BLOCK]
            stopped = limits.reached(steps, worst)
            if stopped:
                break
            e, at = np.unique(problem.examples[block], return_inverse=True)
            order = columns.cached_first(e)
            at = np.argsort(order)[at]
            K, F, a = columns.square(e[order]), sums[place[block]], alpha[block]
            steps += ascend(K, at, F, a, signs[block], problem.linear[block], problem.upper[block], floor, most - steps)
            changed = a != alpha[block]
            add(block[changed], (a - alpha[block])[changed])
            alpha[block] = a
        worst = violation(problem, alpha, slopes())
        if steps == before:  # steps are too small for the precision of alpha
            stopped = stopped or "precision"
    return solution(problem, alpha, slopes(), steps, stopped if worst > limits.tol else "tol")


@fused
def ascend(K, at, F, a, y, p, C, floor, most):
    """One step on each variable of a block, at most ``most``, with F of the variables; returns the number of steps."""
    steps = 0
    for i in range(len(a)):
        gradient = y[i] * F[i] + p[i]
        row = K[at[i]]
        new = min(max(a[i] - gradient / max(np.float64(row[at[i]]), floor), 0.0), C[i])
        if new != a[i] and steps < most:
            change = (new - a[i]) * y[i]
            a[i] = new
            for k in range(len(a)):
                F[k] += change * row[at[k]]
            steps += 1
    return steps

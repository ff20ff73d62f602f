"""Sequential minimal optimisation (plain version)."""

from __future__ import annotations

import numpy as np

from onlearn.svm.problem import Limits, Problem, Solution, check_problem, feasible, solution, violation


def solve(problem: Problem, limits: Limits = Limits(), start: np.ndarray | None = None) -> Solution:  # noqa: B008
    """The solution by pairs (or, without a bias, single variables) of largest gain."""
    check_problem(problem)
    a, y, C = feasible(problem, start), problem.signs, problem.upper
    e, columns = problem.examples, problem.columns
    diagonal = columns.diagonal[e]
    G = problem.linear.copy()
    if a.any():
        used = np.flatnonzero(a)
        G += y * ((a * y)[used] @ columns.rows(e[used]).astype(float)[:, e])
    done, stopped = 0, "tol"
    tau = 1e-10 * max(1e-300, float(np.abs(diagonal).max(initial=0)))
    while (worst := violation(problem, a, G)) > limits.tol:
        if done % 100 == 0 and (why := limits.reached(done, worst)):
            stopped = why
            break
        if limits.max_iter is not None and done >= limits.max_iter:
            stopped = "iterations"
            break
        done += 1
        if problem.bias:
            s = -y * G
            up = np.where(y > 0, a < C, a > 0)
            low = np.where(y > 0, a > 0, a < C)
            i = int(np.argmax(np.where(up, s, -np.inf)))
            row = columns.rows(e[[i]])[0].astype(float)[e]
            curve = np.maximum(diagonal[i] + diagonal - 2 * row, tau)
            gain = np.where(low & (s < s[i]), (s[i] - s) ** 2 / curve, -1.0)
            j = int(np.argmax(gain))
            other = columns.rows(e[[j]])[0].astype(float)[e]
            t = (s[i] - s[j]) / curve[j]
            t = min(t, C[i] - a[i] if y[i] > 0 else a[i], a[j] if y[j] > 0 else C[j] - a[j])
            a[i] = min(max(a[i] + y[i] * t, 0.0), C[i])
            a[j] = min(max(a[j] - y[j] * t, 0.0), C[j])
            G += y * t * (row - other)
        else:
            curve = np.maximum(diagonal, tau)
            target = np.clip(a - G / curve, 0.0, C)
            i = int(np.argmax(np.abs(target - a) * np.abs(G)))
            t = target[i] - a[i]
            a[i] = target[i]
            G += y * (t * y[i]) * columns.rows(e[[i]])[0].astype(float)[e]
    return solution(problem, a, G, done, stopped)

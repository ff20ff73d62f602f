"""A plain solver of the dual problem with a full kernel matrix: the oracle, in a screen of NumPy."""

from __future__ import annotations

import numpy as np

from onlearn.svm.problem import Problem, violation


def minimise(problem: Problem, tol: float = 1e-8, steps: int = 200_000) -> np.ndarray:
    """alpha by steps on the pair (without a bias: the variable) of the largest violation, in double precision."""
    y, C = problem.signs, problem.upper
    K = problem.columns.rows(problem.examples, problem.examples).astype(np.float64)
    Q = np.outer(y, y) * K
    a, G = np.zeros(len(y)), problem.linear.copy()
    tiny = 1e-14 * max(float(np.abs(K).max(initial=0.0)), 1e-300)
    for _ in range(steps):
        if violation(problem, a, G) <= tol:
            break
        if problem.bias:
            s = -y * G
            i = int(np.argmax(np.where(np.where(y > 0, a < C, a > 0), s, -np.inf)))
            j = int(np.argmin(np.where(np.where(y > 0, a > 0, a < C), s, np.inf)))
            t = (s[i] - s[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], tiny)
            t = min(t, C[i] - a[i] if y[i] > 0 else a[i], a[j] if y[j] > 0 else C[j] - a[j])
            change = {i: y[i] * t, j: -y[j] * t}
        else:
            far = np.where(G < 0, np.where(a < C, -G, 0), np.where(a > 0, G, 0))
            i = int(np.argmax(far))
            change = {i: min(max(a[i] - G[i] / max(K[i, i], tiny), 0.0), C[i]) - a[i]}
        for k, d in change.items():
            a[k] = min(max(a[k] + d, 0.0), C[k])
            if min(a[k], C[k] - a[k]) < 1e-15 * C[k]:
                a[k] = 0.0 if a[k] < C[k] / 2 else C[k]
            G += d * Q[:, k]
    return a


def objective(problem: Problem, a: np.ndarray) -> float:
    """The dual objective, from the definition."""
    y = problem.signs
    K = problem.columns.rows(problem.examples, problem.examples).astype(np.float64)
    return -float(0.5 * (a * y) @ K @ (a * y) + problem.linear @ a)

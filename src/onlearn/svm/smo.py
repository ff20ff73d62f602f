"""Sequential minimal optimisation with large working sets.

A round selects the variables that violate the KKT conditions most and those nearest to them, computes the square of the
kernel matrix that belongs to them, and solves the problem of these variables alone by SMO with second-order selection
(``working_set``), whose steps then cost a few microseconds. Then one sum of kernel rows, of the variables that changed,
brings F_i = sum_j a_j y_j k(x_i, x_j) of all examples up to date. With thousands of variables in the working set a
dozen rounds do, and kernel rows are computed in blocks for the variables that changed only.

Thorsten Joachims (1998) has the decomposition, Fan, Chen and Lin (2005) the selection of pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.svm.columns import KernelColumns
from onlearn.svm.problem import Limits, Problem, Solution, bounded, check_problem, feasible, solution
from onlearn.svm.working_set import STRIP, solve_pairs, solve_singles

FEWEST, MOST = 4096, 16384  # variables of a working set
SHARE = 4  # the square of a working set may take one part in so many of the memory of the cache
WORST = 0.25  # of a working set are the worst; the others are drawn, for the worst alone are no fair sample
SLICE = 20_000  # steps between two looks at the limits
INNER = 0.1  # a working set is solved to this part of the violation of the whole problem
STEPS = 10_000_000  # and 100 a variable: the limit where the caller has none
NOISE = 0.25  # of the tolerance, which rounding may use up
STALLS = 10  # rounds in which the objective does not fall, before the solver gives up
SAMPLE = 64  # examples whose sums are checked in double precision


def solve(problem: Problem, limits: Limits = Limits(), start: np.ndarray | None = None) -> Solution:  # noqa: B008
    """The solution of a problem; ``start`` is a warm start."""
    check_problem(problem)
    state = State(bounded(problem), feasible(bounded(problem), start))
    most = limits.max_iter if limits.max_iter is not None else max(STEPS, 100 * len(problem.upper))
    limits = limits._replace(max_iter=most)
    stopped = ""
    while not stopped:
        worst = state.violation()
        if worst <= state.tolerance(limits.tol):
            if not state.refine(limits.tol):
                stopped = "tol"
            continue
        stopped = limits.reached(state.steps, worst) or state.round(limits, worst)
    return solution(state.problem, state.alpha, state.gradient(), state.steps, stopped)


class State:
    """Where the solver stands: alpha, and F of all examples of the problem."""

    def __init__(self, problem: Problem, alpha: np.ndarray) -> None:
        self.problem, self.alpha, self.steps = problem, alpha, 0
        self.examples, self.place = np.unique(problem.examples, return_inverse=True)  # whose F is kept, and where
        self.random = np.random.default_rng(0)
        self.offsets = problem.signs * problem.linear
        self.shuffled = self.random.permutation(len(alpha))  # ties are broken at random
        room = int(np.sqrt(max(0, problem.columns.cache_bytes) / SHARE / problem.columns.dtype.itemsize))
        self.most = min(MOST, max(512, room // STRIP * STRIP))
        self.size = min(FEWEST, self.most)
        self.lowest, self.stalled = np.inf, 0
        self.use(problem.columns)

    def use(self, columns: KernelColumns) -> None:
        """Compute F anew by these kernel values."""
        self.columns, self.window = columns, columns.window(self.examples)
        self.F = np.zeros(len(self.examples))
        self.add(np.flatnonzero(self.alpha), self.alpha[self.alpha != 0])

    def add(self, variables: np.ndarray, changes: np.ndarray) -> None:
        """Bring F up to date with changes of some variables."""
        e, y = self.problem.examples[variables], self.problem.signs[variables]
        which, at = np.unique(e, return_inverse=True)
        amounts = np.bincount(at, changes * y, len(which))
        some = amounts != 0  # both variables of an example of a regression may change alike
        self.window.add(self.F, which[some], amounts[some])

    def gradient(self) -> np.ndarray:
        return self.problem.signs * self.F[self.place] + self.problem.linear

    # -- violation and selection

    def slopes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """s = -y G, and which variables may move up and down (in the direction of y)."""
        a, plus = self.alpha, self.problem.signs > 0
        above, below = a > 0, a < self.problem.upper
        return -self.F[self.place] - self.offsets, np.where(plus, below, above), np.where(plus, above, below)

    def violation(self) -> float:
        """The largest violation; keeps what ``select`` needs."""
        s, up, down = self.slopes()
        highest, lowest = np.max(s[up], initial=-np.inf), np.min(s[down], initial=np.inf)
        if self.problem.bias:
            b, worst = (highest + lowest) / 2, highest - lowest
        else:
            b, worst = 0.0, max(highest, -lowest)
        self.s, self.up, self.down = s, up, down
        worst = float(worst) if np.isfinite(worst) else 0.0
        self.b = float(b) if np.isfinite(b) else 0.0
        return max(0.0, worst)

    def select(self) -> np.ndarray:
        """The working set: half of it the worst on either side, then those that violate most or are nearest to it."""
        n, order = len(self.alpha), self.shuffled
        # Where the free variables do not fit into one working set, many rounds are needed.
        free = int(np.count_nonzero(self.up & self.down))
        self.size = min(self.most, max(self.size, -(-3 * free // (2 * STRIP)) * STRIP))
        count = min(self.size, n)
        rises = np.where(self.up, self.s - self.b, -np.inf)[order]
        falls = np.where(self.down, self.b - self.s, -np.inf)[order]
        reach = np.maximum(rises, falls)
        if count < n:
            chosen = np.zeros(n, dtype=bool)
            few = int(count * WORST / 2)
            for side in (rises, falls):
                worst = np.argpartition(side, n - few)[n - few :]
                chosen[worst[side[worst] > 0]] = True
            reach[chosen] = -np.inf
            left = count - np.count_nonzero(chosen)
            violators = np.flatnonzero(reach > 0.0)
            if len(violators) > left:
                chosen[self.random.choice(violators, left, replace=False)] = True
            else:
                chosen[np.argpartition(reach, n - left)[n - left :]] = True
            picked = order[chosen]
        else:
            picked = order
        picked = picked[self.problem.upper[picked] > 0]
        return np.sort(picked)

    # -- a round

    def round(self, limits: Limits, worst: float) -> str:
        """Solve the problem of one working set and update F; returns why to stop, or ""."""
        p, w = self.problem, self.select()
        e, at = np.unique(p.examples[w], return_inverse=True)
        K = self.columns.square(e)
        if len(e) < len(w):
            K = K[np.ix_(at, at)]
        count = len(w)
        size = -(-count // STRIP) * STRIP
        if size > count:
            K = np.pad(K, (0, size - count))

        def filled(values: Any, filler: float) -> np.ndarray:
            return np.concatenate([values, np.full(size - count, filler)])

        a, s = filled(self.alpha[w], 0.0), filled(self.s[w], 0.0)
        y, C = filled(p.signs[w], 1.0), filled(p.upper[w], 0.0)
        up, down = (filled(np.where(side[w], 0.0, -np.inf), -np.inf) for side in (self.up, self.down))
        diagonal = K.diagonal().astype(np.float64)
        floor = max(float(np.max(np.abs(diagonal), initial=0.0)) * float(np.finfo(K.dtype).eps), 1e-300)
        inner = solve_pairs if p.bias else solve_singles
        values, best = np.empty(size), np.empty(size // STRIP)
        tol = 0.5 * limits.tol if count == len(self.alpha) else max(INNER * worst, 0.5 * limits.tol)
        before, stopped = self.steps, ""
        while not stopped:
            most = min(SLICE, limits.max_iter - self.steps) if limits.max_iter is not None else SLICE
            made = inner(K, diagonal, a, s, y, C, up, down, values, best, floor, tol, most)
            self.steps += made
            if made < most:
                break
            stopped = limits.reached(self.steps, worst)
        changes = a[:count] - self.alpha[w]
        moved = changes != 0
        self.alpha[w] = a[:count]
        self.add(w[moved], changes[moved])
        return stopped or self.progressed(self.steps - before)

    def progressed(self, steps: int) -> str:
        """Whether the objective still falls; if not, go on in double precision, or give up."""
        value = 0.5 * float(self.alpha @ (self.gradient() + self.problem.linear))
        if steps and value < self.lowest - 1e-13 * abs(self.lowest if np.isfinite(self.lowest) else 0.0):
            self.lowest, self.stalled = value, 0
            return ""
        self.stalled += 1
        if steps and self.stalled < STALLS:
            return ""
        finer = self.columns.precise()
        if finer is None:
            return "precision"
        self.use(finer)
        self.lowest, self.stalled = np.inf, 0
        return ""

    # -- accuracy

    def tolerance(self, tol: float) -> float:
        """The tolerance, but no less than rounding allows."""
        return max(tol, 1e-14 * float(np.max(np.abs(self.s), initial=0.0)))

    def refine(self, tol: float) -> bool:
        """Whether single precision was too coarse: F of a few examples is checked, and all is computed anew if it is.

        Those that are nearest to a violation are checked, for these decide whether the problem is solved.
        """
        used = np.flatnonzero(self.alpha)
        if self.columns.dtype == np.float64 or not len(used):
            return False
        reach = np.maximum(np.where(self.up, self.s - self.b, -np.inf), np.where(self.down, self.b - self.s, -np.inf))
        few = self.place[np.argsort(-reach, kind="stable")[: SAMPLE // 2]]
        few = np.unique(np.concatenate([few, np.linspace(0, len(self.F) - 1, SAMPLE // 2).astype(np.int64)]))
        exact = self.columns.exact(self.examples[few], self.problem.examples[used])
        if exact is None:
            return False
        sums = exact @ (self.alpha * self.problem.signs)[used]
        finer = self.columns.precise() if np.max(np.abs(sums - self.F[few])) > NOISE * tol else None
        if finer is None:
            return False
        self.use(finer)
        return True

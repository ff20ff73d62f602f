"""Sequential minimal optimisation with large working sets.

A round selects the variables that violate the KKT conditions most and those nearest to them, computes the square of the
kernel matrix that belongs to them, and solves the problem of these variables alone by SMO with second-order selection
(``working_set``), whose steps then cost a few microseconds. Then one sum of kernel rows, of the variables that changed,
brings F_i = sum_j a_j y_j k(x_i, x_j) of all examples up to date. With thousands of variables in the working set a
dozen rounds do, and kernel rows are computed in blocks for the variables that changed only.

Shrinking: where the cache is too small for the kernel rows of all support vectors, examples that are far from violating
the conditions are left out, and their F is brought up to date when the others are nearly solved.

Thorsten Joachims (1998) has the decomposition, Fan, Chen and Lin (2005) the selection of pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.svm.columns import KernelColumns, Window
from onlearn.svm.problem import Limits, Problem, Solution, bounded, check_problem, feasible, solution
from onlearn.svm.working_set import STRIP, solve_pairs, solve_singles

FEWEST, FIRST, MOST = 1024, 4096, 16384  # variables of a working set: at first an eighth of all, within the former
FILL = 256  # of a working set, and a quarter of the others: variables that do not violate the conditions, but nearly
SHARE = 4  # the square of a working set may take one part in so many of the memory of the cache
WORST = 0.25  # of a working set are the worst; the others are drawn, for the worst alone are no fair sample
SLICE = 20_000  # steps between two looks at the limits
INNER = 0.1  # a working set is solved to this part of the violation of the whole problem
STEPS = 10_000_000  # and 100 a variable: the limit where the caller has none
NOISE = 0.25  # of the tolerance, which rounding may use up
CLOSER = 0.1  # of the violation at which examples were left out
LEAST = 1e-14  # of the objective: a smaller fall is rounding
STALLS = 10  # rounds in which the objective does not fall, before the solver gives up
SAMPLE = 64  # examples whose sums are checked in double precision


def solve(
    problem: Problem,
    limits: Limits = Limits(),  # noqa: B008
    start: np.ndarray | None = None,
    gradient: np.ndarray | None = None,
    shrinking: bool = True,
) -> Solution:
    """The solution of a problem.

    ``start`` is a warm start. Who knows the ``gradient`` Qa + p there may pass it: it is used if the start is feasible.
    """
    check_problem(problem)
    problem = bounded(problem)
    alpha = feasible(problem, start)
    known = gradient is not None and start is not None and np.array_equal(alpha, start)
    state = State(problem, alpha, gradient if known else None)
    most = limits.max_iter if limits.max_iter is not None else max(STEPS, 100 * len(problem.upper))
    limits = limits._replace(max_iter=most)
    stopped = ""
    while not stopped:
        worst = state.violation()
        if worst <= max(state.tolerance(limits.tol), state.enough):
            if not state.activate_all() and not state.refine(limits.tol):
                stopped = "tol"
            continue
        if shrinking and state.active is None:
            state.shrink(worst)
        stopped = limits.reached(state.steps, worst) or state.round(limits, worst)
    state.activate_all()
    return solution(problem, state.alpha, state.gradient(), state.steps, stopped)


class State:
    """Where the solver stands: alpha, and F of all examples of the problem."""

    problem: Problem
    alpha: np.ndarray
    steps: int
    examples: np.ndarray
    place: np.ndarray
    random: np.random.Generator
    offsets: np.ndarray  # y p
    shuffled: np.ndarray
    most: int  # variables of a working set
    size: int
    value: float
    stalled: int  # rounds in which the objective did not fall
    columns: KernelColumns
    window: Window
    F: np.ndarray
    enough: float
    part: Window  # of the active examples
    pending: np.ndarray  # changes that the F of the others lacks, by example
    s: np.ndarray  # these four are as ``violation`` left them
    up: np.ndarray
    down: np.ndarray
    b: float

    def __init__(self, problem: Problem, alpha: np.ndarray, gradient: np.ndarray | None = None) -> None:
        self.problem, self.alpha, self.steps = problem, alpha, 0
        self.examples, self.place = np.unique(problem.examples, return_inverse=True)  # whose F is kept, and where
        self.random = np.random.default_rng(0)
        self.offsets = problem.signs * problem.linear
        self.shuffled = self.random.permutation(len(alpha))  # ties are broken at random
        room = int(np.sqrt(max(0, problem.columns.cache_bytes) / SHARE / problem.columns.dtype.itemsize))
        self.most = min(MOST, max(512, room // STRIP * STRIP))
        self.size = min(self.most, int(np.clip(len(alpha) // 8, FEWEST, FIRST)) // STRIP * STRIP)
        self.value, self.stalled = 0.0, 0  # the fall of the objective so far
        self.use(problem.columns, gradient)

    def use(self, columns: KernelColumns, gradient: np.ndarray | None = None) -> None:
        """Compute F anew by these kernel values, unless the gradient is known."""
        self.columns, self.window = columns, columns.window(self.examples)
        self.active: np.ndarray | None = None  # where the examples are whose F is kept current; None: all
        self.enough = 0.0  # the violation of the active variables at which the others are looked at again
        self.F = np.zeros(len(self.examples))
        if gradient is None:
            self.add(np.flatnonzero(self.alpha), self.alpha[self.alpha != 0])
        else:
            self.F[self.place] = self.problem.signs * (gradient - self.problem.linear)

    def add(self, variables: np.ndarray, changes: np.ndarray) -> None:
        """Bring F up to date with changes of some variables."""
        e, y = self.problem.examples[variables], self.problem.signs[variables]
        which, at = np.unique(e, return_inverse=True)
        amounts = np.bincount(at, changes * y, len(which))
        some = amounts != 0  # both variables of an example of a regression may change alike
        which, amounts = which[some], amounts[some]
        if self.active is None:
            self.window.add(self.F, which, amounts)
        else:
            sums = self.F[self.active]
            self.part.add(sums, which, amounts)
            self.F[self.active] = sums
            self.pending[which] += amounts

    def gradient(self) -> np.ndarray:
        return self.problem.signs * self.F[self.place] + self.problem.linear

    # -- shrinking

    def shrink(self, worst: float) -> None:
        """Leave out the examples that are far from a violation, if these are most and rows must be computed again."""
        if np.count_nonzero(self.alpha) <= self.columns.capacity or not self.columns.kernel.of_products:
            return
        near = self.reach() > -worst
        near |= self.up & self.down
        active = np.zeros(len(self.examples), dtype=bool)
        active[self.place[near]] = True
        if 2 * np.count_nonzero(active) < len(active):
            self.active, self.enough = np.flatnonzero(active), CLOSER * worst
            self.part, self.pending = self.columns.window(self.examples[active]), np.zeros(self.columns.n)
            self.up &= active[self.place]
            self.down &= active[self.place]

    def activate_all(self) -> bool:
        """Bring F of the examples that were left out up to date; False if there are none."""
        if self.active is None:
            return False
        others, changed = np.delete(np.arange(len(self.examples)), self.active), np.flatnonzero(self.pending)
        sums = self.F[others]
        self.columns.window(self.examples[others]).add(sums, changed, self.pending[changed])
        self.F[others] = sums
        self.active, self.enough = None, 0.0
        return True

    # -- violation and selection

    def slopes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """s = -y G, and which variables may move up and down (in the direction of y)."""
        a, plus = self.alpha, self.problem.signs > 0
        above, below = a > 0, a < self.problem.upper
        up, down = np.where(plus, below, above), np.where(plus, above, below)
        if self.active is not None:
            active = np.zeros(len(self.examples), dtype=bool)
            active[self.active] = True
            up, down = up & active[self.place], down & active[self.place]
        return -self.F[self.place] - self.offsets, up, down

    def violation(self) -> float:
        """The largest violation; keeps what ``select`` needs."""
        s, up, down = self.slopes()
        highest, lowest = np.max(s[up], initial=-np.inf), np.min(s[down], initial=np.inf)
        self.s, self.up, self.down, self.b = s, up, down, 0.0
        if not self.problem.bias:
            return float(max(0.0, highest, -lowest))
        if not (np.isfinite(highest) and np.isfinite(lowest)):
            return 0.0
        self.b = float(highest + lowest) / 2
        return float(max(0.0, highest - lowest))

    def reach(self) -> np.ndarray:
        """How far each variable violates the conditions; negative if it does not, -infinity if it cannot move."""
        rises, falls = np.where(self.up, self.s - self.b, -np.inf), np.where(self.down, self.b - self.s, -np.inf)
        return np.maximum(rises, falls)

    def select(self) -> np.ndarray:
        """The working set: the worst on either side, free variables, other violators at random, and near ones."""
        n, free = len(self.alpha), self.up & self.down
        # Where the free variables do not fit into one working set, many rounds are needed.
        self.size = min(self.most, max(self.size, -(-3 * int(np.count_nonzero(free)) // (2 * STRIP)) * STRIP))
        movable = self.shuffled[(self.up | self.down)[self.shuffled]]
        if len(movable) <= self.size:
            return np.sort(movable)
        chosen = np.zeros(n, dtype=bool)
        few = int(self.size * WORST / 2)
        reach = self.reach()
        for sign, side in ((1.0, self.up), (-1.0, self.down)):
            some = movable[side[movable]]
            far = sign * (self.s[some] - self.b)
            worst = np.argpartition(-far, few)[:few] if len(some) > few else np.arange(len(some))
            chosen[some[worst[far[worst] > 0]]] = True
        for group in (free, reach > 0):
            some, left = np.flatnonzero(group & ~chosen), self.size - np.count_nonzero(chosen)
            chosen[some if len(some) <= left else self.random.choice(some, left, replace=False)] = True
        held = int(np.count_nonzero(chosen))
        near = min(self.size, -(-(held + FILL + held // 4) // STRIP) * STRIP) - held
        if near:
            reach[chosen] = -np.inf
            chosen[movable[np.argpartition(-reach[movable], near - 1)[:near]]] = True
        return np.flatnonzero(chosen)

    # -- a round

    def round(self, limits: Limits, worst: float) -> str:
        """Solve the problem of one working set and update F; returns why to stop, or ""."""
        p, w = self.problem, self.select()
        w = w[self.columns.cached_first(p.examples[w])]
        e, at = np.unique(p.examples[w], return_inverse=True)
        if len(e) == len(w):
            K = self.columns.square(p.examples[w])
        else:  # both variables of an example of a regression
            order = self.columns.cached_first(e)
            at = np.argsort(order)[at]
            K = self.columns.square(e[order])[np.ix_(at, at)]
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
        tol = (
            0.5 * limits.tol
            if len(w) == np.count_nonzero(self.up | self.down)
            else max(INNER * worst, 0.5 * limits.tol)
        )
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
        # 1/2 (a' - a)'(G' + G): how much the objective of the problem falls, exactly.
        fall = 0.5 * float(changes @ (p.signs[w] * (self.s[w] + s[:count])))
        self.alpha[w] = a[:count]
        self.value -= fall
        self.add(w[moved], changes[moved])
        return stopped or self.progressed(self.steps > before and fall > LEAST * abs(self.value))

    def progressed(self, fell: bool) -> str:
        """Whether the objective still falls; if not, go on in double precision, or give up."""
        self.stalled = 0 if fell else self.stalled + 1
        if self.stalled < STALLS:
            return ""
        finer = self.columns.precise()
        if finer is None:
            return "precision"
        self.use(finer)
        self.stalled = 0
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
        few = self.place[np.argsort(-self.reach(), kind="stable")[: SAMPLE // 2]]
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

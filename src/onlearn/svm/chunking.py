"""Chunking: the problem of a data set that comes in parts, with one part and the support vectors in memory.

The rows of a part that violate the KKT conditions of the solution so far are added to the examples in memory; the
problem of these is solved, from the solution so far; its support vectors stay, and the others are dropped, old ones
too. That goes on over the parts, and from the last one again to the first, until no row of a full sweep violates the
conditions by more than ``tol``: then the solution is that of all rows (Vapnik 1982).

With a bias, the conditions say max s_i <= min s_j over the variables that may move up and down (``problem``). Two rows
of different parts may violate them together and neither with the support vectors, so the two extreme rows of the sweep
are remembered, too. Rows that are not in memory have a_i = 0, and are not needed for anything but these conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn.dual.examples import concatenate, count, pick
from onlearn.svm import smo
from onlearn.svm.problem import KernelColumns, Limits, Problem, Solution

VALUES = 1 << 23  # kernel values computed at a time, about
FEW = 8  # the problem is solved again once one part in so many of a chunk violates the conditions, or at the end
NEAREST = 64  # rows without weight that stay in memory, those nearest to a violation
SWEEPS = 10  # where only the largest variables are kept, which need not end

Variables = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


class Chunked(NamedTuple):
    """The solution of a data set in parts."""

    rows: Any  # the support vectors, as the source gave them
    numbers: np.ndarray  # of their rows in the source
    alpha: np.ndarray  # a row for each of them, a column for each variable of an example
    coefficients: np.ndarray  # sum over the variables of an example of a_i y_i
    intercept: float
    objective: float  # of the dual problem
    violation: float  # the largest of all rows, by the last sweep
    iterations: int
    sweeps: int
    total: int  # rows of the source
    most: int  # rows in memory at a time, at most
    stopped: str  # as that of a ``Solution``


class Slices:
    """Parts of arrays in memory: a source for ``solve_in_chunks``."""

    rows: Any
    targets: np.ndarray
    weights: np.ndarray
    size: int

    def __init__(self, rows: Any, targets: np.ndarray, weights: np.ndarray | None = None, size: int = 4096) -> None:
        self.rows, self.targets, self.size = rows, np.asarray(targets), size
        self.weights = np.ones(len(self.targets)) if weights is None else np.asarray(weights, dtype=np.float64)

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        for first in range(0, len(self.targets), self.size):
            some = np.arange(first, min(first + self.size, len(self.targets)))
            yield pick(self.rows, some), self.targets[some], self.weights[some]


class Part(NamedTuple):
    """Rows in memory. Signs, linear and upper are as in a ``Problem``, with a row an example."""

    rows: Any
    numbers: np.ndarray
    signs: np.ndarray
    linear: np.ndarray
    upper: np.ndarray
    alpha: np.ndarray
    sums: np.ndarray  # F of each example, once it is known

    def take(self, some: np.ndarray) -> Part:
        return Part(pick(self.rows, some), *(field[some] for field in self[1:]))

    def joined_with(self, other: Part | None) -> Part:
        if other is None or not len(other.numbers):
            return self
        fields = (np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True))
        return Part(concatenate([self.rows, other.rows]), *fields)


def solve_in_chunks(
    kernel: Any,
    source: Iterable[tuple[Any, Any, Any]],
    variables: Variables,
    bias: bool = True,
    limits: Limits = Limits(),  # noqa: B008
    chunk: int = 10_000,
    largest: int | None = None,
    cache_bytes: int = 1 << 28,
    dtype: Any = None,
    solve: Callable[..., Solution] = smo.solve,
) -> Chunked:
    """The solution of the problem of all rows of ``source``, with ``chunk`` rows and the support vectors in memory.

    ``source`` is iterated again and again, and must give the same rows each time: blocks of rows (whatever the kernel
    takes), targets and weights (or None). ``variables(targets, weights)`` returns signs, linear and upper of the
    variables of a block: arrays with a row an example. ``largest`` keeps no more than so many support vectors, those of
    the largest a_i: then the solution is approximate, and there are no more than ``SWEEPS`` sweeps.
    """
    work = Work(kernel, bias, limits, chunk // FEW, largest, cache_bytes, dtype, solve)
    sweeps = total = 0
    stopped = ""
    while not stopped:
        before, number, complete = (work.solved, work.iterations), 0, True
        for part in parts(source, variables, chunk):
            number += len(part.numbers)
            stopped = work.visit(part) or limits.reached(work.iterations, work.worst())
            if stopped or (sweeps and work.covers(total)):
                complete = False
                break
        sweeps += 1
        if sweeps == 1:
            total = number
        elif number > total or (complete and number < total):
            raise ValueError(
                f"the source gave {total} rows at first and {number} later: it must give the same rows in each sweep"
            )
        if not stopped and work.covers(total) and work.waiting is not None:
            stopped = work.catch_up()
        if not stopped:
            if work.covers(total):
                stopped = "tol"
            elif largest is not None and sweeps >= SWEEPS:
                stopped = "iterations"
            elif work.solved > before[0] and work.iterations == before[1]:  # violations that are rounding alone
                stopped = "precision"
    return work.result(sweeps, total, stopped)


def parts(source: Iterable[tuple[Any, Any, Any]], variables: Variables, chunk: int) -> Iterator[Part]:
    """The rows of a source in parts of ``chunk`` rows, but for the last."""
    waiting: Part | None = None
    number = 0
    for rows, targets, weights in source:
        size = count(rows)
        targets = np.asarray(targets)
        signs, linear, upper = (
            np.asarray(values, dtype=np.float64).reshape(size, -1)
            for values in variables(targets, np.ones(size) if weights is None else np.asarray(weights))
        )
        new = Part(rows, np.arange(number, number + size), signs, linear, upper, np.zeros(signs.shape), np.zeros(size))
        number += size
        waiting = new if waiting is None else waiting.joined_with(new)
        while len(waiting.numbers) >= chunk:
            yield waiting.take(np.arange(chunk))
            waiting = waiting.take(np.arange(chunk, len(waiting.numbers)))
    if waiting is not None and len(waiting.numbers):
        yield waiting


class Work:
    """The examples in memory with their solution, and the extremes of the rows since it was found."""

    kernel: Any
    bias: bool
    limits: Limits
    enough: int  # rows that wait, beyond which the problem is solved again
    largest: int | None
    cache_bytes: int
    dtype: Any
    solve: Callable[..., Solution]
    coefficients: np.ndarray
    b: float
    objective: float
    iterations: int
    solved: int  # how often
    most: int
    clean: int
    high: float
    low: float

    def __init__(
        self, kernel: Any, bias: bool, limits: Limits, enough: int, largest: int | None, cache_bytes: int, dtype: Any,
        solve: Callable[..., Solution],
    ) -> None:  # fmt: skip
        self.kernel, self.bias, self.limits, self.enough, self.largest = kernel, bias, limits, enough, largest
        self.cache_bytes, self.dtype, self.solve = cache_bytes, dtype, solve
        self.kept: Part | None = None  # support vectors, and a few rows that are near to it
        self.points: Any = None  # of the support vectors
        self.coefficients = np.zeros(0)
        self.b = self.objective = 0.0
        self.iterations = self.solved = self.most = 0
        self.forget()

    def forget(self) -> None:
        """A new solution: nothing is known about other rows."""
        self.clean = 0  # rows that were visited since
        self.waiting: Part | None = None  # those of them that violate it
        self.high, self.low = -np.inf, np.inf  # extremes of s of variables that may move up, and down
        self.extreme: list[Part | None] = [None, None]  # the rows that attain them

    def worst(self) -> float:
        """The largest violation that is known."""
        return max(0.0, self.high - self.low) if self.bias else max(0.0, self.high, -self.low)

    def slopes(self, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sets the sums of a part; s = -y G of its variables, and -infinity for those that may not move up, or down."""
        F = np.zeros(len(part.numbers))
        if self.points is not None and len(self.coefficients):
            points, size = self.kernel.points(part.rows), max(1, VALUES // len(self.coefficients))
            for first in range(0, len(F), size):
                some = slice(first, first + size)
                F[some] = self.kernel.block(points.take(some), self.points) @ self.coefficients
        part.sums[:] = F
        s = -F[:, None] - part.signs * part.linear
        plus, above, below = part.signs > 0, part.alpha > 0, part.alpha < part.upper
        up, down = np.where(plus, below, above), np.where(plus, above, below)
        return s, np.where(up, 0.0, -np.inf), np.where(down, 0.0, -np.inf)

    def visit(self, part: Part) -> str:
        """Add the rows of a part that violate the conditions, and solve if there are enough; why to stop, or ""."""
        self.most = max(self.most, len(part.numbers) + (len(self.kept.numbers) if self.kept is not None else 0))
        if self.kept is not None:
            part = part.take(np.flatnonzero(~np.isin(part.numbers, self.kept.numbers)))
        self.clean += len(part.numbers)
        if not len(part.numbers):
            return ""
        s, up, down = self.slopes(part)
        if np.max(s + up) > self.high:
            self.high = float(np.max(s + up))
            self.extreme[0] = part.take(np.array([np.argmax(np.max(s + up, axis=1))]))
        if np.min(s - down) < self.low:
            self.low = float(np.min(s - down))
            self.extreme[1] = part.take(np.array([np.argmin(np.min(s - down, axis=1))]))
        if self.worst() <= self.limits.tol:
            return ""
        b = (self.high + self.low) / 2 if self.bias else 0.0
        reach = np.max(np.maximum(s - b + up, b - s + down), axis=1)
        added = part.take(np.flatnonzero(reach > 0))
        self.waiting = added if self.waiting is None else self.waiting.joined_with(added)
        return self.catch_up() if len(self.waiting.numbers) > self.enough else ""

    def catch_up(self) -> str:
        """Solve with the rows that wait; returns why to stop, or ""."""
        added = self.waiting
        if added is None:
            return ""
        for row in self.extreme:
            if row is not None and row.numbers[0] not in added.numbers:
                added = added.joined_with(row)
        if self.kept is not None:
            added = added.take(np.flatnonzero(~np.isin(added.numbers, self.kept.numbers)))
            added = self.kept.joined_with(added)
        return self.learn(added)

    def learn(self, part: Part) -> str:
        """Solve the problem of the rows in memory, and keep its support vectors and the rows nearest to a violation."""
        shape = part.signs.shape
        columns = KernelColumns(self.kernel, self.kernel.points(part.rows), self.cache_bytes, self.dtype)
        examples = np.repeat(np.arange(shape[0]), shape[1])
        problem = Problem(columns, examples, part.signs.ravel(), part.linear.ravel(), part.upper.ravel(), self.bias)
        limits = self.limits._replace(tol=self.limits.tol / 2)
        if limits.max_iter is not None:
            limits = limits._replace(max_iter=max(0, limits.max_iter - self.iterations))
        # What was dropped of a solution is missing in its sums.
        gradient = None if self.largest is not None else (part.signs * part.sums[:, None] + part.linear).ravel()
        found = self.solve(problem, limits, part.alpha.ravel(), gradient)
        self.iterations += found.iterations
        self.solved += 1
        alpha = found.alpha.reshape(shape)
        part = part._replace(
            alpha=alpha, sums=(part.signs * (found.gradient.reshape(shape) - part.linear))[:, 0].copy()
        )
        self.forget()
        slopes = -(problem.signs * found.gradient).reshape(shape)
        plus, above, below = part.signs > 0, alpha > 0, alpha < part.upper
        up, down = np.where(plus, below, above), np.where(plus, above, below)
        self.high = float(np.max(slopes[up], initial=-np.inf))
        self.low = float(np.min(slopes[down], initial=np.inf))
        self.objective, self.b = found.objective, found.intercept
        self.keep(part, slopes, up, down)
        return found.stopped if found.stopped not in ("tol", "precision") else ""

    def keep(self, part: Part, slopes: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
        total = part.alpha.sum(axis=1)
        support = np.flatnonzero(total > 0)
        if self.largest is not None and len(support) > self.largest:
            support = np.sort(support[np.argsort(-total[support], kind="stable")[: self.largest]])
        nearest = []
        for side in (np.where(up, slopes, -np.inf), np.where(down, -slopes, -np.inf)):
            reach = np.where(total > 0, -np.inf, np.max(side, axis=1))
            some = np.argsort(-reach, kind="stable")[:NEAREST]
            nearest.append(some[np.isfinite(reach[some])])
        kept = np.unique(np.concatenate([support, *nearest]))
        self.kept = part.take(kept)
        self.coefficients = np.sum(part.alpha * part.signs, axis=1)[support]
        self.points = self.kernel.points(pick(part.rows, support)) if len(support) else None

    def covers(self, total: int) -> bool:
        """Whether all rows were visited since the last solution, and none of them violates it."""
        return self.clean + (len(self.kept.numbers) if self.kept is not None else 0) >= total

    def result(self, sweeps: int, total: int, stopped: str) -> Chunked:
        if self.kept is None:
            empty = np.zeros((0, 1))
            return Chunked(
                None, np.zeros(0, np.int64), empty, np.zeros(0), self._intercept(), 0.0, self.worst(), 0, sweeps, total,
                self.most, stopped,
            )  # fmt: skip
        held = self.kept.take(np.flatnonzero(self.kept.alpha.sum(axis=1) > 0))
        return Chunked(
            held.rows, held.numbers, held.alpha, np.sum(held.alpha * held.signs, axis=1), self._intercept(),
            self.objective, self.worst(), self.iterations, sweeps, total, self.most, stopped,
        )  # fmt: skip

    def _intercept(self) -> float:
        """b of the last solution, but within the bounds that all rows put on it."""
        if not self.bias:
            return 0.0
        ends = [end for end in (self.high, self.low) if np.isfinite(end)]
        if len(ends) == 2 and self.high <= self.low:
            return float(np.clip(self.b, self.high, self.low)) if self.solved else float(np.mean(ends))
        return self.b if self.solved else float(np.mean(ends)) if ends else 0.0

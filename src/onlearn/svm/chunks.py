"""Data that are learned from in chunks: in memory, or in parts that are read again in each sweep.

Targets and weights of all rows are in memory, so that the problems are known; the rows come block by block. Each
problem is solved by ``solve_in_chunks`` from the rows that are its own. Its support vectors join those of the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn.dual.examples import concatenate, count, pick
from onlearn.svm.chunking import Chunked, solve_in_chunks
from onlearn.svm.multiclass import Machine
from onlearn.svm.probabilities import BASIS, SAMPLE, some_of
from onlearn.svm.problem import Limits, Solution
from onlearn.svm.report import ProblemReport
from onlearn.svm.solving import Budget

Blocks = Callable[[], Iterable[Any]]  # makes an iterator over all rows, block by block, in the same order each time


def in_blocks(raw: Any, size: int) -> Blocks:
    """Blocks of rows that are in memory."""

    def blocks() -> Iterator[Any]:
        for start in range(0, count(raw), size):
            yield pick(raw, np.arange(start, min(start + size, count(raw))))

    return blocks


class OwnRows:
    """The rows of one problem, as a source of ``solve_in_chunks``: their "targets" are numbers of its examples."""

    blocks: Blocks
    examples: np.ndarray

    def __init__(self, blocks: Blocks, examples: np.ndarray) -> None:
        self.blocks, self.examples = blocks, examples

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray, None]]:
        first = 0
        for rows in self.blocks():
            size = count(rows)
            low, high = np.searchsorted(self.examples, (first, first + size))
            if low < high:
                inside = self.examples[low:high] - first
                yield rows if len(inside) == size else pick(rows, inside), np.arange(low, high), None
            first += size


class Found(NamedTuple):
    """What was learned in chunks: the support vectors of all problems, and their weights."""

    raw: Any  # None if there are none
    rows: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    reports: tuple[ProblemReport, ...]
    sweeps: int
    most: int  # rows in memory at a time


class Way(NamedTuple):
    """How chunks are learned from."""

    kernel: Any
    C: float
    bias: bool
    chunk: int
    keep: int | None
    cache_bytes: int
    dtype: Any
    solve: Any


def learn_in_chunks(machines: list[Machine], blocks: Blocks, way: Way, budget: Budget) -> Found:
    """Solve all problems."""
    solved, reports = [], []
    for number, machine in enumerate(machines):
        began = time.perf_counter()
        one = _solve(machine, blocks, way, budget.limits(number, machine, len(machines) - number))
        solved.append(one)
        reports.append(_report(machine, one, way.C, time.perf_counter() - began))
    rows = [_variables(machine.examples, machine)[:, 0][one.numbers] for machine, one in zip(machines, solved)]
    every, first = np.unique(np.concatenate(rows), return_index=True)
    coefs = np.zeros((len(every), len(machines)))
    for n, (one, some) in enumerate(zip(solved, rows, strict=True)):
        coefs[np.searchsorted(every, some), n] = one.coefficients
    raw = [one.rows for one in solved if len(one.numbers)]
    joined = pick(concatenate(raw), first) if raw else None
    intercepts = np.array([one.intercept for one in solved])
    return Found(joined, every, coefs, intercepts, tuple(reports), max(one.sweeps for one in solved),
                 max(one.most for one in solved))  # fmt: skip


def _variables(values: np.ndarray, machine: Machine) -> np.ndarray:
    """Values of the variables with a row for each example: regression has two variables an example."""
    return values.reshape(1 if machine.classifies else 2, -1).T


def _solve(machine: Machine, blocks: Blocks, way: Way, limits: Limits) -> Chunked:
    signs, linear, upper = (_variables(one, machine) for one in (machine.signs, machine.linear, way.C * machine.weight))

    def variables(numbers: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return signs[numbers], linear[numbers], upper[numbers]

    own = OwnRows(blocks, _variables(machine.examples, machine)[:, 0])
    found = solve_in_chunks(
        way.kernel, own, variables, way.bias, limits, way.chunk, way.keep, way.cache_bytes, way.dtype, way.solve
    )
    if found.stopped != "tol" and not len(found.numbers) and way.bias and machine.classifies:
        return found._replace(intercept=machine.prior)
    return found


def _report(machine: Machine, found: Chunked, C: float, seconds: float) -> ProblemReport:
    upper = _variables(C * machine.weight, machine)[found.numbers]
    linear = _variables(machine.linear, machine)[found.numbers]
    square = -2.0 * (found.objective + float(np.sum(found.alpha * linear)))  # a'Qa
    return ProblemReport(
        machine.positive,
        machine.negative,
        machine.size,
        int(found.iterations),
        float(found.objective),
        None,
        float(found.violation),
        int(np.count_nonzero((found.alpha > 0) & (found.alpha < upper))),
        int(np.count_nonzero((found.alpha > 0) & (found.alpha >= upper))),
        float(np.sqrt(max(0.0, square))),
        seconds,
        found.stopped,
    )


# ----------------------------------------------------------------------------------------------------
# Rows for the probabilities, which want the scores of rows drawn from all


MOST_DRAWN = 10_000  # where there are several problems, each of some of them


def drawn_rows(machines: list[Machine], found: Found, C: float, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of rows drawn from all, and of these and the support vectors that the spans are measured from."""
    rng = np.random.default_rng([seed, 5])
    drawn = some_of(np.arange(rows), SAMPLE if len(machines) == 1 else MOST_DRAWN, rng)
    basis = []
    for n, machine in enumerate(machines):
        alpha = np.abs(found.coefs[:, n])
        upper = C * machine.weight[np.minimum(np.searchsorted(machine.examples, found.rows), len(machine.weight) - 1)]
        basis.append(some_of(found.rows[(alpha > 0) & (alpha < upper)], BASIS, rng))
    return drawn, np.unique(np.concatenate([drawn, *basis]))


def rows_at(blocks: Blocks, numbers: np.ndarray) -> Any:
    """Some rows, by their numbers in rising order."""
    own = OwnRows(blocks, numbers)
    return concatenate([rows for rows, _, _ in own])


def sub_problem(machine: Machine, numbers: np.ndarray, drawn: np.ndarray, coefs: np.ndarray, sums: np.ndarray,
                intercept: float) -> tuple[Machine, Solution, np.ndarray]:  # fmt: skip
    """A problem with some of its rows, its solution there, and which of its variables were drawn.

    ``numbers`` are the rows at hand, with their weights ``coefs`` and scores ``sums``, without the intercept.
    """
    place = np.searchsorted(machine.examples, numbers)
    place[place == len(machine.examples)] = 0
    here = np.flatnonzero(machine.examples[place] == numbers)
    own = place[here]
    small = machine._replace(
        examples=here, signs=machine.signs[own], linear=machine.linear[own], weight=machine.weight[own]
    )
    alpha, gradient = np.abs(coefs[here]), small.signs * sums[here] + small.linear
    solution = Solution(alpha, intercept, gradient, 0, 0.0, 0.0, 0.0, "tol")
    return small, solution, np.flatnonzero(np.isin(numbers[here], drawn))

"""Solving the problems of one data set, one after another, with kernel columns that all of them share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.svm import SOLVERS
from onlearn.svm.multiclass import Machine
from onlearn.svm.problem import KernelColumns, Limits, Solution
from onlearn.svm.report import ProblemReport, name_of


class Budget(NamedTuple):
    """When solving stops, whatever was reached: shared by all problems of a fit."""

    tol: float
    max_iter: int | None  # of each problem
    deadline: float | None  # of time.monotonic()
    interrupted: Callable[[], bool]
    show: Callable[[int, str, int, float], None] | None = None
    classes: Any = None  # their names, to be shown

    def limits(self, number: int, machine: Machine, left: int) -> Limits:
        """The limits of one problem while so many are left: each has an equal share of the time that is left."""
        deadline = self.deadline
        if deadline is not None:
            now = time.monotonic()
            deadline = now + max(0.0, deadline - now) / left
        progress = None
        if (show := self.show) is not None:
            name = name_of(machine, self.classes)

            def progress(iterations: int, violation: float) -> None:
                show(number, name, iterations, violation)

        return Limits(self.tol, self.max_iter, deadline, self.interrupted, progress)


class Start(NamedTuple):
    """Where a solver begins: the variables, and the gradient there if it is known."""

    alpha: np.ndarray | None = None
    gradient: np.ndarray | None = None


class Solved(NamedTuple):
    """The solutions of all problems at one C."""

    C: float
    machines: Sequence[Machine]
    solutions: tuple[Solution, ...]
    reports: tuple[ProblemReport, ...]

    def coefs(self, count: int) -> np.ndarray:
        """Weights of ``count`` examples, examples x problems."""
        return np.column_stack([
            one.coefs(solution.alpha, count) for one, solution in zip(self.machines, self.solutions, strict=True)
        ])  # fmt: skip

    def starts(self) -> list[Start]:
        """Where to begin from these solutions."""
        return [Start(one.alpha, one.gradient) for one in self.solutions]

    @property
    def intercepts(self) -> np.ndarray:
        return np.array([one.intercept for one in self.solutions])


def solve_all(machines: Sequence[Machine], columns: KernelColumns, C: float, solver: str, bias: bool, budget: Budget,
              starts: Sequence[Start] | None = None) -> Solved:  # fmt: skip
    """Solve all problems, from ``starts`` if there are some."""
    solutions, reports = [], []
    for number, machine in enumerate(machines):
        began = time.perf_counter()
        problem = machine.problem(columns, C, bias)
        limits = budget.limits(number, machine, len(machines) - number)
        start = Start() if starts is None else starts[number]
        solution = SOLVERS[solver](problem, limits, start.alpha, start.gradient)
        if solution.stopped != "tol" and not solution.alpha.any() and bias and machine.classifies:
            solution = solution._replace(intercept=machine.prior)  # nothing was learned: say what most are
        solutions.append(solution)
        reports.append(ProblemReport.of(machine, solution, problem.upper, time.perf_counter() - began))
    return Solved(C, machines, tuple(solutions), tuple(reports))

"""Solutions along values of C, and their errors by cross-validation, from one set of kernel columns.

The solution at one C is where the solver starts at the next larger one. (It takes fewer steps from there than from a
solution that is scaled: where few variables are at their bound, the solution does not change.) A fold is the same
problems with C_i = 0 for the examples that are held out: so all folds share the columns, and the gradient, which is
known for all variables, holds the scores of those held out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.svm.multiclass import Machine, class_scores
from onlearn.svm.problem import KernelColumns
from onlearn.svm.solving import Budget, Solved, solve_all


def check_values(Cs: Any) -> list[float]:
    """Values of C: one or more numbers above 0."""
    values = [float(C) for C in np.atleast_1d(np.asarray(Cs, dtype=np.float64)).tolist()]
    if not values or not all(0 < C < np.inf for C in values):
        raise ValueError(f"Cs must be numbers above 0, not {Cs!r}")
    return values


class Prepared(NamedTuple):
    """Rows that a learner is about to learn from, with all that does not depend on C."""

    learner: Any
    examples: Any
    targets: np.ndarray
    weight: np.ndarray
    machines: Sequence[Machine]
    columns: KernelColumns
    solver: str
    bias: bool
    classes: int
    kind: str


def along(ready: Prepared, Cs: Sequence[float], budget: Budget) -> Iterator[tuple[int, Solved]]:
    """The solutions at each C, from the smallest on, with the place of C among ``Cs``."""
    before = None
    for place in np.argsort(Cs, kind="stable").tolist():
        starts = None if before is None else before.starts()
        before = solve_all(ready.machines, ready.columns, Cs[place], ready.solver, ready.bias, budget, starts)
        yield place, before


def stratified(codes: np.ndarray | None, rows: int, folds: int, seed: int) -> np.ndarray:
    """The fold of each row, in random order; of each class (if there are classes) every fold has about as many."""
    order = np.random.default_rng([seed, 4]).permutation(rows)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    made = np.empty(rows, dtype=np.int64)
    made[order] = np.arange(rows) % folds
    return made


def check_folds(folds: Any, targets: np.ndarray, classifies: bool, seed: int) -> np.ndarray:
    """The fold of each row, from a number of folds, or as it is given."""
    rows = len(targets)
    if np.ndim(folds) == 0:
        if isinstance(folds, bool) or int(folds) != folds or not 2 <= folds <= rows:
            raise ValueError(f"folds must be a whole number from 2 to the {rows} rows, or the fold of each row")
        return stratified(targets if classifies else None, rows, int(folds), seed)
    given = np.asarray(folds)
    if given.shape != (rows,) or given.dtype.kind not in "iu" or len(np.unique(given)) < 2:
        raise ValueError(f"folds must be a whole number for each of the {rows} rows, of two folds or more")
    return np.unique(given, return_inverse=True)[1]


class Validation(NamedTuple):
    """The errors of each value of C in each fold.

    The error is the share of wrong classes, in regression the mean squared error, by weight.
    """

    Cs: np.ndarray
    errors: np.ndarray  # values of C x folds
    supports: np.ndarray  # support vectors, on the average
    seconds: float

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.errors.mean(axis=1))

    @property
    def best_C(self) -> float:  # noqa: N802  as everybody writes it
        """The C with the smallest mean error; of several the smallest."""
        low = self.mean.min()
        return float(self.Cs[self.mean == low].min())

    def __str__(self) -> str:
        deviation = self.errors.std(axis=1)
        lines = ["         C      error  +/-        support vectors"]
        for C, mean, spread, count in zip(self.Cs, self.mean, deviation, self.supports, strict=True):
            best = "  best" if self.best_C == C else ""
            lines.append(f"{C:10.4g} {mean:10.4g}  {spread:<10.3g} {count:,.0f}{best}")
        return "\n".join(lines)


class Scored(NamedTuple):
    """A fold that was held out, at one C."""

    place: int  # of C
    fold: int
    rows: np.ndarray
    decisions: np.ndarray  # by problem
    supports: int


def fold_scores(ready: Prepared, Cs: Sequence[float], fold_of: np.ndarray, budget: Budget) -> Iterator[Scored]:
    """The scores of each fold at each C."""
    columns, machines = ready.columns, ready.machines
    whole = all(len(one.examples) >= len(fold_of) for one in machines)
    for fold in range(int(fold_of.max()) + 1):
        held = np.flatnonzero(fold_of == fold)
        rest = [one._replace(weight=np.where(fold_of[one.examples] == fold, 0.0, one.weight)) for one in machines]
        for place, solved in along(ready._replace(machines=rest), Cs, budget):
            coefs = solved.coefs(columns.n)
            used = np.flatnonzero((coefs != 0).any(axis=1))
            if whole:  # every row is in every problem
                sums = [one.sums(solution.gradient) for one, solution in zip(rest, solved.solutions, strict=True)]
                made = np.empty((len(fold_of), len(rest)))
                for n, one in enumerate(rest):
                    made[one.examples, n] = sums[n]
                decisions = made[held] + solved.intercepts
            else:
                decisions = np.tile(solved.intercepts, (len(held), 1))
                if len(used):
                    decisions += columns.rows(used, held).T.astype(np.float64) @ coefs[used]
            yield Scored(place, fold, held, decisions, len(used))


def validate(ready: Prepared, Cs: list[float], fold_of: np.ndarray, budget: Budget, began: float) -> Validation:
    """The errors of all values of C; the whole kernel matrix is computed first if it can be kept."""
    ready.columns.fill()
    folds = int(fold_of.max()) + 1
    errors, supports = np.zeros((len(Cs), folds)), np.zeros(len(Cs))
    for one in fold_scores(ready, Cs, fold_of, budget):
        gold, weight = ready.targets[one.rows], ready.weight[one.rows]
        errors[one.place, one.fold] = errors_of(one.decisions, gold, weight, ready.classes, ready.kind)
        supports[one.place] += one.supports / folds
    return Validation(np.array(Cs), errors, supports, time.perf_counter() - began)


def errors_of(decisions: np.ndarray, gold: np.ndarray, weight: np.ndarray, classes: int, kind: str) -> float:
    """The error of rows: the share of wrong classes, or without ``classes`` the mean squared error."""
    total = weight.sum()
    if not total:
        return 0.0
    if not classes:
        return float(weight @ (decisions[:, 0] - gold) ** 2 / total)
    scores = class_scores(decisions, classes, kind)
    best = (scores[:, 0] > 0).astype(np.int64) if classes == 2 else np.argmax(scores, axis=1)
    return float(weight @ (best != gold) / total)

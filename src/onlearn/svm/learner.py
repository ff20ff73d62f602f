"""The two learners: ``SVCLearner`` for classes, ``SVRLearner`` for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn.engine.compositions import Composition
from onlearn.svm import multiclass, settings
from onlearn.svm.base import SVMLearner
from onlearn.svm.chunks import Blocks, Found, drawn_rows, rows_at, sub_problem
from onlearn.svm.hypothesis import Hypothesis
from onlearn.svm.multiclass import Machine, class_scores
from onlearn.svm.path import Prepared, fold_scores, stratified
from onlearn.svm.probabilities import fit_curve, left_out, probabilities
from onlearn.svm.problem import KernelColumns
from onlearn.svm.solving import Budget, Solved
from onlearn.svm.training import NO_CURVES

__all__ = ["SVCLearner", "SVMLearner", "SVRLearner"]


class SVCLearner(SVMLearner):
    """The classifier.

    >>> X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    >>> SVCLearner(kernel="polynomial(2)", C=100).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    @property
    def composition(self) -> Composition:
        return settings.SVC

    def check(self) -> None:
        super().check()
        given = self._class_weight
        for label, weight in given.items() if isinstance(given, dict) else ():
            if np.ndim(weight) == 0 and weight == 0:
                raise ValueError(
                    f"class_weight of {label!r} is 0, which would leave no examples of that class: give it a weight "
                    "above 0, or leave its rows out"
                )

    @property
    def _kind(self) -> str:
        return str(self.settings.multiclass) if self.training is None else self.training.kind

    def _machines(self, targets: np.ndarray, weight: np.ndarray) -> list[Machine]:
        return multiclass.classification(targets, weight, self._classes, self._kind)

    def _curves(self, solved: Solved, columns: KernelColumns, targets: np.ndarray, budget: Budget) -> np.ndarray:
        choice = self.choices["calibration"]
        if choice.name == "none":
            return NO_CURVES
        if choice.name == "cv" and not budget.interrupted():
            return np.array([fit_curve(*one) for one in self._fold_scores(solved, columns, targets, budget)])
        pairs = zip(solved.machines, solved.solutions, strict=True)
        made = [left_out(one, solution, columns, solved.C, self._bias, self.seed) for one, solution in pairs]
        return np.array([fit_curve(*one) for one in made])

    def _curves_of_chunks(self, machines: list[Machine], found: Found, hypothesis: Hypothesis, blocks: Blocks,
                          rows: int) -> np.ndarray:  # fmt: skip
        """The curves from rows drawn from all; folds of chunks would be learned anew, so the rows are left out."""
        if self.choices["calibration"].name == "none":
            return NO_CURVES
        C = float(self.settings.C)
        drawn, numbers = drawn_rows(machines, found, C, rows, self.seed)
        X = self._examples(rows_at(blocks, numbers))
        sums = hypothesis.decisions(X.raw, X.points) - found.intercepts
        coefs = np.zeros((len(numbers), len(machines)))
        held = np.isin(found.rows, numbers)
        coefs[np.searchsorted(numbers, found.rows[held])] = found.coefs[held]
        columns, made = self._columns(X), []
        for n, machine in enumerate(machines):
            some, solution, which = sub_problem(
                machine, numbers, drawn, coefs[:, n], sums[:, n], float(found.intercepts[n])
            )
            made.append(fit_curve(*left_out(some, solution, columns, C, self._bias, self.seed, which)))
        return np.array(made)

    def _fold_scores(self, solved: Solved, columns: KernelColumns, targets: np.ndarray,
                     budget: Budget) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:  # fmt: skip
        """The scores of the examples of each problem by the solutions of other folds, whether they are positive, and
        their weights."""
        folds = min(int(self.choices["calibration"].folds), len(targets))
        fold_of = stratified(targets, len(targets), folds, self.seed)
        decisions = np.zeros((len(targets), len(solved.machines)))
        quiet = budget._replace(show=None)
        ready = Prepared(self, None, targets, np.empty(0), solved.machines, columns, self.settings.solver, self._bias,
                         self._classes, self._kind)  # fmt: skip
        for scored in fold_scores(ready, [solved.C], fold_of, quiet):
            decisions[scored.rows] = scored.decisions
        for n, one in enumerate(solved.machines):
            yield decisions[one.examples, n], one.signs > 0, one.weight

    def _probabilities(self, X: Any, task: Any, training: Any) -> np.ndarray:
        if not len(training.curves):
            raise AttributeError("there are no probabilities: calibration was 'none' when this SVC learned")
        decisions = self._decisions(X, training)
        scores = class_scores(decisions, training.classes, training.kind)
        return probabilities(decisions, scores, training.curves, training.classes, training.kind)


class SVRLearner(SVMLearner):
    """The regression.

    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> SVRLearner(C=100, epsilon=0.01).fit(X, np.sin(X[:, 0])).predict(np.array([[1.5]])).round(2)
    array([1.])
    """

    @property
    def composition(self) -> Composition:
        return settings.SVR

    def _machines(self, targets: np.ndarray, weight: np.ndarray) -> list[Machine]:
        self.spread: float = float(np.std(targets)) or 1.0
        return multiclass.regression(targets, weight, float(self.settings.epsilon))

    def _tolerance(self) -> float:
        """In units of the targets' deviation: what is little among millions is much among millionths."""
        return float(self.settings.tol) * self.spread

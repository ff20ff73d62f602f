"""The problems of two classes that several classes are cut into, and the answers put together from theirs.

One-vs-one has a problem for each pair of classes i < j, in which j is positive; each gives a vote. The class with most
votes wins, and of classes with equally many the one with the largest sum of scores s, by

    votes + s / (3 (|s| + 1))

whose second term is less than half a vote. One-vs-all has a problem for each class against all others, and the highest
score wins. Regression is one problem, of two variables an example.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.svm.problem import KernelColumns, Problem

REST = -1  # in place of a class: all others

KINDS = ("one-vs-one", "one-vs-all")


class Machine(NamedTuple):
    """A problem of two classes, or of regression, before C is chosen; ``weight`` is C_i / C."""

    positive: int  # the class that scores above 0 speak for; 0 in regression
    negative: int  # the other class, or ``REST``
    examples: np.ndarray
    signs: np.ndarray
    linear: np.ndarray
    weight: np.ndarray

    def problem(self, columns: KernelColumns, C: float, bias: bool) -> Problem:
        return Problem(columns, self.examples, self.signs, self.linear, C * self.weight, bias)

    def coefs(self, alpha: np.ndarray, count: int) -> np.ndarray:
        """sum of a_i y_i over the variables of each of ``count`` examples."""
        return np.bincount(self.examples, weights=alpha * self.signs, minlength=count)

    def start(self, coefs: np.ndarray) -> np.ndarray:
        """The variables that give these weights of all examples: a_i = y_i w_i where that is not below 0."""
        return np.maximum(self.signs * coefs[self.examples], 0.0)

    def sums(self, gradient: np.ndarray) -> np.ndarray:
        """The scores of the examples of its variables, without the intercept: F_i = y_i (G_i - p_i)."""
        return self.signs * (gradient - self.linear)

    @property
    def classifies(self) -> bool:
        """Whether it is of two classes, with p = -1."""
        return bool((self.linear == -1.0).all())

    @property
    def size(self) -> int:
        """How many examples take part."""
        held = self.examples[self.weight > 0]
        return len(held) if self.classifies else len(held) // 2

    @property
    def prior(self) -> float:
        """The side of the more weighty class: what is left to say if nothing was learned."""
        return 1.0 if self.weight @ self.signs > 0 else -1.0


def pairs(classes: int, kind: str) -> list[tuple[int, int]]:
    """The negative and the positive class of each problem.

    >>> pairs(3, "one-vs-one"), pairs(3, "one-vs-all"), pairs(2, "one-vs-all")
    ([(0, 1), (0, 2), (1, 2)], [(-1, 0), (-1, 1), (-1, 2)], [(0, 1)])
    """
    if classes == 2:
        return [(0, 1)]
    if kind == "one-vs-all":
        return [(REST, k) for k in range(classes)]
    return [(i, j) for i in range(classes) for j in range(i + 1, classes)]


def problem_count(classes: int, kind: str) -> int:
    """How many problems there are; regression, of 0 classes, is one."""
    if classes <= 2:
        return 1
    return classes if kind == "one-vs-all" else classes * (classes - 1) // 2


def classification(codes: np.ndarray, weight: np.ndarray, classes: int, kind: str) -> list[Machine]:
    """The problems of the examples with these classes; those of weight 0 are in none."""
    made = []
    for negative, positive in pairs(classes, kind):
        here = weight > 0 if negative == REST else (weight > 0) & ((codes == negative) | (codes == positive))
        rows = np.flatnonzero(here)
        signs = np.where(codes[rows] == positive, 1.0, -1.0)
        made.append(Machine(positive, negative, rows, signs, np.full(len(rows), -1.0), weight[rows]))
    return made


def regression(targets: np.ndarray, weight: np.ndarray, epsilon: float) -> list[Machine]:
    """The one problem of numbers to be predicted up to ``epsilon``: alpha, then alpha*, of each example."""
    rows = np.flatnonzero(weight > 0)
    signs, wanted = np.repeat([1.0, -1.0], len(rows)), targets[rows]
    linear = np.concatenate([epsilon - wanted, epsilon + wanted])
    return [Machine(0, REST, np.tile(rows, 2), signs, linear, np.tile(weight[rows], 2))]


def ballots(classes: int) -> np.ndarray:
    """Pairs x classes: +1 for the positive class of a pair, -1 for the negative one."""
    made = np.zeros((problem_count(classes, "one-vs-one"), classes))
    for n, (negative, positive) in enumerate(pairs(classes, "one-vs-one")):
        made[n, positive], made[n, negative] = 1.0, -1.0
    return made


def votes(decisions: np.ndarray, classes: int) -> np.ndarray:
    """Scores of the classes, one row an example, from those of the pairs; a decision of 0 is half a vote for each.

    >>> votes(np.array([[1.0, -2.0, 0.5]]), 3).round(3)
    array([[1.167, 1.111, 0.8  ]])
    """
    which = ballots(classes)
    sums = decisions @ which
    count = (np.sign(decisions) @ which + classes - 1) / 2
    return np.asarray(count + sums / (3 * (np.abs(sums) + 1)))


def class_scores(decisions: np.ndarray, classes: int, kind: str) -> np.ndarray:
    """What ``decision_function`` tells: one column for two classes, else one for each class."""
    return votes(decisions, classes) if classes > 2 and kind == "one-vs-one" else decisions

"""Regression in the dual: where the hypothesis begins, and how much of a step is made.

A kernel that is local, such as the Gaussian, would have to learn the level of y around every example. So the hypothesis
begins with a constant: the mean of y, or in a stream, where that is not known, the first y. What is learned then
follows y: learning from a y + b predicts a times as much plus b, with the rules that project.

The step of a rule that projects (``nlms``, ``pa_epsilon``) corrects the error of its example at once, t = error / q
with q = k(x, x), the constant feature included. Two things make it shorter, and never longer, for twice as much would
not settle:

- The weight of an example is the part of its step that is made.
- An example that is short beside the others would need a long step, which would throw the scores of the others about.
  So the error is divided by max(q, mean of q) (``damping``): of the step the part min(1, q / mean of q) is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.dual.examples import Examples
from onlearn.engine.csr import is_sparse
from onlearn.model_schema import ListOf, finite

ALIKE = 1e-9  # lengths that differ by less are the same


def mean_level(y: np.ndarray, weight: np.ndarray) -> float:
    """The mean of y by weight, whose sum may be beyond all numbers."""
    highest, total = float(np.abs(y[weight > 0]).max(initial=0.0)), float(weight.sum())
    return float((weight / total) @ (y / highest)) * highest if highest and total > 0.0 else 0.0


def first_level(y: np.ndarray, weight: np.ndarray) -> float:
    """The first y that counts."""
    return float(y[weight > 0][:1].sum())


def begin_at(training: Any, level: float) -> None:
    """Make a constant the hypothesis of a training that has learned nothing; without a constant feature, leave it."""
    start = level / training.bias if training.bias else 0.0
    if np.isfinite(start):
        training.g.w[0] = start
        training.st = training.stabilizer.start(training.g.w, training.outputs)
        training._handed = None


def square_lengths(X: Any, training: Any) -> np.ndarray:
    """q of each example: k(x, x) in the dual, |x|^2 of rows of features; the constant feature included."""
    with np.errstate(over="ignore"):
        if isinstance(X, Examples):
            squares = training.supports.kernel.diagonal(X.points)
        elif is_sparse(X):
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            squares = np.bincount(rows, weights=np.asarray(X.data, dtype=np.float64) ** 2, minlength=X.shape[0])
        else:
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return np.asarray(squares, dtype=np.float64) + training.bias**2


class MeanLength(NamedTuple):
    """The sum and the number of the q of examples so far."""

    total: float = 0.0
    number: float = 0.0

    def of_all(self, q: np.ndarray, weight: np.ndarray) -> tuple[MeanLength, np.ndarray]:
        """The mean of a data set, and the part of each example's step that is made by it."""
        there = weight > 0
        with np.errstate(over="ignore"):
            made = MeanLength(float(q[there].sum()), float(np.count_nonzero(there)))
        return made, part_of_steps(q, made.total / max(1.0, made.number))

    def of_stream(self, q: np.ndarray, weight: np.ndarray) -> tuple[MeanLength, np.ndarray]:
        """The same by the mean of all examples so far, each of which is counted before its step."""
        there = weight > 0
        with np.errstate(over="ignore"):
            totals = np.cumsum([self.total, *np.where(there, q, 0.0)])
        counts = self.number + np.cumsum([0, *there])
        return MeanLength(float(totals[-1]), float(counts[-1])), part_of_steps(
            q, totals[1:] / np.maximum(counts[1:], 1)
        )


MEAN_LENGTH = ListOf(finite(low=0), "numbers, a sum of lengths and how many", length=2)


def part_of_steps(q: np.ndarray, mean: Any) -> np.ndarray:
    """min(1, q / mean), and 1 where there is no telling."""
    usable = np.isfinite(mean) & (q > 0.0) & (q < (1.0 - ALIKE) * mean)
    return np.where(usable, q / np.where(usable, mean, 1.0), 1.0)


def relative_to_largest(weight: np.ndarray) -> np.ndarray:
    """Weights of all examples of a data set: the heaviest make whole steps."""
    heaviest = float(weight.max(initial=0.0))
    return weight / heaviest if heaviest > 0.0 else weight


def at_most_whole(weight: np.ndarray) -> np.ndarray:
    """Weights in a stream, where the heaviest is not known."""
    return np.minimum(weight, 1.0)

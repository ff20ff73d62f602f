"""Regression in the dual: where the hypothesis begins, and what weights of examples mean.

A kernel that is local, such as the Gaussian, would have to learn the level of y around every example. So the hypothesis
begins with a constant: the mean of y, or in a stream, where that is not known, the first y. What is learned then
follows y: learning from a y + b predicts a times as much plus b, with the rules that project.

The step of a rule that projects (``nlms``, ``pa_epsilon``) goes as far as the example asks. The weight of an example is
the part of the step that is made, for more would overshoot, and twice as much would never settle.
"""

from __future__ import annotations

from typing import Any

import numpy as np


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


def relative_to_largest(rule: Any, weight: np.ndarray) -> np.ndarray:
    """Weights of all examples of a data set for a rule: the heaviest make whole steps."""
    heaviest = float(weight.max(initial=0.0))
    return weight / heaviest if rule.projects and heaviest > 0.0 else weight


def at_most_whole(rule: Any, weight: np.ndarray) -> np.ndarray:
    """Weights in a stream, where the heaviest is not known: no step is longer than a whole one."""
    return np.minimum(weight, 1.0) if rule.projects else weight

"""Scores of many examples by a hypothesis in the dual."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn.inputs import as_rows
from onlearn.predicting import linear_scores, voted_scores

VALUES = 1 << 22  # kernel values computed at a time


def dual_scores(training: Any, points: Any) -> np.ndarray:
    """One line of scores an example."""
    if not getattr(training.stabilizer, "every_hypothesis", False):
        return staged_scores(training, points, [training.weights()])[0]
    supports = training.supports
    out = np.empty((len(points), training.outputs))
    for rows, values in tiles(supports, points):
        line = as_rows(np.ascontiguousarray(values), training.bias)
        out[rows] = voted_scores(line, len(values), training.theta, training.st, training.outputs)
    return out


def staged_scores(training: Any, points: Any, stages: list[np.ndarray]) -> list[np.ndarray]:
    """The scores by each of several hypotheses, given as weights of the constant feature and the support examples."""
    supports, outputs = training.supports, training.outputs
    weights = np.zeros((len(supports), len(stages) * outputs))
    for n, stage in enumerate(stages):
        weights[: len(stage) - 1, n * outputs : (n + 1) * outputs] = stage[1:]
    out = np.zeros((len(points), weights.shape[1]))
    merged = supports.kernel.merged(supports.every(), weights) if len(supports) else None
    if merged is not None:
        out += merged.scores(points)
    elif len(supports):
        for rows, values in tiles(supports, points):
            # in double precision, for large terms may cancel
            out[rows] = linear_scores(values.astype(np.float64, copy=False), weights, np.zeros(weights.shape[1]))[0]
    return [
        out[:, n * outputs : (n + 1) * outputs] + (stage[0] * training.bias - training.theta)
        for n, stage in enumerate(stages)
    ]


def tiles(supports: Any, points: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Kernel values of all points with the support examples, a range of points at a time."""
    size = max(1, VALUES // (len(supports) + 1))
    for start in range(0, len(points), size):
        rows = slice(start, start + size)
        yield rows, supports.products(points.take(rows))

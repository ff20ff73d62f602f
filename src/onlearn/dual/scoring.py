"""Scores of many examples by a hypothesis in the dual."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.inputs import as_rows
from onlearn.predicting import linear_scores, voted_scores

VALUES = 1 << 22  # kernel values computed at a time


def dual_scores(training: Any, points: Any) -> np.ndarray:
    """One line of scores an example."""
    supports = training.supports
    out = np.empty((len(points), training.outputs))
    voted = getattr(training.stabilizer, "every_hypothesis", False)
    if not voted:
        handed = training.weights()
        weights, intercept = handed[1:], handed[0] * training.bias - training.theta
        if not len(supports):
            out[:] = intercept
            return out
        merged = getattr(supports.kernel, "merged", None)
        if merged is not None:
            out[:] = merged(supports.all_points(), weights).scores(points) + intercept
            return out
    size = max(1, VALUES // (len(supports) + 1))
    for start in range(0, len(points), size):
        values = supports.products(points.take(slice(start, start + size)))
        if voted:
            rows = as_rows(np.ascontiguousarray(values), training.bias)
            out[start : start + size] = voted_scores(rows, len(values), training.theta, training.st, training.outputs)
        else:
            out[start : start + size] = precise(values, weights) + intercept
    return out


def precise(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """values @ weights; the sums in double precision, for large terms may cancel."""
    return np.asarray(linear_scores(values.astype(np.float64, copy=False), weights, np.zeros(weights.shape[1]))[0])

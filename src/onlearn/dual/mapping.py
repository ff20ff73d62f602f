"""A hypothesis over other features that are linear combinations of the old ones: collapsing and reducing.

Everything an additive learner keeps for each weight (the weights, what averaging lacks, the best hypothesis) is linear
in the features. So one matrix takes the whole state along, and learning can go on from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.training import Training
from onlearn.verbs import layout


def map_state(training: Training, matrix: Any, into: Training) -> Training:
    """Give ``into`` the state of a training whose feature k is row k of the matrix in the new features."""
    if getattr(training.stabilizer, "every_hypothesis", False):
        raise ValueError("a voted learner is many hypotheses, each a change of the one before: it cannot be collapsed")
    count, outputs = training.features + 1, training.outputs
    for part in ("g", "st"):
        old, fresh = getattr(training, part), getattr(into, part)
        fields = {}
        for name, holds in layout(type(old)).items():
            before = getattr(old, name)
            if holds == "weights":
                lines = before[: count * outputs].reshape(count, outputs)
                fields[name] = np.vstack([lines[:1], np.asarray(matrix.T @ lines[1:])]).reshape(-1)
            else:
                fields[name] = before.copy()
        setattr(into, part, type(fresh)(**fields))
    for name in ("tally", "doubling", "since", "by_pass"):
        setattr(into, name, getattr(training, name).copy())
    into.audit = type(training.audit)(*(array.copy() for array in training.audit))
    for name in ("passes", "classifies", "even", "stopped"):
        setattr(into, name, getattr(training, name))
    return into

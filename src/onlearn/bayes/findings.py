"""What naive Bayes found in a shard of the rows, to be added to what another learner knows.

Counts and weights of classes add up; moments are put together as Chan, Golub & LeVeque (1979) do. So learners of
shards, added up, are one learner that learned from all rows: exactly, where counts are whole numbers, and up to
rounding otherwise.

A shard learns in an empty learner of the same columns and classes (``renewed``), whose findings are small: arrays that
are mostly zero go as places and numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from onlearn.bayes.learner import BayesLearner
from onlearn.bayes.training import BayesTraining
from onlearn.engine.loops import DUE, LOSS, MISTAKES, SEEN, UPDATES

ADDED = [MISTAKES, UPDATES, LOSS, SEEN]

Findings = tuple[dict[str, Any], dict[str, np.ndarray]]


def findings(learner: BayesLearner) -> Findings:
    """All that a learner has counted, as plain facts and arrays of its own."""
    training: BayesTraining = learner._trained()
    arrays = {"weight": training.weight.copy(), "classes": learner.task.counts.copy(), "tally": training.tally[ADDED]}
    for kind, part in training.parts.items():
        arrays.update({f"{kind}.{name}": array for name, array in part.state.findings().items()})
    return _about(learner), arrays


def add_findings(learner: BayesLearner, found: Iterable[Findings]) -> None:
    """Add the findings of shards, in their order, to what a learner of the same columns and classes knows.

    Examples are counted together. With ``progressive`` so are mistakes, which each shard made by what it knew itself.
    """
    training: BayesTraining = learner._trained()
    with learner.lock:
        for facts, arrays in found:
            _add(learner, training, facts, arrays)


def _add(learner: BayesLearner, training: BayesTraining, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    if facts != _about(learner):
        raise ValueError("findings of a shard must be of the same columns and classes as those of the learner")
    training.weight = training.weight + arrays["weight"]
    training.tally[ADDED] += arrays["tally"]
    while training.tally[DUE] <= training.tally[SEEN]:
        training.tally[DUE] *= 2.0  # the counts between were met by none of the learners
    for kind, part in training.parts.items():
        under = f"{kind}."
        part.state.add_findings({k.removeprefix(under): a for k, a in arrays.items() if k.startswith(under)})
    training.made = training.then = None
    training.next = 0.0
    learner.task = copy.copy(learner.task).met(arrays["classes"][1:])


def _about(learner: BayesLearner) -> dict[str, Any]:
    """What must be alike: the numbers of columns and classes, and the groups of columns."""
    training: BayesTraining = learner._trained()
    groups = [list(group) for group in training.layout.groups]
    return {"features": training.features, "classes": len(learner.task.counts), "groups": groups}

"""Evaluation of the rows that are held out: each shard reads its rows once more, and predicts those."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.cluster.connection import Connection, Task
from onlearn.cluster.rounds import Shared
from onlearn.cluster.shards import APART, Shard
from onlearn.cluster.tasks import check_there, task
from onlearn.models.evaluation import add_batches
from onlearn.models.model import Model
from onlearn.models.plan import Plan
from onlearn.models.run_reading import held_out

AHEAD = 3  # tasks for each thread of the workers, at most, that are under way or wait for an earlier one


class HeldOut(NamedTuple):
    """What all tasks share: the model, and which rows it has not learned from."""

    model: Model
    plan: Plan
    decisions: dict[str, Any]  # what the first rows decided about columns
    evaluation: Any  # an empty one
    evidence: Any  # an empty one, for a report; None: there is none

    def read_again(self, shard: Shard, **options: Any) -> Iterator[tuple[data.Batch, np.ndarray]]:
        """The batches of a shard, and which of their rows are held out: by their shard and their place in it."""
        row, plan = shard.number * APART, self.plan
        options |= {"labels": "required", "bad": data.BadRows(limit=1.0), "decisions": self.decisions}
        with self.model.read(list(shard.pieces), **options) as reader:
            for batch in reader:
                yield batch, held_out(row, len(batch), plan.holdout, plan.seed)
                row += len(batch)


@task
def evaluate_held_out(job: HeldOut, shard: Shard) -> tuple[Any, Any]:
    """The evaluation of the rows of a shard that are held out, and the evidence if there is to be some."""
    check_there(*shard.pieces)
    evaluation, evidence = copy.deepcopy((job.evaluation, job.evidence))
    batches = (batch.take(np.flatnonzero(held)) for batch, held in job.read_again(shard, workers=0) if held.any())
    add_batches(evaluation, job.model, batches, observer=evidence)
    return evaluation, evidence


def add_held_out(connection: Connection, job: HeldOut, shards: list[Shard], evaluation: Any, evidence: Any) -> None:
    """Add the rows of all shards that are held out, in their order, to an evaluation and to evidence."""
    shared, numbers = Shared(connection, job), iter(range(len(shards)))
    found = connection.in_order(
        lambda: next(numbers, None),
        lambda number: Task(number, evaluate_held_out, (shared.future(), shards[number])),
        "evaluation of held-out rows",
        lambda: AHEAD * max(1, sum(one.threads for one in connection.workers())),
    )
    for _, (part, shown) in found:
        evaluation.include(part)
        if evidence is not None:
            evidence.include(shown)

"""What workers do to predict and to evaluate: each task is a pure function of a shard and of what is shared."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.cluster.tasks import check_there, task
from onlearn.data import BadRows, Batch
from onlearn.data.bad_rows import SHOWN, Bad
from onlearn.data.shards import count_lines
from onlearn.data.sources import Source
from onlearn.models.evaluation import unusable_as_data_error, usable_rows
from onlearn.models.model import Model
from onlearn.models.prediction_lines import WRITERS, answers
from onlearn.models.raw_rows import refuse_columns, refuse_sentences


class Output(NamedTuple):
    """How predictions are written: see ``onlearn.models.prediction_lines``."""

    format: str = "csv"
    files: bool = False  # whether each line names the file
    scores: bool = False
    proba: bool = False
    top: int | None = None
    safe: bool = False  # whether a spreadsheet takes no text for a formula

    def writer(self, model: Model) -> Any:
        """What writes the predictions of a model in this format."""
        return WRITERS[self.format](model, files=self.files, safe=self.safe)


class Job(NamedTuple):
    """What all tasks share: the model, and how shards are read."""

    model: Model
    reading: dict[str, Any]  # options of ``onlearn.data.read``
    decisions: dict[str, Any]  # what the first rows decided about columns
    columns: dict[str, Any]  # columns that were named, by option, which only tables have
    names: str  # of the first files, for messages
    keeps_bad: bool  # whether all bad rows are told, with their bytes
    output: Output = Output()
    evaluation: Any = None  # an empty one
    evidence: Any = None  # an empty one, for a report


class Part(NamedTuple):
    """What a task made of a shard."""

    made: Any
    rows: int  # good and bad
    lines: int
    bad: list[Bad]  # the first ones, or all; their lines are counted as those of the batches are
    bad_count: int
    lacks_ids: bool  # whether there are rows without an id, which are identified by their line


class ShardRows:
    """The rows of a shard that the model can take, and what was met while they were read."""

    def __init__(self, job: Job, shard: Source) -> None:
        check_there(shard)
        self.job, self.shard = job, shard
        self.bad: BadRows = BadRows(limit=1.0, shown=1 << 62 if job.keeps_bad else SHOWN)
        self.lacks_ids: bool = False
        self.lines: int = 0

    def __iter__(self) -> Iterator[Batch]:
        job = self.job
        with data.read(self.shard, bad=self.bad, workers=0, decisions=job.decisions, **job.reading) as reader:
            for batch in reader:
                check_rows(batch, job.columns)
                with unusable_as_data_error(job.names):
                    batch = usable_rows(job.model, batch, self.bad)
                if len(batch):
                    self.lacks_ids = self.lacks_ids or lacks_ids(batch)
                    yield batch
            self.lines = reader.lines_read[0]

    def part(self, made: Any) -> Part:
        """The part of the result that belongs to this shard."""
        bad = [one for _, one in self.bad.examples]
        return Part(made, self.bad.rows, self.lines, bad, self.bad.count, self.lacks_ids)


def check_rows(batch: Batch, columns: dict[str, Any]) -> None:
    """Refuse rows that no model of rows takes, and columns that they do not have."""
    refuse_sentences(batch)
    refuse_columns(batch, **columns)


def lacks_ids(batch: Batch) -> bool:
    """Whether a row of a batch has no id."""
    return batch.ids is None or any(one is None for one in batch.ids)


@task
def predict_shard(job: Job, shard: Source) -> Part:
    """The lines that are written for the rows of a shard, as bytes in an array."""
    output = job.output
    writer = output.writer(job.model)
    rows = ShardRows(job, shard)
    lines = []
    for batch in rows:
        with unusable_as_data_error(job.names):
            made = answers(job.model, batch, output.scores, output.proba, output.top)
        lines.append(np.frombuffer(writer.lines(batch, made), np.uint8))
    return rows.part(np.concatenate([np.zeros(0, np.uint8), *lines]))


@task
def evaluate_shard(job: Job, shard: Source) -> Part:
    """The evaluation of the rows of a shard, and the evidence for a report if there is to be one."""
    evaluation, evidence = copy.deepcopy((job.evaluation, job.evidence))
    rows = ShardRows(job, shard)
    for batch in rows:
        with unusable_as_data_error(job.names):
            evaluation.add_batch(job.model, batch, evidence)
    return rows.part((evaluation, evidence))


@task
def count_shard(shard: Source) -> int:
    """The number of lines of a shard."""
    check_there(shard)
    return count_lines(shard)

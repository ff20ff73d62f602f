"""Reading for a run over shards, as far as the client does it: the first rows, and those that are held out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn import data
from onlearn.cluster.collections import Columns
from onlearn.cluster.connection import Connection
from onlearn.cluster.held_out import HeldOut, add_held_out
from onlearn.cluster.shards import Shard
from onlearn.models.run_reading import Reading


class ShardedReading(Reading):
    """The rows of files, which are held out by their shard and their place in it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connection: Connection  # the run's, once it has one
        self.shards: list[Shard] = []
        self.decisions: dict[str, Any] = {}  # about the columns, by the first rows

    def add_held_out(self, evaluation: Any, observer: Any = None) -> None:
        """Predict the rows that are not learned from on the workers; an observer is the evidence of a report."""
        job = HeldOut(self.model, self.plan, self.decisions, evaluation, observer)
        add_held_out(self.connection, job, self.shards, evaluation, observer)

    def _read_again(self) -> Iterator[tuple[data.Batch, np.ndarray]]:
        job = HeldOut(self.model, self.plan, self.decisions, None, None)
        for shard in self.shards:
            yield from job.read_again(shard)


class ArraysReading(ShardedReading):
    """The rows of arrays, whose width and classes are known when learning begins: the learner need not grow."""

    def _settings(self, classes: int) -> dict[str, Any]:
        return {}


class PartReader:
    """What the run asks of a reader, of a collection."""

    notes: tuple[str, ...] = ()
    bytes_total: int | None = None
    bytes_read: int = 0
    kept: Any = None

    def __init__(self, columns: Columns) -> None:
        self.columns: Columns = columns

    def found(self) -> dict[str, Any]:
        """The columns that are not features."""
        return {name: column for name, column in self.columns._asdict().items() if column is not None}

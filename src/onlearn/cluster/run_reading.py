"""Reading for a run over shards, as far as the client does it: the first rows, and those that are held out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onlearn import data
from onlearn.cluster.collections import Columns
from onlearn.cluster.shards import APART, Shard
from onlearn.models.run_reading import Reading, held_out


class ShardedReading(Reading):
    """The rows of files, which are held out by their shard and their place in it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.shards: Sequence[Shard] = ()
        self.decisions: dict[str, Any] = {}  # about the columns, by the first rows

    def _read_again(self) -> Iterator[tuple[data.Batch, np.ndarray]]:
        options = {"labels": "required", "bad": data.BadRows(limit=1.0)}
        for shard in self.shards:
            row = shard.number * APART
            with self.model.read(list(shard.pieces), decisions=self.decisions, **options) as reader:
                for batch in reader:
                    yield batch, held_out(row, len(batch), self.plan.holdout, self.plan.seed)
                    row += len(batch)


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

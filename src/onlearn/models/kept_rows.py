"""Rows that are read once and handed to several training runs, whole or in part.

``KeptRows.part`` gives what a run's ``reading.reader`` is set to: instead of opening the files again, the run gets some
of the rows that are kept, in the order of the files, with all that the reader had found out about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from onlearn import data
from onlearn.data import BadRows, Batch, DataError, Reader
from onlearn.data.batch import Sentences, rows_in
from onlearn.data.file_reader import size_of
from onlearn.engine.number_names import label_name
from onlearn.features.tables import as_source
from onlearn.models.plan import Plan


class KeptRows:
    """All rows of some files, in memory; ``rows`` counts those that have a label."""

    def __init__(self, reader: Reader | RowsAtHand) -> None:
        self.reader: Reader | RowsAtHand = reader
        self.batches: list[Batch] = []
        for batch in reader:
            if isinstance(batch.parsed, Sentences):
                raise DataError(f"{batch.file} holds tagged sentences: only learners of rows can be compared")
            if batch.label_names is not None:  # as the batch knew them: the list grows
                batch.label_names = list(batch.label_names)
            self.batches.append(batch)
        self.rows: int = sum(map(len, self.batches))
        if not self.rows:
            raise DataError(f"none of the rows could be read; {reader.bad.first()}")

    @classmethod
    def of(cls, plan: Plan, bad: BadRows) -> KeptRows:
        """Read the sources of a plan as a training run does."""
        options = {**plan.reading, "task": plan.task, "id_required": True, "table_required": True}
        with data.read(plan.sources, bad=bad, cache=plan.cache, **options) as reader:
            if reader.kept is not None and plan.cache is True:
                reader.kept.writable = False
            return cls(reader)

    def targets(self) -> np.ndarray:
        """The number of each row's label, or the number to predict."""
        return np.concatenate([batch.y if batch.codes is None else batch.codes for batch in self.batches])

    def take(self, rows: np.ndarray | None) -> list[Batch]:
        """The rows of which a mask is True, in batches; None: all."""
        if rows is None:
            return self.batches
        ends = np.cumsum([len(batch) for batch in self.batches])
        parts = [np.flatnonzero(part) for part in np.split(rows, ends[:-1])]
        return [batch.take(part) for batch, part in zip(self.batches, parts) if len(part)]

    def part(self, rows: np.ndarray | None) -> KeptReader:
        """What reads the rows of which a mask is True; None: all."""
        return KeptReader(self.reader, self.take(rows))


class RowsAtHand:
    """Rows from Python in place of a reader: a table, a matrix, texts or dicts, and their labels or numbers."""

    def __init__(self, rows: Any, y: Any, task: str) -> None:
        parsed = as_source(rows)
        self.notes: list[str] = []
        self.bad: BadRows = BadRows()
        self.bytes_total: int | None = size_of(parsed)
        if rows_in(parsed) != len(y):
            raise DataError(f"X has {rows_in(parsed)} rows but y has {len(y)} entries")
        if task == "regress":
            self.batch: Batch = Batch(parsed, np.asarray(y, dtype=np.float64), file="memory")
            return
        labels = [label if isinstance(label, str) else label_name(label) for label in y]
        places = {label: n for n, label in enumerate(dict.fromkeys(labels))}
        codes = np.array([places[label] for label in labels], dtype=np.int64)
        self.batch = Batch(parsed, file="memory", codes=codes, label_names=list(places))

    @classmethod
    def of(cls, pair: tuple[Any, ...], task: str) -> RowsAtHand:
        """A pair of rows and labels."""
        if len(pair) != 2:
            raise DataError(f"rows and their labels are a pair (X, y), not {len(pair)} things")
        return cls(pair[0], pair[1], task)

    def __iter__(self) -> Iterator[Batch]:
        yield self.batch

    def found(self) -> dict[str, Any]:
        """Nothing was decided."""
        return {}


class KeptReader(AbstractContextManager["KeptReader"]):
    """Gives batches that are kept, as the reader would that has read them."""

    kept = None  # there is no row cache to write

    def __init__(self, reader: Reader | RowsAtHand, batches: list[Batch]) -> None:
        self.reader: Reader | RowsAtHand = reader
        self.batches: list[Batch] = batches
        self.notes: list[str] = list(reader.notes)
        self.bytes_total: int | None = reader.bytes_total
        self.bytes_read: int = 0
        self.after_parse: Any = None  # the rows are parsed already

    def __exit__(self, *_: object) -> None:
        return None

    def __iter__(self) -> Iterator[Batch]:
        for n, batch in enumerate(self.batches, 1):
            self.bytes_read = (self.bytes_total or 0) * n // len(self.batches)
            yield batch

    def keep(self, rows: int, size: int) -> tuple[list[Batch], bool]:
        """The first batches, until there are so many rows or bytes; and whether these are all there are."""
        count = used = 0
        for n, batch in enumerate(self.batches, 1):
            count, used = count + len(batch), used + size_of(batch.parsed)
            if count >= rows or used >= size:
                return self.batches[:n], False
        return list(self.batches), True

    def found(self) -> dict[str, Any]:
        """What the reader decided about the columns."""
        return self.reader.found()

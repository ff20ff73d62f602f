"""Reading one shard: first what its rows tell about features and labels, then the rows in numbered features.

On one machine a run learns names, labels and scales from all rows in order. Here each shard finds its own, beginning
with what is known before; what the shards found is merged in the order of the files, which gives the same numbers.
After that a shard is read as rows of the final features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.cluster.collections import batches_of
from onlearn.cluster.shards import APART, Shard
from onlearn.cluster.survey import Survey
from onlearn.data import Batch
from onlearn.data.bad_rows import Bad
from onlearn.data.shards import content
from onlearn.engine.csr import CSR, stacked
from onlearn.features import Counts
from onlearn.features.merging import apart, count_names, findings
from onlearn.models.model import Model
from onlearn.models.passes import Lessons, Passes
from onlearn.models.plan import Plan
from onlearn.models.raw_rows import sound_rows
from onlearn.models.run_checks import refuse_other_kind
from onlearn.models.run_reading import Reading, Start, naming_file
from onlearn.models.run_report import RunReport

SHOWN_BAD = 5  # bad rows that a shard tells about, if they are not written to a file
EVERY = 1 << 62


class ShardBadRows(data.BadRows):
    """The bad rows of a shard, with the places of their pieces; ``told`` has the first few, or all of them."""

    def __init__(self, most: int) -> None:
        super().__init__(limit=1.0)
        self.most: int = most
        self.told: list[tuple[int | None, Bad]] = []

    def add(self, file: str, bad: Bad) -> None:
        """Record a bad row."""
        self.count += bad.rows
        self.rows += bad.rows
        if len(self.told) < self.most:
            piece, line = divmod(bad.line, APART)
            self.told.append((piece - 1 if piece else None, bad._replace(line=line)))


class Job(NamedTuple):
    """What all tasks of a run share: how shards are read, and what was known before the first of them."""

    run: str
    plan: Plan
    start: Start
    model: Model  # without a learner: the features, labels and options of reading
    learner: Any  # a learner that has learned nothing, with its parameters
    room: int  # bytes that a worker may keep
    mix: str
    decisions: dict[str, Any]  # what the first rows decided about columns
    columns: Any = None  # of a collection: those that are not features
    keeps_bad: bool = False  # whether all bad rows are told, with their bytes


class Rows(NamedTuple):
    """Rows of a shard in numbered features, with their classes (or numbers) and weights."""

    X: CSR
    y: np.ndarray
    weight: np.ndarray | None

    @property
    def nbytes(self) -> int:
        """The bytes that they use."""
        arrays = (self.X.data, self.X.indices, self.X.indptr, self.y, self.weight)
        return sum(one.nbytes for one in arrays if one is not None)


def joined(parts: Sequence[Rows]) -> Rows:
    """Several rows one after another; where some have weights, the others weigh 1."""
    weight = None
    if any(part.weight is not None for part in parts):
        weight = np.concatenate([np.ones(len(one.y)) if one.weight is None else one.weight for one in parts])
    return Rows(stacked([part.X for part in parts]), np.concatenate([part.y for part in parts]), weight)


class ShardReading(Reading):
    """The rows of one shard, read by the decisions of the run."""

    def __init__(self, job: Job, shard: Shard, model: Model) -> None:
        self.bad_rows: ShardBadRows = ShardBadRows(EVERY if job.keeps_bad else SHOWN_BAD)
        lessons = Lessons(model)
        passes = Passes(job.plan, model, job.start, lessons)
        passes.wait = True  # all labels and features are known before anything is learned
        super().__init__(job.plan, model, self.bad_rows, job.start, passes, RunReport(job.plan, model))
        self.learner = job.learner
        self.job, self.shard = job, shard
        self.learned_rows: int = 0
        self.rows = self.first_row = shard.number * APART

    def batches(self, given: Any) -> Iterator[Batch]:
        """The batches that are learned from; rows that are held out are left out."""
        job, shard = self.job, self.shard
        found: Iterable[Batch]
        if not shard.pieces:
            extractors = self.model.features.extractors
            found = batches_of(given, shard.name, job.columns, self.plan.task, extractors, self.bad)
        else:
            # Lines say of which piece they are, until it is known how many lines are before it.
            pieces = [with_lines_from(piece, (n + 1) * APART) for n, piece in enumerate(shard.pieces)]
            found = self.reader = data.read(
                pieces,
                bad=self.bad,
                workers=0,
                decisions=job.decisions,
                id_required=False,
                table_required=False,
                **self.reading_options(),
            )
        for batch in found:
            batch.lines = batch.lines % APART
            if self.reader is not None and (piece := shard.pieces[self.reader.at]).begins_inside:
                batch.file = f"{batch.file} from byte {piece.part.start}"
            batch = self._without_held_out(batch)
            self.learned_rows += len(batch)
            if len(batch):
                yield batch

    @property
    def digest(self) -> Any:
        """What tells whether a shard has changed: its rows, and the checksum of each piece.

        Text is summed up while it is read. Of Parquet, Arrow and uncompressed files in one piece, the bytes are read
        once more.
        """
        sums = [] if self.reader is None else self.reader.checksums
        pieces = zip(self.shard.pieces, sums)
        return [self.rows - self.first_row, *(content(one).checksum if made is None else made for one, made in pieces)]

    def survey(self, given: Any) -> Survey:
        """What the rows of the shard tell about features and labels."""
        model = self.model
        counts = Counts() if self.plan.min_count > 1 else None
        weights, values, base = np.zeros(0), 0, model.features
        model.features = apart(base)
        names = [count_names(base)] * len(self.shard.pieces)  # that are known after each piece
        for batch in self.batches(given):
            rows = batch.parsed
            refuse_other_kind(batch.file, rows, model.features, self.start.fresh)
            rows = model.far.narrow(rows, learn=True) if isinstance(rows, CSR) else rows
            self.namespaces.add(rows, model.features)
            y = self._targets(batch)
            with naming_file(batch.file):
                if counts is None:
                    model.features.learn(rows)
                    values += rows.nnz if isinstance(rows, CSR) else 0
                else:
                    X = model.features.learn_transform(rows, ordered=False)
                    values += X.nnz
                    counts.add(X, y if self.plan.per_class else None)
            if self.reader is not None:
                names[self.reader.at :] = [count_names(model.features)] * (len(names) - self.reader.at)
            if model.labels is not None:
                more = np.bincount(y, weights=batch.weight, minlength=len(weights)).astype(np.float64)
                more[: len(weights)] += weights
                weights = more
        reader = self.reader
        return Survey(
            rows=self.rows - self.first_row,
            lines=[] if reader is None else list(reader.lines_read),
            values=values,
            learned=self.learned_rows,
            digest=self.digest,
            labels=model.labels,
            label_counts=self.label_counts,
            label_weights=weights,
            features=findings(model.features, base, names),
            counts=counts,
            far=model.far,
            namespaces=self.namespaces.found,
            bad=self.bad_rows.told,
            bad_count=self.bad.count,
        )

    def numbered_rows(self, given: Any) -> Rows:
        """All rows of the shard in the final features."""
        model, parts = self.model, []
        for batch in self.batches(given):
            rows = model.far.narrow(batch.parsed) if isinstance(batch.parsed, CSR) else batch.parsed
            y = self._targets(batch)
            with naming_file(batch.file):
                X = model.features.transform(rows)
            parts.append(Rows(sound_rows(X, self.learner), y, batch.weight))
        if not parts:
            dtype, width = np.dtype(model.features.dtype), model.features.n_features_out_
            empty = CSR(np.zeros(0, dtype), np.zeros(0, np.int32), np.zeros(1, np.int32), (0, width))
            return Rows(empty, np.zeros(0, np.int64 if model.labels is not None else np.float64), None)
        return joined(parts)

    def _takes_labels(self) -> bool:
        """Labels are taken in while shards are surveyed, and are all known when rows are numbered."""
        return self.start.from_first_row or self.learner.takes_classes()


def with_lines_from(piece: Any, line: int) -> Any:
    """A piece whose reader numbers its lines from there on; a whole file, which is no part of one, from 1."""
    return piece if piece.part is None else piece._replace(part=piece.part._replace(lines_before=line))

"""Prediction and evaluation of files on a cluster: the same lines and figures as on one machine.

Files are cut into shards, and the results of shards come back in the order of the data, a few at a time: they wait on
the workers until it is their turn. Rows without an id are identified by the number of their line, so the lines before
a shard are counted first, a little ahead, unless the first rows show that all have ids.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from onlearn import data
from onlearn.cluster import prediction_tasks as tasks
from onlearn.cluster.collections import is_collection
from onlearn.cluster.connection import PATIENCE, Connection, Task
from onlearn.cluster.prediction_tasks import Job, Output, Part
from onlearn.cluster.rounds import Shared
from onlearn.cluster.scheduler import connect
from onlearn.cluster.shards import everywhere
from onlearn.data import BadRows, DataError
from onlearn.data.shards import cut, first_decisions
from onlearn.data.sources import Source, sources
from onlearn.errors import PlanError
from onlearn.model_file import ModelFileError
from onlearn.models.evaluation import evaluation_of, report_of
from onlearn.models.model import Model
from onlearn.models.prediction_lines import check_asked, format_of
from onlearn.models.stored_model import open_model
from onlearn.models.tag_files import is_tagger_file
from onlearn.models.threshold_choice import search_threshold
from onlearn.models.train_options import keep_apart
from onlearn.whole_file import whole_file

SHARDS = 8  # of files that are not large
SHARD = 32 << 20  # bytes of a file in a shard, at most: what is predicted for one is kept in memory
BLOCK = 8 << 20  # bytes parsed at a time
AHEAD = 3  # tasks for each thread of the workers, at most, that are under way or wait for an earlier one
COUNT, WORK = "count", "work"  # kinds of tasks


class Shards:
    """Files cut into shards for one run, what their first rows decide, and the bad rows of all of them.

    ``columns`` are columns of tables by option, such as ``id="key"``; None: as in training.
    """

    def __init__(
        self,
        model: Model,
        named: Any,
        *,
        count: int | None = None,
        bad: BadRows | None = None,
        format: str | None = None,
        max_line: int | None = None,
        **columns: Any,
    ) -> None:
        if is_collection(named):
            raise PlanError("files are predicted here; of a data frame, frame.map_partitions(model.predict) does it")
        self.model: Model = model
        self.columns: dict[str, Any] = columns
        self.bad: BadRows = BadRows() if bad is None else bad
        self.notes: list[str] = []
        self.rows: int = 0  # good and bad, of the shards that are done
        self.bytes_read: int = 0
        self.advance: Callable[[int, int], None] = lambda bytes_read, rows: None  # told after each shard
        given = {"format": format, "max_line": max_line, **columns}
        options = {name: value for name, value in given.items() if value is not None}
        # The weight is for learning only, and new data may lack it.
        self.reading: dict[str, Any] = model.reading_options(**options, weight=None, block_size=BLOCK)
        self.files: list[Source] = sources(named)
        how = {name: self.reading[name] for name in ("format", "delimiter", "max_line") if name in self.reading}
        count = count or usual_shards(sum(one.size or 0 for one in self.files))
        self.shards: list[Source] = [everywhere(one) for one in cut(self.files, count, block_size=BLOCK, **how)]
        if self.bad.path is not None:
            keep_apart(str(self.bad.path), *self.names, parameter="bad_rows")
        with data.read(self.files, bad=BadRows(limit=1.0), workers=0, **self.reading) as reader:
            first = next(reader, None)
        if first is not None:
            tasks.check_rows(first, columns)
        self.lacks_ids: bool = first is None or tasks.lacks_ids(first)
        self.decisions: dict[str, Any] = first_decisions(self.files, **self.reading)
        self._lines: list[int | None] = [None] * len(self.shards)
        self._before: list[int | None] = [None if self._goes_on(n) else 0 for n in range(len(self.shards))]
        self._sent: dict[int, int | None] = {}  # the lines before a shard, as its task was told
        self._numbered = False
        self._next = {COUNT: 0, WORK: 0}

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        return [one.name for one in self.files]

    @property
    def bytes_total(self) -> int | None:
        """The bytes of all files; None if some do not tell."""
        sizes = [one.size for one in self.shards]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def job(self, **more: Any) -> Job:
        """What tasks share."""
        names = ", ".join(self.names[:3])
        keeps_bad = self.bad.path is not None
        return Job(self.model, self.reading, self.decisions, self.columns, names, keeps_bad, **more)

    def parts(
        self, connection: Connection, function: Callable[..., Any], job: Job, *, numbered: bool, what: str
    ) -> Iterator[tuple[Part, int]]:
        """What a task makes of each shard, in order, and the lines to add to those that it tells.

        With ``numbered``, tasks know the lines before their shards wherever rows lack ids.
        """
        self._numbered = numbered and self.lacks_ids
        self.notes += connection.check_versions()
        shared = Shared(connection, job)

        def make(key: tuple[str, int]) -> Task:
            kind, n = key
            if kind == COUNT:
                return Task(key, tasks.count_shard, (self.shards[n],))
            self._sent[n] = self._before[n]
            return Task(key, function, (shared.future(), after(self.shards[n], self._sent[n] or 0)))

        def most() -> int:
            return AHEAD * max(1, sum(one.threads for one in connection.workers()))

        try:
            for key, part in connection.in_order(lambda: self._following(most()), make, what, most):
                kind, n = key
                if kind == COUNT:
                    self._count(n, part)
                    continue
                if numbered and part.lacks_ids and self._sent[n] is None:
                    self._number_from_now_on()
                    ((_, part),) = connection.results(lambda key=key: [make(key)], what)  # type: ignore[misc]
                yield part, self._take(n, part)
            self.bad.check()
        finally:
            self.bad.close()
        if not self.rows:
            raise DataError(f"{', '.join(self.names[:3])}: there are no rows")

    # ------------------------------------------------------------------ lines

    def _goes_on(self, n: int) -> bool:
        """Whether a shard goes on with the file of the one before."""
        part = self.shards[n].part if n < len(self.shards) else None
        return part is not None and part.start > 0

    def _following(self, most: int) -> tuple[str, int] | None:
        """The next task; None if it has to wait for the lines before its shard."""
        if self._numbered:
            for n in range(self._next[COUNT], min(len(self.shards), self._next[WORK] + most)):
                self._next[COUNT] = n + 1
                if self._goes_on(n + 1) and self._lines[n] is None:
                    return COUNT, n
        n = self._next[WORK]
        if n == len(self.shards) or (self._numbered and self._before[n] is None):
            return None
        self._next[WORK] = n + 1
        return WORK, n

    def _number_from_now_on(self) -> None:
        """Count lines before the tasks that are not yet under way: some rows have no id, though the first have."""
        if not self._numbered:
            self._numbered, self._next[COUNT] = True, self._next[WORK]

    def _count(self, n: int, lines: int) -> None:
        """Take the number of lines of a shard, and what follows from it for shards after it."""
        self._lines[n] = lines
        while self._goes_on(n + 1):
            before, lines_here = self._before[n], self._lines[n]
            if before is None or lines_here is None:
                return
            n += 1
            self._before[n] = before + lines_here

    def _take(self, n: int, part: Part) -> int:
        """Add the bad rows of a shard, and count it; returns what is to be added to the lines that it tells."""
        name, before, sent = self.shards[n].name, self._before[n], self._sent.pop(n)
        assert before is not None  # all shards before this one are known
        if self._lines[n] is None:
            self._count(n, part.lines)
        more = before - (sent or 0)
        self.bad.seen(part.rows - part.bad_count)
        self.bad.untold(part.bad_count - sum(bad.rows for bad in part.bad))
        for bad in part.bad:
            self.bad.add(name, bad._replace(line=bad.line + more))
        self.rows += part.rows
        self.bytes_read += self.shards[n].size or 0
        self.advance(self.bytes_read, part.rows - part.bad_count)
        return more


def usual_shards(nbytes: int) -> int:
    """The number of shards of files of so many bytes; it does not depend on the workers."""
    return max(SHARDS, math.ceil(nbytes / SHARD))


def after(shard: Source, lines: int) -> Source:
    """A shard whose lines are numbered from those before it on."""
    return shard if shard.part is None else shard._replace(part=shard.part._replace(lines_before=lines))


# ---------------------------------------------------------------------- on a connection


def predicted(shards: Shards, connection: Connection, output: Output) -> Iterator[memoryview]:
    """The lines that are written for the rows of all shards, the header before the first of them."""
    output = output._replace(files=len(shards.files) > 1)
    writer = output.writer(shards.model)
    job, begun = shards.job(output=output), False
    for part, _ in shards.parts(connection, tasks.predict_shard, job, numbered=True, what="prediction"):
        if len(part.made):
            if not begun:  # not before it is clear that the data can be used
                yield memoryview(writer.header(output.scores, output.proba, output.top))
                begun = True
            yield memoryview(part.made)


def add_shards(shards: Shards, connection: Connection, evaluation: Any, evidence: Any = None) -> None:
    """Evaluate all shards, and add what is found to an evaluation without rows, and to evidence if there is any."""
    job = shards.job(evaluation=evaluation, evidence=evidence)
    for part, lines in shards.parts(connection, tasks.evaluate_shard, job, numbered=False, what="evaluation"):
        found, shown = part.made
        evaluation.include(found)
        if evidence is not None:
            evidence.include(shown, lines)


# ---------------------------------------------------------------------- in Python


def predict(
    model: Any,
    data: Any,
    output: str | os.PathLike[str],
    *,
    client: Any,
    proba: bool = False,
    scores: bool = False,
    top: int | None = None,
    format_out: str | None = None,
    spreadsheet_safe: bool = False,
    format: str | None = None,
    id: str | None = None,
    bad: BadRows | None = None,
    shards: int | None = None,
    patience: float = PATIENCE,
) -> dict[str, Any]:
    """Predict the rows of files on a cluster: ``onlearn predict --cluster`` in Python.

    The output appears when it is complete, and is the one that the command writes without a cluster. Only models that
    multiply dense matrices, such as networks and SVMs, may differ in the last digit of scores, which depends on how
    many rows come together. Of a Dask data frame, ``frame.map_partitions(model.predict)`` does it: models can be
    pickled.

    :param model: a ``Model``, or the file of one; to predict by a threshold, call its ``set_threshold`` first
    :param data: paths, patterns or URLs that all workers can read
    :param client: a client of Dask's, the address of a scheduler, or ``"local:4"``
    :param spreadsheet_safe: put an apostrophe before text in CSV that a spreadsheet would take for a formula
    :param bad: collects the rows that cannot be read; by default more than 1 % of them raise an error
    :param shards: into how many parts the data are cut, about
    :param patience: seconds to wait for a worker when there is none
    :return: the number of ``rows`` that are predicted, and of ``bad_rows``
    """
    opened = as_model(model)
    asked = Output(format_of(format_out, output), False, scores, proba, top, spreadsheet_safe)
    check_asked(opened, scores, proba, top)
    asked.writer(opened)  # refuses labels that it cannot write
    given = Shards(opened, data, count=shards, bad=bad, format=format, id=id)
    keep_apart(os.fspath(output), *given.names, parameter="output")
    with (
        connect(client, patience=patience) as connection,
        whole_file(Path(output)) as temporary,
        open(temporary, "wb") as file,
    ):
        for lines in predicted(given, connection, asked):
            file.write(lines)
    return {"rows": given.rows - given.bad.count, "bad_rows": given.bad.count}


def evaluate(
    model: Any,
    data: Any,
    *,
    client: Any,
    format: str | None = None,
    target: str | None = None,
    best_threshold: str | None = None,
    positive: str | None = None,
    bad: BadRows | None = None,
    shards: int | None = None,
    patience: float = PATIENCE,
) -> dict[str, Any]:
    """Compare a model's predictions with the labels in files on a cluster: ``onlearn evaluate --cluster --json``.

    The figures are those of one machine, but for the rounding of sums; they do not depend on the workers.
    ``best_threshold`` names a criterion that the threshold of ``positive`` is to suit best; the other parameters are
    those of ``predict``.
    """
    opened = as_model(model)
    evaluation = evaluation_of(opened)
    if positive is not None and best_threshold is None:
        raise PlanError("it is about best_threshold=, which is not given", "positive")
    search = None if best_threshold is None else search_threshold(evaluation, best_threshold, positive)
    given = Shards(opened, data, count=shards, bad=bad, format=format, target=target)
    with connect(client, patience=patience) as connection:
        add_shards(given, connection, evaluation)
    report = report_of(evaluation, opened, given.bad.count, ", ".join(given.names[:3]))
    return report if search is None else {**report, "best_threshold": search()}


def as_model(given: Any) -> Model:
    """A model, or the one in a file; taggers are refused, since sentences are read on one machine."""
    if isinstance(given, Model):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise PlanError(f"a model, or the file of one, is needed, not {type(given).__name__}", "model")
    if is_tagger_file(given):
        raise ModelFileError(f"{given} holds a tagger, which works on one machine: leave the cluster out")
    return open_model(given)

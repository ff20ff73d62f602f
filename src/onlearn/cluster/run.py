"""A training run over shards, on the workers of a cluster: iterative parameter mixing (McDonald, Hall & Mann 2010).

First each shard tells what features and labels it has, which is merged in the order of the shards. Then come rounds: in
each, every shard is learned from once, beginning with the same state, and what the shards learned is mixed. The result
depends on the data, the options and the number of shards alone, not on the workers: a task is a function of a shard, the
round and the state, and sums are in the order of the shards. After each round the model is fit to be saved, and is that
of an unfinished run, which can be resumed.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.cluster import tasks, ways
from onlearn.cluster.connection import Connection, Task
from onlearn.cluster.message import Message, changes, pack
from onlearn.cluster.shard_reading import Job, Shard, Survey
from onlearn.cluster.tasks import Prepared, State
from onlearn.data import DataError
from onlearn.engine.inputs import distinct
from onlearn.errors import PlanError
from onlearn.features.feature_map import MATRIX
from onlearn.features.merging import merged
from onlearn.models.model import Model, tell_sources
from onlearn.models.plan import Plan
from onlearn.models.run import Run
from onlearn.models.run_reading import Examples, Reading

KEPT_SHARE = 0.4  # of a worker's memory, for rows and states between tasks
NEEDED = 6  # times the size of a model that a worker needs to learn


class ClusterRun(Run):
    """One training run on a cluster; ``go`` does it. ``model`` is what was learned until the last round that ended."""

    def __init__(
        self,
        plan: Plan,
        model: Model | None,
        bad: data.BadRows,
        connection: Connection,
        shards: list[Shard],
        *,
        given: list[Any] | None = None,
        rounds: int | None = None,
        mix: str = "uniform",
        lbfgs: int | None = None,
    ) -> None:
        """``given`` has the futures of rows, one a shard, of shards that are no parts of files."""
        self.connection: Connection = connection
        self.shards: list[Shard] = shards
        self.given: list[Any] = [None] * len(shards) if given is None else given
        self.mix: str = mix
        self.rounds: list[Round] = []
        self.on_round: Callable[[Round], None] = lambda one: None
        self.stopped: bool = False
        self._near: dict[int, str | None] = {}  # the worker that has the rows of a shard, so far as is known
        self._asked_rounds, self._lbfgs = rounds, lbfgs
        super().__init__(plan, model, bad)
        connection.interrupted = lambda: self.stopped
        if self.reading.learner is not None:
            self._refuse_unfit(self.reading.learner)

    def _refuse_unfit(self, learner: Any) -> None:
        """Refuse a learner that cannot be mixed, and what goes with it."""
        if (why := ways.why_not(learner, self.mix)) is not None:
            raise PlanError(why, "learner")

    def interrupt(self) -> None:
        """Ctrl-C: stop; the model is that of the last round. The second time it is at once."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True

    # ------------------------------------------------------------------ the whole run

    def go(
        self,
        watch: Any = None,
        checkpoint: Callable[[], None] | None = None,
        every: int = 0,
        on_decided: Callable[[list[str], str], None] | None = None,
    ) -> Model:
        """Survey the shards, learn in rounds, and calibrate; ``checkpoint`` is called after each round."""
        self._set_callbacks(watch, None, 0, on_decided)
        self.report.notes += self.connection.check_versions()
        began = self.lessons.skip
        try:
            if self.start.skip:
                prepared = self._prepared_before()
            else:
                self._decide()
                prepared = self._merge(self._surveys())
            self._refuse_small_memory()
            self.report.tally_before = self.model.learner.training.tally.copy()
            self._learn(prepared, checkpoint)
            self._finish()
        except BaseException:
            self.report.record(self, unfinished=max(self.lessons.learned, began))
            raise
        finally:
            self._forget()
        return self.model

    def _decide(self) -> None:
        """Decide by the first rows about features, learner and labels, as any run does."""
        first = self._first_batch()
        self.passes.wait = True  # what a run does that learns when all rows are read
        self.reading.begin_with(first)
        self.passes.wait = True
        learner = self.reading.learner
        self._refuse_unfit(learner)
        self.passes.count = self._rounds_of(learner)

    def _first_batch(self) -> data.Batch:
        """The first rows that can be read."""
        if self.given[0] is not None:
            reader: Any = self._first_rows_given()
        else:
            sources = [shard.source for shard in self.shards]
            options = self.reading.reading_options()
            reader = data.read(sources, bad=data.BadRows(limit=1.0), workers=0, **options)
        self.reading.reader = reader
        for batch in reader:
            return batch  # type: ignore[no-any-return]
        raise DataError("none of the rows could be read")

    def _rounds_of(self, learner: Any) -> int:
        """The number of rounds that is asked for, or the usual one."""
        return self._asked_rounds or self.plan.passes or learner.usual_passes or ways.ROUNDS

    # ------------------------------------------------------------------ the survey

    def _job(self) -> Job:
        """What all tasks share; of the model what was known before."""
        model = copy.copy(self.model)
        model.learner, model.before, model.trained, model.report_ = None, None, {}, {}
        learner = copy.copy(self.model.learner if self.reading.learner is None else self.reading.learner)
        learner.training = None
        memory = min((one.memory for one in self.connection.workers() if one.memory), default=1 << 32)
        keeps_bad = self.reading.bad.path is not None
        return Job(self.name, self.plan, self.start, model, learner, int(KEPT_SHARE * memory), keeps_bad)

    def _surveys(self) -> list[Survey]:
        """What the rows of each shard tell, in the order of the shards."""
        job, what = Shared(self.connection, self._job()), "reading the data"
        self.job = job

        def make() -> list[Task]:
            return [
                Task(shard.number, tasks.survey, (job.future(), shard, rows))
                for shard, rows in zip(self.shards, self.given)
            ]

        found: dict[int, Survey] = dict(self.connection.results(make, what))
        self._near = {number: one.where for number, one in found.items()}
        return [found[shard.number] for shard in self.shards]

    def _merge(self, surveys: list[Survey]) -> Prepared:
        """Features, labels and counts of all shards; the learner is made ready for them."""
        model, reading, plan = self.model, self.reading, self.plan
        self._count_rows(surveys)
        base = model.features
        found = merged(base, [one.features for one in surveys])
        model.features = found.features
        for one in surveys:
            model.far.include(one.far)
            reading.namespaces.found |= one.namespaces
        if model.features.n_features_out_ == 0:
            raise DataError("there are no features to learn from")
        codes, weights = self._merge_labels(surveys)
        if plan.min_count > 1:
            for one, numbers, own in zip(surveys, found.numbers, codes):
                assert one.counts is not None
                reading.feature_counts.include(one.counts, numbers, own if plan.per_class else None)
            reading.drop_rare_features()
        if self.start.fresh:
            model.learner = reading.make_learner(reading.rows)
            tell_sources(model)
            model.learner._start(model.features.n_features_out_, weights, model.features.dtype)
        else:
            tell_sources(model)
            model.learner._take_in(model.features.n_features_out_, len(model.labels or ()))
        model.before = None  # a run that is resumed has the features that are found here
        starts = np.cumsum([0, *(one.learned for one in surveys)])
        checksums = tuple(one.checksum for one in surveys)
        return self._prepared(starts, checksums, reading.label_counts)

    def _count_rows(self, surveys: list[Survey]) -> None:
        """Count rows and values, and tell the bad rows with the lines of their files."""
        reading, lines = self.reading, dict[str, int]()
        for shard, one in zip(self.shards, surveys):
            before = lines.get(shard.file, 0)
            lines[shard.file] = before + one.lines
            for bad in one.bad:
                reading.bad.add(shard.file, bad._replace(line=bad.line + before))
            reading.bad.untold(one.bad_count - len(one.bad))
            reading.bad.seen(one.rows)
            reading.rows += one.rows
            reading.values += one.values
        reading.bad.check()
        reading.bad.close()
        if not reading.rows:
            raise DataError(f"none of the rows could be read; {reading.bad.first()}")
        if not any(one.learned for one in surveys):
            raise DataError("all rows are held out, so there is nothing to learn from")

    def _merge_labels(self, surveys: list[Survey]) -> tuple[list[np.ndarray], np.ndarray]:
        """List the labels of all shards; returns the code of each shard's labels, and the weight of each class."""
        model, reading = self.model, self.reading
        if model.labels is None:
            return [np.zeros(0, np.int64)] * len(surveys), np.zeros(0)
        for one in surveys:
            names = one.labels or []
            reading._add_labels(model.labels, names, list(range(len(names))))
        numbers = reading.sort_labels()
        del numbers  # codes are made below, by the final list
        counts, weights = np.zeros(len(model.labels), np.int64), np.zeros(len(model.labels))
        codes = []
        for one in surveys:
            own = np.array(positions(one.labels or [], model.labels, dots=False), dtype=np.int64)
            np.add.at(counts, own[: len(one.label_counts)], one.label_counts)
            np.add.at(weights, own[: len(one.label_weights)], one.label_weights)
            codes.append(own)
        reading.label_counts = counts
        return codes, weights

    def _prepared(self, starts: np.ndarray, checksums: tuple[int | None, ...], label_counts: np.ndarray) -> Prepared:
        """What tasks share from now on."""
        learner = self.model.learner
        model = copy.copy(self.model)
        model.learner, model.trained, model.report_ = None, {}, {}
        keeps_back = ways.keeps_back(learner) and len(reserve.in_the_end(int(starts[-1]))) > 0
        return Prepared(model, starts, checksums, label_counts, keeps_back, ways.audits(learner) and not keeps_back)

    def _refuse_small_memory(self) -> None:
        """Refuse workers that are too small for the model, before learning begins."""
        _, arrays = self.model.learner._pack()
        needed = NEEDED * sum(array.nbytes for array in arrays.values())
        for worker in self.connection.wait_for_workers():
            if worker.memory and needed > worker.memory:
                raise ClusterError(
                    f"the worker {worker.address} may use {size_text(worker.memory)} of memory, and to learn this model "
                    f"takes about {size_text(needed)}: give workers more, or hash features to fewer weights"
                )

    # ------------------------------------------------------------------ learning in rounds

    def _learn(self, prepared: Prepared, checkpoint: Callable[[], None] | None) -> None:
        model, passes = self.model, self.passes
        learner, shared = model.learner, Shared(self.connection, prepared)
        first = self.start.ended
        state = State(self.connection, first, learner)
        for number in range(first, passes.count):
            began = perf_counter()
            total = self._total(shared, state, tasks.learn, f"round {number + 1}")
            ways.mix(learner, total, len(self.shards), self.mix)
            passes.ended = number + 1
            if number == 0 and passes.count > 1:
                model.trained["first_size"] = learner.training.size()
            self.lessons.learned = int(learner.n_seen_ - self.seen_before)
            self._end_round(number, total, state, perf_counter() - began)
            if checkpoint is not None and number + 1 < passes.count:
                self.report.record(self, unfinished=self.lessons.learned)
                checkpoint()
            state.follow(learner)
        if prepared.keeps_back:
            self._calibrate_by_kept(shared, state)

    def _total(self, shared: Shared, state: State, function: Callable[..., Any], what: str) -> Message:
        """The sum of what a task makes of each shard, in the order of the shards."""

        def make() -> list[Task]:
            job, prepared, handed = self.job.future(), shared.future(), state.futures()
            leaves = [
                Task(shard.number, function, (job, prepared, state.number, handed, shard, rows), self._near_to(shard))
                for shard, rows in zip(self.shards, self.given)
            ]
            return tree_of(leaves, tasks.add)

        found: dict[int, Message] = dict(self.connection.results(make, what))
        return ways.added([found[key] for key in sorted(found)])

    def _near_to(self, shard: Shard) -> str | None:
        """The worker that has the rows of a shard, if it is alive."""
        near = self._near.get(shard.number)
        return near if near in {one.address for one in self.connection.workers()} else None

    def _end_round(self, number: int, total: Message, state: State, seconds: float) -> None:
        """Tell about a round."""
        self._near.update(total.facts["where"])
        learner = self.model.learner
        entry = learner.history_["passes"][-1]
        mistakes = int(entry["mistakes"]) if learner.task.classifies else None
        moved = state.take_nbytes() + total.facts["moved"]
        alive = len(self.connection.workers())
        told = Round(
            number + 1, self.passes.count, int(entry["seen"]), mistakes, entry["loss"], moved, alive, seconds
        )
        self.rounds.append(told)
        self.on_round(told)

    def _calibrate_by_kept(self, shared: Shared, state: State) -> None:
        """Audit the scores of the rows that were kept back, by the last hypothesis."""
        learner = self.model.learner

        def make() -> list[Task]:
            job, prepared, handed = self.job.future(), shared.future(), state.futures()
            return [
                Task(shard.number, tasks.score_kept, (job, prepared, state.number, handed, shard, rows),
                     self._near_to(shard))
                for shard, rows in zip(self.shards, self.given)
            ]  # fmt: skip

        found: dict[int, Message] = dict(self.connection.results(make, "calibration"))
        parts = [found[number].unpacked() for number in sorted(found)]
        scores = np.concatenate([part["scores"] for part in parts])
        codes = np.concatenate([part["codes"] for part in parts])
        learner.training.take_reserve(scores, learner.task.targets(codes, learner.training.output))

    def _forget(self) -> None:
        """Let workers drop what they keep for this run, as far as they can be told."""
        with contextlib.suppress(Exception):
            client = self.connection.client
            made = [
                client.submit(forget, self.name, workers=[one.address], pure=False)
                for one in self.connection.workers()
            ]
            distributed_wait(made, ANSWER)

"""A training run over shards, on the workers of a cluster: iterative parameter mixing (McDonald, Hall & Mann 2010).

First each shard tells what features and labels it has, and that is merged in the order of the files. Then come
rounds: every shard is learned from once, beginning with the same state, and what the shards learned is mixed. The
result depends on the data, the options and the number of shards, and not on the workers: a task is a function of a
shard, the round and the state, and sums are in the order of the shards. After each round the model is that of an
unfinished run, which can be saved and resumed.
"""

from __future__ import annotations

import contextlib
import copy
import uuid
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from onlearn import data
from onlearn.cluster import descent, tasks, ways
from onlearn.cluster.collections import Columns
from onlearn.cluster.connection import Connection, Task
from onlearn.cluster.message import Message
from onlearn.cluster.rounds import Changing, Round, Shared, State, size_text, tree_of
from onlearn.cluster.run_reading import ArraysReading, PartReader, ShardedReading
from onlearn.cluster.shard_reading import Job
from onlearn.cluster.shards import Shard, dealt
from onlearn.cluster.survey import Survey, take_labels, take_rows
from onlearn.cluster.tasks import Prepared
from onlearn.cluster.worker_memory import forget
from onlearn.data import DataError
from onlearn.engine import objective, reserve
from onlearn.errors import ClusterError, PlanError
from onlearn.features.merging import merged, with_names
from onlearn.models.model import Model, as_learner
from onlearn.models.plan import Plan
from onlearn.models.raw_rows import tell_sources
from onlearn.models.run import Run, start_of, take_plan
from onlearn.models.run_reading import Start
from onlearn.models.run_report import is_unfinished

KEPT_SHARE = 0.4  # of a worker's memory, for rows and states between tasks
NEEDED = 5  # times the size of a model that a worker needs to learn
UNKNOWN = 4 << 30  # bytes that a worker may use if it does not say
TOLD = ("shards", "rounds", "mix")  # what the model of a run that is over tells of it
LBFGS = 20  # iterations, unless a number is given, for objectives with a penalty


class ClusterRun(Run):
    """One training run on a cluster; ``go`` does it. ``model`` is what was learned until the last round that ended."""

    reading: ShardedReading

    def __init__(
        self,
        plan: Plan,
        model: Model | None,
        bad: data.BadRows,
        shards: list[Shard],
        *,
        columns: Columns | None = None,
        rounds: int | None = None,
        mix: str = "rows",
        lbfgs: int | None = None,
        asked_shards: int | None = None,
    ) -> None:
        """``columns`` are those of a collection, of which the shards are parts.

        ``asked_shards`` is the number of shards that files were to be cut into.
        """
        if plan.task not in ("classify", "regress"):
            raise PlanError(f"task={plan.task} has no use with cluster=: train on one machine")
        self.name: str = uuid.uuid4().hex  # of this run, on workers that may know others
        self.connection: Connection  # see ``connect``
        self.shards: list[Shard] = shards
        self.given: list[Any] = [None] * len(shards)
        self.columns: Columns | None = columns
        self.mix: str = mix
        self.asked_shards: int = asked_shards or len(shards)
        self.told: list[Round] = []
        self.iterations: int = 0  # of L-BFGS
        self.on_round: Callable[[Any], None] = lambda one: None
        self.stopped: bool = False
        self._asked_rounds, self._asked_lbfgs = rounds, lbfgs
        of_arrays = columns is not None and columns.target is None
        self.reading_type = ArraysReading if of_arrays else ShardedReading
        self._kept: dict[str, Any] = {}  # what a run needs that goes on with this one
        self._near: dict[int, str | None] = {}  # the worker that has the rows of a shard, as far as is known
        super().__init__(plan, model, bad)
        self.reading.shards = shards
        learner = self.model.learner if model is not None else as_learner(plan.learner)
        if learner is not None:
            self._refuse_unfit(learner)

    def connect(self, connection: Connection, given: list[Any] | None = None) -> ClusterRun:
        """This run on a cluster; ``given`` has the futures of the rows of shards that are parts of a collection."""
        self.connection = self.reading.connection = connection
        connection.interrupted = lambda: self.stopped
        self.given = self.given if given is None else given
        return self

    def _starts(self, plan: Plan, model: Model | None) -> tuple[Start, str | None]:
        if model is None or not is_unfinished(model, plan.sources):
            return start_of(plan, model)
        trained = model.trained
        take_plan(plan, trained["plan"])
        before, rounds = trained["cluster"], int(trained["ended"])
        self._kept = before
        self.mix, self._asked_rounds, self._asked_lbfgs = before["mix"], int(before["rounds"]), before["asked_lbfgs"]
        note = f"the model is of an unfinished run; going on after round {rounds} of {before['rounds']}"
        return Start(False, False, int(trained["unfinished"]), rounds), note

    def _refuse_unfit(self, learner: Any) -> None:
        """Refuse a learner that cannot learn on a cluster, and options that it has no use for."""
        if (why := ways.why_not(learner)) is not None:
            raise PlanError(why, "learner")
        if self._asked_lbfgs and (why := objective.why_not(learner)) is not None:
            raise PlanError(why, "lbfgs")

    def interrupt(self) -> None:
        """Ctrl-C: stop; the model is that of the last round. The second time it is at once."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "cluster": {
                "shards": len(self.shards),
                "mix": self.mix,
                "rounds": [one._asdict() for one in self.told],
                "lbfgs": self.iterations,
            },
        }

    def _learning(self) -> str:
        rounds = self._rounds_of(self.reading.learner)
        learner = " ".join(repr(self.reading.learner).split())
        task = "classification" if self.plan.task == "classify" else "regression"
        shards = f"{len(self.shards)} shard{'' if len(self.shards) == 1 else 's'}"
        return f"{task} by {learner}, {rounds} round{'' if rounds == 1 else 's'} of {shards}"

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
        try:
            if self.start.skip:
                prepared = self._prepared_before()
            else:
                self._decide()
                prepared = self._merge(self._surveys())
            self._refuse_small_memory()
            self._learn(prepared, checkpoint)
            self._finish()
        except BaseException:
            self._record(unfinished=max(self.lessons.learned, self.start.skip))
            raise
        finally:
            self._forget()
        self._record(unfinished=None)
        return self.model

    def _record(self, unfinished: int | None) -> None:
        """Write into the model how it was trained; a run that goes on needs to know its shards."""
        self.report.record(self, unfinished)
        if self._kept:
            told = self._kept if unfinished is not None else {name: self._kept[name] for name in TOLD}
            self.model.trained["cluster"] = told

    def _decide(self) -> None:
        """Decide by the first rows about features, learner and labels, as any run does."""
        first = self._first_batch()
        self.passes.wait = True  # labels and features are known when all rows are read
        self.reading.begin_with(first)
        self.passes.wait = True
        self._refuse_unfit(self.reading.learner)
        self.passes.count = self._rounds_of(self.reading.learner)

    def _first_batch(self) -> data.Batch:
        """The first rows that can be read."""
        if self.columns is not None:
            return self._first_given(self.columns)
        bad = data.BadRows(limit=1.0)
        with self._reader(bad) as reader:
            self.reading.reader = reader
            first = next(reader, None)
            self.reading.decisions = reader.decisions()
        if first is None:
            raise DataError(f"none of the rows could be read; {bad.first()}")
        return first

    def _reader(self, bad: data.BadRows) -> data.Reader:
        """A reader of the files from their beginning, with as many first rows as on one machine."""
        files = list(dict.fromkeys(piece._replace(part=None) for piece in self._pieces()))
        return data.read(files, bad=bad, workers=0, **self.reading.reading_options())

    def _pieces(self) -> list[Any]:
        """The pieces of the files, in their order."""
        return [self.shards[shard].pieces[place] for shard, place in dealt(self.shards)]

    def _first_given(self, columns: Columns) -> data.Batch:
        """The first rows of a collection: those of its first part that has some."""
        reader: Any = PartReader(columns)
        self.reading.reader = reader
        for shard, part in zip(self.shards, self.given):
            task = Task(shard.number, tasks.first_batch, (part, shard.name, columns, self.plan.task))
            ((_, first),) = self.connection.results(lambda task=task: [task], "reading the data")  # type: ignore[misc]
            if first is not None:
                return first
        raise DataError("the collection has no rows with a label")

    def _rounds_of(self, learner: Any) -> int:
        """The number of rounds that is asked for, or the usual one."""
        return self._asked_rounds or self.plan.passes or ways.way_of(learner).rounds(learner)

    # ------------------------------------------------------------------ the survey

    def _job(self) -> Job:
        """What all tasks share; of the model what was known before."""
        model = copy.copy(self.model)
        model.learner, model.before, model.trained, model.report_ = None, None, {}, {}
        learner = copy.copy(self.model.learner if self.model.learner is not None else self.reading.learner)
        learner.training = None
        memory = min((one.memory or UNKNOWN for one in self.connection.wait_for_workers()), default=UNKNOWN)
        return Job(
            run=self.name,
            plan=self.plan,
            start=self.start,
            model=model,
            learner=learner,
            room=int(KEPT_SHARE * memory),
            mix=self.mix,
            decisions=self.reading.decisions,
            columns=self.columns,
            keeps_bad=self.reading.bad.path is not None,
        )

    def _surveys(self) -> list[Survey]:
        """What the rows of each shard tell, in the order of the shards."""
        job = Shared(self.connection, self._job())

        def make() -> list[Task]:
            return [
                Task(shard.number, tasks.survey, (job.future(), shard, rows), self._near.get(shard.number))
                for shard, rows in zip(self.shards, self.given)
            ]

        found: dict[int, Survey] = dict(self.connection.results(make, "reading the data"))
        self._near = {number: one.where for number, one in found.items()}
        return [found[shard.number] for shard in self.shards]

    def _merge(self, surveys: list[Survey]) -> Prepared:
        """Features, labels and counts of all shards; the learner is made ready for them."""
        model, reading = self.model, self.reading
        take_rows(reading, self.shards, surveys)
        for one in surveys:
            model.far.include(one.far)
            reading.namespaces.found |= one.namespaces
        surveys, numbers = self._merge_features(surveys)
        codes, weights = take_labels(reading, surveys)
        if self.plan.min_count > 1:
            for one, places, own in zip(surveys, numbers, codes):
                assert one.counts is not None
                reading.feature_counts.include(one.counts, places, own if self.plan.per_class else None)
            reading.drop_rare_features()
        if self.start.fresh:
            model.learner = reading.make_learner(reading.rows)
            tell_sources(model)
            model.learner._start(model.features.n_features_out_, weights, model.features.dtype)
        else:
            tell_sources(model)
            model.learner._take_in(model.features.n_features_out_, len(model.labels or ()))
        model.before = None  # a run that is resumed has the features that are found here
        learned = [one.learned for one in surveys]
        return self._prepare(learned, [one.digest for one in surveys], reading.label_counts)

    def _merge_features(self, surveys: list[Survey]) -> tuple[list[Survey], list[np.ndarray]]:
        """Merge the features that the shards found, as if by one reader of the files.

        Returns the surveys and the numbers of each shard's features.
        Where names are met beyond ``max_names``, shards are surveyed once more by all names, for exact counts.
        """
        base, order = self.model.features, list(dealt(self.shards)) or None
        found = merged(base, [one.features for one in surveys], order)
        if not found.exact:
            self.model.features = base = with_names(base, [one.features for one in surveys], order)
            again = self._surveys()
            found = merged(base, [one.features for one in again], order)
            surveys = [one._replace(features=two.features, counts=two.counts) for one, two in zip(surveys, again)]
        self.model.features = found.features
        if found.features.kind_ is None or found.features.n_features_out_ == 0:
            raise DataError("there are no features to learn from")
        return surveys, found.numbers

    def _prepare(self, learned: list[int], digests: list[Any], label_counts: np.ndarray) -> Prepared:
        """What tasks share from now on; and what a run needs that goes on with this one."""
        learner = self.model.learner
        model = copy.copy(self.model)
        model.learner, model.trained, model.report_ = None, {}, {}
        starts = np.cumsum([0, *learned])
        able = ways.way_of(learner).keeps_back and learner.task.classifies
        descends = self._descends()
        many = self.passes.count > 1 or descends
        keeps_back = able and many and learner.keeps_back() and reserve.keeps_any(int(starts[-1]))
        self._kept = {
            "shards": len(self.shards),
            "asked_shards": self.asked_shards,
            "rounds": self.passes.count,
            "mix": self.mix,
            "asked_lbfgs": self._asked_lbfgs,
            "learned": [int(n) for n in learned],
            "digests": [list(one) for one in digests],
            "label_counts": [int(n) for n in label_counts],
        }
        return Prepared(
            model=model,
            shards=len(self.shards),
            starts=starts,
            digests=tuple(map(list, digests)),
            label_counts=label_counts,
            rounds=self.passes.count,
            keeps_back=keeps_back,
            audits=able and not keeps_back,
            descends=descends,
        )

    def _prepared_before(self) -> Prepared:
        """What the earlier part of this run has found."""
        before = self.model.trained["cluster"]
        if before["shards"] != len(self.shards):
            raise DataError("the files have changed since the run began: train anew")
        self.reading.learner = self.model.learner
        self.passes.count = int(before["rounds"])
        self.reading.rows = int(self.model.trained["rows"])
        self.lessons.learned = self.start.skip
        self.reading.decisions = self._decisions_before()
        counts = np.array(before["label_counts"], dtype=np.int64)
        return self._prepare(before["learned"], before["digests"], counts)

    def _decisions_before(self) -> dict[str, Any]:
        """The decisions of the first rows, which are read once more."""
        with self._reader(data.BadRows(limit=1.0)) as reader:
            next(reader, None)
            return reader.decisions()

    def _refuse_small_memory(self) -> None:
        """Refuse workers that are too small for the model, before learning begins."""
        _, arrays = self.model.learner._pack()
        for_one = NEEDED * sum(array.nbytes for array in arrays.values())
        for worker in self.connection.wait_for_workers():
            needed = for_one * max(1, worker.threads)
            if worker.memory and needed > worker.memory:
                threads = f" in {worker.threads} threads" if worker.threads > 1 else ""
                raise ClusterError(
                    f"the worker {worker.address} may use {size_text(worker.memory)} of memory, and to learn this "
                    f"model{threads} takes about {size_text(needed)}: give workers more"
                    f"{' or one thread' if threads else ''}, or hash features to fewer weights"
                )

    # ------------------------------------------------------------------ learning

    def _learn(self, prepared: Prepared, checkpoint: Callable[[], None] | None) -> None:
        """The rounds, L-BFGS, and the calibration by rows kept back."""
        model, passes = self.model, self.passes
        learner, way = model.learner, ways.way_of(model.learner)
        facts, arrays = learner._pack()
        learner._unpack(facts, arrays)  # as workers get it, without room for more
        self.job, self.prepared = Shared(self.connection, self._job()), Shared(self.connection, prepared)
        seen_before = int(learner.n_seen_) - self.start.skip
        state = State(self.connection, self.start.ended, learner)
        for number in range(self.start.ended, passes.count):
            began = perf_counter()
            total = self._total(tasks.learn, state, (), f"round {number + 1}", tasks.add)
            way.mix(learner, total)
            self._audit(number, total)
            passes.ended = number + 1
            self.lessons.learned = int(learner.n_seen_) - seen_before
            state.follow_learner(learner)
            self._tell_round(number, total, state.take_nbytes(), perf_counter() - began)
            if checkpoint is not None:
                self._record(unfinished=self.lessons.learned)
                checkpoint()
        passes.ended = max(passes.ended, self.start.ended)
        if prepared.descends:
            self._descend(state)

    def _total(
        self, function: Callable[..., Any], state: State, more: tuple[Any, ...], what: str, add: Callable[..., Any]
    ) -> Message:
        """The sum of what a task makes of each shard, in the order of the shards."""

        def make() -> list[Task]:
            job = self.job.future()
            leaves = self._tasks(function, state, more)
            return tree_of(leaves, lambda n, group: Task(n, add, (job, group)))

        found: dict[int, Message] = dict(self.connection.results(make, what))
        total = tasks.sum_of(add, self.job.value, [found[key] for key in sorted(found)])
        self._near.update(total.facts["where"])
        return total

    def _tasks(self, function: Callable[..., Any], state: State, more: tuple[Any, ...]) -> list[Task]:
        """A task for each shard, near its rows."""
        shared = (self.job.future(), self.prepared.future(), state.number, state.futures())
        extra = tuple(one.futures() if isinstance(one, Changing) else one for one in more)
        alive = {one.address for one in self.connection.workers()}
        made = []
        for shard, rows in zip(self.shards, self.given):
            near = self._near.get(shard.number)
            made.append(Task(shard.number, function, (*shared, *extra, shard, rows), near if near in alive else None))
        return made

    def _audit(self, number: int, total: Message) -> None:
        """Keep the scores that workers have sent in a round, for calibration."""
        if not (parts := total.facts.get("audit")):
            return
        training = self.model.learner.training
        scores, targets = map(np.concatenate, zip(*parts))
        training.take_reserve(scores, targets)
        if self.prepared.value.keeps_back:
            for entry in training.by_pass[-1 - number : -1]:
                entry["kept_back"] = len(targets)
        else:  # the scores are of rows that are learned from in all further rounds, in which scores grow
            training.reserved = 0
            if number + 1 < self.passes.count:
                self.model.trained["first_size"] = training.size()

    def _tell_round(self, number: int, total: Message, shared: int, seconds: float) -> None:
        learner = self.model.learner
        entry = learner.history_["passes"][-1]
        told = Round(
            number=number + 1,
            rounds=self.passes.count,
            seen=int(entry["seen"]),
            mistakes=int(entry["mistakes"]) if learner.task.classifies and learner.is_progressive else None,
            loss=float(entry["loss"]) if learner.is_progressive else None,
            nbytes=shared + total.facts["moved"],
            workers=len(self.connection.workers()),
            seconds=seconds,
        )
        self.told.append(told)
        self.on_round(told)

    # ------------------------------------------------------------------ L-BFGS

    def _descends(self) -> bool:
        """Whether L-BFGS follows the rounds: if it is asked for, or if a penalty gives the objective a minimum."""
        learner = self.model.learner
        if self._asked_lbfgs == 0 or objective.why_not(learner) is not None:
            return False
        if self._asked_lbfgs is not None:
            return True
        return any(learner.choices["geometry"].penalties)

    def _descend(self, state: State) -> None:
        """Minimise the objective over all rows, from the weights that the rounds have led to."""
        learner = self.model.learner
        training, most = learner.training, LBFGS if self._asked_lbfgs is None else self._asked_lbfgs
        w = Changing(self.connection)

        def sums(at: np.ndarray) -> tuple[float, np.ndarray, float]:
            w.follow({"w": at})
            total = self._total(tasks.gradient, state, (w,), "L-BFGS", tasks.add_gradients)
            return descent.sums_of(total)

        began = perf_counter()
        found = objective.Objective.of(training, sums).begin(training.weights(), objective.scale_of(training))

        def watch(now: Any) -> None:
            self.iterations = now.iterations
            self.on_round(
                f"L-BFGS, iteration {now.iterations} of {most}: objective {now.values[-1]:.6f}, "
                f"{perf_counter() - began:.2f} s"
            )

        why = objective.run(found, most, watch=watch)
        objective.install(training, found.w)
        ended = {"iterations": "", "tol": ", where it hardly falls any more", "minimum": ", its minimum"}[why]
        self.report.notes.append(
            f"L-BFGS took the objective from {found.values[0]:.6f} to {found.values[-1]:.6f}{ended}, in "
            f"{found.iterations} iterations"
        )
        state.follow_learner(learner)
        if self.prepared.value.keeps_back:
            self._audit_kept(state)

    # ------------------------------------------------------------------ the end

    def _audit_kept(self, state: State) -> None:
        """Audit the scores, by the minimum, of the rows kept back, which it was not fitted to."""
        training = self.model.learner.training
        found: dict[int, Any] = dict(
            self.connection.results(lambda: self._tasks(tasks.audit_kept, state, ()), "calibration")
        )
        scores, targets = map(np.concatenate, zip(*(found[number] for number in sorted(found))))
        training.take_reserve(scores, targets)
        for entry in training.by_pass[-self.passes.count :]:
            entry["kept_back"] = len(targets)

    def _forget(self) -> None:
        """Let workers drop what they keep for this run, as far as they can be told."""
        with contextlib.suppress(Exception):
            self.connection.tell_workers(forget, self.name)

"""``TunedRun``: a training run whose learner, features and passes are decided by a race of configurations.

The first rows are read, as many as memory has room for, and a sample of them is raced over: files are often in some
order. Then the winner's options make an ordinary run, which learns from these rows and the rest of the reader. So the
model is, bit for bit, that of the ``onlearn train`` command which the race ends with, and checkpoints, resuming,
calibration and bad rows are those of any run.

If the race is interrupted, the run of the best configuration so far learns from one portion of examples, and ends as an
interrupted run does: its model can be saved and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.data import Batch, arrow
from onlearn.errors import PlanError
from onlearn.features import Text, guess_roles
from onlearn.features.feature_map import TABLE, kind_of
from onlearn.models.configuration import (
    OPTIONS,
    TEXTS,
    command,
    configured,
    option_names,
    refuse_sentences,
    resolved,
    spelling,
)
from onlearn.models.file_race import picked, race_over, raced_options
from onlearn.models.model import Model
from onlearn.models.plan import is_text
from onlearn.models.run import Run
from onlearn.models.run_reading import held_out
from onlearn.models.run_report import Watch
from onlearn.models.train_options import TrainOptions
from onlearn.models.training import plan_of, run_of
from onlearn.tune.field import Field, reason
from onlearn.tune.portfolio import Kind, configurations
from onlearn.tune.race import Race, Stopwatch
from onlearn.tune.space import Options, Space, different

BYTES = 256 << 20  # of parsed rows that are kept, about
ROWS = 1 << 17  # of those, drawn at random, that are raced over, at most
CONFIGURATIONS = 16  # of a space that is given
FEWEST = 20  # rows that can be raced over
OFTEN = 2  # rows for each value of a column of whole numbers that may hold categories, at least
DENSE = 0.5  # the part of the numbers between the least and the greatest from which on there are no gaps

Said = Callable[[list[str], str], None]


class Sampled(NamedTuple):
    """The rows that are raced over: so many, drawn from so many that were kept; and whether these are all."""

    rows: int
    kept: int
    complete: bool

    def __str__(self) -> str:
        """What was drawn from what.

        >>> str(Sampled(500, 500, True)), str(Sampled(131072, 522922, False))
        ('all 500 rows', '131,072 rows, drawn at random from the first 522,922')
        """
        if self.rows == self.kept:
            return f"{'all' if self.complete else 'the first'} {self.rows:,} rows"
        return f"{self.rows:,} rows, drawn at random from {'all' if self.complete else 'the first'} {self.kept:,}"


class TunedRun(Run):
    """A run that begins with a race; then it is the run of the winner."""

    def __init__(
        self,
        options: TrainOptions,
        bad: data.BadRows | None = None,
        before: Mapping[str, Any] | None = None,
        *,
        field: Field | None = None,
        own_run: Callable[[TrainOptions], Run] | None = None,
    ) -> None:
        """``before`` is the table of an earlier race: configurations that it dropped do not take part.

        ``field`` is where configurations learn. ``own_run`` makes a run of the winner's options that reads the files
        by itself, as one on a cluster does; without it an ordinary run goes on with the rows that were read. Options of
        which it can make no run do not take part.
        """
        refuse_choices(options)
        self.options: TrainOptions = options
        self.field: Field | None = field
        self.own_run: Callable[[TrainOptions], Run] | None = own_run
        self.run: Run | None = None  # of the winner
        if own_run is not None:
            own_run(configured(options, {}))  # what it refuses is refused before the race
        super().__init__(plan_of(configured(options, {})), None, bad)
        self.space: Space | None = space_of(options)
        self.before: dict[str, dict[str, Any]] = {}
        for one in (before or {}).get("configurations", ()):
            if one.get("why") is not None:
                self.before[str(one["spelling"])] = dict(one)
        self.clock: Stopwatch = Stopwatch(options.time_limit)
        self.race: Race | None = None
        self.racing: bool = False
        self.on_rung: Callable[[Race, list[Options]], None] | None = None
        self.options_raced: list[Options] = []
        self.sampled: Sampled = Sampled(0, 0, True)

    def interrupt(self) -> None:
        """Ctrl-C: end the race; the second time, and after the race, as in any run."""
        if self.racing and not self.clock.stopped:
            self.clock.stopped = True
        elif self.run is not None:
            self.run.interrupt()
        else:
            super().interrupt()

    def facts(self) -> dict[str, Any]:
        """What the report tells of the race, and of the winner's run."""
        return {**({} if self.run is None else self.run.facts()), **super().facts()}

    def go(
        self,
        watch: Watch | None = None,
        checkpoint: Callable[[], None] | None = None,
        every: int = 0,
        on_decided: Said | None = None,
    ) -> Model:
        """Race, and learn by the winner's configuration."""
        if self.tuning is None:
            self.decide()
        return self.learn(watch, checkpoint, every, on_decided)

    def decide(self) -> dict[str, Any]:
        """Race over a sample of the first rows; the table of the race, ready for JSON, which ``tuning`` keeps."""
        began = perf_counter()
        self.clock.began = began
        reader = self.reading.open() if self.reading.reader is None else self.reading.reader
        self.reading.reader = reader
        self.reading._limit_row_cache(reader)
        kept, complete = reader.keep(BYTES)
        self._refuse_unfit(reader, kept)
        batches, first = self._sample(kept, complete)
        why = self._too_little(batches)
        found = [{}] if why is not None or first is None else self._configurations(reader, first)
        runs = [self._run_of(one) for one in found]
        winner, options = 0, found[0]
        self.options_raced = found
        if len(found) > 1:
            self.racing = True
            try:
                self.race, finalists = race_over(
                    reader, batches, runs, seed=self.options.seed, over=self.clock, field=self.field,
                    on_rung=self._rung, first=first, times=self._times(reader),
                )  # fmt: skip
            finally:
                self.racing = False
            decided = self.race.winner
            winner = 0 if decided is None else decided
            options = found[winner]
            if winner in finalists:
                options = {**options, **raced_options(self.race, winner, *finalists[winner])}
        self.tuning = self._table(found, winner, options, perf_counter() - began, why)
        self._adopt(options, reader)
        return self.tuning

    def learn(
        self,
        watch: Watch | None = None,
        checkpoint: Callable[[], None] | None = None,
        every: int = 0,
        on_decided: Said | None = None,
    ) -> Model:
        """Learn by the winner's configuration, from all rows."""
        assert self.run is not None
        said = self.tuning_sentences()

        def on_start(notes: list[str], learning: str) -> None:
            if on_decided is not None:
                on_decided([*notes, *said], learning)

        self.lessons.stop = self.clock.stopped  # after the first portion
        return self.run.go(watch, checkpoint, every, on_start)

    # ------------------------------------------------------------------ what takes part

    def _configurations(self, reader: data.Reader, first: Batch) -> list[Options]:
        """The default, and the configurations of the space that is given, or of one that suits the rows."""
        if self.space is not None:
            most = self.options.configurations or CONFIGURATIONS
            return different([{}, *resolved(self.space.sample(most, self.options.seed))])
        fixed = {"passes", *self.options.given("in_model")} - {"learner", "space", "configurations", "time_limit"}
        fixed = {name for name in fixed if self.options.is_given(name)}
        usual = configurations(self._kind(reader, first))
        free = [one for one in usual if fixed.isdisjoint(one)]
        return different([{}, *free])[: self.options.configurations]

    def _kind(self, reader: data.Reader, first: Batch) -> Kind:
        """What the default space depends on."""
        rows, task = first.parsed, self.plan.task
        if kind_of(rows) != TABLE:
            return Kind(task)
        trial = run_of(plan_of(configured(self.options, {})))
        trial.reading.reader = reader
        trial.passes.wait = True
        trial.reading.begin_with(first)
        extractors = [one for one in trial.model.features.extractors if hasattr(one, "column")]
        text = is_text(trial.model.features)
        cut = any(isinstance(one, Text) and one.ngrams is None for one in extractors)
        numbers = [one.column for one in extractors if one.kind == "number"]
        unsure = {one: has_gaps(rows, one) for one in numbers if one not in trial.plan.roles}
        unsure = {one: gaps for one, gaps in unsure.items() if gaps is not None}
        gaps = tuple(one for one in unsure if unsure[one])
        columns = len({one.column for one in extractors})
        return Kind(task, text, cut, True, len(numbers), columns, tuple(unsure), gaps)

    def _run_of(self, one: Options) -> Callable[[], Run] | str:
        """What makes runs of a configuration; or why it cannot take part."""
        if (known := self.before.get(spelling(one))) is not None:
            return f"in the table before: {known['why']}"
        make = partial(self._new_run, one)
        if not one:
            return make  # the default: its errors are raised by the run itself
        try:
            make()
            if self.own_run is not None:
                self.own_run(configured(self.options, one))
        except (TypeError, ValueError) as error:
            return reason(error)
        return make

    def _new_run(self, one: Options) -> Run:
        plan = plan_of(configured(self.options, one))
        plan.holdout, plan.prune_weights = 0.0, 0.0
        return run_of(plan)

    def _refuse_unfit(self, reader: data.Reader, batches: list[Batch]) -> None:
        """Refuse data and options that the default configuration refuses: every other one would be dropped, too."""
        refuse_sentences(batches)
        probe = self._new_run({}).reading
        probe.reader = reader
        for batch in batches[:1]:
            probe.begin_with(batch)

    def _too_little(self, batches: list[Batch]) -> str | None:
        """Why rows cannot be raced over; None if they can."""
        rows = sum(len(batch) for batch in batches)
        if rows < FEWEST:
            return f"{rows} row{'s are' if rows != 1 else ' is'} too few"
        if self.plan.task == "classify":
            labels = {int(code) for batch in batches if batch.codes is not None for code in np.unique(batch.codes)}
            if len(labels) < 2:
                return f"the {rows:,} rows have only one label"
        return None

    def _sample(self, kept: list[Batch], complete: bool) -> tuple[list[Batch], Batch | None]:
        """The rows to race over, and the first ones that the run learns from, which decide about features.

        Rows that are held out are in neither. ``sampled`` notes how many there are, and of how many.
        """
        total = sum(len(batch) for batch in kept)
        learned = np.arange(total)
        if self.plan.holdout:
            learned = np.flatnonzero(~held_out(0, total, self.plan.holdout, self.options.seed))
        drawn = learned
        if len(learned) > ROWS:
            drawn = np.sort(np.random.default_rng([self.options.seed, 0x726F]).choice(learned, ROWS, replace=False))
        self.sampled = Sampled(len(drawn), len(learned), complete)
        batches = kept if len(drawn) == total else picked(kept, drawn)
        return batches, next(iter([*picked(kept[:1], learned), *batches]), None)

    def _times(self, reader: data.Reader) -> float:
        """How many times as many rows the winner learns from as are raced over, about."""
        drawn, learned, complete = self.sampled
        rest = (
            1.0
            if complete or not reader.bytes_total or not reader.bytes_read
            else reader.bytes_total / reader.bytes_read
        )
        return max(1.0, rest) * learned / max(1, drawn)

    # ------------------------------------------------------------------ the result

    def _rung(self, race: Race) -> None:
        if self.on_rung is not None:
            self.on_rung(race, self.options_raced)

    def _adopt(self, options: Options, reader: data.Reader) -> None:
        """Become the run of these options, over what is read and the rest; one of its own reads the files anew.

        After Ctrl-C it is an ordinary one in any case, which learns from a portion of what is read.
        """
        chosen = configured(self.options, options)
        if self.own_run is None or self.clock.stopped:
            run = run_of(plan_of(chosen), None, self.reading.bad)
            run.reading.reader = reader
        else:
            reader.close()
            self.reading.bad.close()
            run = self.own_run(chosen)
        self.run = run
        self.plan, self.model, self.start = run.plan, run.model, run.start
        self.report, self.lessons = run.report, run.lessons
        self.passes, self.reading = run.passes, run.reading

    def _table(
        self, found: list[Options], winner: int, options: Options, seconds: float, why: str | None
    ) -> dict[str, Any]:
        standings = {} if self.race is None else {one.number: one.to_json() for one in self.race.finish()}
        table = []
        for number, one in enumerate(found):
            facts = standings.get(number, {"number": 0, "rungs": [], "dropped_at": None, "why": None, "rank": 1})
            known = self.before.get(spelling(one))
            if known is not None:
                facts = {**facts, **{name: known[name] for name in ("rungs", "dropped_at", "why") if name in known}}
            table.append({"number": number, "options": one, "spelling": spelling(one), **facts})
        return {
            "configurations": table,
            "winner": winner,
            "options": options,
            "command": command(self.options, options),
            "examples": 0 if self.race is None else self.race.learned,
            "rows": 0 if self.race is None else self.race.examples,
            "seconds": round(seconds, 3),
            "ended_early": self.race is not None and self.race.ended_early,
            "sample": {**self.sampled._asdict(), "said": str(self.sampled)},
            "classifies": self.plan.task == "classify",
            "why_not": why,
        }

    def tuning_sentences(self) -> list[str]:
        """What the race decided, for users."""
        if self.tuning is None:
            return []
        if self.tuning["why_not"] is not None:
            return [f"no race: {self.tuning['why_not']}"]
        count = len(self.tuning["configurations"])
        chosen = spelling(self.tuning["options"]) or "the default"
        ended = ", ended early" if self.tuning["ended_early"] else ""
        return [
            f"a race of {count} configuration{'s' if count != 1 else ''}{ended}, {self.tuning['seconds']:.2f} s, over "
            f"{self.tuning['sample']['said']}: {chosen} is best",
            self.tuning["command"],
        ]


def refuse_choices(options: TrainOptions) -> None:
    """Refuse options that a race decides about, and to resume by one."""
    if options.resume is not None:
        raise PlanError("learner= has no use with resume=: the model has decided it")
    if options.task not in (None, "classify", "regress"):
        raise PlanError(f"auto is not for task={options.task}: name a learner", "learner")
    for name in ("rule", "geometry", "kernel", "budget", "budget_policy", "cache_mb"):
        if options.is_given(name):
            whose = "" if name in OPTIONS else ", besides 'learner=KernelClassifier'"
            spelled = f"'{name}={getattr(options, name)}'{whose}"  # in quotes, commands do not spell it as an option
            raise PlanError(f"{name}= is what learner=auto decides: put it into space=, as {spelled}")


def space_of(options: TrainOptions) -> Space | None:
    """The space that is given, checked; None if none is."""
    given = options.space
    if given is None or (isinstance(given, list) and not given):
        return None
    space = Space.of(given) if isinstance(given, Mapping) else Space.parse(given)
    if not space.values:
        raise PlanError("the space has no options", "space")
    learners = space.values.get("learner", ())
    space.check(option_names(learners if isinstance(learners, tuple) else ()))
    fixed = [name for name in space.values if name != "learner" and hasattr(options, name) and options.is_given(name)]
    if fixed:
        raise PlanError(f"{fixed[0]} is given by itself, so the space cannot have values for it", "space")
    return space.with_truths(TEXTS)


def has_gaps(rows: Any, column: str) -> bool | None:
    """Whether a column of whole numbers that may be categories lacks most numbers in between; None: it is none."""
    if "whole numbers" not in guess_roles(rows.select([column]))[column].reason:
        return None
    values = np.unique(arrow.numbers(arrow.in_one_piece(rows.column(column)).drop_null()))
    if len(values) <= 2 or len(values) * OFTEN > rows.num_rows:
        return None
    return len(values) < DENSE * float(values[-1] - values[0] + 1)

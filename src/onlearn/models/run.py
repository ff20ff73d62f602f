"""Training runs over files: one pass while the rows are read, further passes over the rows that were kept.

An unfinished run can be resumed. The plan and the seed decide everything about a run, so it is repeated from the start,
but examples that the learner has learned from already are skipped.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from onlearn import data
from onlearn.data.cache import Cache
from onlearn.engine import reserve
from onlearn.engine.calibration import HeldOut
from onlearn.engine.csr import rows_at, select, stacked
from onlearn.engine.learner import Learner
from onlearn.engine.loops import SEEN
from onlearn.engine.mixture import MixtureLearner
from onlearn.errors import PlanError
from onlearn.features.feature_map import MATRIX
from onlearn.features.vocabulary import prune_weights
from onlearn.models.calibration import calibrate_by_files
from onlearn.models.far_indices import HashedFar
from onlearn.models.model import Model, as_learner, learn_from, tell_sources
from onlearn.models.plan import MOST, PASSES, Plan, default_passes, takes_more_passes
from onlearn.models.run_reading import Reading, Start, refuse_hashed
from onlearn.models.run_report import RunReport, Watch, is_unfinished
from onlearn.models.threshold_choice import set_threshold
from onlearn.models.train_options import BITS
from onlearn.models.trial import RATES, choose

LESSON = 1 << 16  # examples between two looks at the clock and the keyboard


class Lessons:
    """Learns from examples in portions, between which a run may be watched, saved or stopped.

    ``learned`` counts the examples of this run; the first ``skip`` of them were learned from by its earlier part.
    """

    def __init__(self, model: Model, skip: int = 0) -> None:
        self.model: Model = model
        self.skip: int = skip
        self.learned: int = 0
        self.size: int = LESSON
        self.every: int = 0  # examples between two checkpoints; 0: there are none
        self.next: int = 0  # the number of examples at which the next checkpoint is due
        self.on_lesson: Callable[[int], None] = lambda turn: None  # called after each portion of pass ``turn``
        self.learning: bool = False  # inside compiled code, which Ctrl-C must not leave
        self.stop: bool = False  # when that is over

    def interrupt(self) -> None:
        """Ctrl-C: stop at once, or after the present portion. The second time it is at once."""
        if not self.learning or self.stop:
            raise KeyboardInterrupt
        self.stop = True

    def learn(self, X: Any, y: np.ndarray, weight: Any, order: np.ndarray | None = None, turn: int = 0) -> None:
        """Learn from rows in the given order, or as they are read; those that were learned from before are skipped."""
        read = order is None
        order = np.arange(X.shape[0]) if order is None else order
        skipped = min(max(self.skip - self.learned, 0), len(order))
        self.learned += skipped
        order = order[skipped:]
        while len(order):
            while self.every and self.next <= self.learned:
                self.next += self.every
            size = self._next_size()
            part, order = order[:size], order[size:]
            with self.uninterrupted():
                if read:
                    rows = slice(int(part[0]), int(part[-1]) + 1)
                    some = X if len(part) == X.shape[0] else X.between(rows.start, rows.stop)
                    learn_from(self.model, some, y[rows], None if weight is None else weight[rows])
                else:
                    self.model.learner._learn_rows(X, y, weight, part, first=turn == 0)
                self.learned += len(part)
            self.on_lesson(turn)

    def _next_size(self) -> int:
        """How many examples the next portion has at most; it ends where a checkpoint is due."""
        return min(self.size, self.next - self.learned) if self.every else self.size

    @property
    def checkpoint_due(self) -> bool:
        return bool(self.every) and self.learned >= self.next

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Ctrl-C within is raised at the end."""
        self.learning = True
        yield
        self.learning = False
        if self.stop:
            raise KeyboardInterrupt


class Passes:
    """The passes of a run: how many, which have ended, and the order of the rows in each."""

    def __init__(self, plan: Plan, model: Model, start: Start, lessons: Lessons) -> None:
        self.plan: Plan = plan
        self.model: Model = model
        self.lessons: Lessons = lessons
        self.count: int = plan.passes or 1
        self.wait: bool = start.from_first_row and plan.min_count > 1  # until all rows are read, before learning
        self.ended: int = 0
        self.ended_before: int = start.ended  # in the earlier part of this run
        self.feature_numbers: np.ndarray | None = None  # new ones, once rare features are dropped
        self.label_numbers: np.ndarray | None = None  # new ones, once all labels are known
        self._batches: list[Any] | None = None
        self._kept: np.ndarray | None = None  # the rows kept back for calibration, once all rows are counted
        self._read: int = 0  # rows, as they are learned from while they are read

    def row_store(self) -> Any:
        """Where rows are kept for later passes."""
        return Cache(memory=self.plan.memory)

    def make(self, rows: Any, turn: int) -> None:
        """One pass over the rows that were kept."""
        for X, y, weight, order in self._shuffled(rows, turn):
            self.lessons.learn(X, y, weight, order, turn)
        if turn == self.count - 1 and self._kept is not None:
            self._learn_kept(turn)
        self.end(turn)

    def learn_read(self, X: Any, y: np.ndarray, weight: Any) -> None:
        """Learn from rows as they are read; some are kept back, if there are to be more passes."""
        kept = reserve.while_reading(self._read, self._read + len(y))
        self._read += len(y)
        if self._keeps_back() and kept.any():
            weight = np.where(kept, 0.0, 1.0 if weight is None else weight)
        self.lessons.learn(X, y, weight)

    def end_reading(self, rows: Any) -> None:
        """All rows were read and learned from, but those kept back; of these more than are needed any further."""
        if self._keeps_back():
            self._kept = reserve.in_the_end(self._read, reserve.FEWEST_ROWS)
            done = np.setdiff1d(np.flatnonzero(reserve.while_reading(0, self._read)), self._kept)
            for X, y, weight, order in self._rows_at(self._all_batches(rows), done):
                self.lessons.learn(X, y, weight, order)
        self.end(0)

    def keep_back(self, rows: Any) -> None:
        """Choose the rows to keep back, after all are read and before any is learned from."""
        if self._keeps_back():
            _, codes, weights = zip(*self._all_batches(rows))
            unweighted = any(weight is None for weight in weights)
            joined = None if unweighted else np.concatenate(weights)
            share = self._held_out_share()
            self._kept = reserve.of_rows(np.concatenate(codes), joined, share)
            if share is not None and not len(self._kept):
                raise data.DataError(
                    f"calibration={self.model.learner.choices['calibration']!r} holds rows out, and there is only one "
                    "row to learn from: give more rows at a time"
                )

    def _keeps_back(self) -> bool:
        """Whether rows are kept back for calibration."""
        learner = self.model.learner
        if not isinstance(learner, Learner) or learner.representation is not None:
            return False
        return learner._holds_out() or (self.count > 1 and learner.keeps_back())

    def _held_out_share(self) -> float | None:
        """The share of rows that are never learned from, if calibration asks for such."""
        learner = self.model.learner
        return float(learner.choices["calibration"].fraction) if learner._holds_out() else None

    def _learn_kept(self, turn: int) -> None:
        """Score the rows kept back by the last hypothesis; then learn from them, unless they are held out for good."""
        assert self._kept is not None
        assert self._batches is not None
        learner, lessons = self.model.learner, self.lessons
        parts = list(self._rows_at(self._batches, self._kept))
        if parts and lessons.skip <= lessons.learned:  # else an earlier part of this run has scored them
            scores = np.concatenate([learner._scores(rows_at(X, order)) for X, _, _, order in parts])
            codes = np.concatenate([y[order] for _, y, _, order in parts])
            training, share = learner.training, self._held_out_share()
            if share is not None:
                learner.held_out = HeldOut(learner.task.columns(scores), codes.astype(np.int64), share)
                return
            training.take_reserve(scores, learner.task.targets(codes, training.output))
        for X, y, weight, order in parts:
            lessons.learn(X, y, weight, order, turn)

    def _rows_at(self, batches: list[Any], numbers: np.ndarray) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        """The batches that have rows of these numbers, which rise, and the places of the rows in each."""
        start = 0
        for batch in batches:
            count = len(batch[1])
            first, last = np.searchsorted(numbers, [start, start + count])
            if first < last:
                yield *self._prepared(batch), numbers[first:last] - start
            start += count

    def end(self, turn: int) -> None:
        """Count a pass, unless the earlier part of this run did."""
        learner = self.model.learner
        self.ended += 1
        if self.ended <= self.ended_before:
            return
        learner._end_pass()
        kept = 0 if self._kept is None or turn == self.count - 1 else len(self._kept)
        if kept:
            learner.training.by_pass[-1]["kept_back"] = kept
        if turn == 0 and self.count > 1:
            self.model.trained["first_size"] = learner.training.size()

    def scale_calibration(self) -> None:
        """Scores for calibration are those of the first pass, when weights were smaller: scale them."""
        first = self.model.trained.pop("first_size", 0.0)
        training = self.model.learner.training
        if self.count > 1 and first and not (self._kept is not None and len(self._kept)):
            training.rescale_audit(training.size() / first)

    def _shuffled(self, rows: Any, turn: int) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        """The rows in the order of this pass: batches are shuffled, and rows within each; without those kept back."""
        rng = np.random.default_rng([self.plan.seed, turn])
        batches = self._all_batches(rows)
        starts = np.cumsum([0, *(len(y) for _, y, _ in batches)])
        for place in rng.permutation(len(batches)):
            X, y, weight = self._prepared(batches[place])
            order = rng.permutation(X.shape[0])
            if self._kept is not None and len(self._kept):
                first, last = np.searchsorted(self._kept, starts[place : place + 2])
                here = np.zeros(len(order), dtype=bool)
                here[self._kept[first:last] - starts[place]] = True
                order = order[~here[order]]
            yield X, y, weight, order

    def _all_batches(self, rows: Any) -> list[Any]:
        """The batches that were kept; one, if there is memory for it."""
        if self._batches is None:
            self._batches = list(rows)
            if len(self._batches) > 1 and rows.nbytes <= self.plan.memory:
                self._batches = [_joined(self._batches)]
        return self._batches

    def numbered(self, rows: Any, place: int = 0) -> tuple[Any, Any, Any]:
        """A batch of the rows that were kept, by the final numbers of features and labels."""
        return self._prepared(self._all_batches(rows)[place])

    def _prepared(self, batch: Any) -> tuple[Any, Any, Any]:
        """Rows, classes and weights of a batch, by the numbers that features and labels have in the end."""
        X, y, weight = batch
        width = self.model.features.n_features_out_
        X = X.of_width(width) if self.feature_numbers is None else select(X, self.feature_numbers, width)
        y = y if self.label_numbers is None or self.model.labels is None else self.label_numbers[y]
        return X, y, weight


def _joined(batches: list[Any]) -> Any:
    """One batch of many, so that all rows are shuffled together."""
    rows, labels, weights = zip(*batches)
    return stacked(rows), np.concatenate(labels), None if weights[0] is None else np.concatenate(weights)


class Run:
    """One training run; ``go`` does it. Whatever stops it, ``model`` is what was learned until then.

    Its parts are ``reading``, ``lessons``, ``passes`` and ``report``.
    """

    lessons_type: type[Lessons] = Lessons
    passes_type: type[Passes] = Passes
    reading_type: type[Reading] = Reading

    def __init__(self, plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> None:
        self.plan: Plan = plan
        self.tuning: dict[str, Any] | None = None  # the race that decided about the learner, if there was one
        self.model: Model = Model() if model is None else model
        self.model.learner = as_learner(self.model.learner)
        if model is None:
            self.model.far = HashedFar(plan.bits)
        learner = as_learner(plan.learner) if model is None else self.model.learner
        if plan.prune_weights > 0 and isinstance(learner, MixtureLearner):
            raise PlanError("prune_weights= has no use with a mixture: a feature has weights of several learners")
        if plan.prune_weights > 0 and learner is not None and not learner.is_linear:
            raise PlanError(f"prune_weights= has no use with {learner.name}, which has no weight for each feature")
        start, note = start_of(plan, model)
        self.start: Start = start
        self.report: RunReport = RunReport(plan, self.model, start.ended)
        self.report.notes += [] if note is None else [note]
        self.lessons: Lessons = self.lessons_type(self.model, start.skip)
        self.passes: Passes = self.passes_type(plan, self.model, start, self.lessons)
        self.passes.wait |= learner is not None and (learner.waits or learner.whole or learner._holds_out())
        bad = data.BadRows() if bad is None else bad
        self.reading: Reading = self.reading_type(plan, self.model, bad, self.start, self.passes, self.report)

    def interrupt(self) -> None:
        """Ctrl-C: stop as soon as the model is of a known number of examples."""
        self.lessons.interrupt()

    def go(
        self,
        watch: Watch | None = None,
        checkpoint: Callable[[], None] | None = None,
        every: int = 0,
        on_decided: Callable[[list[str], str], None] | None = None,
    ) -> Model:
        """Learn; ``checkpoint`` is called every so many examples, when the model is fit to be saved.

        ``on_decided`` is called once, before anything is learned, with notes about the data and a
        sentence about the learner.
        """
        self._set_callbacks(watch, checkpoint, every, on_decided)
        passes, lessons = self.passes, self.lessons
        try:
            with passes.row_store() as rows:
                examples = 0
                for X, y, weight in self.reading.examples():
                    examples += len(y)
                    if not passes.wait:
                        passes.learn_read(X, y, weight)
                    if passes.wait or passes.count > 1:
                        rows.append(X, y, weight)
                rows.finish()
                if self.start.from_first_row and self.plan.passes is None:
                    learner, features = self.reading.learner, self.model.features
                    passes.count = default_passes(learner, features, examples, self.reading.values)
                if passes.wait:
                    self._begin_learning(rows)
                    self._try_passes(rows)
                    passes.keep_back(rows)
                else:
                    passes.end_reading(rows)
                for turn in range(0 if passes.wait else 1, passes.count):
                    passes.make(rows, turn)
            self._finish()
        except BaseException:
            self.report.record(self, unfinished=max(lessons.learned, lessons.skip))
            raise
        return self.model

    def _set_callbacks(self, watch: Any, checkpoint: Any, every: int, on_decided: Any) -> None:
        self.report.watch = watch
        self.lessons.every = self.lessons.next = every

        def on_lesson(turn: int) -> None:
            self.report.show_progress(self, turn)
            if checkpoint is not None and self.lessons.checkpoint_due:
                self.report.record(self, unfinished=self.lessons.learned)
                checkpoint()

        def on_start() -> None:
            if on_decided is not None and self.reading.reader is not None:
                on_decided([*self.reading.reader.notes, *self.report.notes], self._learning())

        self.lessons.on_lesson, self.reading.on_start = on_lesson, on_start

    def _learning(self) -> str:
        """A sentence about the learner and the passes, as far as they are known before all rows are read."""
        count, learner = self.passes.count, self.reading.learner
        passes = f"{count} pass{'es' if count > 1 else ''}"
        undecided = self.start.from_first_row and self.plan.passes is None
        if undecided and learner.usual_passes is None and default_passes(learner, self.model.features, 1, 1) > PASSES:
            passes = f"up to {MOST} passes, as rows held out decide"
        task = {"classify": "classification", "regress": "regression", "rank": "pairs of rows"}.get(
            self.plan.task, "several labels a row"
        )
        return f"{task} by {' '.join(repr(learner).split())}, {passes}"

    def _begin_learning(self, rows: Any) -> None:
        """Begin after all rows are read: all labels and features are known."""
        model, numbers = self.model, self.reading.sort_labels()
        self.passes.label_numbers = numbers
        if self.plan.min_count > 1:
            self.passes.feature_numbers = self.reading.drop_rare_features()
        if self.start.fresh:
            model.learner = self.reading.make_learner(self.reading.rows)
            counts = self._class_counts(rows, numbers)
            tell_sources(model)
            if not model.learner.whole:
                model.learner._start(model.features.n_features_out_, counts, model.features.dtype)
        elif model.learner.waits or model.learner._holds_out():
            model.learner._take_in(model.features.n_features_out_, len(model.labels or ()))

    def _class_counts(self, rows: Any, numbers: np.ndarray) -> np.ndarray:
        """The weight of the rows of each class; ``numbers`` are those of labels in the order in which they came."""
        counts = np.zeros(len(self.model.labels or ()))
        for _, y, weight in rows if self.model.labels is not None else ():
            counts += np.bincount(numbers[y], weights=weight, minlength=len(counts))
        return counts

    def _try_passes(self, rows: Any) -> None:
        """Choose the number of passes, and the rate that is the default, by rows held out; see ``trial``.

        A run that is resumed has both from its earlier part.
        """
        plan, model = self.plan, self.model
        if not self.start.fresh:
            return
        assert self.passes.label_numbers is not None
        counts = self._class_counts(rows, self.passes.label_numbers)
        rows_of_pass = partial(self.passes.numbered, rows)
        found = tried(plan, model.learner, model.features, rows_of_pass, counts, self.passes.count)
        if found is None:
            return
        model.learner, passes = found
        plan.passes = self.passes.count = passes  # the plan is stored, for a run that is resumed
        rate = f"the rate {model.learner.choices['geometry'].rate:g} and " if is_free(plan) else ""
        self.report.notes.append(f"{rate}{passes} passes do best on rows held out for a trial")

    def _finish(self) -> None:
        model, report = self.model, self.report
        self.passes.scale_calibration()
        model.learner._finish_run()
        if not model.learner.n_seen_:
            raise data.DataError("every row has weight 0, so nothing was learned")
        if self.plan.calibrate:
            self._calibrate()
        if self.plan.prune_weights > 0:
            report.notes.append(drop_small_weights(model, self.plan.prune_weights))
        if self.start.from_first_row:
            report.warnings += self.reading.namespaces.warnings(model.features)
        note = model.far.note()
        report.notes += [note] if note is not None else []
        if self.start.fresh and note is None and model.features.kind_ == MATRIX and self.plan.bits != BITS:
            report.warnings.append("bits= has no use here: each index has a weight of its own")
        model.before = None
        if self.plan.threshold is not None:
            report.notes.append(set_threshold(model, self.plan, self.reading.held_out_batches))
        report.record(self, unfinished=None)

    def _calibrate(self) -> None:
        """Fit probabilities to the files that are given; where that fails, the model is as it would be without them."""
        try:
            self.report.notes.append(calibrate_by_files(self.model, self.plan.calibrate))
        except (TypeError, ValueError, OSError) as error:
            names = ", ".join(self.plan.calibrate[:3])
            self.report.warnings.append(f"probabilities are not calibrated by {names}: {error}")


def start_of(plan: Plan, model: Model | None) -> tuple[Start, str | None]:
    """How a run starts that may continue a model, and a note about it; the model is made ready.

    A run that continues a model keeps a copy of the features it starts with, to be resumed from if it is stopped.
    """
    if model is None:
        return Start(fresh=True, from_first_row=True), None
    trained, note = model.trained, None
    if is_unfinished(model, plan.sources):
        start = Start(False, model.before is None, int(trained["unfinished"]), int(trained["ended"]))
        given = {"calibrate"} if plan.calibrate else set()
        given |= set() if plan.threshold is None else {"threshold", "positive"}
        for name, value in trained["plan"].items():
            if name not in given:  # these do not change what is learned, so others may be given now
                setattr(plan, name, value)
        if model.before is not None:
            model.features, model.far = copy.deepcopy(model.before)
        return start, f"the model is of an unfinished run; going on after its {start.skip:,} examples"
    if trained.get("unfinished") is not None:
        note = "the model is of an unfinished run over other data, which is not gone on with"
    if model.learner.n_seen_ > model.learner.training.since[SEEN]:
        model.learner._end_pass()  # it was cut short, and would continue in the first pass of this run
    model.learner.held_out = None  # scores by the hypothesis before
    model.before = copy.deepcopy((model.features, model.far))
    return Start(fresh=False, from_first_row=False), note


def is_free(plan: Plan) -> bool:
    """Whether the rate of the learner is the default, which a trial may change."""
    return plan.learner is None and "geometry" not in plan.choices


def tried(
    plan: Plan, learner: Any, features: Any, rows: Callable[[], tuple[Any, Any, Any]], counts: np.ndarray, most: int
) -> tuple[Any, int] | None:
    """The learner with the rate, and the number of passes up to ``most``, that a trial on the rows finds best.

    None if the plan, the learner or few rows leave nothing to try. ``counts`` are those of the labels.
    """
    if plan.passes is not None or not takes_more_passes(learner, features) or most <= PASSES:
        return None
    usual, free = learner.choices["geometry"], is_free(plan)

    def make(rate: float) -> Any:
        changed = {"geometry": f"{usual.name}({rate!r})"} if free else {}
        made = Learner(learner.name, **{**learner.get_params(), **changed})
        made._start(features.n_features_out_, counts, features.dtype)
        return made

    found = choose(make, rows(), usual.rate, most, plan.seed, RATES if free else ())
    if found is None:
        return None
    return (learner if found.rate == usual.rate else make(found.rate)), found.passes


def drop_small_weights(model: Model, size: float) -> str:
    """Drop the features whose weights are at most ``size``; a note about it."""
    before = model.features.n_features_out_
    refuse_hashed(model.features, "prune_weights")
    kept = prune_weights(model.features, model.weights()[0], size)
    if not len(kept):
        raise PlanError(f"no feature weighs more than {size:g}: choose a smaller prune_weights=")
    model.learner.keep_features(kept)
    return f"{before - len(kept):,} of {before:,} features weigh no more than {size:g}: let go"

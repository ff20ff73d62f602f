"""Training runs over files: one pass while the rows are read, further passes over the rows that were kept.

An unfinished run can be resumed. The plan and the seed decide everything about a run, so it is repeated from the start,
but examples that the learner has learned from already are skipped.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from onlearn import data
from onlearn.engine.loops import SEEN
from onlearn.engine.mixture import MixtureLearner
from onlearn.errors import PlanError
from onlearn.features.feature_map import MATRIX
from onlearn.features.vocabulary import prune_weights
from onlearn.models.calibration import calibrate_by_files
from onlearn.models.far_indices import HashedFar
from onlearn.models.model import Model, as_learner
from onlearn.models.passes import Lessons, Passes
from onlearn.models.plan import MOST, PASSES, Plan, default_passes
from onlearn.models.raw_rows import tell_sources
from onlearn.models.run_checks import refuse_hashed
from onlearn.models.run_reading import Reading, Start
from onlearn.models.run_report import RunReport, Watch, is_unfinished
from onlearn.models.threshold_choice import set_threshold
from onlearn.models.train_options import BITS
from onlearn.models.trained_facts import KEPT
from onlearn.models.trial import is_free, tried


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
        start, note = self._starts(plan, model)
        self.start: Start = start
        self.report: RunReport = RunReport(plan, self.model, start.ended)
        self.report.notes += [] if note is None else [note]
        self.lessons: Lessons = self.lessons_type(self.model, start.skip)
        self.passes: Passes = self.passes_type(plan, self.model, start, self.lessons)
        self.passes.wait |= learner is not None and (learner.waits or learner.whole or learner._holds_out())
        bad = data.BadRows() if bad is None else bad
        self.reading: Reading = self.reading_type(plan, self.model, bad, self.start, self.passes, self.report)

    def _starts(self, plan: Plan, model: Model | None) -> tuple[Start, str | None]:
        """How the run starts, and a note about it."""
        return start_of(plan, model)

    def interrupt(self) -> None:
        """Ctrl-C: stop as soon as the model is of a known number of examples."""
        self.lessons.interrupt()

    def facts(self) -> dict[str, Any]:
        """What the report tells of this kind of run."""
        return {} if self.tuning is None else {"tuning": self.tuning}

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
            report.notes.append(set_threshold(model, self.plan, self.reading.add_held_out))
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
        take_plan(plan, trained["plan"])
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


def take_plan(plan: Plan, before: dict[str, Any]) -> None:
    """Take over the plan of an unfinished run; what does not change what is learned may be given anew."""
    given = {"calibrate"} if plan.calibrate else set()
    given |= set() if plan.threshold is None else {"threshold", "positive"}
    for name, value in before.items():
        if name in KEPT and name not in given:
            setattr(plan, name, value)


def drop_small_weights(model: Model, size: float) -> str:
    """Drop the features whose weights are at most ``size``; a note about it."""
    before = model.features.n_features_out_
    refuse_hashed(model.features, "prune_weights")
    kept = prune_weights(model.features, model.weights()[0], size)
    if not len(kept):
        raise PlanError(f"no feature weighs more than {size:g}: choose a smaller prune_weights=")
    model.learner.keep_features(kept)
    return f"{before - len(kept):,} of {before:,} features weigh no more than {size:g}: let go"

"""Training runs of learners that learn from all rows at once: support vector machines, nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn import data
from onlearn.dual.examples import pick
from onlearn.errors import PlanError
from onlearn.kernels.base import ExampleError
from onlearn.models.kernel_run import KernelReading, MemoryRows, as_one_matrix, compares_texts
from onlearn.models.model import Model, as_learner
from onlearn.models.passes import Lessons, Passes
from onlearn.models.plan import Plan
from onlearn.models.raw_rows import tell_sources
from onlearn.models.run import Run
from onlearn.models.run_reading import Reading
from onlearn.models.unfit_rows import unfit


class WholeLessons(Lessons):
    """One lesson, of all rows; the learner looks at ``stop``, and comes to an end by itself."""

    def interrupt(self) -> None:
        if not self.learning:
            raise KeyboardInterrupt
        self.stop = True


class WholePasses(Passes):
    """The one call that learns."""

    reading: KernelReading | None = None  # of rows for a kernel, if there is one

    def row_store(self) -> MemoryRows:
        return MemoryRows(self.plan.memory)

    def make(self, rows: Any, turn: int) -> None:
        learner, batches = self.model.learner, rows.batches
        y = np.concatenate([y for _, y, _ in batches])
        if self.model.labels is not None and self.label_numbers is not None:
            y = self.label_numbers[y]
        weight = None if batches[0][2] is None else np.concatenate([weight for _, _, weight in batches])
        self._refuse_empty_classes(y, weight)
        texts = self.model.compares_texts
        X: Any = [text for some, _, _ in batches for text in some] if texts else self._matrix(batches)
        rows.clear()
        tell_sources(self.model)
        with self.lessons.uninterrupted():
            learner.interrupted = lambda: self.lessons.stop
            try:
                self.lessons.learned += self._learn(X, y, weight)
            finally:
                learner.interrupted = None
            self.end(turn)

    def _learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> int:
        """Learn from the rows, but those that a kernel cannot take; returns how many there were."""
        learner = self.model.learner
        try:
            if learner.training is None:
                learner.fit(X, y, weight)
            else:
                learner.learn_more(X, y, weight, same_rows=bool(self.lessons.skip))
        except ExampleError:  # rows of numbers: texts that do not fit were left out before
            if self.reading is None:
                raise
            refused = unfit(self.reading.kernel, X)
            self.reading.refuse(refused, X)
            fit = np.setdiff1d(np.arange(len(y)), list(refused))
            return self._learn(pick(X, fit), y[fit], None if weight is None else weight[fit])
        return len(y)

    def _matrix(self, batches: list[Any]) -> Any:
        learner = self.model.learner
        before = None if learner.training is None else learner.kept_examples()
        return as_one_matrix(batches, self.model.features.n_features_out_, self.feature_numbers, before)

    def _refuse_empty_classes(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Refuse labels without rows, of which nothing can be learned."""
        if self.model.labels is None or self.model.learner.training is not None:
            return
        counts = np.bincount(y, weights=weight, minlength=len(self.model.labels))
        if not counts.all():
            label = self.model.labels[int(np.argmin(counts))]
            raise data.DataError(f"there is no row of the label {label!r} to learn from")


class WholeRun(Run):
    """A run that reads all rows, and then learns from them at once."""

    lessons_type = WholeLessons
    passes_type = WholePasses
    passes: WholePasses

    def __init__(self, plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> None:
        learner = as_learner(plan.learner) if model is None else as_learner(model.learner)
        kernel = getattr(learner.settings, "kernel", None)
        self.reading_type = Reading if kernel is None else KernelReading
        super().__init__(plan, model, bad)
        if plan.passes is not None and plan.passes > 1:
            raise PlanError(f"passes= has no use with {learner.name}, which learns from all rows at once")
        self.passes.wait = True
        self.passes.reading = self.reading if isinstance(self.reading, KernelReading) else None

    def _begin_learning(self, rows: Any) -> None:
        if isinstance(self.reading, KernelReading) and compares_texts(self.reading.kernel):
            self.reading.leave_out_texts(rows)
        super()._begin_learning(rows)

    def _set_callbacks(self, watch: Any, checkpoint: Any, every: int, on_decided: Any) -> None:
        if every:
            raise PlanError("checkpoint_every= has no use with a learner that learns from all rows at once")
        super()._set_callbacks(watch, checkpoint, every, on_decided)

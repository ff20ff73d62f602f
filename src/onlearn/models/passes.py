"""Passes of a training run over the rows that were kept, and the portions in which examples are learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlearn import data
from onlearn.data.cache import Cache
from onlearn.engine import reserve
from onlearn.engine.calibration import HeldOut
from onlearn.engine.csr import rows_at, select, stacked
from onlearn.engine.learner import Learner
from onlearn.models.model import Model
from onlearn.models.plan import Plan
from onlearn.models.raw_rows import learn_from
from onlearn.models.run_reading import Start

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

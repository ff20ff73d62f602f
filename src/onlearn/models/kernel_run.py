"""Training runs with a kernel: all rows are read before any is learned from, and stay in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onlearn import data, kernels
from onlearn.dual.examples import count, pick
from onlearn.engine.csr import CSR, is_sparse, select, stacked
from onlearn.engine.passes import shuffled
from onlearn.features import FeatureMap, Number
from onlearn.features.feature_map import TABLE, kind_of, strings_of
from onlearn.features.roles import PlanError
from onlearn.features.tables import numbers
from onlearn.kernels.base import Kernel
from onlearn.models.model import Model, as_learner
from onlearn.models.passes import Lessons, Passes
from onlearn.models.plan import Plan
from onlearn.models.run import Run
from onlearn.models.run_reading import Reading
from onlearn.models.unfit_rows import as_bytes, unfit

LESSON = {"vectors": 1024}  # examples between two looks at the clock and the keyboard: they take long
TEXT_LESSON = 256  # where examples are texts
DENSE = 0.25  # the part of non-zero values from which on rows are kept dense: half the memory, twice as fast
TEXT_BYTES = 60  # of a string object besides its characters


def kernel_of(plan: Plan, model: Model) -> Kernel:
    """The kernel of a plan, or of the model that it continues."""
    learner = as_learner(plan.learner) if model.learner is None else model.learner
    return kernels.get(learner.settings.kernel)


def compares_texts(kernel: Kernel) -> bool:
    """Whether a kernel compares texts, so that rows have no features."""
    return kernel.data in ("strings", "trees")


class KernelLessons(Lessons):
    """Portions that neither Ctrl-C nor a checkpoint cuts: to cut one would change how sums are rounded."""

    def interrupt(self) -> None:
        """Ctrl-C: stop at once, or after the present portion, however often it is pressed; that takes a moment."""
        if not self.learning:
            raise KeyboardInterrupt
        self.stop = True

    def _next_size(self) -> int:
        return self.size


class KernelPasses(Passes):
    """Passes over one set of rows, for which the learner keeps current scores."""

    def row_store(self) -> MemoryRows:
        return MemoryRows(self.plan.memory)

    def prepare(self, rows: MemoryRows, skip: int, fresh: bool, refuse: Callable[[dict[int, str], Any], None]) -> None:
        """Hand the rows to the learner; ``rows`` forgets them. ``refuse`` is told of rows that it cannot take."""
        model, learner, batches = self.model, self.model.learner, rows.batches
        if skip and not learner.is_unfinished():
            raise data.DataError(
                "the model is of an unfinished run, but does not say how its rows stood: it was written by an earlier "
                "version, or learned from something else since; train anew"
            )
        y, classifies = np.concatenate([y for _, y, _ in batches]), self.model.labels is not None
        self.y: np.ndarray = self.label_numbers[y] if classifies and self.label_numbers is not None else y
        unweighted = batches[0][2] is None
        self.weight: np.ndarray | None = None if unweighted else np.concatenate([weight for _, _, weight in batches])
        rows.clear()
        if not fresh and not skip:
            count = partial(np.bincount, weights=self.weight, minlength=len(model.labels or ()))
            counts = count(self.y) if classifies else np.zeros(0)
            learner.set_params(epochs=self.count).go_on(self.model.features.n_features_out_, counts)
        texts = [text for X, _, _ in batches for text in X] if self.model.compares_texts else None
        examples = self._matrix(batches) if texts is None else texts
        try:
            self.examples: Any = learner.prepare_rows(examples)
        except kernels.ExampleError:  # rows of numbers: texts that do not fit were left out before
            refused = unfit(learner.kernel, examples)
            refuse(refused, examples)
            fit = np.setdiff1d(np.arange(len(self.y)), list(refused))
            self.y, self.weight = self.y[fit], None if self.weight is None else self.weight[fit]
            self.examples = learner.prepare_rows(pick(examples, fit))
        if not classifies:
            weight = np.ones(len(self.y)) if self.weight is None else self.weight
            self.weight = learner.begin_regression(self.examples.data, self.y, weight)

    def _matrix(self, batches: list[Any]) -> Any:
        before = self.model.learner.kept_examples()  # of a model that is continued
        return as_one_matrix(batches, self.model.features.n_features_out_, self.feature_numbers, before)

    def _shuffled(self, rows: Any, turn: int) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        if turn >= self.examples.passes:  # else an earlier part of the run has begun it
            with self.lessons.uninterrupted():
                self.examples.begin_pass()
        yield self.examples, self.y, self.weight, shuffled(len(self.y), self.plan.seed, turn)


def as_one_matrix(batches: list[Any], width: int, feature_numbers: np.ndarray | None, before: Any) -> Any:
    """All rows as one matrix: dense if most values are not zero, or if the examples from ``before`` are."""
    X = stacked([X for X, _, _ in batches])
    X = X.of_width(width) if feature_numbers is None else select(X, feature_numbers, width)
    dense = X.nnz > DENSE * X.shape[0] * X.shape[1] if before is None else not is_sparse(before)
    return X.toarray() if dense else X.with_sorted_columns()


class KernelReading(Reading):
    """Rows for a kernel: features that suit it, or texts; their places in the files are kept, for messages."""

    def __init__(self, plan: Plan, model: Model, *rest: Any) -> None:
        super().__init__(plan, model, *rest)
        self.kernel: Kernel = kernel_of(plan, model)
        self.places: list[tuple[str, np.ndarray]] = []  # files and lines, until all rows are accepted

    def _features(self, batch: data.Batch) -> tuple[Any, list[str]]:
        rows = batch.parsed
        if compares_texts(self.kernel):
            return strings_of(rows, self.plan.roles, self.kernel)
        features, notes = super()._features(batch)
        if self.kernel.of_bits and "scale" not in self.plan.number and kind_of(rows) == TABLE:
            bits = keep_bits(features, rows)
            note = f"{bits} columns of 0 and 1 are not scaled, for {self.kernel} is about those (--scale changes that)"
            notes = [*notes, note] if bits else notes
        return features, notes

    def _targets(self, batch: data.Batch) -> np.ndarray:
        self.places.append((batch.file, batch.lines))
        return super()._targets(batch)

    def _settings(self, classes: int) -> dict[str, Any]:
        if "epochs" not in self.learner.composition.parameters:
            return {}
        return {"epochs": self.passes.count}  # of fit, should the learner be fitted in Python later

    def _checked(self, X: Any) -> Any:
        return X if compares_texts(self.kernel) else super()._checked(X)

    def place(self, row: int) -> str:
        """The file and the line of a row, for messages."""
        file, line = self.file_and_line(row)
        return f"{file}, line {line}"

    def file_and_line(self, row: int) -> tuple[str, int]:
        """The file and the line of a row."""
        for file, lines in self.places:
            if row < len(lines):
                return file, int(lines[row])
            row -= len(lines)
        raise IndexError(row)

    def leave_out_texts(self, rows: MemoryRows) -> None:
        """Leave out texts that the kernel cannot take, before anything is decided by the labels."""
        texts = [text for X, _, _ in rows.batches for text in X]
        refused = unfit(self.kernel, texts)
        if not refused:
            return
        self.refuse(refused, texts)
        fit, first = np.ones(len(texts), dtype=bool), 0
        fit[list(refused)] = False
        batches = []
        for X, y, weight in rows.batches:
            keep = fit[first : first + len(X)]
            first += len(X)
            some = [text for text, kept in zip(X, keep, strict=True) if kept]
            batches.append((some, y[keep], None if weight is None else weight[keep]))
            if self.model.labels is not None:
                self.label_counts -= np.bincount(y[~keep], minlength=len(self.label_counts))
        rows.batches = batches

    def refuse(self, refused: dict[int, str], examples: Any) -> None:
        """Count rows that the kernel cannot take among the bad ones."""
        if len(refused) == count(examples):
            row, why = next(iter(refused.items()))
            raise data.DataError(f"none of the rows could be used; the first: {self.place(row)}: {why}")
        for row, why in refused.items():
            file, line = self.file_and_line(row)
            self.bad.reject(file, data.Bad(line, 0, why, as_bytes(examples, row)))
        self.rows -= len(refused)
        self.bad.check()
        self.bad.close()


class KernelRun(Run):
    """A run of a learner in the dual, over rows of features or over texts."""

    lessons_type = KernelLessons
    passes_type = KernelPasses
    reading_type = KernelReading
    passes: KernelPasses
    reading: KernelReading

    def __init__(self, plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> None:
        super().__init__(plan, model, bad)
        kernel = self.reading.kernel
        if kernel.data not in ("vectors", "strings", "trees"):
            raise PlanError(f"the kernel {kernel} is not of rows that files can hold: use it from Python")
        if model is None and as_learner(plan.learner)._holds_out():
            raise PlanError("no rows are held out with a kernel: say online in place of holdout", "calibration")
        if plan.prune_weights > 0:
            raise PlanError("prune_weights= has no use with a kernel, whose weights belong to examples")
        if compares_texts(kernel) and plan.min_count > 1:
            raise PlanError(f"min_count= has no use with the kernel {kernel}: there are no features")
        self.passes.wait = True
        self.lessons.size = LESSON.get(kernel.data, TEXT_LESSON)

    def _begin_learning(self, rows: Any) -> None:
        if compares_texts(self.reading.kernel):
            self.reading.leave_out_texts(rows)
        super()._begin_learning(rows)
        self.passes.prepare(rows, self.start.skip, self.start.fresh, self.reading.refuse)
        self.reading.places = []

    def _finish(self) -> None:
        self.model.learner.release_rows()
        super()._finish()


def keep_bits(features: FeatureMap, rows: Any) -> int:
    """Leave columns unscaled that hold only 0 and 1 in these rows; returns how many there are."""

    def of_bits(one: Any) -> bool:
        values = numbers(rows, one.column) if isinstance(one, Number) else np.full(1, np.nan)
        values = values[~np.isnan(values)]
        return bool(values.size) and bool(((values == 0) | (values == 1)).all())

    extractors: Any = features.extractors
    bits = [one for one in extractors if of_bits(one)]
    features.extractors = [replace(one, scale="none") if one in bits else one for one in extractors]
    return len(bits)


class MemoryRows:
    """Batches of rows in memory; more than fit are refused."""

    def __init__(self, memory: int) -> None:
        self.memory: int = memory
        self.nbytes: int = 0
        self.batches: list[Any] = []

    def append(self, X: Any, y: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Add rows, their labels and their weights."""
        self.nbytes += size_of(X)
        if self.nbytes > self.memory:
            raise data.DataError(
                f"the rows take more than {self.memory >> 20} MB, and this learner needs all of them at once: "
                "learn from fewer rows, or with a linear learner"
            )
        self.batches.append((X, y, weight))

    def finish(self) -> None:
        """All rows are here."""

    def clear(self) -> None:
        """Forget the rows."""
        self.batches = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def __enter__(self) -> MemoryRows:
        return self

    def __exit__(self, *exception: object) -> None:
        self.clear()


def size_of(X: Any) -> int:
    """About how many bytes a matrix or a list of strings takes."""
    if isinstance(X, CSR):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return sum(map(len, X)) + TEXT_BYTES * len(X)

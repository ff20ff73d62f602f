"""Training runs with a kernel: all rows are read before any is learned from, and stay in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onlearn import data, kernels
from onlearn.engine.csr import CSR, is_sparse, select, stacked
from onlearn.engine.passes import shuffled
from onlearn.features import FeatureMap, Number
from onlearn.features.feature_map import TABLE, kind_of, strings_of
from onlearn.features.roles import PlanError
from onlearn.features.tables import numbers
from onlearn.kernels.base import Kernel
from onlearn.models.model import Model, as_learner
from onlearn.models.plan import Plan
from onlearn.models.run import Lessons, Passes, Run
from onlearn.models.run_reading import Reading

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

    def prepare(self, rows: MemoryRows, skip: int, fresh: bool) -> None:
        """Hand the rows to the learner; ``rows`` forgets them."""
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
        self.examples: Any = learner.prepare_rows(self._matrix(batches) if texts is None else texts)
        if not classifies:
            weight = np.ones(len(y)) if self.weight is None else self.weight
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

    def _features(self, rows: Any) -> tuple[Any, list[str]]:
        if compares_texts(self.kernel):
            return strings_of(rows, self.plan.roles, self.kernel)
        features, notes = super()._features(rows)
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
        """The file and the line of a row."""
        for file, lines in self.places:
            if row < len(lines):
                return f"{file}, line {lines[row]}"
            row -= len(lines)
        raise IndexError(row)


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
        if plan.prune_weights > 0:
            raise PlanError("prune_weights= has no use with a kernel, whose weights belong to examples")
        if compares_texts(kernel) and plan.min_count > 1:
            raise PlanError(f"min_count= has no use with the kernel {kernel}: there are no features")
        self.passes.wait = True
        self.lessons.size = LESSON.get(kernel.data, TEXT_LESSON)

    def _begin_learning(self, rows: Any) -> None:
        super()._begin_learning(rows)
        try:
            self.passes.prepare(rows, self.start.skip, self.start.fresh)
        except kernels.ExampleError as error:
            raise data.DataError(f"{self.reading.place(error.row)}: {error.why}") from None
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

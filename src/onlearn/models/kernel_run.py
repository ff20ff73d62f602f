"""Learning from files with a kernel: all rows are read before any is learned from, and stay in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from onlearn import data, kernels
from onlearn.engine.csr import CSR, is_sparse, select, stacked
from onlearn.engine.passes import shuffled
from onlearn.features import FeatureMap, Number
from onlearn.features.feature_map import strings_of
from onlearn.features.roles import PlanError
from onlearn.features.tables import numbers
from onlearn.models.model import Model, as_learner
from onlearn.models.plan import Plan
from onlearn.models.run import Run

EVERY = {"vectors": 1024}  # examples between two looks at the clock and the keyboard, for they take long
FEW = 256  # and where examples are texts
DENSE = 0.25  # the part of values that are not zero from which on rows are kept dense: half the memory, twice as fast
TEXT_BYTES = 60  # of a string's own besides its characters


class KernelRun(Run):
    """A run of a learner in the dual, over rows of features or over texts."""

    def __init__(self, plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> None:
        super().__init__(plan, model, bad)
        learner = as_learner(plan.learner if model is None else model.learner)
        self.kernel = kernels.get(learner.settings.kernel)
        self.on_texts = self.kernel.data in ("strings", "trees")
        if self.kernel.data not in ("vectors", "strings", "trees"):
            raise PlanError(f"the kernel {self.kernel} is not of rows that files can hold: use it from Python")
        if plan.task != "classify":
            raise PlanError("a kernel learns to classify, not to predict numbers")
        if plan.prune_weights > 0:
            raise PlanError("prune_weights= has no use with a kernel, whose weights belong to examples")
        if self.on_texts and plan.min_count > 1:
            raise PlanError(f"min_count= has no use with the kernel {self.kernel}: there are no features")
        self.places: list[tuple[str, np.ndarray]] = []  # files and lines of the rows, until all of them are sound
        self.waits = True
        self.lesson = EVERY.get(self.kernel.data, FEW)

    def interrupt(self) -> None:
        """Ctrl-C: what is being learned is learned to its end, however often it is pressed; that takes a moment."""
        if not self.learning:
            raise KeyboardInterrupt
        self.stop = True

    def _rows_kept(self) -> Any:
        return Whole(self.plan.memory)

    def _features(self, rows: Any) -> tuple[Any, list[str]]:
        if self.on_texts:
            return strings_of(rows, self.plan.roles, self.kernel)
        features, notes = super()._features(rows)
        if self.kernel.of_bits and "scale" not in self.plan.number and hasattr(rows, "column_names"):
            bits = keep_bits(features, rows)
            said = f"{bits} columns of 0 and 1 are not scaled, for {self.kernel} is about those (--scale changes that)"
            notes = [*notes, said] if bits else notes
        return features, notes

    def _targets(self, batch: data.Batch) -> np.ndarray:
        self.places.append((batch.file, batch.lines))
        return super()._targets(batch)

    def _settings(self, classes: int) -> dict[str, Any]:
        return {"epochs": self.passes}  # it will have passes of its own, but for those made here

    def _sound(self, X: Any) -> Any:
        return X if self.on_texts else super()._sound(X)

    def _lesson(self) -> int:
        return self.lesson  # a checkpoint waits for its end: to cut it would change how sums are rounded

    def _begin_late(self, cache: Any) -> None:
        super()._begin_late(cache)
        learner = self.model.learner
        if self.skip and not learner.is_unfinished():
            raise data.DataError(
                "the model is of an unfinished run, but does not say how its rows stood: it was written by an earlier "
                "version, or learned from something else since; train anew"
            )
        batches = list(cache)
        self.y = np.concatenate([y for _, y, _ in batches])
        if self.order is not None:
            self.y = self.order[self.y]
        self.weight = None if batches[0][2] is None else np.concatenate([weight for _, _, weight in batches])
        rows = [X for X, _, _ in batches]
        cache.let_go()
        if not self.fresh and not self.skip:
            counts = np.bincount(self.y, weights=self.weight, minlength=len(learner.classes_))
            learner.set_params(epochs=self.passes).go_on(self.model.features.n_features_out_, counts)
        whole = [text for some in rows for text in some] if self.on_texts else self._matrix(batches)
        try:
            self.current_scores = learner.prepare_rows(whole)
        except kernels.ExampleError as error:
            raise data.DataError(f"{self._place(error.row)}: {error.why}") from None
        self.places = []

    def _place(self, row: int) -> str:
        """Where a row stood."""
        for file, lines in self.places:
            if row < len(lines):
                return f"{file}, line {lines[row]}"
            row -= len(lines)
        raise IndexError(row)

    def _matrix(self, batches: list[Any]) -> Any:
        """All rows as one matrix, dense if most values are there."""
        width = self.model.features.n_features_out_
        X = stacked([X for X, _, _ in batches])
        X = X.of_width(width) if self.kept is None else select(X, self.kept, width)
        before = self.model.learner.support_examples_  # of a model that is gone on with
        dense = X.nnz > DENSE * X.shape[0] * X.shape[1] if before is None else not is_sparse(before)
        return X.toarray() if dense else X.with_sorted_columns()

    def _shuffled(self, cache: Any, turn: int) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        if turn >= self.current_scores.passes:  # else it had begun when the run was left off
            self.learning = True
            self.current_scores.begin_pass()
            self.learning = False
            if self.stop:
                raise KeyboardInterrupt
        yield self.current_scores, self.y, self.weight, shuffled(len(self.y), self.plan.seed, turn)

    def _finish(self) -> None:
        self.model.learner.release_rows()
        super()._finish()


def keep_bits(features: FeatureMap, rows: Any) -> int:
    """Take columns of numbers that hold nothing but 0 and 1 in these rows as they are; returns how many there are."""

    def of_bits(one: Any) -> bool:
        values = numbers(rows, one.column) if isinstance(one, Number) else np.full(1, np.nan)
        values = values[~np.isnan(values)]
        return bool(values.size) and bool(((values == 0) | (values == 1)).all())

    extractors: Any = features.extractors
    bits = [one for one in extractors if of_bits(one)]
    features.extractors = [replace(one, scale="none") if one in bits else one for one in extractors]
    return len(bits)


class Whole:
    """Batches of rows in memory; more than fit are refused."""

    def __init__(self, memory: int) -> None:
        self.memory, self.nbytes = memory, 0
        self.batches: list[Any] = []

    def append(self, X: Any, y: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.nbytes += size_of(X)
        if self.nbytes > self.memory:
            raise data.DataError(
                f"the rows take more than {self.memory >> 20} MB, and a kernel needs all of them at once: "
                "learn from fewer rows, or without kernel="
            )
        self.batches.append((X, y, weight))

    def finish(self) -> None:
        """All rows are here."""

    def let_go(self) -> None:
        """They are in other hands now."""
        self.batches = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def __enter__(self) -> Whole:
        return self

    def __exit__(self, *exception: object) -> None:
        self.let_go()


def size_of(X: Any) -> int:
    """Bytes that a matrix or a list of strings takes, about."""
    if isinstance(X, CSR):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return sum(map(len, X)) + TEXT_BYTES * len(X)


# ----------------------------------------------------------------------------------------------------
# The kind of training run that suits a learner.


def run_of(plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> Run:
    """The kind of run that suits the learner of a plan, or of a model to go on with."""
    learner = as_learner(plan.learner if model is None else model.learner)
    if learner is None or "kernel" not in learner.composition.parameters:
        return Run(plan, model, bad)
    if learner.representation == "primal":
        raise PlanError("the model has weights of its kernel's features, which only Python can go on with")
    return KernelRun(plan, model, bad)

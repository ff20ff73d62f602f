"""Ranking: which of two rows of a group comes first, learned from the differences of their features.

Rows come in groups: the documents found for one query, the hotels of one city. Row i of a group is to score above row j
if its relevance is higher; with a linear score w.x that is w.(x_i - x_j) > 0, a binary example without an intercept,
which any rule and geometry learns from (Herbrich, Graepel & Obermayer 2000; RankSVM: Joachims 2002). Every other pair
is turned around, so that both classes come equally often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn.data import BadRows, Batch, DataError
from onlearn.engine.csr import CSR, stacked, summed
from onlearn.engine.learner import Learner
from onlearn.errors import PlanError
from onlearn.models.run import Run
from onlearn.models.run_reading import Examples, Reading, held_out
from onlearn.models.train_options import TrainOptions

RANK = "rank"  # the task
PAIRS = 10  # of each row of a group, at most, on average


class Grouped(NamedTuple):
    """Rows in the order of their file, with relevance, weight and group."""

    X: CSR
    relevance: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray

    def between(self, start: int, stop: int) -> Grouped:
        here = slice(start, stop)
        weight = None if self.weight is None else self.weight[here]
        return Grouped(self.X.between(start, stop), self.relevance[here], weight, self.groups[here])

    def followed_by(self, other: Grouped) -> Grouped:
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = np.concatenate([self.weight, other.weight])
        joined = (np.concatenate(pair) for pair in ((self.relevance, other.relevance), (self.groups, other.groups)))
        relevance, groups = joined
        return Grouped(stacked([self.X, other.X]), relevance, weight, groups)


def pairs_of(relevance: np.ndarray, groups: np.ndarray, seed: int, most: int = PAIRS) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows, the better one first, of neighbouring rows with the same group.

    All pairs of a group with different relevance; of very many, as many as ``most`` times its rows, chosen at random.

    >>> better, worse = pairs_of(np.array([0, 2, 1, 1, 3]), np.array([7, 7, 7, 8, 8]), seed=0)
    >>> list(zip(better.tolist(), worse.tolist()))
    [(1, 0), (1, 2), (2, 0), (4, 3)]
    """
    ends = np.flatnonzero(np.diff(groups)) + 1 if len(groups) else np.zeros(0, dtype=np.int64)
    better, worse = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for start, stop in zip([0, *ends.tolist()], [*ends.tolist(), len(groups)]):
        mine = relevance[start:stop]
        first, second = np.nonzero(mine[:, None] > mine)
        if len(first) > most * len(mine):
            rng = np.random.default_rng([seed, abs(int(groups[start])), len(mine)])
            chosen = np.sort(rng.permutation(len(first))[: most * len(mine)])
            first, second = first[chosen], second[chosen]
        better.append(first + start)
        worse.append(second + start)
    return np.concatenate(better), np.concatenate(worse)


def differences(X: CSR, better: np.ndarray, worse: np.ndarray) -> tuple[CSR, np.ndarray]:
    """x_i - x_j of pairs of rows, and the class 1; of every other pair x_j - x_i, and the class 0.

    >>> X = CSR.of(np.array([[1.0, 2.0], [0.0, 5.0]]))
    >>> D, y = differences(X, np.array([0, 0]), np.array([1, 1]))
    >>> D.toarray().tolist(), y.tolist()
    ([[1.0, -3.0], [-1.0, 3.0]], [1, 0])
    """
    turned = np.arange(len(better)) % 2 == 1
    first, second = np.where(turned, worse, better), np.where(turned, better, worse)
    both = X.take(np.column_stack([first, second]).ravel())  # the rows of a pair one after another
    signs = np.repeat(np.tile([1, -1], len(better)), np.diff(both.indptr)).astype(both.data.dtype)
    made = CSR(both.data * signs, both.indices, both.indptr[::2].copy(), (len(better), X.shape[1]))
    return summed(made), (~turned).astype(np.int64)


class RankReading(Reading):
    """Rows of files as differences of rows of a group; a group that goes on in the next batch is waited for."""

    _groups: np.ndarray
    group_count: int = 0
    row_count: int = 0
    _scattered: bool = False  # whether a group has come again

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ended: set[int] = set()  # groups that were met

    def examples(self) -> Iterator[Examples]:
        held: Grouped | None = None
        for X, y, weight in super().examples():
            rows = Grouped(X, y, weight, self._groups)
            if held is not None:
                held = held._replace(X=held.X.of_width(X.shape[1]))
                rows = held.followed_by(rows)
            ends = np.flatnonzero(np.diff(rows.groups)) + 1
            last = int(ends[-1]) if len(ends) else 0
            held = rows.between(last, len(rows.groups))
            if last:
                yield self._pairs(rows.between(0, last))
        if held is not None:
            yield self._pairs(held)
        if not self.pair_count:
            raise DataError(
                f"none of the {self.row_count:,} rows has another of its group with another relevance next to it, so "
                "there is no order to learn; rows of a group must come one after the other"
            )

    pair_count: int = 0

    def _note_scattered(self, groups: np.ndarray) -> None:
        """Warn if a group comes again after it has ended: its rows are compared in parts only."""
        starts = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))
        met = groups[starts].tolist()
        again = len(set(met)) < len(met) or not self._ended.isdisjoint(met)
        self._ended.update(met)
        if again and not self._scattered:
            self._scattered = True
            self.report.warnings.append(
                "the rows of some groups do not come one after the other, and only rows that do are compared: sort the "
                "rows by group"
            )

    def _pairs(self, rows: Grouped) -> Examples:
        self._note_scattered(rows.groups)
        better, worse = pairs_of(rows.relevance, rows.groups, self.plan.seed)
        X, y = differences(rows.X, better, worse)
        self.pair_count += len(y)
        self.row_count += len(rows.groups)
        self.group_count += 1 + int(np.count_nonzero(np.diff(rows.groups))) if len(rows.groups) else 0
        return X, y, None if rows.weight is None else rows.weight[better] * rows.weight[worse]

    def _targets(self, batch: Batch) -> np.ndarray:
        if batch.groups is None:
            raise DataError(
                f"{batch.file}: the rows have no groups to rank within: svmlight files have qid:N, of tables say group="
            )
        self._groups = batch.groups
        return np.asarray(batch.y, dtype=np.float64)

    def _without_held_out(self, batch: Batch) -> Batch:
        """Count the rows, and leave the groups out that are kept for testing."""
        self.rows += len(batch)
        if not self.plan.holdout or batch.groups is None:
            return batch
        return batch.take(np.flatnonzero(~self._held(batch.groups)))

    def _held(self, groups: np.ndarray) -> np.ndarray:
        """Which rows are of groups that are kept for testing."""
        distinct, places = np.unique(groups, return_inverse=True)
        kept = [held_out(abs(int(group)), 1, self.plan.holdout, self.plan.seed)[0] for group in distinct]
        return np.array(kept, dtype=bool)[places.reshape(-1)]

    def _read_again(self) -> Iterator[tuple[Batch, np.ndarray]]:
        with self.model.read(self.plan.sources, labels="required", bad=BadRows(limit=1.0)) as reader:
            for batch in reader:
                held = np.zeros(len(batch), dtype=bool) if batch.groups is None else self._held(batch.groups)
                yield batch, held

    def choose_learner(self) -> Any:
        """The learner that is given, or one that suits the features."""
        learner = super().choose_learner()
        if type(learner) is not Learner or learner.positive_only:
            raise PlanError(
                f"{learner.name} is not for task={RANK}: differences of rows are learned by linear classifiers of "
                "values of either sign",
                "learner",
            )
        return learner

    def _choose_targets(self, batch: Batch) -> None:
        """Relevance is only compared, so it is neither numbered nor scaled."""

    def make_learner(self, rows: int) -> Any:
        """The learner of differences, which need no intercept."""
        return self.learner.set_params(random_state=self.plan.seed, grow="features", fit_intercept=False)


class RankRun(Run):
    """A run over pairs of rows."""

    reading_type = RankReading
    reading: RankReading

    def _class_counts(self, rows: Any, numbers: np.ndarray) -> np.ndarray:
        counts = np.zeros(2)
        for _, y, weight in rows:
            counts += np.bincount(y, weights=weight, minlength=2)
        return counts

    def _finish(self) -> None:
        super()._finish()
        reading = self.reading
        self.report.notes.append(
            f"{reading.pair_count:,} pairs of {reading.row_count:,} rows in {reading.group_count:,} groups"
        )
        self.model.trained["notes"] = [*self.model.trained["notes"], self.report.notes[-1]]


def check_rank(options: TrainOptions) -> None:
    """Refuse options that have no use for ranking."""
    for name in ("multiclass", "class_weight", "classes", "per_class", "min_count", "kernel", "threshold", "positive"):
        if options.is_given(name):
            raise PlanError(f"{name}= has no use with task={RANK}")

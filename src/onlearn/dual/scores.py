"""How the examples of a data set stand with a hypothesis in the dual: their scores, kept up to date by block.

The sum of an example, over the support examples, of weight times kernel value changes only with the weights. So it is
kept, and a block of examples that is about to be learned from gets only what changed since it was last looked at: in
the first pass that is every support example so far, later on few. So kernel values are needed again only with the
support examples that were learned from in several passes; from three passes on they are kept, as far as the memory
given goes. The others are computed again when their weight changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn.dual.supports import Supports
from onlearn.dual.value_cache import Cache, add_by_group, add_products, put
from onlearn.engine.csr import as_rows
from onlearn.engine.scoring import linear_scores, voted_scores

VALUES = 1 << 22  # kernel values that are computed at a time when a pass begins, about
FEWEST, MOST = 64, 8192  # rows they are of
AMOUNTS = 1 << 22  # changes of weights, one for each place in the log, that kept values are multiplied by at a time
FEW = 512  # support examples that are gathered to be multiplied at once
NONE = np.empty(0, dtype=np.int64)


class Examples:
    """A data set as it was given, and as the kernel wants to see it."""

    def __init__(self, raw: Any, points: Any, width: int) -> None:
        self.raw, self.points = raw, points
        self.shape, self.dtype = (len(points), width), np.dtype(points.dtype)


class Standing:
    """The sums of all examples of a data set, and what is needed to keep them up to date."""

    def __init__(self, data: Examples, supports: Supports, weights: np.ndarray, cache_bytes: int) -> None:
        rows, outputs = data.shape[0], weights.shape[1]
        self.data, self.supports, self.outputs = data, supports, outputs
        with np.errstate(over="ignore"):
            self.lengths = supports.kernel.diagonal(data.points)
        # no kernel value is larger than the largest of these: better now than in the middle of a pass
        large = ~(np.abs(self.lengths) < np.finfo(data.dtype).max / 2)
        if large.any():
            raise OverflowError(
                f"{supports.kernel} of row {int(np.argmax(large))} with itself is too large for {data.dtype}: "
                f"{supports.kernel.remedy()}"
            )
        self.sums = np.zeros((rows, outputs))
        self.place = np.full(rows, -1, dtype=np.int64)  # of each example among the support examples
        self.log = Log(weights)
        self.at = np.zeros(rows, dtype=np.int64)  # of each example the place in the log up to which its sums go
        self.cache = Cache(rows, cache_bytes // max(1, rows * data.dtype.itemsize), data.dtype)
        self.passes = 0  # that have begun
        self.begun, self.settled = 0, 0  # how long the log was when this pass began, and how many supports there were
        self.again = NONE  # support examples that were learned from in a pass after that of their first step
        self.scratch = self.lines = np.empty(0, dtype=data.dtype)

    def recognise(self) -> None:
        """Look which rows are support examples already."""
        self.place = self.supports.places(self.data)

    def begin_pass(self) -> None:
        """Make ready for another pass; keep the values of support examples that were learned from in three passes.

        Most are learned from again but once, and keeping a value takes about as long as computing it.
        """
        self.passes += 1
        if self.passes == 1:
            return
        changed = np.unique(self.log.at[self.begun : self.log.count] // self.outputs)
        older = changed[changed < self.settled]
        coming = self.cache.admit(np.intersect1d(older, self.again))
        self.again = np.union1d(older, self.again)
        places, group = self._groups(np.arange(len(self.at)))
        some = max(1, AMOUNTS // (len(changed) * self.outputs + 1))
        for first in range(0, len(places), some):
            self._add_kept(np.flatnonzero((group >= first) & (group < first + some)))
        short = np.uint16 if len(places) < 1 << 16 else np.int64  # which NumPy sorts much faster
        rows = np.argsort(group.astype(short), kind="stable")  # so those of a run lack about the same
        while len(rows):
            size = int(np.clip(VALUES // (len(changed) + 1), FEWEST, MOST))
            self._add_computed(rows[:size], self.data.points.take(rows[:size]), *coming)
            rows = rows[size:]
        self.cache.keep(*coming)
        self.log.forget(self.log.count)
        self.at[:] = 0
        self.begun, self.settled = 0, len(self.supports)

    def pending(self) -> int:
        """With how many support examples, at most, kernel values of an example are wanting."""
        return min(len(self.supports), self.log.count - int(self.at.min()))

    def update(self, rows: np.ndarray, points: Any) -> np.ndarray:
        """Bring the sums of some rows up to date.

        Returns their values with the support examples that matter for that (in a first pass: all), until the next call.
        """
        self._add_kept(rows)
        values = self._add_computed(rows, points)
        self.at[rows] = self.log.count
        return values

    def _add_kept(self, rows: np.ndarray) -> None:
        """Add to the sums of some rows what they lack of support examples whose values are kept."""
        if len(self.cache):
            group, support, change = self._lacking(rows)
            kept = self.cache.holds(support)
            self.cache.add(self.sums, rows, group, support[kept], change[:, kept])

    def _add_computed(self, rows: np.ndarray, points: Any, coming: Any = NONE, lines: Any = None) -> np.ndarray:
        """Add what they lack of the others, whose values are computed, and returned.

        Values with the support examples that are ``coming`` into the cache are computed as well, and go into its lines.
        """
        group, support, change = self._lacking(rows)
        other = ~self.cache.holds(support)
        support, change = support[other], change[:, other]
        columns = np.union1d(support, coming)
        if len(columns) > len(support):
            among = np.zeros((len(change), len(columns), self.outputs))
            among[:, np.searchsorted(columns, support)] = change
            change = among
        values = self._values(points, columns)
        if len(coming):
            put(lines, rows, values, np.searchsorted(columns, coming))
        if len(change) == 1:
            add_products(self.sums, rows, values, change[0])
        elif len(columns):
            add_by_group(self.sums, rows, values, change, group)
        return values

    def _lacking(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows in groups that lack the same; with which support examples; how these changed, for each group."""
        places, group = self._groups(rows)
        return group, *self.log.since(places, len(self.supports), self.outputs)

    def _groups(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places in the log up to which the sums of some rows go, in rising order, and which of them is each row's.

        What ``np.unique`` would find by sorting.
        """
        at = self.at[rows]
        there = np.zeros(self.log.count + 1, dtype=bool)
        there[at] = True
        return np.flatnonzero(there), (np.cumsum(there) - 1)[at]

    def _values(self, points: Any, columns: np.ndarray) -> np.ndarray:
        """Kernel values of some rows with some support examples, given in rising order."""
        count, size = len(self.supports), len(points) * len(columns)
        if self.scratch.size < size:  # used again and again, for fresh memory is slow
            self.scratch = np.empty(size * 3 // 2, dtype=self.data.dtype)
        values = self.scratch[:size].reshape(len(points), len(columns))
        # the newest ones are there without a gap; but few are better all computed at once
        old = int(np.searchsorted(columns - np.arange(len(columns)), count - len(columns)))
        if old and len(columns) <= FEW:
            old = len(columns)
        if old < len(columns):
            self.supports.products(points, int(columns[old]), values[:, old:], safe=True)
        if old:
            self.supports.kernel.block(points, self.supports.take(columns[:old]), values[:, :old], safe=True)
        return values

    def columns(self, rows: np.ndarray, points: Any, which: np.ndarray, start: int, there: int) -> Any:
        """Kernel values of a block's rows from ``start`` on with some of them (``which``), a line for each of those.

        They follow the lines that are ``there``. Returns whose the new lines are, in their order, and all lines, flat;
        these last until the next block.
        """
        size, after = len(rows), there + len(which)
        if len(self.lines) < after * size:  # used again and again, for fresh memory is slow
            more = np.empty(after * size * 3 // 2, dtype=self.data.dtype)
            more[: there * size] = self.lines[: there * size]
            self.lines = more
        held = self.cache.holds(self.place[rows[which]])
        some, kept = which[~held], which[held]
        new = self.lines[there * size : after * size].reshape(-1, size)[:, start:]
        if len(some):
            rest = points.take(slice(start, None))
            self.supports.kernel.block(points.take(some), rest, new[: len(some)], safe=True)
        if len(kept):
            self.cache.copy_lines(rows[start:], self.place[rows[kept]], new[len(some) :])
        return np.concatenate([some, kept]), self.lines

    def leave(self, rows: np.ndarray, sums: np.ndarray, fresh: np.ndarray, changes: Any, upto: np.ndarray) -> None:
        """Take down what a block came to: its sums and up to where they go, its new support examples, what changed."""
        self.sums[rows] = sums
        self.place[rows[fresh]] = len(self.supports) - len(fresh) + np.arange(len(fresh))
        self.at[rows] = self.log.count + upto
        self.log.add(*changes)

    # ------------------------------------------------------------------ saving

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All but the data and what follows from them, as plain facts and arrays; sums as they were rounded."""
        facts = {"passes": self.passes, "begun": self.begun, "settled": self.settled}
        arrays = {
            "sums": self.sums,
            "place": self.place,
            "at": self.at,
            "again": self.again,
            "log.at": self.log.at[: self.log.count],
            "log.change": self.log.change[: self.log.count],
        }
        for n, (supports, lines) in enumerate(self.cache.tables):
            arrays.update({f"kept.{n}": supports, f"kept.lines.{n}": lines})
        return facts, arrays

    def restore(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take in what ``pack`` put out; the support examples are those of then already."""
        rows, outputs, count = len(self.place), self.outputs, len(arrays["log.at"])
        again = arrays.get("again", NONE)  # which files of earlier versions lack
        if (
            arrays["sums"].shape != (rows, outputs)
            or arrays["place"].shape != (rows,)
            or arrays["at"].shape != (rows,)
            or arrays["log.change"].shape != (count,)
            or not _within(arrays["place"], -1, len(self.supports))
            or not _within(arrays["at"], 0, count + 1)
            or not _within(again, 0, len(self.supports))
            or not _within(arrays["log.at"], 0, len(self.supports) * outputs)
        ):
            raise ValueError("what is stored of the rows' sums does not go with the rows")
        self.sums, self.place, self.at, self.again = arrays["sums"], arrays["place"], arrays["at"], again
        self.log.at, self.log.change, self.log.count = arrays["log.at"], arrays["log.change"], count
        count = sum(key.startswith("kept.lines.") for key in arrays)
        tables = [(arrays[f"kept.{n}"], arrays[f"kept.lines.{n}"]) for n in range(count)]
        for supports, lines in tables:
            if (
                not _within(supports, 0, len(self.supports))
                or not (np.diff(supports) > 0).all()
                or lines.shape != (len(supports), rows)
                or lines.dtype != self.data.dtype
            ):
                raise ValueError("the stored kernel values do not go with the rows")
        self.cache.tables = tables
        self.passes, self.begun, self.settled = (int(facts[name]) for name in ("passes", "begun", "settled"))

    def restate(self, factor: float) -> None:
        """The stored weights were multiplied by a factor."""
        self.sums *= factor
        self.log.change[: self.log.count] *= factor


def _within(numbers: np.ndarray, low: int, high: int) -> bool:
    return numbers.dtype == np.int64 and bool(((numbers >= low) & (numbers < high)).all())


class Log:
    """What changed, in its order: which weight (counted from the first support example's), and by how much."""

    def __init__(self, weights: np.ndarray) -> None:
        flat = weights.reshape(-1)
        self.at = np.flatnonzero(flat)
        self.change = flat[self.at].astype(np.float64)
        self.count = len(self.at)

    def add(self, at: np.ndarray, change: np.ndarray) -> None:
        if self.count + len(at) > len(self.at):
            more = max(len(at), len(self.at))
            self.at = np.concatenate([self.at[: self.count], np.zeros(more, dtype=np.int64)])
            self.change = np.concatenate([self.change[: self.count], np.zeros(more)])
        self.at[self.count : self.count + len(at)] = at
        self.change[self.count : self.count + len(at)] = change
        self.count += len(at)

    def since(self, places: np.ndarray, supports: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Which support examples changed since the first of the places (in rising order), and the sum of the changes

        since each of them: places x support examples x outputs.
        """
        touched = np.zeros(supports, dtype=bool)
        touched[self.at[places[0] : self.count] // outputs] = True
        support = np.flatnonzero(touched)
        compact = np.cumsum(touched) - 1
        change = np.zeros((len(places), len(support) * outputs))
        ends = [*places[1:], self.count]
        for n in range(len(places) - 1, -1, -1):
            at = self.at[places[n] : ends[n]]
            cell = compact[at // outputs] * outputs + at % outputs
            change[n] = np.bincount(cell, weights=self.change[places[n] : ends[n]], minlength=change.shape[1])
            if n + 1 < len(places):
                change[n] += change[n + 1]
        return support, change.reshape(len(places), len(support), outputs)

    def forget(self, count: int) -> int:
        """Drop the first entries; returns how many."""
        self.at, self.change = self.at[count : self.count], self.change[count : self.count]
        self.count -= count
        return count


# ----------------------------------------------------------------------------------------------------
# Scores of many examples by a hypothesis in the dual.


VALUES = 1 << 22  # kernel values computed at a time


def dual_scores(training: Any, points: Any) -> np.ndarray:
    """One line of scores an example."""
    if not training.stabilizer.every_hypothesis:
        return staged_scores(training, points, [training.weights()])[0]
    supports = training.supports
    out = np.empty((len(points), training.outputs))
    for rows, values in tiles(supports, points):
        line = as_rows(np.ascontiguousarray(values), training.bias)
        out[rows] = voted_scores(line, len(values), training.theta, training.st, training.outputs)
    return out


def staged_scores(training: Any, points: Any, stages: list[np.ndarray]) -> list[np.ndarray]:
    """The scores by each of several hypotheses, given as weights of the constant feature and the support examples."""
    supports, outputs = training.supports, training.outputs
    weights = np.zeros((len(supports), len(stages) * outputs))
    for n, stage in enumerate(stages):
        weights[: len(stage) - 1, n * outputs : (n + 1) * outputs] = stage[1:]
    out = np.zeros((len(points), weights.shape[1]))
    merged = supports.kernel.merged(supports.every(), weights) if len(supports) else None
    if merged is not None:
        out += merged.scores(points)
    elif len(supports):
        for rows, values in tiles(supports, points):
            # in double precision, for large terms may cancel
            out[rows] = linear_scores(values.astype(np.float64, copy=False), weights, np.zeros(weights.shape[1]))[0]
    return [
        out[:, n * outputs : (n + 1) * outputs] + (stage[0] * training.bias - training.theta)
        for n, stage in enumerate(stages)
    ]


def tiles(supports: Any, points: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Kernel values of all points with the support examples, a range of points at a time."""
    size = max(1, VALUES // (len(supports) + 1))
    for start in range(0, len(points), size):
        rows = slice(start, start + size)
        yield rows, supports.products(points.take(rows))

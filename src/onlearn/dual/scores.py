"""Scores of examples by a hypothesis in the dual: kept current while learning, or computed for prediction.

The sum of an example, sum over support examples s of w_s k(s, x), changes only when weights change. ``CurrentScores``
keeps the sums of all examples of a data set and a log of all changes of weights. A block of examples that is about to
be learned from gets only the changes since its last update: in a first pass every support example so far, later few of
them. So kernel values are needed again only for support examples on which steps were made in several passes. From the
third such pass on they are cached, as far as the memory given allows; the others are computed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn.dual.examples import Examples
from onlearn.dual.supports import SupportSet
from onlearn.dual.value_cache import ValueCache, add_by_group, add_products, fill_columns
from onlearn.dual.votes import exact_votes
from onlearn.engine.scoring import linear_scores
from onlearn.model_schema import COUNT, Arrays, Record, check_facts

VALUES = 1 << 22  # kernel values computed at a time, about
FEWEST, MOST = 64, 8192  # rows whose values are computed at a time when a pass begins
AMOUNTS = 1 << 22  # changes of weights, one for each log position, that cached values are multiplied by at a time
FEW = 512  # support examples up to which it pays to gather them and compute all their values at once
EXAMPLES = 256  # by which the cost of a kernel value is judged
COSTLY = 192  # multiplications from which on it is cached (benchmarks/kernel_passes.py)
NONE = np.empty(0, dtype=np.int64)


class CurrentScores:
    """The sums of all examples of a data set, and what is needed to keep them current."""

    data: Examples
    supports: SupportSet
    outputs: Any
    sums: np.ndarray
    support_of: np.ndarray
    position: np.ndarray
    pass_start: int
    supports_before: int
    repeated: np.ndarray

    def __init__(self, data: Examples, supports: SupportSet, weights: np.ndarray, cache_bytes: int) -> None:
        rows, outputs = data.shape[0], weights.shape[1]
        self.data, self.supports, self.outputs = data, supports, outputs
        self.diagonal: Any = check_lengths(supports.kernel, data)
        self.sums = np.zeros((rows, outputs))
        self.support_of = np.full(rows, -1, dtype=np.int64)  # number of each example among the support examples, or -1
        self.log: Log = Log(weights)
        self.position = np.zeros(rows, dtype=np.int64)  # length of the log that the sums of each example include
        lines = cache_bytes // max(1, rows * data.dtype.itemsize) if is_costly(supports.kernel, data.points) else 0
        self.cache: ValueCache = ValueCache(rows, lines, data.dtype)
        self.passes = 0  # that have begun
        self.pass_start = 0  # length of the log when this pass began
        self.supports_before = 0  # number of support examples when this pass began
        self.repeated = NONE  # support examples on which a step was made in a pass after that of their first step
        self.updated = np.empty((0, 0), dtype=data.dtype)  # kernel values that the last update computed
        self.values_buffer = self.column_buffer = np.empty(0, dtype=data.dtype)  # reused, for new memory is slow

    def find_supports(self) -> None:
        """Find the rows that are support examples already."""
        self.support_of = self.supports.match(self.data)

    def begin_pass(self) -> None:
        """Count a pass; before all but the first, bring all sums up to date."""
        self.passes += 1
        if self.passes > 1:
            self.settle()

    def settle(self) -> None:
        """Bring all sums up to date, and cache the values of support examples on which three passes made steps.

        On most support examples steps are made in at most two passes, and storing a value takes about as long as
        computing it.
        """
        if not self.log.count:
            self.supports_before = len(self.supports)
            return
        changed = np.unique(self.log.weights[self.pass_start : self.log.count] // self.outputs)
        older = changed[changed < self.supports_before]
        new = self.cache.allocate(np.intersect1d(older, self.repeated))
        self.repeated = np.union1d(older, self.repeated)
        positions, group = self._groups(np.arange(len(self.position)))
        some = max(1, AMOUNTS // (len(changed) * self.outputs + 1))
        for first in range(0, len(positions), some):
            self._add_cached(np.flatnonzero((group >= first) & (group < first + some)))
        small = np.uint16 if len(positions) < 1 << 16 else np.int64  # NumPy sorts 16-bit numbers much faster
        rows = np.argsort(group.astype(small), kind="stable")  # neighbours miss about the same changes
        while len(rows):
            size = int(np.clip(VALUES // (len(changed) + 1), FEWEST, MOST))
            self._add_computed(rows[:size], self.data.points.take(rows[:size]), *new)
            rows = rows[size:]
        self.cache.keep(*new)
        self.log.clear()
        self.position[:] = 0
        self.pass_start, self.supports_before = 0, len(self.supports)

    def pending(self) -> int:
        """The largest number of support examples whose changes the sums of an example may miss."""
        return min(len(self.supports), self.log.count - int(self.position.min()))

    def update(self, rows: np.ndarray, points: Any) -> None:
        """Bring the sums of some rows up to date."""
        self._add_cached(rows)
        self.updated = self._add_computed(rows, points)
        self.position[rows] = self.log.count

    def seen_values(self, rows: np.ndarray, points: Any, which: np.ndarray) -> np.ndarray:
        """Kernel values with the support examples of some rows of the block that was brought up to date."""
        if self.updated.shape[1] == len(self.supports):  # as in a first pass
            return self.updated[which]
        return self.supports.products(points.take(which))

    def _add_cached(self, rows: np.ndarray) -> None:
        """Add to the sums of some rows the changes of support examples whose values are cached."""
        if len(self.cache):
            group, support, change = self._missing_changes(rows)
            cached = self.cache.holds(support)
            self.cache.add(self.sums, rows, group, support[cached], change[:, cached])

    def _add_computed(self, rows: np.ndarray, points: Any, new: np.ndarray = NONE, lines: Any = None) -> np.ndarray:
        """Add the changes of all other support examples, whose kernel values are computed, and returned.

        Values with the ``new`` support examples of the cache are computed as well, and written to its ``lines``.
        """
        group, support, change = self._missing_changes(rows)
        other = ~self.cache.holds(support)
        support, change = support[other], change[:, other]
        columns = np.union1d(support, new)
        if len(columns) > len(support):
            wider = np.zeros((len(change), len(columns), self.outputs))
            wider[:, np.searchsorted(columns, support)] = change
            change = wider
        values = self._values(points, columns)
        if len(new):
            fill_columns(lines, rows, values, np.searchsorted(columns, new))
        if len(change) == 1:
            add_products(self.sums, rows, values, change[0])
        elif len(columns):
            add_by_group(self.sums, rows, values, change, group)
        return values

    def _missing_changes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The changes that the sums of some rows do not include yet.

        Rows that miss the same changes are a group. Returns the group of each row, the support examples that changed,
        and their changes: groups x support examples x outputs.
        """
        positions, group = self._groups(rows)
        return group, *self.log.since(positions, len(self.supports), self.outputs)

    def _groups(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distinct log positions of some rows, in rising order, and the index of each row's position among them.

        The same as ``np.unique`` with its inverse, without sorting.
        """
        position = self.position[rows]
        present = np.zeros(self.log.count + 1, dtype=bool)
        present[position] = True
        return np.flatnonzero(present), (np.cumsum(present) - 1)[position]

    def _values(self, points: Any, columns: np.ndarray) -> np.ndarray:
        """Kernel values of some rows with some support examples, given in rising order."""
        count, size = len(self.supports), len(points) * len(columns)
        if self.values_buffer.size < size:
            self.values_buffer = np.empty(size * 3 // 2, dtype=self.data.dtype)
        values = self.values_buffer[:size].reshape(len(points), len(columns))
        # The newest ones follow each other without a gap, so they need not be gathered.
        old = int(np.searchsorted(columns - np.arange(len(columns)), count - len(columns)))
        if old and len(columns) <= FEW:
            old = len(columns)
        if old < len(columns):
            self.supports.products(points, int(columns[old]), values[:, old:], safe=True)
        if old:
            self.supports.kernel.block(points, self.supports.take(columns[:old]), values[:, :old], safe=True)
        return values

    def columns(self, rows: np.ndarray, points: Any, which: np.ndarray, start: int, there: int) -> Any:
        """Append columns to those of the block: kernel values of its rows from ``start`` on with ``which`` of its rows.

        Returns to which rows the new columns belong, in their order, and all columns, flat; they are valid until the
        next block. The block has ``there`` columns already.
        """
        size, after = len(rows), there + len(which)
        if len(self.column_buffer) < after * size:
            more = np.empty(after * size * 3 // 2, dtype=self.data.dtype)
            more[: there * size] = self.column_buffer[: there * size]
            self.column_buffer = more
        held = self.cache.holds(self.support_of[rows[which]])
        some, cached = which[~held], which[held]
        new = self.column_buffer[there * size : after * size].reshape(-1, size)[:, start:]
        if len(some):
            rest = points.take(slice(start, None))
            self.supports.kernel.block(points.take(some), rest, new[: len(some)], safe=True)
        if len(cached):
            self.cache.copy_lines(rows[start:], self.support_of[rows[cached]], new[len(some) :])
        return np.concatenate([some, cached]), self.column_buffer

    def record_block(
        self, rows: np.ndarray, sums: np.ndarray, fresh: np.ndarray, changes: Any, included: np.ndarray
    ) -> None:
        """Record the outcome of a block.

        It is the sums of its rows, its new support examples, the changes of weights, and how many of these changes the
        sums of each row include.
        """
        self.sums[rows] = sums
        self.support_of[rows[fresh]] = len(self.supports) - len(fresh) + np.arange(len(fresh))
        self.position[rows] = self.log.count + included
        self.log.add(*changes)

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All but the data and what follows from them, as plain facts and arrays; the sums as they are rounded."""
        facts = {"passes": self.passes, "begun": self.pass_start, "settled": self.supports_before}
        arrays = {
            "sums": self.sums,
            "place": self.support_of,
            "at": self.position,
            "again": self.repeated,
            "log.at": self.log.weights[: self.log.count],
            "log.change": self.log.changes[: self.log.count],
        }
        for n, (supports, lines) in enumerate(self.cache.tables):
            arrays.update({f"kept.{n}": supports, f"kept.lines.{n}": lines})
        return facts, arrays

    def restore(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """Restore what ``pack`` described; the support examples must be restored already."""
        check_facts(facts, STANDING, "standing")
        rows, outputs, count = len(self.support_of), self.outputs, len(arrays["log.at"])
        repeated = arrays.get("again", NONE)  # missing in files of earlier versions
        if (
            arrays["sums"].shape != (rows, outputs)
            or arrays["place"].shape != (rows,)
            or arrays["at"].shape != (rows,)
            or arrays["log.change"].shape != (count,)
            or not within(arrays["place"], -1, len(self.supports))
            or not within(arrays["at"], 0, count + 1)
            or not within(repeated, 0, len(self.supports))
            or not within(arrays["log.at"], 0, len(self.supports) * outputs)
            or any(arrays[name].dtype != np.float64 for name in ("sums", "log.change"))
            or facts["begun"] > count
            or facts["settled"] > len(self.supports)
        ):
            raise ValueError("the stored sums do not fit the rows")
        self.sums, self.support_of = arrays["sums"], arrays["place"]
        self.position, self.repeated = arrays["at"], repeated
        self.log.weights, self.log.changes, self.log.count = arrays["log.at"], arrays["log.change"], count
        count = sum(key.startswith("kept.lines.") for key in arrays)
        tables = [(arrays[f"kept.{n}"], arrays[f"kept.lines.{n}"]) for n in range(count)]
        for supports, lines in tables:
            if (
                not within(supports, 0, len(self.supports))
                or not (np.diff(supports) > 0).all()
                or lines.shape != (len(supports), rows)
                or lines.dtype != self.data.dtype
            ):
                raise ValueError("the stored kernel values do not fit the rows")
        self.cache.tables = tables
        self.passes, self.pass_start, self.supports_before = (facts[name] for name in STANDING.facts)

    def rescale(self, factor: float) -> None:
        """Follow the stored weights, which were multiplied by a factor."""
        self.sums *= factor
        self.log.changes[: self.log.count] *= factor


STANDING = Record(passes=COUNT, begun=COUNT, settled=COUNT)


def is_costly(kernel: Any, points: Any) -> bool:
    """Whether a kernel value takes longer to compute again than to keep and to find.

    It follows from the data alone: a measurement might come out differently, and with it how sums are rounded.
    """
    if kernel.data == "matrix":
        return False
    if kernel.data != "vectors":
        return True
    few = points.take(slice(0, EXAMPLES))
    return max(float(view.effort(few[name])) for name, view in few.views.items()) >= COSTLY * len(few) ** 2


def check_lengths(kernel: Any, data: Examples) -> np.ndarray:
    """k(x, x) of all examples; an error if one is too large.

    No kernel value is larger than the largest of these, so overflow is reported now, not in the middle of a pass.
    """
    with np.errstate(over="ignore"):
        lengths = kernel.diagonal(data.points)
    large = ~(np.abs(lengths) < np.finfo(data.dtype).max / 2)
    if large.any():
        raise OverflowError(
            f"{kernel} of row {int(np.argmax(large))} with itself is too large for {data.dtype}: {kernel.remedy()}"
        )
    return np.asarray(lengths)


def within(numbers: np.ndarray, low: int, high: int) -> bool:
    """Whether these are whole numbers from ``low`` up to, but not including, ``high``."""
    return numbers.dtype == np.int64 and bool(((numbers >= low) & (numbers < high)).all())


class Log:
    """Changes of weights in their order: which weight, counted from the first support example's, and by how much."""

    weights: np.ndarray
    changes: np.ndarray
    count: int

    def __init__(self, weights: np.ndarray) -> None:
        flat = weights.reshape(-1)
        self.weights = np.flatnonzero(flat)
        self.changes = flat[self.weights].astype(np.float64)
        self.count = len(self.weights)

    def add(self, weights: np.ndarray, changes: np.ndarray) -> None:
        """Append changes."""
        if self.count + len(weights) > len(self.weights):
            more = max(len(weights), len(self.weights))
            self.weights = np.concatenate([self.weights[: self.count], np.zeros(more, dtype=np.int64)])
            self.changes = np.concatenate([self.changes[: self.count], np.zeros(more)])
        self.weights[self.count : self.count + len(weights)] = weights
        self.changes[self.count : self.count + len(weights)] = changes
        self.count += len(weights)

    def since(self, positions: np.ndarray, supports: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """The support examples that changed since the first of the positions (in rising order), and their changes.

        The changes are summed since each position: positions x support examples x outputs.
        """
        touched = np.zeros(supports, dtype=bool)
        touched[self.weights[positions[0] : self.count] // outputs] = True
        support = np.flatnonzero(touched)
        compact = np.cumsum(touched) - 1
        change = np.zeros((len(positions), len(support) * outputs))
        ends = [*positions[1:], self.count]
        for n in range(len(positions) - 1, -1, -1):
            part = slice(positions[n], ends[n])
            cell = compact[self.weights[part] // outputs] * outputs + self.weights[part] % outputs
            change[n] = np.bincount(cell, weights=self.changes[part], minlength=change.shape[1])
            if n + 1 < len(positions):
                change[n] += change[n + 1]
        return support, change.reshape(len(positions), len(support), outputs)

    def clear(self) -> None:
        """Drop all entries."""
        self.weights, self.changes, self.count = self.weights[:0], self.changes[:0], 0


# Scores for prediction


def dual_scores(training: Any, points: Any) -> np.ndarray:
    """The scores of the examples by the hypothesis of a `DualTraining`, one row an example."""
    if not training.stabilizer.every_hypothesis:
        return staged_scores(training, points, [training.weights()])[0]
    supports = training.supports
    out = np.empty((len(points), training.outputs))
    for rows, values in tiles(supports, points):
        out[rows] = exact_votes(values, training.bias, training.theta, training.st, training.outputs)
    return out


def staged_scores(training: Any, points: Any, stages: list[np.ndarray]) -> list[np.ndarray]:
    """The scores by each of several hypotheses, given as weights of the constant feature and the support examples."""
    supports, outputs = training.supports, training.outputs
    weights = np.zeros((len(supports), len(stages) * outputs))
    for n, stage in enumerate(stages):
        weights[: len(stage) - 1, n * outputs : (n + 1) * outputs] = stage[1:]
    out = np.zeros((len(points), weights.shape[1]))
    merged = supports.kernel.merged(supports.all_points(), weights) if len(supports) else None
    if merged is not None:
        out += merged.scores(points)
    elif len(supports):
        for rows, values in tiles(supports, points):
            # in double precision, because large terms may cancel
            out[rows] = linear_scores(values.astype(np.float64, copy=False), weights, np.zeros(weights.shape[1]))[0]
    return [
        out[:, n * outputs : (n + 1) * outputs] + (stage[0] * training.bias - training.theta)
        for n, stage in enumerate(stages)
    ]


def tiles(supports: SupportSet, points: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Kernel values of all points with the support examples, a range of points at a time."""
    size = max(1, VALUES // (len(supports) + 1))
    for start in range(0, len(points), size):
        rows = slice(start, start + size)
        yield rows, supports.products(points.take(rows))

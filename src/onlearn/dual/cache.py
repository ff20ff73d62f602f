"""Kernel values of all examples with the first support examples, kept for later passes."""

from __future__ import annotations

import numpy as np

from onlearn.predicting import over_rows
from onlearn.weave import Loop

SLAB = 256  # columns: memory is taken in slabs of so many, when they are needed


class Cache:
    """Columns of kernel values, one for each support example that was admitted, up to ``room`` of them.

    Values are put in row by row; ``ready`` says that all rows are in.
    """

    def __init__(self, rows: int, room: int, dtype: np.dtype) -> None:
        self.rows, self.room, self.dtype = rows, room, dtype
        self.slabs: list[np.ndarray] = []
        self.slot = np.full(1, -1)  # of each support example its column, or -1; the last entry is always -1
        self.coming = np.empty(0, dtype=np.int64)
        self.used = 0

    def admit(self, supports: np.ndarray) -> None:
        """Make room for those of the support examples that are not kept yet, as far as there is room."""
        self.coming = supports[~self.holds(supports)][: self.room - self.used]
        while len(self.slabs) * SLAB < self.used + len(self.coming):
            width = min(SLAB, self.room - len(self.slabs) * SLAB)
            self.slabs.append(np.empty((self.rows, width), dtype=self.dtype))

    def put(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Keep the values of some rows with the support examples that are coming in."""
        first, past = self.used, self.used + len(self.coming)
        for n in range(first // SLAB, -(-past // SLAB)):
            left, right = max(first, n * SLAB), min(past, (n + 1) * SLAB)
            part = np.ascontiguousarray(values[:, left - first : right - first])
            slab, at = self.slabs[n], left - n * SLAB
            over_rows(lambda *some, p=part, s=slab, a=at: put_rows(s, rows, a, p, *some), len(rows), part.size)

    def ready(self) -> None:
        """All rows of what was admitted are in."""
        if len(self.coming):
            size = max(len(self.slot), int(self.coming.max()) + 2)
            self.slot = np.concatenate([self.slot, np.full(size - len(self.slot), -1)])
            self.slot[self.coming] = self.used + np.arange(len(self.coming))
            self.used += len(self.coming)
            self.coming = self.coming[:0]

    def holds(self, supports: np.ndarray) -> np.ndarray:
        """Which of the support examples are kept; -1 stands for none."""
        return self.slot[np.minimum(supports, len(self.slot) - 1)] >= 0

    def column(self, rows: np.ndarray, support: int) -> np.ndarray:
        """The kept values of some rows with a support example."""
        n, k = divmod(int(self.slot[support]), SLAB)
        return self.slabs[n][rows, k]


def add_products(sums: np.ndarray, rows: np.ndarray, values: np.ndarray, change: np.ndarray) -> None:
    """sums[rows] += values @ change, in double precision, on all cores."""
    if sums.shape[1] > 1:  # most examples change few outputs
        place, output = np.nonzero(change)
        ends, amounts = np.searchsorted(place, np.arange(len(change) + 1)), change[place, output]
        over_rows(lambda *part: add_many(sums, rows, values, ends, output, amounts, *part), len(rows), values.size)
    else:
        amounts = np.ascontiguousarray(change[:, 0])
        over_rows(lambda *part: add_one(sums, rows, values, amounts, *part), len(rows), values.size)


def add_by_group(sums: np.ndarray, rows: np.ndarray, values: np.ndarray, change: np.ndarray, group: np.ndarray) -> None:
    """The same, with changes of its own for each group of rows."""
    over_rows(lambda *part: add_own(sums, rows, values, change, group, *part), len(rows), change[0].size * len(rows))


@Loop
def put_rows(slab, rows, at, values, start, stop):
    for n in range(start, stop):
        line = slab[rows[n]]
        for k in range(values.shape[1]):
            line[np.uint64(at + k)] = values[n, k]


@Loop
def add_one(sums, rows, values, amounts, start, stop):
    for n in range(start, stop):
        line, s = values[n], 0.0
        for k in range(len(amounts)):
            s += line[k] * amounts[k]
        sums[rows[n], 0] += s


@Loop
def add_many(sums, rows, values, ends, output, amounts, start, stop):
    for n in range(start, stop):
        line, own = values[n], sums[rows[n]]
        for k in range(len(ends) - 1):
            value = line[k]
            for e in range(ends[k], ends[k + 1]):
                own[np.uint64(output[e])] += value * amounts[e]


@Loop
def add_own(sums, rows, values, change, group, start, stop):
    for n in range(start, stop):
        line, own, mine = values[n], sums[rows[n]], change[group[n]]
        for k in range(len(mine)):
            for c in range(mine.shape[1]):
                own[c] += line[k] * mine[k, c]

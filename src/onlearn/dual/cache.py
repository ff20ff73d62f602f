"""Kernel values of all examples with the first support examples, kept for later passes."""

from __future__ import annotations

import numpy as np

from onlearn.predicting import over_rows
from onlearn.weave import Loop


class Cache:
    """Columns of kernel values, one for each support example that was admitted, up to ``room`` of them.

    Values are put in block by block; ``ready`` says that all rows are in. A column lies in one piece: the rows of a
    block, in no order, are then found near each other.
    """

    def __init__(self, rows: int, room: int, dtype: np.dtype) -> None:
        self.rows, self.room, self.dtype = rows, room, dtype
        self.columns: dict[int, np.ndarray] = {}
        self.coming: dict[int, np.ndarray] = {}

    def admit(self, supports: np.ndarray) -> None:
        """Make room for those of the support examples that are not kept yet, as far as there is room."""
        new = [k for k in supports.tolist() if k not in self.columns][: self.room - len(self.columns)]
        self.coming = {k: np.zeros(self.rows, dtype=self.dtype) for k in new}

    def put(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Keep the values of some rows with the support examples that are coming in, a line for each of those."""
        for column, line in zip(self.coming.values(), values):
            column[rows] = line

    def ready(self) -> None:
        """All rows of what was admitted are in."""
        self.columns.update(self.coming)
        self.coming = {}

    def holds(self, supports: np.ndarray) -> np.ndarray:
        """Which of the support examples are kept."""
        return np.array([k in self.columns for k in supports.tolist()], dtype=bool)

    def column(self, rows: np.ndarray, support: int) -> np.ndarray:
        """The kept values of some rows with a support example."""
        return self.columns[support][rows]

    def add(self, sums: np.ndarray, rows: np.ndarray, group: np.ndarray, supports: np.ndarray,
            change: np.ndarray) -> None:  # fmt: skip
        """Add to the sums of some rows what kept values times changes come to; ``change`` as in ``add_by_group``."""
        for n, support in enumerate(supports.tolist()):
            add_column(sums, rows, group, self.columns[support], np.ascontiguousarray(change[:, n]))


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
def add_column(sums, rows, group, column, change):
    for n in range(len(rows)):
        value = column[rows[n]]
        for c in range(change.shape[1]):
            sums[rows[n], c] += value * change[group[n], c]


@Loop
def add_own(sums, rows, values, change, group, start, stop):
    for n in range(start, stop):
        line, own, mine = values[n], sums[rows[n]], change[group[n]]
        if mine.shape[1] == 1:
            s = 0.0
            for k in range(len(mine)):
                s += line[k] * mine[k, 0]
            own[0] += s
        else:
            for k in range(len(mine)):
                for c in range(mine.shape[1]):
                    own[c] += line[k] * mine[k, c]

"""A cache of kernel values of all examples of a data set with some support examples, for later passes.

A support example has one line of values, one for each row of the data set.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onlearn.compiler import prefetch
from onlearn.compiler.inlining import Loop
from onlearn.threads import over_rows

AHEAD = 16  # rows by which values are prefetched


class ValueCache:
    """Lines of kernel values, one for each cached support example, at most ``capacity`` of them.

    Support examples that were added together make a table: their numbers in rising order, and their lines.
    """

    rows: int
    capacity: int
    dtype: np.dtype

    def __init__(self, rows: int, capacity: int, dtype: np.dtype) -> None:
        self.rows, self.capacity, self.dtype = rows, capacity, dtype
        self.tables: list[tuple[np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return sum(len(supports) for supports, _ in self.tables)

    def allocate(self, supports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A table for those of the support examples (in rising order) that are not cached, as far as there is capacity.

        The caller fills its lines, and then calls ``keep``.
        """
        new = supports[~self.holds(supports)][: max(0, self.capacity - len(self))]
        return new, np.empty((len(new), self.rows), self.dtype)

    def keep(self, supports: np.ndarray, lines: np.ndarray) -> None:
        """Add a table to the cache."""
        if len(supports):
            self.tables.append((supports, lines))

    def holds(self, supports: np.ndarray) -> np.ndarray:
        """Which of the support examples are cached."""
        held = np.zeros(len(supports), dtype=bool)
        for which, *_ in self._found(supports):
            held[which] = True
        return held

    def copy_lines(self, rows: np.ndarray, supports: np.ndarray, out: np.ndarray) -> None:
        """Copy the values of some rows with cached support examples to ``out``, a line for each support example."""
        for which, at, lines in self._found(supports):
            for to, line in zip(which, at, strict=True):
                np.take(lines[line], rows, out=out[to], mode="clip")  # "raise" would make a copy

    def add(self, sums: np.ndarray, rows: np.ndarray, group: np.ndarray, supports: np.ndarray,
            change: np.ndarray) -> None:  # fmt: skip
        """Add cached values times changes to the sums of some rows; ``change`` as in ``add_by_group``."""
        for which, at, lines in self._found(supports):
            amounts = np.ascontiguousarray(change[:, which].transpose(1, 2, 0))
            over_rows(
                lambda *part, a=amounts, n=at, v=lines: add_lines(sums, rows, group, v, n, a, *part),
                len(rows),
                len(at) * len(rows),
            )

    def _found(self, supports: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each table that has some of the support examples: which of them, at which lines, and all lines."""
        for known, lines in self.tables:
            at = np.minimum(np.searchsorted(known, supports), len(known) - 1)
            which = np.flatnonzero(known[at] == supports)
            if len(which):
                yield which, at[which], lines


def add_changes(sums: np.ndarray, group: np.ndarray, lines: np.ndarray, at: np.ndarray, change: np.ndarray) -> None:
    """Add some lines times the changes of each group to the sums of all rows; ``change`` as in ``add_by_group``."""
    rows, amounts = np.arange(len(sums)), np.ascontiguousarray(change.transpose(1, 2, 0))
    over_rows(lambda *part: add_lines(sums, rows, group, lines, at, amounts, *part), len(sums), 2 * len(at) * len(sums))


def fill_columns(lines: np.ndarray, rows: np.ndarray, values: np.ndarray, columns: np.ndarray) -> None:
    """Set lines[:, rows] to the transpose of some columns of values, on all cores."""
    over_rows(lambda *part: fill_lines(lines, rows, values, columns, *part), len(rows), len(columns) * len(rows))


def add_products(sums: np.ndarray, rows: np.ndarray, values: np.ndarray, change: np.ndarray) -> None:
    """Add values @ change to sums[rows], in double precision, on all cores."""
    if sums.shape[1] > 1:  # most support examples change few outputs
        support, output = np.nonzero(change)
        ends, amounts = np.searchsorted(support, np.arange(len(change) + 1)), change[support, output]
        over_rows(lambda *part: add_many(sums, rows, values, ends, output, amounts, *part), len(rows), values.size)
    else:
        amounts = np.ascontiguousarray(change[:, 0])
        over_rows(lambda *part: add_one(sums, rows, values, amounts, *part), len(rows), values.size)


def add_by_group(sums: np.ndarray, rows: np.ndarray, values: np.ndarray, change: np.ndarray, group: np.ndarray) -> None:
    """Add values @ change[g] to the sums of the rows of each group g."""
    over_rows(
        lambda *part: add_grouped(sums, rows, values, change, group, *part), len(rows), change[0].size * len(rows)
    )


@Loop
def fill_lines(lines, rows, values, columns, start, stop):
    """Copy columns of values to lines, for a range of rows."""
    for k in range(len(columns)):
        line, column = lines[k], columns[k]
        for n in range(start, stop):
            line[rows[n]] = values[n, column]


@Loop
def add_lines(sums, rows, group, lines, at, amounts, start, stop):
    """Add lines times the amounts of each group, for a range of rows."""
    for k in range(len(at)):
        line = lines[at[k]]
        for c in range(amounts.shape[1]):
            amount, moved = amounts[k, c], False
            for t in amount:
                moved |= t != 0.0
            if moved:
                for n in range(start, stop):
                    if n + AHEAD < stop:
                        prefetch(line, np.uint64(rows[n + AHEAD]))
                    sums[rows[n], c] += line[rows[n]] * amount[group[n]]


@Loop
def add_one(sums, rows, values, amounts, start, stop):
    """Add values times amounts of one output, for a range of rows."""
    for n in range(start, stop):
        line, s = values[n], 0.0
        for k in range(len(amounts)):
            s += line[k] * amounts[k]
        sums[rows[n], 0] += s


@Loop
def add_many(sums, rows, values, ends, output, amounts, start, stop):
    """Add values times amounts of several outputs, of which most are zero, for a range of rows."""
    for n in range(start, stop):
        line, row_sums = values[n], sums[rows[n]]
        for k in range(len(ends) - 1):
            value = line[k]
            for e in range(ends[k], ends[k + 1]):
                row_sums[np.uint64(output[e])] += value * amounts[e]


@Loop
def add_grouped(sums, rows, values, change, group, start, stop):
    """Add values times the changes of each group, for a range of rows."""
    for n in range(start, stop):
        line, row_sums, amount = values[n], sums[rows[n]], change[group[n]]
        if amount.shape[1] == 1:
            s = 0.0
            for k in range(len(amount)):
                s += line[k] * amount[k, 0]
            row_sums[0] += s
        else:
            for k in range(len(amount)):
                for c in range(amount.shape[1]):
                    row_sums[c] += line[k] * amount[k, c]

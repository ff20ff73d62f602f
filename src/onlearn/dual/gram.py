"""Lines of the Gram matrix, each computed once and kept: for data sets whose whole matrix fits the cache.

With the line of an example at hand, the kernel values of all examples with it, a step on it brings the sums of all
examples up to date at once, as in the textbook's kernel perceptron. Nothing is computed again in later passes. Examples
on which no step is made need no line. Lines are computed several together, which is much faster:

- In the first pass, those of the new support examples of each block when it is over. Before that, steps need only the
  values of the rest of the block.
- Later, when few support examples are new, those of the next examples on which the present hypothesis would make a
  step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.dual.examples import Examples
from onlearn.dual.scores import check_lengths, tiles, within
from onlearn.dual.supports import SupportSet
from onlearn.dual.value_cache import add_changes
from onlearn.model_schema import Arrays

TOGETHER = 64  # lines computed at a time, where products of matrices make that faster
FEW = 4  # where each value takes long: of lines computed early, some are never needed
MIRRORED = ("strings", "trees", "any")  # data whose values take so long that k(z, x) is copied from k(x, z)


def fits(rows: int, itemsize: int, cache_bytes: int) -> bool:
    """Whether the Gram matrix of so many examples fits the cache."""
    return rows * rows * itemsize <= cache_bytes


class GramScores:
    """The sums of all examples of a data set, current at all times, and the lines of the Gram matrix made so far."""

    data: Examples
    supports: SupportSet
    outputs: Any
    sums: np.ndarray
    support_of: np.ndarray
    line_of: np.ndarray
    lines: np.ndarray
    passes: int

    def __init__(self, data: Examples, supports: SupportSet, weights: np.ndarray) -> None:
        rows, self.outputs = data.shape[0], weights.shape[1]
        self.data, self.supports = data, supports
        self.diagonal: Any = check_lengths(supports.kernel, data)
        self.sums = np.zeros((rows, self.outputs))
        if weights.any():
            for some, values in tiles(supports, data.points):
                self.sums[some] = values.astype(np.float64, copy=False) @ weights
        self.support_of = np.full(rows, -1, dtype=np.int64)  # number of each example among the support examples, or -1
        self.line_of = np.full(rows, -1, dtype=np.int64)  # line of each example, or -1
        self.lines = np.empty((rows, rows), data.dtype)  # memory is taken when a line is first written to
        self.batches: list[np.ndarray] = []  # the examples whose lines were made together
        self.made = 0  # lines
        self.column_buffer = np.empty(0, dtype=data.dtype)  # reused, for new memory is slow
        self.passes = 0  # that have begun
        self.mirrored: bool = supports.kernel.data in MIRRORED and supports.kernel.always_psd
        self.together: int = FEW if supports.kernel.data in MIRRORED else TOGETHER

    def find_supports(self) -> None:
        """Find the rows that are support examples already."""
        self.support_of = self.supports.match(self.data)

    def begin_pass(self) -> None:
        """Count a pass; all sums are up to date."""
        self.passes += 1

    def settle(self) -> None:
        """Nothing: all sums are up to date."""

    def make_lines(self, rows: np.ndarray) -> None:
        """Compute the lines of some examples that have none."""
        points, kernel, first = self.data.points, self.supports.kernel, self.made
        few, new = points.take(rows), self.lines[first : first + len(rows)]
        known = np.flatnonzero(self.line_of >= 0) if self.mirrored else rows[:0]
        if len(known):
            new[:, known] = self.lines[self.line_of[known][:, None], rows].T
            rest = np.flatnonzero(self.line_of < 0)
            new[:, rest] = kernel.block(few, points.take(rest), safe=True)
        else:
            kernel.block(few, points, new, safe=True)
        self.line_of[rows] = first + np.arange(len(rows))
        self.batches.append(rows)
        self.made += len(rows)

    def values(self, rows: np.ndarray) -> np.ndarray:
        """The kernel values of some rows with all support examples."""
        line = np.full(len(self.supports), -1, dtype=np.int64)
        mine = np.flatnonzero(self.support_of >= 0)
        line[self.support_of[mine]] = self.line_of[mine]
        if (line < 0).any():  # those of earlier data
            return self.supports.products(self.data.points.take(rows))
        return self.lines[line[:, None], rows].T

    # ------------------------------------------------------------------ blocks of the first pass

    def update(self, rows: np.ndarray, points: Any) -> None:
        """Nothing: all sums are up to date."""

    def seen_values(self, rows: np.ndarray, points: Any, which: np.ndarray) -> np.ndarray:
        """Kernel values of some rows of a block with the support examples."""
        return self.values(rows[which])

    def columns(self, rows: np.ndarray, points: Any, which: np.ndarray, start: int, there: int) -> Any:
        """Append columns to those of the block, as ``CurrentScores.columns`` does."""
        size, after = len(rows), there + len(which)
        if len(self.column_buffer) < after * size:
            more = np.empty(after * size * 3 // 2, dtype=self.data.dtype)
            more[: there * size] = self.column_buffer[: there * size]
            self.column_buffer = more
        held = self.line_of[rows[which]] >= 0
        some, known = which[~held], which[held]
        new = self.column_buffer[there * size : after * size].reshape(-1, size)[:, start:]
        if len(some):
            self.supports.kernel.block(points.take(some), points.take(slice(start, None)), new[: len(some)], safe=True)
        for n, row in enumerate(rows[known], len(some)):
            new[n] = self.lines[self.line_of[row]][rows[start:]]
        return np.concatenate([some, known]), self.column_buffer

    def record_block(
        self, rows: np.ndarray, sums: np.ndarray, fresh: np.ndarray, changes: Any, included: np.ndarray
    ) -> None:
        """Record the outcome of a block, as ``CurrentScores.record_block`` does, and bring all sums up to date."""
        first, (changed, amounts) = len(self.supports) - len(fresh), changes
        self.support_of[rows[fresh]] = first + np.arange(len(fresh))
        self.sums[rows] = sums
        support, number = np.unique(changed // self.outputs, return_inverse=True)
        owner = np.zeros(len(self.supports), dtype=np.int64)
        mine = np.flatnonzero(self.support_of >= 0)
        owner[self.support_of[mine]] = mine
        moved = owner[support]
        without = moved[self.line_of[moved] < 0]
        if len(without):
            self.make_lines(without)
        # Rows of the block include some of the changes already, all others none.
        starts, group = np.unique(included, return_inverse=True)
        groups = np.zeros(len(self.sums), dtype=np.int64)
        groups[rows] = 1 + group
        change = np.zeros((1 + len(starts), len(support), self.outputs))
        for n, start in enumerate([0, *starts]):
            np.add.at(change[n], (number[start:], changed[start:] % self.outputs), amounts[start:])
        add_changes(self.sums, groups, self.lines, self.line_of[moved], change)

    def rescale(self, factor: float) -> None:
        """Follow the stored weights, which were multiplied by a factor."""
        self.sums *= factor

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All but the data and what follows from them, as plain facts and arrays; the sums as they are rounded.

        Lines are not stored: computed together again as they were, they are the same to the last bit.
        """
        arrays = {
            "sums": self.sums,
            "place": self.support_of,
            "lines": np.concatenate([np.zeros(0, np.int64), *self.batches]),
            "together": np.array([len(batch) for batch in self.batches], dtype=np.int64),
        }
        return {"passes": self.passes, "form": "gram"}, arrays

    def restore(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """Restore what ``pack`` described; the support examples must be restored already."""
        rows, made, together = len(self.support_of), arrays["lines"], arrays["together"]
        if (
            arrays["sums"].shape != self.sums.shape
            or arrays["sums"].dtype != self.sums.dtype
            or arrays["place"].shape != (rows,)
            or made.ndim != 1
            or together.ndim != 1
            or not within(arrays["place"], -1, len(self.supports))
            or not within(made, 0, rows)
            or not within(together, 1, rows + 1)
            or together.sum() != len(made)
            or len(np.unique(made)) != len(made)
        ):
            raise ValueError("the stored sums do not fit the rows")
        self.sums, self.support_of = arrays["sums"], arrays["place"]
        for batch in np.split(made, np.cumsum(together)[:-1]) if len(together) else []:
            self.make_lines(batch)
        self.passes = facts["passes"]

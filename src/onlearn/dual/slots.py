"""The support examples under a budget: a fixed number of slots, whose contents are replaced in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.dual.budgetrows import ADD, COPY
from onlearn.dual.supports import PIECE, Supports


class Slots(Supports):
    """Support examples in slots; replacing some copies no more than the pieces of ``PIECE`` slots they are in."""

    def __init__(self, kernel: Any, budget: int, raw: Any = None) -> None:
        self.budget = budget
        self.kept: Any = None  # Dense, Sparse or Objects
        super().__init__(kernel, raw)

    def add(self, raw: Any, points: Any) -> None:
        """Take in the first examples."""
        count = len(points)
        if count > self.budget:
            raise ValueError(f"there are {count} support examples, more than the budget of {self.budget} allows")
        log = np.array([[ADD, i, i] for i in range(count)])
        self.replay(raw, points, np.arange(count), log, np.zeros(count), count)

    def examples(self) -> Any:
        return self.kept.examples(self.count) if self.count else None

    def replay(self, raw: Any, points: Any, rows: np.ndarray, log: np.ndarray, share: np.ndarray, count: int) -> None:
        """Do what was done in a block of examples: those in ``rows`` of the data set, or the ``points`` of them.

        ``count`` is how many slots are used then.
        """
        if self.kept is None:
            self.kept = _keep(raw, self.budget + 1)
        came: dict[int, int] = {}  # of each changed slot the example of the block in it; -1: a point that is no example
        for (kind, a, b), h in zip(log.tolist(), share.tolist(), strict=True):
            if kind == ADD:
                self.kept.put(b, raw, rows[a])
                came[b] = a
            elif kind == COPY:
                self.kept.copy(a, b)
                came[b] = came.pop(a)  # the last slot's example came in this block
            else:
                self.kept.mix(a, b, h)
                came[a] = -1
        changed = {slot: i for slot, i in sorted(came.items()) if slot < count}
        if not changed:
            return
        slots, source = np.array(list(changed)), np.array(list(changed.values()))
        fresh = points.take(np.maximum(source, 0))
        mixed = np.flatnonzero(source < 0)
        if len(mixed):
            made = self.kernel.points(self.kept.some(slots[mixed]))
            order = np.arange(len(slots))
            order[mixed] = len(slots) + np.arange(len(mixed))
            fresh = fresh.join([made]).take(order)
        self._replace(slots, fresh, count)

    def _replace(self, slots: np.ndarray, fresh: Any, count: int) -> None:
        """Put points into slots, given in rising order; those beyond the last one used so far follow it closely."""
        pieces, starts = [], []
        for start in range(0, count, PIECE):
            stop = min(start + PIECE, count)
            n = start // PIECE
            mine = np.flatnonzero((slots >= start) & (slots < stop))
            piece = self.pieces[n] if n < len(self.pieces) else None
            if len(mine):
                new = fresh.take(mine)
                order = np.arange(stop - start)
                if piece is None:
                    piece = new
                else:
                    order[slots[mine] - start] = len(piece) + np.arange(len(mine))
                    piece = piece.join([new]).take(order)
            pieces.append(piece)
            starts.append(start)
        self.pieces, self.starts, self.count = pieces, starts, count


class Dense:
    """Rows of numbers, in one array."""

    def __init__(self, raw: Any, size: int) -> None:
        self.size = size
        self.rows = np.zeros((min(size, PIECE), raw.shape[1]), dtype=raw.dtype)

    def put(self, slot: int, raw: Any, row: int) -> None:
        line = raw[row]
        if slot >= len(self.rows):
            more = np.zeros_like(self.rows, shape=(min(self.size, 2 * slot) - len(self.rows), self.rows.shape[1]))
            self.rows = np.concatenate([self.rows, more])
        if line.dtype != self.rows.dtype:
            self.rows = self.rows.astype(np.result_type(line.dtype, self.rows.dtype), copy=False)
        self.rows[slot] = line.toarray().ravel() if sp.issparse(line) else line

    def copy(self, a: int, b: int) -> None:
        self.rows[b] = self.rows[a]

    def mix(self, a: int, b: int, h: float) -> None:
        self.rows[a] = h * self.rows[a] + (1.0 - h) * self.rows[b]

    def some(self, slots: np.ndarray) -> np.ndarray:
        return self.rows[slots]

    def examples(self, count: int) -> np.ndarray:
        return self.rows[:count].copy()


class Objects:
    """Strings, trees and the like, in a list."""

    def __init__(self, raw: Any, size: int) -> None:
        self.rows: list[Any] = [None] * size

    def put(self, slot: int, raw: Any, row: int) -> None:
        self.rows[slot] = raw[int(row)]

    def copy(self, a: int, b: int) -> None:
        self.rows[b] = self.rows[a]

    def examples(self, count: int) -> Any:
        return self.rows[:count]


class Sparse(Objects):
    """Sparse rows: the columns and the values of each; a matrix is made of them when it is asked for."""

    def __init__(self, raw: Any, size: int) -> None:
        super().__init__(raw, size)
        self.width = raw.shape[1]

    def put(self, slot: int, raw: Any, row: int) -> None:
        if sp.issparse(raw):
            part = slice(raw.indptr[row], raw.indptr[row + 1])
            self.rows[slot] = raw.indices[part].copy(), raw.data[part].copy()
        else:
            columns = np.flatnonzero(raw[row])
            self.rows[slot] = columns.astype(np.int32), raw[row, columns]

    def examples(self, count: int) -> sp.csr_matrix:
        indices, data = (np.concatenate([row[n] for row in self.rows[:count]]) for n in range(2))
        ends = np.cumsum([0, *(len(row[0]) for row in self.rows[:count])])
        return sp.csr_matrix((data, indices, ends), shape=(count, self.width))


def _keep(raw: Any, size: int) -> Any:
    kind = Sparse if sp.issparse(raw) else Dense if isinstance(raw, np.ndarray) else Objects
    return kind(raw, size)

"""The support examples: those on which the learner made steps, in the order of their first step.

``SupportSet`` grows without limit. ``SupportSlots`` is for a budget: a fixed number of slots, replaced in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from onlearn.dual.budget_rows import ADD, COPY
from onlearn.dual.examples import Examples, concatenate, count, make_sparse, match_rows, pick
from onlearn.engine.csr import is_sparse, of_width
from onlearn.kernels.formula import pack_data, unpack_rows
from onlearn.kernels.given import by_columns
from onlearn.model_schema import TEXT, TRUTH, Arrays, OrMissing, Record, check_facts

TRIED = 64  # examples whose kernel values must not change when columns are added
PIECE = 512  # examples; adding or replacing some copies no more than the pieces they are in


class SupportSet:
    """A growing list of examples, both as the user passed them in and as the kernel prepares them."""

    count: int

    def __init__(self, kernel: Any, raw: Any = None, points: Any = None) -> None:
        self.kernel = kernel
        self.raw: list[Any] = []
        self.pieces: list[Any] = []
        self.starts: list[int] = []
        self.count = 0
        self.stored_matrix: str | None = None  # in a model file: the digest of the precomputed matrix
        if raw is not None and count(raw):
            self.add(raw, kernel.points(raw) if points is None else points)

    def __len__(self) -> int:
        return self.count

    def add(self, raw: Any, points: Any) -> None:
        """Append examples."""
        if not len(points):
            return
        self.raw.append(raw)
        if self.pieces and len(self.pieces[-1]) < PIECE:
            points = self.pieces.pop().join([points])
            self.count = self.starts.pop()
        for first in range(0, len(points), PIECE):
            piece = points.take(slice(first, first + PIECE)) if len(points) > PIECE else points
            self.pieces.append(piece.lasts())
            self.starts.append(self.count)
            self.count += len(self.pieces[-1])

    def examples(self) -> Any:
        """All of them as the user passed them in; None if there are none."""
        if len(self.raw) > 1:
            self.raw = [concatenate(self.raw)]
        return self.raw[0] if self.raw else None

    def products(self, points: Any, first: int = 0, out: np.ndarray | None = None, safe: bool = False) -> np.ndarray:
        """Kernel values of the points with the support examples from ``first`` on; ``safe`` as in ``Kernel.block``."""
        if out is None:
            out = np.empty((len(points), self.count - first), dtype=points.dtype)
        for start, piece in zip(self.starts, self.pieces, strict=True):
            low, high = max(first, start), start + len(piece)
            if low < high:
                part = piece if low == start else piece.take(slice(low - start, None))
                self.kernel.block(points, part, out[:, low - first : high - first], safe)
        return out

    def take(self, which: np.ndarray) -> Any:
        """Some of them, as points."""
        which = np.asarray(which)
        parts = []
        for start, piece in zip(self.starts, self.pieces, strict=True):
            inside = which[(which >= start) & (which < start + len(piece))]
            if len(inside):
                parts.append(piece.take(inside - start))
        return parts[0].join(parts[1:]) if len(parts) > 1 else parts[0]

    def all_points(self) -> Any:
        """All of them, as points."""
        return self.pieces[0].join(self.pieces[1:])

    def match(self, data: Examples) -> np.ndarray:
        """The number of each row of a data set among them, or -1."""
        if self.kernel.data != "matrix" or not self.count:
            return match_rows(data.raw, self.examples(), self.kernel.data)
        found = np.full(data.shape[0], -1, dtype=np.int64)
        found[self.columns()] = np.arange(self.count)
        return found

    def are_of_width(self, features: int) -> bool:
        """Whether they are rows of so many columns, or examples that have none."""
        if not self.count or self.kernel.data not in ("vectors", "matrix"):
            return True
        if self.kernel.data == "matrix":
            return bool(self.columns().max(initial=-1) < features)
        return all(hasattr(raw, "shape") and raw.shape[1] == features for raw in [self.examples()])

    def of_width(self, features: int) -> SupportSet:
        """The same rows with columns of zeros added, if these leave the kernel's values as they are."""
        examples = self.examples()
        if examples is None:
            return self
        wider, few = of_width(examples, features), np.arange(min(TRIED, self.count))
        if not np.allclose(*(self.kernel(pick(some, few)) for some in (examples, wider))):
            raise ValueError(
                f"the rows have {features - examples.shape[1]} features that the model has not met, and to "
                f"{self.kernel} it matters how many there are that two rows do not have: train anew on all data"
            )
        return self._of(wider)

    def _of(self, raw: Any) -> SupportSet:
        """Other examples in place of these."""
        return SupportSet(self.kernel, raw)

    # ------------------------------------------------------------------ a precomputed matrix

    def columns(self) -> np.ndarray:
        """The columns of the precomputed matrix that they are."""
        return np.concatenate([piece["matrix"].rows for piece in self.pieces])

    def located_in(self, points: Any) -> SupportSet:
        """The same rows of the precomputed matrix in its present form: a model file holds only their numbers."""
        if not self.count:
            return self
        matrix, before, columns = points["matrix"], self.pieces[0]["matrix"].X, self.columns()
        matrix.refuse_new_examples()
        if before.size:
            same = before is matrix.X or np.array_equal(before, matrix.X)
        else:
            same = self.stored_matrix in (None, matrix.digest())  # None: in files of earlier versions
        if not same:
            raise ValueError("precomputed: the training matrix must be the one of before, but its numbers differ")
        located = SupportSet(self.kernel)
        located.add(matrix.X[columns], points.take(columns))
        return located

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of them as plain facts and arrays."""
        if not self.count:
            return {"kind": "none"}, {}
        if self.kernel.data == "matrix":
            if len(self.pieces[0].views) > 1:
                raise ValueError(
                    f"{self.kernel} cannot be saved: it looks at whole rows of a precomputed matrix, and a model file "
                    "holds only which rows the support examples are"
                )
            matrix = self.pieces[0]["matrix"]
            digest = matrix.digest() if matrix.X.size else self.stored_matrix
            return {"kind": "columns", "matrix": digest}, {"columns": self.columns()}
        facts, arrays = pack_data(self.examples())
        # Products of rows with and without their zeros are rounded differently.
        return ({**facts, "thin": True} if self.pieces[0].thin else facts), arrays

    @classmethod
    def unpack(cls, kernel: Any, facts: dict[str, Any], arrays: Arrays) -> SupportSet:
        """The support examples that ``pack`` described."""
        check_facts(facts, SUPPORT, "support")
        if facts["kind"] == "none":
            return cls(kernel)
        if facts["kind"] == "columns":
            self, columns = cls(kernel), arrays["columns"]
            if kernel.data != "matrix" or columns.ndim != 1 or columns.dtype.kind != "i" or (columns < 0).any():
                raise ValueError("the support examples are not columns of a precomputed matrix")
            self.add(np.empty((len(columns), 0)), by_columns(columns))
            self.stored_matrix = facts.get("matrix")
            return self
        raw = unpack_rows(facts, arrays)
        points = kernel.points(raw)
        return cls(kernel, raw, points.thinned(surely=True) if facts.get("thin") else points)


# Facts about examples, in addition to those of ``pack_data``.
SUPPORT = Record(kind=TEXT, matrix=OrMissing(TEXT), thin=OrMissing(TRUTH))


class SupportSlots(SupportSet):
    """Support examples under a budget, in slots."""

    pieces: list[Any]
    starts: list[int]
    count: int

    def __init__(self, kernel: Any, budget: int, raw: Any = None) -> None:
        self.budget = budget
        self.slots: SlotArray | None = None
        super().__init__(kernel, raw)

    def add(self, raw: Any, points: Any) -> None:
        """Fill the first slots."""
        size = len(points)
        if size > self.budget:
            raise ValueError(f"there are {size} support examples, more than the budget of {self.budget} allows")
        log = np.array([[ADD, i, i] for i in range(size)])
        self.apply_log(raw, points, np.arange(size), log, np.zeros(size), size)

    def _of(self, raw: Any) -> SupportSlots:
        return SupportSlots(self.kernel, self.budget, raw)

    def examples(self) -> Any:
        return self.slots.examples(self.count) if self.slots is not None and self.count else None

    def apply_log(self, raw: Any, points: Any, rows: np.ndarray, log: np.ndarray, shares: np.ndarray,
                  used: int) -> None:  # fmt: skip
        """Repeat what the loop logged while it learned from a block: ``rows`` of the data set, with their ``points``.

        ``used`` is the number of slots in use at the end.
        """
        if self.slots is None:
            self.slots = make_slots(raw, self.budget + 1)
        came: dict[int, int] = {}  # the block's example in each changed slot; -1: a blended point, which is no example
        for (kind, a, b), share in zip(log.tolist(), shares.tolist(), strict=True):
            if kind == ADD:
                self.slots.put(b, raw, rows[a])
                came[b] = a
            elif kind == COPY:
                self.slots.copy(a, b)
                came[b] = came.pop(a)  # the last slot's example came in this block
            else:
                self.slots.blend(a, b, share)
                came[a] = -1
        changed = {slot: i for slot, i in sorted(came.items()) if slot < used}
        if not changed:
            return
        which, source = np.array(list(changed)), np.array(list(changed.values()))
        fresh = points.take(np.maximum(source, 0))
        blended = np.flatnonzero(source < 0)
        if len(blended):
            made = self.kernel.points(self.slots.take(which[blended]))
            order = np.arange(len(which))
            order[blended] = len(which) + np.arange(len(blended))
            fresh = fresh.join([made]).take(order)
        self._replace(which, fresh, used)

    def _replace(self, which: np.ndarray, fresh: Any, used: int) -> None:
        """Put points into slots, given in rising order; new slots follow the last one used so far without a gap."""
        pieces, starts = [], []
        for start in range(0, used, PIECE):
            stop = min(start + PIECE, used)
            n = start // PIECE
            inside = np.flatnonzero((which >= start) & (which < stop))
            piece = self.pieces[n] if n < len(self.pieces) else None
            if len(inside):
                new = fresh.take(inside)
                order = np.arange(stop - start)
                if piece is None:
                    piece = new
                else:
                    order[which[inside] - start] = len(piece) + np.arange(len(inside))
                    piece = piece.join([new]).take(order)
            pieces.append(piece)
            starts.append(start)
        self.pieces, self.starts, self.count = pieces, starts, used


class SlotArray(ABC):
    """The examples in the slots, as the user passed them in."""

    rows: Any

    @abstractmethod
    def put(self, slot: int, raw: Any, row: int) -> None:
        """Put a row of a data set into a slot."""

    @abstractmethod
    def examples(self, used: int) -> Any:
        """The examples of the first slots."""

    def copy(self, a: int, b: int) -> None:
        """Copy slot a to slot b."""
        self.rows[b] = self.rows[a]

    def blend(self, a: int, b: int, share: float) -> None:
        """Put the point ``share`` of slot a and the rest of slot b into slot a."""
        raise TypeError("only dense rows can be blended")

    def take(self, which: np.ndarray) -> np.ndarray:
        """The rows in some slots, which may be blended."""
        raise TypeError("only dense rows can be blended")


class DenseSlots(SlotArray):
    """Rows of numbers in one array, which grows as slots are used."""

    def __init__(self, raw: Any, size: int) -> None:
        self.size = size
        self.rows = np.zeros((min(size, PIECE), raw.shape[1]), dtype=raw.dtype)

    def put(self, slot: int, raw: Any, row: int) -> None:
        line = _dense_row(raw, row)
        if slot >= len(self.rows):
            more = np.zeros_like(self.rows, shape=(min(self.size, 2 * slot) - len(self.rows), self.rows.shape[1]))
            self.rows = np.concatenate([self.rows, more])
        if line.dtype != self.rows.dtype:
            self.rows: Any = self.rows.astype(np.result_type(line.dtype, self.rows.dtype), copy=False)
        self.rows[slot] = line

    def blend(self, a: int, b: int, share: float) -> None:
        self.rows[a] = share * self.rows[a] + (1.0 - share) * self.rows[b]

    def take(self, which: np.ndarray) -> np.ndarray:
        return np.asarray(self.rows[which])

    def examples(self, used: int) -> np.ndarray:
        return np.array(self.rows[:used])


class ObjectSlots(SlotArray):
    """Strings, trees and other objects in a list."""

    def __init__(self, raw: Any, size: int) -> None:
        self.rows: Any = [None] * size

    def put(self, slot: int, raw: Any, row: int) -> None:
        self.rows[slot] = raw[int(row)]

    def examples(self, used: int) -> list[Any]:
        return list(self.rows[:used])


class SparseSlots(SlotArray):
    """Sparse rows: the columns and the values of each; ``examples`` makes a matrix of them."""

    def __init__(self, raw: Any, size: int) -> None:
        self.rows: Any = [None] * size
        self.like: Any = pick(raw, np.zeros(0, np.int64))  # of its type, without its rows
        self.width: Any = raw.shape[1]

    def put(self, slot: int, raw: Any, row: int) -> None:
        if is_sparse(raw):
            part = slice(raw.indptr[row], raw.indptr[row + 1])
            self.rows[slot] = raw.indices[part].copy(), raw.data[part].copy()
        else:
            columns = np.flatnonzero(raw[row])
            self.rows[slot] = columns.astype(np.int32), raw[row, columns]

    def examples(self, used: int) -> Any:
        indices, data = (np.concatenate([row[n] for row in self.rows[:used]]) for n in range(2))
        lengths = [len(row[0]) for row in self.rows[:used]]
        return make_sparse(self.like, data, indices, lengths, (used, self.width))


def make_slots(raw: Any, size: int) -> SlotArray:
    """Empty slots for examples such as these."""
    kind = SparseSlots if is_sparse(raw) else DenseSlots if isinstance(raw, np.ndarray) else ObjectSlots
    return kind(raw, size)


def _dense_row(raw: Any, row: int) -> Any:
    """One row of a dense or sparse matrix, dense."""
    if not is_sparse(raw):
        return raw[row]
    dense, part = np.zeros(raw.shape[1], raw.dtype), slice(raw.indptr[row], raw.indptr[row + 1])
    np.add.at(dense, raw.indices[part], raw.data[part])
    return dense

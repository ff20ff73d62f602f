"""The support examples: those on which steps were made, in the order of their first step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.dual.budget_rows import ADD, COPY
from onlearn.kernels import pack_data, unpack_data
from onlearn.kernels.given import by_columns
from onlearn.kernels.pairwise import listed
from onlearn.kernels.products import numeric
from onlearn.kernels.trees import read_tree

# ----------------------------------------------------------------------------------------------------
# Which rows of a data set are support examples already: ``fit`` with ``warm_start`` goes over the same rows again.
#
# They are known by what is in them, however it is stored: numbers by those that are not zero, trees by their nodes,
# other
# things by being equal. Only what Python cannot look up by its contents (a list, say) must be the same object.


AT_ONCE = 1024  # rows whose zeros are left out together: one by one takes long, all at once takes memory
WHOLE = 2**53  # up to here a double holds every whole number


def match_rows(rows: Any, examples: Any, data: str = "any") -> np.ndarray:
    """Of each row its number among the examples, or -1; of several that are equal, each gets one of its own.

    ``data`` is what the kernel takes them for.
    """
    found = np.full(rows.shape[0] if hasattr(rows, "shape") else len(rows), -1, dtype=np.int64)
    if examples is None:
        return found
    free: dict[Any, list[int]] = {}
    for number, key in enumerate(_keys(examples, data)):
        free.setdefault(key, []).append(number)
    for numbers in free.values():
        numbers.reverse()  # the first one is taken from the end
    for row, key in enumerate(_keys(rows, data)):
        if free.get(key):
            found[row] = free[key].pop()
    return found


def _keys(some: Any, data: str) -> Iterable[Any]:
    """Something of each row that is equal where the rows are, and nowhere else."""
    if data == "trees":
        return map(_tree, some)
    if sp.issparse(some) or (isinstance(some, np.ndarray) and some.dtype.kind in "biufc"):
        return _of_numbers(some)
    if isinstance(some, np.ndarray):  # its rows are made when they are looked at, but what is in them stays
        return (tuple(map(_one, row.tolist())) for row in some)
    return map(_one, some)


def _of_numbers(matrix: Any) -> Iterator[tuple[bytes, bytes]]:
    for first in range(0, matrix.shape[0], AT_ONCE):
        row, column, value = _entries(matrix[first : first + AT_ONCE])
        ends = np.searchsorted(row, np.arange(min(AT_ONCE, matrix.shape[0] - first) + 1))
        column, value = column.astype(np.int64), _in_double(value)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            yield column[start:stop].tobytes(), value[start:stop].tobytes()


def _entries(block: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and value of all numbers but zeros, by row and column."""
    if not sp.issparse(block):
        row, column = np.nonzero(block)
        return row, column, block[row, column]
    block = block.tocsr(copy=True)
    block.sum_duplicates()
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    some = block.data != 0
    return row[some], block.indices[some], block.data[some]


def _in_double(values: np.ndarray) -> np.ndarray:
    """In double precision, where that changes nothing: 1 is 1.0."""
    if values.dtype.kind == "c":
        return (values.astype(np.complex128) if values.itemsize <= 16 else values) + 0.0  # no part is -0
    if values.dtype.kind in "iu" and values.itemsize == 8 and ((values > WHOLE) | (values < -WHOLE)).any():
        return values
    return values.astype(np.float64) if values.itemsize <= 8 else values


def _tree(tree: Any) -> Any:
    """The nodes, be the tree text, tuples or lists."""
    nodes = read_tree(tree)
    return tuple(nodes.productions), tuple(map(tuple, nodes.children))


def _one(item: Any) -> Any:
    if isinstance(item, np.ndarray) and item.dtype.kind in "biufc":
        return item.shape, _in_double(item + 0).tobytes()
    try:
        hash(item)
    except TypeError:
        return "the object", id(item)  # which its collection keeps alive
    return item


PIECE = 512  # examples; adding some copies no more than that


class SupportSet:
    """A growing list of examples, both as they were given and as the kernel wants to see them."""

    def __init__(self, kernel: Any, raw: Any = None, points: Any = None) -> None:
        self.kernel = kernel
        self.raw: list[Any] = []
        self.pieces: list[Any] = []
        self.starts: list[int] = []
        self.count = 0
        self.stored_matrix: str | None = None  # of a model file: the digest of the matrix whose rows they are
        if raw is not None and _count(raw):
            self.add(raw, kernel.points(raw) if points is None else points)

    def __len__(self) -> int:
        return self.count

    def add(self, raw: Any, points: Any) -> None:
        """Take in more examples."""
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
        """All of them, as they were given."""
        if len(self.raw) > 1:
            self.raw = [stack(self.raw)]
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
            mine = which[(which >= start) & (which < start + len(piece))]
            if len(mine):
                parts.append(piece.take(mine - start))
        return parts[0].join(parts[1:]) if len(parts) > 1 else parts[0]

    def all_points(self) -> Any:
        """All of them, as points."""
        return self.pieces[0].join(self.pieces[1:])

    def match(self, data: Any) -> np.ndarray:
        """Of each row of a data set its number among them, or -1."""
        if self.kernel.data != "matrix" or not self.count:
            return match_rows(data.raw, self.examples(), self.kernel.data)
        found = np.full(data.shape[0], -1, dtype=np.int64)
        found[self.columns()] = np.arange(self.count)
        return found

    def columns(self) -> np.ndarray:
        """Which columns of a precomputed matrix they are."""
        return np.concatenate([piece["matrix"].rows for piece in self.pieces])

    def located_in(self, points: Any) -> SupportSet:
        """The same rows of the precomputed matrix as it is now: of a model file's they were but numbers."""
        if not self.count:
            return self
        matrix, before, columns = points["matrix"], self.pieces[0]["matrix"].X, self.columns()
        matrix.refuse_new_examples()
        if before.size:
            same = before is matrix.X or np.array_equal(before, matrix.X)
        else:
            same = self.stored_matrix in (None, matrix.digest())  # None: in files of earlier versions
        if not same:
            raise ValueError("precomputed: the training matrix must be what it was, but its numbers differ")
        made = SupportSet(self.kernel)
        made.add(matrix.X[columns], points.take(columns))
        return made

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
        # Products of rows with and without their zeros are not rounded alike.
        return ({**facts, "thin": True} if self.pieces[0].thin else facts), arrays

    @classmethod
    def unpack(cls, kernel: Any, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> SupportSet:
        if facts["kind"] == "none":
            return cls(kernel)
        if facts["kind"] == "columns":
            self, columns = cls(kernel), arrays["columns"]
            if kernel.data != "matrix" or columns.ndim != 1 or columns.dtype.kind != "i" or (columns < 0).any():
                raise ValueError("the support examples are not columns of a precomputed matrix")
            self.add(np.empty((len(columns), 0)), by_columns(columns))
            self.stored_matrix = facts.get("matrix")
            return self
        raw = unpack_data(facts, arrays)
        points = kernel.points(raw)
        return cls(kernel, raw, points.thinned(surely=True) if facts.get("thin") else points)


def check_examples(X: Any, kernel: Any) -> Any:
    """Examples for a kernel that need not be of numbers: a matrix if they are one, else a list."""
    if kernel.data == "any" and len(getattr(X, "shape", ())) == 2:
        table = not sp.issparse(X) and not isinstance(X, np.ndarray)
        raw = numeric(X, kernel) if table else X.tocsr() if sp.issparse(X) else X
    else:
        raw = listed(X, str(kernel), "examples" if kernel.data == "any" else kernel.data)
    if not _count(raw):
        raise ValueError("X is empty: there are no examples to learn from or to predict")
    return raw


def stack(parts: list[Any]) -> Any:
    """Examples of several collections in one: dense or sparse matrices, or lists of objects."""
    if any(sp.issparse(part) for part in parts):
        return sp.vstack([sp.csr_matrix(part) for part in parts], format="csr")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [example for part in parts for example in part]


def pick(raw: Any, rows: np.ndarray) -> Any:
    """Some rows of a matrix or a list."""
    return raw[rows] if isinstance(raw, np.ndarray) or sp.issparse(raw) else [raw[int(i)] for i in rows]


def _count(raw: Any) -> int:
    return int(raw.shape[0]) if hasattr(raw, "shape") else len(raw or [])


# ----------------------------------------------------------------------------------------------------
# The support examples under a budget: a fixed number of slots, whose contents are replaced in place.


class SupportSlots(SupportSet):
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

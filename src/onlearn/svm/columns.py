"""Kernel rows of the examples of a data set, computed in blocks and cached, shared by many problems.

A solver needs three things of the kernel matrix: a square of it for a few examples (``square``), the sum of some of its
rows, each times a number (``Window.add``), and sometimes the rows themselves (``rows``). Rows that were needed are
cached until others need the room. The problems of all classes, of all values of C and of all folds share one cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.kernels.products import Thin, Vectors, in_precision
from onlearn.kernels.sparse_products import transpose
from onlearn.kernels.tiles import fused
from onlearn.threads import over_rows

BLOCK = 128  # rows computed together, at most
BYTES = 1 << 25  # of rows computed together, about
SMALLEST = 1e-30  # k(x, x) that single precision serves; 1 / SMALLEST is the largest
PART = 2048  # sums that stay in the nearest cache while rows are added to them


class KernelColumns:
    """Kernel rows of examples with all examples, by number; the most recently used ones are cached.

    The kernel matrix is symmetric, so its rows are its columns. ``dtype`` is that of the rows, by default that of the
    points. With float32, rows of numbers in double precision are rounded first: that halves time and memory, and
    ``precise`` serves whoever finds it too coarse.
    """

    kernel: Any
    original: Any  # the points as they were given
    points: Any  # the same in the precision of the rows
    dtype: np.dtype
    n: int
    diagonal: np.ndarray  # k(x, x)
    cache_bytes: int
    line_bytes: int
    most: int
    capacity: int  # rows that can be cached
    hits: int
    misses: int
    lines: np.ndarray  # the cached rows
    slots: np.ndarray
    owners: np.ndarray
    used: np.ndarray
    clock: int
    filled: int  # places that were ever used
    spare: np.ndarray  # room for rows that are computed together

    def __init__(self, kernel: Any, points: Any, cache_bytes: int, dtype: Any = None) -> None:
        self.kernel, self.original = kernel, points
        self.dtype = np.dtype(points.dtype if dtype is None else dtype)
        self.n = len(points)
        with np.errstate(over="ignore"):
            self.diagonal = np.asarray(kernel.diagonal(points), dtype=np.float64)
        largest = float(np.max(np.abs(self.diagonal), initial=0.0))
        # Beyond the range of single precision, where that is the precision of numbers alone.
        if self.dtype != np.float64 and not (SMALLEST < largest < 1 / SMALLEST or largest == 0):
            self.dtype = np.dtype(np.float64 if cast_points(points.take(slice(0, 1)), np.float64) else self.dtype)
        self._refuse_large()
        rounded = cast_points(points, self.dtype) or points
        self.points = (rounded.thinned() if kernel.of_products else rounded).lasts()
        self.cache_bytes = int(cache_bytes)
        self.line_bytes = max(1, self.n * self.dtype.itemsize)
        self.most = int(np.clip(BYTES // self.line_bytes, 1, BLOCK))  # rows that are computed together
        stored = kernel.data == "matrix"  # its rows are in memory already
        self.capacity = min(max(1, self.n), max(self.most, 0 if stored else self.cache_bytes // self.line_bytes))
        self.hits = self.misses = 0
        self._precise: KernelColumns | None = None
        self.clear()

    def _refuse_large(self) -> None:
        large = ~(np.abs(self.diagonal) < np.finfo(self.dtype).max / 2)
        if large.any():
            raise OverflowError(
                f"{self.kernel} of row {int(np.argmax(large))} with itself is too large for {self.dtype}: "
                f"{self.kernel.remedy()}"
            )

    def clear(self) -> None:
        """Forget all cached rows."""
        self.lines = np.empty((0, self.n), self.dtype)
        self.slots = np.full(self.n, -1, np.int64)  # where the row of each example is cached, or -1
        self.owners = np.full(self.capacity, -1, np.int64)  # whose row each place has, or -1
        self.used = np.full(self.capacity, -1, np.int64)  # when the row of each place was last used
        self.clock = self.filled = 0
        self.spare = np.empty((0, self.n), self.dtype)

    @property
    def nbytes(self) -> int:
        """The memory that cached rows take."""
        own = int(np.count_nonzero(self.owners >= 0)) * self.line_bytes
        return own + (self._precise.nbytes if self._precise is not None else 0)

    @property
    def complete(self) -> bool:
        """Whether the whole kernel matrix can be cached."""
        return self.capacity >= self.n

    def precise(self) -> KernelColumns | None:
        """The same in double precision, if this is not."""
        if self.dtype == np.float64:
            return None
        if self._precise is None:
            points = cast_points(self.original, np.dtype(np.float64))
            if points is None:
                return None
            self._precise = KernelColumns(self.kernel, points, self.cache_bytes, np.float64)
        return self._precise

    # -- values

    def values(self, indices: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Kernel values of some examples with others, computed here and now."""
        return self._block(self.points.take(indices), self.points.take(others))

    def exact(self, indices: np.ndarray, others: np.ndarray) -> np.ndarray | None:
        """The same in double precision, if the points can be had in it."""
        double = np.dtype(np.float64)
        P, Q = (cast_points(self.original.take(some), double) for some in (indices, others))
        return None if P is None or Q is None else self.kernel.block(P, Q, safe=True)

    def _block(self, P: Any, Q: Any, out: np.ndarray | None = None) -> np.ndarray:
        if P.dtype == self.dtype:
            return self.kernel.block(P, Q, out=out, safe=True)
        values = self.kernel.block(P, Q, safe=True)
        if out is None:
            return values.astype(self.dtype)
        out[...] = values
        return out

    def square(self, indices: np.ndarray) -> np.ndarray:
        """Kernel values of some examples with each other; those of cached rows are not computed again.

        The examples whose rows are cached must come first: see ``cached_first``.
        """
        self.clock += 1
        count, size = int(np.count_nonzero(self.slots[indices] >= 0)), len(indices)
        out = np.empty((size, size), self.dtype)
        old, new = indices[:count], indices[count:]
        self._note_use(old)
        gather(self.lines, self.slots[old], indices, np.arange(count), out)
        if len(new):
            transpose(np.ascontiguousarray(out[:count, count:]), out[count:, :count])
            points = self.points.take(new)
            self._block(points, points, out[count:, count:])
        return out

    def cached_first(self, indices: np.ndarray) -> np.ndarray:
        """The order of examples that ``square`` wants."""
        return np.argsort(self.slots[indices] < 0, kind="stable")

    def rows(self, indices: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Kernel rows of some examples with all examples, or with a subset of them."""
        indices = np.asarray(indices, dtype=np.int64)
        out = np.empty((len(indices), self.n if subset is None else len(subset)), self.dtype)
        where = np.arange(self.n) if subset is None else subset
        for some in self.fetched(indices):
            gather(self.lines, self.slots[indices[some]], where, some, out)
        return out

    def fill(self) -> bool:
        """Compute the whole kernel matrix, each half once, if the cache can hold it; returns whether it is there."""
        if not self.complete:
            return False
        missing = np.flatnonzero(self.slots < 0)
        if len(missing) < self.n:
            for _ in self.fetched(missing):
                pass
            return True
        self.clear()
        self.lines = np.empty((self.capacity, self.n), self.dtype)
        self.misses += self.n
        for first in range(0, self.n, BLOCK):
            rows = slice(first, min(first + BLOCK, self.n))
            self._block(self.points.take(rows), self.points.take(slice(first, self.n)), self.lines[rows, first:])
            transpose(np.ascontiguousarray(self.lines[rows, rows.stop :]), self.lines[rows.stop :, rows])
        self.owners[:] = self.slots[:] = np.arange(self.n)
        self.used[:], self.filled = self.clock, self.n
        return True

    def fetched(self, indices: np.ndarray) -> Any:
        """Yield positions in ``indices`` whose rows are cached while the caller uses them: all, in several parts."""
        self.clock += 1
        held = self.slots[indices] >= 0
        self.hits += int(np.count_nonzero(held))
        self.misses += int(np.count_nonzero(~held))
        self._note_use(indices[held])
        if held.any():
            yield np.flatnonzero(held)
        missing = np.flatnonzero(~held)
        # The same example may be asked for twice: its second place finds it cached.
        while len(missing):
            again = self.slots[indices[missing]] >= 0
            if again.any():
                yield missing[again]
                missing = missing[~again]
                continue
            count = self._compute(indices[missing[: self.most]])
            yield missing[:count]
            missing = missing[count:]

    def _compute(self, indices: np.ndarray) -> int:
        """Compute the rows of the first few of these examples and cache them; returns how many."""
        some, first = np.unique(indices, return_index=True)
        count = len(indices) if len(some) == len(indices) else int(np.sort(first)[-1]) + 1
        if len(some) < count:  # an example twice: up to there
            seen = np.zeros(len(indices), dtype=bool)
            seen[first] = True
            count = int(np.argmin(seen))
        some = indices[:count]
        places = self._places(count)
        self.slots[self.owners[places][self.owners[places] >= 0]] = -1
        self.owners[places] = -1
        if places[-1] - places[0] == count - 1:
            self._block(self.points.take(some), self.points, out=self.lines[places[0] : places[-1] + 1])
        else:
            if not len(self.spare):
                self.spare = np.empty((self.most, self.n), self.dtype)
            block = self._block(self.points.take(some), self.points, out=self.spare[:count])
            over_rows(lambda *part: copy_lines(block, self.lines, places, *part), count, block.size)
        self.owners[places], self.slots[some], self.used[places] = some, places, self.clock
        return count

    def _places(self, count: int) -> np.ndarray:
        """Places for so many rows: new ones, or those of the rows that were not used for longest, in rising order."""
        if not len(self.lines):
            self.lines = np.empty((self.capacity, self.n), self.dtype)  # takes memory as it is written to
        if self.filled + count <= self.capacity:
            self.filled += count
            return np.arange(self.filled - count, self.filled)
        self.filled = self.capacity
        return np.sort(np.argpartition(self.used, count - 1)[:count])

    def _note_use(self, held: np.ndarray) -> None:
        self.used[self.slots[held]] = self.clock

    def window(self, subset: np.ndarray | None) -> Window:
        return Window(self, subset)


class Window:
    """Sums of kernel rows over some of the examples (all, if None)."""

    columns: KernelColumns
    subset: np.ndarray | None
    size: int
    points: Any

    def __init__(self, columns: KernelColumns, subset: np.ndarray | None) -> None:
        self.columns = columns
        self.subset = None if subset is None or len(subset) == columns.n else subset
        self.size = columns.n if subset is None else len(subset)
        # Rows of cheap kernels are computed for the subset alone, unless all of the matrix can be kept.
        alone = self.subset is not None and columns.kernel.of_products and not columns.complete
        self.points = columns.points.take(self.subset).lasts() if alone and 2 * self.size < columns.n else None

    def add(self, sums: np.ndarray, indices: np.ndarray, amounts: np.ndarray) -> None:
        """sums += the sum of amounts[k] times the kernel row of example indices[k], over the subset."""
        columns, amounts = self.columns, np.asarray(amounts, dtype=np.float64)
        if self.points is not None:
            known = columns.slots[indices] >= 0
            columns.misses += int(np.count_nonzero(~known))
            for first in range(0, len(missing := np.flatnonzero(~known)), BLOCK):
                some = missing[first : first + BLOCK]
                block = columns._block(columns.points.take(indices[some]), self.points)
                add_rows(sums, block, np.arange(len(some)), amounts[some])
            indices, amounts = indices[known], amounts[known]
        for some in columns.fetched(indices):
            slots = columns.slots[indices[some]]
            if self.subset is None:
                add_rows(sums, columns.lines, slots, amounts[some])
            else:
                add_gathered(sums, columns.lines, slots, amounts[some], self.subset)


def cast_points(points: Any, dtype: Any) -> Any:
    """The points with rows of numbers in another precision; None where a view cannot be changed."""
    views = {}
    for name, view in points.views.items():
        if view.dtype == dtype:
            views[name] = view
        elif isinstance(view, Thin):
            views[name] = Thin(view.lines._replace(data=view.lines.data.astype(dtype)), view.width, view.squares)
        elif type(view) is Vectors:
            views[name] = Vectors(in_precision(view.X, dtype), view.squares)
        else:
            return None
    return type(points)(views)


def gather(lines: np.ndarray, slots: np.ndarray, where: np.ndarray, to: np.ndarray, out: np.ndarray) -> None:
    """out[to[k], j] = lines[slots[k], where[j]], on all cores."""
    over_rows(lambda *part: gather_lines(lines, slots, where, to, out, *part), len(slots), len(slots) * len(where))


def add_rows(sums: np.ndarray, lines: np.ndarray, slots: np.ndarray, amounts: np.ndarray) -> None:
    """sums += amounts @ lines[slots], in double precision, on all cores."""
    over_rows(lambda *part: add_lines(sums, lines, slots, amounts, *part), len(sums), len(slots) * len(sums))


def add_gathered(
    sums: np.ndarray, lines: np.ndarray, slots: np.ndarray, amounts: np.ndarray, where: np.ndarray
) -> None:
    """sums += amounts @ lines[slots][:, where], in double precision, on all cores."""
    over_rows(lambda *part: add_some(sums, lines, slots, amounts, where, *part), len(sums), len(slots) * len(sums))


@fused
def gather_lines(lines, slots, where, to, out, start, stop):
    for k in range(start, stop):
        line, target = lines[slots[k]], out[to[k]]
        for j in range(np.uint64(len(where))):
            target[j] = line[np.uint64(where[j])]


@fused
def copy_lines(block, lines, places, start, stop):
    for k in range(start, stop):
        source, target = block[k], lines[places[k]]
        for j in range(np.uint64(len(source))):
            target[j] = source[j]


@fused
def add_lines(sums, lines, slots, amounts, start, stop):
    """Four rows at a time, so that each sum is loaded and stored a quarter as often."""
    rows = len(slots)
    for first in range(start, stop, PART):
        width = np.uint64(min(PART, stop - first))
        at, end = np.uint64(first), np.uint64(first) + width
        s = sums[at:end]
        k = 0
        while k + 4 <= rows:
            a, b, c, d = amounts[k], amounts[k + 1], amounts[k + 2], amounts[k + 3]
            p, q, r, t = (
                lines[slots[k]][at:end],
                lines[slots[k + 1]][at:end],
                lines[slots[k + 2]][at:end],
                lines[slots[k + 3]][at:end],
            )
            for j in range(width):
                s[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * t[j])
            k += 4
        while k < rows:
            a, p = amounts[k], lines[slots[k]][at:end]
            for j in range(width):
                s[j] += a * p[j]
            k += 1


@fused
def add_some(sums, lines, slots, amounts, where, start, stop):
    for k in range(len(slots)):
        line, a = lines[slots[k]], amounts[k]
        for j in range(np.uint64(start), np.uint64(stop)):
            sums[j] += a * line[np.uint64(where[j])]

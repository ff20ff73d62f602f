"""Products of rows with zeros in them and rows of any kind: only what is not zero is multiplied.

The other rows are laid out as a *table*: a few dozen of them side by side, so that column j of all of them is one short
line of memory, a handful of vectors. A row's products with them are then a sum of such lines, one for each number in
the row, kept in registers. With a fifth of the numbers not zero this is more than twice as fast as the BLAS is on dense
rows, with few other rows five times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from onlearn.compile import compiled, prefetch
from onlearn.kernels.passes import fused, over_tile
from onlearn.kernels.threads import in_threads
from onlearn.vectors import WIDTH, sum_lines

WIDE = 4  # vectors of a line of the table; the last strip of it has as many as the remaining rows need
AHEAD = 2  # rows
TURN = 128  # rows that go through all strips of the table while their numbers are in the cache
CACHE_LINE = 64  # bytes; a table begins with one, else its lines are spread over more of them


class Lines(NamedTuple):
    """Sparse rows, anywhere in memory: row i has the numbers and columns from ``starts[i]`` to ``stops[i]``.

    So some of them, in any order, are taken without copying a number, and SciPy, which checks every matrix it makes,
    is not asked: for a few rows that takes longer than their products.
    """

    data: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    stops: np.ndarray

    def take(self, rows: Any) -> Lines:
        return Lines(self.data, self.columns, self.starts[rows], self.stops[rows])

    @property
    def numbers(self) -> int:
        return int(self.stops.sum() - self.starts.sum())

    @staticmethod
    def of(X: Any) -> Lines:
        """The rows of a CSR matrix, or those of a dense one in C order without their zeros."""
        if sp.issparse(X):
            data, columns = np.ascontiguousarray(X.data), np.ascontiguousarray(X.indices)  # for inner loops in vectors
            return Lines(data, columns, X.indptr[:-1], X.indptr[1:])
        rows, width = X.shape
        flat, ends = X.reshape(-1), np.zeros(rows + 1, np.int64)
        in_threads(lambda start, stop: count_numbers(flat, width, ends, start, stop), rows, X.size)
        np.cumsum(ends, out=ends)
        data = np.empty(ends[-1], X.dtype)
        columns = np.empty(ends[-1], np.uint16 if width <= 1 << 16 else np.int32)  # they are read again and again
        in_threads(lambda start, stop: copy_numbers(flat, width, ends, data, columns, start, stop), rows, X.size)
        return Lines(data, columns, ends[:-1], ends[1:])

    @staticmethod
    def joined(parts: list[Lines]) -> Lines:
        """All rows of several, one after another in memory."""
        ends = np.cumsum([0, *(n for part in parts for n in (part.stops - part.starts).tolist())])
        data, columns = (
            np.empty(ends[-1], np.result_type(*(part[k].dtype for part in parts))) for k in (0, 1)
        )  # fmt: skip
        first = 0
        for part in parts:
            copy_rows(*part, ends[first:], data, columns)
            first += len(part.starts)
        return Lines(data, columns, ends[:-1], ends[1:])

    def matrix(self, width: int) -> sp.csr_matrix:
        together = Lines.joined([self])
        indptr, columns = np.append(together.starts, len(together.data)), together.columns
        if columns.dtype == np.uint16:  # which SciPy has no use for
            columns = columns.astype(np.int32)
        return sp.csr_matrix((together.data, columns, indptr), shape=(len(self.starts), width))


def as_table(X: np.ndarray | Lines, width: int, dtype: np.dtype) -> np.ndarray:
    """Rows, dense or sparse, side by side."""
    rows = len(X.starts) if isinstance(X, Lines) else len(X)
    size, apart = padded(rows, dtype) * width, CACHE_LINE // dtype.itemsize
    table = np.zeros(size + apart, dtype)
    first = -table.ctypes.data % CACHE_LINE // dtype.itemsize
    table = table[first : first + size]
    if isinstance(X, Lines):
        lay_sparse(*X, width, table)
    else:
        lay_dense(np.ascontiguousarray(X).reshape(-1), rows, width, table)
    return table


def padded(rows: int, dtype: np.dtype) -> int:
    """How many rows a table has room for that is made for so many."""
    lanes = WIDTH // dtype.itemsize
    return -(-rows // lanes) * lanes


def products(lines: Lines, table: np.ndarray, width: int, out: np.ndarray) -> None:
    """x.z of sparse rows and those of a table, into ``out``."""
    numbers = lines.data.astype(out.dtype, copy=False)
    over_tile(_sum, out, numbers, *lines[1:], table, width, cost=1 + lines.numbers // max(1, len(out)))


def _sum(*arguments: Any) -> None:
    table = arguments[-2]
    sum_pass(*arguments, np.empty(WIDE * WIDTH // table.itemsize, table.dtype))


@fused
def sum_pass(flat, stride, columns, start, stop, data, places, starts, stops, table, width, spare):
    """Products of rows with all rows of a table, which has ``columns`` of them."""
    lanes = WIDTH // table.itemsize
    for top in range(start, stop, TURN):
        done = 0
        while done < columns:
            base, left = np.uint64(width * done), columns - done
            vectors = min(WIDE, (left + lanes - 1) // lanes)
            fits = vectors * lanes <= left
            for i in range(top, min(stop, top + TURN)):
                if i + AHEAD < stop:
                    for p in range(starts[i + AHEAD], stops[i + AHEAD], 16):
                        prefetch(data, np.uint64(p))
                        prefetch(places, np.uint64(p))
                first, last = np.uint64(starts[i]), np.uint64(stops[i])
                to, at = (flat, np.uint64(i * stride + done)) if fits else (spare, np.uint64(0))
                if vectors == 4:
                    sum_lines(to, at, data, places, first, last, table, base, 4)
                elif vectors == 3:
                    sum_lines(to, at, data, places, first, last, table, base, 3)
                elif vectors == 2:
                    sum_lines(to, at, data, places, first, last, table, base, 2)
                else:
                    sum_lines(to, at, data, places, first, last, table, base, 1)
                if not fits:  # what lies behind is not ours
                    for k in range(left):
                        flat[i * stride + done + k] = spare[k]
            done += vectors * lanes


@compiled
def place_of(row, rows, width, lanes):
    """Where a row begins in a table, and the distance from one of its numbers to the next."""
    wide = WIDE * lanes
    strip = row // wide * wide
    step = min(wide, (rows - strip + lanes - 1) // lanes * lanes)
    return strip * width + row - strip, step


@compiled
def lay_sparse(data, columns, starts, stops, width, table):
    for i in range(len(starts)):
        first, step = place_of(i, len(starts), width, WIDTH // table.itemsize)
        for p in range(starts[i], stops[i]):
            table[first + columns[p] * step] = data[p]


@compiled
def lay_dense(flat, rows, width, table):
    for i in range(rows):
        first, step = place_of(i, rows, width, WIDTH // table.itemsize)
        for j in range(width):
            table[first + j * step] = flat[i * width + j]


@compiled
def count_numbers(flat, width, ends, start, stop):
    """ends[i + 1] = how many numbers of row i are not zero."""
    for i in range(start, stop):
        count = 0
        for p in range(np.uint64(i * width), np.uint64((i + 1) * width)):  # unsigned, else it is not done in vectors
            count += flat[p] != 0
        ends[i + 1] = count


@compiled
def copy_numbers(flat, width, ends, data, columns, start, stop):
    """The numbers that are not zero, and their columns.

    Each is written, and the next one over it if it is zero: the processor cannot guess which ones are.
    """
    for i in range(start, stop):
        to, end = np.uint64(ends[i]), np.uint64(ends[i + 1])
        p = first = np.uint64(i * width)
        while to < end:
            value = flat[p]
            data[to] = value
            columns[to] = p - first
            to += np.uint64(value != 0)
            p += np.uint64(1)


@compiled
def copy_rows(data, columns, starts, stops, ends, to_data, to_columns):
    for i in range(len(starts)):
        shift = ends[i] - starts[i]
        for p in range(starts[i], stops[i]):
            to_data[p + shift] = data[p]
            to_columns[p + shift] = columns[p]

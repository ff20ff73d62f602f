"""Sparse rows, and their products with other rows: only nonzero numbers are multiplied.

Where many products are needed, the other rows are laid out as a *table*: a few dozen rows side by side, so that column
j of all of them is one short line of memory. The products of a row are then a sum of such lines, one for each of its
numbers, kept in registers. If a fifth of the numbers are not zero this takes less than half the time of the BLAS on
dense rows, with few other rows a fifth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled, prefetch
from onlearn.compiler.intrinsics import WIDTH, sum_lines
from onlearn.engine.csr import CSR, is_sparse
from onlearn.kernels.tiles import fused, in_threads, over_tile, reordered

WIDE = 4  # vectors of a line of the table; its last strip has as many as the remaining rows need
AHEAD = 2  # rows that are prefetched
TURN = 128  # rows that go through all strips of the table while their numbers are in the cache
SQUARE = 32  # rows and columns that are transposed together
CACHE_LINE = 64  # bytes; a table begins at one, so that its lines touch as few as possible


class Lines(NamedTuple):
    """Sparse rows anywhere in memory: row i has the numbers and columns from ``starts[i]`` to ``stops[i]``.

    Some of them, in any order, are taken without copying a number.
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
        if is_sparse(X):
            data, columns = np.ascontiguousarray(X.data), np.ascontiguousarray(X.indices)  # for vector instructions
            return Lines(data, columns, X.indptr[:-1], X.indptr[1:])
        rows, width = X.shape
        flat, ends = X.reshape(-1), np.zeros(rows + 1, np.int64)
        in_threads(lambda start, stop: count_numbers(flat, width, ends, start, stop), rows, X.size)
        np.cumsum(ends, out=ends)
        data = np.empty(ends[-1], X.dtype)
        columns = np.empty(ends[-1], np.uint16 if width <= 1 << 16 else np.int32)  # small: they are read many times
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

    def to_csr(self, width: int) -> CSR:
        together = Lines.joined([self])
        small = max(width, len(self.starts), len(together.data)) < 2**31
        kind = np.int32 if small else np.int64  # two types only, so that few variants of a pass are compiled
        indptr = np.append(together.starts, len(together.data)).astype(kind)
        return CSR(together.data, together.columns.astype(kind, copy=False), indptr, (len(self.starts), width))


def transpose(turned: np.ndarray, out: np.ndarray) -> None:
    """out = turned.T, for ``turned`` in C order and ``out`` with adjacent columns."""
    over_tile(turn_pass, out, turned.reshape(-1), turned.shape[1])


@compiled
def spread_rows(data, indices, indptr, width, flat):
    """Sparse rows as dense rows; ``flat`` is all zeros before."""
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            flat[np.int64(i) * width + indices[p]] = data[p]


def transposed(X: CSR) -> CSR:
    """The columns of X as rows."""
    rows, width = X.shape
    indptr = np.zeros(width + 1, X.indptr.dtype)
    indices, data = np.empty(X.nnz, X.indices.dtype), np.empty(X.nnz, X.dtype)
    sort_by_column(X.data, X.indices, X.indptr, data, indices, indptr, np.zeros(width, np.int64))
    return CSR(data, indices, indptr, (width, rows))


@compiled
def sort_by_column(data, indices, indptr, to_data, to_rows, ends, place):
    """Counting sort: the numbers of column j go to ``ends[j]`` up to ``ends[j + 1]``. ``ends`` is all zeros before."""
    for p in range(indptr[0], indptr[len(indptr) - 1]):
        ends[indices[p] + 1] += 1
    for j in range(len(place)):
        place[j] = ends[j]
        ends[j + 1] += ends[j]
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            to_data[place[j]] = data[p]
            to_rows[place[j]] = i
            place[j] += 1


@reordered
def square_rows(data, ends, out, start, stop):
    """out[i] = the sum of the squares of row i, from ``ends[i]`` to ``ends[i + 1]``."""
    for i in range(start, stop):
        total = 0.0
        for p in range(np.uint64(ends[i]), np.uint64(ends[i + 1])):
            total += np.float64(data[p]) * np.float64(data[p])
        out[i] = total


# -- products of sparse rows


def by_common_columns(X: CSR, by_column: CSR, out: np.ndarray) -> None:
    """Write x.z of sparse rows and others, given by their columns, to ``out``."""
    width = by_column.shape[0]

    def work(start: int, stop: int) -> None:
        out[start:stop] = 0
        others = by_column.data, by_column.indices, by_column.indptr
        common_column_products(X.data, X.indices, X.indptr, *others, out, start, stop)

    in_threads(work, X.shape[0], 4 * X.nnz * max(1, by_column.nnz // max(1, width)))


@compiled
def common_column_products(data, indices, indptr, values, places, starts, out, start, stop):
    """out[i, j] += x_i . z_j: for each number of x_i, all z with a number in the same column."""
    for i in range(start, stop):
        line = out[i]
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p]
            column = np.uint64(indices[p])
            for q in range(starts[column], starts[column + np.uint64(1)]):
                line[np.uint64(places[q])] += x * values[q]


def by_rows(X: CSR, Z: np.ndarray, out: np.ndarray) -> None:
    """Write x.z of sparse rows and dense rows to ``out``."""
    data, columns = X.data.astype(out.dtype, copy=False), np.ascontiguousarray(Z.T, dtype=out.dtype).reshape(-1)
    over_tile(column_pass, out, data, X.indices, X.indptr, columns, cost=1 + X.nnz // max(1, len(out)))


@compiled
def column_pass(flat, stride, columns, start, stop, data, indices, indptr, others):
    """The products of row i are the sum of x_ij times column j of the others, added in the order of the columns."""
    width, zero = np.uint64(columns), flat.dtype.type(0)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        for k in range(width):
            line[k] = zero
        for p in range(indptr[i], indptr[i + 1]):
            x, first = data[p], np.uint64(indices[p]) * width
            other = others[first : first + width]
            for k in range(width):
                line[k] += x * other[k]


# -- products with a table


def as_table(X: np.ndarray | Lines, width: int, dtype: np.dtype) -> np.ndarray:
    """Rows, dense or sparse, side by side in memory."""
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
    """The number of rows of a table for so many rows, which fills whole vectors."""
    lanes = WIDTH // dtype.itemsize
    return -(-rows // lanes) * lanes


def products(lines: Lines, table: np.ndarray, width: int, out: np.ndarray) -> None:
    """Write x.z of sparse rows and the rows of a table to ``out``."""
    numbers = lines.data.astype(out.dtype, copy=False)
    over_tile(_sum, out, numbers, *lines[1:], table, width, cost=1 + lines.numbers // max(1, len(out)))


def _sum(*arguments: Any) -> None:
    table = arguments[-2]
    sum_pass(*arguments, np.empty(WIDE * WIDTH // table.itemsize, table.dtype))


@fused
def sum_pass(flat, stride, columns, start, stop, data, places, starts, stops, table, width, spare):
    """Products of rows with all rows of a table, of which there are ``columns``."""
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
                if not fits:  # the memory behind belongs to another row
                    for k in range(left):
                        flat[i * stride + done + k] = spare[k]
            done += vectors * lanes


@compiled
def turn_pass(flat, stride, columns, start, stop, turned, rows):
    """flat[i, j] = turned[j, i], where ``turned`` has ``rows`` numbers a row; in squares that stay in the cache."""
    for top in range(start, stop, SQUARE):
        for left in range(0, columns, SQUARE):
            right = np.uint64(min(left + SQUARE, columns))
            for i in range(top, min(top + SQUARE, stop)):
                at, place = np.uint64(i * stride), np.uint64(i)
                for j in range(np.uint64(left), right):
                    flat[at + j] = turned[j * np.uint64(rows) + place]


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
        for p in range(np.uint64(i * width), np.uint64((i + 1) * width)):  # unsigned, for vector instructions
            count += flat[p] != 0
        ends[i + 1] = count


@compiled
def copy_numbers(flat, width, ends, data, columns, start, stop):
    """Copy the numbers that are not zero, and their columns.

    Each number is written, and overwritten by the next one if it is zero: a branch would be predicted badly.
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

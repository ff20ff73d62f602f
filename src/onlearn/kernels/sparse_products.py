"""Products of rows with zeros in them and rows of any kind: only what is not zero is multiplied.

The other rows are laid out as a *table*: a few dozen of them side by side, so that column j of all of them is one short
line of memory, a handful of vectors. A row's products with them are then a sum of such lines, one for each number in
the row, kept in registers. With a fifth of the numbers not zero this is more than twice as fast as the BLAS is on dense
rows, with few other rows five times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import as_strided

from onlearn.compiler import REORDER, compiled, overloaded, prefetch, types
from onlearn.compiler.intrinsics import WIDTH, sum_lines
from onlearn.kernels.tiles import in_threads

# ----------------------------------------------------------------------------------------------------
# The compiled passes over a tile: what turns the products x.z into kernel values, in place, one pass each.
#
# A tile is handed over as flat memory with the distance from row to row, for only then does the compiler know that
# the numbers of a row lie side by side, and uses vectors. ``exponential`` is our own for the same reason: a call of the
# mathematical library would be made for each number alone.


FUSE = {"contract"}  # a product and a sum in one step, nothing else: ``exponential`` relies on the order of its sums


reordered = compiled(fastmath=REORDER)  # sums may be reordered, so that they vectorise
fused = compiled(fastmath=FUSE)


def over_tile(step: Callable[..., Any], tile: np.ndarray, *arguments: Any, cost: int = 1) -> None:
    """Run a compiled pass over a tile: ``step(flat, stride, columns, start, stop, *arguments)``."""
    rows, columns = tile.shape
    if not tile.size:
        return
    stride = tile.strides[0] // tile.itemsize if rows > 1 else columns
    if stride == columns:
        flat = tile.reshape(-1)
    else:
        flat = as_strided(tile, ((rows - 1) * stride + columns,), (tile.itemsize,))

    def work(start: int, stop: int) -> None:
        step(flat, stride, columns, start, stop, *arguments)

    in_threads(work, rows, cost * tile.size)


def with_a_line(step: Callable[..., Any]) -> Callable[..., Any]:
    """A pass that is given room for a line of the tile, another one in each thread."""

    def called(flat: Any, stride: int, columns: int, start: int, stop: int, *arguments: Any) -> None:
        step(flat, stride, columns, start, stop, np.empty(columns, flat.dtype), *arguments)

    return called


@compiled
def sparse_products(data, indices, indptr, values, places, starts, out, start, stop):
    """out[i, j] += x_i . z_j, walking through the z that share a column with x."""
    for i in range(start, stop):
        line = out[i]
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p]
            column = np.uint64(indices[p])
            for q in range(starts[column], starts[column + np.uint64(1)]):
                line[np.uint64(places[q])] += x * values[q]


@reordered
def square_rows(data, ends, out, start, stop):
    """out[i] = the sum of the squares of row i, which ends where the next begins."""
    for i in range(start, stop):
        total = 0.0
        for p in range(np.uint64(ends[i]), np.uint64(ends[i + 1])):
            total += np.float64(data[p]) * np.float64(data[p])
        out[i] = total


@overloaded(lambda x: _single if x == types.float32 else _double, fastmath=FUSE)
def exponential(x):
    """e^x for x <= 0, in the precision of x.

    x = k log 2 + r with whole k, found by adding a number so large that its last binary place is 1. Then a polynomial
    or a fraction for e^r (the coefficients are those of the Cephes library), and k into the exponent.
    """
    return _single(x) if isinstance(x, np.float32) else _double(x)


def _single(x):
    f = np.float32
    y = max(x, f(-87.0))
    t = y * f(1.44269504) + f(12582912.0)
    k = t - f(12582912.0)
    r = (y - k * f(0.693359375)) + k * f(2.12194440e-4)
    p = f(1.9875691500e-4) * r + f(1.3981999507e-3)
    p = p * r + f(8.3334519073e-3)
    p = p * r + f(4.1665795894e-2)
    p = p * r + f(1.6666665459e-1)
    p = p * r + f(5.0000001201e-1)
    p = p * r * r + r + f(1.0)
    bits = np.int32((f(t).view(np.int32) << np.int32(23)) + f(p).view(np.int32))
    return bits.view(np.float32) if x > f(-87.0) else f(0.0)


def _double(x):
    y = max(x, -708.0)
    t = y * 1.4426950408889634 + 6755399441055744.0
    k = t - 6755399441055744.0
    r = (y - k * 6.93145751953125e-1) - k * 1.42860682030941723212e-6
    s = r * r
    above = r * ((1.26177193074810590878e-4 * s + 3.02994407707441961300e-2) * s + 9.99999999999999999910e-1)
    below = ((3.00198505138664455042e-6 * s + 2.52448340349684104192e-3) * s + 2.27265548208155028766e-1) * s + 2.0
    p = 1.0 + 2.0 * above / (below - above)
    bits = np.int64((np.float64(t).view(np.int64) << np.int64(52)) + np.float64(p).view(np.int64))
    return bits.view(np.float64) if x > -708.0 else 0.0


@fused
def gaussian_pass(flat, stride, columns, start, stop, gamma, a, b):
    """x.z -> exp(-gamma (|x|^2 + |z|^2 - 2 x.z)), with a and b the squared lengths."""
    width, zero, two = np.uint64(columns), flat.dtype.type(0), flat.dtype.type(2)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        x = a[i]
        for j in range(width):
            line[j] = exponential(-gamma * max(zero, x + b[j] - two * line[j]))


@fused
def decay_pass(flat, stride, columns, start, stop, gamma):
    """A distance d -> exp(-gamma d)."""
    width = np.uint64(columns)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        for j in range(width):
            line[j] = exponential(-gamma * line[j])


@with_a_line
@fused
def polynomial_pass(flat, stride, columns, start, stop, kept, gamma, coef0, degree):
    """v -> (gamma v + coef0)^degree."""
    width = np.uint64(columns)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        if degree == 2:
            for j in range(width):
                v = gamma * line[j] + coef0
                line[j] = v * v
        elif degree == 3:
            for j in range(width):
                v = gamma * line[j] + coef0
                line[j] = v * v * v
        elif degree == 4:
            for j in range(width):
                v = gamma * line[j] + coef0
                v = v * v
                line[j] = v * v
        else:
            for j in range(width):
                v = gamma * line[j] + coef0
                line[j] = v
                kept[j] = v
            for _ in range(degree - 1):  # row by row, so that this stays in the nearest cache
                for j in range(width):
                    line[j] *= kept[j]


@with_a_line
@fused
def series_pass(flat, stride, columns, start, stop, kept, coefs):
    """v -> coefs[0] + coefs[1] v + coefs[2] v^2 + ... by Horner's rule."""
    width, last = np.uint64(columns), len(coefs) - 1
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        for j in range(width):
            kept[j] = line[j]
            line[j] = coefs[last]
        for n in range(last - 1, -1, -1):
            c = coefs[n]
            for j in range(width):
                line[j] = line[j] * kept[j] + c


@fused
def factors_pass(flat, stride, columns, start, stop, a, b):
    """v -> a[i] v b[j]."""
    width = np.uint64(columns)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        x = a[i]
        for j in range(width):
            line[j] = x * line[j] * b[j]


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

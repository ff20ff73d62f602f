"""The compiled passes over a tile: what turns the products x.z into kernel values, in place, one pass each.

A tile is handed over as flat memory with the distance from row to row, for only then does the compiler know that
the numbers of a row lie side by side, and uses vectors. ``exponential`` is our own for the same reason: a call of the
mathematical library would be made for each number alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onlearn.compile import REORDER, compiled, overloaded, types
from onlearn.kernels.threads import in_threads

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

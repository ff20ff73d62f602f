"""The k nearest of many: compiled selection from tiles of distances.

Each query keeps its k nearest rows so far in a heap with the farthest on top. Rows are ordered by distance, and rows at
the same distance by their number: of these the lower is nearer. So what is found depends neither on the tiles nor on
the threads.

A tile holds either distances as they are (``take_exact``), or what matrix products give quickly (``take_bounded``): a
lower bound of each squared distance, below it by no more than rounding. A row whose bound is beyond the k-th distance
is no neighbour. The few others are measured exactly, by differences, in double precision: they are ranked by that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.inlining import Loop, Verb
from onlearn.kernels.bits import ones

STRIDE = 64  # distances that are compared before any is looked at
ALL = 2**62  # more than the bits of any row
FAR = np.int64(2**62)  # beyond the numbers of all columns


class DensePairs(NamedTuple):
    """Queries x and rows z: d^2 = sum_n (s_n (x_n - z_n))^2 + sum_c w_c [categories differ] + offsets of both.

    It is given in the units of the query, powers of two in which no square overflows: u^2 d^2.
    """

    x: np.ndarray
    units: np.ndarray
    z: np.ndarray
    scale: np.ndarray
    x_codes: np.ndarray
    z_codes: np.ndarray
    weights: np.ndarray
    x_offsets: np.ndarray
    z_offsets: np.ndarray


class SparsePairs(NamedTuple):
    """The same of sparse rows, whose columns are in order; they have no categories."""

    x: np.ndarray
    x_columns: np.ndarray
    x_starts: np.ndarray
    z: np.ndarray
    z_columns: np.ndarray
    z_starts: np.ndarray
    scale: np.ndarray
    x_offsets: np.ndarray
    z_offsets: np.ndarray


@Verb
def squared_distance(pairs, i, j):
    """d^2 of query i and row j, in double precision."""


@squared_distance.on(DensePairs)
def _(pairs, i, j):
    other = pairs.x_offsets[i] + pairs.z_offsets[j]
    weights, unit = pairs.weights, pairs.units[i]
    for n in range(len(weights)):
        if pairs.x_codes[i, n] != pairs.z_codes[j, n]:
            other += weights[n]
    total = unit * unit * other
    x, z, scale = pairs.x[i], pairs.z[j], pairs.scale
    for n in range(np.uint64(len(scale))):
        gap = unit * scale[n] * (np.float64(x[n]) - np.float64(z[n]))
        total += gap * gap
    return total


@squared_distance.on(SparsePairs)
def _(pairs, i, j):
    total = pairs.x_offsets[i] + pairs.z_offsets[j]
    p, p_stop = pairs.x_starts[i], pairs.x_starts[i + 1]
    q, q_stop = pairs.z_starts[j], pairs.z_starts[j + 1]
    while p < p_stop or q < q_stop:
        left = np.int64(pairs.x_columns[p]) if p < p_stop else FAR
        right = np.int64(pairs.z_columns[q]) if q < q_stop else FAR
        gap = 0.0
        if left <= right:
            gap += np.float64(pairs.x[p])
            p += 1
        if right <= left:
            gap -= np.float64(pairs.z[q])
            q += 1
        gap *= pairs.scale[min(left, right)]
        total += gap * gap
    return total


@compiled
def farther(value, number, other, its_number):
    """Whether the first of two rows is farther away than the other one."""
    return value > other or (value == other and number > its_number)


@compiled
def put(values, numbers, held, value, number):
    """Take a row into a heap that holds so many, if it is among the nearest; returns how many the heap holds then."""
    n, size = held, held
    if held < len(values):
        size = held + 1
        while n > 0 and farther(value, number, values[(n - 1) >> 1], numbers[(n - 1) >> 1]):
            values[n], numbers[n] = values[(n - 1) >> 1], numbers[(n - 1) >> 1]
            n = (n - 1) >> 1
        values[n], numbers[n] = value, number
    elif farther(values[0], numbers[0], value, number):
        sink(values, numbers, size, value, number)
    return size


@compiled
def sink(values, numbers, size, value, number):
    """Replace the top of a heap."""
    n, child = 0, 1
    while child < size:
        if child + 1 < size and farther(values[child + 1], numbers[child + 1], values[child], numbers[child]):
            child += 1
        if not farther(values[child], numbers[child], value, number):
            break
        values[n], numbers[n] = values[child], numbers[child]
        n, child = child, 2 * child + 1
    values[n], numbers[n] = value, number


@compiled
def arrange(values, numbers, held):
    """Sort the heaps of all queries, the nearest first."""
    for i in range(len(held)):
        for size in range(held[i] - 1, 0, -1):
            value, number = values[i, size], numbers[i, size]
            values[i, size], numbers[i, size] = values[i, 0], numbers[i, 0]
            sink(values[i], numbers[i], size, value, number)


@compiled
def take_exact(tile, first, skip, values, numbers, held):
    """Take the rows from number ``first`` on, whose distances are in the tile, into the heaps of the queries.

    Query i passes over row number ``skip[i]``.
    """
    count, k = tile.shape[1], values.shape[1]
    for i in range(len(held)):
        line, size = tile[i], held[i]
        limit = values[i, 0] if size == k else np.inf
        for start in range(0, count, STRIDE):
            stop = min(start + STRIDE, count)
            near = np.int32(0)
            for j in range(start, stop):
                near += np.int32(line[j] < limit)
            if near == 0 and size == k:
                continue
            for j in range(start, stop):
                if (line[j] < limit or size < k) and first + j != skip[i]:
                    size = put(values[i], numbers[i], size, line[j], np.int64(first + j))
                    limit = values[i, 0] if size == k else np.inf
        held[i] = size


@Loop
def take_bounded(pairs, tile, a, b, slack, first, top, skip, values, numbers, held):
    """The same for a tile of t with a[i] + b[j] + t[i, j] <= d^2 of query i and row ``first + j``.

    The tile's first query is number ``top`` of the pairs; heaps, ``a`` and ``skip`` are those of the tile. ``slack`` is
    what may be lost where the numbers of the tile are added: relative to them, and at least.
    """
    count, k = tile.shape[1], values.shape[1]
    for i in range(len(held)):
        line, size = tile[i], held[i]
        limit = np.inf
        if size == k:
            limit = values[i, 0] - a[i] + slack[0] * (values[i, 0] + abs(a[i])) + slack[1]
        bound = tile.dtype.type(limit)
        for start in range(0, count, STRIDE):
            stop = min(start + STRIDE, count)
            near = np.int32(0)
            for j in range(start, stop):
                near += np.int32(line[j] + b[j] <= bound)
            if near > 0:
                for j in range(start, stop):
                    if line[j] + b[j] <= bound and first + j != skip[i]:
                        distance = squared_distance(pairs, top + i, first + j)
                        size = put(values[i], numbers[i], size, distance, np.int64(first + j))
                        if size == k:
                            limit = values[i, 0] - a[i] + slack[0] * (values[i, 0] + abs(a[i])) + slack[1]
                            bound = tile.dtype.type(limit)
        held[i] = size


@Loop
def take_listed(pairs, listed, top, skip, values, numbers, held):
    """Take the rows that are listed for each query into its heap; a number below 0 is no row."""
    for i in range(len(held)):
        size = held[i]
        for n in range(listed.shape[1]):
            j = listed[i, n]
            if j >= 0 and j != skip[i]:
                distance = squared_distance(pairs, top + i, j)
                size = put(values[i], numbers[i], size, distance, j)
        held[i] = size


@compiled
def take_bits(words, turned, first, found, skip, values, numbers, held):
    """Take rows of bits, whose words are given by position, by the number of places where they differ."""
    count, k = turned.shape[1], values.shape[1]
    for i in range(len(held)):
        line, word, size = turned[0], words[i, 0], held[i]
        for j in range(count):
            found[j] = ones(word ^ line[j])
        for n in range(1, turned.shape[0]):
            line, word = turned[n], words[i, n]
            for j in range(count):
                found[j] += ones(word ^ line[j])
        limit = np.uint64(values[i, 0]) if size == k else np.uint64(ALL)
        for start in range(0, count, STRIDE):
            stop = min(start + STRIDE, count)
            near = np.uint64(0)
            for j in range(start, stop):
                near += np.uint64(found[j] < limit)
            if near > 0:
                for j in range(start, stop):
                    if found[j] < limit and first + j != skip[i]:
                        size = put(values[i], numbers[i], size, np.float64(found[j]), np.int64(first + j))
                        if size == k:
                            limit = np.uint64(values[i, 0])
        held[i] = size


@compiled
def sparse_mismatches(x, x_columns, x_starts, z, z_columns, z_starts, weights, out, start, stop):
    """The weights of the columns in which sparse rows differ; their columns are in order."""
    for i in range(start, stop):
        for j in range(len(z_starts) - 1):
            p, q, total = x_starts[i], z_starts[j], 0.0
            while p < x_starts[i + 1] or q < z_starts[j + 1]:
                left = np.int64(x_columns[p]) if p < x_starts[i + 1] else FAR
                right = np.int64(z_columns[q]) if q < z_starts[j + 1] else FAR
                gap = 0.0
                if left <= right:
                    gap += np.float64(x[p])
                    p += 1
                if right <= left:
                    gap -= np.float64(z[q])
                    q += 1
                if gap != 0.0:
                    total += weights[min(left, right)]
            out[i, j] = total


@compiled
def add_mismatches(tile, x_codes, z_codes, weights):
    """Add to the tile the weights of the categories in which query and row differ; ``z_codes`` has them by column."""
    for n in range(len(weights)):
        line, weight = z_codes[n], tile.dtype.type(weights[n])
        for i in range(tile.shape[0]):
            code, out = x_codes[i, n], tile[i]
            for j in range(tile.shape[1]):
                out[j] += weight if line[j] != code else tile.dtype.type(0)

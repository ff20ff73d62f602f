"""Distances by differences: |x - z|_1, and |x - z|^2 where going by way of x.z would lose it to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.kernels.passes import reordered
from onlearn.kernels.threads import in_threads
from onlearn.kernels.vectors import Vectors, same_width


def distances(P: Vectors, Q: Vectors, out: np.ndarray, squared: bool) -> None:
    """|x - z|^2 or |x - z|_1 for all pairs, into ``out``."""
    same_width(P, Q)
    step: Any
    lines: tuple[Any, ...]
    if P.sparse and Q.sparse:
        lines = P.X.data, P.X.indices, P.X.indptr, Q.X.data, Q.X.indices, Q.X.indptr
        step = sparse_squared if squared else sparse_absolute
        cost = len(P) * Q.X.nnz + len(Q) * P.X.nnz
    else:
        lines = P.dense, Q.dense
        step = dense_squared if squared else dense_absolute
        cost = len(P) * len(Q) * P.width

    def work(start: int, stop: int) -> None:
        step(*lines, out, start, stop)

    in_threads(work, len(P), cost)


@reordered
def dense_squared(X, Z, out, start, stop):
    width = np.uint64(X.shape[1])
    for i in range(start, stop):
        x = X[i]
        for j in range(Z.shape[0]):
            z, total = Z[j], out.dtype.type(0)
            for n in range(width):
                total += (x[n] - z[n]) * (x[n] - z[n])
            out[i, j] = total


@reordered
def dense_absolute(X, Z, out, start, stop):
    width = np.uint64(X.shape[1])
    for i in range(start, stop):
        x = X[i]
        for j in range(Z.shape[0]):
            z, total = Z[j], out.dtype.type(0)
            for n in range(width):
                total += abs(x[n] - z[n])
            out[i, j] = total


@reordered
def sparse_squared(data, indices, indptr, values, places, starts, out, start, stop):
    """By merging the two rows, whose columns are in order."""
    for i in range(start, stop):
        for j in range(len(starts) - 1):
            p, q, total = indptr[i], starts[j], out.dtype.type(0)
            while p < indptr[i + 1] or q < starts[j + 1]:
                left = indices[p] if p < indptr[i + 1] else np.iinfo(np.int64).max
                right = places[q] if q < starts[j + 1] else np.iinfo(np.int64).max
                gap = (data[p] if left <= right else data.dtype.type(0)) - (
                    values[q] if right <= left else data.dtype.type(0)
                )
                total += gap * gap
                p += left <= right
                q += right <= left
            out[i, j] = total


@reordered
def sparse_absolute(data, indices, indptr, values, places, starts, out, start, stop):
    """By merging the two rows, whose columns are in order."""
    for i in range(start, stop):
        for j in range(len(starts) - 1):
            p, q, total = indptr[i], starts[j], out.dtype.type(0)
            while p < indptr[i + 1] or q < starts[j + 1]:
                left = indices[p] if p < indptr[i + 1] else np.iinfo(np.int64).max
                right = places[q] if q < starts[j + 1] else np.iinfo(np.int64).max
                gap = (data[p] if left <= right else data.dtype.type(0)) - (
                    values[q] if right <= left else data.dtype.type(0)
                )
                total += abs(gap)
                p += left <= right
                q += right <= left
            out[i, j] = total

"""TensorSketch: features of a polynomial kernel by convolution of hashed rows (Pham and Pagh 2013).

(gamma x.z + c)^p is the inner product of the p-fold tensor powers of [sqrt(gamma) x, sqrt(c)]. A count sketch hashes
the coordinates of a row to D columns with signs; that of a tensor product is the convolution of the factors' sketches,
so p transforms, a product and a transform back make the sketch of the power, in O(p (d + D log D)) instead of d^p.
The inner product of two sketches has the kernel as its mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from onlearn.approx import manners
from onlearn.compile import compiled
from onlearn.inputs import as_rows
from onlearn.rows import Dense
from onlearn.threads import cores, over_rows


def draw(width: int, columns: int, degree: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """For each factor and coordinate (the last one is the constant) a column and a sign."""
    shape = (degree, width + 1)
    return rng.integers(columns, size=shape, dtype=np.int64), rng.choice(np.array([-1.0, 1.0]), size=shape)


@compiled
def sketch_dense(data: Any, width: Any, places: Any, factors: Any, out: Any, start: Any, stop: Any) -> None:
    """out[i] = the count sketch of row i, whose last coordinate is the constant one."""
    d = np.uint64(width)
    for i in range(np.uint64(start), np.uint64(stop)):
        line = out[i]
        line[:] = 0
        line[np.uint64(places[d])] = factors[d]
        for j in range(d):
            line[np.uint64(places[j])] += factors[j] * data[i * d + j]


@compiled
def sketch_sparse(data: Any, indices: Any, indptr: Any, places: Any, factors: Any, out: Any, start: Any,
                  stop: Any) -> None:  # fmt: skip
    """The same for sparse rows."""
    last = np.uint64(len(places) - 1)
    for i in range(np.uint64(start), np.uint64(stop)):
        line = out[i]
        line[:] = 0
        line[np.uint64(places[last])] = factors[last]
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j = np.uint64(indices[p])
            line[np.uint64(places[j])] += factors[j] * data[p]


def count_sketch(X: Any, places: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """out = the count sketch of [X, 1], on all cores."""
    rows: Any = as_rows(X, 0.0)
    if rows is None:
        rows = as_rows(np.ascontiguousarray(X), 0.0)

    def work(start: int, stop: int) -> None:
        if isinstance(rows, Dense):
            sketch_dense(rows.data, rows.width, places, factors, out, start, stop)
        else:
            sketch_sparse(rows.data, rows.indices, rows.indptr, places, factors, out, start, stop)

    over_rows(work, len(out), out.size + len(rows.data))


def power(X: Any, places: np.ndarray, signs: np.ndarray, gamma: float, constant: float, columns: int) -> np.ndarray:
    """The sketch of the rows' tensor powers."""
    number = X.dtype.type
    out = np.empty((X.shape[0], columns), X.dtype)
    factors = signs * np.sqrt(gamma)
    factors[:, -1] = signs[:, -1] * np.sqrt(constant)
    factors = factors.astype(number)
    workers = cores()
    for tile in manners.tiles(X.shape[0], 4 * columns * out.itemsize):
        part, some = out[tile], X[tile]
        count_sketch(some, places[0], factors[0], part)
        if len(places) == 1:
            continue
        product = scipy.fft.rfft(part, axis=1, workers=workers)
        for k in range(1, len(places)):
            count_sketch(some, places[k], factors[k], part)
            product *= scipy.fft.rfft(part, axis=1, workers=workers)
        part[:] = scipy.fft.irfft(product, columns, axis=1, workers=workers)
    return out

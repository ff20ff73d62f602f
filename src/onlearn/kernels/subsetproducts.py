"""Products of 1 + x_i z_i over the columns, compiled; kept within range, for they may be very large on the way."""

from __future__ import annotations

import math

import numpy as np

from onlearn.compile import allocating, compiled

HUGE, TINY = 2.0**400, 2.0**-400


@allocating
def own_subsets(data, starts):
    """log2 prod(1 + x_i^2) of each row."""
    out = np.empty(len(starts) - 1)
    for i in range(len(out)):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += math.log1p(np.float64(data[p]) * np.float64(data[p]))
        out[i] = total / math.log(2.0)
    return out


@compiled
def finish(product, order, log):
    """product 2^(order - log), in steps that do not overflow before the end."""
    if product == 0.0:
        return 0.0
    left = np.float64(order) - log
    whole = math.floor(left)
    value = product * 2.0 ** (left - whole)
    while whole > 400.0 and abs(value) < HUGE:
        value, whole = value * HUGE, whole - 400.0
    while whole < -400.0 and abs(value) > TINY * TINY:
        value, whole = value * TINY, whole + 400.0
    if abs(whole) > 1000.0:
        return value * np.inf if whole > 0.0 else 0.0
    return value * 2.0**whole


@allocating
def dense_subsets(X, Z, a, b, out, start, stop):
    """prod(1 + x_i z_i) / 2^(a + b) for all pairs."""
    width = np.uint64(X.shape[1])
    for i in range(start, stop):
        x = X[i]
        for j in range(Z.shape[0]):
            z, product, order = Z[j], 1.0, 0
            for n in range(width):
                product *= 1.0 + np.float64(x[n]) * np.float64(z[n])
                if not TINY < abs(product) < HUGE and product != 0.0:
                    product, shift = math.frexp(product)
                    order += shift
            out[i, j] = finish(product, order, a[i] + b[j])


@allocating
def sparse_subsets(data, indices, indptr, values, places, starts, a, b, out, start, stop):
    """The same by merging the two rows, whose columns are in order."""
    for i in range(start, stop):
        for j in range(len(starts) - 1):
            p, q, product, order = indptr[i], starts[j], 1.0, 0
            while p < indptr[i + 1] and q < starts[j + 1]:
                if indices[p] == places[q]:
                    product *= 1.0 + np.float64(data[p]) * np.float64(values[q])
                    if not TINY < abs(product) < HUGE and product != 0.0:
                        product, shift = math.frexp(product)
                        order += shift
                left, right = indices[p], places[q]
                p += left <= right
                q += right <= left
            out[i, j] = finish(product, order, a[i] + b[j])

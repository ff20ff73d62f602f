"""Compiled passes of a network: the first layer over sparse rows, and learning from single examples.

Learning from one example at a time is the same back-propagation as ``network`` has for batches, but products of a
vector and a matrix are bound by memory, and calls would take longer than their work in a small network. So a stretch
of examples is one loop, in which each weight is met once on the way forward and once on the way back, and changed
there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.inlining import Loop
from onlearn.engine.rows import column, span
from onlearn.mlp.network import ERROR, MISTAKES, SEEN, fire, is_mistake, judge, slope
from onlearn.mlp.optimizers import REMEMBERED, advance, coast

# ----------------------------------------------------------------------------------------------------
# The first layer of a batch of sparse rows.


@compiled
def distinct_features(indices: Any, indptr: Any, rows: Any, slot: Any, features: Any) -> int:
    """The features of some rows, each once; ``slot`` says where in ``features`` one is, and is -1 before."""
    count = 0
    for i in rows:
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[p])
            if slot[j] < 0:
                slot[j] = count
                features[np.uint64(count)] = j
                count += 1
    return count


@compiled
def forget_slots(slot: Any, features: Any, count: int) -> None:
    for n in range(count):
        slot[features[n]] = -1


@compiled
def first_layer(data: Any, indices: Any, indptr: Any, rows: Any, w: Any, width: int, z: Any) -> None:
    """Z_1 = X W_1 of some rows, without the bias."""
    wide, zero = np.uint64(width), z.dtype.type(0)
    for n in range(np.uint64(len(rows))):
        i, to = rows[n], n * wide
        for k in range(wide):
            z[to + k] = zero
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            x, first = data[p], np.uint64(indices[p]) * wide
            for k in range(wide):
                z[to + k] += x * w[first + k]


@compiled
def first_gradient(data: Any, indices: Any, indptr: Any, rows: Any, slot: Any, d: Any, width: int, grad: Any) -> None:
    """dE/dW_1 = X^T D_1, a row for each feature in its slot; ``grad`` is all zeros before."""
    wide = np.uint64(width)
    for n in range(np.uint64(len(rows))):
        i, at = rows[n], n * wide
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            x, to = data[p], np.uint64(slot[np.uint64(indices[p])]) * wide
            for k in range(wide):
                grad[to + k] += x * d[at + k]


@compiled
def spread(data: Any, indices: Any, indptr: Any, rows: Any, width: int, flat: Any) -> None:
    """Some rows as dense ones; ``flat`` is all zeros before."""
    for n in range(np.uint64(len(rows))):
        i = rows[n]
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            flat[n * np.uint64(width) + np.uint64(indices[p])] += data[p]


# ----------------------------------------------------------------------------------------------------
# Examples one at a time.


@Loop
def learn_rows(rows, order, y, weight, unit, loss, o, rates, due, sizes, starts, places, a, d, grad, tally):
    """A step for each example, in their order; returns how many were done, which is fewer than all if an error is
    not finite, and before anything is changed by it, or if a weight would grow beyond all measure.

    ``starts`` are those of W_1 ... W_L and b_1 ... b_L, ``places`` those of the units of each layer in ``a`` and
    ``d``, and ``due`` are the rates of the steps to come. The weights of features that an example does not have are
    left behind.
    """
    layers = len(sizes) - 1
    wide = np.uint64(sizes[1])
    taken = 0
    for n in range(len(order)):
        i = order[n]
        if weight[n] != 0.0:
            now = rates.step[0]
            begin, end = span(rows, i)
            bias = np.uint64(starts[layers])
            for k in range(wide):
                a[k] = o.w[bias + k]
            for p in range(begin, end):
                x = rows.data[p]
                if x != 0:
                    j = column(rows, p, begin)
                    since = rates.last[j]
                    if since >= 0 and since < now:
                        coast(o, j * wide, wide, rates, since, now)
                        rates.last[j] = now
                    first = j * wide
                    for k in range(wide):
                        a[k] += x * o.w[first + k]

            for l in range(1, layers):  # noqa: E741  the textbook's letter
                before, here = np.uint64(places[l - 1]), np.uint64(places[l])
                size, first, bias = np.uint64(sizes[l + 1]), np.uint64(starts[l]), np.uint64(starts[layers + l])
                for k in range(size):
                    a[here + k] = o.w[bias + k]
                for j in range(np.uint64(sizes[l])):
                    value = fire(unit, a[before + j])
                    a[before + j] = value
                    if value != 0:
                        f = a[before + j]
                        for k in range(size):
                            a[here + k] += f * o.w[first + j * size + k]

            here, size = np.uint64(places[layers - 1]), np.uint64(sizes[layers])
            for k in range(size):
                d[here + k] = a[here + k]
            error = judge(loss, d, here, size, y[n], weight[n])
            if not abs(error) <= 1e300:
                return n
            tally[MISTAKES] += is_mistake(loss, a, here, size, y[n])
            tally[ERROR] += weight[n] * error
            tally[SEEN] += 1.0

            rate, l2, none = due[taken], rates.l2[0], o.w.dtype.type(0)
            refused = 0.0
            taken += 1
            now += 1
            rates.step[0] = now
            rates.past[now % REMEMBERED] = rate
            for back in range(1, layers):
                l = layers - back  # noqa: E741
                before, here = np.uint64(places[l - 1]), np.uint64(places[l])
                size, first = np.uint64(sizes[l + 1]), np.uint64(starts[l])
                for j in range(np.uint64(sizes[l])):
                    f, total = a[before + j], none
                    for k in range(size):
                        total += d[here + k] * o.w[first + j * size + k]
                        grad[k] = f * d[here + k]
                    d[before + j] = total * slope(unit, f)
                    refused += advance(o, first + j * size, size, grad, np.uint64(0), rate, l2)
                refused += advance(o, np.uint64(starts[layers + l]), size, d, here, rate, none)
            for p in range(begin, end):
                x = rows.data[p]
                if x != 0:
                    j = column(rows, p, begin)
                    for k in range(wide):
                        grad[k] = x * d[k]
                    refused += advance(o, j * wide, wide, grad, np.uint64(0), rate, l2)
                    rates.last[j] = now
            refused += advance(o, np.uint64(starts[layers]), wide, d, np.uint64(0), rate, none)
            if refused > 0.0:
                return n
    return len(order)

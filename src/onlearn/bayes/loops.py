"""The compiled passes of naive Bayes: adding rows to counts and moments, and the logarithms of counts.

What is counted of class c and column k stands at ``c * room + k``, so the rows of a class touch one stretch of memory.
A thread adds the rows of some classes, all of them in their order. So each number is a sum in the order of the rows,
however many threads there are, and wherever the rows are cut into calls: the same to the bit.

Tables of weights have the classes of a column side by side, as ``engine.scoring`` wants them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlearn.compiler.inlining import Loop
from onlearn.engine.rows import column, span

ZERO = np.uint64(0)


@Loop
def add_counts(rows: Any, order: Any, y: Any, weight: Any, mine: Any, counts: Any, room: Any, totals: Any) -> None:
    """counts[c, k] += weight x for the rows of some classes; totals[c] has the sum of all columns."""
    for n in range(len(order)):
        c, w = np.uint64(y[n]), weight[n]
        if mine[c] and w > 0.0:
            start, stop = span(rows, order[n])
            base, total = c * np.uint64(room), 0.0
            for p in range(start, stop):
                x = w * rows.data[p]
                counts[base + column(rows, p, start)] += x
                total += x
            totals[c] += total


@Loop
def add_grouped(
    rows: Any, order: Any, y: Any, weight: Any, mine: Any, group: Any, groups: Any, counts: Any, room: Any, totals: Any
) -> None:
    """The same with a total for each group of columns."""
    for n in range(len(order)):
        c, w = np.uint64(y[n]), weight[n]
        if mine[c] and w > 0.0:
            start, stop = span(rows, order[n])
            base, first = c * np.uint64(room), c * np.uint64(groups)
            for p in range(start, stop):
                k, x = column(rows, p, start), w * rows.data[p]
                counts[base + k] += x
                totals[first + np.uint64(group[k])] += x


@Loop
def score_and_add(
    rows: Any,
    order: Any,
    y: Any,
    weight: Any,
    mine: Any,
    group: Any,
    groups: Any,
    alpha: Any,
    smoothing: Any,
    held: Any,
    counts: Any,
    room: Any,
    totals: Any,
    out: Any,
) -> None:
    """The same; but before a row is counted, out[n, c] += log p(row n | c) by the counts so far, for some classes c.

    ``smoothing`` is alpha times the number of columns of each group, and ``held`` room for the sum of a row in each.
    """
    unseen, classes = math.log(alpha), np.uint64(len(mine))
    for n in range(len(order)):
        w, gold, first = weight[n], np.uint64(y[n]), np.uint64(n) * np.uint64(len(mine))
        start, stop = span(rows, order[n])
        for g in range(groups):
            held[g] = 0.0
        for p in range(start, stop):
            held[np.uint64(group[column(rows, p, start)]) if len(group) > 0 else ZERO] += rows.data[p]
        for c in range(classes):
            if mine[c]:
                base, at, total = c * np.uint64(room), c * np.uint64(groups), 0.0
                for g in range(np.uint64(groups)):
                    if held[g] > 0.0:
                        total += held[g] * (unseen - math.log(totals[at + g] + smoothing[g]))
                for p in range(start, stop):
                    count = counts[base + column(rows, p, start)]
                    if count > 0.0:
                        total += rows.data[p] * (math.log(count + alpha) - unseen)
                out[first + c] += total
        if mine[gold] and w > 0.0:
            base, at, total = gold * np.uint64(room), gold * np.uint64(groups), 0.0
            for p in range(start, stop):
                k, x = column(rows, p, start), w * rows.data[p]
                counts[base + k] += x
                total += x
                if len(group) > 0:
                    totals[at + np.uint64(group[k])] += x
            if len(group) == 0:
                totals[gold] += total


@Loop
def add_presence(rows: Any, order: Any, y: Any, weight: Any, mine: Any, threshold: Any, counts: Any, room: Any) -> None:
    """counts[c, k] += weight where x is above the threshold."""
    for n in range(len(order)):
        c, w = np.uint64(y[n]), weight[n]
        if mine[c] and w > 0.0:
            start, stop = span(rows, order[n])
            base = c * np.uint64(room)
            for p in range(start, stop):
                counts[base + column(rows, p, start)] += w if rows.data[p] > threshold else 0.0


@Loop
def add_moments(
    rows: Any, order: Any, y: Any, weight: Any, mine: Any, heft: Any, mean: Any, spread: Any, room: Any
) -> None:
    """The weight, the mean and the sum of squared differences from it, of the values stored in the rows (West 1979)."""
    for n in range(len(order)):
        c, w = np.uint64(y[n]), weight[n]
        if mine[c] and w > 0.0:
            start, stop = span(rows, order[n])
            base = c * np.uint64(room)
            for p in range(start, stop):
                j, x = base + column(rows, p, start), np.float64(rows.data[p])
                total, change = heft[j] + w, x - mean[j]
                step = change if heft[j] == 0.0 else change * (w / total)  # of one value, the mean is the value
                heft[j] = total
                mean[j] += step
                spread[j] += w * change * (change - step)


@Loop
def log_counts(
    counts: Any,
    room: Any,
    classes: Any,
    alpha: Any,
    group: Any,
    groups: Any,
    subtract: Any,
    out: Any,
    start: Any,
    stop: Any,
) -> None:
    """out[k, c] = log(counts[c, k] + alpha) - subtract[c, group of k]. Most counts are 0, of which the log is known."""
    unseen, count = math.log(alpha), np.uint64(classes)
    for k in range(np.uint64(start), np.uint64(stop)):
        g = np.uint64(group[k]) if len(group) > 0 else ZERO
        for c in range(count):
            n = counts[c * np.uint64(room) + k]
            value = unseen if n == 0.0 else math.log(n + alpha)
            out[k * count + c] = value - subtract[c * np.uint64(groups) + g]


@Loop
def log_odds(
    counts: Any, room: Any, classes: Any, alpha: Any, weight: Any, out: Any, absent: Any, start: Any, stop: Any
) -> None:
    """out[k, c] = log of presence over absence; absent[c] += log of absence, without the common denominator.

    Presence is counts[c, k] + alpha, absence weight[c] - counts[c, k] + alpha, of which rounding may leave less than 0.
    """
    unseen, count = math.log(alpha), np.uint64(classes)
    for c in range(count):
        never, total = math.log(weight[c] + alpha), 0.0
        for k in range(np.uint64(start), np.uint64(stop)):
            n = counts[c * np.uint64(room) + k]
            there = unseen if n == 0.0 else math.log(n + alpha)
            lack = never if n == 0.0 else math.log(max(weight[c] - n, 0.0) + alpha)
            out[k * count + c] = there - lack
            total += lack
        absent[c] += total


@Loop
def log_complements(
    counts: Any, room: Any, classes: Any, alpha: Any, subtract: Any, out: Any, sums: Any, start: Any, stop: Any
) -> None:
    """out[k, c] = subtract[c] - log(counts of k in the other classes + alpha); sums[c] += their sum."""
    count = np.uint64(classes)
    for k in range(np.uint64(start), np.uint64(stop)):
        everywhere = 0.0
        for c in range(count):
            everywhere += counts[c * np.uint64(room) + k]
        most = math.log(everywhere + alpha)
        for c in range(count):
            n = counts[c * np.uint64(room) + k]
            value = most if n == 0.0 else math.log(max(everywhere - n, 0.0) + alpha)
            out[k * count + c] = subtract[c] - value
            sums[c] += subtract[c] - value


@Loop
def gaussian_scores(rows: Any, mean: Any, rate: Any, base: Any, room: Any, out: Any, start: Any, stop: Any) -> None:
    """out[i, c] += base[c] - 1/2 sum of rate (x - mean)^2 over the columns of a dense row."""
    classes = np.uint64(len(base))
    for i in range(np.uint64(start), np.uint64(stop)):
        first, past = span(rows, i)
        for c in range(classes):
            at, total = c * np.uint64(room), 0.0
            for p in range(first, past):
                j = at + (p - first)
                change = rows.data[p] - mean[j]
                total += change * change * rate[j]
            out[i * classes + c] += base[c] - 0.5 * total


@Loop
def gaussian_changes(
    rows: Any, mean: Any, rate: Any, log_rate: Any, skips: Any, base: Any, room: Any, out: Any, start: Any, stop: Any
) -> None:
    """The same for sparse rows: base[c] is the score of a row without values, and each value changes it.

    Of a column that is 0 where it is absent, base has the density at 0. Of one that is missing there (``skips``), it
    has nothing; ``log_rate`` is the logarithm of its highest density.
    """
    classes = np.uint64(len(base))
    for i in range(np.uint64(start), np.uint64(stop)):
        first, past = span(rows, i)
        for c in range(classes):
            total = base[c]
            for p in range(first, past):
                k, x = column(rows, p, first), np.float64(rows.data[p])
                j = c * np.uint64(room) + k
                if skips[k]:
                    change = x - mean[j]
                    total += log_rate[j] - 0.5 * change * change * rate[j]
                else:
                    total += rate[j] * x * (mean[j] - 0.5 * x)
            out[i * classes + c] += total

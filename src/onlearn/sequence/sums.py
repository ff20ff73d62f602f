"""Compiled forward and backward sums over the paths of a lattice; the formulas are in ``lattice``.

In powers, the forward sums of a token are divided by their total, and so are the backward sums; the totals' logarithms
add up to log Z. What is smaller than the smallest double, 1e-308, is lost: of a total above ``LOST`` that is a part of
1e-208 at most, which a backward sum below ``HUGE`` makes a probability of 1e-58. Where a sum is beyond these, log Z is
set to NaN, and the sequence is left to ``posterior_in_logarithms``.
"""

from __future__ import annotations

import numpy as np

from onlearn.compiler import REORDER, compiled

LOST = 1e-100  # the smallest total of forward sums
HUGE = 1e150  # the largest backward sum


@compiled
def lower_emissions(emissions, offsets, start, stop, initial, highest, lowered):
    """Emissions less the highest of their token, which is kept; the weights of beginnings are added to the first."""
    labels = len(initial)
    for k in range(start, stop):
        for t in range(offsets[k], offsets[k + 1]):
            top = -np.inf
            if t == offsets[k]:
                for j in range(labels):
                    lowered[t, j] = emissions[t, j] + initial[j]
                    top = max(top, lowered[t, j])
            else:
                for j in range(labels):
                    lowered[t, j] = emissions[t, j]
                    top = max(top, lowered[t, j])
            highest[t] = top
            if top > -np.inf:
                for j in range(labels):
                    lowered[t, j] -= top


@compiled(fastmath=REORDER)
def posterior_in_powers(offsets, start, stop, powers, shift, final, highest, room, scales, sums, counted, log_z,
                        marginals, counts):  # fmt: skip
    """log Z, marginals and expected transitions.

    ``marginals`` has e^(emission - highest) of each token, as ``lower_emissions`` leaves the exponents, and then the
    marginals; ``powers`` are those of the transitions less ``shift``.
    """
    labels = len(final)
    ahead, beside = sums[:labels], sums[labels:]
    for k in range(start, stop):
        first, last = offsets[k], offsets[k + 1]
        length = last - first
        log_z[k] = 0.0
        if length == 0:
            continue
        lost, total_log = False, 0.0
        for t in range(length):  # forward
            if highest[first + t] == -np.inf:
                lost = True
                break
            total = 0.0
            if t == 0:
                for j in range(labels):
                    ahead[j] = marginals[first, j]
                    total += ahead[j]
            else:
                for j in range(labels):
                    ahead[j] = 0.0
                for i in range(labels):
                    part = room[t - 1, i]
                    for j in range(labels):
                        ahead[j] += part * powers[i, j]
                for j in range(labels):
                    ahead[j] *= marginals[first + t, j]
                    total += ahead[j]
            if not total > LOST:
                lost = True
                break
            inverse = 1.0 / total
            for j in range(labels):
                room[t, j] = ahead[j] * inverse
            scales[t] = inverse
            total_log += np.log(total) + highest[first + t] + (shift if t > 0 else 0.0)
        end, top = 0.0, -np.inf
        for j in range(labels):
            top = max(top, final[j])
        if not lost and top > -np.inf:
            for j in range(labels):
                ahead[j] = np.exp(final[j] - top)
                end += room[length - 1, j] * ahead[j]
        lost = lost or not end > LOST
        if not lost:
            log_z[k] = total_log + np.log(end) + top
            for j in range(labels):
                ahead[j] /= end
            for i in range(labels):
                for j in range(labels):
                    counted[i, j] = 0.0
            for t in range(length - 1, -1, -1):  # ahead: e^b_t, scaled so that the products with room[t] add up to 1
                if t == 0:
                    for j in range(labels):
                        marginals[first, j] = room[0, j] * ahead[j]
                    break
                for j in range(labels):
                    beside[j] = marginals[first + t, j] * ahead[j] * scales[t]  # e^(emission + b_t)
                    marginals[first + t, j] = room[t, j] * ahead[j]
                biggest = 0.0
                for i in range(labels):
                    total, part = 0.0, room[t - 1, i]
                    for j in range(labels):
                        total += powers[i, j] * beside[j]
                        counted[i, j] += part * beside[j]
                    ahead[i] = total
                    biggest = max(biggest, total)
                if not biggest < HUGE:  # of a label that is next to impossible so far, and the only one from here on
                    lost = True
                    break
        if lost:
            log_z[k] = np.nan
            for t in range(first, last):
                for j in range(labels):
                    marginals[t, j] = 0.0
            continue
        for i in range(labels):
            for j in range(labels):
                counts[i, j] += counted[i, j] * powers[i, j]


@compiled
def posterior_in_logarithms(emissions, offsets, which, transitions, initial, final, forward, backward, sums, log_z,
                            marginals, counts):  # fmt: skip
    """The same of the sequences ``which``, by sums of powers relative to the largest of each sum."""
    labels = len(initial)
    for k in which:
        first, last = offsets[k], offsets[k + 1]
        length = last - first
        for t in range(length):
            for j in range(labels):
                if t == 0:
                    forward[t, j] = initial[j] + emissions[first, j]
                    continue
                highest = -np.inf
                for i in range(labels):
                    highest = max(highest, forward[t - 1, i] + transitions[i, j])
                total = 0.0
                if highest > -np.inf:
                    for i in range(labels):
                        total += np.exp(forward[t - 1, i] + transitions[i, j] - highest)
                forward[t, j] = emissions[first + t, j] + highest + (np.log(total) if total > 0.0 else 0.0)
        for j in range(labels):
            backward[length - 1, j] = final[j]
        for t in range(length - 2, -1, -1):
            for i in range(labels):
                highest = -np.inf
                for j in range(labels):
                    sums[j] = transitions[i, j] + emissions[first + t + 1, j] + backward[t + 1, j]
                    highest = max(highest, sums[j])
                total = 0.0
                if highest > -np.inf:
                    for j in range(labels):
                        total += np.exp(sums[j] - highest)
                backward[t, i] = highest + (np.log(total) if total > 0.0 else 0.0)
        highest, total = -np.inf, 0.0
        for j in range(labels):
            highest = max(highest, forward[length - 1, j] + final[j])
        if highest > -np.inf:
            for j in range(labels):
                total += np.exp(forward[length - 1, j] + final[j] - highest)
        log_z[k] = highest + (np.log(total) if total > 0.0 else 0.0)
        if highest == -np.inf:  # no path is allowed
            continue
        for t in range(length):
            for j in range(labels):
                marginals[first + t, j] = np.exp(forward[t, j] + backward[t, j] - log_z[k])
        for t in range(length - 1):
            for i in range(labels):
                for j in range(labels):
                    ahead = transitions[i, j] + emissions[first + t + 1, j] + backward[t + 1, j]
                    counts[i, j] += np.exp(forward[t, i] + ahead - log_z[k])

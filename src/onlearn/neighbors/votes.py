"""Votes of neighbours, and the number of neighbours that is best.

A neighbour votes for its label with its own weight, and by distance: d_1 / d_r, where d_1 is the distance of the
nearest. That is 1 / d_r up to a factor that all votes share, and cannot overflow. Neighbours at distance 0 have all
votes if there are any. Votes are added in the order of the neighbours; at equal votes the first class wins.

The error for every k is found in one walk over the sorted neighbours of each row: with k + 1 neighbours one label has
more votes than with k, so that it or the winner so far wins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.neighbors.search import Index, nearest

MOST_SCORED = 20_000  # rows that k is chosen by; of more, so many that lie evenly among all


@compiled
def vote(distance, first, by_distance):
    """The weight of a neighbour at this distance, where the nearest is at ``first``."""
    share = 1.0
    if by_distance and distance != first:
        share = first / distance
    return share


@compiled
def tally(distances, numbers, k, labels, weights, by_distance, out):
    """Shares of the votes of each class, of the first k neighbours."""
    for i in range(len(out)):
        total = 0.0
        for r in range(k):
            row = numbers[i, r]
            weight = weights[row] * vote(distances[i, r], distances[i, 0], by_distance)
            out[i, labels[row]] += weight
            total += weight
        for c in range(out.shape[1]):
            out[i, c] /= total


@compiled
def step_of_mean(mean, target, share):
    """The mean with one more target, which has a share of it; the gap of two that are huge would overflow."""
    gap = target - mean
    return mean + share * gap if abs(gap) <= 1e308 else mean * (1.0 - share) + target * share


@compiled
def mean_of_neighbours(distances, numbers, k, targets, weights, by_distance, out):
    """The weighted mean of the numbers of the first k neighbours."""
    for i in range(len(out)):
        total, mean = 0.0, 0.0
        for r in range(k):
            row = numbers[i, r]
            weight = weights[row] * vote(distances[i, r], distances[i, 0], by_distance)
            total += weight
            mean = step_of_mean(mean, targets[row], weight / total if total > 0.0 else 0.0)
        out[i] = mean


@compiled
def mistakes_by_k(distances, numbers, rows, labels, weights, by_distance, votes, out):
    """Add up for every k the weights of the rows that their first k neighbours call by another label."""
    for i in range(len(rows)):
        best = labels[numbers[i, 0]]
        truth, own = labels[rows[i]], weights[rows[i]]
        for r in range(len(out)):
            label = labels[numbers[i, r]]
            votes[label] += weights[numbers[i, r]] * vote(distances[i, r], distances[i, 0], by_distance)
            if votes[label] > votes[best] or (votes[label] == votes[best] and label < best):
                best = label
            out[r] += own if best != truth else 0.0
        for r in range(len(out)):
            votes[labels[numbers[i, r]]] = 0.0


@compiled
def squares_by_k(distances, numbers, rows, targets, weights, by_distance, out):
    """Add up for every k the weighted squared errors of the means of the first k neighbours."""
    for i in range(len(rows)):
        total, mean = 0.0, 0.0
        for r in range(len(out)):
            row = numbers[i, r]
            weight = weights[row] * vote(distances[i, r], distances[i, 0], by_distance)
            total += weight
            mean = step_of_mean(mean, targets[row], weight / total if total > 0.0 else 0.0)
            gap = targets[rows[i]] - mean
            out[r] += weights[rows[i]] * gap * gap


class KPath(NamedTuple):
    """The error for every number of neighbours, from 1 on."""

    errors: np.ndarray
    rows: int  # that they were measured on

    @property
    def best(self) -> int:
        """The k of the least error; of several the smallest."""
        return int(np.argmin(self.errors)) + 1


def path_of_k(index: Index, X: Any, take: Any, targets: np.ndarray, weights: np.ndarray, by_distance: bool,
              classes: int, most: int) -> KPath:  # fmt: skip
    """Leave-one-out errors for k up to ``most``, from one search of the neighbours of each row among all others.

    ``classes`` is 0 in regression, where the error is the mean squared one; ``take`` takes some of the rows X.
    """
    count = len(index)
    most = min(most, count - 1)
    if most < 1:
        return KPath(np.zeros(1), 0)
    rows = np.arange(count) if count <= MOST_SCORED else np.arange(MOST_SCORED) * count // MOST_SCORED
    distances, numbers = nearest(index, X if len(rows) == count else take(X, rows), most, rows)
    errors = np.zeros(most)
    if classes:
        mistakes_by_k(distances, numbers, rows, targets, weights, by_distance, np.zeros(classes), errors)
    else:
        scale = max(1.0, float(np.abs(targets).max()))  # squares of large numbers would overflow
        squares_by_k(distances, numbers, rows, targets / scale, weights, by_distance, errors)
        errors *= scale * scale
    return KPath(errors / weights[rows].sum(), len(rows))

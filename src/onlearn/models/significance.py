"""Paired significance: is the difference between two learners on the same rows more than noise?

- ``mcnemar``: of the rows that exactly one of two classifiers gets right, b and c many, about half would be the first
  one's if both were equally good: b ~ Binomial(b + c, 1/2). The p-value is two-sided, by the mid-p convention
  (Fagerland, Lydersen & Laake 2013): exact, but an outcome as extreme as the observed one counts half. The interval of
  the difference of accuracies is that of Bonett & Price (2012).
- ``paired_bootstrap``: rows are drawn again with replacement, both losses of a row together, and the mean difference is
  computed each time (Efron & Tibshirani 1993); the interval holds the middle 95 % of these differences.
- ``holm``: p-values of several comparisons, so adjusted that all verdicts together are right with 95 % (Holm 1979).

A difference is positive if the first is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

LEVEL = 0.95  # of intervals; a difference is shown if its adjusted p-value is below 1 - LEVEL
RESAMPLES = 10_000
GROUPS = 2_000  # rows; of more, random groups are drawn, so that the time does not grow
DRAWN = 1 << 22  # numbers of rows at a time


class Difference(NamedTuple):
    """How much better the first of two is, an interval of 95 %, and the p-value of a difference of 0."""

    test: str
    difference: float
    low: float
    high: float
    p: float


def mcnemar(first: np.ndarray, second: np.ndarray) -> Difference:
    """Compare two classifiers by which of the same rows each of them predicts right.

    >>> first = np.array([True] * 60 + [False] * 40)
    >>> second = np.array([True] * 45 + [False] * 55)
    >>> found = mcnemar(first, second)
    >>> round(found.difference, 2), f"{found.p:.6f}"
    (0.15, '0.000031')
    """
    rows = len(first)
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    p = mid_p(only_first, only_second)
    # One row more of each kind, and the interval of the normal distribution covers what it says.
    b, c = (only_first + 1) / (rows + 2), (only_second + 1) / (rows + 2)
    wide = _normal_quantile() * math.sqrt((b + c - (b - c) ** 2) / (rows + 2))
    difference = (only_first - only_second) / rows if rows else 0.0
    return Difference("mcnemar", difference, max(b - c - wide, -1.0), min(b - c + wide, 1.0), p)


def mid_p(only_first: int, only_second: int) -> float:
    """The mid-p value of McNemar's test, by the rows that only one of the two gets right.

    >>> mid_p(0, 0), mid_p(5, 0)
    (1.0, 0.03125)
    """
    fewer, discordant = min(only_first, only_second), only_first + only_second
    if not discordant:
        return 1.0
    # log of the binomial coefficients by their ratios: C(n, i + 1) / C(n, i) = (n - i) / (i + 1)
    i = np.arange(fewer, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((discordant - i) / (i + 1)))]) - discordant * math.log(2.0)
    chances = np.exp(logs)
    if only_first == only_second:
        return float(1.0 - chances[-1] / 2)
    return float(min(1.0, 2 * chances.sum() - chances[-1]))


def paired_bootstrap(first: np.ndarray, second: np.ndarray, seed: int = 0) -> Difference:
    """Compare two learners by their losses on the same rows, such as log-losses or squared errors.

    >>> rng = np.random.default_rng(0)
    >>> found = paired_bootstrap(rng.random(500), rng.random(500) + 0.2)
    >>> found.low < 0.2 < found.high, found.p < 0.01
    (True, True)
    """
    better = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    if not len(better):
        return Difference("bootstrap", 0.0, 0.0, 0.0, 1.0)
    rng = np.random.default_rng([seed, len(better)])
    units = better
    if len(better) > GROUPS:  # groups of equal size, but for a few rows that are left over
        units = rng.permutation(better)[: len(better) // GROUPS * GROUPS].reshape(GROUPS, -1).mean(axis=1)
    means = np.empty(RESAMPLES)
    at_once = max(1, DRAWN // len(units))
    for start in range(0, RESAMPLES, at_once):
        stop = min(start + at_once, RESAMPLES)
        means[start:stop] = units[rng.integers(0, len(units), (stop - start, len(units)))].mean(axis=1)
    difference = float(better.mean())
    means += difference - float(units.mean())  # nothing, unless rows are left over
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    against = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    p = min(1.0, 2 * (int(against) + 1) / (RESAMPLES + 1))
    return Difference("bootstrap", difference, float(low), float(high), p)


def holm(values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number: the smallest times n, the next times n - 1, and so on, in order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [1.0] * len(values)
    largest = 0.0
    for place, n in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - place) * values[n]))
        adjusted[n] = largest
    return adjusted


def _normal_quantile() -> float:
    return NormalDist().inv_cdf((1 + LEVEL) / 2)

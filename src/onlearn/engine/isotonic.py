"""Isotonic regression: the best function that never falls, by pooling adjacent violators.

Given pairs (x, y) in the order of x, minimise sum w (f(x) - y)^2 over all f that never fall. Each x begins as a block
of its own; while a block's mean is not above that of the block before it, the two are pooled (Ayer, Brunk, Ewing, Reid
& Silverman 1955). Of scores and labels 0 and 1 the means are probabilities (Zadrozny & Elkan 2002).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop


class Steps(NamedTuple):
    """A function that never falls: flat from the first to the last x of a block, straight lines between blocks."""

    x: np.ndarray
    y: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.interp(x, self.x, self.y)


@Loop
def _pool(value: Any, weight: Any, last: Any) -> int:
    """Pool adjacent violators in place; the first so many places then hold the blocks, and where each of them ends."""
    blocks = 0
    for n in range(len(value)):
        v, w = value[n], weight[n]
        while blocks > 0 and value[blocks - 1] >= v:
            blocks -= 1
            total = weight[blocks] + w
            v = value[blocks] + (v - value[blocks]) * (w / total)
            w = total
        value[blocks], weight[blocks], last[blocks] = v, w, n
        blocks += 1
    return blocks


def pooled(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The sequence that never falls and is nearest to y, by weighted squares.

    >>> pooled(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    array([1. , 2.5, 2.5, 4. ])
    """
    value, mass, last = y.astype(np.float64), weight.astype(np.float64), np.zeros(len(y), dtype=np.int64)
    blocks = _pool(value, mass, last)
    return np.repeat(value[:blocks], np.diff(last[:blocks], prepend=-1))


def fit_steps(x: np.ndarray, positive: np.ndarray) -> Steps:
    """The share of positive examples as a function of x that never falls.

    Its values keep a distance from 0 and 1, as if one example more had been of either kind at each end.

    >>> fit_steps(np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, True, False, True]))(np.array([0.25])).round(3)
    array([0.5])
    """
    places, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(which.reshape(-1), weights=positive.astype(np.float64), minlength=len(places)) / counts
    shares = pooled(means, counts)
    least = 1.0 / (len(x) + 2)
    shares = np.clip(shares, least, 1.0 - least)
    ends = np.ones(len(places), dtype=bool)  # of blocks: places within tell nothing
    ends[1:-1] = (shares[1:-1] != shares[:-2]) | (shares[1:-1] != shares[2:])
    return Steps(places[ends], shares[ends])

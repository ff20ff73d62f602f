"""Sequences of examples on which a learner errs as often as it can."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlearn.theory.concepts import Disjunction
from onlearn.theory.instances import Bools, as_count


class WorstCase(NamedTuple):
    """Examples in the order they are shown, and the concept they are examples of."""

    X: Bools
    y: NDArray[np.int64]
    target: Disjunction


def hadamard_sequence(n: int, k: int = 1) -> WorstCase:
    """Examples of a disjunction of k among n attributes, at every one of which the Perceptron errs.

    There are N - 2 of them, where N is the largest power of two up to n - k + 1: more than (n - k + 1) / 2 - 2.

    The rows are those of a Hadamard matrix with 0 for -1. Any two of them share N/4 attributes, so the score of the
    next row is promotions less demotions times N/4 (with an intercept, N/4 + 1). Positive and negative examples take
    turns: before a positive one the score is 0, which is predicted as 0 and counts as a mistake, before a negative one
    it is positive. This holds for any size of the constant feature and any rate, if sums of it do not round. Winnow
    makes at most 3k(log2 n + 1) + 2 mistakes. After J. Kivinen, M. Warmuth and P. Auer, The Perceptron algorithm versus
    Winnow, 1997.

    >>> X, y, target = hadamard_sequence(10, k=2)
    >>> X.shape, y.tolist(), print(target)
    x2 | x10
    ((6, 10), [1, 0, 1, 0, 1, 0], None)
    """
    n, k = as_count("n", n, least=1), as_count("k", k, least=1)
    room = n - k + 1
    if room < 4:
        raise ValueError(f"The sequence needs n >= k + 3, but n is {n} and k is {k}.")
    size = 1 << (room.bit_length() - 1)
    numbers = np.arange(size)
    shared = numbers[:, None] & numbers
    odd = np.zeros_like(shared)
    while shared.any():
        odd ^= shared & 1
        shared >>= 1
    rows = odd == 0  # Sylvester's matrix: +1 where i and j have an even number of bits in common
    positive, negative = (np.flatnonzero(rows[:, 1] == label) for label in (True, False))
    turns = np.stack([positive[1:], negative[: len(positive) - 1]], axis=1).ravel()  # all but the row of ones
    X = np.zeros((len(turns), n), dtype=bool)
    X[:, :size] = rows[turns]
    return WorstCase(X, X[:, 1].astype(np.int64), Disjunction([2, *range(n - k + 2, n + 1)], n=n))

"""Cycles of the Perceptron: when the weights come back, and what that proves.

A Perceptron that visits rows in a fixed order and has weights again that it had at the end of an earlier pass will have
them for ever. The steps between add up to zero: sum c_i y_i x_i = 0, where c_i >= 0 counts the mistakes on row i. By
Gordan's theorem no w then has y_i w.x_i > 0 for all rows. That needs the sum itself to be zero, not only the sum of
rounded steps, so the mistakes of one cycle are counted and the sum is formed in whole numbers, without rounding. With
several classes a step adds x to the right class and takes it from a rival, and the sum of every class must be zero.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.csr import CSR, is_sparse, rows_at

LONGEST = 1 << 20  # visits of rows in a cycle that is run again to count its mistakes: some seconds
ROOM = 1 << 27  # bytes for the weights of examples at the ends of passes
DIGITS = 53  # of a float64


class Met(NamedTuple):
    """The end of a pass: its number, and the weights of examples there, if the learner has such and they were kept."""

    passes: int
    weights: np.ndarray | None


class Cycle:
    """Remembers what decides the course of learning at the ends of passes, by digest."""

    def __init__(self, training: Any, X: Any) -> None:
        self.passes, self.room = 0, ROOM
        self.met = {self._digest(training, X): Met(0, self._kept(training))}

    def closed(self, training: Any, X: Any) -> Met | None:
        """The end of an earlier pass at which everything was as it is now; None if there is none."""
        self.passes += 1
        digest = self._digest(training, X)
        earlier = self.met.get(digest)
        if earlier is None:
            self.met[digest] = Met(self.passes, self._kept(training))
        return earlier

    def _kept(self, training: Any) -> np.ndarray | None:
        """The weights of examples, as long as there is room for them; a cycle from beyond proves nothing."""
        weights = training.example_weights()
        self.room -= 0 if weights is None else weights.nbytes
        return weights if self.room >= 0 else None

    @staticmethod
    def _digest(training: Any, X: Any) -> bytes:
        return hashlib.blake2b(training.course(X), digest_size=16).digest()


def signs_of_steps(s: np.ndarray, y: float, output: str | None) -> np.ndarray:
    """Which outputs the Perceptron moves at these scores: +1 is a promotion, -1 a demotion."""
    if output is None:
        return np.array([y * (y * s[0] <= 0.0)])
    gold = np.arange(len(s)) == int(y)
    if output == "one-vs-all":
        sides = np.where(gold, 1.0, -1.0)
        return np.asarray(sides * (sides * s <= 0.0))
    rival = int(np.argmax(np.where(gold, -np.inf, s)))
    wrong = s[int(y)] <= s[rival]
    return np.asarray(wrong * (gold.astype(np.float64) - (np.arange(len(s)) == rival)))


def count_steps(w: np.ndarray, X: Any, y: np.ndarray, weight: np.ndarray, bias: float, rate: float,
                passes: int, output: str | None = None) -> np.ndarray | None:  # fmt: skip
    """The steps of each row in some passes from the weights w: (rows x outputs), counted by sign; None if too many.

    ``w`` is (1 + features) x outputs, the weights of the constant feature first. y is -1 or +1, and the class if there
    is a kind of ``output``: "one-vs-all" or "true".

    >>> X, y = np.array([[1.0], [1.0]]), np.array([1.0, -1.0])
    >>> count_steps(np.zeros((2, 1)), X, y, np.ones(2), 0.0, 1.0, 1)
    array([[ 1.],
           [-1.]])
    """
    rows, outputs = X.shape[0], w.shape[1]
    if rows * passes > LONGEST:
        return None
    w, counts = w.copy(), np.zeros((rows, outputs))
    everywhere = np.arange(w.shape[0] - 1)
    for i in np.tile(np.flatnonzero(weight), passes).tolist():
        if is_sparse(X):
            held = slice(int(X.indptr[i]), int(X.indptr[i + 1]))
            x, columns = X.data[held], X.indices[held]
        else:
            x, columns = X[i], everywhere
        s = x @ w[1 + columns] + bias * w[0]
        signs = signs_of_steps(s, y[i], output)
        if signs.any():
            counts[i] += signs
            step = rate * weight[i] * signs
            np.add.at(w, 1 + columns, x[:, None] * step)  # a sparse row may have a column twice
            w[0] += bias * step
    return counts


def is_zero_sum(multipliers: np.ndarray, X: Any, bias: float) -> bool:
    """Whether sum_i multipliers_ik (x_i, bias) is exactly zero for every output k, and the multipliers are not.

    >>> is_zero_sum(np.array([[1.0], [-1.0]]), np.array([[0.1], [0.1]]), 1.0)
    True
    >>> is_zero_sum(np.array([[1.0], [1.0], [-1.0]]), np.array([[0.1], [0.2], [0.3]]), 0.0)  # 0.1 + 0.2 is not 0.3
    False
    """
    some = np.flatnonzero(multipliers.any(axis=1))
    if not len(some) or not np.isfinite(multipliers).all():
        return False
    X, multipliers = rows_at(X, some), multipliers[some]
    part = X if is_sparse(X) else CSR.of(np.asarray(X))
    lengths = np.diff(part.indptr)
    first, last = int(part.indptr[0]), int(part.indptr[-1])
    values, columns = part.data[first:last].astype(np.float64), part.indices[first:last]
    return all(
        (bias == 0.0 or math.fsum(of_output) == 0.0) and _is_zero(np.repeat(of_output, lengths), values, columns)
        for of_output in multipliers.T
    )


def _is_zero(a: np.ndarray, x: np.ndarray, columns: np.ndarray) -> bool:
    """Whether the products a x have an exact sum of zero in every column."""
    there = (a != 0.0) & (x != 0.0)
    a, x, columns = a[there], x[there], columns[there]
    if not len(a):
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        rough = np.abs(np.bincount(columns, a * x)) > 1e-9 * np.bincount(columns, np.abs(a * x))
    if rough.any():
        return False
    by_column = np.argsort(columns, kind="stable")
    whole, exponent = _whole(a[by_column])
    other, other_exponent = _whole(x[by_column])
    exponent = exponent + other_exponent
    terms = (whole * other) << (exponent - exponent.min()).astype(object)
    starts = np.flatnonzero(np.diff(columns[by_column], prepend=-1))
    return not np.add.reduceat(terms, starts).any()


def _whole(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, e): each number is m 2^e with m a whole number of Python, which has as many digits as it takes."""
    fraction, exponent = np.frexp(numbers)
    return np.ldexp(fraction, DIGITS).astype(np.int64).astype(object), exponent.astype(np.int64) - DIGITS

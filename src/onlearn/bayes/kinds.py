"""The kinds of naive Bayes: from what was counted to the logarithm of p(x | class).

==============  ==========================================================================================
multinomial     x has counts: log p = sum_k x_k log theta_kc,  theta_kc = (n_kc + a) / (n_c + a d)
bernoulli       x is present or absent: theta_kc = (n_kc + a) / (N_c + 2 a), and 1 - theta_kc of what is absent
complement      w_kc = -log theta~_kc, estimated from all classes but c (Rennie et al. 2003); with ``norm`` each
                class's weights are divided by the sum of their sizes
gaussian        log p = -1/2 sum_k (log(2 pi v_kc) + (x_k - m_kc)^2 / v_kc)
==============  ==========================================================================================

n_kc is the sum of weight times value of column k in class c, N_c the weight of the rows of class c, a ``alpha``. The
first three are linear in x: a ``Linear`` hypothesis. v_kc is the variance plus ``var_smoothing`` times the largest
variance of a column over all classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlearn.bayes import loops
from onlearn.bayes.counts import Counts, Moments, merged_moments
from onlearn.engine.csr import CSR, as_rows, is_sparse
from onlearn.engine.scoring import linear_scores
from onlearn.threads import cores, over_pieces

KINDS = ("multinomial", "bernoulli", "complement", "gaussian")
LINEAR = ("multinomial", "bernoulli", "complement")
PIECE = 1 << 13  # columns of a table made at a time: a fixed number, for sums depend on it
SMALLEST = 1e-300  # variance
LARGEST = 1e150  # beyond it, squares are no numbers any more


@dataclass(frozen=True)
class Linear:
    """log p(x | class) = x . weights + base, of x or, with a ``threshold``, of whether x is above it."""

    weights: np.ndarray  # (columns, classes)
    base: np.ndarray  # (classes,)
    threshold: float | None = None

    @property
    def width(self) -> int:
        return len(self.weights)

    def rows(self, X: Any) -> Any:
        """X as the weights take it."""
        return X if self.threshold is None else binary(X, self.threshold)

    def add_scores(self, X: Any, out: np.ndarray) -> None:
        out += linear_scores(self.rows(X), self.weights, self.base)[0]

    def contributions(self, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What each value adds to log p, by class; the rest is ``base``."""
        made = values if self.threshold is None else (values > self.threshold).astype(np.float64)
        return self.weights[columns] * made[:, None]


@dataclass(frozen=True)
class Gaussian:
    """log p(x | class) by mean and 1 / variance of each class and column."""

    mean: np.ndarray  # (classes, columns)
    rate: np.ndarray
    skips: np.ndarray  # (columns,) whether a value that is absent from a sparse row is missing; else it is 0

    @property
    def width(self) -> int:
        return self.mean.shape[1]

    @property
    def log_rate(self) -> np.ndarray:
        return 0.5 * (np.log(self.rate) - np.log(2 * np.pi))

    @property
    def base(self) -> np.ndarray:
        """log p of a row without values."""
        with np.errstate(over="ignore"):
            at_zero = self.log_rate - 0.5 * self.mean * self.mean * self.rate
        return np.where(self.skips, 0.0, at_zero).sum(axis=1)

    def add_scores(self, X: Any, out: np.ndarray) -> None:
        mean, rate, flat = self.mean.reshape(-1), self.rate.reshape(-1), out.reshape(-1)
        room = self.mean.shape[1]
        X = X if is_sparse(X) else np.ascontiguousarray(X)
        rows = as_rows(X, 0.0)

        def sparse(start: int, stop: int) -> None:
            loops.gaussian_changes(rows, mean, rate, log_rate, self.skips, base, room, flat, start, stop)

        def dense(start: int, stop: int) -> None:
            loops.gaussian_scores(rows, mean, rate, base, room, flat, start, stop)

        if is_sparse(X):
            log_rate = self.log_rate.reshape(-1)
            base, work = self.base, sparse
            cost = X.nnz * len(base)
        else:
            base, work = self.log_rate.sum(axis=1), dense
            cost = X.size * len(base)
        spread(work, X.shape[0], 1 + cost // (1 << 16))

    def contributions(self, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What each value adds to log p, by class; the rest is ``base``."""
        mean, rate = self.mean[:, columns], self.rate[:, columns]
        itself = self.log_rate[:, columns] - 0.5 * rate * (values - mean) ** 2
        return np.where(self.skips[columns], itself, rate * values * (mean - 0.5 * values)).T


def spread(work: Any, rows: int, pieces: int) -> None:
    """Call ``work(start, stop)`` for so many pieces of the rows, in threads."""
    pieces = max(1, min(pieces, rows))
    over_pieces(lambda n: work(rows * n // pieces, rows * (n + 1) // pieces), pieces, min(cores(), pieces))


def binary(X: Any, threshold: float) -> Any:
    """1 where X is above the threshold, else 0."""
    if not is_sparse(X):
        return (threshold < X).astype(X.dtype)
    data = X.data
    if threshold < 1.0 and (data == 1.0).all():
        return X
    made = CSR(data, X.indices, X.indptr, X.shape, unique=True, finite=True)
    return replace(made, data=(data > threshold).astype(data.dtype))


# ----------------------------------------------------------------------------------------------------
# Hypotheses of counts.


def multinomial(state: Counts, alpha: float) -> Linear:
    """Weights log theta_kc; each group of columns has its own n_c and d, as it is a choice among its columns."""
    subtract = np.log(state.totals + alpha * np.maximum(state.sizes(), 1.0))
    made, classes = np.empty((state.features, state.classes)), state.classes
    counts, group = state.flat("counts"), state.group
    groups = state.totals.shape[1]

    def piece(start: int, stop: int) -> None:
        loops.log_counts(
            counts, state.room, classes, alpha, group, groups, subtract.reshape(-1), made.reshape(-1), start, stop
        )

    in_pieces(piece, state)
    return Linear(made, np.zeros(classes))


def multinomial_of(state: Counts, alpha: float, columns: np.ndarray) -> Linear:
    """The same of some columns alone."""
    subtract = np.log(state.totals + alpha * np.maximum(state.sizes(), 1.0))
    group = state.group[columns] if len(state.group) else np.zeros(len(columns), np.int32)
    made = np.log(state.lines["counts"][:, columns] + alpha) - subtract[:, group]
    return Linear(np.ascontiguousarray(made.T), np.zeros(state.classes))


def bernoulli(state: Counts, weight: np.ndarray, alpha: float, threshold: float) -> Linear:
    """Weights log theta_kc / (1 - theta_kc); the base is the sum of log(1 - theta_kc)."""
    made, classes = np.empty((state.features, state.classes)), state.classes
    counts, absent = state.flat("counts"), np.zeros((pieces_of(state), classes))

    def piece(start: int, stop: int) -> None:
        sums = absent[start // PIECE]
        loops.log_odds(counts, state.room, classes, alpha, weight, made.reshape(-1), sums, start, stop)

    in_pieces(piece, state)
    return Linear(made, absent.sum(axis=0) - state.features * np.log(weight + 2.0 * alpha), threshold)


def complement(state: Counts, alpha: float, norm: bool) -> Linear:
    """Weights -log theta~_kc."""
    made, classes = np.empty((state.features, state.classes)), state.classes
    counts, sums = state.flat("counts"), np.zeros((pieces_of(state), classes))
    totals = state.totals[:, 0]
    subtract = np.log(np.maximum(totals.sum() - totals, 0.0) + alpha * max(state.features, 1))

    def piece(start: int, stop: int) -> None:
        some = sums[start // PIECE]
        loops.log_complements(counts, state.room, classes, alpha, subtract, made.reshape(-1), some, start, stop)

    in_pieces(piece, state)
    if norm:
        total = sums.sum(axis=0)  # above d log d, for the theta~ of d columns sum to 1
        made *= np.where(total > 0.5, 1.0 / np.maximum(total, 0.5), 0.0)  # one column alone says nothing
    return Linear(made, np.zeros(classes))


def pieces_of(state: Counts) -> int:
    return max(1, -(-state.features // PIECE))


def in_pieces(work: Any, state: Counts) -> None:
    """Call ``work(start, stop)`` for each piece of the columns, in threads."""
    pieces = pieces_of(state)
    over_pieces(lambda n: work(n * PIECE, min((n + 1) * PIECE, state.features)), pieces, min(cores(), pieces))


# ----------------------------------------------------------------------------------------------------
# Hypotheses of moments.


def gaussian(state: Moments, weight: np.ndarray, var_smoothing: float, skips: np.ndarray) -> Gaussian:
    """Means and variances; ``weight`` is that of the rows of each class.

    Values that are absent from sparse rows are zeros, which are merged in here, unless they are missing (``skips``). A
    column that was never met in a class has the mean and variance of all classes there, which speak for none.
    """
    heft, mean, spread_ = (state.used(name) for name in state.names)
    zeros = np.where(skips, 0.0, np.maximum(weight[:, None] - heft, 0.0))
    heft, mean, spread_ = merged_moments(heft, mean, spread_, zeros, 0.0, 0.0)
    everywhere = heft[:1], mean[:1], spread_[:1]
    for c in range(1, len(heft)):
        everywhere = merged_moments(*everywhere, heft[c : c + 1], mean[c : c + 1], spread_[c : c + 1])
    total, middle, around = everywhere
    overall = around / np.where(total > 0.0, total, 1.0)
    variance = np.where(heft > 0.0, spread_ / np.where(heft > 0.0, heft, 1.0), overall)
    largest = float(overall.max(initial=0.0))
    if largest == 0.0:  # all columns are constant, and as far from every class: any scale will do
        variance = np.ones_like(variance)
    variance = np.maximum(variance + var_smoothing * largest, SMALLEST)
    return Gaussian(np.where(heft > 0.0, mean, middle), 1.0 / variance, skips)

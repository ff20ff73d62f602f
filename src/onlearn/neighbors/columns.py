"""Columns of rows: which are numbers, categories or neither, and how far the numbers spread.

Distances depend on the unit that a column is measured in. So numbers are brought to variance 1, as they are in the rows
kept: the mean and the variance are computed anew, in two passes over these rows in double precision, once rows were
added. So they are those of the rows, however these came. Columns that hold nothing but 0 and 1 are Booleans, and stay:
there (x - z)^2 says whether they differ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.csr import CSR

CHUNK = 1 << 20  # numbers that are converted at a time
SMALLEST = 1e-290  # deviations below are as good as none


class Columns(NamedTuple):
    """What is known of the columns: three arrays as long as there are columns."""

    categories: np.ndarray  # whether values are compared by equality
    numbers: np.ndarray  # whether they may be brought to variance 1
    weights: np.ndarray  # how much a column counts

    @classmethod
    def of(cls, width: int, categories: Any = (), weights: Any = None) -> Columns:
        """Columns of numbers but for the categories."""
        chosen = np.zeros(width, bool)
        chosen[list(categories)] = True
        return cls(chosen, ~chosen, np.ones(width) if weights is None else np.asarray(weights, np.float64))


class Spread(NamedTuple):
    """Mean and standard deviation of each column; 0 and 1 where it is not scaled."""

    means: np.ndarray
    deviations: np.ndarray


def spread_of(X: Any, columns: Columns, scale: bool) -> Spread:
    """The spread of the columns of numbers in these rows, a dense array or CSR."""
    means, deviations = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if scale and X.shape[0]:
        lowest, highest = extremes(X)
        scaled = columns.numbers & (lowest < highest) & ~_are_booleans(X, lowest, highest)
        if scaled.any():
            found = _sparse_moments(X) if isinstance(X, CSR) else _dense_moments(X, lowest, highest)
            means[scaled], deviations[scaled] = found[0][scaled], np.maximum(found[1][scaled], SMALLEST)
    return Spread(means, deviations)


def extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest number of each column, in double precision."""
    if not isinstance(X, CSR):
        return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    lowest, highest = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    np.minimum.at(lowest, X.indices, X.data)
    np.maximum.at(highest, X.indices, X.data)
    some_zero = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
    lowest[some_zero] = np.minimum(lowest[some_zero], 0)
    highest[some_zero] = np.maximum(highest[some_zero], 0)
    return lowest, highest


def _are_booleans(X: Any, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Whether columns hold nothing but 0 and 1: x = x^2."""
    may = (lowest == 0) & (highest == 1)
    if not may.any():
        return may
    if isinstance(X, CSR):
        may[X.indices[(X.data != 0) & (X.data != 1)]] = False
        return may
    chosen = np.flatnonzero(may)
    step = max(1, CHUNK // len(chosen))
    for start in range(0, len(X), step):
        some = X[start : start + step, chosen] if len(chosen) < X.shape[1] else X[start : start + step]
        may[chosen[((some != 0) & (some != 1)).any(axis=0)]] = False
    return may


def _dense_moments(X: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each column; in units of powers of two, so that no square overflows."""
    unit = power_of_two(np.maximum(np.abs(lowest), np.abs(highest)))
    total, rest, squares = (np.zeros(X.shape[1]) for _ in range(3))
    step = max(1, CHUNK // max(1, X.shape[1]))
    for start in range(0, len(X), step):
        total += (X[start : start + step] * unit).sum(axis=0)
    mean = total / len(X)
    for start in range(0, len(X), step):
        gaps = X[start : start + step] * unit - mean
        rest += gaps.sum(axis=0)
        squares += (gaps * gaps).sum(axis=0)
    variance = np.maximum(squares - rest * rest / len(X), 0) / len(X)
    return mean / unit, np.sqrt(variance) / unit


def _sparse_moments(X: CSR) -> tuple[np.ndarray, np.ndarray]:
    count, width = X.shape
    lowest, highest = extremes(X)
    unit = power_of_two(np.maximum(np.abs(lowest), np.abs(highest)))
    values = X.data * unit[X.indices]
    held = np.bincount(X.indices, minlength=width)
    mean = np.bincount(X.indices, values, width) / count
    gaps = values - mean[X.indices]
    rest = np.bincount(X.indices, gaps, width) - (count - held) * mean
    squares = np.bincount(X.indices, gaps * gaps, width) + (count - held) * mean * mean
    variance = np.maximum(squares - rest * rest / count, 0) / count
    return mean / unit, np.sqrt(variance) / unit


def power_of_two(largest: Any) -> Any:
    """The power of two that brings numbers of this size to about 1; 1 for 0. To multiply by it rounds nothing."""
    exponent = np.where(largest > 0, np.frexp(largest)[1], 0)
    return np.ldexp(1.0, np.clip(-exponent, -1000, 500))  # whose square is a number, too

"""What a column of numbers does to the target: whether its order tells it, or each value by itself.

Identifiers are numbers only by their looks: what is known of one value says nothing of its neighbours. Two predictions
of the target are compared by their squared errors. That of the value is the mean of the other rows with the same value;
that of the order is the best of a straight line (of the number, or of its logarithm) and of the means over the nearest
values on both sides, without the value itself. Means of few rows are shrunk towards the mean of all. All sums are by
distinct values: for a value with n rows, the sum S and the sum of squares Q of their targets, the leave-one-out error
of r_i = (S - t_i + a b) / m with m = n - 1 + a is ((m + 1)^2 Q - 2 (m + 1) (S + a b) S + n (S + a b)^2) / m^2.

``is_skewed`` tells counts and amounts whose logarithms are more evenly spread than they are themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PRIORS = (2.0, 10.0, 50.0)  # rows that the mean of all counts for
NEIGHBOURS = (1, 3, 9, 27)  # values on each side
CLASSES = 8  # the most common ones; more would only take time
CERTAIN = 4.0  # deviations of the gain by chance, from which a difference is no chance
FEWEST = 100  # rows that tell anything
SHARE = 0.5  # of what the values tell: where the order tells less, the numbers may be names
IN_LINE = 0.25  # likewise, where a straight line tells less
BENT = 0.1  # of what the values tell, at least, must be beyond a line to be worth weights of their own
SKEWED = 2.0  # skewness
RELIEF = 0.7  # of the skewness, at most, is left by the logarithm


class Effects(NamedTuple):
    """The shares of the target's variance that value, order and straight line predict, and the gain chance allows."""

    value: float
    order: float
    line: float
    chance: float

    @property
    def as_names(self) -> bool:
        """Whether the numbers act as names: values tell much, their order less, and a line as good as nothing."""
        ordered = self.order >= SHARE * self.value or self.line >= IN_LINE * self.value
        return self.value > self.chance and not ordered

    @property
    def bent(self) -> bool:
        """Whether values tell more than a line does, so that weights of their own help beside that of the number."""
        return self.value - max(self.line, 0.0) > self.chance + BENT * self.value


def effects(values: np.ndarray, targets: np.ndarray) -> Effects:
    """How a column acts on the targets: one column of numbers, or the ``indicators`` of classes.

    >>> rng = np.random.default_rng(0)
    >>> ids, ages = rng.integers(0, 50, 2000), rng.integers(18, 90, 2000)
    >>> effect = rng.normal(size=50)
    >>> effects(ids, effect[ids, None]).as_names, effects(ages, np.abs(ages - 50.0)[:, None]).as_names
    (True, False)
    """
    n, k = targets.shape
    distinct, inverse = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    counts = np.bincount(inverse, minlength=len(distinct)).astype(np.float64)
    sums = np.column_stack([np.bincount(inverse, t, len(distinct)) for t in targets.T])
    squares = np.array([t @ t for t in targets.T])
    base = targets.mean(axis=0)
    total = float((squares - n * base**2).sum())
    if total <= 0 or n < FEWEST:
        return Effects(0.0, 0.0, 0.0, 1.0)
    by_value = min(_left_out_error(inverse, counts, sums, targets, base, prior) for prior in PRIORS)
    fits = [_line_error(x, counts, sums, total) for x in (distinct, np.sign(distinct) * np.log1p(np.abs(distinct)))]
    line = min(fits)
    fits += [_neighbour_error(counts, sums, squares, base, size) for size in NEIGHBOURS if size < len(distinct)]
    chance = CERTAIN * float(np.sqrt(2.0 * len(distinct) * k)) / n
    return Effects(1 - by_value / total, 1 - min(fits) / total, 1 - line / total, chance)


def indicators(codes: np.ndarray) -> np.ndarray:
    """One column of 0 and 1 for each of the most common classes; of two classes, one is enough."""
    counts = np.bincount(codes)
    common = np.argsort(-counts, kind="stable")[: 1 if np.count_nonzero(counts) <= 2 else CLASSES]
    return (codes[:, None] == common).astype(np.float64)


def _left_out_error(
    inverse: np.ndarray, counts: np.ndarray, sums: np.ndarray, targets: np.ndarray, base: np.ndarray, prior: float
) -> float:
    squares = np.column_stack([np.bincount(inverse, t * t, len(counts)) for t in targets.T])
    m, n = (counts - 1 + prior)[:, None], counts[:, None]
    guess = sums + prior * base
    error = (m + 1) ** 2 * squares - 2 * (m + 1) * guess * sums + n * guess**2
    return float((error / m**2).sum())


def _line_error(x: np.ndarray, counts: np.ndarray, sums: np.ndarray, total: float) -> float:
    n = counts.sum()
    away = x - (counts @ x) / n
    spread = counts @ away**2
    return total - float(((away @ sums) ** 2).sum() / spread) if spread > 0 else total


def _neighbour_error(counts: np.ndarray, sums: np.ndarray, squares: np.ndarray, base: np.ndarray, size: int) -> float:
    """The error of the mean over the nearest values, without the value itself."""
    places = np.arange(len(counts))
    low, high = np.maximum(places - size, 0), np.minimum(places + size + 1, len(counts))
    count = np.concatenate([[0.0], np.cumsum(counts)])
    total = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    rows = (count[high] - count[low] - counts)[:, None]
    rate = (total[high] - total[low] - sums + PRIORS[0] * base) / (rows + PRIORS[0])
    return float((squares - 2 * (rate * sums).sum(axis=0) + counts @ rate**2).sum())


def is_skewed(values: np.ndarray) -> bool:
    """Whether numbers that are not negative are spread so unevenly that their logarithms are to be learned from.

    >>> rng = np.random.default_rng(0)
    >>> (
    ...     is_skewed(np.exp(rng.normal(3, 1.5, 1000))),
    ...     is_skewed(rng.normal(50, 9, 1000)),
    ...     is_skewed(rng.random(1000) > 0.9),
    ... )
    (True, False, False)
    """
    values = np.asarray(values, dtype=np.float64)
    if len(values) < FEWEST or values.min() < 0 or len(np.unique(values[:FEWEST])) < 3:
        return False
    before = _skewness(values)
    return before > SKEWED and abs(_skewness(np.log1p(values))) < RELIEF * before


def _skewness(values: np.ndarray) -> float:
    away = values - values.mean()
    deviation = float(np.sqrt(np.mean(away**2)))
    return float(np.mean((away / deviation) ** 3)) if deviation > 0 else 0.0

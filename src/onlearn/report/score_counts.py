"""Counts of scores in narrow bins, from which curves and histograms are drawn: memory is constant in the rows.

ROC is the share of positive rows above a threshold against that of negative ones; precision the share of positive rows
among all above it, and recall the share of all positive rows that are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.models.evaluation import in_order

BITS = 18  # of the 32 of a single-precision number: a bin is 1 part in 500 wide
BARS = 40  # of the histogram
FALSE_POSITIVES = np.unique(np.concatenate([np.linspace(0, 1, 51), np.geomspace(1e-3, 1, 31)]).round(6))
RECALLS = np.linspace(0, 1, 101).round(6)


class ScoreCounts:
    """How many negative and positive rows have a score in each narrow bin; the bins are in the order of the scores.

    >>> counts = ScoreCounts()
    >>> counts.add(np.array([False, True, False, True]), np.array([-1.0, 0.5, 1.0, 2.0]))
    >>> counts.roc()[[0, -1]].tolist()
    [0.5, 1.0]
    """

    def __init__(self) -> None:
        self.counts: np.ndarray = np.zeros((2, 1 << BITS), dtype=np.int64)

    def add(self, positive: np.ndarray, scores: np.ndarray) -> None:
        """Add rows: whether they are positive, and their scores."""
        known = ~np.isnan(scores)
        if not known.all():
            positive, scores = positive[known], scores[known]
        most = np.finfo(np.float32).max
        bins = in_order(np.clip(scores, -most, most).astype(np.float32)) >> np.uint32(32 - BITS)
        for side, mine in enumerate((~positive, positive)):
            places, counts = np.unique(bins[mine], return_counts=True)
            self.counts[side, places] += counts

    def include(self, other: ScoreCounts) -> None:
        """Add the rows of other counts."""
        self.counts += other.counts

    def __getstate__(self) -> dict[str, Any]:  # few of the bins are in use
        places = np.flatnonzero(self.counts)
        return {"places": places, "counts": self.counts.reshape(-1)[places]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.counts.reshape(-1)[state["places"]] = state["counts"]

    @property
    def has_both(self) -> bool:
        """Whether there are negative and positive rows."""
        return bool(self.counts.any(axis=1).all())

    def roc(self) -> np.ndarray:
        """The share of positive rows above the threshold, where the share of negative ones is ``FALSE_POSITIVES``."""
        negative, positive = self._above()
        share = negative / max(1, negative[-1])
        last = np.searchsorted(share, share, side="right") - 1  # of thresholds with the same share, the highest point
        return np.interp(FALSE_POSITIVES, share, (positive / max(1, positive[-1]))[last])

    def precision(self) -> np.ndarray:
        """The precision at the highest threshold whose recall is at least ``RECALLS``."""
        negative, positive = self._above()
        recall = positive / max(1, positive[-1])
        places = np.clip(np.searchsorted(recall, RECALLS - 1e-12), 1, len(recall) - 1)
        return positive[places] / np.maximum(1, positive + negative)[places]

    def average_precision(self) -> float:
        """The mean precision over recall."""
        negative, positive = self._above()
        precision = positive[1:] / np.maximum(1, positive + negative)[1:]
        return float((np.diff(positive) * precision).sum() / max(1, positive[-1]))

    def _above(self) -> tuple[np.ndarray, np.ndarray]:
        """Negative and positive rows above each threshold, from the highest; first none."""
        there = np.flatnonzero(self.counts.any(axis=0))[::-1]
        negative, positive = (np.concatenate([[0], np.cumsum(side[there])]) for side in self.counts)
        return negative, positive

    def histogram(self) -> dict[str, list[float]]:
        """Bars of equal width over all but a few scores, and the share of the rows of each side in them."""
        there = np.flatnonzero(self.counts.any(axis=0))
        if not len(there):
            return {}
        values, counts = _middle(there), self.counts[:, there]
        reached = np.cumsum(counts.sum(axis=0)) / counts.sum()
        first, last = np.minimum(np.searchsorted(reached, (0.002, 0.998)), len(there) - 1).tolist()
        low, high = values[first], values[last]
        if not low < high:
            around = max(0.5, abs(low) * 1e-3)
            low, high = low - around, high + around
        places = np.clip(((values - low) / (high - low) * BARS).astype(np.int64), 0, BARS - 1)
        made: dict[str, list[float]] = {"edges": np.linspace(low, high, BARS + 1).tolist()}
        for name, side in zip(("negative", "positive"), counts):
            made[name] = (np.bincount(places, weights=side, minlength=BARS) / max(1, side.sum())).tolist()
        return made


def _middle(bins: np.ndarray) -> np.ndarray:
    """The scores in the middle of bins: ``in_order`` undone."""
    bits = (bins.astype(np.uint32) << np.uint32(32 - BITS)) | np.uint32(1 << (31 - BITS))
    bits = np.where(bits >> np.uint32(31), bits & np.uint32((1 << 31) - 1), ~bits)
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)

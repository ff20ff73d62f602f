"""The area under the ROC curve: how often an example of one class scores above one of the other.

Scores are kept, four bytes each, up to ``MOST`` of them: then the area is exact. Beyond that they are counted in narrow
bins, and scores in one bin count as equal.
"""

from __future__ import annotations

import numpy as np

MOST = 4_000_000
BITS = 20  # of a single-precision number's 32: a bin is 1 part in 2,000 wide


class Ranking:
    """Scores of two classes, as they come.

    >>> ranking = Ranking()
    >>> ranking.add(np.array([False, True, True]), np.array([0.1, 0.4, 0.05]))
    >>> ranking.area()
    0.5
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.kept = 0
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.counts: np.ndarray | None = None  # negative and positive examples of each bin

    @property
    def rough(self) -> bool:
        """Whether the area is an estimate."""
        return self.counts is not None

    def add(self, positive: np.ndarray, scores: np.ndarray) -> None:
        """Some rows: whether they are of the second class, and their scores."""
        scores = scores.astype(np.float32)  # a copy: the caller may reuse its array
        if self.counts is None and self.kept + len(scores) <= self.most:
            self.kept += len(scores)
            self.parts.append((positive.astype(bool), scores))
            return
        if self.counts is None:
            self.counts = np.zeros((2, 1 << BITS), dtype=np.int64)
            for part in self.parts:
                self._count(*part)
            self.parts = []
        self._count(positive.astype(bool), scores)

    def _count(self, positive: np.ndarray, scores: np.ndarray) -> None:
        assert self.counts is not None
        bins = in_order(scores) >> np.uint32(32 - BITS)
        for side, mine in enumerate((~positive, positive)):
            self.counts[side] += np.bincount(bins[mine], minlength=1 << BITS)

    def area(self) -> float | None:
        """The area, or None if there are no two classes."""
        if self.counts is not None:
            negative, positive = self.counts
        elif self.parts:
            is_positive = np.concatenate([part[0] for part in self.parts])
            scores = np.concatenate([part[1] for part in self.parts])
            order = np.argsort(scores, kind="stable")
            scores, is_positive = scores[order], is_positive[order]
            starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
            positive = np.add.reduceat(is_positive.astype(np.int64), starts)
            negative = np.diff(np.append(starts, len(scores))) - positive
        else:
            return None
        below = np.cumsum(negative) - negative
        pairs = int(negative.sum()) * int(positive.sum())
        # Twice the pairs in order, in whole numbers: two for each negative below, one for each that ties.
        return float((positive * (2.0 * below + negative)).sum() / (2.0 * pairs)) if pairs else None


def in_order(scores: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of single-precision ones: their bits, with those of negative numbers turned round."""
    bits = (scores + np.float32(0.0)).view(np.uint32)  # -0.0 becomes 0.0
    return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))

"""Detectors of change: has the mean of a sequence of numbers, such as a learner's losses, risen?

A detector is a choice, as a rule is: ``ADWIN(delta=0.01)`` or its spelling ``"adwin(0.01)"``. It is given one number
after another.

>>> detector = PageHinkley(threshold=10)
>>> losses = [0.0] * 200 + [1.0] * 50
>>> [row for row, loss in enumerate(losses, 1) if detector.update(loss)]
[211]
"""

from __future__ import annotations

import copy
import math
from typing import Any, Protocol, runtime_checkable

from onlearn.engine.spec import Family, choice, param

__all__ = ["ADWIN", "DETECTORS", "Detector", "PageHinkley"]


@runtime_checkable
class Detector(Protocol):
    """What detectors have in common."""

    detected: bool  # what the last update returned

    def update(self, value: float) -> bool:
        """Take in the next number; whether a change is detected with it."""

    def reset(self) -> None:
        """Forget all numbers."""

    def more_sensitive(self) -> Detector:
        """A new detector of this kind that detects changes earlier, and is wrong more often."""


DETECTORS = Family("drift detector")

BUCKETS = 5  # of one size
SHORTEST = 5  # numbers on either side of a cut


@choice(DETECTORS, "adwin")
class ADWIN:
    """An adaptive window: keeps the latest numbers for as long as nothing speaks against one mean.

    Bifet & Gavalda (2007). The window W of n numbers is cut into an older part of n0 and a newer part of n1 numbers.
    Its oldest numbers are dropped while there is a cut with

        |mean0 - mean1| > sqrt(2/m variance(W) ln(2/delta')) + 2/(3m) ln(2/delta'),    1/m = 1/n0 + 1/n1,

    where delta' = delta / ln n. Cuts are those between the buckets of an exponential histogram: the window is kept as
    sums of 1, 2, 4, ... numbers, at most five of each size, so that n numbers take O(log n) memory.

    The bound holds for numbers from 0 to 1; others are refused. ``clock`` is how often cuts are looked for. With the
    direction "up" a window whose mean falls is cut too, but no change is reported: a learner that improves has no
    drift.
    """

    delta: float = param(0.002, "bounds the rate of false alarms", above=0, below=1)
    clock: float = param(32, "numbers from one search for a cut to the next", at_least=1)
    direction: str = param("up", "the changes of the mean that are reported", words=("up", "down", "both"))

    def check(self) -> None:
        if self.clock != int(self.clock):
            raise ValueError(f"adwin: clock must be a whole number, not {self.clock!r}")
        self.reset()

    def reset(self) -> None:
        """Forget all numbers."""
        # Sums of 2^i numbers and of their squares are in _sizes[i], the oldest first.
        self._sizes: list[list[tuple[float, float]]] = [[]]
        self._seen = 0
        self.width = 0  # numbers in the window
        self.detected = False

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # a copy has a window of its own

    @property
    def mean(self) -> float:
        """The mean of the window; NaN if it is empty."""
        return self._totals()[0] / self.width if self.width else math.nan

    def update(self, value: float) -> bool:
        """Take in the next number, from 0 to 1; whether a change is detected with it."""
        value = float(value)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"adwin takes numbers from 0 to 1, not {value}: scale them, or use page_hinkley")
        sizes, level = self._sizes, 0
        sizes[0].append((value, value * value))
        while len(sizes[level]) > BUCKETS:  # the two oldest become one of twice the size
            (total, squares), (more, further) = sizes[level][:2]
            del sizes[level][:2]
            level += 1
            if level == len(sizes):
                sizes.append([])
            sizes[level].append((total + more, squares + further))
        self.width += 1
        self._seen += 1
        self.detected = self._seen % self.clock == 0 and self._shrink()
        return self.detected

    def more_sensitive(self) -> Detector:
        """A new one with the square root of delta."""
        made: Detector = DETECTORS.get(self).set_params(delta=math.sqrt(self.delta))
        return made

    def _totals(self) -> tuple[float, float]:
        """The sum of the window and that of its squares. From the buckets, so that no error adds up over a stream."""
        pairs = [pair for buckets in self._sizes for pair in buckets]
        return math.fsum(total for total, _ in pairs), math.fsum(squares for _, squares in pairs)

    def _shrink(self) -> bool:
        """Drop the oldest buckets as long as there is a cut; whether one is to be reported."""
        reported = False
        while gap := self._gap():
            reported = reported or self.direction == "both" or (gap > 0) == (self.direction == "up")
            self.width -= 1 << (len(self._sizes) - 1)
            del self._sizes[-1][0]
            while not self._sizes[-1]:
                del self._sizes[-1]
        return reported

    def _gap(self) -> float:
        """By how much the mean rises at the oldest cut where it changes; 0 if there is none."""
        n = self.width
        if n < 2 * SHORTEST:
            return 0.0
        total, squares = self._totals()
        variance = max(0.0, squares / n - (total / n) ** 2)
        log = math.log(2.0 * math.log(n) / self.delta)
        older, sum_older = 0, 0.0
        for level in range(len(self._sizes) - 1, -1, -1):
            for part, _ in self._sizes[level]:
                older += 1 << level
                sum_older += part
                newer = n - older
                if newer < SHORTEST:
                    return 0.0
                if older >= SHORTEST:
                    gap = (total - sum_older) / newer - sum_older / older
                    share = 1.0 / older + 1.0 / newer
                    if abs(gap) > math.sqrt(2.0 * share * variance * log) + 2.0 / 3.0 * share * log:
                        return gap
        return 0.0


@choice(DETECTORS, "page_hinkley")
class PageHinkley:
    """Page's test (1954) for a rise of the mean that is not known beforehand.

    With the mean of the numbers so far, mean_t, the sums m_t = m_(t-1) + x_t - mean_t - delta fall as long as the mean
    stays. A change is detected when m_t is more than ``threshold`` above the lowest so far. ``alpha`` below 1 makes
    that distance forget, by this factor with every number; 1 is Page's test. After an alarm it starts anew.
    """

    delta: float = param(0.02, "a rise of the mean that is of no interest", at_least=0)
    threshold: float = param(50.0, "how far the sums must rise", above=0)
    alpha: float = param(1.0, "1, or the factor by which the distance shrinks", above=0)
    min_rows: float = param(30, "numbers before the first alarm", at_least=1)

    def check(self) -> None:
        if self.alpha > 1:
            raise ValueError(f"page_hinkley: alpha must be at most 1, not {self.alpha!r}")
        self.reset()

    def reset(self) -> None:
        """Forget all numbers."""
        self._seen = 0
        self.mean = 0.0
        self.statistic = 0.0  # m_t less the lowest of m_0 to m_t
        self.detected = False

    def update(self, value: float) -> bool:
        """Take in the next number; whether a rise is detected with it."""
        value = float(value)
        if not math.isfinite(value):
            raise ValueError(f"page_hinkley takes finite numbers, not {value}")
        if self.detected:
            self.reset()
        self._seen += 1
        self.mean += (value - self.mean) / self._seen
        self.statistic = max(0.0, self.alpha * self.statistic + value - self.mean - self.delta)
        self.detected = self.statistic > self.threshold and self._seen >= self.min_rows
        return self.detected

    def more_sensitive(self) -> Detector:
        """A new one with half the threshold."""
        made: Detector = DETECTORS.get(self).set_params(threshold=self.threshold / 2)
        return made

"""The time and the memory that a fit in the dual will take, estimated before it begins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from onlearn.dual.collapse import SAMPLE, SUPPORT, dual_seconds, seconds
from onlearn.dual.gram import fits

EARLY = 0.25  # of the first pass: then the estimate is compared with the support examples so far
KEPT = 0.1  # assumed share of the support examples on which three passes or more make steps; their values are cached
MUCH = 2.0  # times as many support examples as estimated are reported


class Estimate(NamedTuple):
    """Time and memory of a fit, if one example in ten becomes a support example, which is not known beforehand."""

    rows: int
    supports: int
    seconds: float
    megabytes: float

    def __str__(self) -> str:
        return (
            f"about {self.seconds:.2g} s and {self.megabytes:.0f} MB beside the data for {self.rows:,} examples, "
            f"if {self.supports:,} of them become support examples; in proportion longer if more do"
        )

    def corrected(self, seen: int, supports: int) -> str | None:
        """A correction when so many of the examples seen have become support examples; None if none is needed."""
        likely = supports / seen * self.rows
        if likely <= MUCH * self.supports:
            return None
        return (
            f"{supports:,} of the first {seen:,} examples have become support examples: "
            f"if that goes on, about {self.seconds * likely / self.supports:.2g} s"
        )


def estimate(kernel: Any, points: Any, passes: int, cache_bytes: int, outputs: int, most: int | None) -> Estimate:
    """Time a block of kernel values; the rest of the work is known by experience (``dual_seconds``).

    ``most`` is the largest number of support examples, if there is a budget.
    """
    rows = len(points)
    some = points.take(np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.int64))
    each = seconds(lambda: kernel.block(some, some)) / len(some) ** 2
    supports = max(1, min(round(SUPPORT * rows), rows if most is None else most))
    room = cache_bytes / max(1, rows * points.dtype.itemsize)
    kept = min(KEPT * supports, room) if passes > 2 else 0.0
    if fits(rows, points.dtype.itemsize, cache_bytes) and passes > 1 and most is None:
        kept = float(supports)  # lines of the Gram matrix
    numbers = rows * (kept * points.dtype.itemsize / 8 + outputs + 3) + supports * 2 * outputs
    return Estimate(rows, supports, dual_seconds(each, rows, supports, passes), numbers * 8 / 2**20)


@contextmanager
def report_estimate(training: Any, expected: Estimate, who: str) -> Iterator[None]:
    """Print the estimate, and early in the first pass a correction if it will be much more."""
    seen, before = 0, len(training.supports)

    def look(examples: int) -> None:
        nonlocal seen
        seen += examples
        if seen >= EARLY * expected.rows:
            training.after_block = None
            if (more := expected.corrected(seen, len(training.supports) - before)) is not None:
                print(f"{who}: {more}", file=sys.stderr)

    print(f"{who}: {expected}", file=sys.stderr)
    training.after_block = look
    try:
        yield
    finally:
        training.after_block = None

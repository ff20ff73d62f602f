"""What a fit in the dual will take, told before it begins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onlearn.dual.representation import SAMPLE, SUPPORT, seconds

EARLY = 0.25  # of the first pass: what has become of it says what to expect of the rest
KEPT = 0.1  # of the support examples: so many are learned from in three passes or more, and their values kept
MUCH = 2.0  # times as many support examples as were thought: worth saying


class Estimate(NamedTuple):
    """Time and memory of a fit, if one example in ten becomes a support example: a guess, for nobody can know."""

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
        """What is to be said when so many of the examples seen have become support examples; None if nothing is."""
        likely = supports / seen * self.rows
        if likely <= MUCH * self.supports:
            return None
        return (
            f"{supports:,} of the first {seen:,} examples have become support examples: "
            f"if that goes on, about {self.seconds * likely / self.supports:.2g} s"
        )


@contextmanager
def told(training: Any, expected: Estimate, who: str) -> Iterator[None]:
    """Say what is expected, and again early in the first pass if it turns out to be much more."""
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


def estimate(kernel: Any, points: Any, passes: int, cache_bytes: int, outputs: int, most: int | None) -> Estimate:
    """By timing a block of a sample: each row meets each support example once, and a few of them again each pass."""
    rows = len(points)
    some = points.take(np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.int64))
    each = seconds(lambda: kernel.block(some, some)) / len(some) ** 2
    supports = max(1, min(round(SUPPORT * rows), rows if most is None else most))
    room = cache_bytes / max(1, rows * points.dtype.itemsize)
    kept = min(KEPT * supports, room) if passes > 2 else 0.0
    numbers = rows * (kept * points.dtype.itemsize / 8 + outputs + 3) + supports * 2 * outputs
    return Estimate(rows, supports, each * rows * supports * (1 + 0.1 * (passes - 1)), numbers * 8 / 2**20)


class Estimated:
    """The part of a kernel classifier that tells beforehand what a fit will take."""

    budget: int | None
    epochs: int | None
    max_epochs: int
    cache_mb: float
    _kernel: Any
    _training: Any

    def estimate(self, X: Any) -> Estimate:
        """What ``fit`` would take on these examples in the dual, by timing the kernel on a few of them."""
        model: Any = clone(self).set_params(representation="dual")
        model._check_settings()
        return model._estimate(model._check_rows(X, reset=True))

    def _estimate(self, X: Any) -> Estimate:
        outputs = self._training.outputs if hasattr(self, "_training") else 1
        passes, room = self.epochs or min(10, self.max_epochs), int(self.cache_mb * 2**20)
        return estimate(self._kernel, X.points, passes, room, outputs, self.budget)

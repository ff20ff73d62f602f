"""What happened while a learner learned: examples, mistakes and losses, by pass and at doubling counts."""

from __future__ import annotations

import numpy as np

from onlearn.loops import DOUBLINGS, KEPT, LOSS, MISTAKES, SEEN, UPDATES


class Chronicle:
    """The counts that the loops keep, and the entries made of them."""

    def __init__(self) -> None:
        self.tally = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        self.doubling = np.zeros(4 * DOUBLINGS)
        self.passes = 0
        self.by_pass: list[dict[str, float]] = []
        self.since = [0.0] * len(self.tally)  # the tally when the present pass began
        self.classifies = True

    @property
    def history(self) -> dict[str, list[dict[str, float]]]:
        """What happened, by pass and at doubling counts of examples."""
        kept = self.doubling.reshape(-1, 4)[: int(self.tally[KEPT])]
        return {"passes": self.by_pass, "doubling": [self.record(np.zeros(4), now) for now in kept]}

    def record(self, before: np.ndarray, now: np.ndarray | None = None) -> dict[str, float]:
        """An entry of the history: what happened since a tally was taken, until another (or the present one) was."""
        now = (self.tally if now is None else now)[: SEEN + 1] - before[: SEEN + 1]
        seen = float(now[SEEN])
        entry = {"seen": seen, "loss": float(now[LOSS]) / seen if seen else 0.0}
        return {"mistakes": float(now[MISTAKES]), **entry} if self.classifies else entry

    def begin_pass(self) -> None:
        self.since = self.tally.tolist()

    def end_pass(self) -> dict[str, float]:
        """Count a pass, and take down what happened in it."""
        entry = self.record(np.array(self.since))
        self.by_pass.append(entry)
        self.passes += 1
        self.begin_pass()
        return entry

    @property
    def n_mistakes(self) -> int:
        return int(self.tally[MISTAKES])

    @property
    def n_updates(self) -> int:
        return int(self.tally[UPDATES])

    @property
    def n_seen(self) -> int:
        return int(self.tally[SEEN])

    def saw_passes_of(self, rows: int) -> bool:
        """Whether so many rows may be all that was learned from: every pass, and what was not one, saw all of them."""
        return self.n_seen % rows == 0 and all(entry["seen"] == rows for entry in self.by_pass)

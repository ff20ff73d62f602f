"""What a run says of itself: to whoever watches it, in its report, and in the model."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from onlearn import __version__, data
from onlearn.loops import LOSS, MISTAKES, SEEN
from onlearn.pipeline.model import Model
from onlearn.pipeline.plan import Plan
from onlearn.pipeline.progress import Now, Watch
from onlearn.pipeline.resuming import files

# of a plan, for its second part
KEPT = ("seed", "labels", "passes", "min_count", "per_class", "prune_weights", "holdout")


class Telling:
    """Those parts of a run that learn nothing."""

    plan: Plan
    model: Model
    bad: data.BadRows
    reader: data.Reader | None
    watch: Watch | None
    notes: list[str]
    decided: list[str]
    rows: int
    learned: int
    passes: int
    passes_before: int
    ended: int
    ended_before: int
    waits: bool
    began: float
    tally_before: np.ndarray | None

    def _history(self) -> list[dict[str, float]]:
        learner = self.model.learner
        return learner.history_["passes"] if hasattr(learner, "_training") else []

    def progressive(self) -> dict[str, float]:
        """How it did on each example of this run before learning from it, in the first pass."""
        training = self.model.learner._training
        done = self._history()[self.passes_before :]
        return dict(done[0] if done else training.record(np.array(training.since)))

    @property
    def examples(self) -> int:
        """Examples that this run has learned from, its earlier part included; a row of weight 0 is none."""
        before = sum(entry["seen"] for entry in self._history()[: self.passes_before])
        return int(self.model.learner.n_seen_ - before)

    def _report(self, turn: int) -> None:
        if self.watch is None:
            return
        training = self.model.learner._training
        tally = training.tally - (self.tally_before if self.tally_before is not None else 0.0)
        part = None
        if turn > 0 or self.waits:
            part = self.learned / max(1, self.passes * self.learned_a_pass)
        elif self.reader is not None and self.reader.bytes_total:
            part = self.reader.bytes_read / self.reader.bytes_total / self.passes
        seen = max(1.0, float(tally[SEEN]))
        self.watch(Now(self.learned, turn + 1, self.passes, part, int(tally[SEEN]), training.classifies,
                       int(tally[MISTAKES]), float(tally[LOSS]) / seen, perf_counter() - self.began))  # fmt: skip

    @property
    def learned_a_pass(self) -> int:
        return max(1, self.rows if not self.plan.holdout else int(self.rows * (1 - self.plan.holdout)))

    def _tell(self, unfinished: int | None) -> None:
        """Write down in the model how it was trained."""
        if self.model.learner is None or not hasattr(self.model.learner, "_training"):
            return
        told = self.model.trained
        told.update(
            version=__version__,
            sources=list(self.plan.sources),
            files=files(self.plan.sources),
            rows=self.rows,
            passes=self.passes,
            seed=self.plan.seed,
            bad_rows=self.bad.count,
            examples=int(self.model.learner.n_seen_),
            unfinished=unfinished,  # examples learned from, if the run is not over
            ended=max(self.ended, self.ended_before),
            plan={name: getattr(self.plan, name) for name in KEPT},
            notes=[*(self.reader.notes if self.reader is not None else ()), *self.notes],
        )
        if self.decided:
            told["decided"] = self.decided

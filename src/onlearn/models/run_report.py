"""What a run says of itself: to whoever watches it, in its report, and in the model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onlearn import __version__, data
from onlearn.data import Reader
from onlearn.data.sources import sources as named_sources
from onlearn.data.sources import state_of
from onlearn.engine.loops import LOSS, MISTAKES, SEEN
from onlearn.models.model import Model
from onlearn.models.plan import Plan

# ----------------------------------------------------------------------------------------------------
# How far a run is.


class Now(NamedTuple):
    """How far a run is: what its watcher is told."""

    examples: int  # learned from, over all passes
    turn: int  # the present pass, from 1
    passes: int
    part: float | None  # of the whole run, if that is known
    seen: int  # examples of this run, each scored before it was learned from
    classifies: bool
    mistakes: int  # among them
    loss: float  # their mean
    seconds: float


Watch = Callable[[Now], None]


# ----------------------------------------------------------------------------------------------------
# Whether a run keeps the parsed rows of its files for the next one.


def keep_or_not(reader: Reader, plan: Plan, passes: int) -> None:
    """Rows of one pass, and of small files, are not kept unless a folder for them was named; but used if they were."""
    if reader.kept is not None and plan.cache is True and (passes < 2 or (reader.bytes_total or 0) < plan.small):
        reader.kept.writable = False


def told(reader: Reader | None) -> dict[str, Any] | None:
    """What became of the rows: whether they were reused or written, where, and a sentence; None if nothing did."""
    kept = None if reader is None else reader.kept
    if kept is None or kept.said is None or kept.path is None:
        return None
    return {"path": str(kept.path), "reused": kept.used, "written": kept.written, "said": kept.said}


# ----------------------------------------------------------------------------------------------------
# Whether a model is of an unfinished run over the same files, and what such a run begins with once more.


def files(sources: list[str]) -> list[Any]:
    """What tells whether sources are the same as before: paths, sizes and times of change."""
    if "-" in sources:
        return []
    return [state_of(source.path) for source in named_sources(sources) if source.path is not None]


def unfinished(model: Model, sources: list[str]) -> bool:
    """Whether a model is of an unfinished run over these very sources."""
    told = model.trained
    return told.get("unfinished") is not None and bool(told["files"]) and told["files"] == files(sources)


def remember(model: Model) -> None:
    """A run begins that goes on from a model: should it be left off, it will begin with the same features again."""
    model.before = copy.deepcopy((model.features, model.far))


def go_back(model: Model) -> bool:
    """Take up an unfinished run with the features that it began with; False if it began with none."""
    if model.before is None:
        return False
    model.features, model.far = copy.deepcopy(model.before)
    return True


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
        return [] if learner is None or learner.training is None else learner.history_["passes"]

    def progressive(self) -> dict[str, float]:
        """How it did on each example of this run before learning from it, in the first pass."""
        training = self.model.learner.training
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
        training = self.model.learner.training
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
        if self.model.learner is None or self.model.learner.training is None:
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

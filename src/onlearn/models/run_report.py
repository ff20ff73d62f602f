"""The report of a training run: progress, notes and warnings, what the model keeps of it, and the result as JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlearn import __version__
from onlearn.data import Reader
from onlearn.data.sources import sources as named_sources
from onlearn.data.sources import state_of
from onlearn.engine.loops import LOSS, MISTAKES, SEEN
from onlearn.engine.mixture import MixtureLearner
from onlearn.engine.registry import spell_learner
from onlearn.models.far_indices import HashedFar
from onlearn.models.model import Model
from onlearn.models.multilabel import MULTILABEL
from onlearn.models.plan import Plan
from onlearn.models.trained_facts import KEPT

if TYPE_CHECKING:
    from onlearn.models.run import Run


class Progress(NamedTuple):
    """How far a run is."""

    examples: int  # learned from, over all passes
    turn: int  # the present pass, from 1
    passes: int
    part: float | None  # of the whole run, if that is known
    seen: int  # examples of this run, each scored before it was learned from
    classifies: bool
    mistakes: int  # among them
    loss: float  # their mean
    seconds: float


Watch = Callable[[Progress], None]


class RunReport:
    """Notes and warnings of a run, its progress, and its record in ``model.trained``.

    ``passes_ended`` is the number of passes that an earlier part of the same run has ended.
    """

    def __init__(self, plan: Plan, model: Model, passes_ended: int = 0) -> None:
        self.plan: Plan = plan
        self.model: Model = model
        self.notes: list[str] = []
        self.warnings: list[str] = []
        # What was decided when the model was first trained.
        self.decided: list[str] = list(model.trained.get("decided", model.trained.get("notes", [])))
        self.watch: Watch | None = None
        self.began: float = perf_counter()
        self.passes_before: int = len(self._history()) - passes_ended
        training = None if model.learner is None else model.learner.training
        self.tally_before: np.ndarray | float = 0.0 if training is None else training.tally.copy()

    def _history(self) -> list[dict[str, float]]:
        learner = self.model.learner
        return [] if learner is None or learner.training is None else learner.history_["passes"]

    def progressive(self) -> dict[str, float]:
        """Mistakes and loss of the first pass of this run; each example is scored before it is learned from."""
        training = self.model.learner.training
        ended = self._history()[self.passes_before :]
        return dict(ended[0] if ended else training.record(np.array(training.since)))

    @property
    def examples(self) -> int:
        """Examples that this run has learned from, its earlier part included; rows of weight 0 do not count."""
        before = sum(entry["seen"] for entry in self._history()[: self.passes_before])
        return int(self.model.learner.n_seen_ - before)

    def show_progress(self, run: Run, turn: int) -> None:
        """Call ``watch``, if there is one, with the progress in pass ``turn``."""
        if self.watch is None:
            return
        reader, passes, learned = run.reading.reader, run.passes.count, run.lessons.learned
        training = self.model.learner.training
        tally = training.tally - self.tally_before
        part = None
        if turn > 0 or run.passes.wait:
            part = learned / max(1, passes * run.reading.examples_a_pass)
        elif reader is not None and reader.bytes_total:
            part = reader.bytes_read / reader.bytes_total / passes
        self.watch(
            Progress(
                examples=learned,
                turn=turn + 1,
                passes=passes,
                part=part,
                seen=int(tally[SEEN]),
                classifies=training.classifies and self.model.task != MULTILABEL,
                mistakes=int(tally[MISTAKES]),
                loss=float(tally[LOSS]) / max(1.0, float(tally[SEEN])),
                seconds=perf_counter() - self.began,
            )
        )

    def record(self, run: Run, unfinished: int | None) -> None:
        """Write into the model how it was trained; ``unfinished`` counts the examples so far, None: the run is over."""
        if self.model.learner is None or self.model.learner.training is None:
            return
        reading, passes, trained = run.reading, run.passes, self.model.trained
        trained.pop("cluster", None)  # of an earlier run
        trained.update(
            version=__version__,
            sources=list(self.plan.sources),
            files=file_states(self.plan.sources),
            rows=reading.rows,
            passes=passes.count,
            seed=self.plan.seed,
            bad_rows=reading.bad.count,
            examples=int(self.model.learner.n_seen_),
            unfinished=unfinished,
            ended=max(passes.ended, passes.ended_before),
            plan={name: getattr(self.plan, name) for name in KEPT},
            notes=[*(reading.reader.notes if reading.reader is not None else ()), *self.notes],
        )
        if self.decided:
            trained["decided"] = self.decided


def file_states(sources: list[str]) -> list[Any]:
    """Paths, sizes and times of change, by which a later run sees that the files are the same."""
    if not sources or "-" in sources:
        return []
    return [state_of(source) for source in named_sources(sources) if not source.is_stdin]


def is_unfinished(model: Model, sources: list[str]) -> bool:
    """Whether a model comes from an unfinished run over these very sources.

    On one machine files are the same by size and time. A run on a cluster knows the checksums of its shards: it goes on
    with files of the same names, and refuses other content when it is read.
    """
    trained = model.trained
    if trained.get("unfinished") is None or not trained["files"]:
        return False
    return ("cluster" in trained and trained["sources"] == sources) or trained["files"] == file_states(sources)


def run_report(run: Run, output: str | os.PathLike[str] | None, seconds: float, stopped: bool) -> dict[str, Any]:
    """The result of a run, ready for JSON."""
    model, passes = run.model, run.passes
    return {
        "model": None if output is None else os.fspath(output),
        "learner": " ".join(repr(model.learner).split()),
        "task": run.plan.task,
        "labels": model.labels,
        "rows": run.reading.rows,
        "examples": run.report.examples,
        "passes": passes.count,
        "passes_ended": max(passes.ended, passes.ended_before),
        "features": None if model.compares_texts else int(model.features.n_features_out_),
        **hashed_features(model),
        **kernel_facts(model.learner),
        **mixture_facts(model.learner),
        **described(model.learner),
        **({} if model.threshold is None else {"threshold": model.threshold.facts(model.labels or [])}),
        "bad_rows": run.reading.bad.count,
        "seconds": round(seconds, 3),
        **({"progressive": _progressive(run)} if model.learner.is_progressive else {}),
        "notes": list(model.trained["notes"]),
        "warnings": list(run.report.warnings),
        "stopped": stopped,
        "cache": row_cache(run.reading.reader),
        **run.facts(),
    }


def _progressive(run: Run) -> dict[str, Any]:
    """Figures of the first pass, in which each example is scored before it is learned from."""
    first, model = run.report.progressive(), run.model
    made: dict[str, Any] = {"n": int(first["seen"]), "loss": first["loss"]}
    if model.task == MULTILABEL:
        made["mistakes"] = int(first["mistakes"])
        made["hamming_loss"] = first["mistakes"] / max(1.0, first["seen"] * len(model.labels or ()))
    elif model.task == "rank":
        made["mistakes"] = int(first["mistakes"])
        made["pairwise_accuracy"] = 1 - first["mistakes"] / max(1.0, first["seen"])
    elif model.labels is not None:
        made["mistakes"] = int(first["mistakes"])
        made["accuracy"] = 1 - first["mistakes"] / max(1.0, first["seen"])
        made["majority"] = run.reading.majority
    elif model.learner.has_squared_loss():  # half the squared error of targets of deviation 1
        made["rmse"] = math.sqrt(2 * first["loss"]) * model.target[1]
    return made


def row_cache(reader: Reader | None) -> dict[str, Any] | None:
    """Whether the parsed rows were reused from a cache or written to one, and where; None if there is no cache."""
    kept = None if reader is None else reader.kept
    if kept is None or kept.said is None or kept.path is None:
        return None
    return {"path": str(kept.path), "reused": kept.used, "written": kept.written, "said": kept.said}


def kernel_facts(learner: Any) -> dict[str, Any]:
    """The kernel and the number of support examples of a learner that has them."""
    if learner.representation != "dual":
        return {}
    return {"kernel": str(learner.kernel), "support_examples": learner.n_support_}


def described(learner: Any) -> dict[str, Any]:
    """What a learner that is not linear tells about itself."""
    found = learner.described()
    return {"described": found} if found else {}


def mixture_facts(learner: Any) -> dict[str, Any]:
    """The learners of a mixture, how much each counts, and the theorem on their losses."""
    if not isinstance(learner, MixtureLearner):
        return {}
    learned = zip(learner.members, learner.weights_.tolist(), learner.losses_.tolist(), strict=True)
    certificate = learner.certificate()
    return {
        "mixture": {
            **certificate.to_dict(),
            "learners": [{"learner": spell_learner(one), "weight": w, "loss": loss} for one, w, loss in learned],
            "theorem": str(certificate),
        }
    }


def hashed_features(model: Model) -> dict[str, Any]:
    """The number of names (None: features have none), of hashed features and of their collisions."""
    named = model.features.has_vocabulary
    found = model.features.vocabulary_.collisions() if named else model.far.collisions()
    bits = model.features.bits if named else model.far.bits if isinstance(model.far, HashedFar) else 0
    hashed = found is not None and found["features"] > 0
    return {
        "names": len(model.features.vocabulary_) if named else None,
        "hashed_features": round(found["features"], 1) if found and hashed else 0,
        "hashed_weights": 1 << bits if hashed else 0,
        "estimated_collisions": round(found["collisions"], 1) if found and hashed else 0,
        "estimate_is_at_least": bool(found and hashed and found["buckets"] == 1 << bits),
    }

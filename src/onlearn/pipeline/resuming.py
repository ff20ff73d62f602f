"""What a model says of the run that trained it, and whether that is to be gone on with."""

from __future__ import annotations

from typing import Any

from onlearn import __version__
from onlearn.data.sources import sources as named_sources
from onlearn.data.sources import state_of
from onlearn.pipeline.model import Model

KEPT = ("seed", "labels", "min_count", "per_class", "prune_weights", "holdout")  # of a plan, for its second part


def files(sources: list[str]) -> list[Any]:
    """What tells whether sources are the same as before: paths, sizes and times of change."""
    if "-" in sources:
        return []
    return [state_of(source.path) for source in named_sources(sources) if source.path is not None]


def unfinished(model: Model, sources: list[str]) -> bool:
    """Whether a model is of an unfinished run over these very sources."""
    told = model.trained
    return told.get("unfinished") is not None and bool(told["files"]) and told["files"] == files(sources)


def account(run: Any, unfinished: int | None) -> dict[str, Any]:
    """How a model was trained; ``unfinished``: how many examples it has learned from, if the run is not over."""
    return {
        "version": __version__,
        "sources": list(run.plan.sources),
        "files": files(run.plan.sources),
        "rows": run.rows,
        "passes": run.passes,
        "seed": run.plan.seed,
        "bad_rows": run.bad.count,
        "examples": int(run.model.learner.n_seen_),
        "unfinished": unfinished,
        "ended": max(run.ended, run.ended_before),
        "plan": {name: getattr(run.plan, name) for name in KEPT} | {"passes": run.passes},
        "notes": [*(run.reader.notes if run.reader is not None else ()), *run.notes],
    }

"""Whether a model is of an unfinished run over the same files."""

from __future__ import annotations

from typing import Any

from onlearn.data.sources import sources as named_sources
from onlearn.data.sources import state_of
from onlearn.pipeline.model import Model


def files(sources: list[str]) -> list[Any]:
    """What tells whether sources are the same as before: paths, sizes and times of change."""
    if "-" in sources:
        return []
    return [state_of(source.path) for source in named_sources(sources) if source.path is not None]


def unfinished(model: Model, sources: list[str]) -> bool:
    """Whether a model is of an unfinished run over these very sources."""
    told = model.trained
    return told.get("unfinished") is not None and bool(told["files"]) and told["files"] == files(sources)

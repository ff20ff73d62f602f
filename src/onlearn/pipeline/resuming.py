"""Whether a model is of an unfinished run over the same files, and what such a run begins with once more."""

from __future__ import annotations

import copy
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


def remember(model: Model) -> None:
    """A run begins that goes on from a model: should it be left off, it will begin with the same features again."""
    model.before = copy.deepcopy((model.features, model.far))


def go_back(model: Model) -> bool:
    """Take up an unfinished run with the features that it began with; False if it began with none."""
    if model.before is None:
        return False
    model.features, model.far = copy.deepcopy(model.before)
    return True

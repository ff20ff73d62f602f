"""Features that a run leaves out: rare ones before it learns, those with small weights after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.features.pruning import prune_weights
from onlearn.pipeline.plan import PlanError


def leave_out_rare(features: Any, often: np.ndarray, min_count: int, per_class: bool) -> tuple[np.ndarray, str]:
    """Keep the features that are in enough rows; returns the new number of each (-1: none), and a note about it."""
    before = features.n_features_out_
    _refuse_hashed(features, "--min-count")
    if not len(often):
        rows = "rows of one class" if per_class else "rows"
        raise PlanError(f"there are no features that are in {min_count} {rows}: choose a smaller --min-count")
    rows = "rows of every class" if per_class else "rows"
    columns = features.keep(often)
    kept = np.full(before, -1, dtype=np.int64)
    kept[columns] = np.arange(len(columns))
    return kept, f"{before - len(columns):,} of {before:,} features are in fewer than {min_count} {rows}: left out"


def let_go_of_small(model: Any, size: float) -> str:
    """Have a model forget the features that weigh no more than ``size``; returns a note about it."""
    before = model.features.n_features_out_
    _refuse_hashed(model.features, "--prune-weights")
    kept = prune_weights(model.features, model.weights()[0], size)
    if not len(kept):
        raise PlanError(f"no feature weighs more than {size:g}: choose a smaller --prune-weights")
    model.learner.keep_features(kept)
    return f"{before - len(kept):,} of {before:,} features weigh no more than {size:g}: let go"


def _refuse_hashed(features: Any, option: str) -> None:
    if features.vocabulary_.state == "hash":
        raise PlanError(f"{option} cannot tell features apart that share a weight: raise --max-names")

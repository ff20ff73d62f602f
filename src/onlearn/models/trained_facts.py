"""What a model file says of how its model was trained; a run that goes on from the file relies on it."""

from __future__ import annotations

from typing import Any

from onlearn.engine.mixing import WEIGHTINGS
from onlearn.model_schema import (
    ANYTHING,
    COUNT,
    FINITE,
    NAMES,
    NESTED,
    NUMBER,
    SEED,
    TEXT,
    TRUTH,
    AnyOf,
    Kind,
    ListOf,
    Record,
    check_facts,
    either,
    finite,
    one_of,
)

# What a run that goes on takes over from the plan of the run before.
KEPT: dict[str, Kind] = {
    "seed": SEED,
    "labels": either(None, NAMES),
    "passes": either(None, COUNT),
    "min_count": COUNT,
    "per_class": TRUTH,
    "prune_weights": finite(0),
    "holdout": finite(0, 1),
    "calibrate": NAMES,
    "threshold": either(None, AnyOf(TEXT, FINITE)),
    "positive": either(None, TEXT),
}
TRAINED: dict[str, Kind] = {
    "version": TEXT,
    "sources": NAMES,
    "files": ListOf(ANYTHING),
    "rows": COUNT,
    "sentences": COUNT,
    "tokens": COUNT,
    "passes": COUNT,
    "seed": SEED,
    "bad_rows": COUNT,
    "examples": COUNT,
    "unfinished": either(None, COUNT),
    "ended": COUNT,
    "plan": NESTED,
    "notes": NAMES,
    "decided": NAMES,
    "cluster": NESTED,
    "first_size": NUMBER,
    "seconds": NUMBER,
}
# What is told of a run on a cluster, and what one that goes on needs.
CLUSTER: dict[str, Kind] = {
    "shards": COUNT,
    "rounds": COUNT,
    "mix": one_of(*WEIGHTINGS),
}
CLUSTER_TO_GO_ON: dict[str, Kind] = {
    "asked_shards": COUNT,
    "asked_lbfgs": either(None, COUNT),
    "learned": ListOf(COUNT),
    "digests": ListOf(ListOf(ANYTHING)),
    "label_counts": ListOf(COUNT),
}
TO_GO_ON = ("sources", "files", "rows", "ended", "plan")  # which an unfinished run has


def check_trained(trained: dict[str, Any], name: str) -> None:
    """Refuse facts of another kind than a run writes; those of earlier versions may be missing."""
    needed = TO_GO_ON if trained.get("unfinished") is not None else ()
    check_facts(trained, Record({key: kind for key, kind in TRAINED.items() if key in trained or key in needed}), name)
    plan = trained.get("plan", {})
    check_facts(plan, Record({key: kind for key, kind in KEPT.items() if key in plan}), f"{name}.plan")
    if "cluster" in trained:
        cluster = trained["cluster"]
        check_facts(cluster, Record(CLUSTER, **(CLUSTER_TO_GO_ON if needed else {})), f"{name}.cluster")
        if needed and not cluster["shards"] == len(cluster["learned"]) == len(cluster["digests"]):
            raise ValueError(f"the header has facts of other than {cluster['shards']} shards in {name}.cluster")

"""What is told of features that are hashed, and so may share a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlearn.pipeline import Model


def told(model: Model) -> dict[str, Any]:
    """The names that are kept (None: there are none to keep), how many features are hashed, and how many collide."""
    named = hasattr(model.features, "_extraction")
    found = model.features.vocabulary_.collisions() if named else model.far.collisions()
    bits = model.features.bits if named else getattr(model.far, "bits", 0)
    there = found is not None and found["features"] > 0
    return {
        "names": len(model.features.vocabulary_) if named else None,
        "hashed_features": round(found["features"], 1) if found and there else 0,
        "hashed_weights": 1 << bits if there else 0,
        "estimated_collisions": round(found["collisions"], 1) if found and there else 0,
        "estimate_is_at_least": bool(found and there and found["buckets"] == 1 << bits),
    }


def line(report: dict[str, Any]) -> str | None:
    """That in one line for people; None if nothing is hashed."""
    if not report["hashed_features"]:
        return None
    about = "at least" if report["estimate_is_at_least"] else "about"
    return (
        f"{about} {report['hashed_features']:,.0f} share {report['hashed_weights']:,} weights: "
        f"{about} {report['estimated_collisions']:,.0f} collisions"
    )


def counted(features: int, told: dict[str, Any]) -> str:
    """How many features there are; where indices are all that is known of them, which, for not all need occur."""
    indices = told.get("names") is None and not told["hashed_features"]
    return numbered(features) if indices else f"{features:,}"


def numbered(features: int) -> str:
    """How many features there are, if indices are all that is known of them."""
    return f"{features:,}, numbered 0 to {features - 1:,}" if features else "0"

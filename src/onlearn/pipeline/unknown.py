"""Columns that a model has never met, and so has no features of."""

from __future__ import annotations

from typing import Any

from onlearn.pipeline.model import Model

SHOWN = 5


def unknown_columns(model: Model, rows: Any) -> str | None:
    """A sentence that names the columns of a table that were not in those learned from; None if there are none."""
    met = getattr(model.features, "feature_names_in_", None)
    if met is None or not hasattr(rows, "column_names"):
        return None
    taken = {str(model.reading.get(role)) for role in ("target", "weight", "id")}
    new = [name for name in rows.column_names if name not in {*met, *taken}]
    if not new:
        return None
    more = f" and {len(new) - SHOWN} more" if len(new) > SHOWN else ""
    named, first = ", ".join(map(repr, new[:SHOWN])), "in the rows that the model first learned from"
    if len(new) == 1:
        return f"column {named} was not {first}: it is not used"
    return f"columns {named}{more} were not {first}: they are not used"

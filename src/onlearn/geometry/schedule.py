"""The learning rate at the present example."""

from __future__ import annotations

from typing import Any

from onlearn.weave import helper


@helper
def rate_at(g: Any) -> float:
    """rate / t^power, t counted from 1."""
    return g.knobs[0] if g.knobs[1] == 0.0 else g.knobs[0] * (g.steps[0] + 1.0) ** -g.knobs[1]

"""How far a run is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


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

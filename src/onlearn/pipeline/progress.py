"""How far a run is."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from onlearn.loops import LOSS, MISTAKES, SEEN


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


def now(run: Any, turn: int) -> Now:
    """How far a run is, in a pass counted from 0."""
    training = run.model.learner._training
    tally = training.tally - (run.tally_before if run.tally_before is not None else 0.0)
    part = None
    if turn > 0 or run.waits:
        taught = run.rows if not run.plan.holdout else int(run.rows * (1 - run.plan.holdout))
        part = run.learned / max(1, run.passes * taught)
    elif run.reader is not None and run.reader.bytes_total:
        part = run.reader.bytes_read / run.reader.bytes_total / run.passes
    seen = max(1.0, float(tally[SEEN]))
    return Now(
        run.learned,
        turn + 1,
        run.passes,
        part,
        int(tally[SEEN]),
        training.classifies,
        int(tally[MISTAKES]),
        float(tally[LOSS]) / seen,
        perf_counter() - run.began,
    )

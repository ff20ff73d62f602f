"""Rounds of shards: what a history says of passes in which the weights of several learners were mixed.

In a round every shard learns from the same weights on, apart from the others; the next round begins at the sum of the
weights they come to, each times the share of its shard. The shares of a round add up to 1. A round is one pass of the
history, whose entry also holds

- shards: how many there were,
- mixed_mistakes: the mistakes of the shards, each times the share of its shard, which the theorem limits,
- largest_share: the largest of the shares; 1 where that is not known.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def note_round(entry: dict[str, float], shares: np.ndarray, mistakes: np.ndarray) -> None:
    """Take down that a pass was a round of shards with these shares and mistakes.

    >>> entry = {"seen": 30.0, "mistakes": 9.0, "loss": 0.4}
    >>> note_round(entry, np.array([0.5, 0.25, 0.25]), np.array([6, 2, 1]))
    >>> entry["shards"], entry["mixed_mistakes"], entry["largest_share"]
    (3.0, 3.75, 0.5)
    """
    entry["shards"] = float(len(shares))
    entry["mixed_mistakes"] = float(shares @ mistakes)
    entry["largest_share"] = float(shares.max())


def carry_round(entry: dict[str, float], before: dict[str, float]) -> None:
    """Keep what the entry of a pass said of its round when the pass was reopened, to learn more from mixed weights.

    One learner, with a share of 1, made the mistakes that were added.
    """
    if "shards" in before:
        entry["shards"] = before["shards"]
        entry["mixed_mistakes"] = _mixed(before) + entry["mistakes"] - before["mistakes"]
        entry["largest_share"] = 1.0


def mixing_of(training: Any, rows: int) -> Any:
    """How the weights of shards were mixed, for a certificate on so many rows; None if there were no rounds.

    What was learned outside of rounds, by one learner, has a share of 1.
    """
    rounds = [entry for entry in training.by_pass if entry.get("shards", 1) > 1]
    if not rounds:
        return None
    from onlearn.theory.theorems import Mixing

    shards = int(max(entry["shards"] for entry in rounds))
    outside = training.n_mistakes - sum(entry["mistakes"] for entry in rounds)
    mistakes = sum(_mixed(entry) for entry in rounds) + outside
    spared = sum(1.0 - min(1.0, max(1.0 / entry["shards"], entry.get("largest_share", 1.0))) for entry in rounds)
    return Mixing(
        shards=shards,
        mistakes=float(mistakes),
        share=1.0 - spared / max(len(rounds), math.ceil(training.visits(rows))),
        equal=math.isclose(shards * mistakes, training.n_mistakes, rel_tol=1e-9),
    )


def _mixed(entry: dict[str, float]) -> float:
    return entry.get("mixed_mistakes", entry["mistakes"])

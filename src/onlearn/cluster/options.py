"""The options of training on a cluster: those of training, and how the work is shared out."""

# ruff: noqa: RUF009 (a field is what option() makes)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onlearn.models.train_options import TrainOptions, option

MIXES = ("uniform", "mistakes")


@dataclass(kw_only=True)
class ClusterOptions(TrainOptions):
    """All options of training on a cluster, by name."""

    cluster: Any = option(
        None, "Learn on a cluster: the address of a scheduler, such as tcp://host:8786, or local:4 for 4 processes."
    )
    shards: int | None = option(
        None, "With --cluster: how many parts the data are cut into, whatever the number of workers.", int, min=1
    )
    rounds: int | None = option(
        None, "With --cluster: how many times shards are learned from and mixed; --passes says the same.", int, min=1
    )
    mix: str = option("uniform", "With --cluster: shards count alike (uniform), or by their mistakes (mistakes).")
    lbfgs: int | None = option(
        None,
        "With --cluster: iterations of L-BFGS after the rounds, for smooth losses; by default 20 with l1 or l2, else 0.",
        int,
        min=0,
    )
    patience: float = option(60.0, "With --cluster: seconds to wait for a worker when there is none.", float, min=0)

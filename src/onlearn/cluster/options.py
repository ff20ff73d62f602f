"""The options of training on a cluster: those of training, and how the work is shared out."""

# ruff: noqa: RUF009 (a field is what option() makes)

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from onlearn.errors import PlanError
from onlearn.models.train_options import TrainOptions, option

MIXES = ("rows", "uniform", "mistakes")
OF_CLUSTERS = ("shards", "rounds", "mix", "lbfgs", "patience")


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
    mix: str = option("rows", "With --cluster: shards count by their rows, all alike (uniform), or by their mistakes.")
    lbfgs: int | None = option(
        None,
        "With --cluster: iterations of L-BFGS after the rounds, for smooth losses; by default 20 with l2, else 0.",
        int,
        min=0,
    )
    patience: float = option(60.0, "With --cluster: seconds to wait for a worker when there is none.", float, min=0)

    def check_cluster(self) -> None:
        """Refuse options about a cluster without one, and such as contradict each other."""
        given = [name for name in OF_CLUSTERS if self.is_given(name)]
        if self.cluster is None and given:
            raise PlanError(f"{given[0]}= is about cluster=, which is not given")
        if self.mix not in MIXES:
            raise PlanError(f"there is no {self.mix!r}: known are {', '.join(MIXES)}", "mix")
        if self.rounds is not None and self.passes is not None and self.rounds != self.passes:
            raise PlanError("rounds= and passes= say the same of a cluster: leave one out")
        if self.cluster is None:
            return
        for name, why in (
            ("checkpoint_every", "the model is saved after each round"),
            ("cache", "workers keep rows in memory"),
            ("kernel", "kernel learners learn on one machine"),
        ):
            if self.is_given(name):
                raise PlanError(f"{name}= has no use with cluster=: {why}")

    def without_cluster(self) -> TrainOptions:
        """The options of training on one machine."""
        return TrainOptions(**{one.name: getattr(self, one.name) for one in fields(TrainOptions)})

    def refuse_cluster(self, why: str) -> None:
        """Refuse a cluster for a run that has no use for it."""
        if self.cluster is not None:
            raise PlanError(f"cluster= has no use here: {why}")

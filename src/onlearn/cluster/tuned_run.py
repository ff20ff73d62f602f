"""``TunedRun`` on a cluster: configurations race on the workers, and the winner's run is one over shards.

The race is over the first rows, as on one machine, and gives the same table. Then the winner's options make a run on
the cluster, which reads the files anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from onlearn.cluster.connection import Connection
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.races import ClusterField
from onlearn.models.run import Run
from onlearn.models.train_options import AUTO
from onlearn.models.training import raced_files
from onlearn.models.tuned_run import TunedRun


def planned(options: ClusterOptions, before: Mapping[str, Any] | None = None) -> Callable[[Connection], Run]:
    """What begins the run on a cluster that the options ask for; what can be refused without a cluster is refused now.

    The run begins with a race if the learner is ``auto``; ``before`` is the table of a race before that.
    """
    from onlearn.cluster import training  # whose ``train`` is by this function

    if options.learner != AUTO:
        return training.planned(options)
    options.check_cluster()
    raced_files(options)
    return lambda connection: ClusterTunedRun(options, connection, training.prepare, before)


class ClusterTunedRun(TunedRun):
    """A race on a cluster; then it is the run of the winner there. ``on_round`` is called after each round of that."""

    def __init__(
        self,
        options: ClusterOptions,
        connection: Connection,
        prepare: Callable[[ClusterOptions, Connection], Any],
        before: Mapping[str, Any] | None = None,
    ) -> None:
        """``prepare`` makes the run of options that name no race: ``onlearn.cluster.training.prepare``.

        ``before`` is the table of an earlier race.
        """
        options.check_cluster()
        if options.rounds is not None:  # which says the same as passes, and fixes them in the race
            options = replace(options, passes=options.rounds, rounds=None)
        if not isinstance(options.cluster, str):
            options = replace(options, cluster=connection.address)  # as the command names it
        self.on_round: Callable[[Any], None] = lambda one: None

        def own_run(chosen: Any) -> Any:
            made = prepare(chosen, connection)
            made.on_round = lambda one: self.on_round(one)
            return made

        super().__init__(options, raced_files(options), before, field=ClusterField(connection), own_run=own_run)

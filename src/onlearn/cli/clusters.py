"""What commands on a cluster share: the connection, and what is told about it and about the rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onlearn.cli.terminal import print_message
from onlearn.cluster.options import ClusterOptions
from onlearn.errors import PlanError
from onlearn.models.train_options import AUTO


@contextmanager
def connected(name: str, patience: float, silent: bool) -> Iterator[Any]:
    """A connection to a cluster by its name, told in a line unless ``silent``."""
    from onlearn.cluster.connection import ClusterError, connect

    try:
        connecting = connect(name, patience=patience)
    except ClusterError as error:
        raise PlanError(str(error), "cluster") from None
    with connecting as connection:
        if not silent:
            workers = connection.wait_for_workers()
            count = f"{len(workers)} worker{'' if len(workers) == 1 else 's'}"
            dashboard = "" if connection.dashboard is None else f", dashboard {connection.dashboard}"
            print_message(f"cluster {connection.address}, {count}{dashboard}")
        yield connection


@contextmanager
def cluster_run(options: ClusterOptions, silent: bool) -> Iterator[Any]:
    """A training run on the cluster that the options name; each round is told in a line unless ``silent``."""
    from onlearn.cluster.training import prepare

    with connected(options.cluster, options.patience, silent) as connection:
        run: Any
        if options.learner == AUTO:
            from onlearn.cluster.tuned_run import ClusterTunedRun

            run = ClusterTunedRun(options, connection, prepare)
        else:
            run = prepare(options, connection)
        if not silent:
            run.on_round = lambda one: print_message(str(one))
        yield run

"""What commands on a cluster share: the connection, and what is told about it and about the rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from onlearn.cli.terminal import print_message
from onlearn.cluster.options import ClusterOptions
from onlearn.errors import PlanError


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
def cluster_run(options: ClusterOptions, silent: bool, before: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """A training run on the cluster that the options name; each round is told in a line unless ``silent``.

    ``before`` is the table of a race before the one that the run begins with.
    """
    from onlearn.cluster.tuned_run import prepare

    with connected(options.cluster, options.patience, silent) as connection:
        run: Any = prepare(options, connection, before)
        if not silent:
            run.on_round = lambda one: print_message(str(one))
        yield run

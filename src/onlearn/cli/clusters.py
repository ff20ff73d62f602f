"""What commands on a cluster share: the connection, and what is told about it and about the rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from onlearn.cli.options import print_bad_rows
from onlearn.cli.terminal import option_name, print_message, progress_of
from onlearn.cluster.options import ClusterOptions
from onlearn.errors import PlanError

if TYPE_CHECKING:
    from onlearn.cluster.prediction import Shards


@contextmanager
def connected(name: str, patience: float, silent: bool) -> Iterator[Any]:
    """A connection to a cluster by its name, told in a line unless ``silent``."""
    from onlearn.cluster.scheduler import connect
    from onlearn.errors import ClusterError

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
    from onlearn.cluster.tuned_run import planned

    begin = planned(options, before)
    with connected(options.cluster, options.patience, silent) as connection:
        run: Any = begin(connection)
        if not silent:
            run.on_round = lambda one: print_message(str(one))
        yield run


@contextmanager
def over_shards(shards: Shards, name: str, patience: float | None, quiet: bool, silent: bool = False) -> Iterator[Any]:
    """A connection for tasks over shards, with a progress bar unless ``silent``; bad rows are reported at the end."""
    from onlearn.cluster.connection import PATIENCE

    with connected(name, PATIENCE if patience is None else patience, quiet) as connection:
        with progress_of(shards.bytes_total, silent) as shards.advance:
            yield connection
        if not quiet:
            for note in shards.notes:
                print_message(note)
    if not quiet:
        print_bad_rows(shards.bad)


def refuse_without_cluster(cluster: str | None, **given: Any) -> None:
    """Refuse options about a cluster if there is none."""
    for name, value in given.items():
        if cluster is None and value is not None:
            raise typer.BadParameter("it is about --cluster, which is not given", param_hint=option_name(name))

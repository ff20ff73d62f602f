"""A cluster without processes: the tasks of a run, one after another, in this process.

What a run on a cluster learns depends on the shards and not on the workers, so the model is the one that a cluster
makes. Only the times are different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from onlearn.cluster.connection import Connection, Refused, Task, Worker
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.run import ClusterRun
from onlearn.cluster.training import prepare
from onlearn.models import training


class Here(NamedTuple):
    """A value that tasks share."""

    value: Any
    status: str = "finished"


class InProcess(Connection):
    """A connection to nothing but this process."""

    def __init__(self) -> None:
        super().__init__(None)

    def workers(self, fresh: bool = False) -> list[Worker]:
        return [Worker("here", 1, 0)]

    def check_versions(self) -> list[str]:
        return []

    def share(self, value: Any) -> Any:
        return Here(value)

    def results(self, make: Callable[[], list[Task]], what: str) -> Iterator[tuple[Any, Any]]:
        for task in make():
            result = made(task)
            if isinstance(result, Refused):
                raise result.error
            yield task.key, result


def made(one: Any) -> Any:
    """What an argument of a task is when the task begins."""
    if isinstance(one, Here):
        return one.value
    if isinstance(one, Task):
        return one.function(*(made(argument) for argument in one.arguments))
    return [made(part) for part in one] if isinstance(one, list) else one


def prepared(connection: Connection, sources: Any, **options: Any) -> ClusterRun:
    """A run that has not begun."""
    return prepare(ClusterOptions(sources=sources, output=None, cluster=connection, **options), connection)


def test_error(sources: Any, test: Any, shards: int | None, **options: Any) -> float:
    """The share of test rows that a model gets wrong, learned from so many shards; None: on one machine."""
    if shards is None:
        asked = training.TrainOptions(sources=sources, test=[str(test)], **options)
        run: Any = training.prepare(asked)
    else:
        asked = ClusterOptions(sources=sources, test=[str(test)], cluster=True, shards=shards, **options)
        run = prepare(asked, InProcess())
    run.go()
    report: dict[str, Any] = {}
    training.test(run, asked, report)
    return 1.0 - float(report["test"]["accuracy"])

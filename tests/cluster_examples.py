"""For tests of clusters: a connection that does tasks at once in this process, and files to learn from."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onlearn.cluster import training
from onlearn.cluster.connection import Refused, Task, Worker
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.run import ClusterRun
from onlearn.cluster.worker_memory import MEMORY


class Given:
    """In place of a future: a value that is there."""

    status = "finished"

    def __init__(self, value: Any) -> None:
        self.content = pickle.dumps(value)

    @property
    def value(self) -> Any:
        """A copy, as another process would have it."""
        return pickle.loads(self.content)


class HereClient:
    """In place of a client of Dask's: makes the parts of collections in this process."""

    def compute(self, delayed: list[Any]) -> list[Given]:
        return [Given(one.compute(scheduler="synchronous")) for one in delayed]


class HereConnection:
    """Does tasks in this process, each by what has been pickled; the plain version of a ``Connection``."""

    client = HereClient()

    def __init__(self, memory: int = 0, forgetful: bool = False) -> None:
        self.memory, self.forgetful = memory, forgetful
        self.interrupted: Callable[[], bool] = lambda: False
        self.results_seen: list[Any] = []
        self.shared: list[int] = []  # the bytes of what was shared

    def workers(self, fresh: bool = False) -> list[Worker]:
        return [Worker("here", 1, self.memory)]

    wait_for_workers = workers

    def check_versions(self) -> list[str]:
        return []

    def tell_workers(self, function: Callable[..., Any], *arguments: Any) -> None:
        function(*arguments)

    def share(self, value: Any) -> Given:
        made = Given(value)
        self.shared.append(len(made.content))
        return made

    def results(self, make: Callable[[], list[Task]], what: str) -> Iterator[tuple[Any, Any]]:
        for task in reversed(make()):  # in another order than they were given in
            result = self._done(task)
            if isinstance(result, Refused):
                raise result.error
            self.results_seen.append(result)
            if self.interrupted():
                raise KeyboardInterrupt
            yield task.key, result

    def in_order(
        self, following: Callable[[], Any], make: Callable[[Any], Task], what: str, most: Callable[[], int]
    ) -> Iterator[tuple[Any, Any]]:
        while (key := following()) is not None:
            yield from self.results(lambda key=key: [make(key)], what)  # type: ignore[misc]

    def _done(self, task: Task) -> Any:
        if self.forgetful:
            MEMORY.__init__()  # type: ignore[misc]
        return pickle.loads(pickle.dumps(task.function(*map(self._argument, task.arguments))))

    def _argument(self, one: Any) -> Any:
        if isinstance(one, Given):
            return one.value
        if isinstance(one, Task):
            return self._done(one)
        return [self._argument(item) for item in one] if isinstance(one, list) else pickle.loads(pickle.dumps(one))


def run_here(sources: Any, connection: Any = None, stop_after: int | None = None, **options: Any) -> ClusterRun:
    """A run over shards in this process, which is done, or stopped after some rounds."""
    run = prepared(sources, connection, **options)
    if stop_after is not None:
        run.on_round = lambda one: run.interrupt() if one.number == stop_after else None
    with contextlib.suppress(KeyboardInterrupt):
        run.go()
    return run


def prepared(sources: Any, connection: Any = None, **options: Any) -> ClusterRun:
    """A run over shards in this process."""
    asked = ClusterOptions(sources=sources, cluster="here", **options)
    return training.prepare(asked, HereConnection() if connection is None else connection)


def state_of(model: Any) -> dict[str, bytes]:
    """All arrays of a learner, byte for byte, and its facts."""
    facts, arrays = model.learner._pack()
    facts = copy.deepcopy(facts)
    return {
        "facts": repr(facts).encode(),
        **{name: np.ascontiguousarray(one).tobytes() for name, one in arrays.items()},
    }


def write_svmlight(path: Path, rows: int = 400, features: int = 30, seed: int = 0, in_order: bool = False) -> Path:
    """Rows of a linear concept with some noise."""
    rng = np.random.default_rng(seed)
    target = rng.normal(size=features)
    X = np.where(rng.random((rows, features)) < 0.3, rng.normal(size=(rows, features)).round(2), 0.0)
    y = np.where(X @ target + 0.3 * rng.normal(size=rows) > 0, 1, -1)
    order = np.argsort(y, kind="stable") if in_order else np.arange(rows)
    with open(path, "w") as file:
        for n in order:
            pairs = " ".join(f"{j + 1}:{X[n, j]:g}" for j in np.flatnonzero(X[n]))
            file.write(f"{y[n]} {pairs}\n")
    return path


def write_table(path: Path, rows: int = 300, seed: int = 0) -> Path:
    """A CSV table of numbers, categories and texts."""
    rng = np.random.default_rng(seed)
    words = ["red", "green", "blue", "fine", "poor", "old", "new"]
    with open(path, "w") as file:
        file.write("size,colour,text,label\n")
        for _ in range(rows):
            size, colour = rng.normal(), words[int(rng.integers(3))]
            text = " ".join(rng.choice(words, size=6))
            label = "yes" if size + (colour == "red") + text.count("fine") > 1 else "no"
            file.write(f'{size:.3f},{colour},"{text}, it is",{label}\n')
    return path

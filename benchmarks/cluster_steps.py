"""Single steps of training on a cluster, for the constants of ``onlearn.cluster.costs``.

Steps of workers are done in a worker, and those of the client in its process, and counted in processor time. What
scheduler, client and workers have to do with each other takes the time that it takes on a local cluster.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
import numpy as np
from in_process import InProcess, prepared

from onlearn.cluster import tasks, ways
from onlearn.cluster.connection import Connection, Task
from onlearn.cluster.message import pack
from onlearn.cluster.rounds import FAN_IN, Changing, tree_of
from onlearn.engine.learner import Learner

SHARDS = 8
READ = 4  # of these shards, to see how long reading takes
BIG = 1 << 26  # bytes that are shared, for the bandwidth
DEFAULT = {"rule": "logistic", "geometry": "adagrad(0.1)", "random_state": 0}  # what ``train`` makes of svmlight


def seconds_of(work: Callable[[], Any], repeat: int = 3) -> float:
    """Processor time of the fastest turn, after one that does not count."""
    taken = []
    for _ in range(repeat + 1):
        gc.collect()
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken[1:])


def surveyed(path: Path) -> tuple[Any, list[Any]]:
    """A run that knows its surveys, and these."""
    run = prepared(InProcess(), str(path), shards=SHARDS, rounds=1)
    run._set_callbacks(None, None, 0, None)
    run._decide()
    return run, run._surveys()


def of_reading(path: Path) -> dict[str, float]:
    """Seconds and bytes of a value that is read and learned from."""
    run, surveys = surveyed(path)
    shards = run.shards[:READ]
    values = sum(surveys[shard.number].values for shard in shards)
    job = run._job()
    surveying = seconds_of(lambda: [tasks.survey(job, shard, None) for shard in shards])
    found = run._merge(surveys)
    job = run._job()._replace(room=0)  # nothing is kept
    reading = seconds_of(lambda: [tasks.rows_of(job, found, shard, None) for shard in shards])
    rows = [tasks.rows_of(job, found, shard, None) for shard in shards]
    base = run.model.learner

    def learn() -> None:
        learner = ways.way_of(base).begin(base, SHARDS)
        for one in rows:
            order = np.random.default_rng(0).permutation(len(one.y))
            learner._learn_rows(one.X, one.y, one.weight, order, first=False)

    return {
        "survey": surveying / values,
        "read": reading / values,
        "learn": seconds_of(learn) / values,
        "kept": sum(one.nbytes for one in rows) / values,
        "text": os.path.getsize(path) / sum(one.values for one in surveys),
    }


def of_names(path: Path) -> dict[str, float]:
    """Seconds and bytes of a name of a feature in a survey."""
    run, surveys = surveyed(path)
    names = sum(len(one.features[1]["hashes"]) for one in surveys)
    began = time.process_time()
    run._merge(surveys)
    return {
        "name": (time.process_time() - began) / names,
        "name_bytes": sum(len(pickle.dumps(one)) for one in surveys) / names,
    }


def of_weights(quick: bool) -> dict[str, float]:
    """Seconds and bytes of a weight: of those that change in a round, and of those that do not."""
    features, rows = (100_000, 5_000) if quick else (2_000_000, 40_000)
    X = data.sparse_rows(rows * FAN_IN, features, 40, "zipf")
    y = data.labels(X)
    learner = Learner("OnlineClassifier", **DEFAULT)
    learner._start(features, np.bincount(y).astype(float), X.dtype)
    way, size = ways.way_of(learner), learner.training.g.w.size
    follower = Changing(InProcess())
    follower.follow(learner._pack()[1])
    before = follower._arrays

    def learned(order: np.ndarray) -> Any:
        made = way.begin(learner, FAN_IN)
        made._learn_rows(X, y, None, order, first=False)
        return made

    def sent(made: Any) -> Any:
        return ways.learned(learner, made, "rows", 0, None)

    def mixed(total: Any) -> Any:
        """What the client does with the sum of a round: it mixes, and finds what changed."""
        made = copy.copy(learner)
        way.mix(made, total)
        follower._arrays = before
        follower.follow(made._pack()[1])
        return made

    parts = [learned(order) for order in np.array_split(np.arange(len(y)), FAN_IN)]
    small = learned(np.arange(1))
    messages = [sent(part) for part in parts]
    total, little = ways.added(way, messages), sent(small)
    touched = sum(map(places_in, messages))
    changed = places_in(total)
    after = mixed(total)
    arrays, change = after._pack()[1], follower._messages[-1].value

    def take() -> None:
        copy.copy(learner)._unpack(after._pack()[0], tasks.changed(before, change.unpacked()))

    idle = seconds_of(lambda: mixed(little))
    return {
        "copy": seconds_of(lambda: sent(learned(np.arange(1)))) / size,
        "take": seconds_of(take) / size,
        "pack": (seconds_of(lambda: sent(parts[0])) - seconds_of(lambda: sent(small))) / places_in(messages[0]),
        "add": seconds_of(lambda: ways.added(way, messages)) / touched,
        "mix": (seconds_of(lambda: mixed(total)) - idle) / changed,
        "follow": idle / size,
        "up": sum(message.nbytes for message in messages) / touched,
        "down": change.nbytes / changed,
        "whole": pack(None, arrays).nbytes / changed,
    }


def places_in(message: Any) -> int:
    """The weights that a message is about."""
    return len(message.unpacked()["places"])


def nothing(*arguments: Any) -> None:
    """A task that does nothing."""


def of_tasks(connection: Connection, quick: bool) -> dict[str, float]:
    """Seconds of a task whose answer stays with the workers, and of one whose answer comes here."""
    count = 64 if quick else 1024

    def done(make: Callable[[], list[Task]]) -> float:
        began = time.perf_counter()
        list(connection.results(make, "nothing"))
        return time.perf_counter() - began

    def leaves(count: int) -> list[Task]:
        shared = connection.share(("job", "model"))
        return [Task(n, nothing, (shared,)) for n in range(count)]

    def tree() -> list[Task]:
        return tree_of(leaves(count), lambda n, group: Task(n, nothing, (group,)))

    def sent() -> float:
        content = np.random.default_rng(0).bytes(BIG)
        began = time.perf_counter()
        connection.share(content)
        return time.perf_counter() - began

    few, flat, sums = (min(done(make) for _ in range(4)) for make in (lambda: leaves(1), lambda: leaves(count), tree))
    sent()
    return {
        "task": (sums - few) / (count + count // FAN_IN),
        "answer": (flat - few) / count,
        "bandwidth": BIG / min(sent() for _ in range(3)),
    }

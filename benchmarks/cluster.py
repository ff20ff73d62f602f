"""Training on a local cluster: two worker processes against one, and what the model of costs says of the same runs.

svmlight of 1 GB with the default learner, three rounds, and a part of it in many small shards. Clusters are started and
loops compiled before the clock runs; clusters take turns, and the fastest turn counts, part by part. A survey reads all
shards once; the first round reads them again, into memory, and learns. "busiest worker": its processor time, which
other work on the machine hardly touches. "predicted": by the constants of the model, which were measured in the same
run, and are the last lines.

    python benchmarks/cluster.py [--quick] [--repeat N]
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timing
from cluster_steps import of_names, of_reading, of_tasks, of_weights
from in_process import prepared
from parse import write
from rich.console import Console
from timing import Row

from onlearn import data
from onlearn.cluster.connection import Connection
from onlearn.cluster.costs import Cluster, Constants, Data, predict
from onlearn.cluster.run import ClusterRun
from onlearn.cluster.scheduler import connect

ROUNDS = 3
WORKERS = (1, 2)
FEW, MANY = 8, 128  # shards
SMALL = 64  # shards of hardly any rows


class Taken(NamedTuple):
    """Seconds of one run, and of its parts."""

    whole: float
    survey: float
    first: float  # round
    later: float  # a later round, on average
    worker: float  # processor time of the busiest worker


# How the parts are called in the tables.
PARTS = {
    "whole": "whole run",
    "survey": "survey",
    "first": "first round",
    "later": "a later round",
    "worker": "busiest worker",
}


def processor_time() -> float:
    """Of a worker, which is asked for it."""
    return time.process_time()


def run_once(connection: Connection, path: Path, shards: int) -> tuple[Taken, ClusterRun]:
    """One run on a cluster that is there already."""
    run = prepared(connection, str(path), shards=shards, rounds=ROUNDS)
    surveys, surveying = run._surveys, 0.0

    def timed() -> Any:
        nonlocal surveying
        began = time.perf_counter()
        found = surveys()
        surveying += time.perf_counter() - began
        return found

    run._surveys = timed  # type: ignore[method-assign]
    before = connection.client.run(processor_time)
    began = time.perf_counter()
    run.go()
    whole = time.perf_counter() - began
    after = connection.client.run(processor_time)
    worker = max(after[address] - before[address] for address in after)
    first, *later = (one.seconds for one in run.told)
    return Taken(whole, surveying, first, float(np.mean(later)), worker), run


def race(connections: dict[int, Connection], path: Path, shards: int, repeat: int) -> dict[int, Taken]:
    """The fastest of the turns of each cluster, part by part."""
    taken: dict[int, list[Taken]] = {workers: [] for workers in connections}
    for _ in range(repeat):
        for workers, connection in connections.items():
            taken[workers].append(run_once(connection, path, shards)[0])
            time.sleep(timing.PAUSE)
    return {workers: Taken(*map(min, zip(*turns))) for workers, turns in taken.items()}


def measured_constants(svmlight: Path, vw: Path, connections: dict[int, Connection], quick: bool) -> Constants:
    """The constants of the model, on this machine."""
    handed_out = of_tasks(connections[2], quick)
    tiny = svmlight.with_name("tiny.svm")
    with open(svmlight, "rb") as lines, open(tiny, "wb") as some:
        some.writelines(line for line, _ in zip(lines, range(10 * SMALL)))
    # One shard and hardly any rows: what is left is waiting for answers, and what comes before and after the rounds.
    least = [run_once(connections[2], tiny, 1)[0] for _ in range(6)][1:]
    latency = min(one.later for one in least)
    around = min(one.whole - one.survey - one.first - (ROUNDS - 1) * one.later for one in least)
    # In a worker, where Dask has memory given back at once: to get it anew takes long.
    inside = connections[1].client
    weights, reading = inside.submit(of_weights, quick), inside.submit(of_reading, svmlight)
    of_client = {name: value for name, value in of_weights(quick).items() if name in ("mix", "follow")}
    # Many shards with hardly any rows.
    empty = min(run_once(connections[1], tiny, SMALL)[0].worker for _ in range(3))
    return Constants(
        begin=empty / ((1 + ROUNDS) * SMALL),
        **reading.result(),
        **{**weights.result(), **of_client},
        **of_names(vw),
        task=handed_out["task"],
        answer=handed_out["answer"],
        latency=latency,
        around=around,
        local=handed_out["bandwidth"],
    )


def data_of(run: ClusterRun, path: Path, shards: int) -> Data:
    """A run as the model sees it, with the beta by which shards touch as many weights as the first rows do."""
    weights, rows = run.model.learner.training.g.w.size, run.reading.rows
    touched = features_of(path, rows // shards)
    beta = math.log(touched / weights) / math.log(1 / shards)
    return Data(rows=rows, values=run.reading.values / rows, weights=weights, beta=max(0.0, beta))


def features_of(path: Path, rows: int) -> int:
    """How many features the first rows have."""
    found, seen = np.zeros(0, dtype=np.int64), 0
    for batch in data.read(str(path)):
        part = batch.parsed.between(0, min(len(batch), rows - seen))
        found, seen = np.union1d(found, part.indices), seen + part.shape[0]
        if seen >= rows:
            break
    return len(found)


def predicted(about: Data, workers: int, shards: int, constants: Constants) -> Taken:
    """What the model says of a run."""
    cluster = Cluster(workers, memory=1e12, bandwidth=constants.local, client_bandwidth=constants.local)
    found = predict(about, cluster, shards, ROUNDS, constants)
    total = found.total
    busy = total.reading + total.learning + total.adding
    return Taken(found.seconds, found.survey.seconds, found.first.seconds, found.later.seconds, busy)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    for name in ("distributed", "distributed.node"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    connections, started = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        svmlight, vw, part = write(Path(folder), 10_000_000 if quick else 1_000_000_000)
        try:
            for workers in WORKERS:
                began = time.perf_counter()
                connections[workers] = connect(f"local:{workers}")
                started[f"{workers} workers"] = [time.perf_counter() - began]
            yield Row("start of a local cluster", started, {})
            yield from runs(svmlight, vw, part, connections, quick, repeat)
        finally:
            for connection in connections.values():
                connection.close()


def runs(
    svmlight: Path, vw: Path, part: Path, connections: dict[int, Connection], quick: bool, repeat: int
) -> Iterator[Row]:
    race(connections, part, FEW, 1)  # compiles
    many = 2 * FEW if quick else MANY
    kinds = [(svmlight, FEW), (part, many)]
    found = [race(connections, path, shards, repeat) for path, shards in kinds]
    with open(vw, "rb+") as file:
        file.truncate(min(os.path.getsize(vw), 50_000_000))
    constants = measured_constants(svmlight, vw, connections, quick)
    for (path, shards), taken in zip(kinds, found):
        _, run = run_once(connections[2], path, shards)
        title = f"{os.path.getsize(path) / 1e6:,.0f} MB, {shards} shards: "
        about = data_of(run, path, shards)
        said = {workers: predicted(about, workers, shards, constants) for workers in WORKERS}
        for field, name in PARTS.items():
            cells = {}
            for workers in WORKERS:
                cells[f"{workers} workers"] = [getattr(taken[workers], field)]
                cells[f"{workers} predicted"] = [getattr(said[workers], field)]
            yield Row(title + name, cells, {})
        faster = {
            "2 workers": [taken[1].whole / taken[2].whole],
            "2 predicted": [said[1].whole / said[2].whole],
        }
        yield Row(title + "as fast as one worker", faster, {}, unit="times")
        yield Row(
            title + "moved in a round", {f"{len(connections)} workers": [run.told[-1].nbytes / 1e6]}, {}, unit="MB"
        )
    for name, value in vars(constants).items():
        unit, factor = UNITS[name]
        yield Row(f"constant {name}", {"measured": [value * factor]}, {}, unit=unit)


NANOSECONDS = dict.fromkeys(
    ("survey", "read", "learn", "copy", "take", "pack", "add", "mix", "follow", "name"), ("ns", 1e9)
)
BYTES = dict.fromkeys(("up", "down", "whole", "name_bytes", "kept", "text"), ("bytes each", 1.0))
MILLISECONDS = dict.fromkeys(("begin", "task", "answer", "latency", "around"), ("ms", 1e3))
UNITS = {**NANOSECONDS, **BYTES, **MILLISECONDS, "local": ("MB/s", 1e-6)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: whether it runs, not how fast")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="turns that count (3)")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=None if os.isatty(1) else 150, highlight=False)
    console.print(", ".join(f"{name} {value}" for name, value in timing.machine().items()))
    load = os.getloadavg()[0]
    title, _, explanation = (__doc__ or "").partition("\n")
    console.print(timing.table(title, list(bench(args.quick, args.repeat))))
    console.print(explanation.strip())
    console.print(f"Other processes wanted {load:.1f} processors when it began.")


if __name__ == "__main__":
    main()

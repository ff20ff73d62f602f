"""Training on a cluster from files: ``onlearn train --cluster`` in Python."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

from onlearn.cluster.connection import Connection, connect
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.run import ClusterRun
from onlearn.cluster.shard_reading import Shard
from onlearn.compiler import compile_seconds
from onlearn.data.shards import cut
from onlearn.data.sources import sources
from onlearn.errors import PlanError
from onlearn.models import training
from onlearn.models.model import Model
from onlearn.models.plan import Plan
from onlearn.models.run_report import is_unfinished, run_report

SHARDS = 8  # of data that are not large
SHARD = 128 << 20  # bytes of a file in a shard, at most


def train(data: Any, output: Any = None, *, cluster: Any, **options: Any) -> Model:
    """Learn a model from files on a cluster: ``onlearn train --cluster`` in Python.

    ``cluster`` is a client of Dask's, the address of a scheduler, or ``"local:4"``; all other options are those of
    ``onlearn.train``, and ``shards``, ``rounds``, ``mix`` and ``lbfgs``.
    """
    asked = ClusterOptions(sources=data, output=output, cluster=cluster, **options)
    with connect(cluster, patience=asked.patience) as connection:
        run = prepare(asked, connection)
        began = perf_counter() - compile_seconds()

        def save() -> None:
            if asked.output is not None:
                run.model.save(asked.output)

        run.go(None, save)
        seconds = perf_counter() - compile_seconds() - began
        save()
        model = run.model
        model.report_ = run_report(run, asked.output, seconds, stopped=False)
        training.test(run, asked, model.report_)
        return model


def prepare(options: ClusterOptions, connection: Connection) -> ClusterRun:
    """The run that the options ask for."""
    options.check_cluster()
    planned = training.plan_files(options)
    plan, model = planned.plan, planned.model
    if "-" in plan.sources:
        raise PlanError("standard input cannot be cut into shards: name files")
    count, shards = shards_of(plan, model, options.shards)
    run = ClusterRun(
        plan,
        model,
        planned.bad,
        connection,
        shards,
        asked_shards=count,
        rounds=options.rounds,
        mix=options.mix,
        lbfgs=options.lbfgs,
    )
    training.finish_preparing(run, planned, options)
    return run


def shards_of(plan: Plan, model: Model | None, count: int | None) -> tuple[int, list[Shard]]:
    """How many shards files are cut into, about, and the shards; an unfinished run goes on with its own."""
    if model is not None and is_unfinished(model, plan.sources):
        before = model.trained.get("cluster")
        if before is None:
            raise PlanError("the model is of an unfinished run on one machine: resume it without cluster=", "resume")
        if count not in (None, before["asked_shards"]):
            raise PlanError("the run is unfinished and goes on as it began: leave shards= out")
        count = int(before["asked_shards"])
    named = sources(plan.sources)
    count = count or usual_shards(sum(one.size or 0 for one in named))
    reading = {**({} if model is None else model.reading), **plan.reading}
    options = {name: reading[name] for name in ("format", "delimiter") if name in reading}
    return count, [Shard(number, one.name, one) for number, one in enumerate(cut(named, count, **options))]


def usual_shards(nbytes: int) -> int:
    """The number of shards of data of so many bytes; it does not depend on the workers."""
    return max(SHARDS, math.ceil(nbytes / SHARD))

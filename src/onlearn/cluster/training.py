"""Training on a cluster from files: ``onlearn train --cluster`` in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from onlearn.cluster.collections import Columns, columns_of, is_collection, parts_of
from onlearn.cluster.connection import Connection
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.run import ClusterRun
from onlearn.cluster.scheduler import connect
from onlearn.cluster.shards import Shard, deal, everywhere
from onlearn.compiler import compile_seconds
from onlearn.data.shards import cut
from onlearn.data.sources import sources
from onlearn.errors import PlanError
from onlearn.model_file import estimator_of
from onlearn.models import training
from onlearn.models.model import Model
from onlearn.models.plan import Plan
from onlearn.models.run import Run
from onlearn.models.run_report import is_unfinished, run_report

SHARDS = 4  # of data that are not large
SHARD, LARGEST = 128 << 20, 1 << 30  # bytes of files in a shard, and of those of which there are MANY
MANY = 1024
PIECES = 64  # of a shard, at most
PIECE = 1 << 16  # bytes of a piece, at least
COURSE = {"shards": "asked_shards", "rounds": "rounds", "mix": "mix", "lbfgs": "asked_lbfgs"}  # as a model keeps them
Begin = Callable[[Connection], ClusterRun]


def train(data: Any, output: Any = None, *, cluster: Any, **options: Any) -> Model:
    """Learn a model from files on a cluster: ``onlearn train --cluster`` in Python.

    ``cluster`` is a client of Dask's, the address of a scheduler, or ``"local:4"``; all other options are those of
    ``onlearn.train``, and ``shards``, ``rounds``, ``mix`` and ``lbfgs``.
    """
    asked = ClusterOptions(sources=data, output=output, cluster=cluster, **options)
    from onlearn.cluster import tuned_run  # which trains by this module

    begin = tuned_run.planned(asked)
    with connect(cluster, patience=asked.patience) as connection:
        return carry_out(begin(connection), asked)


def fit(
    learner: Any,
    data: Any,
    client: Any = None,
    *,
    shards: int | None = None,
    rounds: int | None = None,
    mix: str = "rows",
    lbfgs: int | None = None,
    target: str | None = None,
    **options: Any,
) -> Any:
    """Learn on a cluster from files or from a collection of Dask's.

    :param learner: an estimator or its name, such as ``"AROW"``; None: one that suits the data
    :param data: files (paths, patterns, URLs), a Dask data frame, a bag of dicts, or Dask arrays ``(X, y)`` or ``(X, y,
        weights)``
    :param client: a client of Dask's, the address of a scheduler, or ``"local:4"``; None starts a process for each
        processor
    :param shards: how many parts the data are cut into, by default by their size; the result depends on it, and not on
        the workers
    :param rounds: how many times all shards are learned from and mixed, by default 10
    :param mix: whether shards count by their ``"rows"``, all alike (``"uniform"``), or by their ``"mistakes"``
    :param lbfgs: iterations of L-BFGS after the rounds; by default 20 where the learner has l2, else none
    :param target: the column to predict, of files and data frames
    :param options: further options of ``onlearn.train``

    Returns a ``Model``; of arrays, the estimator, which has learned. ``report_`` of the model has the rounds.
    """
    given = ClusterOptions(
        sources=[] if is_collection(data) else data,
        cluster=client,
        learner=learner,
        shards=shards,
        rounds=rounds,
        mix=mix,
        lbfgs=lbfgs,
        target=target,
        **options,
    )
    from onlearn.cluster import tuned_run

    begin: Callable[[Connection], Run]
    begin = planned_collection(data, given) if is_collection(data) else tuned_run.planned(given)
    with connect("local" if client is None else client, patience=given.patience) as connection:
        model = carry_out(begin(connection), given)
    return estimator_with(model, data[1].dtype) if isinstance(data, tuple) and is_collection(data) else model


def carry_out(run: Run, options: ClusterOptions) -> Model:
    """Do a run, saved after each round and in the end if there is an output; its model has the report."""
    began = perf_counter() - compile_seconds()

    def save() -> None:
        if options.output is not None:
            run.model.save(options.output)

    run.go(None, save)
    seconds = perf_counter() - compile_seconds() - began
    save()
    model = run.model
    model.report_ = run_report(run, options.output, seconds, stopped=False)
    training.test(run, options, model.report_)
    return model


def estimator_with(model: Model, dtype: Any) -> Any:
    """The estimator of a model of arrays, whose classes are of the type that y has."""
    learner = model.learner
    if model.labels is not None:
        texts = np.array(model.labels)
        classes = texts == "True" if np.dtype(dtype).kind == "b" else texts.astype(dtype)
        learner.task = replace(learner.task, classes=classes)
    return estimator_of(learner)


def prepare(options: ClusterOptions, connection: Connection) -> ClusterRun:
    """The run that the options ask for."""
    return planned(options)(connection)


def planned(options: ClusterOptions) -> Begin:
    """What begins the run that the options ask for; what can be refused without a cluster is refused now."""
    options.check_cluster()
    made = training.plan_files(options)
    plan, model = made.plan, made.model
    if "-" in plan.sources:
        raise PlanError("standard input cannot be cut into shards: name files", "cluster")
    count, shards = shards_of(plan, model, options)
    run = ClusterRun(
        plan,
        model,
        made.bad,
        shards,
        asked_shards=count,
        rounds=options.rounds,
        mix=options.mix,
        lbfgs=options.lbfgs,
    )
    training.finish_preparing(run, made, options)
    return run.connect


def planned_collection(data: Any, options: ClusterOptions) -> Begin:
    """What begins the run over a collection of Dask's that the options ask for."""
    options.check_cluster()
    for name, why in (
        ("resume", "files can be read again"),
        ("holdout", "split the collection"),
        ("id", "ids are ignored"),
    ):
        if options.is_given(name):
            raise PlanError(f"{name}= has no use with a collection of Dask's: {why}")
    plan = training.plan_of(options)
    of_arrays = isinstance(data, tuple)
    columns = Columns(None) if of_arrays else columns_of(data, options)
    parts = parts_of(data, options.shards)
    run = ClusterRun(
        plan,
        None,
        training.checked_files(options, training.checked_output(options)),
        [Shard(number, f"part {number}") for number in range(len(parts))],
        columns=columns,
        rounds=options.rounds,
        mix=options.mix,
        lbfgs=options.lbfgs,
    )
    return lambda connection: run.connect(connection, list(connection.client.compute(parts)))


def shards_of(plan: Plan, model: Model | None, options: ClusterOptions) -> tuple[int, list[Shard]]:
    """How many shards files are cut into, about, and the shards; an unfinished run goes on with its own."""
    count = options.shards
    if model is not None and is_unfinished(model, plan.sources):
        before = model.trained.get("cluster")
        if before is None:
            raise PlanError("the model is of an unfinished run on one machine: resume it without cluster=", "resume")
        for name, key in COURSE.items():
            if options.is_given(name) and getattr(options, name) != before[key]:
                raise PlanError(f"the run is unfinished and goes on as it began: leave {name}= out")
        count = int(before["asked_shards"])
    named = sources(plan.sources)
    nbytes = sum(one.size or 0 for one in named)
    count = count or usual_shards(nbytes)
    pieces = count * min(max(nbytes // (count * PIECE), 1), PIECES)
    reading = {**({} if model is None else model.reading), **plan.reading}
    how = {name: reading[name] for name in ("format", "delimiter", "max_line") if name in reading}
    return count, deal([everywhere(piece) for piece in cut(named, pieces, **how)], count)


def usual_shards(nbytes: int) -> int:
    """The number of shards of data of so many bytes; it does not depend on the workers."""
    size = min(max(SHARD, nbytes / MANY), LARGEST)
    return max(SHARDS, math.ceil(nbytes / size))

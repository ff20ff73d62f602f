"""``train``: from files to a model, as ``onlearn train`` does it."""

from __future__ import annotations

import inspect
import math
import os
from dataclasses import MISSING, fields
from time import perf_counter
from typing import Any

from onlearn import data
from onlearn.compiler import compile_seconds
from onlearn.data.sources import sources as sources_of
from onlearn.errors import PlanError
from onlearn.models import evaluation, train_plan
from onlearn.models.kernel_run import run_of
from onlearn.models.model import Model, load_learner
from onlearn.models.run import Run
from onlearn.models.run_report import told, unfinished
from onlearn.models.train_options import Path, TrainOptions


def train(sources: Path | list[Path], output: Path | None = None, **options: Any) -> Model:
    """Learn a model from files: ``onlearn train`` in Python.

    The options are those of the command, by the same names (``--max-names`` is ``max_names=``); ``TrainOptions`` lists
    them with their meaning. The model is written to ``output``, if that is given. Its ``report_`` is a dict of what was
    decided and how good the model is, as the command prints with ``--json``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = path.write_text(
    ...     "weight,name,label\\n" + "4.1,Tom,cat\\n31.0,Rex,dog\\n3.8,Kitty,cat\\n28.5,Bello,dog\\n" * 10
    ... )
    >>> model = train(path, passes=3, ignore="name")
    >>> model.predict([{"weight": 4.0}, {"weight": 30.0}]).tolist()
    ['cat', 'dog']
    >>> model.report_["progressive"]["n"], model.report_["progressive"]["majority"]
    (40, 0.5)
    """
    asked = TrainOptions(sources=sources, output=output, **options)
    run = prepare(asked)
    began = perf_counter() - compile_seconds()

    def save() -> None:
        if asked.output is not None:
            run.model.save(asked.output)

    run.go(None, save, asked.checkpoint_every or 0)
    seconds = perf_counter() - compile_seconds() - began  # without the time that compiling took
    save()
    model = run.model
    model.report_ = report_of(run, asked, seconds)
    test(run, asked, model.report_)
    return model


def _signature() -> inspect.Signature:
    """The options by name, for ``help(onlearn.train)``."""
    names = ("sources", "output")
    made = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if one.name in names else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=one.type,
        )
        for one in fields(TrainOptions)
    ]
    return inspect.Signature(made, return_annotation="Model")


train.__signature__ = _signature()  # type: ignore[attr-defined]


def prepare(options: TrainOptions) -> Run:
    """The run that is asked for; a ``PlanError`` or ``DataError`` if it cannot be."""
    output = None if options.output is None else os.fspath(options.output)
    if output is not None:
        train_plan.check_output(output)
    elif options.checkpoint_every is not None:
        raise PlanError("checkpoint_every= needs output=, the file to save the model to")
    plan = train_plan.plan_of(options)
    read = [one.name for one in sources_of([*plan.sources, *train_plan.as_names(options.test)])]  # must exist
    resumed = [] if options.resume is None else [os.fspath(options.resume)]
    kept = None if options.bad_rows is None else os.fspath(options.bad_rows)
    if kept is not None:
        train_plan.check_bad_rows(kept, output)
        train_plan.keep_apart(kept, *read, *resumed, *([] if output is None else [output]), parameter="bad_rows")
    if output is not None:
        train_plan.keep_apart(output, *read, parameter="output")
    bad = data.BadRows(kept, train_plan.max_bad(options), options.strict)
    model = None
    if resumed:
        model = load_learner(resumed[0])
        if not isinstance(model, Model):
            raise data.DataError(f"{resumed[0]} holds a learner without features, which only Python can go on with")
        plan.task = model.task
        plan.seed = int(model.trained.get("seed", plan.seed))
        if unfinished(model, plan.sources) and (options.passes or options.holdout):
            raise PlanError("the run is unfinished and goes on as it began: leave passes= and holdout= out")
    return run_of(plan, model, bad)


def report_of(run: Run, options: TrainOptions, seconds: float, stopped: bool = False) -> dict[str, Any]:
    """What was learned, ready for JSON."""
    model = run.model
    return {
        "model": None if options.output is None else os.fspath(options.output),
        "learner": " ".join(repr(model.learner).split()),
        "task": run.plan.task,
        "labels": model.labels,
        "rows": run.rows,
        "examples": run.examples,
        "passes": run.passes,
        "passes_ended": max(run.ended, run.ended_before),
        "features": (int(model.features.n_features_out_) if hasattr(model.learner, "n_features_in_") else None),
        **hashed_features(model),
        **kernel_of(model.learner),
        "bad_rows": run.bad.count,
        "seconds": round(seconds, 3),
        "progressive": progressive(run),
        "notes": list(model.trained["notes"]),
        "warnings": list(run.warnings),
        "stopped": stopped,
        "cache": told(run.reader),
    }


def progressive(run: Run) -> dict[str, Any]:
    """How it did on each example before learning from it, in the first pass."""
    first = run.progressive()
    made: dict[str, Any] = {"n": int(first["seen"]), "loss": first["loss"]}
    if run.model.labels is not None:
        made["mistakes"] = int(first["mistakes"])
        made["accuracy"] = 1 - first["mistakes"] / max(1.0, first["seen"])
        made["majority"] = run.majority
    elif run.model.learner.choices["rule"].name == "lms":  # half the squared error of targets of deviation 1
        made["rmse"] = math.sqrt(2 * first["loss"]) * run.model.target[1]
    return made


def test(run: Run, options: TrainOptions, report: dict[str, Any]) -> data.BadRows | None:
    """Add to the report how good the model is on rows held out and on those of ``test=``; the bad rows among these."""
    if run.plan.holdout:
        report["holdout"] = evaluation.evaluate(run.model, run.held_out_batches()).report()
    if not options.test:
        return None
    reader = None
    try:
        reader = run.model.read(options.test, labels="required", weight=None)
        report["test"] = {**evaluation.evaluate(run.model, reader).report(), "bad_rows": reader.bad.count}
    except (TypeError, ValueError) as error:
        why = str(error)
        if reader is not None and not isinstance(error, data.DataError):
            names = ", ".join(source.name for source in reader.sources[:3])
            why = f"{names} cannot be used with this model: {error}"
        where = "" if options.output is None else f" (the model is in {options.output} and was not tested)"
        raise data.DataError(f"{why}{where}") from error
    return reader.bad


# ----------------------------------------------------------------------------------------------------
# What a report says of a model.


def kernel_of(learner: Any) -> dict[str, Any]:
    """The kernel and the support examples of a learner that has them."""
    if learner.representation != "dual":
        return {}
    return {"kernel": str(learner.kernel), "support_examples": learner.n_support_}


def hashed_features(model: Model) -> dict[str, Any]:
    """The names that are kept (None: there are none to keep), how many features are hashed, and how many collide."""
    named = model.features.has_vocabulary
    found = model.features.vocabulary_.collisions() if named else model.far.collisions()
    bits = model.features.bits if named else getattr(model.far, "bits", 0)
    there = found is not None and found["features"] > 0
    return {
        "names": len(model.features.vocabulary_) if named else None,
        "hashed_features": round(found["features"], 1) if found and there else 0,
        "hashed_weights": 1 << bits if there else 0,
        "estimated_collisions": round(found["collisions"], 1) if found and there else 0,
        "estimate_is_at_least": bool(found and there and found["buckets"] == 1 << bits),
    }

"""``--report FILE``: the path is checked before the work of a command begins, and the page is written after it."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onlearn.cli.terminal import command_line
from onlearn.errors import PlanError
from onlearn.models.train_options import TrainOptions, as_list, keep_apart

if TYPE_CHECKING:
    from onlearn.data import BadRows
    from onlearn.models import Model
    from onlearn.models.run import Run
    from onlearn.models.tag_training import TagRun
    from onlearn.models.tagger import Tagger
    from onlearn.report import Evidence


def check_report(path: str | None, *inputs: str, outputs: Sequence[str] = ()) -> None:
    """Refuse a path that no report can be written to, that is read, or is written already; None is no report."""
    if path is None:
        return
    from onlearn.report import check_path

    check_path(path)
    if any(os.path.abspath(path) == os.path.abspath(one) for one in outputs):
        raise PlanError(f"{path} is where something else is written", "report")
    found = [name for one in inputs for name in glob.glob(one)]  # patterns stand for the files they match
    keep_apart(path, *inputs, *found, parameter="report")


def check_train_report(path: str | None, options: TrainOptions, *outputs: str) -> None:
    """The same for ``train`` and the like: data, models, bad rows and other outputs are not to be written over."""
    written = [os.fspath(one) for one in (options.output, options.bad_rows, *outputs) if one is not None]
    check_report(path, *as_list(options.sources), *as_list(options.test), outputs=written)


def write_report(path: str | None, kind: str, facts: dict[str, Any], evidence: Any = None) -> None:
    """Write the report that ``--report`` asks for; None asks for none."""
    if path is None:
        return
    from onlearn.report import write

    write(path, kind, facts, evidence, command_line.get())


def evidence_of(path: str | None, labels: Sequence[str] | None, data: Sequence[str]) -> Evidence | None:
    """An empty evidence for the report that ``--report`` asks for; ``data`` are the files."""
    if path is None:
        return None
    from onlearn.report import Evidence

    evidence = Evidence(labels)
    evidence.more["data"] = [os.fspath(one) for one in data]
    return evidence


def note_model(evidence: Evidence, model: Model) -> None:
    """Add what a model has learned, and the seed it was trained with."""
    evidence.note_weights(model)
    evidence.more["seed"] = model.trained.get("seed")


def note_run(evidence: Evidence, run: Run, options: TrainOptions) -> None:
    """Add the course of a training run, its bad rows, and the size of the model."""
    output = options.output
    note_model(evidence, run.model)
    evidence.more["seed"] = run.plan.seed
    evidence.more["test_data"] = as_list(options.test)
    learner = run.model.learner
    if learner.is_progressive:
        evidence.note_progress(learner.history_)
    if not evidence.rows and (kept := learner.scores_before_learning()) is not None:
        evidence.observe_scores(*kept)
    from onlearn.models.run_certificate import run_certificate

    if (certificate := run_certificate(run)) is not None:
        evidence.more["certificate"] = certificate.to_dict()
    evidence.note_bad(run.reading.bad, "the training data")
    if output is not None and os.path.exists(output):
        evidence.more["model_bytes"] = os.path.getsize(output)


def note_tagger(evidence: Evidence, tagger: Tagger) -> None:
    """Add the attributes that weigh most for each label of a tagger, and the seed it was trained with."""
    evidence.more["seed"] = tagger.trained.get("seed")
    evidence.note_tag_weights(tagger.learner)


def recorded(turns: list[Any], watch: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """A watch that adds how each pass went to ``turns``, and calls another."""

    def both(now: Any) -> None:
        turns.append(now)
        if watch is not None:
            watch(now)

    return both


def note_tag_run(evidence: Evidence, run: TagRun, turns: list[Any], bad: BadRows | None) -> None:
    """Add the course of a training run of a tagger, and its bad rows; ``bad`` are those of the test data."""
    note_tagger(evidence, run.tagger)
    evidence.more["test_data"] = as_list(run.options.test)
    if turns:
        passes = [{"loss": one.loss, **({"wrong": one.wrong} if one.wrong >= 0 else {})} for one in turns]
        evidence.note_progress({"passes": passes})
    evidence.note_bad(run.bad, "the training data")
    if bad is not None:
        evidence.note_bad(bad, "the test data")

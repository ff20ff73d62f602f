"""``onlearn stream``: a model through a stream, each row predicted before it is learned from."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from onlearn.cli.options import BadRowsFile, Data, Format, MaxBad, MaxLine, Quiet, Strict, line_limit, print_bad_rows
from onlearn.cli.terminal import Stopped, announce_compiling, echo_json, print_message
from onlearn.errors import PlanError
from onlearn.models.train_options import MAX_BAD, check_output, keep_apart, part

Output = Annotated[
    str, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the model.", show_default=False)
]
Resume = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Go on with this model; by default one that knows nothing yet.")
]
Target = Annotated[str | None, typer.Option(metavar="COL", help="The column to predict; guessed by default.")]
Task = Annotated[str | None, typer.Option(metavar="NAME", help="classify (by default) or regress.")]
Every = Annotated[int, typer.Option(metavar="N", min=1, help="Rows from one record to the next.")]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="accuracy, error, log_loss or brier; in regression absolute_error or squared_error. May be repeated.",
    ),
]
Delay = Annotated[
    str,
    typer.Option(
        metavar="N|COL",
        help="Rows by which labels are late; or the column that tells which question a row with a label answers.",
    ),
]
Window = Annotated[int, typer.Option(metavar="N", min=1, help="The latest rows, for the means of the window.")]
Fading = Annotated[float, typer.Option(metavar="F", help="How much less a row counts with every later one.")]
Drift = Annotated[
    str | None, typer.Option(metavar="DETECTOR", help='Watch for drift: "adwin(0.002)", "page_hinkley(threshold=50)".')
]
OnDrift = Annotated[str, typer.Option(metavar="WHAT", help="warn, reset or replace.")]
Json = Annotated[bool, typer.Option("--json", help="Print each record as a line of JSON.")]


def stream(
    data: Data,
    output: Output,
    resume: Resume = None,
    target: Target = None,
    task: Task = None,
    format: Format = None,
    every: Every = 1000,
    metric: Metric = None,
    delay: Delay = "0",
    window: Window = 1000,
    fading: Fading = 0.999,
    drift: Drift = None,
    on_drift: OnDrift = "warn",
    bad_rows: BadRowsFile = None,
    max_bad: MaxBad = MAX_BAD,
    strict: Strict = False,
    max_line: MaxLine = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn row by row as data come, and tell how good the predictions are on the way.

    Each row is predicted before it is learned from, so that the figures are those of a model in use: the mean over all
    rows and, in brackets, over the latest. A model that knows nothing yet chooses its features by the first 100 rows.
    The model is written at the end, and on Ctrl-C.

    \b
    Examples:
      onlearn stream day1.jsonl -o m.onl
      tail -f clicks.jsonl | onlearn stream - -o m.onl --resume m.onl --drift adwin --on-drift replace
      onlearn stream orders.csv -o m.onl --target late --delay 500 --metric accuracy --metric log_loss
    """
    import onlearn
    from onlearn.data import BadRows, DataError
    from onlearn.engine.passes import first_ctrl_c

    check_output(output)
    keep_apart(output, *data, parameter="output")
    if bad_rows is not None:
        keep_apart(bad_rows, *data, output, *([] if resume is None else [resume]), parameter="bad_rows")
    announce_compiling(quiet)
    bad = BadRows(bad_rows, part(max_bad, "max_bad", whole=True), strict)
    given = {"target": target, "format": format, "max_line": line_limit(max_line), "bad": bad}
    reading: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    model = _model(resume, task)
    # On a terminal that shows the records, these are the progress.
    progress = False if quiet or sys.stdout.isatty() else None
    try:
        records = onlearn.stream(
            data, model, metric, every, int(delay) if delay.isdecimal() else delay, window, fading, drift, on_drift,
            progress, **reading,
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, DataError) else PlanError(str(error)) from error
    stopped, rows = False, 0
    try:
        for record in records:
            rows = record.rows
            if json:
                echo_json(_facts(record), indent=None)
            elif not quiet:
                typer.echo(record.line())
    except KeyboardInterrupt:
        stopped = True
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, DataError) else DataError(str(error)) from error
    if model.learner is None:
        if stopped:
            raise Stopped("stopped by Ctrl-C before anything was learned; no model was written")
        raise DataError("no row has a label, so there is nothing to learn from")
    with first_ctrl_c():
        model.save(output)
    if not quiet:
        print_bad_rows(bad)
    if stopped:
        raise Stopped(f"stopped by Ctrl-C after {rows:,} rows or more; the model so far is in {output}")
    if not (quiet or json):
        print_message(f"the model is in {output}")


def _model(resume: str | None, task: str | None) -> Any:
    """The model to go on with, or a new one."""
    from onlearn.data import DataError
    from onlearn.models.model import Model
    from onlearn.models.stored_model import load_learner

    if task not in (None, "classify", "regress"):
        raise PlanError(f"{task!r} is neither classify nor regress", "task")
    if resume is None:
        model = Model()
        model.task = task or "classify"
        return model
    found = load_learner(resume)
    if not isinstance(found, Model):
        raise DataError(f"{resume} holds a learner without features, which only Python can go on with")
    if found.task not in ("classify", "regress"):
        raise PlanError(
            f"the model in {resume} was trained to {found.task}, but a stream has one label or number a row: "
            "go on with onlearn train",
            "resume",
        )
    if task not in (None, found.task):
        raise PlanError(f"the model in {resume} was trained to {found.task}", "task")
    return found


def _facts(record: Any) -> dict[str, Any]:
    return {**asdict(record), "rows_per_second": record.rows_per_second}

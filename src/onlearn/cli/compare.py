"""``onlearn compare``: several learners on one data set."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from onlearn.cli.options import Quiet, Report, options_command
from onlearn.cli.reporting import check_train_report, evidence_of, write_report
from onlearn.cli.terminal import Stopped, announce_compiling, as_options, echo_json, print_message
from onlearn.models.train_options import NOT_COMPARED, TrainOptions

Learners = Annotated[
    list[str] | None,
    typer.Option(
        "--learner",
        metavar="NAME",
        help='A learner to compare, such as AROW or "LogisticRegression(rate=0.5)", or default, what train takes by '
        "itself; may be repeated. By default a few that suit the data.",
    ),
]
Peers = Annotated[
    list[str] | None,
    typer.Option(
        "--peer",
        metavar="MODULE:CLASS",
        help="An estimator of another package, such as sklearn.linear_model:SGDClassifier(loss=log_loss); may be "
        "repeated.",
    ),
]
Folds = Annotated[
    int | None, typer.Option(min=2, help="Test by cross-validation with so many folds, in place of --holdout.")
]
NoCurves = Annotated[
    bool, typer.Option("--no-curves", help="Do not let peers learn a second time, for their learning curves.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, with learning curves.")]


@options_command(
    TrainOptions,
    without=NOT_COMPARED,
    learner=(Learners, None),
    peer=(Peers, None),
    folds=(Folds, None),
    no_curves=(NoCurves, False),
    as_json=(AsJson, False),
    report_file=(Report, None),
    quiet=(Quiet, False),
)
def compare(
    options: TrainOptions,
    learner: list[str] | None,
    peer: list[str] | None,
    folds: int | None,
    no_curves: bool,
    as_json: bool,
    report_file: str | None,
    quiet: bool,
) -> None:
    """Compare learners on one data set, and tell differences from noise.

    The data are read once, and all learners get the same rows; they are tested on 20% of them unless --test, --holdout
    or --folds says otherwise. Each is trained as train does it; peers learn from the features that ours have. The
    figures: accuracy and log-loss (RMSE and MAE in regression), mistakes in the first pass before learning, seconds,
    growth of memory, and size of the model. The best is compared with each of the others by McNemar's test or the
    bootstrap, with p-values adjusted for their number.

    \b
    Examples:
      onlearn compare reviews.jsonl --report learners.html
      onlearn compare adult.csv --learner AROW --learner "LogisticRegression(rate=0.5)" --test adult.test.csv
      onlearn compare adult.csv --peer "sklearn.linear_model:SGDClassifier(loss=log_loss)" --folds 5
    """
    from onlearn.models import comparison

    check_train_report(report_file, options)
    announce_compiling(quiet)
    given = {name: value for name, value in comparison.given_options(options).items() if name not in NOT_COMPARED}

    def watch(name: str, entry: Any) -> None:
        if entry is not None:
            print_message(f"{name}: {_short(entry)}")

    found = comparison.compare(
        given.pop("sources"),
        learner or None,
        peers=peer or (),
        folds=folds,
        curves=not no_curves,
        watch=None if quiet or as_json else watch,
        **given,
    )
    if as_json:
        echo_json(found.to_dict())
    else:
        _print(found)
    facts = {**found.to_dict(), "notes": [as_options(note) for note in found.notes]}
    write_report(report_file, "compare", facts, evidence_of(report_file, None, found.data))
    if found.stopped:
        count = len(found.learners)
        raise Stopped(f"stopped by Ctrl-C; {count} learner{' was' if count == 1 else 's were'} finished")


def _short(entry: Any) -> str:
    """One learner in a few words, as soon as it is finished."""
    if entry.error is not None:
        return f"failed: {as_options(entry.error)}"
    what = f"accuracy {entry.accuracy:.4f}" if entry.accuracy is not None else f"RMSE {entry.rmse:.5g}"
    return f"{what}, {entry.seconds:.2f} s"


def _print(found: Any) -> None:
    from onlearn.cli.terminal import plain_table, show

    show(f"{found.rows:,} rows to learn from, {found.tested_on}")
    table = plain_table(*found.table()[0])
    for line in found.table()[1:]:
        table.add_row(*line)
    if table.row_count:
        show(table)
    for header, *lines in (found.verdicts(), found.failures()):
        table = plain_table(header[0])
        for name in header[1:]:
            table.add_column(name)
        for line in lines:
            table.add_row(line[0], *map(as_options, line[1:]))  # names are spelled as in Python
        if lines:
            show(table)

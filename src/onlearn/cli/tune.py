"""``onlearn tune``: a race of configurations, its table, and the command that trains by the winner."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from onlearn.cli.options import Quiet, Report, options_command, print_bad_rows
from onlearn.cli.reporting import check_train_report, evidence_of, write_report
from onlearn.cli.terminal import Stopped, announce_compiling, echo_json, output
from onlearn.cli.train import carry_out, interruptible, print_report
from onlearn.cluster.options import OF_CLUSTERS, ClusterOptions
from onlearn.models.train_options import AUTO, TrainOptions, as_list

OF_TRAINING = tuple(name for name in OF_CLUSTERS if name != "patience")  # about a cluster, and not about races

Learner = Annotated[
    str | None,
    typer.Option(
        "--learner",
        metavar="NAME",
        help="A learner that cannot race, such as SVC or MLPClassifier: its parameters are searched by Optuna.",
    ),
]
Trials = Annotated[
    int | None, typer.Option(min=1, help="With --learner: how many configurations to try, by default 30.")
]
Folds = Annotated[
    int | None,
    typer.Option(
        min=2, help="Cross-validate the winner with so many folds; with --learner each trial, by default with 5."
    ),
]


@options_command(
    ClusterOptions,
    without=(*OF_TRAINING, "learner", "resume", "rule", "geometry", "kernel", "budget", "budget_policy", "cache_mb",
             "template", "column", "checkpoint_every"),
    table=(Annotated[str | None, typer.Option(metavar="FILE", help="Write the table of the race as JSON.")], None),
    resume=(
        Annotated[
            str | None,
            typer.Option(metavar="TABLE", help="The table of a race before; what it has dropped does not take part."),
        ],
        None,
    ),
    learner=(Learner, None),
    trials=(Trials, None),
    folds=(Folds, None),
    as_json=(Annotated[bool, typer.Option("--json", help="Print the table as one JSON object.")], False),
    report_file=(Report, None),
    quiet=(Quiet, False),
)  # fmt: skip
def tune(
    options: ClusterOptions, table: str | None, resume: str | None, learner: str | None, trials: int | None,
    folds: int | None, as_json: bool, report_file: str | None, quiet: bool,
) -> None:  # fmt: skip
    """Race configurations of learner, features and passes, and print which is best.

    All configurations learn from the same rows, and the worse half is dropped again and again; rows held out decide
    between the last ones, and about the number of passes. The default configuration takes part, and wins unless
    another is clearly better. What is raced suits the kind of the data; --space says what to race instead. The
    command at the end trains by the winner. With -o the winner is trained, as train --learner auto does. With --learner
    the parameters of a learner that cannot race are searched, which takes Optuna.

    \b
    Examples:
      onlearn tune reviews.jsonl --report race.html
      onlearn tune adult.csv --target income -o m.onl --test adult.test.csv
      onlearn tune day1.svm --space learner=AROW,LogisticRegression --space "rate=log(0.01,1)"
      onlearn tune reviews.jsonl --space space.json --configurations 30 --time-limit 60 --table race.json
      onlearn tune reviews.jsonl --resume race.json
      onlearn tune digits.csv --learner SVC --trials 30 --space "C=log(0.1,100)"
      onlearn tune reviews.jsonl --cluster tcp://10.0.0.5:8786
    """
    from onlearn.errors import PlanError
    from onlearn.models.train_options import keep_apart

    options.learner = AUTO if learner is None else learner
    check_train_report(report_file, options, *([] if table is None else [table]))
    if learner is None and trials is not None:
        raise PlanError("trials= is about learner=, which is not given")
    if options.task not in (None, "classify", "regress") and (learner is None or options.task == "tag"):
        raise PlanError(f"onlearn tune is for classification and regression, not for {options.task}", "task")
    if learner is not None and options.configurations is not None:
        raise PlanError("configurations= is about a race, and learner= cannot race: trials= says how many are tried")
    if learner is not None and resume is not None:
        raise PlanError("resume= is about a race, and learner= cannot race")
    if learner is not None and report_file is not None:
        raise PlanError("report= is about a race, and learner= cannot race", "report")
    if learner is None and folds is not None and "-" in as_list(options.sources):
        raise PlanError("folds= reads the data twice, which standard input cannot be")
    if learner is not None and options.cluster is not None:
        raise PlanError("cluster= is about a race, and learner= cannot race")
    if options.output is not None or options.cluster is None:
        options.check_cluster()
    if options.output is None and options.test:
        raise PlanError("test= needs output=: without a model there is nothing to test")
    if table is not None:
        keep_apart(table, *as_list(options.sources), parameter="table")
        if not os.path.isdir(os.path.dirname(os.path.abspath(table))):
            raise PlanError(f"there is no directory {os.path.dirname(table)}", "table")
    if learner is not None:
        from onlearn.cli.tune_search import search_learner

        return search_learner(options, trials, folds, table, as_json, quiet)
    announce_compiling(quiet)
    with tuned_run(options, None if resume is None else read(resume), quiet or as_json) as run:
        race_and_train(run, options, table, folds, as_json, report_file, quiet)


@contextmanager
def tuned_run(options: ClusterOptions, before: Any, silent: bool) -> Iterator[Any]:
    """The run that begins with a race, in this process or on a cluster, where the winner is trained, too."""
    from onlearn.models.training import checked_files, checked_output
    from onlearn.models.tuned_run import TunedRun

    bad, alone = checked_files(options, checked_output(options)), options.without_cluster()
    if options.cluster is None:
        yield TunedRun(alone, bad, before)
        return
    from onlearn.cli.clusters import cluster_run, connected

    if options.output is not None:
        with cluster_run(options, silent, before) as run:
            yield run
        return
    from onlearn.cluster.races import ClusterField

    with connected(options.cluster, options.patience, silent) as connection:
        yield TunedRun(alone, bad, before, field=ClusterField(connection))


def race_and_train(
    run: Any, options: TrainOptions, table: str | None, folds: int | None, as_json: bool, report_file: str | None,
    quiet: bool,
) -> None:  # fmt: skip
    """Race, print the table, and with an output train the winner."""
    silent = quiet or as_json
    _race(run, silent)
    found: dict[str, Any] = run.tuning or {}
    validated: Any = None
    if folds is not None and not run.clock.stopped:
        from onlearn.cli.tune_search import print_validation, validate_winner

        validated = validate_winner(options, found, folds)
        found["cross_validation"] = validated.to_dict()
    if table is not None:
        with output(table, parameter="table") as file:
            file.write(f"{json.dumps(found, indent=1)}\n".encode())

    def show(report: dict[str, Any] | None, printed: list[str]) -> None:
        if as_json:
            training = {} if report is None else {"training": {k: v for k, v in report.items() if k != "tuning"}}
            echo_json({**found, **training}, indent=None)
        elif not quiet:
            print_table(found)
            if validated is not None:
                print_validation(validated)
            if report is not None:
                print_report(report, printed)

    if options.output is not None:
        return carry_out(run, options, show, silent=silent, quiet=quiet, report_file=report_file)
    if not quiet:
        print_bad_rows(run.reading.bad)
    show(None, [])
    write_report(report_file, "tune", found, evidence_of(report_file, None, as_list(options.sources)))
    if run.clock.stopped:
        raise Stopped("stopped by Ctrl-C during the race; the best so far is shown")


def read(path: str) -> dict[str, Any]:
    """The table of a race before."""
    from onlearn.data import DataError

    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        rows = found["configurations"]
        if not all(isinstance(one["spelling"], str) and one.get("why", "") is not one for one in rows):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path} is not the table of a race, as onlearn tune --table writes it") from None
    return dict(found)


def _race(run: Any, silent: bool) -> None:
    """Race, with a line of progress."""
    from onlearn.data import DataError
    from onlearn.errors import PlanError

    with interruptible(run), _rung_line(silent) as show:
        run.on_rung = show
        try:
            run.decide()
        except (DataError, PlanError):
            raise
        except (ValueError, OverflowError) as error:
            raise PlanError(str(error)) from error
        except KeyboardInterrupt:
            raise Stopped("stopped by Ctrl-C before the race had a result") from None


@contextmanager
def _rung_line(silent: bool) -> Iterator[Callable[[Any, list[Any]], None] | None]:
    """One line of progress on a terminal; nothing elsewhere."""
    from onlearn.cli.console import PlainConsole

    console = PlainConsole(stderr=True)
    if silent or not console.is_terminal:
        yield None
        return
    from rich.live import Live

    with Live(console=console, transient=True, auto_refresh=False) as live:

        def show(race: Any, options: list[Any]) -> None:
            from onlearn.models.configuration import spelling

            best = race.winner
            leader = "" if best is None else f"; ahead: {spelling(options[best]) or 'the default'}"
            live.update(
                f"{race.examples:,} examples, {len(race.alive)} of {len(options)} are left{leader}", refresh=True
            )

        yield show


def print_table(found: dict[str, Any]) -> None:
    """The table of a race, from the winner on, and the command that repeats the winner."""
    from rich import box
    from rich.table import Table

    from onlearn.cli.console import PlainConsole

    console = PlainConsole()
    if found["why_not"] is not None:
        console.print(f"no race: {found['why_not']}", soft_wrap=True)
    else:
        table = Table(box=box.SIMPLE, pad_edge=False)
        for name in ("", "wrong", "loss", "examples", "passes"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("configuration", overflow="fold")
        for one in sorted(found["configurations"], key=lambda one: int(one["rank"])):
            table.add_row(*_cells(one, found))
        console.print(table)
        early = ", ended early" if found["ended_early"] else ""
        console.print(
            f"{len(found['configurations'])} configurations over {found['sample']['said']}; "
            f"{found['examples']:,} examples learned from in all, {found['seconds']:.2f} s{early}",
            soft_wrap=True,
        )
    console.print(found["command"], soft_wrap=True, style="bold")


def _cells(one: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """A row of the table: how a configuration did when it was best on rows held out, or when it was last judged."""
    won = one["number"] == found["winner"]
    chosen = [rung for rung in one["rungs"] if rung.get("passes") == one.get("passes")] or one["rungs"]
    spelled = one["spelling"] or "(the default)"
    spelled += "" if one["why"] in (None, "half") else f"  [{one['why']}]"
    if not chosen:
        return [str(one["rank"]), "", "", "", "", spelled]
    rung = chosen[-1]
    wrong = f"{100 * rung['mistakes'] / max(1, rung['rows']):.2f} %" if found["classifies"] else ""
    passes = "" if one.get("passes") is None else str(one["passes"])
    return ["*" if won else str(one["rank"]), wrong, f"{rung['loss']:.4f}", f"{rung['examples']:,}", passes, spelled]

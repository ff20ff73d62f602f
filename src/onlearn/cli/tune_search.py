"""``onlearn tune --learner``: a search by Optuna; and ``onlearn tune --folds``: the winner cross-validated."""

from __future__ import annotations

import json
from typing import Any

from onlearn.cli.options import print_bad_rows
from onlearn.cli.terminal import Stopped, announce_compiling, as_options, echo_json, output, plain_table, show
from onlearn.cli.train import carry_out, print_report
from onlearn.models.train_options import TrainOptions

SHOWN = 20  # trials that are printed


def search_learner(
    options: TrainOptions, trials: int | None, folds: int | None, table: str | None, as_json: bool, quiet: bool
) -> None:
    """Search the parameters of ``options.learner``, print the table, and with an output train by the best."""
    from onlearn.errors import PlanError
    from onlearn.models import training
    from onlearn.models.file_search import search_files

    announce_compiling(quiet)
    bad = training.checked_files(options, training.checked_output(options))
    try:
        found, best = search_files(options, trials, folds, bad)
    except ImportError as error:
        raise PlanError(str(error), "learner") from None
    if table is not None:
        with output(table, parameter="table") as file:
            file.write(f"{json.dumps(found, indent=1)}\n".encode())

    def tell(report: dict[str, Any] | None, printed: list[str]) -> None:
        if as_json:
            echo_json(found if report is None else {**found, "training": report}, indent=None)
        elif not quiet:
            print_search(found)
            if report is not None:
                print_report(report, printed)

    if options.output is not None:
        return carry_out(training.prepare(best), best, tell, silent=quiet or as_json, quiet=quiet)
    if not quiet:
        print_bad_rows(bad)
    tell(None, [])
    if found["ended_early"]:
        raise Stopped("stopped by Ctrl-C during the search; the best so far is shown")


def print_search(found: dict[str, Any]) -> None:
    """The best trials, the interval of the best, and the command that trains by it."""
    from onlearn.cli.console import PlainConsole

    rows = plain_table("", "score", "state")
    rows.add_column("parameters", overflow="fold")
    ordered = sorted(found["configurations"], key=lambda one: int(one["rank"]))
    for one in ordered[:SHOWN]:
        score = "" if one["score"] is None else f"{one['score']:.4f}"
        rows.add_row("*" if one["rank"] == 1 else str(one["rank"]), score, one["state"], one["spelling"])
    show(rows)
    more = f"; {len(ordered) - SHOWN} more are not shown" if len(ordered) > SHOWN else ""
    interval = f"95 % interval {found['low']:.4f} to {found['high']:.4f}"
    show(f"score {found['score']:.4f}, {interval}, {found['folds']} folds, {len(ordered)} trials{more}")
    PlainConsole().print(found["command"], soft_wrap=True, style="bold")


def validate_winner(options: TrainOptions, found: dict[str, Any], folds: int) -> Any:
    """Cross-validate the default and the winner of a race; the comparison."""
    from onlearn.models.file_search import cross_validate_configurations

    asked = {"default": {}, "winner": found["options"]} if found["options"] else {"default": {}}
    return cross_validate_configurations(options, asked, folds)


def print_validation(found: Any) -> None:
    """The figures of the default and of the winner, and whether they differ."""
    show(f"cross-validated: {found.tested_on}")
    for header, *lines in (found.table(), found.verdicts(), found.failures()):
        table = plain_table(*header)
        for line in lines:
            table.add_row(*map(as_options, line))
        if lines:
            show(table)

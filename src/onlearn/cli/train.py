"""``onlearn train``: from files to a model."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Annotated, Any

import typer

from onlearn.cli import terminal
from onlearn.cli.evaluate import print_warnings
from onlearn.cli.options import Quiet, Report, options_command, print_bad_rows
from onlearn.cli.reporting import check_train_report, evidence_of, note_run, write_report
from onlearn.cli.terminal import Stopped, announce_compiling, as_options, echo_json, print_message
from onlearn.cluster.options import ClusterOptions
from onlearn.models.train_options import TrainOptions

FIGURES = {
    "accuracy": "accuracy {:.4f}",
    "majority": "(most common label: {:.4f})",
    "pairwise_accuracy": "pairs in order {:.4f}",
    "ndcg_at_10": "NDCG@10 {:.4f}",
    "hamming_loss": "Hamming loss {:.4f}",
    "micro_f1": "micro F1 {:.4f}",
    "subset_accuracy": "all labels right {:.4f}",
    "log_loss": "log-loss {:.4f}",
    "loss": "loss {:.4f}",
    "auc": "AUC {:.4f}",
    "brier": "Brier score {:.4f}",
    "calibration_error": "calibration error {:.4f}",
    "rmse": "RMSE {:.4g}",
    "mae": "MAE {:.4g}",
    "r2": "R2 {:.4f}",
}


@options_command(
    ClusterOptions,
    required=("output",),
    as_json=(Annotated[bool, typer.Option("--json", help="Report as one JSON object.")], False),
    report_file=(Report, None),
    quiet=(Quiet, False),
)
def train(options: ClusterOptions, as_json: bool, report_file: str | None, quiet: bool) -> None:
    """Learn a model from files, and report how good it is.

    The kinds of the columns, the target and a suitable learner are guessed unless you name them, and printed before
    training begins. Each example is predicted before it is learned from, so the accuracy of the first pass is an
    honest one. --rule, --geometry, --stabilizer, --multiclass and --class-weight change these parts of the learner;
    with a rule or a geometry of another kind, the other parts are chosen to suit it.

    \b
    Examples:
      onlearn train reviews.jsonl -o m.onl
      onlearn train adult.csv -o m.onl --target income --test adult.test.csv --report adult.html
      onlearn train adult.csv -o m.onl --target income --learner auto
      onlearn train day1.svm.gz -o m.onl --learner AROW --passes 1
      onlearn train day2.svm.gz -o m.onl --resume m.onl
      onlearn train digits.csv -o m.onl --kernel "polynomial(3)"
      onlearn train train.conllu -o tagger.onl --column upos
      onlearn train "part-*.svm" -o m.onl --cluster tcp://10.0.0.5:8786
    """
    from onlearn.models import training
    from onlearn.models.tag_files import is_tagging

    check_train_report(report_file, options)
    options.check_cluster()
    if is_tagging(options):
        from onlearn.cli import tagging

        options.refuse_cluster("taggers are trained on one machine")

        announce_compiling(quiet)
        return tagging.train(options, as_json, report_file, quiet)
    announce_compiling(quiet)

    def show(report: dict[str, Any], printed: list[str]) -> None:
        if as_json:
            echo_json(report, indent=None)
        elif not quiet:
            print_report(report, printed)

    if options.cluster is None:
        run = training.prepare(options)
        carry_out(run, options, show, silent=quiet or as_json, quiet=quiet, report_file=report_file)
        return
    from onlearn.cli.clusters import cluster_run

    with cluster_run(options, silent=quiet or as_json) as run:
        carry_out(run, options, show, silent=quiet or as_json, quiet=quiet, report_file=report_file)


def carry_out(
    run: Any,
    options: TrainOptions,
    show: Callable[[dict[str, Any], list[str]], None],
    *,
    silent: bool,
    quiet: bool,
    report_file: str | None = None,
) -> None:
    """Do a training run, save the model, test it, and ``show`` the report with the decisions printed before."""
    from onlearn.models import training
    from onlearn.models.run_report import run_report

    printed: list[str] = []  # decisions that were printed before training
    seconds, stopped, halted = _learn(run, options, silent, printed)
    # From here on there is a model: after Ctrl-C, the message says where.
    over = "stopped by Ctrl-C; the finished model is in"
    if stopped:
        over = f"stopped by Ctrl-C after {run.report.examples:,} examples; the model so far is in"
        if run.tuning is not None and run.tuning["ended_early"]:
            examples = f"{run.report.examples:,} examples"
            over = f"Ctrl-C ended the race; a model of the best configuration so far, after {examples}, is in"
    try:
        report = run_report(run, options.output, seconds, stopped)
        report["notes"] = [as_options(note) for note in report["notes"]]
        report["warnings"] = [as_options(warning) for warning in report["warnings"]]
        if not quiet:
            print_bad_rows(run.reading.bad)
            for warning in report["warnings"]:
                print_message(f"warning: {warning}")
        evidence = evidence_of(report_file, run.model.labels, run.plan.sources)
        try:
            if not halted:
                bad = training.test(run, options, report, evidence)
                if evidence is not None and bad is not None:
                    evidence.note_bad(bad, "the test data")
                if not quiet and bad is not None:
                    print_bad_rows(bad)
                    print_warnings(report["test"], run.model.labels or [])
        except KeyboardInterrupt:  # the report on training is printed all the same
            halted = True
        show(report, printed)
        if evidence is not None:
            note_run(evidence, run, options)
            write_report(report_file, "train", report, evidence)
    except KeyboardInterrupt:
        halted = True
    if halted:
        raise Stopped(f"{over} {options.output}")


def _learn(run: Any, options: TrainOptions, silent: bool, printed: list[str]) -> tuple[float, bool, bool]:
    """Learn, and save the model; the seconds, whether Ctrl-C ended it early, and whether it was pressed at all."""
    from onlearn.compiler import compile_seconds
    from onlearn.data import DataError
    from onlearn.engine.passes import first_ctrl_c
    from onlearn.errors import PlanError

    def show(notes: list[str], learning: str) -> None:
        printed.extend(as_options(note) for note in notes)
        _print_decisions([*printed, learning])

    output, began, stopped = options.output, perf_counter() - compile_seconds(), False
    # Around interruptible, so that Ctrl-C is handled at every moment before the model is saved.
    with first_ctrl_c() as pressed:
        with _progress_line(silent) as watch, interruptible(run):
            try:
                if pressed():  # before the run could be interrupted
                    raise KeyboardInterrupt
                run.go(watch, lambda: run.model.save(output), options.checkpoint_every or 0, None if silent else show)
            except (DataError, PlanError):
                raise
            except (ValueError, OverflowError) as error:  # plan, learner or features do not suit the data
                raise PlanError(str(error)) from error
            except KeyboardInterrupt:
                # If there is nothing new, the file of a resumed model is not written.
                if run.lessons.learned <= run.lessons.skip:
                    raise Stopped("stopped by Ctrl-C before anything was learned; no model was written") from None
                stopped = True
        learned = perf_counter() - compile_seconds() - began  # without the time that compiling took
        try:
            run.model.save(output)
        except KeyboardInterrupt:
            raise Stopped(f"stopped by Ctrl-C, pressed twice, before the model was written to {output}") from None
    return learned, stopped, stopped or pressed()


@contextmanager
def interruptible(run: Any) -> Iterator[None]:
    """Ctrl-C waits until a portion is learned, so that the number of examples of the model is known."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: run.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress_line(silent: bool) -> Iterator[Callable[[Any], None] | None]:
    """One line of progress on a terminal; nothing elsewhere."""
    if silent:
        yield None
        return
    from rich.live import Live

    from onlearn.cli.console import PlainConsole

    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        yield None
        return
    last = [0.0]
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def watch(now: Any) -> None:
            if now.seconds - last[0] < 0.1:
                return
            last[0] = now.seconds
            counted = now.classifies and now.seen
            right = f"  {100 * (1 - now.mistakes / now.seen):.2f} % right" if counted else ""
            left = "" if not now.part else f"  {now.seconds * (1 / now.part - 1):.0f} s left"
            turn = "" if now.passes == 1 else f"  pass {now.turn} of {now.passes}"
            live.update(
                f"{now.examples:,} examples  {now.examples / now.seconds:,.0f}/s{turn}  loss {now.loss:.4f}{right}"
                f"{f'  {now.mistakes:,} mistakes' if counted else ''}{left}",
                refresh=True,
            )

        yield watch


def _print_decisions(decisions: list[str]) -> None:
    """Print decisions, one sentence a line."""
    from onlearn.cli.console import PlainConsole

    console = PlainConsole()
    for one in decisions:
        console.print(one, style="dim", soft_wrap=True)
    console.file.flush()


def print_report(report: dict[str, Any], printed: list[str]) -> None:
    """The report as a table; decisions that were printed before are not repeated."""
    from rich import box
    from rich.table import Table

    from onlearn.cli.console import PlainConsole

    _print_decisions([note for note in report["notes"] if note not in printed])
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    rate = report["examples"] / max(report["seconds"], 1e-9)
    table.add_row("learner", report["learner"])
    if report["labels"] is not None:
        shown = ", ".join(report["labels"][:8]) + (", ..." if len(report["labels"]) > 8 else "")
        table.add_row("labels", f"{len(report['labels'])}: {shown}")
    table.add_row("rows", f"{report['rows']:,}" + (f", {report['bad_rows']:,} bad" if report["bad_rows"] else ""))
    if report["features"] is not None:
        table.add_row("features", terminal.feature_count(report["features"], report))
    if (shared := terminal.hashed_line(report)) is not None:
        table.add_row("hashed features", shared)
    if "kernel" in report:
        table.add_row("support examples", f"{report['support_examples']:,}, kernel {report['kernel']}")
    if "mixture" in report:
        leader = max(report["mixture"]["learners"], key=lambda one: one["weight"])
        table.add_row("mixture", report["mixture"]["theorem"])
        table.add_row("its leader", f"{leader['learner']}, which counts {leader['weight']:.3g}")
    for name, value in report.get("described", {}).items():
        table.add_row(name.replace("_", " "), terminal.as_line(value))
    of_all = f"{report['passes_ended']} of " if report["stopped"] else ""
    table.add_row("passes", f"{of_all}{report['passes']}, {report['seconds']:.2f} s, {rate:,.0f} examples/s")
    for name, title in (("progressive", "first pass, before learning"), ("holdout", "held-out rows"), ("test", "test")):
        if name in report:
            table.add_row(title, _figures(report[name]))
    if report["cache"] is not None:
        table.add_row("parsed rows", report["cache"]["said"])
    table.add_row("model", report["model"])
    PlainConsole().print(table)


def _figures(found: dict[str, Any]) -> str:
    known = {name: value for name, value in found.items() if name != "loss" or "rmse" not in found}
    parts = [form.format(known[name]) for name, form in FIGURES.items() if known.get(name) is not None]
    return ", ".join([*parts, f"{found['n']:,} rows"]).replace(", (", " (")

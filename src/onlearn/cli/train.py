"""``onlearn train``: from files to a model."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Annotated, Any

import typer

from onlearn.cli import terminal
from onlearn.cli.evaluate import tell
from onlearn.cli.options import data_to_blame, refuse_both
from onlearn.cli.options import told as kernel_of
from onlearn.cli.terminal import Stopped, as_options, complain, echo_json, keep_apart

FIGURES = {
    "accuracy": "accuracy {:.4f}",
    "log_loss": "log-loss {:.4f}",
    "loss": "loss {:.4f}",
    "auc": "AUC {:.4f}",
    "calibration_error": "calibration error {:.4f}",
    "rmse": "RMSE {:.4g}",
    "mae": "MAE {:.4g}",
    "r2": "R2 {:.4f}",
}
SOURCES = typer.Argument(
    metavar="DATA...", help="Files to learn from: paths, patterns, or - for standard input.", show_default=False
)


def train(
    sources: Annotated[list[str], SOURCES],
    output: Annotated[str, typer.Option("--output", "-o", help="Where to write the model.", show_default=False)],
    target: Annotated[str | None, typer.Option(help="The column to predict; found out by default.")] = None,
    task: Annotated[str | None, typer.Option(help="classify (by default) or regress.")] = None,
    learner: Annotated[
        str | None, typer.Option(help="A named learner, such as AROW or LogisticRegression; see onlearn demo.")
    ] = None,
    rule: Annotated[str | None, typer.Option(help='How far to step, such as "pa1(0.5)".')] = None,
    geometry: Annotated[str | None, typer.Option(help='How a step moves weights, such as "winnow(1.5)".')] = None,
    stabilizer: Annotated[str | None, typer.Option(help="last, averaged, survivor or voted.")] = None,
    multiclass: Annotated[str | None, typer.Option(help="true, one-vs-all or softmax.")] = None,
    kernel: Annotated[
        str | None, typer.Option(help='Learn with a kernel, such as "polynomial(3)" or "0.5*gaussian(2) + linear".')
    ] = None,
    budget: Annotated[int | None, typer.Option(min=1, help="With --kernel: the most support examples.")] = None,
    budget_policy: Annotated[
        str | None, typer.Option(help='What gives way: project, merge, "remove(random)" or "remove(oldest)".')
    ] = None,
    cache_mb: Annotated[float | None, typer.Option(min=0, help="With --kernel: memory for kernel values.")] = None,
    class_weight: Annotated[str | None, typer.Option(help="balanced: rare classes weigh more.")] = None,
    classes: Annotated[str | None, typer.Option(help="All labels, separated by commas.")] = None,
    passes: Annotated[
        int | None, typer.Option(min=1, help="How often to go over the data; by default 3, small tables up to 20.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option(help="Files to test the model on.")] = None,
    holdout: Annotated[str | None, typer.Option(help="A part of the rows to test on, such as 10%.")] = None,
    resume: Annotated[str | None, typer.Option(help="A model to go on with.")] = None,
    checkpoint_every: Annotated[int | None, typer.Option(min=1, help="Save the model every so many examples.")] = None,
    format: Annotated[str | None, typer.Option(help="What the files are, if the extension does not say.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Separates the columns of CSV files.")] = None,
    header: Annotated[bool | None, typer.Option("--header/--no-header", help="Whether CSV files have one.")] = None,
    weight: Annotated[str | None, typer.Option(help="The column that holds the weight of a row.")] = None,
    id: Annotated[str | None, typer.Option(help="The column that names a row.")] = None,
    numeric: Annotated[list[str] | None, typer.Option(help="A column of numbers.")] = None,
    categorical: Annotated[list[str] | None, typer.Option(help="A column of categories.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="A column of text.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out.")] = None,
    ngrams: Annotated[str | None, typer.Option(help="Lengths of word n-grams, such as 1-2; or none.")] = None,
    chars: Annotated[str | None, typer.Option(help="Lengths of character n-grams, such as 2-5.")] = None,
    weighting: Annotated[
        str | None, typer.Option(help="Of words: counts, binary, log, idf, tfidf or log-tfidf.")
    ] = None,
    norm: Annotated[bool | None, typer.Option("--norm/--no-norm", help="Make texts vectors of length 1.")] = None,
    scale: Annotated[str | None, typer.Option(help="Of numbers: standard, max-abs, log1p or none.")] = None,
    missing: Annotated[str, typer.Option(help="Missing values: absent, error, zero or indicator.")] = "absent",
    interact: Annotated[
        list[str] | None, typer.Option(help="Columns or namespaces to multiply: A,B; or pairs, or triples.")
    ] = None,
    max_names: Annotated[int, typer.Option(min=1, help="Names of features to keep; others are hashed.")] = 1 << 21,
    bits: Annotated[int, typer.Option(min=1, max=28, help="Hashed features get 2^bits weights.")] = 22,
    min_count: Annotated[int, typer.Option(min=1, help="Leave out features that are in fewer rows.")] = 1,
    per_class: Annotated[bool, typer.Option("--per-class", help="Count for --min-count within each class.")] = False,
    prune_weights: Annotated[float, typer.Option(min=0, help="Let go of features that weigh no more.")] = 0.0,
    bad_rows: Annotated[str | None, typer.Option(help="A file for the rows that cannot be read.")] = None,
    max_bad: Annotated[str, typer.Option(help="How many rows may be bad before training stops.")] = "1%",
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")] = False,
    cache: Annotated[
        str | None, typer.Option(help="A folder to keep parsed rows in; by default beside large files.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep and use no parsed rows.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="One seed gives one result.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Report as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Learn a model from files, and say how good it is.

    Each example is predicted before it is learned from, so the accuracy of the first pass is an honest one. What
    columns are, and which learner suits them, is found out unless you say so. --rule, --geometry, --stabilizer,
    --multiclass and --class-weight change that learner in what they name; a rule or a geometry of another kind brings
    along what suits it.

    \b
    Examples:
      onlearn train reviews.jsonl -o m.onl
      onlearn train adult.csv -o m.onl --target income --test adult.test.csv
      onlearn train day1.svm.gz -o m.onl --learner AROW --passes 1
      onlearn train day2.svm.gz -o m.onl --resume m.onl
      onlearn train digits.csv -o m.onl --kernel "polynomial(3)"
    """
    asked = dict(locals())
    run = _prepared(asked)
    seconds, stopped, halted = _learn(run, asked)
    # From here on there is a model, and whoever presses Ctrl-C is told where.
    over = "stopped by Ctrl-C; the finished model is in"
    if stopped:
        over = f"stopped by Ctrl-C after {run.examples:,} examples; the model so far is in"
    try:
        report = _report(run, asked, seconds, stopped)
        try:
            if not halted:
                _evaluate(run, asked, report)
        except KeyboardInterrupt:  # what was learned is reported nevertheless
            halted = True
        if as_json:
            echo_json(report, indent=None)
        elif not quiet:
            _show(report)
    except KeyboardInterrupt:
        halted = True
    if halted:
        raise Stopped(f"{over} {output}")


def _prepared(asked: dict[str, Any]) -> Any:
    """The run that was asked for, or a refusal."""
    from onlearn import data
    from onlearn.cli import train_options
    from onlearn.features.roles import PlanError
    from onlearn.models import Model
    from onlearn.models.kernel_run import run_of
    from onlearn.models.model import load_learner
    from onlearn.models.run_report import unfinished

    output = asked["output"]
    train_options.check_output(output)
    refuse_both(asked["strict"], asked["max_bad"])
    if asked["holdout"] is not None and "-" in asked["sources"]:
        raise typer.BadParameter("--holdout reads the data twice, which standard input cannot be: use --test")
    if asked["resume"]:
        train_options.check_resumed(asked)
    plan = train_options.plan_of(asked)
    files = [one.name for one in data.read([*asked["sources"], *(asked["test"] or ())]).sources]  # are they there?
    files += [name for name in (asked["resume"], output) if name]
    if asked["bad_rows"] is not None:
        train_options.check_bad_rows(asked["bad_rows"], output)
        keep_apart(asked["bad_rows"], *files, option="--bad-rows")
    keep_apart(output, *files[: len(files) - 2 if asked["resume"] else -1], option="--output")
    bad = data.BadRows(
        asked["bad_rows"], train_options.part(asked["max_bad"], "--max-bad", whole=True), asked["strict"]
    )
    model = None
    if asked["resume"]:
        model = load_learner(asked["resume"])
        if not isinstance(model, Model):
            raise data.DataError(
                f"{asked['resume']} holds a learner without features, which only Python can go on with"
            )
        plan.task = model.task
        plan.seed = int(model.trained.get("seed", plan.seed))
        if unfinished(model, plan.sources) and (asked["passes"] or asked["holdout"]):
            raise typer.BadParameter("the run is unfinished and goes on as it began: leave --passes and --holdout out")
    try:
        return run_of(plan, model, bad)
    except PlanError as error:
        raise typer.BadParameter(str(error)) from None


def _learn(run: Any, asked: dict[str, Any]) -> tuple[float, bool, bool]:
    """Learn, and save the model; how long it took, whether Ctrl-C ended it early, and whether it was pressed at all."""
    from onlearn.data import DataError
    from onlearn.engine.interrupts import first_ctrl_c

    output, began, stopped = asked["output"], perf_counter(), False
    with first_ctrl_c() as pressed:  # it is around the other one, so that no moment before saving is without it
        with _line(asked["quiet"] or asked["as_json"]) as watch, _interruptible(run):
            try:
                if pressed():  # while the line was got ready
                    raise KeyboardInterrupt
                run.go(watch, lambda: run.model.save(output), asked["checkpoint_every"] or 0)
            except DataError:
                raise
            except (ValueError, OverflowError) as error:  # plan, learner or features do not go with the data
                raise typer.BadParameter(str(error)) from None
            except KeyboardInterrupt:
                if run.learned <= run.skip:  # nothing new, so a model that was resumed stays as it is
                    raise Stopped("stopped by Ctrl-C before anything was learned; no model was written") from None
                stopped = True
        learned = perf_counter() - began
        try:
            run.model.save(output)
        except KeyboardInterrupt:
            raise Stopped(f"stopped by Ctrl-C, pressed twice, before the model was written to {output}") from None
    return learned, stopped, stopped or pressed()


def _report(run: Any, asked: dict[str, Any], seconds: float, stopped: bool) -> dict[str, Any]:
    """What was learned; what went wrong on the way goes to stderr."""
    from onlearn.models.run_report import told

    bad = run.bad
    report = {
        "model": asked["output"],
        "learner": " ".join(repr(run.model.learner).split()),
        "task": run.plan.task,
        "labels": run.model.labels,
        "rows": run.rows,
        "examples": run.examples,
        "passes": run.passes,
        "passes_ended": max(run.ended, run.ended_before),
        "features": (int(run.model.features.n_features_out_) if hasattr(run.model.learner, "n_features_in_") else None),
        **terminal.told(run.model),
        **kernel_of(run.model.learner),
        "bad_rows": bad.count,
        "seconds": round(seconds, 3),
        "progressive": _progressive(run),
        "notes": [as_options(note) for note in run.model.trained["notes"]],
        "warnings": run.warnings,
        "stopped": stopped,
        "cache": told(run.reader),
    }
    if bad.count and not asked["quiet"]:
        complain(bad.summary())
    for warning in run.warnings if not asked["quiet"] else ():
        complain(f"warning: {warning}")
    return report


def _evaluate(run: Any, asked: dict[str, Any], report: dict[str, Any]) -> None:
    """Add to the report how good the model is on rows that were held out and on those of ``--test``."""
    if not run.plan.holdout and not asked["test"]:
        return
    from onlearn.data import DataError
    from onlearn.models.evaluation import evaluate

    if run.plan.holdout:
        report["holdout"] = evaluate(run.model, run.held_out_batches()).report()
    if asked["test"]:
        try:
            reader = run.model.read(asked["test"], labels="required", weight=None)
            with data_to_blame(reader):
                report["test"] = {**evaluate(run.model, reader).report(), "bad_rows": reader.bad.count}
        except DataError as error:
            raise DataError(f"{error} (the model is in {asked['output']} and was not tested)") from None
        if not asked["quiet"]:
            if reader.bad.count:
                complain(reader.bad.summary())
            tell(report["test"], run.model.labels or [])


@contextmanager
def _interruptible(run: Any) -> Iterator[None]:
    """Ctrl-C waits for the end of what is being learned, so that the model is of a known number of examples."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: run.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _progressive(run: Any) -> dict[str, float]:
    """How it did on each example before learning from it, in the first pass."""
    first = run.progressive()
    made = {"n": int(first["seen"]), "loss": first["loss"]}
    if run.model.labels is not None:
        made["mistakes"] = int(first["mistakes"])
        made["accuracy"] = 1 - first["mistakes"] / max(1.0, first["seen"])
    elif run.model.learner.choices["rule"].name == "lms":  # half the squared error of targets of deviation 1
        made["rmse"] = math.sqrt(2 * first["loss"]) * run.model.target[1]
    return made


@contextmanager
def _line(silent: bool) -> Iterator[Callable[[Any], None] | None]:
    """One line of progress on a terminal; nothing elsewhere."""
    if silent:
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
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


def _show(report: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for note in report["notes"]:
        console.print(note, style="dim", markup=False, soft_wrap=True)
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    rate = report["examples"] / max(report["seconds"], 1e-9)
    table.add_row("learner", escape(report["learner"]))
    if report["labels"] is not None:
        shown = ", ".join(report["labels"][:8]) + (", ..." if len(report["labels"]) > 8 else "")
        table.add_row("labels", escape(f"{len(report['labels'])}: {shown}"))
    table.add_row("rows", f"{report['rows']:,}" + (f", {report['bad_rows']:,} bad" if report["bad_rows"] else ""))
    if report["features"] is not None:
        table.add_row("features", terminal.counted(report["features"], report))
    if (shared := terminal.line(report)) is not None:
        table.add_row("hashed features", shared)
    if "kernel" in report:
        table.add_row("support examples", f"{report['support_examples']:,}, kernel {escape(report['kernel'])}")
    of_all = f"{report['passes_ended']} of " if report["stopped"] else ""
    table.add_row("passes", f"{of_all}{report['passes']}, {report['seconds']:.2f} s, {rate:,.0f} examples/s")
    for name, title in (("progressive", "first pass, before learning"), ("holdout", "held-out rows"), ("test", "test")):
        if name in report:
            table.add_row(title, _figures(report[name]))
    if report["cache"] is not None:
        table.add_row("parsed rows", escape(report["cache"]["said"]))
    table.add_row("model", escape(report["model"]))
    console.print(table)


def _figures(found: dict[str, Any]) -> str:
    known = {name: value for name, value in found.items() if name != "loss" or "rmse" not in found}
    parts = [form.format(known[name]) for name, form in FIGURES.items() if known.get(name) is not None]
    return ", ".join([*parts, f"{found['n']:,} rows"])

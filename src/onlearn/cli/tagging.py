"""Taggers on the command line: ``train``, ``predict`` and ``evaluate`` of files of sentences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from onlearn.cli.options import LARGE, line_limit, print_bad_rows
from onlearn.cli.reporting import evidence_of, note_tag_run, note_tagger, recorded, write_report
from onlearn.cli.terminal import (
    Stopped,
    as_line,
    as_options,
    echo_json,
    plain_table,
    print_message,
    progress_of,
    show,
)
from onlearn.cli.terminal import output as written
from onlearn.models.train_options import MAX_BAD, TrainOptions, as_list, keep_apart, part

if TYPE_CHECKING:
    from onlearn.data import Reader
    from onlearn.models.tagger import Tagger

FORMATS = ("conll", "jsonl")
JSON_LINES = (".jsonl", ".ndjson", ".json")
CONFUSED = 10  # pairs of labels that are shown


def tagger_in(path: str) -> Tagger | None:
    """The tagger in a model file; None if it holds another model."""
    from onlearn.models.tag_files import is_tagger_file

    if not is_tagger_file(path):
        return None
    from onlearn.models.tag_training import load_tagger

    return load_tagger(path)


def refuse(**given: Any) -> None:
    """Refuse options that have no use for taggers."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise typer.BadParameter(
                "it has no use here: the model labels the tokens of sentences", param_hint=f"--{name.replace('_', '-')}"
            )


# ---------------------------------------------------------------------- train


def train(options: TrainOptions, as_json: bool, report_file: str | None, quiet: bool) -> None:
    """Learn a tagger, and report how good it is."""
    from onlearn.models.tag_training import prepare_tagging

    silent = quiet or as_json
    turns: list[Any] = []  # how each pass went, for the report
    run = prepare_tagging(options)
    try:
        run.read()
        if not silent:
            for note in run.notes:
                typer.echo(as_options(note))
            typer.echo(f"learning: {run.tagger.learner!r}")
        with _progress_line(silent) as watch:
            run.learn(watch if report_file is None else recorded(turns, watch))
    except KeyboardInterrupt:
        raise Stopped("stopped by Ctrl-C before learning was finished; no model was written") from None
    try:
        run.tagger.save(options.output)
    except KeyboardInterrupt:
        raise Stopped(f"stopped by Ctrl-C before the model was written to {options.output}") from None
    try:
        report = run.report()
        report["notes"] = [as_options(note) for note in report["notes"]]
        if not quiet:
            print_bad_rows(run.bad)
        evidence = evidence_of(report_file, None, as_list(options.sources))
        bad = run.test(report, evidence)
        if evidence is not None:
            note_tag_run(evidence, run, turns, bad)
            write_report(report_file, "train", report, evidence)
        if not quiet and bad is not None:
            print_bad_rows(bad)
            print_unknown(report["test"], run.tagger.labels)
        if as_json:
            echo_json(report, indent=None)
        elif not quiet:
            _print_run(report)
    except KeyboardInterrupt:
        raise Stopped(f"stopped by Ctrl-C; the finished model is in {options.output}") from None


@contextmanager
def _progress_line(silent: bool) -> Iterator[Callable[[Any], None] | None]:
    """One line of progress on a terminal; nothing elsewhere."""
    if silent or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    began = perf_counter()
    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:

        def watch(now: Any) -> None:
            seconds = perf_counter() - began
            wrong = "" if now.wrong < 0 else f"  {now.wrong:,} tokens wrong"
            live.update(f"pass {now.turn} of {now.of}  loss {now.loss:.4f}{wrong}  {seconds:.0f} s", refresh=True)

        yield watch


def size(count: int) -> str:
    """A number of bytes with its unit."""
    from onlearn.cli.inspect import size as with_unit

    return with_unit(count)


def _print_run(report: dict[str, Any]) -> None:
    table = plain_table()
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    shown = ", ".join(report["labels"][:8]) + (", ..." if len(report["labels"]) > 8 else "")
    bad = f", {report['bad_rows']:,} bad" if report["bad_rows"] else ""
    rate = report["tokens"] * report["passes"] / max(report["seconds"], 1e-9)
    rows = {
        "learner": _one_line(report["learner"]),
        "labels": f"{len(report['labels'])}: {shown}",
        "sentences": f"{report['sentences']:,}{bad}, {report['tokens']:,} tokens",
        **{name.replace("_", " "): as_line(value) for name, value in report["described"].items()},
        "passes": f"{report['passes']}, {report['seconds']:.2f} s, {rate:,.0f} tokens/s",
    }
    for name, title in (("holdout", "held-out sentences"), ("test", "test")):
        if name in report:
            rows[title] = figures(report[name])
    rows["model"] = f"{report['model']}, {size(report['bytes'])}"
    for name, value in rows.items():
        table.add_row(name, value)
    show(table)


def _one_line(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:157]}..."


def figures(found: dict[str, Any]) -> str:
    """The figures of a report in one line."""
    parts = [f"accuracy {found['accuracy']:.4f}"]
    for key, name in (("known_words", "known words"), ("unknown_words", "unknown words")):
        if found[key]["accuracy"] is not None:
            parts.append(f"{name} {found[key]['accuracy']:.4f}")
    if found["spans"] is not None:
        parts.append(f"F1 of spans {found['spans']['f1']:.4f}")
    return ", ".join([*parts, f"{found['tokens']:,} tokens"])


def print_unknown(report: dict[str, Any], labels: list[str]) -> None:
    """Print on stderr which labels the tagger does not know."""
    unknown = report["unknown_labels"]
    if unknown:
        listed = ", ".join(f"{name!r} ({count:,})" for name, count in list(unknown.items())[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        known = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
        print_message(f"labels the model does not know count as errors: {listed}{more}; it knows {known}")


# ---------------------------------------------------------------------- reading


@contextmanager
def reading(
    tagger: Tagger, sources: list[str], format: str | None, target: str | None, bad_rows: str | None, max_bad: str,
    strict: bool, max_line: str | None, quiet: bool, **how: Any,
) -> Iterator[Reader]:  # fmt: skip
    """Read sentences by the options, and as ``how`` says to ``Tagger.read``; bad ones are reported at the end."""
    from onlearn.data import BadRows

    if strict and max_bad != MAX_BAD:
        raise typer.BadParameter("--strict stops at the first bad row, so --max-bad has no use with it")
    given = {"format": format, "target": target, "max_line": line_limit(max_line)}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    bad = BadRows(bad_rows, part(max_bad, "max_bad", whole=True), strict)
    with tagger.read(sources, bad=bad, block_size=LARGE, **how, **asked) as reader:
        if bad_rows is not None:
            keep_apart(bad_rows, *(source.name for source in reader.sources), parameter="bad_rows")
        yield reader
    if not quiet:
        print_bad_rows(bad)


@contextmanager
def as_data_error(name: str) -> Iterator[None]:
    """Errors about sentences that the tagger cannot take become a ``DataError`` that names the file."""
    from onlearn.data import DataError

    try:
        yield
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} cannot be used with this model: {error}") from error


# ---------------------------------------------------------------------- predict


def predict(
    model: str, tagger: Tagger, sources: list[str], output: str | None, proba: bool, format_out: str | None,
    unconstrained: bool, quiet: bool, **options: Any,
) -> None:  # fmt: skip
    """Label the tokens of sentences, and write them batch by batch."""
    from onlearn.cli.tag_output import conll_lines, json_lines
    from onlearn.data import DataError, Sentences

    if format_out is None:
        format_out = "jsonl" if output and Path(output).suffix.lower() in JSON_LINES else "conll"
    if format_out not in FORMATS:
        raise typer.BadParameter(
            f"{format_out!r} is not {' or '.join(FORMATS)}, and the model is a tagger", param_hint="--format-out"
        )
    if proba and not tagger.learner.has_marginals:
        raise typer.BadParameter(
            f"{tagger.learner.name} has no probabilities: train with --learner crf or hmm", param_hint="--proba"
        )
    tagger.constrained = not unconstrained
    lines = conll_lines if format_out == "conll" else json_lines
    how: Any = {"live": output is None, "comments": format_out == "conll"}
    with reading(tagger, sources, target=None, quiet=quiet, **how, **options) as reader:
        files = [source.name for source in reader.sources]
        silent = quiet or (output is None and sys.stdout.isatty())
        with written(output, model, *files) as file, progress_of(reader.bytes_total, silent) as advance:
            for batch in reader:
                if not isinstance(batch.parsed, Sentences):
                    raise DataError(f"{batch.file} holds rows, and the model is a tagger: it takes sentences")
                with as_data_error(batch.file):
                    taken = tagger.taken(batch.parsed)
                    codes = tagger.predict_codes(taken)
                    marginals = tagger.marginals(taken) if proba else None
                file.write(lines(batch, tagger, codes, marginals))
                advance(reader.bytes_read, len(batch))
                if output is None:
                    sys.stdout.flush()  # the writer of a pipe may wait for the answer


# ---------------------------------------------------------------------- evaluate


def evaluate(
    tagger: Tagger, sources: list[str], column: str | None, target: str | None, unconstrained: bool, as_json: bool,
    report_file: str | None, quiet: bool, **options: Any,
) -> None:  # fmt: skip
    """Compare predicted labels with those in the files."""
    from onlearn.models.tag_evaluation import evaluate_tagger
    from onlearn.models.tag_training import labelled

    if column is not None and target is not None:
        raise typer.BadParameter("--column and --target are the same for taggers: give one of them")
    tagger.constrained = not unconstrained
    wanted = target if column is None else column
    evidence = evidence_of(report_file, None, sources)
    with reading(tagger, sources, target=wanted, quiet=quiet, labelled=True, **options) as reader:
        with as_data_error(", ".join(source.name for source in reader.sources[:3])):
            report = evaluate_tagger(tagger, labelled(reader), evidence)
        bad = reader.bad.count
        if evidence is not None:
            evidence.note_bad(reader.bad, "the data")
    report["bad_rows"] = bad
    if evidence is not None:
        note_tagger(evidence, tagger)
        write_report(report_file, "evaluate", report, evidence)
    if not quiet:
        print_unknown(report, tagger.labels)
    if as_json:
        echo_json(report)
    else:
        _print_evaluation(report)


def _print_evaluation(report: dict[str, Any]) -> None:
    summary = plain_table()
    summary.add_column(style="cyan")
    summary.add_column(justify="right")
    summary.add_row("tokens", f"{report['tokens']:,}")
    summary.add_row("sentences", f"{report['sentences']:,}")
    summary.add_row("accuracy", f"{report['accuracy']:.4f}")
    for key, name in (("known_words", "known"), ("unknown_words", "unknown")):
        if report[key]["accuracy"] is not None:
            summary.add_row(f"  of {report[key]['tokens']:,} {name} words", f"{report[key]['accuracy']:.4f}")
    summary.add_row("whole sentences", f"{report['sentence_accuracy']:.4f}")
    for key, name in (("log_loss", "log-loss"), ("calibration_error", "calibration error")):
        if report.get(key) is not None:
            summary.add_row(name, f"{report[key]:.4f}")
    spans = report["spans"]
    if spans is not None:
        for key, name in (("precision", "precision of spans"), ("recall", "recall of spans"), ("f1", "F1 of spans")):
            summary.add_row(name, f"{spans[key]:.4f}")
    show(summary)
    if spans is not None:
        _print_figures("span", spans["by_type"], "gold", "spans")
    _print_figures("label", report["per_label"], "support", "tokens")
    wrong = [(gold, found, count) for gold, found, count in report["confusion"] if gold != found][:CONFUSED]
    if wrong:
        table = plain_table("label", "predicted", "tokens")
        for gold, found, count in wrong:
            table.add_row(gold, found, f"{count:,}")
        show(table)


def _print_figures(what: str, figures: dict[str, Any], count: str, unit: str) -> None:
    table = plain_table(what, "precision", "recall", "F1", unit)
    for name, mine in figures.items():
        table.add_row(name, *(f"{mine[key]:.4f}" for key in ("precision", "recall", "f1")), f"{mine[count]:,}")
    show(table)

"""``onlearn evaluate``: how good a model is on data whose labels are known."""

from __future__ import annotations

from typing import Any

from onlearn.cli.options import (
    BadRowsFile,
    Column,
    Data,
    Format,
    Json,
    MaxBad,
    ModelFile,
    Quiet,
    Strict,
    Target,
    Unconstrained,
    as_data_error,
    batches,
    only_taggers,
    reading,
)
from onlearn.cli.terminal import echo_json, print_message
from onlearn.models.train_options import MAX_BAD

FEW = 12  # classes up to which the confusion matrix is printed


def evaluate(
    model: ModelFile,
    data: Data,
    target: Target = None,
    column: Column = None,
    format: Format = None,
    unconstrained: Unconstrained = False,
    bad_rows: BadRowsFile = None,
    max_bad: MaxBad = MAX_BAD,
    strict: Strict = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare a model's predictions with the labels in the data.

    Accuracy, precision, recall and F1 of each class, log-loss, area under the ROC curve, calibration error and
    confusion matrix; for regression RMSE, MAE and R2. A label that the model has not seen counts as an error. For a
    tagger, accuracy on tokens, known and unknown words apart, and precision, recall and F1 of spans.

    \b
    Examples:
      onlearn evaluate m.onl test.jsonl
      onlearn evaluate m.onl test.csv --target income --json
      onlearn evaluate tagger.onl test.conllu --column upos
    """
    from onlearn.cli.tagging import tagger_in

    tagger = tagger_in(model)
    if tagger is not None:
        from onlearn.cli import tagging

        return tagging.evaluate(
            tagger, data, column, target, unconstrained, json, quiet,
            format=format, bad_rows=bad_rows, max_bad=max_bad, strict=strict,
        )  # fmt: skip
    only_taggers(unconstrained=unconstrained, column=column)
    from onlearn.models import open_model
    from onlearn.models.evaluation import evaluation_of, usable_rows

    opened = open_model(model)
    evaluation = evaluation_of(opened)
    options: dict[str, Any] = dict(
        format=format, target=target, bad_rows=bad_rows, max_bad=max_bad, strict=strict, quiet=quiet
    )
    with reading(opened, data, **options) as reader:
        for batch in batches(reader, quiet, target=target):
            with as_data_error(reader):
                some = usable_rows(opened, batch, reader.bad)
                if len(some):
                    evaluation.add_batch(opened, some)
        bad = reader.bad.count
        names = ", ".join(source.name for source in reader.sources[:3])
    report = {**evaluation.report(), "bad_rows": bad}
    if not report["n"]:
        from onlearn.data import DataError

        raise DataError(f"{names}: no row has a label, so there is nothing to compare with (--target names the column)")
    if not quiet:
        print_warnings(report, opened.labels or [])
    if json:
        echo_json(report)
    else:
        _print(report)


def print_warnings(report: dict[str, Any], labels: list[str]) -> None:
    """Print on stderr what limits the meaning of the figures: labels that are unknown or missing."""
    for name, label in (report.get("labels_taken_for") or {}).items():
        print_message(f"the label {name!r} is taken for {label!r}")
    unknown = report.get("unknown_labels") or {}
    if unknown:
        listed = ", ".join(f"{name!r} ({count:,})" for name, count in list(unknown.items())[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        known = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
        print_message(f"labels the model does not know count as errors: {listed}{more}; it knows {known}")
    if report["unlabelled"]:
        print_message(f"{report['unlabelled']:,} rows without a label are left out")


def _print(report: dict[str, Any]) -> None:
    from onlearn.cli.terminal import plain_table, show

    summary = plain_table()
    summary.add_column(style="cyan")
    summary.add_column(justify="right")
    summary.add_column(style="dim")
    summary.add_row("rows", f"{report['n']:,}")
    names = {
        "accuracy": "accuracy",
        "majority": "  of always the most common label",
        "macro_f1": "F1, mean of the classes",
        "auc": "area under the ROC curve" + (", about" if report.get("auc_is_estimate") else ""),
        "log_loss": "log-loss",
        "brier": "Brier score",
        "calibration_error": "calibration error",
        "class_calibration_error": "  mean of the classes",
        "rmse": "RMSE",
        "mae": "MAE",
        "r2": "R2",
    }
    before = {key: value for key, value in (report.get("uncalibrated") or {}).items() if value != report.get(key)}
    for key, name in names.items():
        if report.get(key) is not None:
            small = key in ("rmse", "mae", "r2")
            shown = f"{report[key]:.6g}" if small else f"{report[key]:.4f}"
            summary.add_row(name, shown, f"{before[key]:.4f} uncalibrated" if key in before else "")
    show(summary)
    if "per_class" in report:
        _print_classes(report)


def _print_classes(report: dict[str, Any]) -> None:
    from onlearn.cli.terminal import plain_table, show

    table = plain_table("label", "precision", "recall", "F1", "rows")
    for label, mine in report["per_class"].items():
        table.add_row(label, *(f"{mine[key]:.4f}" for key in ("precision", "recall", "f1")), f"{mine['support']:,}")
    show(table)
    confusion, labels = report["confusion"], report["labels"]
    if confusion is None or len(labels) > FEW:
        return
    table = plain_table("label \\ predicted", *labels)
    for label, counts in zip(labels, confusion):
        table.add_row(label, *(f"{count:,}" for count in counts))
    show(table)

"""``onlearn evaluate``: how good a model is on data whose labels are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlearn.cli.clusters import over_shards, refuse_without_cluster
from onlearn.cli.options import (
    BadRowsFile,
    Cluster,
    Column,
    Data,
    DecisionThreshold,
    Format,
    Json,
    MaxBad,
    MaxLine,
    ModelFile,
    Patience,
    Positive,
    Quiet,
    Report,
    ShardCount,
    Strict,
    Target,
    Unconstrained,
    as_data_error,
    bad_rows_of,
    batches,
    line_limit,
    only_taggers,
    reading,
    set_threshold,
)
from onlearn.cli.reporting import check_report, evidence_of, note_model, write_report
from onlearn.cli.terminal import echo_json, print_message
from onlearn.models.train_options import MAX_BAD

if TYPE_CHECKING:
    from onlearn.data import Reader
    from onlearn.models import Model
    from onlearn.report import Evidence

FEW = 12  # classes up to which the confusion matrix is printed


def evaluate(
    model: ModelFile,
    data: Data,
    target: Target = None,
    column: Column = None,
    format: Format = None,
    threshold: DecisionThreshold = None,
    positive: Positive = None,
    best_threshold: Annotated[
        str | None,
        typer.Option(metavar="CRITERION", help="Find the threshold best by f1, balanced or cost(FP,FN) on the data."),
    ] = None,
    unconstrained: Unconstrained = False,
    bad_rows: BadRowsFile = None,
    max_bad: MaxBad = MAX_BAD,
    strict: Strict = False,
    max_line: MaxLine = None,
    cluster: Cluster = None,
    shards: ShardCount = None,
    patience: Patience = None,
    report_file: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare a model's predictions with the labels in the data.

    Accuracy, precision, recall and F1 of each class, log-loss, area under the ROC curve, calibration error and
    confusion matrix; for regression RMSE, MAE and R2. A label that the model has not seen counts as an error. For a
    tagger, accuracy on tokens, known and unknown words apart, and precision, recall and F1 of spans.

    \b
    Examples:
      onlearn evaluate m.onl test.jsonl --report quality.html
      onlearn evaluate m.onl test.csv --target income --json
      onlearn evaluate m.onl test.csv --threshold 0.2 --positive yes
      onlearn evaluate m.onl dev.csv --best-threshold "cost(1,5)"
      onlearn evaluate m.onl "test-*.csv" --cluster tcp://10.0.0.5:8786
      onlearn evaluate tagger.onl test.conllu --column upos
    """
    from onlearn.cli.tagging import tagger_in

    check_report(report_file, model, *data, outputs=[] if bad_rows is None else [bad_rows])
    refuse_without_cluster(cluster, shards=shards, patience=patience)
    tagger = tagger_in(model)
    if tagger is not None:
        from onlearn.cli import tagging

        tagging.refuse(threshold=threshold, positive=positive, best_threshold=best_threshold, cluster=cluster)
        return tagging.evaluate(
            tagger, data, column, target, unconstrained, json, report_file, quiet,
            format=format, bad_rows=bad_rows, max_bad=max_bad, strict=strict, max_line=max_line,
        )  # fmt: skip
    only_taggers(unconstrained=unconstrained, column=column)
    from onlearn.models import open_model
    from onlearn.models.evaluation import evaluation_of, report_of
    from onlearn.models.threshold_choice import search_threshold

    opened = open_model(model)
    if threshold is not None or best_threshold is None:
        set_threshold(opened, threshold, positive)
    evaluation = evaluation_of(opened)
    evidence = evidence_of(report_file, opened.labels, data)
    search = None if best_threshold is None else search_threshold(evaluation, best_threshold, positive)
    if cluster is not None:
        from onlearn.cluster.prediction import Shards, add_shards

        bad = bad_rows_of(bad_rows, max_bad, strict)
        over = Shards(opened, data, count=shards, bad=bad, format=format, max_line=line_limit(max_line), target=target)
        with over_shards(over, cluster, patience, quiet, silent=quiet) as connection:
            add_shards(over, connection, evaluation, evidence)
        names = over.names
    else:
        options: dict[str, Any] = dict(
            format=format,
            target=target,
            bad_rows=bad_rows,
            max_bad=max_bad,
            strict=strict,
            max_line=max_line,
            quiet=quiet,
        )
        with reading(opened, data, **options) as reader:
            _add_rows(reader, opened, evaluation, evidence, quiet, target)
        bad, names = reader.bad, [source.name for source in reader.sources]
    if evidence is not None:
        evidence.note_bad(bad, "the data")
    report = report_of(evaluation, opened, bad.count, ", ".join(names[:3]), target)
    if search is not None:
        report["best_threshold"] = search()
    if not quiet:
        print_warnings(report, opened.labels or [])
    if json:
        echo_json(report)
    else:
        _print(report)
    if evidence is not None:
        note_model(evidence, opened)
        write_report(report_file, "evaluate", {**report, "model": model}, evidence)


def _add_rows(
    reader: Reader, model: Model, evaluation: Any, evidence: Evidence | None, quiet: bool, target: str | None
) -> None:
    """Evaluate all that a reader gives."""
    from onlearn.models.evaluation import usable_rows

    for batch in batches(reader, quiet, target=target):
        with as_data_error(reader):
            some = usable_rows(model, batch, reader.bad)
            if len(some):
                evaluation.add_batch(model, some, evidence)


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
        "subset_accuracy": "rows with all labels right",
        "hamming_loss": "Hamming loss",
        "micro_f1": "F1 over all labels",
        "macro_f1": "F1, mean of the classes",
        **{f"precision_at_{k}": f"precision of the best {k}" for k in (1, 3, 5)},
        "labels_a_row": "labels a row",
        "auc": "area under the ROC curve" + (", about" if report.get("auc_is_estimate") else ""),
        "log_loss": "log-loss",
        "brier": "Brier score",
        "calibration_error": "calibration error",
        "class_calibration_error": "  mean of the classes",
        "groups": "groups",
        "pairs": "pairs of different relevance",
        "pairwise_accuracy": "pairs in the right order",
        **{f"ndcg_at_{k}": f"NDCG of the first {k}" for k in (1, 5, 10)},
        "rmse": "RMSE",
        "mae": "MAE",
        "r2": "R2",
    }
    before = {key: value for key, value in (report.get("uncalibrated") or {}).items() if value != report.get(key)}
    for key, name in names.items():
        if report.get(key) is not None:
            small = key in ("rmse", "mae", "r2", "groups", "pairs")
            shown = f"{report[key]:.6g}" if small else f"{report[key]:.4f}"
            summary.add_row(name, shown, f"{before[key]:.4f} uncalibrated" if key in before else "")
    for title, facts in (("threshold", report.get("threshold")), ("best threshold", report.get("best_threshold"))):
        if facts is not None:
            summary.add_row(*_threshold_row(title, facts))
    show(summary)
    if "per_class" in report:
        _print_classes(report)


def _threshold_row(title: str, facts: dict[str, Any]) -> tuple[str, str]:
    """A threshold, and what it makes of the data."""
    names = {"precision": "precision", "recall": "recall", "f1": "F1", "answered": "answered", "accuracy": "accuracy"}
    parts = [f"{name} {facts[key]:.4f}" for key, name in names.items() if facts.get(key) is not None]
    by = f" by {facts['criterion']}" if "criterion" in facts else ""
    label = f" of {facts['positive']!r}" if facts["positive"] is not None else ""
    return f"{title}{by}", f"{facts['probability']:.4g}{label}: {', '.join(parts)}"


def _print_classes(report: dict[str, Any]) -> None:
    from onlearn.cli.terminal import plain_table, show

    table = plain_table("label", "precision", "recall", "F1", "rows")
    for label, mine in report["per_class"].items():
        table.add_row(label, *(f"{mine[key]:.4f}" for key in ("precision", "recall", "f1")), f"{mine['support']:,}")
    show(table)
    confusion, labels = report.get("confusion"), report["labels"]
    if confusion is None or len(labels) > FEW:
        return
    table = plain_table("label \\ predicted", *labels)
    for label, counts in zip(labels, confusion):
        table.add_row(label, *(f"{count:,}" for count in counts))
    show(table)

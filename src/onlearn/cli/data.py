"""``onlearn data``: describe data before training, and fetch well-known data sets."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from onlearn.cli.options import Data, Format, Json, Quiet
from onlearn.cli.terminal import as_options, echo_json, group, index_range, print_message

TASKS = ("classify", "regress")
SHOWN = 20  # labels and columns shown to people

app = group("Describe data, and fetch well-known data sets.")


@app.command()
def describe(
    data: Data,
    target: Annotated[str | None, typer.Option(metavar="COL", help="The column that holds the label.")] = None,
    task: Annotated[
        str, typer.Option(metavar="classify|regress", help="Whether labels are classes or numbers.")
    ] = "classify",
    format: Format = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether a CSV file begins with names; guessed by default."),
    ] = None,
    json: Json = False,
) -> None:
    """Show what is in the data: rows, columns, labels, and what looks wrong.

    Columns are taken for what training would take them for. Rows that cannot be read are counted and shown, however
    many there are.

    \b
    Examples:
      onlearn data describe reviews.jsonl
      onlearn data describe train.csv --target income --json
    """
    from onlearn.data import BadRows, read
    from onlearn.models.describe import describe as described

    if task not in TASKS:
        raise typer.BadParameter(f"{task!r} is not {' or '.join(TASKS)}", param_hint="--task")
    bad = BadRows(limit=1.0)
    options: dict[str, Any] = dict(format=format, target=target, header="auto" if header is None else header)
    with read(data, task=task, labels="optional", bad=bad, **options) as reader:
        report = described(reader)
    for key in ("notes", "problems"):
        report[key] = [as_options(line) for line in report[key]]
    for option, value in (("--target", target), ("--header", header)):
        if value is not None and "columns" not in report:
            raise typer.BadParameter(f"{report['files'][0]} is no table: it has no columns", param_hint=option)
    if target is not None and report["rows"] and report["unlabelled"] == report["rows"]:
        listed = ", ".join(list(report["columns"])[:12])
        raise typer.BadParameter(
            f"no row has a label in a column {target!r}; there are {listed}", param_hint="--target"
        )
    if json:
        echo_json(report)
    else:
        _print_description(report)


@app.command("list")
def list_sets(json: Json = False) -> None:
    """List the well-known data sets that can be fetched, and which are here already.

    \b
    Examples:
      onlearn data list
      onlearn data list --json
    """
    from onlearn.models.datasets import KNOWN, at_hand

    found: list[dict[str, Any]] = []
    for known in KNOWN.values():
        files = at_hand(known.name)
        here = str(files[0].parent) if files else None
        found.append(dict(name=known.name, rows=known.rows, labels=known.labels, about=known.about, path=here))
    if json:
        echo_json(found)
        return
    from onlearn.cli.terminal import plain_table, show

    table = plain_table("name", "rows", "labels")
    table.add_column("about")
    table.add_column("here")
    for one in found:
        table.add_row(
            one["name"], f"{one['rows']:,}", str(one["labels"] or "numbers"), one["about"], "yes" if one["path"] else ""
        )
    show(table)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of onlearn data list, or openml:NUMBER.")],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="DIR", help="The directory for the files; created if missing."),
    ] = ".",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch a well-known data set, and print the paths of its files.

    If the folder that the environment variable ONLEARN_DATA names holds it, it is used from there; else it is
    downloaded from OpenML into DIR, as CSV (JSON lines if it is text, svmlight if it is sparse).

    \b
    Examples:
      onlearn data fetch adult
      onlearn data fetch mushroom -o sets
      onlearn data fetch openml:61
    """
    from onlearn.models.datasets import FetchError, at_hand, download

    what, folder = _known(name), Path(output)
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"the directory {folder} is a file", param_hint="--output")
    if not folder.parent.is_dir():
        raise typer.BadParameter(f"the directory {folder.parent} does not exist", param_hint="--output")
    source, files = "ONLEARN_DATA", at_hand(what.name)
    if not files:
        source, files = (
            "there already",
            sorted(path for path in folder.glob(f"{what.name}*") if _is_of(path, what.name)),
        )
    if not files:
        source = "OpenML" if what.number is not None else "scikit-learn"
        if not quiet:
            print_message(f"downloading {what.name} from {source}")
        try:
            with warnings.catch_warnings():
                if quiet:
                    warnings.simplefilter("ignore")
                files = download(what, folder)
        except FetchError as error:
            print_message(" ".join(str(error).split()))
            raise typer.Exit(1) from error
    elif not quiet:
        print_message(
            f"{what.name} is in {files[0].parent}" + (", which ONLEARN_DATA names" if source == "ONLEARN_DATA" else "")
        )
    if json:
        echo_json({"name": name, "source": source, "files": [str(path) for path in files]})
    else:
        typer.echo("\n".join(str(path) for path in files))


def _is_of(path: Path, name: str) -> bool:
    """Whether a file is what a download would have written."""
    names = [f"{name}{end}" for end in (".csv", ".svm", "-train.jsonl", "-test.jsonl")]
    return path.is_file() and path.name in names


def _known(name: str) -> Any:
    import difflib

    from onlearn.models.datasets import KNOWN, known

    try:
        return known(name)
    except KeyError:
        close = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {close[0]}?" if close else "see onlearn data list"
        raise typer.BadParameter(f"there is no data set {name!r}: {hint}", param_hint="NAME") from None


# ---------------------------------------------------------------- printing


def _print_description(report: dict[str, Any]) -> None:
    from onlearn.cli.terminal import plain_table, show

    summary = plain_table()
    summary.add_column(style="cyan")
    summary.add_column(overflow="fold")
    files = report["files"]
    summary.add_row("files", ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else ""))
    summary.add_row("rows", f"{report['rows']:,}, {report['kind']}")
    if "features_that_occur" in report:
        summary.add_row("features", _indices(report))
    for key in ("tokens", "features", "values"):
        if key in report and not (key == "features" and "features_that_occur" in report):
            summary.add_row(key, f"{report[key]:,}" + (" at least" if report.get(f"{key}_are_at_least") else ""))
    if report.get("density") is not None:
        summary.add_row("density", f"{100 * report['density']:.3g} %")
    for name, count in (report.get("namespaces") or {}).items():
        summary.add_row(f"namespace {name or '(default)'}", f"{count:,} values")
    if "target" in report:
        summary.add_row("target", ", ".join(f"{key} {value:.6g}" for key, value in report["target"].items()))
    show(summary)
    if report["labels"]:
        table = plain_table("label", "rows", "share")
        total = sum(report["labels"].values())
        for label, count in list(report["labels"].items())[:SHOWN]:
            table.add_row(label, f"{count:,}", f"{100 * count / total:.1f} %")
        if len(report["labels"]) > SHOWN:
            table.add_row(f"{len(report['labels']) - SHOWN:,} more labels", "", "")
        show(table)
    if report.get("columns") and "tokens" not in report:
        _print_columns(report["columns"])
    for heading, listed in (("noted", report["notes"]), ("problems", report["problems"])):
        if listed:
            show(f"{heading}:\n" + "\n".join(f"  {line}" for line in listed))


def _indices(report: dict[str, Any]) -> str:
    """How many features a matrix has, as training counts them, and how many of them occur."""
    count, occur = report["features"], report["features_that_occur"]
    least = "at least " if report["features_that_occur_are_at_least"] else ""
    return index_range(count) + ("" if occur == count else f"; {least}{occur:,} of them occur")


def _print_columns(columns: dict[str, Any]) -> None:
    from onlearn.cli.terminal import plain_table, show

    table = plain_table("column")
    for name in ("taken for", "because"):
        table.add_column(name, overflow="fold")
    for name in ("missing", "distinct"):
        table.add_column(name, justify="right")
    for name, one in list(columns.items())[: 3 * SHOWN]:
        more = "+" if one["distinct_is_at_least"] else ""
        missing = f"{one['missing']:,}" if one["missing"] else ""
        table.add_row(name, one["role"], one["reason"], missing, f"{one['distinct']:,}{more}")
    if len(columns) > 3 * SHOWN:
        table.add_row(f"{len(columns) - 3 * SHOWN:,} more columns", "", "", "", "")
    show(table)

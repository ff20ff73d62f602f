"""``onlearn data``: describe data before training, and fetch well-known data sets."""

from __future__ import annotations

import csv
import difflib
import io
import json as json_text
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from onlearn.cli.options import Data, Format, Json, MaxLine, Quiet, line_limit
from onlearn.cli.terminal import as_options, echo_json, group, index_range, print_message

if TYPE_CHECKING:
    import numpy as np

TASKS = ("classify", "regress", "multilabel", "rank")
SHOWN = 20  # labels and columns that are printed

app = group("Describe data, and fetch well-known data sets.")


class FetchError(Exception):
    """A data set that cannot be downloaded now; the message is one sentence."""


class DataSet(NamedTuple):
    """A well-known data set."""

    name: str
    number: int | None  # at OpenML; None: scikit-learn downloads it from elsewhere
    rows: int
    labels: int  # 0: numbers
    about: str


KNOWN = {
    known.name: known
    for known in (
        DataSet("20news", None, 18_846, 20, "posts to newsgroups, as text"),
        DataSet("a9a", 1430, 48_842, 2, "census income, 123 binary features, svmlight"),
        DataSet("abalone", 183, 4_177, 28, "age of shells"),
        DataSet("adult", 1590, 48_842, 2, "census income, mixed columns"),
        DataSet("bank", 1461, 45_211, 2, "bank marketing, mixed columns"),
        DataSet("covtype", 1596, 581_012, 7, "forest cover"),
        DataSet("credit", 31, 1_000, 2, "German credit, mixed columns"),
        DataSet("electricity", 151, 45_312, 2, "price up or down, in the order of time"),
        DataSet("fashion", 40996, 70_000, 10, "pictures of clothes, 784 pixels"),
        DataSet("iris", 61, 150, 3, "Fisher's flowers"),
        DataSet("letter", 6, 20_000, 26, "letters, 16 measures"),
        DataSet("mnist", 554, 70_000, 10, "handwritten digits, 784 pixels"),
        DataSet("mushroom", 24, 8_124, 2, "edible or poisonous, categories"),
        DataSet("pendigits", 32, 10_992, 10, "handwritten digits, 16 pen positions"),
        DataSet("spambase", 44, 4_601, 2, "e-mail, 57 frequencies"),
        DataSet("splice", 46, 3_190, 3, "DNA junctions"),
        DataSet("voting", 56, 435, 2, "votes in Congress, categories"),
        DataSet("wine", 287, 6_497, 0, "quality of wine, a number"),
    )
}


@app.command()
def describe(
    data: Data,
    target: Annotated[str | None, typer.Option(metavar="COL", help="The column that holds the label.")] = None,
    task: Annotated[
        str,
        typer.Option(
            metavar="|".join(TASKS),
            help="Whether labels are classes, numbers, several a row, or the relevance in groups.",
        ),
    ] = "classify",
    label_separator: Annotated[
        str | None, typer.Option(metavar="SEP", help="With --task multilabel: what stands between labels in a cell.")
    ] = None,
    format: Format = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether a CSV file begins with names; guessed by default."),
    ] = None,
    max_line: MaxLine = None,
    json: Json = False,
) -> None:
    """Show what is in the data: rows, columns, labels, and what looks wrong.

    The roles of columns are those that training would choose. Rows that cannot be read are counted and shown, however
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
    if label_separator is not None and task != "multilabel":
        raise typer.BadParameter("it is for --task multilabel", param_hint="--label-separator")
    options: dict[str, Any] = dict(format=format, target=target, header="auto" if header is None else header)
    options["label_separator"] = label_separator
    if max_line is not None:
        options["max_line"] = line_limit(max_line)
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
    found: list[dict[str, Any]] = []
    for known in KNOWN.values():
        files = _local_files(known.name)
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
    what, folder = _asked(name), Path(output)
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"the directory {folder} is a file", param_hint="--output")
    if not folder.parent.is_dir():
        raise typer.BadParameter(f"the directory {folder.parent} does not exist", param_hint="--output")
    source, files = "ONLEARN_DATA", _local_files(what.name)
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
                files = _download(what, folder)
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
    """Whether a file has a name that a download gives."""
    names = [f"{name}{end}" for end in (".csv", ".svm", "-train.jsonl", "-test.jsonl")]
    return path.is_file() and path.name in names


def _asked(name: str) -> DataSet:
    try:
        return _data_set(name)
    except KeyError:
        close = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {close[0]}?" if close else "see onlearn data list"
        raise typer.BadParameter(f"there is no data set {name!r}: {hint}", param_hint="NAME") from None


# ---------------------------------------------------------------------- printing


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


# ---------------------------------------------------------------------- downloads


def _local_files(name: str) -> list[Path]:
    """The files of a data set in the folder that ONLEARN_DATA names."""
    folder = os.environ.get("ONLEARN_DATA")
    found = Path(folder) / name if folder else None
    return sorted(path for path in found.iterdir() if path.is_file()) if found is not None and found.is_dir() else []


def _data_set(name: str) -> DataSet:
    """A data set by its name, or any of OpenML by ``openml:NUMBER``; KeyError if there is none."""
    if name in KNOWN:
        return KNOWN[name]
    prefix, _, number = name.partition(":")
    if prefix == "openml" and number.isdigit():
        return DataSet(f"openml-{number}", int(number), 0, 0, "")
    raise KeyError(name)


def _download(what: DataSet, folder: Path) -> list[Path]:
    """Download a data set into files of a folder; their paths. No file is there before it is complete."""
    from onlearn.model_file import write_whole

    parts = _newsgroups() if what.number is None else _openml(what, what.number)
    paths = []
    for name, content in parts:
        folder.mkdir(exist_ok=True)  # not before there is something to put there
        path = folder / name
        write_whole(path, content)
        paths.append(path)
    return paths


def _newsgroups() -> Iterator[tuple[str, bytes]]:
    """The files of 20 newsgroups: names and contents."""
    from sklearn.datasets import fetch_20newsgroups

    made = []
    with tempfile.TemporaryDirectory() as home:
        for part in ("train", "test"):
            try:
                bunch = fetch_20newsgroups(data_home=home, subset=part, shuffle=False)
            except (OSError, ValueError) as error:
                raise FetchError(f"20news cannot be downloaded: {error}") from error
            rows = ({"label": bunch.target_names[k], "text": text} for text, k in zip(bunch.data, bunch.target))
            made.append((f"20news-{part}.jsonl", "".join(json_text.dumps(row) + "\n" for row in rows).encode()))
    yield from made


def _openml(what: DataSet, number: int) -> Iterator[tuple[str, bytes]]:
    """The file of a data set of OpenML: its name and content."""
    import scipy.sparse as sp
    from sklearn.datasets import fetch_openml

    try:
        # Without pandas, which need not be installed, and without a second copy in scikit-learn's cache.
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff", cache=False, n_retries=2, delay=0.5)
    except (OSError, ValueError, KeyError) as error:  # no network, or no such data set, or an answer that is not one
        raise FetchError(f"{what.name} (OpenML {number}) cannot be downloaded: {error}") from error
    if bunch.target is None or bunch.target.ndim != 1:
        raise FetchError(f"{what.name} (OpenML {number}) has not one target to learn")
    if sp.issparse(bunch.data):
        yield f"{what.name}.svm", _as_svmlight(bunch.data.tocsr(), bunch.target)
    else:
        yield f"{what.name}.csv", _as_csv(bunch)


def _as_svmlight(X: Any, y: np.ndarray) -> bytes:
    """Lines of an svmlight file, with features numbered from 1."""
    from onlearn.engine.number_names import label_name

    lines = []
    for row in range(X.shape[0]):
        here = slice(X.indptr[row], X.indptr[row + 1])
        pairs = sorted(zip(X.indices[here].tolist(), X.data[here].tolist()))
        lines.append(" ".join([label_name(y[row]), *(f"{k + 1}:{label_name(value)}" for k, value in pairs)]))
    return ("\n".join(lines) + "\n").encode()


def _as_csv(bunch: Any) -> bytes:
    """A CSV file with a header; the target is the last column, under a name that readers take for a target."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    from onlearn.data.table_roles import TARGETS
    from onlearn.engine.number_names import label_name

    target = bunch.target_names[0] if bunch.target_names else "label"
    target = target if target.lower() in TARGETS else "label"
    names = [f"{name}_" if name.lower() in TARGETS else name for name in bunch.feature_names]
    columns = [_column(bunch.data[:, k], bunch.categories.get(name)) for k, name in enumerate(bunch.feature_names)]
    columns.append(pa.array([None if value is None else label_name(value) for value in bunch.target], pa.string()))
    table = pa.table(columns, names=[str(k) for k in range(len(columns))])
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow([*names, target])
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(include_header=False))
    return head.getvalue().encode() + sink.getvalue().to_pybytes()


def _column(values: np.ndarray, categories: list[str] | None) -> Any:
    """A column as an Arrow array: numbers, or categories by name, which OpenML gives as positions; NaN is missing."""
    import numpy as np
    import pyarrow as pa

    missing = np.isnan(values)
    if categories is not None:
        places = pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
        return pa.array(categories, pa.string()).take(places)
    whole = (values[~missing] == np.rint(values[~missing])).all() and np.abs(values[~missing]).max(initial=0) < 2**53
    return pa.array(np.where(missing, 0, values).astype(np.int64) if whole else values, mask=missing)

"""``onlearn predict``: a label, or a number, for each row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from onlearn.cli.options import (
    BadRowsFile,
    Data,
    Format,
    MaxBad,
    ModelFile,
    Quiet,
    Strict,
    as_data_error,
    batches,
    reading,
)
from onlearn.cli.terminal import output as written
from onlearn.models.train_options import MAX_BAD

JSON_LINES = (".jsonl", ".ndjson", ".json")


def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to standard output.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each label.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Add the scores of the labels.")] = False,
    format_out: Annotated[
        str | None,
        typer.Option(metavar="csv|jsonl", help="Format of the output; by default by FILE's extension, or csv."),
    ] = None,
    format: Format = None,
    id: Annotated[str | None, typer.Option(metavar="COL", help="The column that identifies rows.")] = None,
    bad_rows: BadRowsFile = None,
    max_bad: MaxBad = MAX_BAD,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Predict the label, or the number, of each row.

    One line a row, in the order of the data: its id and the prediction. The id is that of the id column or the tag;
    else the number of the line, which also shows where a row was left out that cannot be read. Labels in
    the data are allowed and not looked at. Rows from a pipe are answered as soon as their lines are complete.

    \b
    Examples:
      onlearn predict m.onl new.jsonl
      onlearn predict m.onl new.csv --proba -o predictions.csv
      onlearn predict m.onl part-*.svm.gz --scores --format-out jsonl
      tail -f log.jsonl | onlearn predict m.onl -
    """
    from onlearn.models.predictions import FORMATS, CsvWriter, JsonWriter, predictions
    from onlearn.models.stored_model import open_for_prediction

    if format_out is None:
        format_out = "jsonl" if output and Path(output).suffix.lower() in JSON_LINES else "csv"
    if format_out not in FORMATS:
        raise typer.BadParameter(f"{format_out!r} is not {' or '.join(FORMATS)}", param_hint="--format-out")
    opened = open_for_prediction(model)
    for name, asked in (("--proba", proba), ("--scores", scores)):
        if asked and opened.labels is None:
            raise typer.BadParameter("a regression model predicts numbers only", param_hint=name)
    options: dict[str, Any] = dict(format=format, id=id, bad_rows=bad_rows, max_bad=max_bad, strict=strict, quiet=quiet)
    options["live"] = output is None  # a file appears only when it is whole
    with reading(opened, data, **options) as reader:
        files = [source.name for source in reader.sources]
        writer = (CsvWriter if format_out == "csv" else JsonWriter)(opened, files=len(files) > 1)
        with written(output, model, *files) as file:
            begun = False
            for batch in batches(reader, quiet or (output is None and sys.stdout.isatty()), id=id):
                with as_data_error(reader):
                    made = predictions(opened, batch, scores=scores, proba=proba)
                if not begun:  # not before it is clear that the data can be used
                    file.write(writer.header(scores, proba))
                    begun = True
                file.write(writer.lines(batch, made if scores else made._replace(scores=None)))
                if output is None:
                    sys.stdout.flush()  # the writer of a pipe may wait for the answer

"""``onlearn predict``: a label, or a number, for each row."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from onlearn.cli.clusters import over_shards, refuse_without_cluster
from onlearn.cli.options import (
    BadRowsFile,
    Cluster,
    Data,
    DecisionThreshold,
    Format,
    MaxBad,
    MaxLine,
    ModelFile,
    Patience,
    Positive,
    Quiet,
    ShardCount,
    Strict,
    Unconstrained,
    as_data_error,
    bad_rows_of,
    batches,
    line_limit,
    only_taggers,
    reading,
    set_threshold,
)
from onlearn.cli.terminal import output as written
from onlearn.models.train_options import MAX_BAD


def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to standard output.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each label.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Add the scores of the labels.")] = False,
    top: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Add the K most probable labels, the best first, with probabilities."),
    ] = None,
    threshold: DecisionThreshold = None,
    positive: Positive = None,
    format_out: Annotated[
        str | None,
        typer.Option(
            metavar="csv|conll|jsonl",
            help="Format of the output: csv or jsonl, of taggers conll or jsonl; by default by FILE's extension.",
        ),
    ] = None,
    format: Format = None,
    id: Annotated[str | None, typer.Option(metavar="COL", help="The column that identifies rows.")] = None,
    unconstrained: Unconstrained = False,
    bad_rows: BadRowsFile = None,
    max_bad: MaxBad = MAX_BAD,
    strict: Strict = False,
    max_line: MaxLine = None,
    cluster: Cluster = None,
    shards: ShardCount = None,
    patience: Patience = None,
    quiet: Quiet = False,
) -> None:
    """Predict the label, or the number, of each row.

    One line a row, in the order of the data: its id and the prediction. The id is that of the id column or the tag;
    else the number of the line, which also shows where a row was left out that cannot be read. Labels in
    the data are ignored. Rows from a pipe are predicted as soon as their lines are complete.

    \b
    Examples:
      onlearn predict m.onl new.jsonl
      onlearn predict m.onl new.csv --proba -o predictions.csv
      onlearn predict m.onl part-*.svm.gz --scores --format-out jsonl
      onlearn predict m.onl new.jsonl --top 3
      onlearn predict m.onl new.csv --threshold 0.2 --positive yes
      onlearn predict m.onl "part-*.svm" -o out.csv --cluster tcp://10.0.0.5:8786
      tail -f log.jsonl | onlearn predict m.onl -
      echo "The dog barks ." | onlearn predict tagger.onl -
    """
    from onlearn.cli.tagging import refuse, tagger_in

    refuse_without_cluster(cluster, shards=shards, patience=patience)
    tagger = tagger_in(model)
    if tagger is not None:
        from onlearn.cli import tagging

        refuse(scores=scores, id=id, top=top, threshold=threshold, positive=positive, cluster=cluster)
        return tagging.predict(
            model, tagger, data, output, proba, format_out, unconstrained, quiet,
            format=format, bad_rows=bad_rows, max_bad=max_bad, strict=strict, max_line=max_line,
        )  # fmt: skip
    only_taggers(unconstrained=unconstrained)
    from onlearn.models.evaluation import usable_rows
    from onlearn.models.prediction_lines import WRITERS, answers, check_asked, format_of
    from onlearn.models.stored_model import open_for_prediction, open_model

    form = format_of(format_out, output)
    opened = open_for_prediction(model) if cluster is None else open_model(model)  # workers get all of it
    check_asked(opened, scores, proba, top)
    set_threshold(opened, threshold, positive)
    if cluster is not None:
        from onlearn.cluster.prediction import Shards, predicted
        from onlearn.cluster.prediction_tasks import Output

        WRITERS[form](opened)  # refuses labels that it cannot write
        bad = bad_rows_of(bad_rows, max_bad, strict)
        over = Shards(opened, data, count=shards, bad=bad, format=format, max_line=line_limit(max_line), id=id)
        silent = quiet or (output is None and sys.stdout.isatty())
        with written(output, model, *over.names) as file, over_shards(over, cluster, patience, quiet, silent) as client:
            for lines in predicted(over, client, Output(form, scores=scores, proba=proba, top=top)):
                file.write(lines)
                if output is None:
                    sys.stdout.flush()
        return
    options: dict[str, Any] = dict(
        format=format, id=id, bad_rows=bad_rows, max_bad=max_bad, strict=strict, max_line=max_line, quiet=quiet
    )
    options["live"] = output is None  # a file appears only when it is whole
    with reading(opened, data, **options) as reader:
        files = [source.name for source in reader.sources]
        writer = WRITERS[form](opened, files=len(files) > 1)
        with written(output, model, *files) as file:
            begun = False
            for batch in batches(reader, quiet or (output is None and sys.stdout.isatty()), id=id):
                with as_data_error(reader):
                    batch = usable_rows(opened, batch, reader.bad)
                    if not len(batch):
                        continue
                    made = answers(opened, batch, scores, proba, top)
                if not begun:  # not before it is clear that the data can be used
                    file.write(writer.header(scores, proba, top))
                    begun = True
                file.write(writer.lines(batch, made))
                if output is None:
                    sys.stdout.flush()  # the writer of a pipe may wait for the answer

"""What a model says about some rows: classes or numbers, and where asked for, scores and probabilities."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.data import Batch
from onlearn.data.arrow import from_numpy, from_strings, scalar
from onlearn.data.named_rows import NamedRows
from onlearn.models.model import Model

# ----------------------------------------------------------------------------------------------------
# Predictions as CSV or JSON lines, a batch at a time, without a Python step for each row.
#
# A row is known by its ``id``: the one it has in the data (an id column, a tag), or else the number of its line. Where
# several files are read, ``file`` says which.


FORMATS = ("csv", "jsonl")


class CsvWriter:
    """A header, and a line a row. ``files``: whether to say which file a row is of."""

    def __init__(self, model: Model, files: bool = False) -> None:
        self.labels, self.files = model.labels, files

    def header(self, scores: bool, proba: bool) -> bytes:
        labels = self.labels or []
        names = ["file"] * self.files + ["id", "prediction"]
        if scores:
            names += ["score"] if len(labels) == 2 else [f"score:{label}" for label in labels]
        if proba:
            names += [f"proba:{label}" for label in labels]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(names)
        return text.getvalue().encode()

    def lines(self, batch: Batch, made: Predictions) -> memoryview:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv as arrow_csv

        columns = [pc.fill_null(pa.nulls(len(batch), pa.string()), scalar(batch.file))] * self.files
        columns += [ids(batch), answers(self.labels, made)]
        for numbers in (made.scores, made.proba):
            if numbers is not None:
                columns += [from_numpy(column) for column in numbers.T]
        table = pa.table(columns, names=[str(n) for n in range(len(columns))])
        for quoting in ("none", "needed"):  # "needed" puts quotes around every string
            sink = pa.BufferOutputStream()
            options = arrow_csv.WriteOptions(include_header=False, quoting_style=quoting, batch_size=1 << 16)
            try:
                arrow_csv.write_csv(table, sink, options)
                break
            except pa.ArrowInvalid:
                if quoting == "needed":
                    raise
        return memoryview(sink.getvalue())


class JsonWriter:
    """An object a line."""

    def __init__(self, model: Model, files: bool = False) -> None:
        self.labels, self.files = model.labels, files

    def header(self, scores: bool, proba: bool) -> bytes:
        return b""

    def lines(self, batch: Batch, made: Predictions) -> memoryview:
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = self.labels or []
        parts: list[Any] = ["{"]
        if self.files:
            parts.append(f'"file": {json.dumps(batch.file)}, ')
        names = ids(batch)
        if batch.ids is not None or isinstance(batch.parsed, NamedRows):  # any of whose rows may have a tag
            names = from_strings([json.dumps(str(name)) for name in names.to_pylist()])
        parts += ['"id": ', names.cast(pa.string()), ', "prediction": ']
        spelled = None if self.labels is None else [json.dumps(label) for label in labels]
        parts.append(answers(spelled, made).cast(pa.string()))
        if made.scores is not None and made.scores.shape[1] == 1:
            parts += [', "score": ', text(made.scores[:, 0])]
        elif made.scores is not None:
            parts += keyed("scores", labels, made.scores)
        if made.proba is not None:
            parts += keyed("proba", labels, made.proba)
        lines = pc.binary_join_element_wise(*(as_large(part) for part in [*parts, "}\n", ""]))  # the last is between
        _, offsets, content = lines.buffers()
        # The text of a fresh Arrow array is all its lines, one after another.
        return memoryview(content)[: np.frombuffer(offsets, np.int64)[lines.offset + len(lines)]]


def ids(batch: Batch) -> Any:
    """The id of each row as an Arrow column; the line's number where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if batch.ids is None:
        return from_numpy(batch.lines)
    return pc.coalesce(from_strings(batch.ids.tolist()), from_numpy(batch.lines).cast(pa.string()))


def answers(labels: list[str] | None, made: Predictions) -> Any:
    """What was predicted as an Arrow column: numbers, or these words for the classes."""

    answers = from_numpy(made.answers)
    return answers if labels is None else from_strings(labels).take(answers)


def text(numbers: np.ndarray) -> Any:
    import pyarrow as pa

    return from_numpy(numbers).cast(pa.string())


def keyed(name: str, labels: list[str], numbers: np.ndarray) -> list[Any]:
    """``, "name": {"label": number, ...}`` in parts."""
    parts: list[Any] = [f', "{name}": {{']
    for k, label in enumerate(labels):
        parts += [f"{', ' if k else ''}{json.dumps(label)}: ", text(numbers[:, k])]
    return [*parts, "}"]


def as_large(part: Any) -> Any:
    import pyarrow as pa

    return scalar(part).cast(pa.large_string()) if isinstance(part, str) else part.cast(pa.large_string())


class Predictions(NamedTuple):
    """``answers`` are positions in the model's labels, or for regression numbers. What was not asked for is None.

    ``scores`` has one column for two classes (positive: the second label), else one for each.
    """

    answers: np.ndarray
    scores: np.ndarray | None = None
    proba: np.ndarray | None = None


def predictions(model: Model, rows: Any, *, scores: bool = False, proba: bool = False) -> Predictions:
    """Predict a batch, or rows of any kind that the model takes."""
    try:
        return _predictions(model, rows, scores, proba)
    except ValueError as error:
        # of kernels.ExampleError, which is not imported: few models have a kernel, and those take a while to load
        row, why = getattr(error, "row", None), getattr(error, "why", "")
        if row is None or not isinstance(rows, data.Batch):
            raise
        raise data.DataError(f"{rows.file}, line {rows.lines[row]}: {why}") from None


def _predictions(model: Model, rows: Any, scores: bool, proba: bool) -> Predictions:
    learner, X = model.learner_for(model.numbered(rows))
    if model.labels is None:
        return Predictions(model.named(learner.predict(X)))
    if not (scores or proba):
        return Predictions(_positions(learner.predict(X), learner.classes_))
    made = np.asarray(learner.decision_function(X))
    # The rule of ``predict``: above zero is the second class, else the first of the best.
    codes = (made > 0).astype(np.int64) if made.ndim == 1 else np.argmax(made, axis=1)
    probabilities = np.asarray(learner.predict_proba(X)) if proba else None
    return Predictions(codes, made.reshape(len(codes), -1), probabilities)


def _positions(predicted: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Positions among the classes; those of a model are their own positions."""
    if classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
        return predicted
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, predicted, sorter=order)]

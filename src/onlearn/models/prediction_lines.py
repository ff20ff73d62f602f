"""Predictions as lines of text, CSV or JSON: what ``onlearn predict`` writes.

A row is identified by its ``id`` in the data (an id column, a tag), or else by the number of its line. ``file`` is
added where several files are read. No line depends on the batch that its row came in, and no Python step is taken for
each row.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onlearn.errors import PlanError
from onlearn.models.spreadsheet import without_formulas

if TYPE_CHECKING:
    import numpy as np

    from onlearn.data import Batch
    from onlearn.models.evaluation import Predictions
    from onlearn.models.model import Model
    from onlearn.models.top_labels import TopLabels

JSON_LINES = (".jsonl", ".ndjson", ".json")


class Answers(NamedTuple):
    """The predictions of a batch as they are written: what is None is not."""

    made: Predictions
    top: TopLabels | None = None
    top_scores: bool = False


def answers(model: Model, batch: Batch, scores: bool, proba: bool, top: int | None) -> Answers:
    """Predict a batch; with ``top``, the best labels take the place of the probabilities and scores of all."""
    from onlearn.models.evaluation import predictions

    if top is None:
        made = predictions(model, batch, scores=scores, proba=proba)
        return Answers(made if scores else made._replace(scores=None))
    from onlearn.models.top_labels import top_labels

    made = predictions(model, batch, scores=True, proba=True)
    assert made.proba is not None
    assert made.scores is not None
    return Answers(made._replace(scores=None, proba=None), top_labels(made.proba, made.scores, top), scores)


def format_of(name: str | None, output: Any) -> str:
    """The format of the lines: as it is named, or else by the extension of the file that they go to."""
    if name is None:
        return "jsonl" if output is not None and Path(output).suffix.lower() in JSON_LINES else "csv"
    if name not in WRITERS:
        raise PlanError(f"{name!r} is not {' or '.join(WRITERS)}", "format_out")
    return name


def check_asked(model: Model, scores: bool, proba: bool, top: int | None) -> None:
    """Refuse what a model has not, and the same twice."""
    if top is not None and proba:
        raise PlanError("top= has the probabilities of the best labels: leave proba= out")
    for name, asked in (("proba", proba), ("scores", scores), ("top", top is not None)):
        if asked and model.labels is None:
            raise PlanError("a regression model predicts numbers only", name)


# ---------------------------------------------------------------------- output


class CsvWriter:
    """A header, and a line for each row; with ``files``, each line names the file.

    Several labels of a row have the separator between them that the model learned from, or a semicolon. With ``safe``,
    a spreadsheet takes no text for a formula.
    """

    def __init__(self, model: Model, files: bool = False, safe: bool = False) -> None:
        self.labels: list[str] | None = model.labels
        self.files: bool = files
        self.safe: bool = safe
        self.separator: str = model.reading.get("label_separator") or ";"
        self.several: bool = model.task == "multilabel"
        if self.several and (unclear := [label for label in self.labels or () if self.separator in label]):
            raise PlanError(
                f"the label {unclear[0]!r} holds the separator of labels, {self.separator!r}, so CSV could not be read "
                "again: say format_out=jsonl"
            )

    def _predictions(self, answers: np.ndarray) -> Any:
        if answers.ndim == 2:
            return _sets(answers, self.labels or [], self.separator.join)
        return _answers(self.labels, answers)

    def header(self, scores: bool, proba: bool, top: int | None) -> bytes:
        """The names of the columns."""
        labels = self.labels or []
        names = ["file"] * self.files + ["id", "prediction"]
        if top is not None:
            for place in range(1, min(top, len(labels)) + 1):
                names += [f"label{place}", f"proba{place}"] + [f"score{place}"] * scores
        elif scores:
            names += ["score"] if len(labels) == 2 and not self.several else [f"score:{label}" for label in labels]
        if proba:
            names += [f"proba:{label}" for label in labels]
        if self.safe:
            from onlearn.data.arrow import from_strings

            names = without_formulas(from_strings(names)).to_pylist()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(names)
        return text.getvalue().encode()

    def lines(self, batch: Batch, answers: Answers) -> memoryview:
        """The lines of a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv as arrow_csv

        from onlearn.data.arrow import from_numpy, scalar

        columns = [pc.fill_null(pa.nulls(len(batch), pa.string()), scalar(_file(batch)))] * self.files
        made, top = answers.made, answers.top
        columns += [_ids(batch), self._predictions(made.answers)]
        if top is not None:
            for place in range(top.codes.shape[1]):
                columns += [_answers(self.labels, top.codes[:, place]), from_numpy(top.proba[:, place])]
                columns += [from_numpy(top.scores[:, place])] * answers.top_scores
        for numbers in (made.scores, made.proba):
            if numbers is not None:
                columns += [from_numpy(column) for column in numbers.T]
        if self.safe:
            columns = [without_formulas(column) for column in columns]
        table = pa.table(columns, names=[str(n) for n in range(len(columns))])
        sink = pa.BufferOutputStream()
        try:
            arrow_csv.write_csv(
                table, sink, arrow_csv.WriteOptions(include_header=False, quoting_style="none", batch_size=1 << 16)
            )
        except pa.ArrowInvalid:  # a cell needs quotes, and PyArrow would put them around every string
            cells = [_in_quotes(pc.fill_null(column.cast(pa.string()), scalar(""))) for column in columns]
            return _joined([part for cell in cells for part in (",", cell)][1:] + ["\n"])
        return memoryview(sink.getvalue())


class JsonWriter:
    """An object for each row, on a line; with ``files``, each names the file."""

    def __init__(self, model: Model, files: bool = False, safe: bool = False) -> None:
        if safe:
            raise PlanError("it is about CSV, and the output is JSON lines", "spreadsheet_safe")
        self.labels: list[str] | None = model.labels
        self.files: bool = files

    def header(self, scores: bool, proba: bool, top: int | None) -> bytes:
        """Nothing."""
        return b""

    def lines(self, batch: Batch, answers: Answers) -> memoryview:
        """The lines of a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from onlearn.data.arrow import from_strings, scalar
        from onlearn.data.batch import NamedRows

        labels, (made, top, _) = self.labels or [], answers
        parts: list[Any] = ["{"]
        if self.files:
            parts.append(f'"file": {json.dumps(_file(batch))}, ')
        names = _ids(batch)
        if batch.ids is not None or isinstance(batch.parsed, NamedRows):  # any of whose rows may have a tag
            names = from_strings([json.dumps(str(name)) for name in names.to_pylist()])
        parts += ['"id": ', names.cast(pa.string()), ', "prediction": ']
        quoted = None if self.labels is None else [json.dumps(label) for label in labels]
        if made.answers.ndim == 2:
            parts.append(_sets(made.answers, labels, lambda several: json.dumps(list(several))))
        else:
            parts.append(pc.fill_null(_answers(quoted, made.answers).cast(pa.string()), scalar("null")))
        if made.scores is not None and made.scores.shape[1] == 1 and made.answers.ndim == 1:
            parts += [', "score": ', _text(made.scores[:, 0])]
        elif made.scores is not None:
            parts += _object("scores", labels, made.scores)
        if made.proba is not None:
            parts += _object("proba", labels, made.proba)
        if top is not None:
            parts.append(', "top": [')
            for place in range(top.codes.shape[1]):
                parts += [', {"label": ' if place else '{"label": ', _answers(quoted, top.codes[:, place])]
                parts += [', "proba": ', _text(top.proba[:, place])]
                parts += [', "score": ', _text(top.scores[:, place])] if answers.top_scores else []
                parts.append("}")
            parts.append("]")
        return _joined([*parts, "}\n"])


WRITERS: dict[str, Any] = {"csv": CsvWriter, "jsonl": JsonWriter}


def _file(batch: Batch) -> str:
    """The name of the file of a batch. Bytes of it that are not UTF-8 are escapes, for no text can hold them."""
    return os.fsencode(batch.file).decode("utf-8", "backslashreplace")


def _ids(batch: Batch) -> Any:
    """The id of each row as an Arrow array; the number of the line where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from onlearn.data.arrow import from_numpy, from_strings

    if batch.ids is None:
        return from_numpy(batch.lines)
    return pc.coalesce(from_strings(batch.ids.tolist()), from_numpy(batch.lines).cast(pa.string()))


def _answers(labels: list[str] | None, codes: np.ndarray) -> Any:
    """The predictions as an Arrow array: labels, null where there is none (-1); or numbers, which have no labels."""
    import pyarrow.compute as pc

    from onlearn.data.arrow import from_numpy, from_strings, null

    found = from_numpy(codes)
    if labels is None:
        return found
    if codes.min(initial=0) < 0:
        found = pc.if_else(from_numpy(codes < 0), null(found.type), found)
    return from_strings(labels).take(found)


def _sets(truth: np.ndarray, labels: list[str], written: Callable[[list[str]], str]) -> Any:
    """Sets of labels as an Arrow array of strings; each distinct set is written once."""
    import numpy as np

    from onlearn.data.arrow import from_numpy, from_strings

    packed = np.packbits(truth, axis=1)
    _, first, places = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    names = [written([labels[k] for k in np.flatnonzero(row)]) for row in truth[first]]
    return from_strings(names).take(from_numpy(places.reshape(-1)))


def _text(numbers: np.ndarray) -> Any:
    import pyarrow as pa

    from onlearn.data.arrow import from_numpy

    return from_numpy(numbers).cast(pa.string())


def _object(name: str, labels: list[str], numbers: np.ndarray) -> list[Any]:
    """The parts of ``, "name": {"label": number, ...}``."""
    parts: list[Any] = [f', "{name}": {{']
    for k, label in enumerate(labels):
        parts += [f"{', ' if k else ''}{json.dumps(label)}: ", _text(numbers[:, k])]
    return [*parts, "}"]


def _in_quotes(cells: Any) -> Any:
    """The strings with quotes around those that need them in CSV."""
    import pyarrow.compute as pc

    from onlearn.data.arrow import scalar

    quote, nothing = scalar('"'), scalar("")
    quoted = pc.binary_join_element_wise(quote, pc.replace_substring(cells, '"', '""'), quote, nothing)
    return pc.if_else(pc.match_substring_regex(cells, '[",\r\n]'), quoted, cells)


def _joined(parts: list[Any]) -> memoryview:
    """The content of strings and arrays of strings, joined row by row."""
    import numpy as np
    import pyarrow.compute as pc

    separator = ""
    lines = pc.binary_join_element_wise(*(_large(part) for part in [*parts, separator]))
    _, offsets, content = lines.buffers()
    # The buffer of a new Arrow array holds all its lines, one after another.
    return memoryview(content)[: np.frombuffer(offsets, np.int64)[lines.offset + len(lines)]]


def _large(part: Any) -> Any:
    """A string or an array of strings with 64-bit offsets."""
    import pyarrow as pa

    from onlearn.data.arrow import scalar

    return scalar(part).cast(pa.large_string()) if isinstance(part, str) else part.cast(pa.large_string())

"""The items of a stream: an example, its label if it is known, its weight and its key, from memory or from files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.data.batch import NamedRows, as_parsed, is_table, rows_at, rows_between, rows_in
from onlearn.data.file_reader import concatenated
from onlearn.engine.csr import CSR
from onlearn.models.model import Model
from onlearn.models.raw_rows import refuse_sentences
from onlearn.models.training import READING

ROLES = ("target", "weight", "id")  # of columns that are not features
SLICE = 1024  # rows of a table that are made objects at a time


class Item(NamedTuple):
    """One item; ``y`` is None for a question, ``weight`` None where none was said."""

    x: Any
    y: Any
    weight: float | None = None
    key: Any = None


class GivenItems:
    """Items of any iterable: (x, y) or (x, y, weight). With ``key``, x is a mapping that holds it."""

    source: Iterable[Any]
    key: str | None

    def __init__(self, source: Iterable[Any], key: str | None) -> None:
        self.source, self.key = source, key

    def __iter__(self) -> Iterator[Any]:
        return iter(self.source)

    def parse(self, item: Any) -> Item:
        """An element of the iterable as an item."""
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise TypeError(f"an item of a stream is (x, y) or (x, y, weight), not {_shown(item)}")
        x, y, weight = (*item, None)[:3]
        if self.key is None:
            return Item(x, y, weight)
        if not isinstance(x, Mapping):
            raise TypeError(f"with delay={self.key!r} x is a mapping that has this key, not {_shown(x)}")
        if self.key not in x:
            raise ValueError(f"x has no {self.key!r}, which delay= names; it has {', '.join(map(str, x)) or 'nothing'}")
        return Item({name: value for name, value in x.items() if name != self.key}, y, weight, x[self.key])

    def place(self) -> str:
        """Where the present item stands, besides its number."""
        return ""

    def close(self) -> None:
        """Nothing to do: the iterable is the caller's."""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class FileItems:
    """Rows of files: for a ``Model`` batches of one row, for others what ``learn_one`` takes."""

    reader: data.Reader
    ours: bool
    key: str | None
    raw: bool
    options: dict[str, Any]

    def __init__(self, reader: data.Reader, ours: bool, key: str | None, raw: bool, options: dict[str, Any]) -> None:
        self.reader, self.ours, self.key, self.raw, self.options = reader, ours, key, raw, options
        self._file, self._line = "", 0

    def __iter__(self) -> Iterator[Item]:
        for batch in self.reader:
            refuse_sentences(batch)
            if self.key is not None and batch.ids is None:
                raise data.DataError(f"{batch.file}: the rows have no ids, and delay= names their column")
            self._file = batch.file
            none = [None] * len(batch)
            y = none if batch.y is None else batch.y.tolist()
            weights = none if batch.weight is None else batch.weight.tolist()
            keys = none if batch.ids is None or self.key is None else batch.ids.tolist()
            # A question may wait for long, and must not keep the memory of its batch.
            rows = raw_rows(batch.parsed, own=self.key is not None) if self.raw else plain_rows(batch.parsed)
            for x, label, weight, key, line in zip(rows, y, weights, keys, batch.lines.tolist()):
                self._line = line
                unknown = isinstance(label, float) and math.isnan(label)
                yield Item(x, None if unknown else label, weight, key)

    def parse(self, item: Item) -> Item:
        """Readers give items as they should be."""
        return item

    def place(self) -> str:
        """File and line of the present item."""
        return f" ({self._file}, line {self._line})"

    def reading(self) -> dict[str, Any]:
        """The options by which other files of this kind are read, as ``Model.reading`` holds them."""
        found = self.reader.found()
        named = {role: found[role] for role in ROLES if role in found}  # not by position
        return {**found, **{name: value for name, value in self.options.items() if name in READING}, **named}

    def close(self) -> None:
        """Stop reading, unless the reader is the caller's."""
        if self.ours:
            self.reader.close()


def raw_rows(rows: Any, own: bool) -> Iterator[data.Batch]:
    """The rows of a batch one by one, as batches; ``own`` gives each memory of its own."""
    for n in range(rows_in(rows)):
        row = rows_between(rows, n, n + 1)
        if own:
            row = _detached(row) if isinstance(row, NamedRows) else rows_at(row, np.zeros(1, dtype=np.int64))
        yield data.Batch(row)


def _detached(row: NamedRows) -> NamedRows:
    """Named rows with no more of the text than their names."""
    parts = [row.text[start : start + length] for start, length in zip(row.starts.tolist(), row.lengths.tolist())]
    return row._replace(
        hashes=np.array(row.hashes),
        values=np.array(row.values),
        starts=np.cumsum(row.lengths) - row.lengths,
        lengths=np.array(row.lengths),
        groups=np.array(row.groups),
        text=np.concatenate([np.zeros(0, row.text.dtype), *parts]),
        known=None,
    )


def plain_rows(rows: Any) -> Iterator[Any]:
    """The rows of a batch one by one: mappings by name without missing values, or sparse rows."""
    if isinstance(rows, NamedRows):
        for n in range(rows_in(rows)):
            yield _by_name(rows.between(n, n + 1))
    elif is_table(rows):
        for start in range(0, rows.num_rows, SLICE):
            for row in _as_mappings(rows.slice(start, SLICE)):
                yield {name: value for name, value in row.items() if value is not None}
    else:
        for n in range(rows_in(rows)):
            yield rows.take(np.array([n]))  # a copy, so that it may be kept without the batch


def _as_mappings(table: Any) -> list[dict[str, Any]]:
    """The rows of a table by name."""
    columns = {}
    for name, column in zip(table.column_names, table.columns):
        try:
            columns[name] = column.to_pylist()
        except (ValueError, OverflowError) as error:  # of PyArrow, too
            raise data.DataError(f"the column {name!r} holds times that Python has no object for: {error}") from error
    return [dict(zip(columns, row)) for row in zip(*columns.values())] if columns else [{}] * len(table)


def _by_name(row: NamedRows) -> dict[str, float]:
    """Values by name; those of a name that comes twice are summed, as in a matrix."""
    made: dict[str, float] = {}
    for k, value in enumerate(row.values.tolist()):
        name = row.name(k)
        made[name] = made.get(name, 0.0) + value
    return made


def is_file(source: Any) -> bool:
    """Whether a source is a path, a pattern, a reader, or a list of paths."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(one, (str, os.PathLike)) for one in source)
    return isinstance(source, (str, os.PathLike, data.Reader))


def open_items(source: Any, model: Any, task: str, key: str | None, options: dict[str, Any]) -> Any:
    """The items of a source; ``options`` are those of ``onlearn.data.read``."""
    if not is_file(source):
        if options:
            raise TypeError(f"{min(options)}= is about files, and the source is none")
        if not isinstance(source, Iterable):
            raise TypeError(f"a source is an iterable of (x, y), or a path, not {_shown(source)}")
        return GivenItems(source, key)
    raw = isinstance(model, Model)
    if isinstance(source, data.Reader):
        if options:
            raise TypeError(f"{min(options)}= is for files that are not open yet: give it to onlearn.data.read")
        return FileItems(source, False, key, raw, {})
    usual: dict[str, Any] = {"labels": "required" if key is None else "optional", "live": True}
    if key is not None:
        usual["id"] = key
    if raw and model.learner is not None:
        reader = model.read(source, **{**usual, **options})
    else:
        reader = data.read(source, **{"task": task, **usual, **options})
    return FileItems(reader, True, key, raw, options if key is None else {"id": key, **options})


def as_rows(examples: list[Any]) -> Any:
    """Examples of one kind as rows that ``Model.partial_fit`` takes."""
    first = examples[0]
    if isinstance(first, data.Batch):
        return data.Batch(_joined([one.parsed for one in examples]))
    if isinstance(first, (str, Mapping)):
        return examples
    sparse = isinstance(first, CSR) or hasattr(first, "tocsr")
    return _joined([as_parsed(one) for one in examples]) if sparse else np.array(examples)


def _joined(rows: list[Any]) -> Any:
    if isinstance(rows[0], CSR):
        width = max(row.shape[1] for row in rows)
        rows = [row.of_width(width) for row in rows]
    return concatenated(rows)

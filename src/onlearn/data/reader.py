"""``read``: from files to batches."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onlearn.data.bad_rows import BadRows, DataError
from onlearn.data.batch import Batch, Sentences, as_parsed, as_public, rows_in
from onlearn.data.detection import sniff
from onlearn.data.named_rows import NamedRows
from onlearn.data.registry import EXTENSIONS, Format, Options, Parsed, readers
from onlearn.data.row_store import DamagedError, RowStore
from onlearn.data.sources import SIZE, Source, Stream, sources
from onlearn.engine.csr import CSR, stacked
from onlearn.threads import ahead

# ----------------------------------------------------------------------------------------------------
# Options of reading that have no use with a format. They are refused, unless they may be meant for another file.


OF_CELLS = {"csv", "tsv"}  # formats that have a delimiter and a header


def refuse_idle(options: Options, source: Source, name: str, others: list[Source]) -> None:
    """``source`` is of the format ``name``; ``others`` are those whose format is told by their names."""
    known = [EXTENSIONS.get(end) for other in others for end in other.extensions[:1] or [""]]
    if any(other is None or other == "fasttext" for other in known):  # any format, then
        return
    formats = {name, *(other for other in known if other is not None)}
    asked = {"delimiter": options.delimiter, "header": None if options.header == "auto" else options.header}
    for option, value in asked.items():
        if value is not None and formats.isdisjoint(OF_CELLS):
            raise DataError(f"{source.name} is read as {name}, and {option} is about CSV: do not say {option}=")
    id = options.id if options.id_required else None
    for option, given in (
        ("target", options.target is not None),
        ("weight", options.weight is not None),
        ("id", id is not None),
        ("types", bool(options.types)),
    ):
        reasons = {one: getattr(readers()[one], "idle", {}).get(option) for one in formats}
        if given and None not in reasons.values():
            raise DataError(f"{source.name}: {option}= has no use here: {reasons[name]}")


CHOICES = {
    "task": ("classify", "regress", "tag"),
    "labels": ("required", "optional"),
    "missing": ("absent", "error", "zero", "indicator"),
}


class Reader:
    """The batches of some files, one after another; made by ``read``.

    ``notes`` says what was decided along the way (format, header, target), ``bad`` holds the rows that could not be
    read, ``label_names`` the labels seen so far. ``bytes_read`` of ``bytes_total`` tell how far it is (None: unknown).
    ``kept`` is the cache, if one was asked for. ``then``, if set, is what the threads that parse do to rows next.
    """

    def __init__(
        self,
        source: Any,
        format: str | None,
        options: Options,
        batch_rows: int | None,
        bad: BadRows,
        workers: int,
        cache: bool | str | os.PathLike[str],
        table_required: bool = True,
        live: bool = False,
    ) -> None:
        self.notes: list[str] = []
        self.bad = bad
        self.label_names: list[str] = []
        self.sources = sources(source)
        self.options = options
        sizes = [one.size for one in self.sources]
        self.bytes_total = None if None in sizes else sum(size for size in sizes if size is not None)
        self.bytes_read = 0
        self._format = format
        self._formats: dict[str, Format] = {}
        self._codes: dict[str, int] = {}
        self._workers = workers
        self._table_required = table_required
        self._live = live
        self.then: Callable[[Any], Any] | None = None
        self.kept: RowStore | None = None
        if cache is not False:
            key = [format, dataclasses.asdict(options)]
            self.kept = RowStore(self.sources, key, None if cache is True else cache)
        self._batches = self._split(batch_rows) if batch_rows else self._read()

    def __iter__(self) -> Iterator[Batch]:
        return self._batches

    def __next__(self) -> Batch:
        return next(self._batches)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def found(self) -> dict[str, Any]:
        """What was found out about tables, as options that read others like these."""
        if self.kept is not None and self.kept.used:
            return dict(self.kept.found)
        for form in self._formats.values():
            layout, roles = getattr(form, "layout", None), getattr(form, "roles", None)
            told: dict[str, Any] = {}
            for role in ("target", "weight", "id"):
                if (column := getattr(roles, role, None)) is not None:
                    told[role] = column
            if layout is not None and roles is not None:
                told["header"] = layout.header
                told["types"] = {
                    name: "number" if number else "string"
                    for name, number in zip(layout.names, layout.numeric)
                    if name not in roles.columns
                }
            return told
        return {}

    def close(self) -> None:
        """Stop reading."""
        self._batches.close()  # type: ignore[attr-defined]

    def _split(self, most: int) -> Iterator[Batch]:
        for batch in self._read():
            yield from batch.split(most)

    def _read(self) -> Iterator[Batch]:
        lines: dict[str, int] = {}
        done = 0
        try:
            with contextlib.closing(self._settled()) as pieces:
                for number, parsed, position in pieces:
                    source = self.sources[number]
                    self.bytes_read = max(self.bytes_read, position)
                    before = lines.get(source.name, 0)
                    lines[source.name] = before + parsed.line_count
                    for bad in parsed.bad:
                        self.bad.add(source.name, bad._replace(line=bad.line + before + 1))
                    count = rows_in(parsed.rows)
                    self.bad.seen(count)
                    done += count
                    if count:
                        yield self._batch(source, parsed, before)
            self.bad.check()
            if not done and not self.bad.count:
                names = ", ".join(source.name for source in self.sources[:3])
                raise DataError(f"{names}: there are no rows")
        finally:
            self.bad.close()

    def _settled(self) -> Generator[tuple[int, Parsed, int], None, None]:
        """What formats make of the pieces; from the cache as long as that is sound."""
        kept, done = self.kept, 0
        if kept is not None and kept.ready:
            self.notes += kept.notes
            try:
                for piece in kept.pieces(self._workers):
                    yield piece
                    done += 1
                return
            except DamagedError:
                kept.forget()
                self.notes.clear()
        try:
            for source, form, parsed, position in ahead(self._pieces(), self._parse, self._workers):
                parsed, number = form.settle(parsed), self.sources.index(source)
                if kept is not None:
                    kept.append(number, parsed, position)
                if done:  # it came from the cache, before that turned out to be damaged
                    done -= 1
                else:
                    yield number, parsed, position
            if kept is not None:
                kept.finish(self.notes, self.found())
        finally:
            if kept is not None:
                kept.close()

    def _pieces(self) -> Iterator[tuple[Source, Format, Any, int]]:
        before = 0
        for source in self.sources:
            stream = Stream(source, self._live)
            try:
                if not stream.head(1):
                    if len(self.sources) == 1:
                        raise DataError(f"{source.name} is empty")
                    self.notes.append(f"{source.name} is empty")
                    continue
                stream.refuse_compressed()
                form = self._format_of(stream)
                for piece in form.pieces(stream):
                    yield source, form, piece, before + stream.position
                stream.refuse_cut()
                before += source.size or 0
            finally:
                stream.close()

    def _format_of(self, stream: Stream) -> Format:
        """One reader a format, so that files of one format share what was decided about the first."""
        name = self._format
        known = readers()
        if name is None:
            name = next((EXTENSIONS[end] for end in stream.source.extensions[:1] if end in EXTENSIONS), None)
            if name is None or name == "fasttext":  # .txt may be anything
                name, why = sniff(stream, name)
                self.notes.append(f"{stream.source.name}: read as {name}: {why}")
        if name not in self._formats:
            if self._table_required:
                others = [] if self._format else [one for one in self.sources if one is not stream.source]
                refuse_idle(self.options, stream.source, name, others)
            self._formats[name] = known[name](self.options, self.notes)
        return self._formats[name]

    def _parse(self, work: tuple[Source, Format, Any, int]) -> tuple[Source, Format, Parsed, int]:
        source, form, piece, position = work
        with np.errstate(over="ignore"):  # should parsers run interpreted
            parsed = form.parse(piece)
        parsed.rows = as_parsed(parsed.rows)  # a user-defined format may make SciPy matrices
        if self.then is not None:
            parsed.rows = self.then(parsed.rows)
        return source, form, parsed, position

    def _batch(self, source: Source, parsed: Parsed, before: int) -> Batch:
        codes = parsed.codes
        if codes is not None:
            new = np.full(len(parsed.names) + 1, -1, dtype=np.int64)
            used = np.zeros(len(new), dtype=bool)
            used[codes] = True  # bad rows may have had labels of their own
            for n in np.flatnonzero(used[:-1]).tolist():
                name = parsed.names[n]
                code = self._codes.setdefault(name, len(self._codes))
                if code == len(self.label_names):
                    self.label_names.append(name)
                new[n] = code
            codes = new[codes]
        return Batch(
            parsed.rows,
            parsed.numbers,
            parsed.weight,
            parsed.ids,
            parsed.groups,
            source.name,
            parsed.lines + (before + 1),
            codes,
            None if codes is None else self.label_names,
        )


def read(
    source: Any,
    *,
    format: str | None = None,
    target: str | int | None = None,
    task: str = "classify",
    weight: str | int | None = None,
    id: str | int | None = None,
    id_required: bool = True,
    id_kept: bool = False,
    labels: str = "required",
    batch_rows: int | None = None,
    missing: str = "absent",
    bad: BadRows | None = None,
    strict: bool = False,
    workers: int = 2,
    delimiter: str | None = None,
    header: bool | str = "auto",
    table_required: bool = True,
    types: dict[str, str] | None = None,
    expected: Iterable[str] = (),
    block_size: int = SIZE,
    cache: bool | str | os.PathLike[str] = False,
    live: bool = False,
) -> Reader:
    """The rows of one or more files, in batches, in constant memory.

    :param source: a path, a pattern, ``"-"`` for standard input, or a list of those; ``.gz .zst .bz2`` are unpacked
    :param format: what the files are, where the extension does not say: see ``onlearn.data.format_names()``
    :param target, weight, id: columns of a table, by name or position, that are not features
    :param task: ``"classify"``, ``"regress"`` (labels are float64) or ``"tag"``
    :param id_required: False: a table may lack the column that ``id`` names; then its rows have no ids
    :param id_kept: True: the column that ``id`` names stays among the features
    :param labels: ``"required"`` makes a row without a label a bad one; ``"optional"`` gives it None
    :param batch_rows: at most so many rows a batch; as they come by default, some megabytes of file each
    :param missing: ``"error"`` makes a row with a missing value a bad one; all else is for the features to heed
    :param bad: collects the rows that cannot be read; by default, 1 % of them are too many
    :param strict: raise at the first bad row
    :param workers: threads that parse ahead; 0 does everything in this one
    :param delimiter, header: of CSV; found out by default
    :param table_required: False: what is said about tables (delimiter, header, columns) is for the files that are some,
        though there may be none
    :param types: ``{"column": "number" or "string"}``; found out from the first rows by default
    :param expected: columns of which JSON lines may lack some, but not all: they are missing values then
    :param block_size: bytes of text parsed at a time
    :param cache: keep the parsed rows for the next time these files are read like this: True beside the first file, or
        in a folder. What is kept is used as long as it is of these very files and options
    :param live: True: rows of a pipe are given as soon as their lines are complete, even if its writer then waits; the
        more rows there are, the more are given at a time
    """
    for name, value in (("task", task), ("labels", labels), ("missing", missing)):
        if value not in CHOICES[name]:
            raise ValueError(f"{name} must be {' or '.join(map(repr, CHOICES[name]))}, not {value!r}")
    if format is not None and format not in readers():
        raise DataError(f"there is no format {format!r}; there are {', '.join(sorted(readers()))}")
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise ValueError(f"delimiter must be one ASCII character, not {delimiter!r}")
    if header not in (True, False, "auto"):
        raise ValueError(f"header must be True, False or 'auto', not {header!r}")
    if batch_rows is not None and batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, not {batch_rows}")
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1, not {block_size}")
    if bad is None:
        bad = BadRows(strict=strict)
    elif strict:
        bad.strict = True
    options = Options(
        target=target,
        task=task,
        weight=weight,
        id=id,
        id_required=id_required or id is None,
        id_kept=id_kept,
        labels=labels,
        missing=missing,
        delimiter=delimiter,
        header=header,
        types=types or {},
        expected=list(expected),
        block_size=block_size,
    )
    return Reader(source, format, options, batch_rows, bad, workers, cache, table_required, live)


# ----------------------------------------------------------------------------------------------------
# ``load``: a whole file at once.


def load(source: Any, **options: Any) -> tuple[Any, np.ndarray | None]:
    """All rows and labels of one or more files: X and y. Takes what ``read`` takes.

    X is a ``csr_matrix`` for svmlight, a ``pyarrow.Table`` for tables and text, ``NamedRows`` for Vowpal Wabbit and
    ``Sentences`` for CoNLL.
    """
    batches = list(read(source, **options))
    kinds = {type(batch.parsed) for batch in batches}
    if len(kinds) > 1:
        raise ValueError("files of different kinds cannot be loaded together: read them one by one")
    labels = [batch.y for batch in batches if batch.y is not None]
    y = np.concatenate(labels) if len(labels) == len(batches) else None
    return as_public(concatenated([batch.parsed for batch in batches])), y


def concatenated(parts: list[Any]) -> Any:
    """Rows of one kind, one after another."""
    first = parts[0]
    if isinstance(first, CSR):
        return stacked(parts)
    if isinstance(first, NamedRows):
        return concatenated_names(parts)
    if isinstance(first, Sentences):
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in first.columns}
        return Sentences(columns, concatenated_offsets([part.offsets for part in parts]))
    import pyarrow as pa

    return pa.concat_tables(parts, promote_options="permissive")


def concatenated_names(parts: list[NamedRows]) -> NamedRows:
    prefixes = list(dict.fromkeys(prefix for part in parts for prefix in part.prefixes))
    if len(prefixes) > 1 << 16:
        raise ValueError("there are too many namespaces to load at once: read the file in batches")
    shifts = np.cumsum([0, *(len(part.text) for part in parts)])
    groups = [
        np.array([prefixes.index(prefix) for prefix in part.prefixes], dtype=np.uint16)[part.groups] for part in parts
    ]
    return NamedRows(
        concatenated_offsets([part.indptr for part in parts]),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.starts + shift for part, shift in zip(parts, shifts)]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate(groups),
        np.concatenate([part.text for part in parts]),
        tuple(prefixes),
    )


def concatenated_offsets(parts: list[np.ndarray]) -> np.ndarray:
    ends = np.cumsum([0, *(part[-1] for part in parts)])
    return np.concatenate([parts[0][:1], *(part[1:] + end for part, end in zip(parts, ends))])


# ----------------------------------------------------------------------------------------------------
# Compiling the parsers ahead, by reading a small file of each format that has one.


SAMPLES = {
    "small.svm": "1 2:0.5 1:1\n",
    "wide.svm": "1 3000000000:1\n",
    "small.vw": "1 |f ä:0.5\n",
    "small.csv": "a,label\n1,x\n2,y\n",
    "small.jsonl": '{"label": "x", "a": "ä"}\n',
}


def warm() -> None:
    """Compile what reading needs, so that the first file is read at full speed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SAMPLES.items():
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            load(path)

"""``read`` gives the rows of files in batches, ``load`` gives all of them at once."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onlearn.byte_sizes import parse_size
from onlearn.data.bad_rows import BadRows, DataError
from onlearn.data.batch import Batch, NamedRows, Sentences, as_parsed, as_public, rows_in
from onlearn.data.blocks import SIZE, Block
from onlearn.data.label_sets import labels_in, set_name
from onlearn.data.registry import EXTENSIONS, Format, Options, Parsed, format_name, readers
from onlearn.data.row_store import DamagedError, RowStore
from onlearn.data.sources import LONGEST, Source, Stream, sources
from onlearn.engine.csr import CSR, stacked
from onlearn.threads import ahead

CHOICES = {
    "task": ("classify", "regress", "tag", "multilabel", "rank"),
    "labels": ("required", "optional"),
    "missing": ("absent", "error", "zero", "indicator"),
}
CELL_FORMATS = {"csv", "tsv"}  # formats with a delimiter and a header
# Reading one small file of each of these formats compiles its parser.
WARM_UP_FILES = {
    "small.svm": "1 2:0.5 1:1\n",
    "wide.svm": "1 3000000000:1\n",
    "small.vw": "1 |f ä:0.5\n",
    "small.csv": "a,label\n1, x\n2,y\n",
    "small.jsonl": '{"label": "x", "a": "ä"}\n',
}


class Reader:
    """Iterates over the batches of some files; created by ``read``.

    ``notes`` lists the decisions made while reading (format, header, target), ``bad`` holds the rows that cannot be
    read, and ``label_names`` the labels seen so far. ``bytes_read`` of ``bytes_total`` (None: unknown) is the progress.
    ``at`` is the number of the source that the last batch is of.
    ``lines_read`` counts the lines of each source (of ``sources``), and ``checksums`` has the CRC-32 of the bytes of
    those that are parts of text files, or of the text of compressed files, once they are read.
    ``kept`` is the row cache, if ``read`` was called with ``cache``. ``after_parse``, if set, is applied to the rows of
    every piece in the thread that parses it. ``choose_format``, if set, gives the format of a stream by its first bytes
    where ``read`` was called without one; None leaves it to the extension and the first lines.
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
        decisions: Mapping[str, Any] | None = None,
    ) -> None:
        self.notes: list[str] = []
        self.bad: BadRows = bad
        self.label_names: list[str] = []
        self.label_sets: list[tuple[str, ...]] = []  # for several labels a row: the labels of each name
        self.sources: list[Source] = sources(source)
        self.options: Options = options
        sizes = [one.size for one in self.sources]
        self.bytes_total: int | None = None if None in sizes else sum(size for size in sizes if size is not None)
        self.bytes_read: int = 0
        self.at: int = 0
        self.lines_read: list[int] = [0] * len(self.sources)
        self.checksums: list[int | None] = [None] * len(self.sources)
        self._decisions = dict(decisions or {})
        # Of shards, for which others decide, some may have no rows.
        self._is_whole = decisions is None and all(one.part is None for one in self.sources)
        self._format = format
        self._formats: dict[str, Format] = {}
        self._codes: dict[str, int] = {}
        self._workers = workers
        self._table_required = table_required
        self._live = live
        self._batch_rows, self._cache = batch_rows, cache
        self.after_parse: Callable[[Any], Any] | None = None
        self.choose_format: Callable[[Stream], str | None] | None = None
        self.kept: RowStore | None = None
        if cache is not False:
            key = [format, dataclasses.asdict(options)]
            self.kept = RowStore(self.sources, key, None if cache is True else cache, alone=not self._decisions)
        self._rest: Generator[Batch, None, None] = self._split(batch_rows) if batch_rows else self._read()
        self._batches: Generator[Batch, None, None] = self._rest

    def __iter__(self) -> Iterator[Batch]:
        return self._batches

    def __next__(self) -> Batch:
        return next(self._batches)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def found(self) -> dict[str, Any]:
        """The decisions about the columns of tables, as options of ``read`` for other files of this kind."""
        if self.kept is not None and self.kept.used:
            return dict(self.kept.found)
        return next((form.found() for form in self._formats.values()), {})

    def decisions(self) -> dict[str, Any]:
        """What the first rows have decided, by format: the option ``decisions`` of readers of other parts of the files.

        With it, a reader of a shard treats its rows as this one would, which has read the rows before them. It can be
        pickled, for use by the same version of this package.
        """
        made = {name: form.decisions() for name, form in self._formats.items()}
        return self._decisions | {name: one for name, one in made.items() if one is not None}

    def again(self) -> Reader:
        """A reader of the same files from their beginning, with the same options; bad rows are counted anew."""
        if any(one.is_stdin for one in self.sources):
            raise DataError("standard input ('-') can be read only once")
        bad = BadRows(limit=self.bad.limit, strict=self.bad.strict)
        return Reader(self.sources, self._format, self.options, self._batch_rows, bad, self._workers, self._cache,
                      self._table_required, self._live, None if self._is_whole else self._decisions)  # fmt: skip

    def keep(self, size: int) -> tuple[list[Batch], bool]:
        """Read batches ahead until there are so many bytes of them; and whether these are all there are.

        Reading goes on as if nothing had happened: these batches come again. Labels are listed as each batch knew them.
        """
        kept: list[Batch] = []
        used, complete = 0, True
        for batch in self._rest:
            if batch.label_names is not None:
                batch.label_names = list(batch.label_names)
            kept.append(batch)
            used += size_of(batch.parsed)
            if used >= size:
                complete = False
                break
        self._batches = self._again(kept)
        return list(kept), complete

    def _again(self, kept: list[Batch]) -> Generator[Batch, None, None]:
        yield from kept
        kept.clear()
        yield from self._rest

    def close(self) -> None:
        """Stop reading."""
        self._batches.close()
        self._rest.close()

    def _split(self, most: int) -> Generator[Batch, None, None]:
        for batch in self._read():
            yield from batch.split(most)

    def _read(self) -> Generator[Batch, None, None]:
        row_count = 0
        try:
            with contextlib.closing(self._settled_pieces()) as pieces:
                for number, parsed, position in pieces:
                    source, self.at = self.sources[number], number
                    self.bytes_read = max(self.bytes_read, position)
                    lines_before = self.lines_read[number] + (source.part.lines_before if source.part else 0)
                    self.lines_read[number] += parsed.line_count
                    count = rows_in(parsed.rows)
                    row_count += count
                    self.bad.seen(count)  # first, for it is their share that can make bad rows too many
                    for bad in parsed.bad:
                        self.bad.add(source.name, bad._replace(line=bad.line + lines_before + 1))
                    if count:
                        yield self._batch(source, parsed, lines_before)
            self.bad.check()
            if self._is_whole and not row_count and not self.bad.count:
                names = ", ".join(source.name for source in self.sources[:3])
                raise DataError(f"{names}: there are no rows")
        finally:
            self.bad.close()

    def _settled_pieces(self) -> Generator[tuple[int, Parsed, int], None, None]:
        """The parsed pieces in order: from the row cache if it is intact, else from the files."""
        kept, from_cache = self.kept, 0
        if kept is not None and kept.ready:
            self.notes += kept.notes
            try:
                for piece in kept.pieces(self._workers):
                    yield piece
                    from_cache += 1
                return
            except DamagedError:
                kept.forget()
                self.notes.clear()
        try:
            for number, form, parsed, position in ahead(self._pieces(), self._parse, self._workers):
                parsed = form.settle(parsed)
                if self.options.multilabel:
                    separator = self.options.label_separator or form.label_separator
                    parsed.names = [set_name(name, separator) for name in parsed.names]
                if kept is not None:
                    kept.append(number, parsed, position)
                if from_cache:  # this piece came from the cache, before a later one turned out to be damaged
                    from_cache -= 1
                else:
                    yield number, parsed, position
            if kept is not None:
                kept.finish(self.notes, self.found())
        finally:
            if kept is not None:
                kept.close()

    def _pieces(self) -> Iterator[tuple[int, Format, Any, int]]:
        bytes_before = 0
        for number, source in enumerate(self.sources):
            stream = Stream(source, self._live)
            try:
                if not stream.head(1):
                    stream.refuse_truncated()
                    if self._is_whole and len(self.sources) == 1:
                        raise DataError(f"{source.name} is empty")
                    self.notes.append(f"{source.name} is empty")
                    continue
                stream.refuse_compressed()
                form = self._format_of(stream)
                for piece in form.pieces(stream):
                    yield number, form, piece, bytes_before + stream.position
                stream.refuse_truncated()
                bytes_before += stream.size
                self.checksums[number] = stream.checksum if stream.ended else None
            finally:
                stream.close()

    def _format_of(self, stream: Stream) -> Format:
        """The reader of a stream. Files of one format share it, and with it the decisions about the first file."""
        name = self._format or stream.source.format
        known = readers()
        if name is None and self.choose_format is not None:
            name = self.choose_format(stream)
        if name is None:
            name = format_name(stream, self.notes)
        if name not in self._formats:
            if self._table_required:
                others = [] if self._format else [one for one in self.sources if one is not stream.source]
                refuse_unused(self.options, stream.source, name, others)
            self._formats[name] = known[name](self.options, self.notes)
            if name in self._decisions:
                self._formats[name].resume(self._decisions[name])
        return self._formats[name]

    def _parse(self, work: tuple[int, Format, Any, int]) -> tuple[int, Format, Parsed, int]:
        number, form, piece, position = work
        with np.errstate(over="ignore"):  # hashes overflow, which NumPy reports if the parsers run interpreted
            parsed = form.parse(piece)
            add_too_long(parsed, getattr(piece, "block", piece))
        parsed.rows = as_parsed(parsed.rows)  # a user-defined format may give SciPy matrices
        if self.after_parse is not None:
            parsed.rows = self.after_parse(parsed.rows)
        return number, form, parsed, position

    def _batch(self, source: Source, parsed: Parsed, lines_before: int) -> Batch:
        codes = parsed.codes
        if codes is not None:
            new = np.full(len(parsed.names) + 1, -1, dtype=np.int64)
            used = np.zeros(len(new), dtype=bool)
            used[codes] = True  # only a bad row may have had some of the labels
            for n in np.flatnonzero(used[:-1]).tolist():
                name = parsed.names[n]
                code = self._codes.setdefault(name, len(self._codes))
                if code == len(self.label_names):
                    self.label_names.append(name)
                    if self.options.multilabel:
                        self.label_sets.append(labels_in(name))
                new[n] = code
            codes = new[codes]
        return Batch(
            parsed.rows,
            parsed.numbers,
            parsed.weight,
            parsed.ids,
            parsed.groups,
            source.name,
            parsed.lines + (lines_before + 1),
            codes,
            None if codes is None else self.label_names,
            self.label_sets if codes is not None and self.options.multilabel else None,
        )


def add_too_long(parsed: Parsed, block: Any) -> None:
    """Add the bad rows that were left out of a block because they are too long."""
    if isinstance(block, Block) and (block.too_long or block.more_lines):
        parsed.bad = sorted([*parsed.bad, *block.too_long], key=lambda bad: bad.line)
        parsed.line_count += block.more_lines


def size_of(rows: Any) -> int:
    """The bytes that parsed rows use, approximately."""
    if hasattr(rows, "nbytes"):
        return int(rows.nbytes)
    arrays = (getattr(rows, name, None) for name in ("data", "indices", "indptr", *getattr(rows, "_fields", ())))
    return sum(one.nbytes for one in arrays if isinstance(one, np.ndarray))


def refuse_unused(options: Options, source: Source, name: str, others: list[Source]) -> None:
    """Refuse options that have no effect for any of the files.

    ``source`` has the format ``name``; the extensions of ``others`` give their formats.
    """
    known = [other.format or EXTENSIONS.get(end) for other in others for end in other.extensions[:1] or [""]]
    if any(other is None or other == "fasttext" for other in known):  # such a file may have any format
        return
    formats = {name, *(other for other in known if other is not None)}
    cell_options = {"delimiter": options.delimiter, "header": None if options.header == "auto" else options.header}
    for option, value in cell_options.items():
        if value is not None and formats.isdisjoint(CELL_FORMATS):
            raise DataError(f"{source.name} is read as {name}, and {option} is about CSV: do not say {option}=")
    id = options.id if options.id_required else None
    for option, given in (
        ("target", options.target is not None),
        ("weight", options.weight is not None),
        ("id", id is not None),
        ("group", options.group is not None),
        ("types", bool(options.types)),
    ):
        reasons = {one: readers()[one].unused_options.get(option) for one in formats}
        if given and None not in reasons.values():
            raise DataError(f"{source.name}: {option}= has no use here: {reasons[name]}")


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
    comments: bool = False,
    block_size: int = SIZE,
    max_line: int | str = LONGEST,
    label_separator: str | None = None,
    group: str | int | None = None,
    cache: bool | str | os.PathLike[str] = False,
    live: bool = False,
    decisions: Mapping[str, Any] | None = None,
) -> Reader:
    """Read the rows of one or more files in batches, in constant memory.

    :param source: a path, a pattern, a URL, ``"-"`` for standard input, a shard, or a list of those;
        ``.gz .zst .bz2`` are unpacked
    :param format: the format of the files, if the extension does not give it: see ``onlearn.data.format_names()``
    :param target, weight, id: columns of a table, by name or position, that are not features
    :param task: ``"classify"``, ``"regress"`` (labels are float64), ``"tag"``, ``"multilabel"`` (a row has any number
        of labels) or ``"rank"`` (labels are float64, and rows have groups)
    :param id_required: False allows a table without the column that ``id`` names; its rows have no ids
    :param id_kept: True leaves the column that ``id`` names among the features
    :param labels: ``"required"`` makes a row without a label a bad one; ``"optional"`` gives it None
    :param batch_rows: the largest number of rows of a batch; by default a batch is a few megabytes of the file
    :param missing: ``"error"`` makes a row with a missing value a bad one; other values concern the features only
    :param bad: collects the rows that cannot be read; by default more than 1 % of them raise an error
    :param strict: raise at the first bad row
    :param workers: the number of threads that parse; 0 parses in the calling thread
    :param delimiter, header: of CSV files; detected by default
    :param table_required: False accepts options about tables (delimiter, header, columns) even if no file is a table
    :param types: ``{"column": "number" or "string"}``; detected in the first rows by default
    :param expected: columns that JSON lines may lack, if at least one of them is there: the values are missing
    :param comments: True keeps the lines of CoNLL-U that are no tokens, in ``Sentences.asides``
    :param label_separator: what stands between several labels in a cell, such as ``";"``; in svmlight and Vowpal Wabbit
        files it is a comma
    :param group: the column of a table that says which rows belong together, for ranking; svmlight files have ``qid:n``
    :param block_size: the bytes of text that are parsed at a time
    :param max_line: the most bytes of a line of text (of a sentence of CoNLL): a longer one is a bad row, and is
        skipped in constant memory. A number, or text such as ``"64MB"``, which is the default
    :param cache: store the parsed rows in a file, and read from it the next time these files are read with the same
        options: True puts it into the folder of the first file, a path into that folder
    :param live: True gives rows of a pipe as soon as their lines are complete, even if its writer pauses; batches grow
        when rows arrive faster
    :param decisions: those of another reader, about header, types and roles of columns, ``Reader.decisions()``: these
        are then some of its files or shards, which may have no rows
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
    if label_separator is not None and (task != "multilabel" or not label_separator):
        why = "is for task='multilabel'" if label_separator else "must not be empty"
        raise ValueError(f"label_separator {why}")
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
        comments=comments,
        block_size=block_size,
        max_line=parse_size(max_line, "max_line"),
        label_separator=label_separator,
        group=group,
    )
    return Reader(source, format, options, batch_rows, bad, workers, cache, table_required, live, decisions)


def load(source: Any, **options: Any) -> tuple[Any, np.ndarray | None]:
    """Read all rows and labels, X and y, of one or more files. The options are those of ``read``.

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
    """Concatenate rows of one kind."""
    first = parts[0]
    if isinstance(first, CSR):
        return stacked(parts)
    if isinstance(first, NamedRows):
        return concatenated_names(parts)
    if isinstance(first, Sentences):
        return Sentences.concatenated(parts)
    import pyarrow as pa

    return pa.concat_tables(parts, promote_options="permissive")


def concatenated_names(parts: list[NamedRows]) -> NamedRows:
    prefixes = list(dict.fromkeys(prefix for part in parts for prefix in part.prefixes))
    shifts = np.cumsum([0, *(len(part.text) for part in parts)])
    places = {prefix: n for n, prefix in enumerate(prefixes)}
    groups = [np.array([places[prefix] for prefix in part.prefixes], dtype=np.uint32)[part.groups] for part in parts]
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


def warm() -> None:
    """Compile the parsers, so that the first file is read at full speed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in WARM_UP_FILES.items():
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            load(path)

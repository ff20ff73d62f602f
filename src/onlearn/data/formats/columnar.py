"""Parquet and Arrow IPC (Feather): tables whose columns have types, read batch by batch."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.data.arrow import in_one_piece
from onlearn.data.bad_rows import Bad, DataError
from onlearn.data.cut_points import windows
from onlearn.data.formats.record_batches import (
    cut,
    is_all_text,
    is_of,
    is_plain,
    longest,
    not_text,
    parts,
    plain,
    with_bytes,
)
from onlearn.data.formats.scanning import keep_rows
from onlearn.data.parts import Groups, Part
from onlearn.data.registry import Apply, Content, Format, Options, Parsed, reader
from onlearn.data.sources import Source, Stream
from onlearn.data.table_roles import Roles, flat, spoil, take_roles, tellable

ROWS = 1 << 15  # of a piece
PIECE = 4  # blocks of text that take as much memory as a piece
DECODED = 16  # and those that take as much as what is decoded of a Parquet file at once
READ = 1 << 22  # bytes that are read at once for a checksum
ARROW_FILE = b"ARROW1"  # begins a file; a stream of record batches begins otherwise


class Piece(NamedTuple):
    """Some rows of the file ``where``."""

    table: Any  # with one chunk a column
    where: str
    all_text: bool  # whether all of its text is UTF-8


class Columnar(Format):
    """The common part of both formats. The line of a row is its number.

    A piece takes at most ``PIECE`` times the memory of a block of text, or is a single row.
    """

    unused_options: ClassVar[Mapping[str, str]] = MappingProxyType({"types": "the columns have types of their own"})

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.roles: Roles | None = None

    def batches(self, stream: Stream) -> Iterator[Any]:
        """The record batches of a file, as they are stored."""
        raise NotImplementedError

    def valid_batches(self, stream: Stream) -> Iterator[tuple[Any, bool]]:
        """The record batches of a file, and whether all of their text is UTF-8."""
        rows = 0
        with refused(stream, lambda: f" from row {rows + 1:,} on" if rows else ""):
            for batch in self.batches(stream):
                yield batch, is_all_text(batch)
                rows += batch.num_rows

    def pieces(self, stream: Stream) -> Iterator[Piece]:
        where = stream.source.name
        for batch, all_text in self.valid_batches(stream):
            with refused(stream):
                table = flat_table(batch, where)
            if self.roles is None:
                self.roles = Roles(self.options, table.column_names, where, self.notes, None)
            for piece in cut(table, ROWS, PIECE * self.options.block_size):
                yield Piece(piece, where, all_text)

    def content(self, stream: Stream, checked: bool = True) -> Content:
        rows, checksum = 0, 0
        for batch, _ in self.valid_batches(stream):
            rows += batch.num_rows
            checksum = zlib.crc32(batch.serialize(), checksum) if checked else 0
        return Content(rows, checksum if stream.checksum is None else stream.checksum)

    def parse(self, piece: Piece) -> Parsed:
        import pyarrow as pa

        names = piece.table.column_names
        columns = [plain_column(column, name, piece.where) for name, column in zip(names, piece.table.columns)]
        table = pa.Table.from_arrays(columns, names)
        assert self.roles is not None
        roles = self.roles.within(names)
        if lacking := [name for name in roles.columns if name not in names]:
            raise DataError(f"{piece.where} lacks the column {lacking[0]!r} that the file before it has")
        parsed = Parsed(table, np.arange(table.num_rows), table.num_rows)
        if not piece.all_text:
            drop_raw_text(parsed)
        table = parsed.rows
        return take_roles(parsed, roles, lambda row: as_text(table.slice(row, 1)))

    def found(self) -> dict[str, Any]:
        return {} if self.roles is None else self.roles.found()

    def decisions(self) -> Any:
        return self.roles

    def resume(self, decisions: Any) -> None:
        self.roles = decisions.with_options(self.options)


@contextmanager
def refused(stream: Stream, place: Callable[[], str] = str) -> Iterator[None]:
    """Raise ``DataError`` for what PyArrow finds wrong with a file; ``place`` says how far it has been read."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        stream.refuse_truncated(error)
        said = str(error).strip().splitlines() or [type(error).__name__]
        what = "a name in it is not UTF-8" if isinstance(error, UnicodeDecodeError) else said[0]
        raise DataError(f"{stream.source.name} cannot be read{place()}: {what}") from error


def flat_table(batch: Any, where: str) -> Any:
    """A record batch as a table with the fields of structs as columns, whose names all differ."""
    import pyarrow as pa

    table = flat(pa.Table.from_batches([batch]))
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"{where}: there are several columns {twice!r}: name them apart")
    return table


def plain_column(column: Any, name: str, where: str) -> Any:
    """A column of a table, written out."""
    import pyarrow as pa

    try:
        return plain(in_one_piece(column))
    except pa.ArrowException as error:
        raise DataError(f"{where}: the column {name!r} cannot be read: {str(error).splitlines()[0]}") from error


def drop_raw_text(parsed: Parsed) -> None:
    """Make rows with text that is not UTF-8 bad ones."""
    spoiled: dict[int, str] = {}
    for name, column in zip(parsed.rows.column_names, parsed.rows.columns):
        spoil(spoiled, not_text(in_one_piece(column)), f"{name!r} is not UTF-8")
    parsed.bad = [Bad(row, 0, reason, as_text(parsed.rows.slice(row, 1))) for row, reason in sorted(spoiled.items())]
    keep_rows(parsed, np.setdiff1d(parsed.lines, list(spoiled)))


def as_text(row: Any) -> bytes:
    """A bad row as text, without values that only pandas could convert."""
    import pyarrow as pa

    shown = [n for n, kind in enumerate(row.schema.types) if not (pa.types.is_nested(kind) and "[ns" in str(kind))]
    names, columns = row.column_names, row.columns
    return repr({names[n]: cell(in_one_piece(columns[n])) for n in shown}).encode()


def cell(values: Any) -> Any:
    """The only value of an array; text that is not UTF-8 as bytes; what Python has no object for as Arrow prints it."""
    import pyarrow as pa

    for same in (tellable, lambda values: values.view(with_bytes(values.type))):
        try:
            return same(values).to_pylist()[0]
        except (ValueError, OverflowError, pa.ArrowException):
            pass
    return " ".join(str(values).split())


def seekable(stream: Stream) -> Any:
    """A file that Arrow can seek in: the file itself if possible, else its bytes.

    It is not mapped into memory, because truncating a mapped file would end the process.
    """
    import pyarrow as pa

    source = stream.source
    if source.path is not None and source.compression is None:
        return pa.OSFile(str(source.path))
    if source.url is not None and source.compression is None:
        return pa.PythonFile(source.opened(), "r")
    return pa.BufferReader(stream.all())


@reader("parquet", extensions=[".parquet", ".pq"])
class Parquet(Columnar):
    def batches(self, stream: Stream) -> Iterator[Any]:
        file = seekable(stream)
        opened = open_parquet(file)
        groups = groups_of(stream.source, opened.num_row_groups)
        count, rows_read = sum(opened.metadata.row_group(n).num_rows for n in groups), 0
        for several, rows in decoded_at_once(file, opened, groups, DECODED * self.options.block_size):
            for batch in opened.iter_batches(batch_size=rows, row_groups=several, use_threads=False):
                rows_read += batch.num_rows
                stream.set_progress(rows_read / count)
                yield batch

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        with refused(stream):
            groups = open_parquet(seekable(stream)).metadata
            sizes = [max(0, groups.row_group(n).total_byte_size) for n in range(groups.num_row_groups)]
        return evenly(sizes, stream.size, count)

    def content(self, stream: Stream, checked: bool = True) -> Content:
        source = stream.source
        if source.compression is not None:
            return super().content(stream, checked)
        rows, checksum = 0, 0
        with refused(stream):
            opened = open_parquet(seekable(stream))
            for n in groups_of(source, opened.num_row_groups):
                rows += opened.metadata.row_group(n).num_rows
                for start, size in column_chunks(opened, n) if checked else ():
                    for _, text in windows(source, start, start + size, READ):
                        checksum = zlib.crc32(text, checksum)
        return Content(rows, checksum)


def open_parquet(file: Any, **options: Any) -> Any:
    """A Parquet file. With pre_buffer, PyArrow would read all of it into memory."""
    from pyarrow import parquet

    return parquet.ParquetFile(file, pre_buffer=False, **options)


def groups_of(source: Source, count: int) -> range:
    """The groups that a source has, of the ``count`` of its file."""
    if source.part is None:
        return range(count)
    if source.part.stop > count:
        groups = f"{count} group{'' if count == 1 else 's'} of rows"
        raise DataError(f"{source.name} has changed since it was cut: it has {groups} now")
    return range(source.part.start, source.part.stop)


def first_row(opened: Any, n: int, columns: list[str] | None = None) -> Any:
    """The first row of some columns of a row group, validated; None if there is none.

    Nothing may ask for the facts about a column chunk before: PyArrow ends the process if they are wrong, but not here.
    """
    row = next(opened.iter_batches(1, [n], columns, use_threads=False), None)
    if row is not None:
        is_all_text(row)
    return row


def column_chunks(opened: Any, n: int) -> Iterator[tuple[int, int]]:
    """Where the columns of a row group begin in the file, and their bytes."""
    if first_row(opened, n) is None:
        return
    group = opened.metadata.row_group(n)
    for chunk in map(group.column, range(group.num_columns)):
        begins = (chunk.dictionary_page_offset, chunk.data_page_offset)
        yield min(place for place in begins if place is not None), chunk.total_compressed_size


def decoded_at_once(file: Any, opened: Any, groups: range, most: int) -> Iterator[tuple[list[int], int]]:
    """Row groups, one after another, and how many rows of these to decode at once, so that they take ``most`` bytes."""
    # PyArrow cannot put dictionaries inside lists together, and each row group has its own.
    alone = not all(is_plain(kind) or is_of(kind, "dictionary") for kind in opened.schema_arrow.types)
    several, rows, count = list[int](), ROWS, 0
    for n, width in zip(groups, row_widths(file, opened, groups)):
        found = 1 << int(np.log2(np.clip(most / max(width, 1.0), 1, ROWS)))
        if several and (alone or found != rows or count >= ROWS):
            yield several, rows
            several, count = [], 0
        several, rows, count = [*several, n], found, count + opened.metadata.row_group(n).num_rows
    if several:
        yield several, rows


def row_widths(file: Any, opened: Any, groups: range) -> Iterator[float]:
    """The bytes that a row of each row group may take once it is decoded.

    Text in data pages takes as much as it takes there. Text in a dictionary may stand in every row, so the longest one
    counts; PyArrow gives the dictionary together with the first row, if it is asked to.
    """
    import pyarrow as pa

    columns = [opened.metadata.schema.column(k) for k in range(opened.metadata.num_columns)]
    widths = [float(max(column.length, 8)) for column in columns]  # of a value
    texts = [k for k, column in enumerate(columns) if column.physical_type == "BYTE_ARRAY"]
    lists = [k for k, column in enumerate(columns) if column.max_repetition_level]
    varying = sorted({*texts, *lists})
    paths = [columns[k].path for k in varying]
    coded = open_parquet(file, read_dictionary=[columns[k].path for k in texts], metadata=opened.metadata)
    for n in groups:
        group = opened.metadata.row_group(n)
        rows, size = max(group.num_rows, 1), float(max(group.total_byte_size, 0))
        row, found = None, list[float]()
        if varying:
            try:
                row = first_row(coded, n, paths)
                found = [] if row is None else list(map(longest, parts(row)))
            except (
                pa.ArrowInvalid
            ):  # of text that is not UTF-8 there is no dictionary: it is no longer than all there is
                row, found = first_row(opened, n, paths), [size] * len(varying)
        if len(found) != len(varying):  # names with dots may stand for several columns
            found = [max(found, default=0.0)] * len(varying)
        longest_of = dict(zip(varying, found))
        values = dict.fromkeys(lists, 0) if row is None else {k: group.column(k).num_values for k in lists}
        yield sum(
            (max(width, longest_of.get(k, 0.0)) * values.get(k, rows) / rows for k, width in enumerate(widths)),
            size / rows,
        )


@reader("arrow", extensions=[".arrow", ".arrows", ".feather", ".ipc"])
class ArrowIpc(Columnar):
    def batches(self, stream: Stream) -> Iterator[Any]:
        import pyarrow as pa

        in_file = stream.head(len(ARROW_FILE)) == ARROW_FILE
        source = seekable(stream)
        if not in_file:
            size = source.size()
            for batch in pa.ipc.open_stream(source):
                stream.set_progress(source.tell() / size)
                yield batch
            return
        opened = pa.ipc.open_file(source)
        groups = groups_of(stream.source, opened.num_record_batches)
        for n in groups:
            stream.set_progress((n + 1 - groups.start) / len(groups))
            yield opened.get_batch(n)

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        import pyarrow as pa

        if stream.head(len(ARROW_FILE)) != ARROW_FILE:
            return []  # a stream, whose record batches cannot be found without reading those before them
        with refused(stream):
            batches = pa.ipc.open_file(seekable(stream)).num_record_batches
        return evenly([1] * batches, stream.size, count)  # their sizes stand beside them


def evenly(sizes: list[int], size: int, count: int) -> list[Groups]:
    """About ``count`` parts of a file with groups of these sizes; each has at least one group.

    >>> [(part.start, part.stop) for part in evenly([5, 5, 20, 5], 3500, 3)]
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return []
    cuts = {int(np.abs(ends - place).argmin()) + 1 for place in (total * n / count for n in range(1, count))}
    edges = [0, *sorted(cuts - {len(sizes)}), len(sizes)]
    return [Groups(start, stop, int(size * (sum(sizes[start:stop]) / total))) for start, stop in pairwise(edges)]

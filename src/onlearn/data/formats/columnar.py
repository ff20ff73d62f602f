"""Parquet and Arrow IPC (Feather): tables whose columns have types, read batch by batch."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.data.arrow import decoded
from onlearn.data.bad_rows import DataError
from onlearn.data.cut_points import windows
from onlearn.data.parts import Groups, Part
from onlearn.data.registry import Apply, Content, Format, Options, Parsed, reader
from onlearn.data.sources import Source, Stream
from onlearn.data.table_roles import Roles, flat, take_roles, tellable

ROWS = 1 << 15
READ = 1 << 22  # bytes that are read at once for a checksum
ARROW_FILE = b"ARROW1"  # begins a file; a stream of record batches begins otherwise


class Piece(NamedTuple):
    """A table of the file ``where``."""

    table: Any  # of one chunk
    where: str


class Columnar(Format):
    """The common part of both formats. The line of a row is its number."""

    unused_options: ClassVar[Mapping[str, str]] = MappingProxyType({"types": "the columns have types of their own"})

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.roles: Roles | None = None

    def batches(self, stream: Stream) -> Iterator[Any]:
        """The record batches of a file."""
        raise NotImplementedError

    def pieces(self, stream: Stream) -> Iterator[Piece]:
        import pyarrow as pa

        where = stream.source.name
        try:
            for batch in self.batches(stream):
                table = flat(pa.Table.from_batches([batch]))
                if self.roles is None:
                    self.roles = Roles(self.options, table.column_names, where, self.notes, None)
                yield Piece(table, where)
        except (pa.ArrowException, OSError) as error:
            stream.refuse_truncated(error)
            what = str(error).strip().splitlines()[0]
            raise DataError(f"{where} cannot be read: {what}") from error

    def content(self, stream: Stream, checked: bool = True) -> Content:
        rows, checksum = 0, 0
        for batch in self.batches(stream):
            rows += batch.num_rows
            checksum = zlib.crc32(batch.serialize(), checksum) if checked else 0
        return Content(rows, checksum if stream.checksum is None else stream.checksum)

    def parse(self, piece: Piece) -> Parsed:
        import pyarrow as pa

        columns = [decoded(column.chunk(0)) for column in piece.table.columns]
        table = pa.Table.from_arrays(columns, piece.table.column_names)
        assert self.roles is not None
        lines = np.arange(table.num_rows)
        roles = self.roles.within(table.column_names)
        if lacking := [name for name in roles.columns if name not in table.column_names]:
            raise DataError(f"{piece.where} lacks the column {lacking[0]!r} that the file before it has")
        return take_roles(Parsed(table, lines, len(lines)), roles, lambda row: as_text(table.slice(row, 1)))

    def found(self) -> dict[str, Any]:
        return {} if self.roles is None else self.roles.found()

    def decisions(self) -> Any:
        return self.roles

    def resume(self, decisions: Any) -> None:
        self.roles = decisions.with_options(self.options)


def as_text(row: Any) -> bytes:
    """A bad row as text, without values that only pandas could convert."""
    import pyarrow as pa

    kinds = [str(kind) for kind in row.schema.types]
    shown = [n for n, kind in enumerate(kinds) if not (pa.types.is_nested(row.schema.types[n]) and "[ns" in kind)]
    columns = {row.column_names[n]: tellable(row.column(n)).to_pylist()[0] for n in shown}
    return repr(columns).encode()


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
        opened, rows_read = open_parquet(stream), 0
        start, stop = groups_of(stream.source, opened.num_row_groups)
        count = sum(opened.metadata.row_group(n).num_rows for n in range(start, stop))
        for batch in opened.iter_batches(batch_size=ROWS, row_groups=list(range(start, stop)), use_threads=False):
            rows_read += batch.num_rows
            stream.set_progress(rows_read / count)
            yield batch

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        groups = open_parquet(stream).metadata
        return evenly([groups.row_group(n).total_byte_size for n in range(groups.num_row_groups)], stream.size, count)

    def content(self, stream: Stream, checked: bool = True) -> Content:
        source = stream.source
        if source.compression is not None:
            return super().content(stream, checked)
        groups = open_parquet(stream).metadata
        start, stop = groups_of(source, groups.num_row_groups)
        rows, checksum = 0, 0
        for n in range(start, stop):
            rows += groups.row_group(n).num_rows
            for start_of_chunk, size in column_chunks(groups.row_group(n)) if checked else ():
                for _, text in windows(source, start_of_chunk, start_of_chunk + size, READ):
                    checksum = zlib.crc32(text, checksum)
        return Content(rows, checksum)


def groups_of(source: Source, count: int) -> tuple[int, int]:
    """The groups that a source has, of the ``count`` of its file."""
    if source.part is None:
        return 0, count
    if source.part.stop > count:
        groups = f"{count} group{'' if count == 1 else 's'} of rows"
        raise DataError(f"{source.name} has changed since it was cut: it has {groups} now")
    return source.part.start, source.part.stop


def column_chunks(group: Any) -> Iterator[tuple[int, int]]:
    """Where the columns of a row group begin in the file, and their bytes."""
    for n in range(group.num_columns):
        chunk = group.column(n)
        begins = (chunk.dictionary_page_offset, chunk.data_page_offset)
        yield min(place for place in begins if place is not None), chunk.total_compressed_size


def open_parquet(stream: Stream) -> Any:
    """The Parquet file of a stream. With pre_buffer, PyArrow would read the whole file into memory."""
    from pyarrow import parquet

    return parquet.ParquetFile(seekable(stream), pre_buffer=False)


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
                yield from slices(batch)
            return
        opened = pa.ipc.open_file(source)
        start, stop = groups_of(stream.source, opened.num_record_batches)
        for n in range(start, stop):
            stream.set_progress((n + 1 - start) / (stop - start))
            yield from slices(opened.get_batch(n))

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        import pyarrow as pa

        if stream.head(len(ARROW_FILE)) != ARROW_FILE:
            return []  # a stream, whose record batches cannot be found without reading those before them
        opened = pa.ipc.open_file(seekable(stream))
        return evenly([1] * opened.num_record_batches, stream.size, count)  # their sizes stand beside them


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


def slices(batch: Any) -> Iterator[Any]:
    """A record batch in parts of at most ``ROWS`` rows."""
    for start in range(0, batch.num_rows, ROWS):
        yield batch.slice(start, ROWS)

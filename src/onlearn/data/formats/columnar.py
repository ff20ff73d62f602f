"""Parquet and Arrow IPC (Feather): tables whose columns have types, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.data.arrow import decoded
from onlearn.data.bad_rows import DataError
from onlearn.data.registry import Format, Options, Parsed, reader
from onlearn.data.sources import Stream
from onlearn.data.table_roles import Roles, flat, take_roles, tellable

ROWS = 1 << 15


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
    return pa.BufferReader(stream.all())


@reader("parquet", extensions=[".parquet", ".pq"])
class Parquet(Columnar):
    def batches(self, stream: Stream) -> Iterator[Any]:
        from pyarrow import parquet

        # With pre_buffer, PyArrow would read the whole file into memory.
        opened, rows_read = parquet.ParquetFile(seekable(stream), pre_buffer=False), 0
        for batch in opened.iter_batches(batch_size=ROWS, use_threads=False):
            rows_read += batch.num_rows
            stream.set_progress(rows_read / opened.metadata.num_rows)
            yield batch


@reader("arrow", extensions=[".arrow", ".arrows", ".feather", ".ipc"])
class ArrowIpc(Columnar):
    def batches(self, stream: Stream) -> Iterator[Any]:
        import pyarrow as pa

        in_file = stream.head(6) == b"ARROW1"
        source = seekable(stream)
        if not in_file:
            size = source.size()
            for batch in pa.ipc.open_stream(source):
                stream.set_progress(source.tell() / size)
                yield from slices(batch)
            return
        opened = pa.ipc.open_file(source)
        for n in range(opened.num_record_batches):
            stream.set_progress((n + 1) / opened.num_record_batches)
            yield from slices(opened.get_batch(n))


def slices(batch: Any) -> Iterator[Any]:
    """A record batch in parts of at most ``ROWS`` rows."""
    for start in range(0, batch.num_rows, ROWS):
        yield batch.slice(start, ROWS)

"""Places where a CSV file can be cut: line breaks that are surely not inside a quoted cell.

A line begins a row unless it is inside a good row of several lines: of bad rows, only the first line is skipped (see
``csv_rows``). If a line were inside a quoted cell, the next quote that is not doubled would close that cell, and only
blanks would stand between it and a delimiter or the end of a line. If other text stands there, or if there is no such
quote within the longest row, the line begins a row. So the text between a place and the next quote says that the file
can be cut there, and no text before it matters.

This proves that a line begins a row, and never that it does not: all the quotes of a file may stand at the ends of
cells, as inches do. Then the rows are read from the last place that is known.

The rows of shards are those of the file. Only the reason why a row is bad may be told in other words, if it is the last
one of a shard and its quote is open.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onlearn.data.blocks import SIZE, Block, blocks
from onlearn.data.cut_points import LARGEST, WINDOW, Bytes, Nearby, line_start, places, windows
from onlearn.data.formats.csv_layout import most_common_width
from onlearn.data.formats.csv_rows import Dialect, Lines, RowScanner, RowTable, find_lines, first_widths
from onlearn.data.parts import Span
from onlearn.data.registry import Apply
from onlearn.data.sources import NEW_LINE, Source, Stream

NEAR = 1 << 20  # bytes after a place in which a quote is looked for first
TRIES = 100  # lines from a place on that are looked at before rows are read
FAR = 8  # times the usual size
READ = 1 << 20  # bytes of a block of rows that are read to find their ends


class Beginning(NamedTuple):
    """What the first rows of a file say about all of them."""

    dialect: Dialect
    width: int
    first_row: bytes  # the first good one, which may name the columns
    stop: int  # where that row ends in the file
    may_be_header: bool  # no bad row stands before it


class RowBlocks:
    """Ends blocks of text with whole rows, for ``blocks``. With width 0, the first rows decide about it.

    If an open quote has made a text far longer than ``usual``, a block has the rows of so many bytes only.
    """

    def __init__(self, dialect: Dialect, width: int = 0, usual: int = SIZE) -> None:
        self.dialect: Dialect = dialect
        self.width: int = width
        self.usual: int = usual
        self.lines: Lines  # of the last block

    def cut(self, text: np.ndarray, stop: int, final: bool, gaps: Sequence[int] = ()) -> int:
        """The end of the last whole row."""
        if not self.after_width(text, stop, final):
            return 0
        most = self.usual if stop > FAR * self.usual else stop
        self.lines, end = find_lines(text, stop, final, self.dialect, self.width, gaps, most)
        return end

    def after_width(self, text: np.ndarray, stop: int, final: bool, gaps: Sequence[int] = ()) -> int:
        """The end of a text whose first rows say how many cells a row has, as the first one with rows does; else 0."""
        if not self.width:
            widths = first_widths(text, stop, final, self.dialect)
            if not widths and not final:
                return 0  # nothing but empty lines so far
            self.width = most_common_width(widths or [1])
        return stop

    def rows(self, block: Block) -> RowTable:
        """The rows of the last block."""
        return RowTable(block.text[: block.stop], self.lines, self.dialect, self.width)


def beginning_of(stream: Stream, dialect: Dialect, block_size: int) -> Beginning | None:
    """What the first block says about a file; None if it has no good rows."""
    cutter = RowBlocks(dialect)
    block = next(blocks(stream, block_size, cutter.after_width, dialect.longest), None)
    if block is None or block.too_long:
        return None
    text, scanner, place = block.text[: block.stop].tobytes(), RowScanner(dialect, cutter.width), 0
    may_be_header = True
    while place < block.stop and (row := scanner.row(text, place, block.stop, False)) is not None:
        place = row.stop
        if row.is_empty(text):
            continue
        raw = text[row.start : row.stop]
        with contextlib.suppress(UnicodeDecodeError):
            raw.decode()
            if not row.wrong:
                return Beginning(dialect, cutter.width, raw, stream.place_in_file(row.stop), may_be_header)
        may_be_header = False
    return None


class Stretch(NamedTuple):
    """Some bytes of a file, up to the beginning of a line, in which a lone quote is looked for."""

    source: Bytes
    start: int
    stop: int
    quote: bytes


def row_starts(source: Source, size: int, count: int, beginning: Beginning, apply: Apply) -> list[int]:
    """The starts of rows near the places that cut a file into ``count`` parts, in ascending order.

    Reads about a megabyte at each place. Where it has no quote, the next one is looked for by ``apply``, in as many
    bytes as a row may have: a file without any quote is searched through once, unless it is very large. If the quotes
    after a place do not tell, the rows from the last cut to this one are read, one block after another.
    """
    wanted = places(size, count)
    limits = [*wanted[1:], size]
    starts = [line_start(source, place, limit) for place, limit in zip(wanted, limits)]
    if not beginning.dialect.quote:
        return [start for start in starts if start is not None]
    quotes = Quotes(source, size, beginning.dialect)
    quotes.look_for([start for start in starts if start is not None], apply)
    cuts: list[int] = []
    for start, limit in zip(starts, limits):
        try:
            cut = quotes.row_start(start, limit)
        except LookupError:
            cut = row_end(source, cuts[-1] if cuts else 0, start or 0, limit, size, beginning)
        if cut is not None:
            cuts.append(cut)
    return cuts


def row_end(source: Source, known: int, start: int, limit: int, size: int, beginning: Beginning) -> int | None:
    """The end of a row between ``start`` and ``limit``, found by reading rows from ``known`` on, where one begins."""
    stream = Stream(source._replace(part=Span(known, size)))
    size_read, step = 0, max(1, min(READ, (limit - known) // 16))
    try:
        cutter = RowBlocks(beginning.dialect, beginning.width)
        for block in blocks(stream, step, cutter.cut, beginning.dialect.longest):
            size_read += block.stop + block.more_bytes
            end = known + stream.place_in_file(size_read)
            if end >= start:
                return end if end < limit else None
    finally:
        stream.close()
    return None


def lone_quote(stretch: Stretch) -> int | None:
    """The place of the first quote that is not doubled; None if there is none."""
    start, size, quote = stretch.start, WINDOW, stretch.quote
    while start < stretch.stop:
        text = stretch.source.between(start, min(start + size, stretch.stop))
        if not text:
            return None
        end = start + len(text)
        if quote in text:
            if end < stretch.stop:
                text = text.rstrip(quote)  # those at the end may go on
            found = text.replace(2 * quote, b"\0\0").find(quote)
            if found >= 0:
                return start + found
        start += len(text)
        size = min(4 * size, LARGEST) + end - start
    return None


class Quotes:
    """The quotes of a file, as far as they say that a line begins a row."""

    def __init__(self, source: Source, size: int, dialect: Dialect) -> None:
        self._source, self._nearby, self._size, self._dialect = source, Nearby(source), size, dialect
        self._without: list[tuple[int, int]] = []  # stretches without a lone quote, in ascending order

    def look_for(self, starts: list[int], apply: Apply) -> None:
        """Look for the quotes that come first after some places; for those that are not near, by ``apply``."""
        distant = [start for start in starts if lone_quote(self._stretch(start, NEAR)) is None]
        stretches = []
        for start, after in zip(distant, [*distant[1:], self._size]):
            stretch = self._stretch(start, self._dialect.longest)
            stretches.append(stretch._replace(stop=min(stretch.stop, after)))
        for stretch, at in zip(stretches, apply(lone_quote, stretches)):
            self._without.append((stretch.start, stretch.stop if at is None else at))

    def row_start(self, start: int | None, limit: int) -> int | None:
        """The first line from ``start`` on that surely begins a row; None if no line before ``limit`` does.

        Raises LookupError if there are lines, and too many of them may be inside a cell.
        """
        for _ in range(TRIES):
            if start is None or start >= limit:
                return None
            closing = self._lone_quote(start)
            if closing is None or not self._may_close(closing):
                return start
            start = line_start(self._nearby, closing + 1, limit)
        raise LookupError

    def _lone_quote(self, start: int) -> int | None:
        at = start
        for first, stop in self._without:
            if first <= at < stop:
                at = stop
        stop = min(start + self._dialect.longest, self._size)
        return None if at >= stop else lone_quote(self._stretch(at, stop - at)._replace(source=self._nearby))

    def _stretch(self, start: int, size: int) -> Stretch:
        """About so many bytes, up to the beginning of a line."""
        stop = line_start(self._source, start + size, self._size) or self._size
        return Stretch(self._source, start, stop, bytes([self._dialect.quote]))

    def _may_close(self, at: int) -> bool:
        """Whether a quote can close a cell: only blanks stand between it and a delimiter or the end of a line."""
        for _, text in windows(self._nearby, at + 1, self._size):
            if rest := text.lstrip(self._dialect.trailing):
                return rest[:1] in (bytes([self._dialect.delimiter]), NEW_LINE)
        return True

"""The rows of CSV text, and the form of the text that ``pyarrow.csv`` reads by the rules of this reader.

The rules: a cell is quoted if its first byte after blanks is the quote; a quote inside a quoted cell is written twice;
line breaks inside belong to the cell. Blanks around cells, but not inside quotes, are no part of them. If a row spans
several lines and has the wrong number of cells, its quote is assumed to be a mistake: its first line is a bad row, and
the next row begins with its second line. So it is if a quote is not closed within the length that a line may have, from
the beginning of its row on. A row with a line that was left out for its length is left out, too.

Most lines are plain: each is one row, and PyArrow's rules agree with these. NumPy finds the lines that may not be
plain, and ``RowScanner`` examines them byte by byte. Bad rows are removed from the text. A row with a carriage return
in the middle of a cell, where PyArrow would end the line, is written again with every cell in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.plain_text import BOM
from onlearn.data.sources import LONGEST

QUOTE = ord('"')
NEWLINE, RETURN, TAB, SPACE = 10, 13, 9, 32
BLANKS = b" \r\n\t"
# What is wrong with a row: nothing, its number of cells, an open quote, text after a closing quote, a line left out.
FINE, WIDTH, OPEN, AFTER, GAP = range(5)
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
STEP = 1 << 12  # bytes between two tests whether to stop
PLAIN = 1 << 16  # bytes of a row that is matched by a pattern, which would go through the whole text for an open quote
SAMPLE_ROWS = 100  # rows that decide how many cells a row has


class Dialect(NamedTuple):
    """How the cells of a file are separated and quoted."""

    delimiter: int
    quote: int  # 0: none
    longest: int = LONGEST  # bytes of a row up to its last closing quote, so that an open one does not take in the file

    @property
    def usual(self) -> bool:
        """Whether PyArrow supports the delimiter."""
        return self.delimiter != self.quote and (self.delimiter >= SPACE or self.delimiter == TAB)

    @property
    def leading(self) -> bytes:
        """The blanks before a cell that are no part of it. If spaces separate cells, several count as one delimiter."""
        return b" " if self.delimiter == TAB else b" \t"

    @property
    def trailing(self) -> bytes:
        """The blanks after a cell that are no part of it."""
        return b" \r\t".replace(bytes([self.delimiter]), b"")


class Row(NamedTuple):
    """A row that was examined byte by byte. The next row begins at ``stop``, also after a bad one."""

    start: int
    stop: int
    width: int  # the number of cells, without one whose quote is never closed
    wrong: int  # FINE, WIDTH, OPEN, AFTER or GAP
    cells: list[tuple[int, int, bool]]  # start, stop, whether the cell is quoted
    several_lines: bool
    lone_return: bool = False  # a carriage return outside quotes is not at the end of the line

    def is_empty(self, text: bytes) -> bool:
        return self.width == 1 and self.wrong != OPEN and not text[self.start : self.stop].strip(BLANKS)


class RowScanner:
    """Cuts one row at a time, byte by byte. With width 0, a row may have any number of cells."""

    delimiter: bytes
    quote: int
    width: int
    leading: bytes
    trailing: bytes
    longest: int

    def __init__(self, dialect: Dialect, width: int) -> None:
        self.delimiter, self.quote, self.width = bytes([dialect.delimiter]), dialect.quote, width
        self.leading, self.trailing, self.longest = dialect.leading, dialect.trailing, dialect.longest
        self._plain: re.Pattern[bytes] | None = None
        if width and dialect.usual and dialect.quote and dialect.delimiter != SPACE:
            mark, edge = re.escape(bytes([dialect.quote])), re.escape(self.delimiter)
            lead, trail = re.escape(self.leading), re.escape(self.trailing)
            quoted = mark + b"[^%b]*(?:%b%b[^%b]*)*%b[%b]*" % (mark, mark, mark, mark, mark, trail)
            cell = b"[%b]*(?![%b])(?:%b|[^%b%b\\n]*)" % (lead, lead, quoted, mark, edge)
            self._plain = re.compile(cell + b"(?:%b%b){%d}\\n" % (edge, cell, width - 1))

    def plain_row(self, text: bytes, start: int, stop: int) -> Row | None:
        """The row, if it is good, has quotes only around cells, and returns only at line ends; else None.

        This is what ``row`` finds, but faster, and without the list of cells.
        """
        most = min(self.longest, PLAIN)
        found = None if self._plain is None else self._plain.match(text, start, min(stop, start + most))
        if found is None:
            return None
        end = found.end()
        if text.count(b"\r", start, end) > text.endswith(b"\r\n", start, end):
            return None
        return Row(start, end, self.width, FINE, [], text.find(b"\n", start, end) + 1 < end)

    def row(self, text: bytes, start: int, stop: int, final: bool = True) -> Row | None:
        """The row that begins at ``start``; None if it continues after ``stop`` in text that is not read yet."""
        cells: list[tuple[int, int, bool]] = []
        p, second, wrong = start, 0, FINE  # second: where the second line of the row begins
        limit = min(stop, start + self.longest)
        while True:
            while p < stop and text[p] in self.leading:
                p += 1
            first, quoted = p, bool(self.quote) and p < stop and text[p] == self.quote
            if quoted:
                first += 1
                last = self._closing(text, first, limit)
                second = second or text.find(b"\n", first, stop if last < 0 else last) + 1
                if last < 0:
                    wrong = OPEN
                    break
                p = last + 1
                while p < stop and text[p] in self.trailing:
                    p += 1
            line_end = text.find(b"\n", p, stop)
            end = text.find(self.delimiter, p, stop if line_end < 0 else line_end)
            end = end if end >= 0 else line_end if line_end >= 0 else stop
            if quoted:
                wrong = AFTER if p < end else wrong
            else:
                last = end
                while last > first and text[last - 1] in self.trailing:
                    last -= 1
            cells.append((first, last, quoted))
            p = end + 1
            if end in (line_end, stop):
                break
        undecided = p > stop if wrong != OPEN else limit == stop or not second
        if undecided and not final:
            return None
        p = stop if wrong == OPEN else min(p, stop)
        if wrong == FINE and self.width and len(cells) != self.width:
            wrong = WIDTH
        p = second if wrong and second else p
        returns = text.count(b"\r", start, p)
        if returns and not wrong:
            returns -= sum(text.count(b"\r", first, last) for first, last, quoted in cells if quoted)
            returns -= text.endswith(b"\r\n", start, p)
        return Row(start, p, len(cells), wrong, cells, bool(second), returns > 0)

    def _closing(self, text: bytes, p: int, stop: int) -> int:
        """The place of the quote that closes a cell, or -1."""
        mark = bytes([self.quote])
        while (p := text.find(mark, p, stop)) >= 0 and p + 1 < stop and text[p + 1] == self.quote:
            p += 2
        return p

    def values(self, text: bytes, row: Row) -> list[bytes]:
        """The values of the cells of a row; doubled quotes become single ones."""
        mark = bytes([self.quote])
        return [
            text[first:last].replace(mark + mark, mark) if quoted else text[first:last]
            for first, last, quoted in row.cells
        ]


class Lines(NamedTuple):
    """The lines of a block, and those rows that are not one plain line each."""

    ends: np.ndarray  # the places of the line breaks
    odd: list[Row]
    quotes: np.ndarray  # the places of quotes around cells of good rows: opening and closing ones in turn


def find_lines(
    text: np.ndarray, stop: int, final: bool, dialect: Dialect, width: int, gaps: Sequence[int], most: int
) -> tuple[Lines, int]:
    """Find the lines of ``text[:stop]``, and the end of its last complete row. ``gaps``: lines that were left out.

    If there are rows in the first ``most`` bytes, only these; else the first row.
    """
    ends = np.flatnonzero(text[:most] == NEWLINE)
    if not len(ends):
        if most < stop:
            return find_lines(text, stop, final, dialect, width, gaps, stop)
        return Lines(ends, [], ends), 0
    end = int(ends[-1]) + 1
    quotes = np.flatnonzero(text[:end] == dialect.quote) if dialect.quote else ends[:0]
    lines, around = odd_lines(text[:end], ends, quotes, dialect)
    odd: list[Row] = []
    if len(lines):
        examined: list[Row] = []
        raw, scanner, p = text[:stop].tobytes(), RowScanner(dialect, width), 0
        for start in np.concatenate([np.zeros(1, dtype=np.int64), ends + 1])[lines].tolist():
            if start < p:
                continue
            row = scanner.plain_row(raw, start, stop) or scanner.row(raw, start, stop, final)
            if row is None or row.stop > end:
                if row is not None and not start and most < row.stop:
                    return find_lines(text, stop, final, dialect, width, gaps, row.stop)
                end = start
                break
            if not row.wrong and row.several_lines and any(row.start < gap < row.stop for gap in gaps):
                row = row._replace(wrong=GAP)
            p = row.stop
            examined.append(row)
            if row.wrong or row.several_lines or row.lone_return or not dialect.usual:
                odd.append(row)
        mark_quotes(quotes, around, examined)
    last_quotes = np.searchsorted(quotes, end)
    return Lines(ends[: np.searchsorted(ends, end)], odd, quotes[:last_quotes][around[:last_quotes]]), end


def mark_quotes(quotes: np.ndarray, around: np.ndarray, rows: list[Row]) -> None:
    """Set in ``around`` which quotes enclose cells, for the good ones among some rows."""
    rows = [row for row in rows if not row.wrong]
    bounds = np.searchsorted(quotes, [[row.start, row.stop] for row in rows]).tolist()
    edges: list[int] = []
    for row, (first, last) in zip(rows, bounds):
        around[first:last] = not row.cells  # a plain row lists no cells, and all of its quotes enclose cells
        for start, stop, quoted in row.cells:
            if quoted:
                edges += (start - 1, stop)
    around[np.searchsorted(quotes, edges)] = True


def first_widths(text: np.ndarray, stop: int, final: bool, dialect: Dialect) -> list[int]:
    """The numbers of cells of the first rows."""
    raw, scanner, p = text[:stop].tobytes(), RowScanner(dialect, 0), 0
    widths: list[int] = []
    while p < stop and len(widths) < SAMPLE_ROWS:
        end = raw.find(b"\n", p, stop) + 1
        if end and dialect.usual and dialect.delimiter != SPACE and raw.find(dialect.quote or NEWLINE, p, end - 1) < 0:
            width = raw.count(dialect.delimiter, p, end) + 1  # no cell is quoted, so only delimiters matter
            if width > 1 or raw[p:end].strip(BLANKS):
                widths.append(width)
            p = end
            continue
        if (row := scanner.row(raw, p, stop, final)) is None:
            break
        if row.width and not row.is_empty(raw):
            widths.append(row.width)
        p = row.stop
    return widths


def odd_lines(
    text: np.ndarray, ends: np.ndarray, quotes: np.ndarray, dialect: Dialect
) -> tuple[np.ndarray, np.ndarray]:
    """The lines that may not be plain, if a row begins with them, and the quotes around cells in the other lines.

    ``text`` ends with a line break. Lines are given by number, quotes by a mask of ``quotes``.
    """
    around = np.zeros(len(quotes), dtype=bool)
    if not dialect.usual:
        return np.arange(len(ends)), around
    odd = np.zeros(len(ends), dtype=bool)
    returns = np.flatnonzero(text == RETURN)
    odd[np.searchsorted(ends, returns[text[returns + 1] != NEWLINE])] = True  # PyArrow ends a line there
    if not len(quotes):
        return np.flatnonzero(odd), around
    # Quotes at the edges of cells open and close them in turn; a doubled quote closes a cell and opens it again. Other
    # quotes are text, if no cell is open.
    before, after = text[quotes - 1] == dialect.quote, text[quotes + 1] == dialect.quote
    begins = at_edge(text, quotes - 1, dialect, dialect.leading, -1)
    finishes = at_edge(text, quotes + 1, dialect, dialect.trailing, 1)
    at_edges = begins | finishes | before | after
    last_quotes = np.searchsorted(quotes, ends)  # the number of quotes before the end of each line
    counts = np.diff(last_quotes, prepend=0)
    passed = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(at_edges)])
    edges_before = passed[:-1] - np.repeat(passed[last_quotes - counts], counts)  # within the line
    is_open = edges_before % 2 == 1
    right = np.where(at_edges, np.where(is_open, finishes | after, begins | before), ~is_open)
    some = np.flatnonzero(counts)
    firsts = (last_quotes - counts)[some]
    opened = np.zeros(len(ends), dtype=bool)
    opened[some] = np.logical_or.reduceat(begins, firsts)  # if no quote opens a cell, all quotes of the line are text
    even = (passed[last_quotes] - passed[last_quotes - counts])[some] % 2 == 0
    odd[some] |= opened[some] & ~(np.logical_and.reduceat(right, firsts) & even)
    return np.flatnonzero(odd), at_edges & np.repeat(opened & ~odd, counts)


def at_edge(text: np.ndarray, at: np.ndarray, dialect: Dialect, blanks: bytes, step: int) -> np.ndarray:
    """Whether only blanks are between some places and the edge of a cell, in the direction of ``step``.

    Place -1 is the line break at the end of the text, which also stands for the beginning of the text.
    """
    edge = byte_set(bytes([dialect.delimiter, NEWLINE]))
    skipped = byte_set(blanks) & ~edge
    found = text[at]
    moving = np.flatnonzero(skipped[found])
    at = at[moving]
    while len(moving):
        at = at + step
        found[moving] = text[at]
        still = skipped[found[moving]]
        moving, at = moving[still], at[still]
    return edge[found]


def byte_set(values: bytes) -> np.ndarray:
    """A table that says for each byte whether it is one of some values."""
    table = np.zeros(256, dtype=bool)
    table[list(values)] = True
    return table


@compiled
def has_blanks(text: Any, first: Any, second: Any) -> Any:
    """Whether there is a byte ``first`` or ``second``. The inner loop has no exit, so it is vectorised."""
    start, found = 0, False
    while start < len(text) and not found:
        for c in text[start : start + STEP]:
            found |= (c == first) | (c == second)
        start += STEP
    return found


@compiled
def strip_cells(text: Any, quotes: Any, leading: Any, trailing: Any, edge: Any, out: Any) -> Any:
    """Copy a text without the blanks around its cells; returns the number of bytes written.

    ``quotes`` are the places of opening and closing quotes in turn; ``leading``, ``trailing`` and ``edge`` say for each
    byte whether it is a blank before a cell, a blank after one, or the end of one.
    """
    p, stop, written, cell_end, quoted = ZERO, np.uint64(len(text)), ZERO, ZERO, ZERO
    opening, closing = next_quotes(quotes, quoted, stop)
    at_start = True
    while p < stop:
        if p == opening:
            while p <= closing:
                out[written] = text[p]
                written += ONE
                p += ONE
            quoted += TWO
            opening, closing = next_quotes(quotes, quoted, stop)
            cell_end, at_start = written, False
            continue
        c = text[p]
        p += ONE
        if at_start and leading[c]:
            continue
        if edge[c]:
            written = cell_end
        out[written] = c
        written += ONE
        at_start = edge[c]
        if at_start or not trailing[c]:
            cell_end = written
    return np.int64(written)


@compiled
def next_quotes(quotes: Any, n: Any, stop: Any) -> Any:
    """The places of the quotes around the next cell, or ``stop``."""
    if n >= np.uint64(len(quotes)):
        return stop, stop
    return np.uint64(quotes[n]), np.uint64(quotes[n + ONE])


class CleanText(NamedTuple):
    """Text for PyArrow, and options for reading it."""

    text: Any  # bytes, or an array of them
    delimiter: str
    quote: str | bool
    several_lines: bool  # cells may contain line breaks
    longest_row: int  # bytes, before rows are written again
    padded: bool  # quoted cells may begin or end with blanks, which PyArrow would ignore in numbers


class RowTable:
    """The rows of a block that are not known to be bad: their starts, stops and lines."""

    text: np.ndarray
    quotes: np.ndarray
    odd: list[Row]
    dialect: Dialect
    scanner: RowScanner
    width: int
    line_count: int
    stops: np.ndarray
    starts: np.ndarray
    lines: np.ndarray

    def __init__(self, text: np.ndarray, lines: Lines, dialect: Dialect, width: int) -> None:
        self.text, self.quotes, self.odd, self.dialect = text, lines.quotes, lines.odd, dialect
        self.scanner, self.width, self.line_count = RowScanner(dialect, width), width, len(lines.ends)
        self.stops = lines.ends + 1
        self.starts = np.concatenate([np.zeros(1, dtype=np.int64), self.stops])[: len(self.stops)]
        self.lines = np.arange(len(self.starts))
        self.bad: list[tuple[int, Row]] = []  # with their lines
        self._raw: bytes | None = None
        self._has_blanks = bool(has_blanks(text, SPACE, SPACE if dialect.delimiter == TAB else TAB))
        kept = ~self._empty_lines()
        firsts = np.searchsorted(self.starts, [row.start for row in self.odd])
        nexts = np.searchsorted(self.starts, [row.stop for row in self.odd])
        for row, first, after in zip(self.odd, firsts.tolist(), nexts.tolist()):
            kept[first:after] = False
            if not row.is_empty(self.raw):
                if row.wrong == GAP:
                    continue  # the line that was left out is reported
                if row.wrong:
                    self.bad.append((first, row))
                else:
                    kept[first], self.stops[first] = True, row.stop
        self._dropped: list[tuple[int, int]] = []
        self.keep(kept, drop=False)

    @property
    def raw(self) -> bytes:
        if self._raw is None:
            self._raw = self.text.tobytes()
        return self._raw

    def __len__(self) -> int:
        return len(self.starts)

    def _empty_lines(self) -> np.ndarray:
        sizes = self.stops - self.starts
        empty = (sizes == 1) | ((sizes == 2) & (self.text[self.starts] == RETURN))
        if self._has_blanks:
            blanks = self.dialect.leading + self.dialect.trailing
            ends_blank = (
                byte_set(self.dialect.leading)[self.text[self.starts]] & byte_set(blanks)[self.text[self.stops - 2]]
            )
            for line in np.flatnonzero(ends_blank & (sizes > 1)).tolist():
                empty[line] = not self.text[self.starts[line] : self.stops[line] - 1].tobytes().strip(blanks)
        return empty

    def keep(self, kept: np.ndarray, drop: bool = True) -> None:
        """Remove all other rows, by default also from the text."""
        if drop:
            self._dropped += zip(self.starts[~kept].tolist(), self.stops[~kept].tolist())
        self.starts, self.stops, self.lines = self.starts[kept], self.stops[kept], self.lines[kept]

    def bytes_of(self, row: int) -> bytes:
        """The text of a row."""
        return self.text[self.starts[row] : self.stops[row]].tobytes()

    def scan(self, row: int) -> Row:
        """Cut a row byte by byte."""
        found = self.scanner.row(self.raw, int(self.starts[row]), int(self.stops[row]))
        assert found is not None
        return found

    def clean(self) -> CleanText | None:
        """The rows as text for PyArrow; None if every character that could enclose cells is in use."""
        mark, padded = self.dialect.quote, False
        if len(self.quotes):
            edges = self.text[np.concatenate([self.quotes[::2] + 1, self.quotes[1::2] - 1])]
            padded = bool(((edges == SPACE) | (edges == TAB)).any())
        new: list[tuple[int, int, bytes]] = [(start, stop, b"") for start, stop in self._dropped]
        gone = {start for start, _ in self._dropped}
        if self.odd and not mark:
            used = np.bincount(self.text, minlength=SPACE)
            mark = next((sign for sign in range(1, TAB) if not used[sign]), 0)
            if not mark:
                return None
        delimiter, quote = bytes([self.dialect.delimiter]) if self.dialect.usual else b",", bytes([mark])
        several = False
        for row in self.odd:
            if row.start in gone:
                continue
            if row.wrong or row.is_empty(self.raw):
                new.append((row.start, row.stop, b""))
                continue
            several |= row.several_lines
            if not self.dialect.usual or row.lone_return:
                cells = [cell.replace(quote, quote + quote) for cell in self.scanner.values(self.raw, row)]
                new.append((row.start, row.stop, quote + (quote + delimiter + quote).join(cells) + quote + b"\n"))
                padded |= any(cell != cell.strip(b" \t") for cell in cells)
        text = self._joined(sorted(new))
        if bytes(text[: len(BOM)]) == BOM:
            text = b"\n" + bytes(text)  # PyArrow would skip a byte order mark at the start
        longest = int((self.stops - self.starts).max(initial=0))
        return CleanText(text, delimiter.decode(), quote.decode() if mark else False, several, longest, padded)

    def _joined(self, new: list[tuple[int, int, bytes]]) -> Any:
        """The text without blanks around cells, with some parts replaced: (start, stop, new text)."""
        if not new:
            return self._stripped(0, len(self.text))
        parts: list[Any] = []
        p = 0
        for start, stop, written in [*new, (len(self.text), len(self.text), b"")]:
            parts += [self._stripped(p, start), written]
            p = stop
        return b"".join(parts)

    def _stripped(self, start: int, stop: int) -> np.ndarray:
        """Some rows without blanks around cells."""
        text = self.text[start:stop]
        if not self._has_blanks or not len(text):
            return text
        first, last = np.searchsorted(self.quotes, [start, stop])
        out = np.empty_like(text)
        edge = byte_set(bytes([self.dialect.delimiter, NEWLINE]))
        leading, trailing = byte_set(self.dialect.leading), byte_set(self.dialect.trailing)
        return out[: strip_cells(text, self.quotes[first:last] - start, leading, trailing, edge, out)]

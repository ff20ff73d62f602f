"""Blocks: a stream as pieces of whole rows, in which rows that are too long are left out.

A row is a line, but for CoNLL, where it is a sentence, and for CSV, where quoted cells may have several lines. A line
(of CoNLL, a sentence) that is longer than allowed becomes empty lines, which all formats skip: the numbers of lines
stay right, and memory constant, however long the line is. Its place and beginning are kept for the report of bad rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.byte_sizes import size_text
from onlearn.data.bad_rows import Bad
from onlearn.data.plain_text import NEWLINE
from onlearn.data.sources import LONGEST, Stream

SIZE = 4 << 20  # of a block
LARGEST = 16 << 20  # of a block that would have only few rows otherwise: columns cost time, however few rows they have
FEW = 32  # rows
PADDING = 64  # newlines after the content of a block, which parsers may read without a check
KEPT = 1 << 10  # bytes of a row that is too long
RETURNS = re.compile(rb"\r+\n")
BLANK = np.isin(np.arange(256), list(b" \t\n\r\v\f"))


class Block(NamedTuple):
    """Whole lines of a text, with padding."""

    text: np.ndarray  # uint8, followed by PADDING newlines
    stop: int  # the end of the content, whose last byte is a newline
    too_long: Sequence[Bad] = ()  # rows that were left out; lines are counted from 0 in the block
    more_lines: int = 0  # of the file, after those of the text
    more_bytes: int = 0  # of the file than of the text, which has been shortened


Cut = Callable[[np.ndarray, int, bool, Sequence[int]], int]  # ``gaps`` are the places where rows were left out
Ends = Callable[[np.ndarray], np.ndarray]


def last_line_end(text: np.ndarray, stop: int, final: bool, gaps: Sequence[int] = ()) -> int:
    """The end of the last complete line; 0 if there is none."""
    window = 1 << 12
    while stop > 0:
        start = max(0, stop - window)
        found = np.flatnonzero(text[start:stop] == NEWLINE)
        if found.size:
            return start + int(found[-1]) + 1
        stop, window = start, window * 4
    return 0


def line_ends(text: np.ndarray) -> np.ndarray:
    """Where lines end, after their newlines."""
    return np.flatnonzero(text == NEWLINE) + 1


def blank_line_ends(text: np.ndarray) -> np.ndarray:
    """Where blank lines end, after their newlines."""
    ends = line_ends(text)
    before = np.searchsorted(np.flatnonzero(~BLANK[text]), ends)  # bytes of words before each end
    return ends[np.diff(before, prepend=0) == 0]


def blocks(
    stream: Stream,
    size: int = SIZE,
    cut: Cut = last_line_end,
    longest: int = LONGEST,
    row_ends: Ends = line_ends,
) -> Iterator[Block]:
    """Cut a stream into blocks of about ``size`` bytes that end with a row; a longer row makes a longer block.

    Only the bytes after the last row are copied. ``cut`` gives the place where a block ends, which may be long before
    the last row if a text has become long for what then is no row, such as one with an open quote in CSV. What stands
    between two of the ``row_ends`` is left out if it has more than ``longest`` bytes.
    """
    stream.begin_text()
    rest = np.empty(0, dtype=np.uint8)
    shortened = Shortened(stream, longest, row_ends)
    while True:
        room = max(size, min(2 * len(rest), max(len(rest), longest) + size))
        text = np.empty(room + PADDING, dtype=np.uint8)
        text[: len(rest)] = rest
        stop = full = len(rest) + stream.fill(text[len(rest) : room])
        more_lines = 0  # whose text is skipped
        if stop > longest:
            stop, more_lines = shortened.shorten(text, stop)
        final = stream.ended
        if final and stop and text[stop - 1] != NEWLINE:
            text[stop] = NEWLINE  # in the padding
            stop += 1
        last = final or more_lines > 0  # the text ends with a row
        while True:
            end = cut(text, stop, last, shortened.places)
            if last and not end:
                end = stop
            again = 0 < end < stop and (last or stop - end > size)  # a row that was too long has left many others
            rest = text[end:stop] if again else text[end:stop].copy()
            if end:
                too_long, more_bytes = shortened.taken(text, end)
                block = text[: end + PADDING].copy() if again else text[: end + PADDING]
                block[end:] = NEWLINE
                yield Block(block, end, too_long, 0 if again else more_lines, more_bytes)
            if not again:
                break
            text, stop = text[end:], stop - end
        if final:
            return
        if full == room and SIZE <= size < LARGEST and not (text[: size // FEW] == NEWLINE).any():
            size *= 2


class Gap(NamedTuple):
    """What was left out of a text."""

    place: int  # of the first of the empty lines that stand for it
    start: bytes  # its beginning
    size: int  # bytes, without those of the empty lines


class Shortened:
    """Leaves out of a text the rows that are too long."""

    def __init__(self, stream: Stream, longest: int, row_ends: Ends) -> None:
        self._stream, self._longest, self._row_ends = stream, longest, row_ends
        self._reason = f"it is longer than {size_text(longest)}: say max_line= to allow more"
        self._gaps: list[Gap] = []  # since the end of the last block

    @property
    def places(self) -> list[int]:
        """Where something was left out."""
        return [gap.place for gap in self._gaps]

    def shorten(self, text: np.ndarray, stop: int) -> tuple[int, int]:
        """Shorten ``text[:stop]``, and skip the rest of its last row if it is too long already.

        Returns the new end, and the number of lines that are missing there, after which the block must end.
        """
        # A row that is too long has all bytes between these places, and so no end there.
        most = self._longest
        if len(self._row_ends(text[max(stop - most, most - SIZE, 0) : most])) > 1:  # the first may be within a line
            return stop, 0
        edges = np.append(np.zeros(1, np.int64), self._row_ends(text[:stop]))
        sizes = np.diff(edges, append=stop)
        sizes[:-1] -= 1  # the newline is no part of a row; the last one has not ended
        end, kept, missing = 0, 0, 0
        for n in np.flatnonzero(sizes > self._longest).tolist():
            start, past = int(edges[n]), int(edges[n + 1]) if n + 1 < len(edges) else stop
            text[end : end + start - kept] = text[kept:start].copy()
            end += start - kept
            beginning = text[start : start + min(KEPT, self._longest)].tobytes().partition(b"\n")[0]
            lines, size, kept = int(np.count_nonzero(text[start:past] == NEWLINE)), past - start, past
            if n + 1 == len(edges):
                lines, size = self._skip(text[start:past])
                lines, missing = 1, lines - 1
            text[end : end + lines] = NEWLINE
            self._gaps.append(Gap(end, beginning, size - lines))
            end += lines
        if kept:
            text[end : end + stop - kept] = text[kept:stop].copy()
        return end + stop - kept, missing

    def _skip(self, begun: np.ndarray) -> tuple[int, int]:
        """Skip the rest of a row that has ``begun``; returns the number of its lines and of its bytes."""
        line, lines, size = begun, 0, 0
        while True:
            last_line = last_line_end(line, len(line), False)
            lines, size = lines + int(np.count_nonzero(line == NEWLINE)), size + len(line)
            # One byte of the line that has begun says whether it is blank.
            words = line[last_line:]
            carried = words[~BLANK[words]][:1] if (~BLANK[words]).any() else words[:1]
            window = np.empty(SIZE, dtype=np.uint8)
            count = self._stream.fill(window)
            if not count:
                return lines + len(carried), size
            line = np.concatenate([carried, window[:count]])
            size -= len(carried)
            ends = self._row_ends(line)
            if len(ends):
                end = int(ends[0])
                self._stream.unread(line[end:].tobytes())
                return lines + int(np.count_nonzero(line[:end] == NEWLINE)), size + end

    def taken(self, text: np.ndarray, end: int) -> tuple[list[Bad], int]:
        """The rows that are missing in ``text[:end]``, and their bytes; only the others are kept."""
        gaps = [gap for gap in self._gaps if gap.place < end]
        self._gaps = [gap._replace(place=gap.place - end) for gap in self._gaps if gap.place >= end]
        line, at, bad = 0, 0, []
        for gap in gaps:
            line += int(np.count_nonzero(text[at : gap.place] == NEWLINE))
            at = gap.place
            bad.append(Bad(line, 0, self._reason, gap.start))
        return bad, sum(gap.size for gap in gaps)


def further_bad(text: np.ndarray, line: int, starts: np.ndarray, stops: np.ndarray) -> list[Bad]:
    """The bad rows between some places, each with its newline, as one; ``line`` is the number of the first."""
    raw = text[inside(len(text), starts, stops)].tobytes()
    return [Bad(line, 0, "there are many bad rows before it", RETURNS.sub(b"\n", raw)[:-1], len(starts))]


def inside(size: int, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Which bytes of a text are in one of some stretches, that do not overlap."""
    edges = np.zeros(size + 1, dtype=np.int8)
    edges[starts] = 1
    edges[stops] -= 1  # where one ends, the next may begin
    return np.cumsum(edges[:-1], dtype=np.int8).view(bool)


def raw_line(text: Any, start: int, stop: int) -> bytes:
    """The line that begins at ``start``."""
    end = int(start)
    window = 256
    while end < stop:
        found = np.flatnonzero(text[end : min(end + window, stop)] == NEWLINE)
        if found.size:
            return text[start : end + int(found[0])].tobytes()
        end, window = end + window, window * 4
    return text[start:stop].tobytes()

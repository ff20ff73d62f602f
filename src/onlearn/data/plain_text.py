"""What stands in text files and is no text: byte order marks, the line ends of old Macs, the end mark of DOS, UTF-16.

A ``Stream`` of text deals with them once for all formats, before its text is cut into blocks of lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Protocol

import numpy as np

BOM = b"\xef\xbb\xbf"
MARKS = re.compile(b"^(?:" + BOM + b")+", re.MULTILINE)  # at the starts of lines
STEP = 1 << 15  # bytes of a text that are compared at once: the results stay in the processor's cache
NEWLINE, RETURN = 10, 13
END_MARK = b"\x1a"  # Ctrl-Z, with which DOS ended some files
SECTOR = 1 << 10  # end marks at most: more are no end


def line_end_in(head: bytes) -> int:
    """The byte that ends the lines of a text with this beginning: a carriage return if there is no newline.

    >>> line_end_in(b"one\\rtwo\\r") == RETURN, line_end_in(b"one\\r\\ntwo\\r\\n") == NEWLINE
    (True, True)
    """
    return RETURN if b"\r" in head and b"\n" not in head else NEWLINE


def lines_of(head: bytes) -> list[bytes]:
    """The lines of the beginning of a text, without byte order marks.

    >>> lines_of(BOM + b"one\\rtwo\\r" + BOM + b"three")
    [b'one', b'two', b'three']
    """
    if line_end_in(head) == RETURN:
        head = head.replace(b"\r", b"\n")
    return (MARKS.sub(b"", head) if BOM in head else head).splitlines()


def is_utf16(start: bytes) -> bool:
    """Whether a file that begins with these four bytes is UTF-16 (or UTF-32, whose mark begins alike).

    Without a byte order mark, every other byte of Western text is 0.

    >>> is_utf16("1 1:2".encode("utf-16")[:4]), is_utf16("1 1:2".encode("utf-16-be")[:4]), is_utf16(b"1 1:")
    (True, True, False)
    """
    empty = [not byte for byte in start]
    return start[:2] in (b"\xff\xfe", b"\xfe\xff") or empty in ([True, False] * 2, [False, True] * 2)


class Peeked(Protocol):
    """A stream whose next bytes can be looked at, and be skipped."""

    def head(self, size: int) -> bytes: ...

    def skip(self, count: int) -> None: ...


class PlainText:
    """Makes plain text of the bytes of a stream as they are read: of line ends, and without marks."""

    def __init__(self, stream: Peeked, line_end: int) -> None:
        self._stream, self._line_end = stream, line_end
        self._last = NEWLINE
        self._size = 0
        self._marks: list[int] = []  # where one was dropped, in the text without them

    def clean(self, text: np.ndarray) -> int:
        """Clean the next bytes, in place; returns how many are left. Marks that follow are skipped in the stream."""
        if self._line_end == RETURN:
            text[text == RETURN] = NEWLINE
        size = self._without_marks(text)
        size = self._without_cut_marks(text, size)
        size = self._without_end(text, size)
        if size:
            self._last = int(text[size - 1])
        self._size += size
        return size

    def give_back(self, size: int) -> None:
        """Go back by so many bytes, to the start of a line: they will be cleaned again."""
        self._size, self._last = self._size - size, NEWLINE

    def place_in_stream(self, place: int) -> int:
        """Where a place of the text is in the stream: before a mark that was dropped there."""
        return place + len(BOM) * bisect_left(self._marks, place)

    def _without_marks(self, text: np.ndarray) -> int:
        """Drop the marks at the starts of lines."""
        starts = marked_starts(text, self._last == NEWLINE)
        if not len(starts):
            return len(text)
        found = np.flatnonzero(text[: len(text) - len(BOM) + 1] == BOM[0])
        found = found[is_mark(text, found)]
        begins_run = np.diff(found, prepend=-len(BOM) - 1) != len(BOM)  # one after another: of files without text
        run_at_start = np.isin(found[begins_run], starts)
        found = found[run_at_start[np.cumsum(begins_run) - 1]]
        kept = np.ones(len(text), dtype=bool)
        for n in range(len(BOM)):
            kept[found + n] = False
        rest = text[kept]
        text[: len(rest)] = rest
        self._marks += (self._size + found - len(BOM) * np.arange(len(found))).tolist()
        return len(rest)

    def _without_cut_marks(self, text: np.ndarray, size: int) -> int:
        """Drop a mark that begins at the end of a text and goes on in the stream, and those that follow it."""
        end = text[max(0, size - len(BOM)) : size].tobytes()
        begun = next((n for n in (2, 1) if end.endswith(BOM[:n])), 0)
        before = size - begun
        if not begun or (text[before - 1] if before else self._last) != NEWLINE:
            return size
        if self._stream.head(len(BOM) - begun) != BOM[begun:]:
            return size
        self._stream.skip(len(BOM) - begun)
        self._marks.append(self._size + before)
        return before

    def _without_end(self, text: np.ndarray, size: int) -> int:
        """Drop the end marks with which the stream ends: CP/M filled the last sector with them."""
        end = text[max(0, size - SECTOR - 1) : size].tobytes()
        count = len(end) - len(end.rstrip(END_MARK))
        if not count or count > SECTOR or (count == size and self._last == END_MARK[0]):
            return size
        rest = self._stream.head(SECTOR - count + 1)
        if len(rest) > SECTOR - count or rest.strip(END_MARK):
            return size
        self._stream.skip(len(rest))
        return size - count


def marked_starts(text: np.ndarray, begins_line: bool) -> np.ndarray:
    """The starts of lines at which a byte order mark stands."""
    found = [np.zeros(int(begins_line and text[: len(BOM)].tobytes() == BOM), dtype=np.int64)]
    for start in range(0, len(text) - len(BOM), STEP):
        after = text[start + 1 : min(start + 1 + STEP, len(text) - len(BOM) + 1)]
        begins = (after == BOM[0]) & (text[start : start + len(after)] == NEWLINE)
        if begins.any():
            places = np.flatnonzero(begins) + start + 1
            found.append(places[is_mark(text, places)])
    return np.concatenate(found)


def is_mark(text: np.ndarray, places: np.ndarray) -> np.ndarray:
    """At which of some places, all with its first byte, a byte order mark stands."""
    return (text[places + 1] == BOM[1]) & (text[places + 2] == BOM[2])

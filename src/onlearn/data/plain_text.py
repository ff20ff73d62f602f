"""What stands in text files and is no text: byte order marks, the line ends of old Macs, the end mark of DOS, UTF-16.

``sources.blocks`` deals with them once for all formats, before it cuts a text into blocks of lines.
"""

from __future__ import annotations

import re

import numpy as np

BOM = b"\xef\xbb\xbf"
MARKS = re.compile(b"^(?:" + BOM + b")+", re.MULTILINE)  # at the starts of lines
STEP = 1 << 15  # bytes of a text that are compared at once: the results stay in the processor's cache
NEWLINE, RETURN, END_MARK = 10, 13, 26  # DOS ended some files with Ctrl-Z


def line_end_in(head: bytes) -> int:
    """The byte that ends the lines of a text with this beginning: a carriage return if there is no newline.

    >>> line_end_in(b"one\\rtwo\\r") == RETURN, line_end_in(b"one\\r\\ntwo\\r\\n") == NEWLINE
    (True, True)
    """
    return RETURN if b"\r" in head and b"\n" not in head else NEWLINE


def lines_of(head: bytes) -> list[bytes]:
    """The lines of the beginning of a text, without byte order marks.

    >>> lines_of(BOM + b"one\rtwo\r" + BOM + b"three")
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


def without_end_marks(text: np.ndarray, stop: int) -> int:
    """The end of a whole text without the Ctrl-Z at its end; CP/M filled the last sector with them."""
    while stop and text[stop - 1] == END_MARK:
        stop -= 1
    return stop


def marked_starts(text: np.ndarray) -> np.ndarray:
    """The starts of lines at which a byte order mark stands. The text begins a line."""
    found = [np.zeros(int(bytes(text[: len(BOM)]) == BOM), dtype=np.int64)]
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


class LineMarks:
    """The byte order marks that were dropped from the starts of lines, where files have been concatenated."""

    def __init__(self) -> None:
        self._places: np.ndarray = np.empty(0, dtype=np.int64)  # in the text without them

    def drop(self, text: np.ndarray, stop: int) -> int:
        """Remove the marks at the starts of lines of ``text[:stop]``, which begins a line; returns the new end."""
        starts = marked_starts(text[:stop])
        if not len(starts):
            return stop
        found = np.flatnonzero(text[: stop - len(BOM) + 1] == BOM[0])
        found = found[is_mark(text, found)]
        begins_run = np.diff(found, prepend=-len(BOM) - 1) != len(BOM)  # one after another: of files without text
        run_at_start = np.isin(found[begins_run], starts)
        found = found[run_at_start[np.cumsum(begins_run) - 1]]
        kept = np.ones(stop, dtype=bool)
        for n in range(len(BOM)):
            kept[found + n] = False
        rest = text[:stop][kept]
        text[: len(rest)] = rest
        self._places = np.append(self._places, found - len(BOM) * np.arange(len(found)))
        return len(rest)

    def before(self, end: int) -> int:
        """Forget the text before ``end``; returns the bytes that were dropped from it."""
        count = int(np.searchsorted(self._places, end))
        self._places = self._places[count:] - end
        return count * len(BOM)

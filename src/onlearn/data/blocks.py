"""A stream in blocks of whole lines, ready for the compiled parsers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn.data.badrows import DataError
from onlearn.data.sources import Stream

SIZE = 4 << 20
PADDING = 64  # newlines after the content: what a parser may look at without checking
NEWLINE = 10
BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    text: np.ndarray  # uint8, followed by PADDING newlines
    stop: int  # where the content ends; its last byte is a newline


def last_line_end(text: np.ndarray, stop: int, final: bool) -> int:
    """Where the last whole line ends; 0 if there is none."""
    window = 1 << 12
    while stop > 0:
        start = max(0, stop - window)
        found = np.flatnonzero(text[start:stop] == NEWLINE)
        if found.size:
            return start + int(found[-1]) + 1
        stop, window = start, window * 4
    return 0


def blocks(
    stream: Stream, size: int = SIZE, cut: Callable[[np.ndarray, int, bool], int] = last_line_end
) -> Iterator[Block]:
    """Blocks of about ``size`` bytes that end where a line does; a longer line makes a longer block.

    The bytes are read to where they will be parsed, and only what follows the last line end is copied.
    """
    check_encoding(stream)
    rest = np.empty(0, dtype=np.uint8)
    while True:
        room = max(size, 2 * len(rest))
        text = np.empty(room + PADDING, dtype=np.uint8)
        text[: len(rest)] = rest
        stop = len(rest) + stream.fill(text[len(rest) : room])
        final = stop < room
        if final and stop and text[stop - 1] != NEWLINE:
            text[stop] = NEWLINE  # there is padding for it
            stop += 1
        end = cut(text, stop, final)
        if final:
            end = stop
        rest = text[end:stop].copy()
        if end:
            text[end : end + PADDING] = NEWLINE
            yield Block(text[: end + PADDING], end)
        if final:
            return


def check_encoding(stream: Stream) -> None:
    """Drop a byte order mark; refuse what is UTF-16."""
    start = stream.head(4)
    if start.startswith(BOM):
        stream.skip(len(BOM))
    elif start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{stream.source.name} is UTF-16: convert it to UTF-8")


def first_lines(stream: Stream, size: int = 1 << 16) -> list[bytes]:
    """The first whole lines, without taking them; all of a single long one."""
    while True:
        head = stream.head(size).removeprefix(BOM)
        if b"\n" in head or len(head) < size - len(BOM):
            break
        size *= 4
    lines = head.splitlines()
    return lines[:-1] if len(lines) > 1 and len(head) >= size - len(BOM) else lines


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

"""Places where a text file can be cut: after the end of a line near each place that would give parts of one size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from onlearn.data.parts import Span
from onlearn.data.sources import NEW_LINE, Source

WINDOW = 1 << 16  # bytes that are read around a place, at first
LARGEST = 1 << 24  # bytes that are read at once, further on
KEPT = 1 << 20


def places(size: int, count: int) -> list[int]:
    """The places that cut so many bytes into ``count`` parts of one size.

    >>> places(10, 3)
    [3, 6]
    """
    return sorted({size * n // count for n in range(1, count)} - {0})


class Bytes(Protocol):
    """What gives the bytes of a range, fewer at the end."""

    def between(self, start: int, stop: int) -> bytes: ...


class Nearby:
    """A file that is read around some place: what was read last stays in memory."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._start, self._text = 0, b""

    def between(self, start: int, stop: int) -> bytes:
        """Some bytes of the file, fewer at its end."""
        if stop - start > KEPT:
            return self._source.between(start, stop)
        if not self._start <= start <= stop <= self._start + len(self._text):
            self._start, self._text = start, self._source.between(start, start + KEPT)
        return self._text[start - self._start : stop - self._start]


def windows(source: Bytes, start: int, stop: int, size: int = WINDOW) -> Iterator[tuple[int, bytes]]:
    """The bytes of a range, and where they begin, in windows of growing size."""
    while start < stop:
        text = source.between(start, min(start + size, stop))
        if not text:
            return
        yield start, text
        start, size = start + len(text), min(4 * size, LARGEST)


def line_start(source: Bytes, place: int, stop: int) -> int | None:
    """The first place from ``place`` on where a line begins; None if there is none before ``stop``."""
    for start, text in windows(source, place - 1, stop - 1):
        if (end := text.find(NEW_LINE)) >= 0:
            return start + end + 1
    return None


def line_starts_near(source: Source, size: int, count: int) -> list[int]:
    """The starts of lines near the places that cut a file into ``count`` parts; reads a little at each."""
    wanted = places(size, count)
    found = (line_start(source, place, after) for place, after in zip(wanted, [*wanted[1:], size]))
    return [start for start in found if start is not None]


def spans(cuts: Sequence[int], size: int, beginning: object = None) -> list[Span]:
    """The parts of a file between some places.

    >>> [(span.start, span.stop) for span in spans([4, 7], 10)]
    [(0, 4), (4, 7), (7, 10)]
    """
    edges = [0, *cuts, size]
    return [Span(start, stop, beginning) for start, stop in pairwise(edges)]

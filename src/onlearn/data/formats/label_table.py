"""A small table of byte strings: labels and namespaces become codes, and only distinct ones become strings.

Open addressing. An entry is a stretch of the text in which it was first met, so nothing is copied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import BITS, eight
from onlearn.data.named_rows import finish, mix

ONE, EIGHT = np.uint64(1), np.uint64(8)
SIZE = 1 << 10  # places at first


class Table(NamedTuple):
    places: np.ndarray  # int64: the code in this place, or -1
    hashes: np.ndarray  # uint64, by code, as all below
    starts: np.ndarray  # uint64
    lengths: np.ndarray  # uint64
    size: np.ndarray  # int64, one number: entries so far

    def name(self, text: np.ndarray, code: int) -> bytes:
        start = int(self.starts[code])
        return text[start : start + int(self.lengths[code])].tobytes()


def new_table(size: int = SIZE) -> Table:
    hashes, starts, lengths = (np.empty(size // 2 + 1, dtype=np.uint64) for _ in range(3))
    return Table(np.full(size, -1, dtype=np.int64), hashes, starts, lengths, np.zeros(1, dtype=np.int64))


@compiled
def hash_span(text: Any, start: Any, stop: Any, seed: Any) -> Any:
    """What ``hashing.hash_bytes`` gives, for a text with padding: the last bytes are taken at once, too."""
    length = stop - start
    h = mix(seed, length)
    while length >= EIGHT:
        h = mix(h, eight(text, start))
        start += EIGHT
        length -= EIGHT
    if length:
        h = mix(h, eight(text, start) & ((ONE << (length << BITS)) - ONE))
    return finish(h)


@compiled
def same(text: Any, first: Any, second: Any, length: Any) -> Any:
    """Whether two stretches of a text are alike."""
    while length >= EIGHT:
        if eight(text, first) != eight(text, second):
            return False
        first += EIGHT
        second += EIGHT
        length -= EIGHT
    apart = eight(text, first) ^ eight(text, second)
    return apart & ((ONE << (length << BITS)) - ONE) == np.uint64(0)


@compiled
def code_of(text: Any, start: Any, stop: Any, h: Any, table: Any) -> Any:
    """The code of ``text[start:stop]`` with hash h, a new one if need be; -1 when the table must grow first."""
    mask = np.uint64(len(table.places) - 1)
    place = h & mask
    while True:
        code = table.places[place]
        if code < 0:
            break
        at = np.uint64(code)
        alike = table.hashes[at] == h and table.lengths[at] == stop - start
        if alike and same(text, start, table.starts[at], stop - start):
            return code
        place = (place + ONE) & mask
    code = table.size[0]
    if 2 * code >= len(table.places):
        return np.int64(-1)
    table.places[place] = code
    table.hashes[code] = h
    table.starts[code] = start
    table.lengths[code] = stop - start
    table.size[0] = code + 1
    return code


def grown(table: Table) -> Table:
    """The same entries in a table four times as large."""
    large = new_table(4 * len(table.places))
    count = int(table.size[0])
    for old, new in ((table.hashes, large.hashes), (table.starts, large.starts), (table.lengths, large.lengths)):
        new[:count] = old[:count]
    large.size[0] = count
    replace(large.places, large.hashes, count)
    return large


@compiled
def replace(places: Any, hashes: Any, count: Any) -> None:
    mask = np.uint64(len(places) - 1)
    for code in range(count):
        place = hashes[code] & mask
        while places[place] >= 0:
            place = (place + ONE) & mask
        places[place] = code

"""Where a text is not UTF-8."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import compiled
from onlearn.data.parse.words import eight

ONE, EIGHT, LINE = np.uint64(1), np.uint64(8), np.uint64(64)
TOP = np.uint64(0x8080808080808080)


@compiled
def past_ascii(text: Any, p: Any, stop: Any) -> Any:
    """How far the text is ASCII, in whole steps of 64 bytes: most texts are throughout, or nearly so."""
    while p + LINE <= stop:
        found = np.uint64(0)
        for k in range(np.uint64(8)):
            found |= eight(text, p + EIGHT * np.uint64(k))
        if found & TOP != np.uint64(0):
            break
        p += LINE
    return p


@compiled
def first_wrong(text: Any, start: Any, stop: Any) -> Any:
    """The first byte in ``text[start:stop]`` that does not begin a character; ``stop`` if all is well."""
    stop = np.uint64(stop)
    p = past_ascii(text, np.uint64(start), stop)
    while p < stop:
        if p + EIGHT <= stop and eight(text, p) & TOP == np.uint64(0):
            p += EIGHT
            continue
        c = text[p]
        if c < 128:
            p += ONE
            continue
        # The second byte's range excludes overlong forms, surrogates and what is beyond U+10FFFF.
        low, high, more = 128, 191, 1
        if c < 194 or c > 244:
            return np.int64(p)
        if c >= 240:
            more = 3
            if c == 240:
                low = 144
            elif c == 244:
                high = 143
        elif c >= 224:
            more = 2
            if c == 224:
                low = 160
            elif c == 237:
                high = 159
        at = p + ONE
        for _ in range(more):
            if at >= stop or text[at] < low or text[at] > high:
                return np.int64(p)
            low, high = 128, 191
            at += ONE
        p = past_ascii(text, at, stop)
    return np.int64(stop)


@compiled
def wrong_lines(text: Any, starts: Any, stop: Any, rows: Any, places: Any) -> None:
    """For each of some lines (by number; ``starts`` has all), the place of the first wrong byte, or -1."""
    for n in range(len(rows)):
        line = rows[n]
        end = starts[line + 1] if line + 1 < len(starts) else stop
        place = first_wrong(text, starts[line], end)
        places[n] = place if place < end else -1

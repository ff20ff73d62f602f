"""A look at JSON lines before a parser sees them: is each a single object, and how deep does it go?

Arrow's parser dies of a ``null`` where an object should be, and nesting without end exhausts any parser's stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import compiled
from onlearn.data.parse.words import BITS, eight, equal, trailing_zeros

ZERO, ONE = np.uint64(0), np.uint64(1)
NEWLINE, QUOTE, BACKSLASH = 10, 34, 92
A_NEWLINE, A_QUOTE, A_BACKSLASH = np.uint64(NEWLINE), np.uint64(QUOTE), np.uint64(BACKSLASH)


@compiled
def end_of_string(text: Any, p: Any) -> Any:
    """Where the string whose first character is at p ends: at a quote, or with the line. Eight bytes at a time."""
    while True:
        word = eight(text, p)
        ends = equal(word, A_QUOTE) | equal(word, A_BACKSLASH) | equal(word, A_NEWLINE)
        p += trailing_zeros(ends) >> BITS  # eight if there is none
        if ends != ZERO:
            if text[p] != BACKSLASH:
                return p
            p += ONE  # and what follows it is neither, unless the line ends there
            if text[p] != NEWLINE:
                p += ONE


@compiled
def depths(text: Any, starts: Any, lines: Any, found: Any) -> None:
    """How deep the brackets of each line are nested; -1 for a line that is not one object from end to end."""
    for n in range(len(lines)):
        p = np.uint64(starts[lines[n]])
        depth, most, values = 0, 0, 0
        whole = True
        c = text[p]
        while c != NEWLINE:
            if c == QUOTE:
                p = end_of_string(text, p + ONE)
                if text[p] == NEWLINE:
                    whole = False
                    break
                whole &= depth > 0
            elif c == 123 or c == 91:
                if depth == 0:
                    values += 1
                    whole &= c == 123 and values == 1
                depth += 1
                most = max(most, depth)
            elif c == 125 or c == 93:
                depth -= 1
                whole &= depth >= 0
            elif depth == 0:
                whole &= c == 32 or c == 9 or c == 13
            p += ONE
            c = text[p]
        found[n] = most if whole and depth == 0 and values == 1 else -1

"""A look at JSON lines before a parser sees them: is each a single object, and how deep does it go?

Arrow's parser dies of a ``null`` where an object should be, and nesting without end exhausts any parser's stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import compiled

ONE = np.uint64(1)
NEWLINE, QUOTE, BACKSLASH = 10, 34, 92


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
                p += ONE
                c = text[p]
                while c != QUOTE and c != NEWLINE:
                    if c == BACKSLASH and text[p + ONE] != NEWLINE:
                        p += ONE
                    p += ONE
                    c = text[p]
                if c == NEWLINE:
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

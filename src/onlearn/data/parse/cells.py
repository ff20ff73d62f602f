"""The loops of CSV: where rows end, where their cells are, and what columns they make.

A cell is quoted if its first byte (after blanks) is the quote; a quote within is written twice; newlines within belong
to it. A row that spans lines and has the wrong number of cells is taken for a stray quote: its first line is bad, and
reading goes on with the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.formats.numbers import GOOD, ONE, UNSURE, ZERO, any_number

NEWLINE = 10
PLAIN, QUOTED, DOUBLED = range(3)
# What is wrong with a row.
FINE, WIDTH, OPEN, AFTER = range(4)
# What a cell holds.
NUMBER, MISSING, TEXT, ASK = range(4)
EXACT = 9007199254740992.0


@compiled
def scan(text: Any, stop: Any, final: Any, delimiter: Any, quote: Any, width: Any, rows: Any) -> Any:
    """List the rows of ``text[:stop]``: start, stop, first line, cells, what is wrong (columns of ``rows``).

    Returns their number, where the last whole one ends, and the lines up to there. With width 0, any will do.
    """
    p, stop = np.uint64(0), np.uint64(stop)
    count, line = 0, 0
    while p < stop and count < len(rows):
        begin, cells, wrong = p, 0, FINE
        inner = 0
        second = ZERO  # where the second line of the row begins
        ended = False
        while not ended:
            while p < stop and (text[p] == 32 or (text[p] == 9 and delimiter != 9)):
                p += ONE
            if quote and p < stop and text[p] == quote:
                p += ONE
                closed = False
                while p < stop and not closed:
                    c = text[p]
                    if c == NEWLINE:
                        inner += 1
                        if inner == 1:
                            second = p + ONE
                    elif c == quote:
                        if p + ONE < stop and text[p + ONE] == quote:
                            p += ONE
                        else:
                            closed = True
                    p += ONE
                if not closed:
                    wrong = OPEN
                    break
                while p < stop and (text[p] == 32 or text[p] == 13 or (text[p] == 9 and delimiter != 9)):
                    p += ONE
                if p < stop and text[p] != delimiter and text[p] != NEWLINE and wrong == FINE:
                    wrong = AFTER
            while p < stop and text[p] != delimiter and text[p] != NEWLINE:
                p += ONE
            cells += 1
            if p >= stop:
                break
            ended = text[p] == NEWLINE
            p += ONE
        if not ended and not final:
            return count, np.int64(begin), line
        if wrong == FINE and width and cells != width:
            wrong = WIDTH
        if wrong != FINE and inner:
            p, inner = second, 0
        elif wrong == OPEN:
            while text[p - ONE] != NEWLINE:
                p += ONE
        empty = cells == 1 and wrong != OPEN
        if empty:
            for q in range(begin, p):
                empty &= text[q] == 32 or text[q] == 13 or text[q] == NEWLINE or text[q] == 9
        if not empty:
            rows[count, 0], rows[count, 1], rows[count, 2] = begin, p, line
            rows[count, 3], rows[count, 4] = cells, wrong
            count += 1
        line += inner + 1
    return count, np.int64(p), line


@compiled
def cut_cells(text: Any, rows: Any, delimiter: Any, quote: Any, starts: Any, lengths: Any, kinds: Any) -> None:
    """Where the cells of good rows are, quotes and blanks around them not included. Arrays are columns by rows."""
    for row in range(len(rows)):
        p, stop = np.uint64(rows[row, 0]), np.uint64(rows[row, 1])
        column = 0
        while p < stop:
            while text[p] == 32 or (text[p] == 9 and delimiter != 9):
                p += ONE
            first, kind = p, PLAIN
            if quote and text[p] == quote:
                kind = QUOTED
                p += ONE
                first = p
                while True:
                    if text[p] == quote:
                        if text[p + ONE] != quote:
                            break
                        kind = DOUBLED
                        p += ONE
                    p += ONE
                last = p
            while text[p] != delimiter and text[p] != NEWLINE:
                p += ONE
            if kind == PLAIN:
                last = p
                while last > first and (text[last - ONE] == 32 or text[last - ONE] == 13 or text[last - ONE] == 9):
                    last -= ONE
            starts[column, row], lengths[column, row], kinds[column, row] = first, last - first, kind
            column += 1
            p += ONE


@compiled
def is_missing(text: Any, start: Any, length: Any) -> Any:
    """Empty, ``?``, ``NA``, ``N/A``, ``NaN``, ``nan``, ``null`` or ``NULL``."""
    if length == 0:
        return True
    a = text[start]
    if length == 1:
        return a == 63
    if length > 4 or (a != 78 and a != 110):
        return False
    b = text[start + 1]
    if length == 2:
        return a == 78 and b == 65
    c = text[start + 2]
    if length == 3:
        return (a == 78 and ((b == 97 and c == 78) or (b == 47 and c == 65))) or (a == 110 and b == 97 and c == 110)
    d = text[start + 3]
    return (a == 110 and b == 117 and c == 108 and d == 108) or (a == 78 and b == 85 and c == 76 and d == 76)


@compiled
def measure(text: Any, starts: Any, lengths: Any, kinds: Any, quote: Any, offsets: Any, valid: Any) -> Any:
    """Fill in offsets and validity of a column of strings; returns its bytes."""
    total = 0
    for row in range(len(starts)):
        length = lengths[row]
        missing = is_missing(text, starts[row], length)
        if missing:
            length = 0
        elif kinds[row] == DOUBLED:
            p = starts[row]
            stop = p + lengths[row]
            while p < stop:
                if text[p] == quote:
                    length -= 1
                    p += 1
                p += 1
        valid[row] = not missing
        total += length
        offsets[row + 1] = total
    return total


@compiled
def copy(text: Any, starts: Any, lengths: Any, kinds: Any, quote: Any, offsets: Any, out: Any) -> None:
    """Copy the cells of a column to where ``offsets`` says."""
    for row in range(len(starts)):
        to, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        p = np.uint64(starts[row])
        doubled = kinds[row] == DOUBLED
        while to < end:
            out[to] = text[p]
            if doubled and text[p] == quote:
                p += ONE
            to += ONE
            p += ONE


@compiled
def to_numbers(text: Any, starts: Any, lengths: Any, values: Any, outcomes: Any) -> None:
    """Cells as numbers, and what each of them is."""
    base = np.uint64(text.ctypes.data)
    for row in range(len(starts)):
        start, length = np.uint64(starts[row]), np.uint64(lengths[row])
        values[row] = np.nan
        if is_missing(text, starts[row], lengths[row]):
            outcomes[row] = MISSING
            continue
        value, end, outcome = any_number(base, start)
        outcomes[row] = TEXT
        if end == start + length:
            if outcome == GOOD:
                values[row], outcomes[row] = value, NUMBER
            elif outcome == UNSURE:
                outcomes[row] = ASK


@compiled
def to_look_at(text: Any, starts: Any, lengths: Any) -> Any:
    """What a column holds, for guessing its type: how many numbers and how many texts there are.

    A whole number with leading zeros, or one that a float cannot hold, is a text: it is a name and not an amount.
    """
    base = np.uint64(text.ctypes.data)
    numbers = texts = 0
    for row in range(len(starts)):
        start, length = starts[row], lengths[row]
        if is_missing(text, start, length):
            continue
        value, end, outcome = any_number(base, np.uint64(start))
        digits = text[start] - 48
        zero = digits == 0 and length > 1 and 48 <= text[start + 1] <= 57
        fits = outcome == UNSURE or (outcome == GOOD and abs(value) <= EXACT)
        if not fits and outcome == GOOD:
            for k in range(start, start + length):
                fits |= text[k] == 46 or text[k] == 101 or text[k] == 69
        if end == np.uint64(start + length) and fits and not zero:
            numbers += 1
        else:
            texts += 1
    return numbers, texts

"""The svmlight loop: ``label [qid:n] index:value ... # comment``, a line a row.

One walk over the bytes, and digit by digit: processors guess the lengths of numbers well, and go on before a number
is complete. To take eight digits at once was twice as slow here, for then each number waits for the one before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compile import compiled
from onlearn.data.parse.numbers import (
    DIGIT,
    DIGITS,
    EXACT,
    GOOD,
    MALFORMED,
    MISSING,
    NINE,
    ONE,
    POWERS,
    TEN,
    UNSURE,
    ZERO,
    any_number,
    ask,
    decimal,
    number,
    whole_number,
)
from onlearn.data.parse.rows import note_bad, why_not
from onlearn.data.parse.table import code_of, hash_span
from onlearn.data.parse.words import eight
from onlearn.hashing import START

NEWLINE, HASH, COLON = 10, 35, 58
QID, FOUR = np.uint64(int.from_bytes(b"qid:", "little")), np.uint64(0xFFFFFFFF)

# Why a row is bad, by number.
REASONS = (
    "",
    "there is no label",
    "the label is not a number",
    "a feature must be written index:value, with an index of at least 0",
    "the index is too large (18 digits at most)",
    "the value is not a number",
    "the value is infinite",
    "the value is missing",
    "qid must be a whole number",
)
NO_LABEL, LABEL_TEXT, NO_PAIR, INDEX_LARGE, VALUE_TEXT, VALUE_INFINITE, VALUE_MISSING, BAD_QID = range(1, 9)
# What stopped the loop.
DONE, WIDE, CROWDED, FULL = range(4)


class Rows(NamedTuple):
    """What the loop fills in."""

    indptr: np.ndarray  # int64, by row: indptr[row] is where it begins
    codes: np.ndarray  # int64: of the label; -1 without one
    numbers: np.ndarray  # float64: the label as a number, where asked for
    lines: np.ndarray  # int64, from 0
    qids: np.ndarray  # int64; -1 without one
    bad_lines: np.ndarray  # int64
    bad_starts: np.ndarray  # int64: where the line begins
    bad_places: np.ndarray  # int64: where the trouble is
    bad_reasons: np.ndarray  # int64
    unsorted: np.ndarray  # int64: rows whose indices do not ascend
    unsure: np.ndarray  # int64: position, start, stop; position < 0 means label of row -position - 1


class Counts(NamedTuple):
    rows: int
    features: int
    lines: int
    bad: int
    unsure: int
    duplicates: int  # whether there are any
    qids: int  # whether there are any
    unsorted: int
    stopped: int


def new_rows(lines: int, unsure: int) -> Rows:
    def integers() -> np.ndarray:
        return np.empty(lines, dtype=np.int64)

    return Rows(
        indptr=np.zeros(lines + 1, dtype=np.int64),
        codes=integers(),
        numbers=np.empty(lines),
        lines=integers(),
        qids=integers(),
        bad_lines=integers(),
        bad_starts=integers(),
        bad_places=integers(),
        bad_reasons=integers(),
        unsorted=integers(),
        unsure=np.empty((unsure, 3), dtype=np.int64),
    )


@compiled
def parse(
    text: Any, stop: Any, indices: Any, values: Any, out: Any, table: Any, regress: Any, want: Any, drop: Any
) -> Any:
    """Parse ``text[:stop]``, which ends with a newline. ``want``: labels are required; ``drop``: NaN is absent."""
    p, stop, base = np.uint64(0), np.uint64(stop), np.uint64(text.ctypes.data)
    limit = (ONE << np.uint64(8 * indices.itemsize - 1)) - ONE
    row, k, line, bad, unsure, with_qid, messy = 0, ZERO, 0, 0, 0, 0, 0
    duplicates = False
    room, most = len(out.codes), np.uint64(len(indices))
    while p < stop:
        begin, first, pending = p, k, unsure
        if row + bad >= room:
            return counts(row, k, line, bad, unsure, duplicates, with_qid, messy, FULL)
        reason = 0
        while text[p] == 32 or text[p] == 9 or text[p] == 13:
            p += ONE
        if text[p] == NEWLINE:
            p += ONE
            line += 1
            continue
        if text[p] == HASH:
            while text[p] != NEWLINE:
                p += ONE
            p += ONE
            line += 1
            continue
        start = p
        colon = False
        c = text[p]
        while c > 32 or (c != 32 and c != 9 and c != 13 and c != 10):
            colon |= c == COLON
            p += ONE
            c = text[p]
        code, label = np.int64(-1), np.nan
        if colon:  # the first feature already
            p = start
            if want:
                reason = NO_LABEL
        elif regress:
            label, end, outcome = any_number(base, start)
            if end != p or outcome > UNSURE:
                reason, p = LABEL_TEXT, start
            elif outcome == UNSURE:
                unsure = ask(out.unsure, unsure, -row - 1, start, p)
        else:
            code = code_of(text, start, p, hash_span(text, start, p, START), table)
            if code < 0:
                return counts(row, k, line, bad, unsure, duplicates, with_qid, messy, CROWDED)
        last, qid = np.int64(-1), np.int64(-1)
        ordered = True
        while reason == 0:
            c = text[p]
            while c == 32 or c == 9 or c == 13:
                p += ONE
                c = text[p]
            if c == 10 or c == HASH:
                break
            digit = np.uint64(c) - DIGIT
            if digit > NINE:
                reason = NO_PAIR
                if eight(text, p) & FOUR == QID:
                    query, end, fits = whole_number(base, p + np.uint64(4))
                    c = text[end]
                    if fits and (c == 32 or c == 9 or c == 13 or c == NEWLINE):
                        p, qid, reason = end, np.int64(query), 0
                        with_qid = 1
                        continue
                    reason = BAD_QID
                break
            start, index = p, ZERO
            while digit <= NINE:
                index = index * TEN + digit
                p += ONE
                digit = np.uint64(text[p]) - DIGIT
            if p - start > DIGITS:
                index, p, fits = whole_number(base, start)
                if not fits:
                    reason = INDEX_LARGE
                    break
            if text[p] != COLON:
                reason = NO_PAIR
                break
            if index > limit - ONE:
                return counts(row, k, line, bad, unsure, duplicates, with_qid, messy, WIDE)
            start = p + ONE
            digit = np.uint64(text[start]) - DIGIT
            p = start + ONE
            c = text[p]
            outcome = GOOD
            if digit <= NINE and (c == 32 or c == 10):  # as most are in binary data
                value = np.float64(np.int64(digit))
            else:
                mantissa, digits, after, p = decimal(base, start)
                c = text[p]
                if digits - ONE < DIGITS and mantissa <= EXACT and c <= 35:
                    value = np.float64(np.int64(mantissa)) / POWERS[after]
                    if text[start] == 45:
                        value = -value
                else:
                    value, p, outcome = number(base, start)
                    c = text[p]
            if c != 32 and c != 10 and c != 9 and c != 13 and c != HASH:
                outcome = MALFORMED
            if outcome != GOOD:
                if outcome == UNSURE:
                    unsure = ask(out.unsure, unsure, np.int64(k), start, p)
                elif outcome == MISSING and drop:
                    continue
                else:
                    p, reason = start, why_not(outcome, VALUE_TEXT, VALUE_INFINITE, VALUE_MISSING)
                    break
            if k >= most:
                return counts(row, k, line, bad, unsure, duplicates, with_qid, messy, FULL)
            at = np.int64(index)
            if at <= last:
                duplicates |= at == last
                ordered &= at == last
            last = at
            indices[k] = at
            values[k] = value
            k += ONE
        if reason:
            bad = note_bad(out, bad, line, begin, p, reason)
            k, unsure = first, pending
        else:
            if not ordered:
                out.unsorted[messy] = row
                messy += 1
            out.codes[row], out.numbers[row], out.lines[row], out.qids[row] = code, label, line, qid
            row += 1
            out.indptr[row] = k
        while text[p] != NEWLINE:
            p += ONE
        p += ONE
        line += 1
    return counts(row, k, line, bad, unsure, duplicates, with_qid, messy, DONE)


@compiled
def counts(
    row: Any, k: Any, line: Any, bad: Any, unsure: Any, duplicates: Any, qids: Any, messy: Any, stopped: Any
) -> Any:
    return row, np.int64(k), line, bad, unsure, np.int64(duplicates), qids, messy, stopped


@compiled
def sort_rows(rows: Any, indptr: Any, indices: Any, values: Any) -> None:
    """Bring the features of some short rows into the order of their indices; those of one index keep theirs."""
    for row in rows:
        first, stop = indptr[row], indptr[row + 1]
        for k in range(first + 1, stop):
            index, value, at = indices[k], values[k], k
            while at > first and indices[at - 1] > index:
                indices[at], values[at] = indices[at - 1], values[at - 1]
                at -= 1
            indices[at], values[at] = index, value

"""svmlight (libsvm) text: ``label [qid:n] index:value ... # comment``, one row a line.

An index is the number of a column, so files that count from 1 leave column 0 empty. Indices may have any order; the
features of a row are sorted. An index that appears twice in a row stays twice, and the values are summed when the
matrix is made unique, as SciPy does it.

One compiled loop reads the bytes, digit by digit: processors predict the lengths of numbers well, and continue before a
number is complete. Reading eight digits at once was twice as slow, because each number waits for the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import eight
from onlearn.data.batch import START
from onlearn.data.blocks import Block
from onlearn.data.formats.numbers import (
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
from onlearn.data.formats.scanning import (
    Lines,
    Room,
    bad_lines,
    code_of,
    drop_rows,
    fix_unsure,
    grown,
    hash_span,
    new_table,
    note_bad,
    take_labels,
    why_not,
)
from onlearn.data.registry import Options, Parsed, reader
from onlearn.engine.csr import CSR

NEWLINE, HASH, COLON = 10, 35, 58
QID, FOUR = np.uint64(int.from_bytes(b"qid:", "little")), np.uint64(0xFFFFFFFF)

SHORT = 64  # features up to which insertion sort is fastest
UNSURE_ROOM = 1000  # numbers of a block that the loop may not be able to round, at first

# Why a row is bad.
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
# Why the loop stopped: the text ended, an index needs 64 bits, the table of labels is full, an array is full.
DONE, WIDE, CROWDED, FULL = range(4)


class Rows(NamedTuple):
    """The arrays that the loop fills."""

    indptr: np.ndarray  # int64: row i has the features indptr[i] to indptr[i + 1]
    codes: np.ndarray  # int64: the code of the label; -1 without a label
    numbers: np.ndarray  # float64: the label as a number, for regression
    lines: np.ndarray  # int64, from 0
    qids: np.ndarray  # int64; -1 without one
    bad_lines: np.ndarray  # int64
    bad_starts: np.ndarray  # int64: where the line begins
    bad_places: np.ndarray  # int64: the place of the error
    bad_reasons: np.ndarray  # int64
    unsorted: np.ndarray  # int64: rows whose indices do not ascend
    unsure: np.ndarray  # int64: position, start, stop; position < 0: the label of row -position - 1


class Counts(NamedTuple):
    """The result of the loop."""

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
    """Empty arrays for some lines."""

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
        if colon:  # this is a feature, so there is no label
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
            if digit <= NINE and (c == 32 or c == 10):  # usual in binary data
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
    """Sort the features of some short rows by index, with a stable insertion sort."""
    for row in rows:
        first, stop = indptr[row], indptr[row + 1]
        for k in range(first + 1, stop):
            index, value, at = indices[k], values[k], k
            while at > first and indices[at - 1] > index:
                indices[at], values[at] = indices[at - 1], values[at - 1]
                at -= 1
            indices[at], values[at] = index, value


@reader("svmlight", extensions=[".svm", ".svmlight", ".libsvm"])
class Svmlight(Lines):
    """svmlight's format, one row a line."""

    unused_options: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("target", "weight", "id", "group", "types"), "the rows have no columns but numbers"
    )
    label_separator: ClassVar[str | None] = ","  # 1,3 is labels 1 and 3

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.room: Room = Room()

    def parse(self, block: Block) -> Parsed:
        options, text = self.options, block.text
        index: type = np.int32
        table, unsure = new_table(), UNSURE_ROOM
        drop = options.missing != "error"
        while True:
            lines, most = self.room.of(block)
            rows = new_rows(lines, unsure)
            indices: np.ndarray = np.empty(most, dtype=index)
            values = np.empty(most)
            counts = Counts(
                *parse(text, block.stop, indices, values, rows, table, options.regress, options.labelled, drop)
            )
            if counts.stopped == WIDE:
                index = np.int64
            elif counts.stopped == CROWDED:
                table = grown(table)
            elif counts.stopped == FULL:
                self.room.more()
            elif counts.unsure > unsure:
                unsure = counts.unsure
            else:
                break
        self.room.took(block, counts.rows + counts.bad, counts.features)
        bad = bad_lines(block, rows, counts.bad, REASONS)
        n, features = counts.rows, counts.features
        spoiled = fix_unsure(text, rows.unsure[: counts.unsure], values, rows.numbers, rows.indptr[: n + 1])
        if counts.unsorted:
            sort_unsorted(rows.unsorted[: counts.unsorted], rows.indptr[: n + 1], indices, values)
        indices, values = indices[:features], values[:features]
        width = int(indices.max()) + 1 if features else 0
        indptr: np.ndarray = rows.indptr[: n + 1].astype(index)
        unique = has_no_duplicates(indices, indptr) if counts.unsorted else not counts.duplicates
        X = CSR(values, indices, indptr, (n, width), unique)
        parsed = Parsed(X, rows.lines[:n], counts.lines, bad=bad)
        if counts.qids:
            parsed.groups = rows.qids[:n]
        if options.regress:
            parsed.numbers = rows.numbers[:n]
        else:
            spoiled |= take_labels(parsed, rows.codes[:n], table.names(text))
        drop_rows(parsed, block, spoiled)
        return parsed


def sort_unsorted(rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
    """Sort the features of some rows by index."""
    lengths = indptr[rows + 1] - indptr[rows]
    sort_rows(rows[lengths <= SHORT], indptr, indices, values)
    for row in rows[lengths > SHORT].tolist():
        at = slice(int(indptr[row]), int(indptr[row + 1]))
        order = np.argsort(indices[at], kind="stable")
        indices[at], values[at] = indices[at][order], values[at][order]


def has_no_duplicates(indices: np.ndarray, indptr: np.ndarray) -> bool:
    """Whether no row has an index twice; the rows are sorted."""
    same = indices[1:] == indices[:-1]
    ends = indptr[1:-1]
    same[ends[(ends > 0) & (ends < len(indices))] - 1] = False  # the last index of a row and the first of the next
    return not same.any()

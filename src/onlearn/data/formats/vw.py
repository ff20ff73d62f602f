"""Vowpal Wabbit text: ``[label [importance [base]]] ['tag]|space[:scale] name[:value] ...``, one row a line.

A word that touches the first bar is a tag, as in Vowpal Wabbit. Tags become ids. The base (an initial prediction) is
not used, and a note says so. Every feature needs a name, which is a part of the text; the loop also computes its hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import BITS, below, eight, ends_among, equal, trailing_zeros
from onlearn.data.batch import START, NamedRows, finish, mix
from onlearn.data.blocks import Block
from onlearn.data.formats.numbers import (
    DIGITS,
    EXACT,
    GOOD,
    MALFORMED,
    MISSING,
    ONE,
    POWERS,
    UNSURE,
    ZERO,
    any_number,
    ask,
    decimal,
    fraction,
    number,
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
    rows_of_infinite,
    take_labels,
    why_not,
    wrong_bytes,
)
from onlearn.data.registry import Options, Parsed, reader
from onlearn.engine.csr import all_finite

NEWLINE, BAR, COLON, QUOTE = 10, 124, 58, 39
CARET = np.uint64(94)
EIGHT = np.uint64(8)
AFTER_BLANK, A_COLON, A_BAR = np.uint64(33), np.uint64(COLON), np.uint64(BAR)
UNSURE_ROOM = 1000  # numbers of a block that the loop may not be able to round, at first
BASE_NOTE = "vw: initial predictions (the third number before the |) are not used"

# Why a row is bad.
REASONS = (
    "",
    "there is no label (a word that touches the bar is a tag)",
    "the label is not a number",
    "there is no |",
    "the importance is not a number of at least 0 and of usual size",
    "the base is not a number",
    "there is more than label, importance, base and tag before the |",
    "a namespace's scale is not a number of usual size",
    "a feature has no name",
    "the value is not a number",
    "the value is infinite",
    "the value is missing",
)
(
    NO_LABEL,
    LABEL_TEXT,
    NO_BAR,
    BAD_IMPORTANCE,
    BAD_BASE,
    TOO_MUCH,
    BAD_SCALE,
    NO_NAME,
    VALUE_TEXT,
    VALUE_INFINITE,
    VALUE_MISSING,
) = range(1, 12)
# Why the loop stopped: the text ended, a table is full, an array is full.
DONE, CROWDED_LABELS, CROWDED_SPACES, FULL = range(4)

# The bytes that end a name: blanks, line ends, colon, bar.
ENDS = np.zeros(256, dtype=np.uint8)
ENDS[[9, 10, 13, 32, COLON, BAR]] = 1


class Rows(NamedTuple):
    """The arrays that the loop fills, by row."""

    indptr: np.ndarray  # int64
    codes: np.ndarray  # int64: the code of the label; -1 without a label
    numbers: np.ndarray  # float64: the label as a number, for regression
    weights: np.ndarray  # float64: the importance
    tags: np.ndarray  # int64, two columns: start and stop
    lines: np.ndarray  # int64, from 0
    bad_lines: np.ndarray  # int64
    bad_starts: np.ndarray  # int64: where the line begins
    bad_places: np.ndarray  # int64: the place of the error
    bad_reasons: np.ndarray  # int64


class Features(NamedTuple):
    """The arrays that the loop fills, by feature."""

    hashes: np.ndarray  # uint64
    values: np.ndarray  # float64
    starts: np.ndarray  # int64
    lengths: np.ndarray  # int64
    groups: np.ndarray  # uint32
    unsure: np.ndarray  # int64: position, start, stop; position < 0: the label of row -position - 1
    scales: np.ndarray  # float64: the factor of an unsure value


class Counts(NamedTuple):
    """The result of the loop."""

    rows: int
    features: int
    lines: int
    bad: int
    unsure: int
    weighted: int  # whether there is an importance
    tagged: int
    based: int
    stopped: int


def new_rows(lines: int) -> Rows:
    """Empty arrays for some lines."""
    indptr, tags = np.zeros(lines + 1, dtype=np.int64), np.empty((lines, 2), dtype=np.int64)
    numbers, weights = np.empty(lines), np.empty(lines)
    codes, line_numbers, *bad = (np.empty(lines, dtype=np.int64) for _ in range(6))
    return Rows(indptr, codes, numbers, weights, tags, line_numbers, *bad)


def new_features(most: int, unsure: int) -> Features:
    return Features(
        hashes=np.empty(most, dtype=np.uint64),
        values=np.empty(most),
        starts=np.empty(most, dtype=np.int64),
        lengths=np.empty(most, dtype=np.int64),
        groups=np.empty(most, dtype=np.uint32),
        unsure=np.empty((unsure, 3), dtype=np.int64),
        scales=np.empty(unsure),
    )


@compiled
def seed_of(text: Any, start: Any, stop: Any) -> Any:
    """The hash of the prefix of a namespace, its name and a caret: the seed for the hashes of its features."""
    length = stop - start
    h = mix(START, length + ONE)
    while length >= EIGHT:
        h = mix(h, eight(text, start))
        start += EIGHT
        length -= EIGHT
    bits = length << BITS
    return finish(mix(h, (eight(text, start) & ((ONE << bits) - ONE)) | (CARET << bits)))


@compiled
def blank(c: Any) -> Any:
    return c == 32 or c == 9 or c == 13


@compiled
def end_of_name(text: Any, p: Any) -> Any:
    """The end of the name that begins at p: a blank, line end, colon or bar. Reads eight bytes at a time."""
    while True:
        word = eight(text, p)
        ends = below(word, AFTER_BLANK) | equal(word, A_COLON) | equal(word, A_BAR)
        p += trailing_zeros(ends) >> BITS  # eight if no byte is one of them
        if ends != ZERO:
            if ENDS[text[p]]:
                return p
            p += ONE  # a control character is part of a name


@compiled
def parse(text, stop, row_out, out, labels, spaces, seeds, regress, want, drop):  # type: ignore[no-untyped-def]
    """Parse ``text[:stop]``, which ends with a newline. ``want``: labels are required; ``drop``: NaN is absent.

    ``spaces`` has the default namespace, the empty name, as code 0; ``seeds`` has START for it.
    """
    p, stop, base = ZERO, np.uint64(stop), np.uint64(text.ctypes.data)
    row, k, line, bad, unsure = 0, ZERO, 0, 0, 0
    weighted = tagged = based = False
    room, most = len(row_out.codes), np.uint64(len(out.hashes))
    while p < stop:
        begin, first, pending = p, k, unsure
        if row + bad >= room:
            return counts(row, k, line, bad, unsure, weighted, tagged, based, FULL)
        reason = 0
        while blank(text[p]):
            p += ONE
        if text[p] == NEWLINE:
            p += ONE
            line += 1
            continue
        code, label, weight, tag, tag_stop, words = np.int64(-1), np.nan, 1.0, ZERO, ZERO, 0
        while text[p] != BAR:
            if text[p] == NEWLINE:
                reason = NO_BAR
                break
            start = p
            c = text[p]
            while c != 32 and c != 9 and c != 13 and c != NEWLINE and c != BAR:
                p += ONE
                c = text[p]
            end = p
            while blank(text[p]):
                p += ONE
            if text[p] == BAR and (end == p or text[start] == QUOTE):
                tag, tag_stop = start + np.uint64(text[start] == QUOTE), end
                tagged = True
                break
            words += 1
            if words == 1:
                if regress:
                    label, at, outcome = any_number(base, start)
                    if at != end or outcome > UNSURE:
                        reason = LABEL_TEXT
                    elif outcome == UNSURE:
                        unsure = ask(out.unsure, unsure, -row - 1, start, end)
                else:
                    code = code_of(text, start, end, hash_span(text, start, end, START), labels)
                    if code < 0:
                        return counts(row, k, line, bad, unsure, weighted, tagged, based, CROWDED_LABELS)
            elif words == 2:
                weight, at, outcome = any_number(base, start)
                weighted = True
                if at != end or outcome != GOOD or weight < 0:
                    reason = BAD_IMPORTANCE
            elif words == 3:
                _, at, outcome = any_number(base, start)
                based = True
                if at != end or outcome > UNSURE:
                    reason = BAD_BASE
            else:
                reason = TOO_MUCH
            if reason:
                p = start
                break
        if reason == 0 and words == 0 and want:
            reason = NO_LABEL
        group, seed, scale = np.int64(0), START, 1.0
        while reason == 0:
            c = text[p]
            if c == 32:
                p += ONE
                continue
            if c == BAR:
                p += ONE
                start = p
                while not ENDS[text[p]]:
                    p += ONE
                group, scale = np.int64(0), 1.0
                if p > start:
                    group = code_of(text, start, p, hash_span(text, start, p, START), spaces)
                    if group < 0 or group >= len(seeds):
                        return counts(row, k, line, bad, unsure, weighted, tagged, based, CROWDED_SPACES)
                    if seeds[group] == ZERO:
                        seeds[group] = seed_of(text, start, p)
                seed = seeds[group]
                if text[p] == COLON:
                    start = p + ONE
                    scale, p, outcome = any_number(base, start)
                    c = text[p]
                    if outcome != GOOD or not (c == 32 or c == 10 or c == BAR or blank(c)):
                        reason, p = BAD_SCALE, start
                        break
                continue
            if c == NEWLINE:
                break
            if c == 9 or c == 13:
                p += ONE
                continue
            start = p
            ends = ends_among(base, p, AFTER_BLANK, A_COLON, A_BAR)
            p += trailing_zeros(ends)
            if ends == ZERO or (text[p] != COLON and not ENDS[text[p]]):
                p = end_of_name(text, start)
                ends = ZERO
            length = p - start
            if length == ZERO:
                reason = NO_NAME
                break
            value = 1.0
            if text[p] == COLON:
                at = p + ONE
                # ``ends`` also has the end of the value, so the next feature does not wait for its conversion.
                p = start + trailing_zeros(ends & (ends - ONE))
                c = text[p]
                usual = c == 32 or c == NEWLINE
                if usual:
                    value, usual = fraction(base, at, p)
                if not usual:
                    mantissa, digits, after, end = decimal(base, at)
                    outcome = GOOD
                    if end == p and digits - ONE < DIGITS and mantissa <= EXACT and ENDS[c]:
                        value = np.float64(np.int64(mantissa)) / POWERS[after]
                        if text[at] == 45:
                            value = -value
                    else:
                        value, p, outcome = number(base, at)
                        c = text[p]
                    if not ENDS[c] or c == COLON:
                        outcome = MALFORMED
                    if outcome != GOOD:
                        if outcome == UNSURE:
                            if unsure < len(out.scales):
                                out.scales[unsure] = scale
                            unsure = ask(out.unsure, unsure, np.int64(k), at, p)
                        elif outcome == MISSING and drop:
                            continue
                        else:
                            p, reason = at, why_not(outcome, VALUE_TEXT, VALUE_INFINITE, VALUE_MISSING)
                            break
            if k >= most:
                return counts(row, k, line, bad, unsure, weighted, tagged, based, FULL)
            # the same as hash_span, inline because most names have at most eight bytes
            h = mix(seed, length)
            at = start
            rest = length
            while rest >= EIGHT:
                h = mix(h, eight(text, at))
                at += EIGHT
                rest -= EIGHT
            if rest:
                h = mix(h, eight(text, at) & ((ONE << (rest << BITS)) - ONE))
            out.hashes[k] = finish(h)
            out.values[k] = value * scale
            out.starts[k] = start
            out.lengths[k] = length
            out.groups[k] = group
            k += ONE
        if reason:
            bad = note_bad(row_out, bad, line, begin, p, reason)
            k, unsure = first, pending
        else:
            row_out.codes[row], row_out.numbers[row], row_out.weights[row] = code, label, weight
            row_out.tags[row, 0], row_out.tags[row, 1], row_out.lines[row] = tag, tag_stop, line
            row += 1
            row_out.indptr[row] = k
        while text[p] != NEWLINE:
            p += ONE
        p += ONE
        line += 1
    return counts(row, k, line, bad, unsure, weighted, tagged, based, DONE)


@compiled
def counts(row, k, line, bad, unsure, weighted, tagged, based, stopped):  # type: ignore[no-untyped-def]
    return row, np.int64(k), line, bad, unsure, np.int64(weighted), np.int64(tagged), np.int64(based), stopped


@reader("vw", extensions=[".vw"])
class VowpalWabbit(Lines):
    """Vowpal Wabbit's text format, one row a line."""

    unused_options: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("target", "weight", "id", "group", "types"), "the rows have no columns but names"
    )
    label_separator: ClassVar[str | None] = ","  # 1,3 is labels 1 and 3

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.room: Room = Room()

    def parse(self, block: Block) -> Parsed:
        options, text = self.options, block.text
        labels, spaces = new_table(), new_table()
        for array in (spaces.hashes, spaces.starts, spaces.lengths):
            array[0] = 0  # code 0 is the default namespace, which has no name
        spaces.size[0] = 1
        seeds = np.zeros(len(spaces.hashes), dtype=np.uint64)
        seeds[0] = START
        drop = options.missing != "error"
        unsure = UNSURE_ROOM
        while True:
            lines, most = self.room.of(block)
            rows, features = new_rows(lines), new_features(most, unsure)
            counts = Counts(
                *parse(text, block.stop, rows, features, labels, spaces, seeds, options.regress, options.labelled, drop)
            )
            if counts.stopped == CROWDED_LABELS:
                labels = grown(labels)
            elif counts.stopped == CROWDED_SPACES:
                spaces = grown(spaces)
                seeds = np.concatenate([seeds, np.zeros(len(spaces.hashes) - len(seeds), dtype=np.uint64)])
            elif counts.stopped == FULL:
                self.room.more()
            elif counts.unsure > unsure:
                unsure = counts.unsure
            else:
                break
        self.room.took(block, counts.rows + counts.bad, counts.features)
        bad = bad_lines(block, rows, counts.bad, REASONS)
        n, most = counts.rows, counts.features
        indptr, asked = rows.indptr[: n + 1], features.unsure[: counts.unsure]
        spoiled = fix_unsure(text, asked, features.values, rows.numbers, indptr)
        scaled = asked[:, 0] >= 0
        with np.errstate(over="ignore", invalid="ignore"):
            features.values[asked[scaled, 0]] *= features.scales[: counts.unsure][scaled]
        if not all_finite(
            features.values[:most]
        ):  # a product with a scale may be infinite, which the loop does not check
            spoiled |= rows_of_infinite(features.values, np.arange(most), indptr)
        prefixes = ("", *(name.decode("utf-8", "replace") + "^" for name in spaces.names(text)[1:]))
        named = NamedRows(
            indptr,
            features.hashes[:most],
            features.values[:most],
            features.starts[:most],
            features.lengths[:most],
            features.groups[:most],
            text,
            prefixes,
        )
        parsed = Parsed(named, rows.lines[:n], counts.lines, bad=bad)
        if counts.weighted:
            parsed.weight = rows.weights[:n]
        if counts.tagged:
            parsed.ids = np.empty(n, dtype=object)
            for row, (start, stop) in enumerate(rows.tags[:n].tolist()):
                if stop > start:
                    parsed.ids[row] = text[start:stop].tobytes().decode("utf-8", "replace")
        if counts.based and BASE_NOTE not in self.notes:
            self.notes.append(BASE_NOTE)
        if options.regress:
            parsed.numbers = rows.numbers[:n]
        else:
            spoiled |= take_labels(parsed, rows.codes[:n], labels.names(text))
        spoiled |= wrong_bytes(block, parsed.lines)
        drop_rows(parsed, block, spoiled)
        return parsed

"""The common part of formats with one row a line.

``Lines`` is their base class. The compiled loops of svmlight and Vowpal Wabbit text share the list of bad rows, the
guess of how much memory a block needs, and ``Table``, which gives labels and namespaces codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import BITS, eight
from onlearn.data.bad_rows import TOLD, Bad, PieceBad
from onlearn.data.batch import finish, mix, rows_at
from onlearn.data.blocks import Block, blocks, further_bad, line_ends, raw_line
from onlearn.data.cut_points import line_starts_near, spans
from onlearn.data.formats.numbers import INFINITE, MISSING
from onlearn.data.parts import Part
from onlearn.data.registry import Apply, Format, Parsed
from onlearn.data.sources import Stream

CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
ONE, EIGHT, SIXTY_FOUR = np.uint64(1), np.uint64(8), np.uint64(64)
TOP_BITS = np.uint64(0x8080808080808080)  # set in bytes that are not ASCII
INFINITE_NUMBER = "a number is infinite"
SAMPLE = 1 << 20  # bytes of a block that is large enough to predict others
SPARE = 1.25  # memory for a block, compared with what the largest one needed
PLACES = 1 << 10  # of a new table


class Lines(Format):
    """Formats with one row a line. A piece is a block of lines, and independent of other pieces."""

    def pieces(self, stream: Stream) -> Iterator[Any]:
        return blocks(stream, self.options.block_size, longest=self.options.max_line)

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        return spans(line_starts_near(stream.source, stream.size, count), stream.size)


class Room:
    """The memory for the rows and features of a block, guessed from its size and from earlier blocks.

    Counting them first would take a tenth of the time of parsing. Allocating much more than needed would take as long,
    because each block would use memory that has not been used before.
    """

    def __init__(self) -> None:
        self.rows: float = 1 / 32  # for each byte
        self.features: float = 1 / 8
        self.most: tuple[float, float] = (0.0, 0.0)  # the most that a block needed

    def of(self, block: Block) -> tuple[int, int]:
        """The numbers of rows and of features to allocate."""
        return int(self.rows * block.stop) + 16, int(self.features * block.stop) + 16

    def took(self, block: Block, rows: int, features: int) -> None:
        """Record the numbers of rows and features of a block."""
        if block.stop >= SAMPLE:
            self.most = max(self.most[0], rows / block.stop), max(self.most[1], features / block.stop)
            self.rows, self.features = (min(1.0, SPARE * most) for most in self.most)

    def more(self) -> None:
        """Allocate twice as much, for this block and later ones."""
        self.rows, self.features = min(1.0, 2 * self.rows), min(1.0, 2 * self.features)
        self.most = self.rows / SPARE, self.features / SPARE


def bad_lines(block: Block, rows: Any, count: int, reasons: tuple[str, ...]) -> list[Bad]:
    """The bad rows that a compiled loop has recorded."""
    found = []
    for n in range(min(count, TOLD)):
        start = int(rows.bad_starts[n])
        column = int(rows.bad_places[n]) - start + 1
        reason = reasons[int(rows.bad_reasons[n])]
        found.append(Bad(int(rows.bad_lines[n]), column, reason, raw_line(block.text, start, block.stop)))
    if count > TOLD:
        starts, ends = rows.bad_starts[TOLD:count], line_ends(block.text[: block.stop])
        stops = ends[np.searchsorted(ends, starts, side="right")]
        found += further_bad(block.text, int(rows.bad_lines[TOLD]), starts, stops)
    return found


def fix_unsure(
    text: np.ndarray, unsure: np.ndarray, values: np.ndarray, labels: np.ndarray, indptr: np.ndarray
) -> dict[int, str]:
    """Convert the numbers that the loop could not round; returns the rows with infinite ones, and the reason."""
    spoiled = {}
    for position, start, stop in unsure.tolist():
        value = float(text[start:stop].tobytes())
        if position >= 0:
            values[position] = value
        else:
            labels[-position - 1] = value
            if abs(value) == float("inf"):
                spoiled[-position - 1] = INFINITE_NUMBER
    return spoiled | rows_of_infinite(values, unsure[unsure[:, 0] >= 0, 0], indptr)


def rows_of_infinite(values: np.ndarray, positions: np.ndarray, indptr: np.ndarray) -> dict[int, str]:
    """The rows that have an infinite value at one of some positions, with that as the reason."""
    infinite = positions[np.isinf(values[positions])]
    return dict.fromkeys((np.searchsorted(indptr, infinite, side="right") - 1).tolist(), INFINITE_NUMBER)


def drop_rows(parsed: Parsed, block: Block, spoiled: dict[int, str]) -> None:
    """Remove rows that were parsed and turned out to be bad; ``spoiled`` gives the reason by row."""
    if not spoiled:
        return
    starts = line_starts(block)
    lines = ((int(parsed.lines[row]), reason) for row, reason in sorted(spoiled.items()))
    parsed.bad += PieceBad(
        Bad(line, 0, reason, raw_line(block.text, int(starts[line]), block.stop)) for line, reason in lines
    ).all()
    parsed.bad.sort(key=lambda bad: bad.line)
    keep_rows(parsed, np.setdiff1d(np.arange(len(parsed.lines)), list(spoiled)))


def keep_rows(parsed: Parsed, keep: np.ndarray) -> None:
    """Remove all rows but those at some positions."""
    parsed.rows, parsed.lines = rows_at(parsed.rows, keep), parsed.lines[keep]
    for name in ("codes", "numbers", "groups", "weight", "ids"):
        if (array := getattr(parsed, name)) is not None:
            setattr(parsed, name, array[keep])


def take_labels(parsed: Parsed, codes: np.ndarray, names: list[bytes]) -> dict[int, str]:
    """Set the labels; returns the rows whose label is none that a text file has, and the reason."""
    parsed.codes, wrong = codes, {}
    for n, name in enumerate(names):
        if reason := what_is_wrong_with(name):
            wrong[n] = reason
        parsed.names.append("" if reason else name.decode())
    if not wrong:
        return {}
    return {int(row): wrong[int(codes[row])] for row in np.flatnonzero(np.isin(codes, list(wrong)))}


def what_is_wrong_with(label: bytes) -> str:
    """Why these bytes are no label; empty if they are one.

    >>> what_is_wrong_with(b"spam"), what_is_wrong_with(b"\\x1a"), what_is_wrong_with(b"\\xff")
    ('', 'the label has a control character', 'the label is not UTF-8')
    """
    if CONTROL.search(label):
        return "the label has a control character"
    try:
        label.decode()
    except UnicodeDecodeError:
        return "the label is not UTF-8"
    return ""


def first_not_text(raw: bytes) -> int:
    """The column of the first byte that no text has, for it is not UTF-8 or NUL; 0 if there is none."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start + 1
    return raw.find(0) + 1


def not_text_at(raw: bytes, column: int, what: str = "line") -> str:
    """Why a line or row with such a byte is no text."""
    return f"byte {column} of the {what} is {'not UTF-8' if raw[column - 1] else 'NUL'}"


def line_starts(block: Block) -> np.ndarray:
    """The place where each line of a block begins."""
    ends = np.flatnonzero(block.text[: block.stop] == 10)
    return np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])


def wrong_bytes(block: Block, lines: np.ndarray) -> dict[int, str]:
    """The rows that are no text, for they are not UTF-8 or have a NUL byte, and the reason with the place.

    ``lines`` gives the line of each row.
    """
    text = block.text[: block.stop]
    wrong: dict[int, str] = {}
    if first_wrong(text, 0, block.stop) < block.stop:
        starts = line_starts(block)
        places = np.empty(len(lines), dtype=np.int64)
        wrong_lines(text, starts, block.stop, lines, places)
        for row in np.flatnonzero(places >= 0).tolist():
            wrong[row] = f"byte {int(places[row] - starts[lines[row]]) + 1} of the line is not UTF-8"
    if len(text) and not text.min():
        starts, nuls = line_starts(block), np.flatnonzero(text == 0)
        before = np.searchsorted(nuls, np.append(starts, block.stop))  # NUL bytes before each line, and all
        for row in np.flatnonzero(before[lines] < before[lines + 1]).tolist():
            place = int(nuls[before[lines[row]]] - starts[lines[row]]) + 1
            wrong.setdefault(row, f"byte {place} of the line is NUL")
    return wrong


@compiled
def note_bad(out: Any, bad: Any, line: Any, begin: Any, place: Any, reason: Any) -> Any:
    """Record a bad row; returns the number of bad rows."""
    out.bad_lines[bad], out.bad_starts[bad] = line, begin
    out.bad_places[bad], out.bad_reasons[bad] = place, reason
    return bad + 1


@compiled
def why_not(outcome: Any, malformed: Any, infinite: Any, missing: Any) -> Any:
    """The reason why a value is refused, as one of the caller's numbers for reasons."""
    if outcome == MISSING:
        return missing
    return infinite if outcome == INFINITE else malformed


@compiled
def past_ascii(text: Any, p: Any, stop: Any) -> Any:
    """The end of the ASCII text that begins at p, in steps of 64 bytes. Most texts are ASCII."""
    while p + SIXTY_FOUR <= stop:
        found = np.uint64(0)
        for k in range(np.uint64(8)):
            found |= eight(text, p + EIGHT * np.uint64(k))
        if found & TOP_BITS != np.uint64(0):
            break
        p += SIXTY_FOUR
    return p


@compiled
def first_wrong(text: Any, start: Any, stop: Any) -> Any:
    """The first byte in ``text[start:stop]`` that does not begin a valid character; ``stop`` if there is none."""
    stop = np.uint64(stop)
    p = past_ascii(text, np.uint64(start), stop)
    while p < stop:
        if p + EIGHT <= stop and eight(text, p) & TOP_BITS == np.uint64(0):
            p += EIGHT
            continue
        c = text[p]
        if c < 128:
            p += ONE
            continue
        # The range of the second byte excludes overlong forms, surrogates and code points above U+10FFFF.
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
    """Set the place of the first wrong byte of some lines, or -1; ``starts`` are the starts of all lines."""
    for n in range(len(rows)):
        line = rows[n]
        end = starts[line + 1] if line + 1 < len(starts) else stop
        place = first_wrong(text, starts[line], end)
        places[n] = place if place < end else -1


class Table(NamedTuple):
    """A hash table (open addressing) from byte strings to codes. An entry refers to a part of the text."""

    places: np.ndarray  # int64: the code in this place, or -1
    hashes: np.ndarray  # uint64, by code, as all below
    starts: np.ndarray  # uint64
    lengths: np.ndarray  # uint64
    size: np.ndarray  # int64, one number: the number of entries

    def names(self, text: np.ndarray) -> list[bytes]:
        """All entries by code."""
        count = int(self.size[0])
        places = zip(self.starts[:count].tolist(), self.lengths[:count].tolist())
        return [text[start : start + length].tobytes() for start, length in places]


def new_table(size: int = PLACES) -> Table:
    """An empty table."""
    hashes, starts, lengths = (np.empty(size // 2 + 1, dtype=np.uint64) for _ in range(3))
    return Table(np.full(size, -1, dtype=np.int64), hashes, starts, lengths, np.zeros(1, dtype=np.int64))


@compiled
def hash_span(text: Any, start: Any, stop: Any, seed: Any) -> Any:
    """The same as ``batch.hash_bytes``, for a text with padding: it reads the last bytes at once."""
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
    """Whether two parts of a text are equal."""
    while length >= EIGHT:
        if eight(text, first) != eight(text, second):
            return False
        first += EIGHT
        second += EIGHT
        length -= EIGHT
    difference = eight(text, first) ^ eight(text, second)
    return difference & ((ONE << (length << BITS)) - ONE) == np.uint64(0)


@compiled
def code_of(text: Any, start: Any, stop: Any, h: Any, table: Any) -> Any:
    """The code of ``text[start:stop]`` with hash h, a new one if it has none; -1 if the table must grow first."""
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
    insert_all(large.places, large.hashes, count)
    return large


@compiled
def insert_all(places: Any, hashes: Any, count: Any) -> None:
    """Insert the codes below ``count`` into an empty table."""
    mask = np.uint64(len(places) - 1)
    for code in range(count):
        place = hashes[code] & mask
        while places[place] >= 0:
            place = (place + ONE) & mask
        places[place] = code

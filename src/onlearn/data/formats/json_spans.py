"""Lines of JSON, parsed: by Arrow where it can, else line by line.

A compiled loop first checks that each line is one object, and how deeply it is nested: Arrow's parser ends the process
at a ``null`` instead of an object, and deep nesting exhausts the stack of any parser. Lines that fail are left out. If
Arrow refuses the others, because a line is malformed or because a column has values of several kinds, they are divided
until it accepts a part, or the part is small and is parsed line by line. Both ways give the same rows.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import BITS, eight, equal, trailing_zeros
from onlearn.data.arrow import in_one_piece
from onlearn.data.bad_rows import TOLD, Bad, PieceBad
from onlearn.data.blocks import BLANK, Block, further_bad, inside
from onlearn.data.formats.json_values import json_value
from onlearn.data.formats.scanning import wrong_bytes
from onlearn.data.table_roles import flat, spread

ZERO, ONE = np.uint64(0), np.uint64(1)
NEWLINE, QUOTE, MINUS, BACKSLASH = 10, 34, 45, 92
DEEPEST = 64  # nested brackets
PARTS = 8  # of lines that Arrow refuses
FEW = 1000  # lines that are parsed one by one if Arrow refuses them
NOT_AN_OBJECT, NOT_A_NUMBER = -1, -2  # instead of a depth
A_NEWLINE, A_QUOTE, A_BACKSLASH = np.uint64(NEWLINE), np.uint64(QUOTE), np.uint64(BACKSLASH)


@compiled
def end_of_string(text: Any, p: Any) -> Any:
    """The end of the string that begins at p: a quote, or the end of the line. Reads eight bytes at a time."""
    while True:
        word = eight(text, p)
        ends = equal(word, A_QUOTE) | equal(word, A_BACKSLASH) | equal(word, A_NEWLINE)
        p += trailing_zeros(ends) >> BITS  # eight if no byte is one of them
        if ends != ZERO:
            if text[p] != BACKSLASH:
                return p
            p += ONE  # the escaped character does not end the string, unless it is the end of the line
            if text[p] != NEWLINE:
                p += ONE


@compiled
def depths(text: Any, starts: Any, lines: Any, found: Any) -> None:
    """Set the depth of nested brackets of each line; NOT_AN_OBJECT for a line that is not one object.

    NOT_A_NUMBER if a number is Infinity, or NaN in a list, where no missing value can stand.
    """
    for n in range(len(lines)):
        p = np.uint64(starts[lines[n]])
        depth, lists, most, values = 0, 0, 0, 0
        whole, finite = True, True
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
                lists += c == 91
                most = max(most, depth)
            elif c == 125 or c == 93:
                depth -= 1
                lists -= c == 93
                whole &= depth >= 0
            elif depth == 0:
                whole &= c == 32 or c == 9 or c == 13
            elif c == 73 or c == 78:  # no other word of JSON has an I or an N
                finite &= c == 78 and lists == 0 and text[p - ONE] != MINUS  # Arrow would take -NaN
            p += ONE
            c = text[p]
        if whole and depth == 0 and values == 1:
            found[n] = most if finite else NOT_A_NUMBER
        else:
            found[n] = NOT_AN_OBJECT


class Span(NamedTuple):
    """Consecutive rows of a piece: by Arrow as columns, or line by line as dicts of plain columns."""

    lines: np.ndarray
    columns: dict[str, Any]  # Arrow arrays; empty if there are dicts
    rows: list[dict[str, Any]] | None = None

    @property
    def names(self) -> list[str]:
        """The columns in order of appearance."""
        return [*self.columns] if self.rows is None else [*dict.fromkeys(name for row in self.rows for name in row)]


def parsed_spans(block: Block, starts: np.ndarray, bad: PieceBad) -> list[Span]:
    """Parse the lines of a block; those that cannot be read go to ``bad``."""
    lines = lines_with_text(block, starts)
    deep = np.empty(len(lines), dtype=np.int64)
    depths(block.text, starts, lines, deep)
    fit = (deep > 0) & (deep <= DEEPEST)
    if wrong_bytes(block, lines):
        fit &= [*map(is_utf8, raw_lines(block, starts, lines))]
    text, ends = block.text[: block.stop], np.append(starts[1:], block.stop)
    if not fit.all():
        unfit = lines[~fit]  # none of them is a row: only the reasons are to be found
        by_line(block, starts, unfit[:TOLD], deep[~fit][:TOLD], bad)
        if len(further := unfit[TOLD:]):
            bad.extend(further_bad(text, int(further[0]), starts[further], ends[further]))
        text = blanked(text, starts, lines[~fit])
        lines = lines[fit]
    made: list[Span] = []
    parts = [(0, len(lines))]
    while parts:
        first, stop = parts.pop()
        if first == stop:
            continue
        some = lines[first:stop]
        columns = by_arrow(text[starts[some[0]] : ends[some[-1]]], len(some))
        if columns is not None:
            made.append(Span(some, columns))
        elif len(some) <= FEW:
            made.append(by_line(block, starts, some, np.ones(len(some)), bad))
        else:
            parts += reversed([*pairwise(first + n * len(some) // PARTS for n in range(PARTS + 1))])
    return made


def lines_with_text(block: Block, starts: np.ndarray) -> np.ndarray:
    """The numbers of lines that are not blank."""
    ends = np.append(starts[1:], block.stop)
    short = np.flatnonzero((ends - starts < 100) & BLANK[block.text[starts]])
    blank = [line for line in short.tolist() if not block.text[starts[line] : ends[line]].tobytes().strip(b" \t\r\n")]
    return np.delete(np.arange(len(starts)), blank)


def raw_lines(block: Block, starts: np.ndarray, lines: np.ndarray) -> list[bytes]:
    """Some lines of a block."""
    content, ends = block.text[: block.stop].tobytes(), np.append(starts[1:], block.stop)
    return [content[start:end].removesuffix(b"\n") for start, end in zip(starts[lines].tolist(), ends[lines].tolist())]


def is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def blanked(text: np.ndarray, starts: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """A copy of a text in which some lines are blank."""
    text, ends = text.copy(), np.append(starts[1:], len(text))
    text[inside(len(text), starts[lines], ends[lines] - 1)] = ord(" ")
    return text


def by_arrow(text: np.ndarray, count: int) -> dict[str, Any] | None:
    """Parse lines by Arrow; None if it refuses them, or finds another number of rows."""
    import pyarrow as pa

    table = read_json(text, count, {})
    if table is None:
        return None
    order = table.column_names
    kinds = {field.name: without_times(field.type) for field in table.schema}
    kinds = {name: kind for name, kind in kinds.items() if kind != table[name].type or not is_valid(table[name])}
    if kinds:  # a string that looks like a date stays a string, and a list keeps its nulls
        table = read_json(text, count, kinds)
        if table is None or not is_valid(table):
            return None
    whole = {name: pa.uint64() for name, column in zip(table.column_names, table.columns) if may_be_unsigned(column)}
    if whole and (exact := read_json(text, count, kinds | whole)) is not None:
        table = exact
    table = flat(table.select(order))  # columns whose types are given come first in a table
    names = table.column_names
    return dict(zip(names, map(in_one_piece, table.columns))) if len(set(names)) == len(names) else None


def read_json(text: np.ndarray, count: int, kinds: dict[str, Any]) -> Any:
    """A table of lines in which some columns have the types that are given; None if Arrow refuses that."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    how = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    schema = arrow_json.ParseOptions(explicit_schema=pa.schema([*kinds.items()]))
    try:
        table = arrow_json.read_json(pa.BufferReader(pa.py_buffer(text)), how, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None
    return table if table.num_rows == count and len(set(table.column_names)) == table.num_columns else None


def is_valid(table: Any) -> bool:
    """Whether a table or a column is whole: the last list ends beyond the values if Arrow has lost some.

    It loses nulls in lists that come before the first value of their column, unless the type of the column is given.
    """
    import pyarrow as pa

    try:
        table.validate()
    except pa.ArrowInvalid:
        return False
    return True


def may_be_unsigned(column: Any) -> bool:
    """Whether floats may be whole numbers that only unsigned integers hold, such as hashes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return False
    least, most = pc.min_max(column).as_py().values()
    return most is not None and least >= 0 and 2.0**63 <= most < 2.0**64


def without_times(kind: Any) -> Any:
    """An Arrow type with strings instead of times."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.list_(without_times(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, without_times(field.type)) for field in kind])
    return pa.string() if pa.types.is_temporal(kind) else kind


def by_line(block: Block, starts: np.ndarray, lines: np.ndarray, deep: np.ndarray, bad: PieceBad) -> Span:
    """Parse line by line."""
    rows, kept = [], []
    for line, depth, raw in zip(lines.tolist(), deep.tolist(), raw_lines(block, starts, lines)):
        try:
            rows.append(parsed_line(raw, depth))
            kept.append(line)
        except UnicodeDecodeError as error:
            bad.append(Bad(line, error.start + 1, f"byte {error.start + 1} of the line is not UTF-8", raw))
        except json.JSONDecodeError as error:
            bad.append(Bad(line, error.colno, f"it is not JSON: {error.msg}", raw))
        except WrongLineError as error:
            bad.append(Bad(line, error.column, str(error), raw))
        except (RecursionError, ValueError):
            bad.append(Bad(line, 0, "it is not JSON that can be read", raw))
    return Span(np.array(kept, dtype=np.int64), {}, rows)


class WrongLineError(ValueError):
    """A line is JSON, but no row."""

    column: int = 0


def parsed_line(raw: bytes, depth: int = 1) -> dict[str, Any]:
    """The row that a line holds; raises ValueError or RecursionError if there is none."""
    if depth > DEEPEST:
        raise WrongLineError(f"it is nested more than {DEEPEST} deep")
    row = json_value(raw)
    if not isinstance(row, dict):
        error = WrongLineError("it is not a JSON object")
        error.column = 1
        raise error
    if depth == NOT_AN_OBJECT:
        raise WrongLineError("it is not JSON that can be read")
    if depth == NOT_A_NUMBER:
        raise WrongLineError("it holds Infinity, or NaN in a list, which is not JSON")
    if b"\\u" in raw and has_half_characters(row):
        raise WrongLineError("a text has half a character (a lone surrogate)")
    try:
        return spread(row)
    except ValueError as error:
        raise WrongLineError(str(error)) from None


def has_half_characters(row: dict[str, Any]) -> bool:
    """Whether a text has half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False

"""JSON lines: each line is an object, each key a column.

The first block with a column decides about its type: numbers are float64, other values strings or what Arrow makes of
them (lists stay lists, objects become columns named ``outer.inner``). Later numbers in a column of strings become
strings; a string in a column of numbers makes its row a bad one. Keys that appear later add columns.

A compiled loop first checks that each line is one object, and how deeply it is nested: Arrow's parser ends the process
at a ``null`` instead of an object, and deep nesting exhausts the stack of any parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import BITS, eight, equal, trailing_zeros
from onlearn.data.arrow import (
    booleans,
    from_numpy,
    from_strings,
    from_values,
    in_one_piece,
    is_missing,
    null,
    numbers,
    scalar,
)
from onlearn.data.bad_rows import Bad
from onlearn.data.blocks import Block, blocks, raw_line
from onlearn.data.cut_points import line_starts_near, spans
from onlearn.data.formats.scanning import keep_rows, line_starts, wrong_bytes
from onlearn.data.parts import Part
from onlearn.data.registry import Apply, Format, Options, Parsed, reader
from onlearn.data.sources import Stream
from onlearn.data.table_roles import MISSING, Roles, as_numbers, flat, spread, take_roles, usual_target

ZERO, ONE = np.uint64(0), np.uint64(1)
NEWLINE, QUOTE, BACKSLASH = 10, 34, 92
DEEPEST = 64  # nested brackets
LARGE = 2**53  # larger whole numbers are names, not amounts
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
    """Set the depth of nested brackets of each line; -1 for a line that is not one object."""
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


class Piece(NamedTuple):
    """A block of the file ``where``."""

    block: Block
    where: str


@reader("jsonl", extensions=[".jsonl", ".ndjson", ".json"])
class JsonLines(Format):
    """JSON lines, one row a line."""

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.kinds: dict[str, Any] = {}
        self.roles: Roles | None = None

    def pieces(self, stream: Stream) -> Iterator[Piece]:
        for block in blocks(stream, self.options.block_size, longest=self.options.max_line):
            yield Piece(block, stream.source.name)
            import pyarrow.compute  # noqa: F401  (``settle`` needs it: imported while the first pieces are parsed)

    def parse(self, piece: Piece) -> Parsed:
        block = piece.block
        starts = line_starts(block)
        lines = lines_with_text(block, starts)
        deep = np.empty(len(lines), dtype=np.int64)
        depths(block.text, starts, lines, deep)
        plain = not wrong_bytes(block, lines) and ((deep > 0) & (deep <= DEEPEST)).all()
        table = by_arrow(block, len(lines)) if plain else None
        if table is not None and self._has_rounded_names(table):
            table = None
        bad: list[Bad] = []
        if table is None:
            table, lines = by_line(block, starts, lines, deep, bad)
        parsed = Parsed(table, lines, len(starts), bad=bad)
        parsed.table = piece, starts
        return parsed

    def _has_rounded_names(self, table: Any) -> bool:
        """Whether labels or ids are whole numbers that are too large for Arrow, which has rounded them to floats."""
        import pyarrow as pa

        named = table.column_names
        target = usual_target(named) if self.options.target is None else self.options.target
        names = {self.options.id, None if self.options.regress else target}
        columns = [in_one_piece(table.column(name)) for name in named if name in names]
        return any(pa.types.is_floating(one.type) and bool((np.abs(numbers(one)) >= LARGE).any()) for one in columns)

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        return spans(line_starts_near(stream.source, stream.size, count), stream.size)

    def found(self) -> dict[str, Any]:
        return {} if self.roles is None else self.roles.found()

    def decisions(self) -> Any:
        return None if self.roles is None else (dict(self.kinds), self.roles)

    def resume(self, decisions: Any) -> None:
        kinds, roles = decisions
        self.kinds, self.roles = dict(kinds), roles.with_options(self.options)

    def settle(self, parsed: Parsed) -> Parsed:
        """Convert columns to the types that they have in earlier pieces."""
        import pyarrow as pa

        (piece, starts), parsed.table = parsed.table, None
        table = parsed.rows

        def raw(row: int) -> bytes:
            return raw_line(piece.block.text, int(starts[parsed.lines[row]]), piece.block.stop)

        kept = np.ones(table.num_rows, dtype=bool)
        here = dict(zip(table.column_names, table.columns))
        columns: dict[str, Any] = {}
        for name in dict.fromkeys([*self.kinds, *here]):
            if name not in here:
                columns[name] = pa.nulls(table.num_rows, self.kinds[name])
                continue
            column = in_one_piece(here[name])
            if pa.types.is_null(column.type):
                columns[name] = column.cast(self.kinds[name]) if name in self.kinds else column
                continue
            kind = self.kinds.get(name)
            if kind is None:
                kind = self.options.types.get(name) or kind_of(column)
                if kind in ("number", "string"):
                    kind = pa.float64() if kind == "number" else pa.string()
                self.kinds[name] = kind
            columns[name], wrong = converted(column, kind)
            if not wrong.any():
                continue
            for row in np.flatnonzero(wrong & kept).tolist():
                reason = f"{name!r} is not {named(kind)}, as it was before"
                parsed.bad.append(Bad(int(parsed.lines[row]), 0, reason, raw(row)))
            kept &= ~wrong
        if columns.keys() & {*self.options.expected}:  # a key that no row has gives no column
            lacking = [name for name in self.options.expected if name not in columns]
            columns.update((name, pa.nulls(table.num_rows)) for name in lacking)
        parsed.rows = pa.table(columns) if columns else table
        if not kept.all():
            keep_rows(parsed, np.flatnonzero(kept))
            parsed.bad.sort(key=lambda bad: bad.line)
        if not len(parsed.lines):
            return parsed
        if self.roles is None:
            self.roles = Roles(self.options, list(columns), piece.where, self.notes, None)
        return take_roles(parsed, self.roles.within(columns), raw)


def lines_with_text(block: Block, starts: np.ndarray) -> np.ndarray:
    """The numbers of lines that are not blank."""
    ends = np.append(starts[1:], block.stop)
    short = np.flatnonzero(ends - starts < 100)
    blank = [line for line in short.tolist() if not block.text[starts[line] : ends[line]].tobytes().strip(b" \t\r\n")]
    return np.delete(np.arange(len(starts)), blank)


def by_arrow(block: Block, count: int) -> Any:
    """Parse all lines by Arrow; None if it refuses them, or finds another number of rows."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    options = arrow_json.ReadOptions(use_threads=False, block_size=block.stop + 1)
    schema = None
    for _ in range(2):
        source = pa.BufferReader(pa.py_buffer(block.text[: block.stop]))
        try:
            table = arrow_json.read_json(source, options, arrow_json.ParseOptions(explicit_schema=schema))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return None
        if table.num_rows != count or len(set(table.column_names)) < table.num_columns:
            return None
        times = [field for field in table.schema if pa.types.is_temporal(field.type)]
        if any("timestamp" in str(field.type) or "time" in str(field.type) for field in table.schema):
            if not times:
                return None  # a time inside a list or an object
            # A string that looks like a date stays a string.
            schema = pa.schema([pa.field(field.name, pa.string()) for field in times])
            continue
        table = flat(table)
        return table if len(set(table.column_names)) == table.num_columns else None
    return None


def by_line(
    block: Block, starts: np.ndarray, lines: np.ndarray, deep: np.ndarray, bad: list[Bad]
) -> tuple[Any, np.ndarray]:
    """Parse line by line, if Arrow cannot parse all of them."""
    import pyarrow as pa

    rows, kept = [], []
    for line, depth in zip(lines.tolist(), deep.tolist()):
        raw = raw_line(block.text, int(starts[line]), block.stop)
        if depth > DEEPEST:
            bad.append(Bad(line, 0, f"it is nested more than {DEEPEST} deep", raw))
            continue
        try:
            row = json.loads(raw.decode())
        except UnicodeDecodeError as error:
            bad.append(Bad(line, error.start + 1, f"byte {error.start + 1} of the line is not UTF-8", raw))
        except json.JSONDecodeError as error:
            bad.append(Bad(line, error.colno, f"it is not JSON: {error.msg}", raw))
        except (RecursionError, ValueError):
            bad.append(Bad(line, 0, "it is not JSON that can be read", raw))
        else:
            if not isinstance(row, dict):
                bad.append(Bad(line, 1, "it is not a JSON object", raw))
                continue
            if b"\\u" in raw and has_half_characters(row):
                bad.append(Bad(line, 0, "a text has half a character (a lone surrogate)", raw))
                continue
            try:
                rows.append(spread(row))
                kept.append(line)
            except ValueError as error:
                bad.append(Bad(line, 0, str(error), raw))
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: column_of([row.get(name) for row in rows]) for name in names}
    table = pa.table(columns) if columns else pa.table({"": pa.nulls(len(rows))}).select([])
    return table, np.array(kept, dtype=np.int64)


def has_half_characters(row: dict[str, Any]) -> bool:
    """Whether a text has half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def column_of(values: list[Any]) -> Any:
    """Values of any types as one Arrow column: of their common type, else strings."""
    import pyarrow as pa

    if all(value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in values):
        if all(value is None or abs(value) <= LARGE for value in values if not isinstance(value, float)):
            floats = np.array([np.nan if value is None else float(value) for value in values])
            return from_numpy(floats, np.array([value is None for value in values], bool))
    elif all(value is None or isinstance(value, (str, bool)) for value in values) or any(
        isinstance(value, list) for value in values
    ):
        try:
            return from_values(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            pass
    return from_strings([None if value is None else written(value) for value in values])


def written(value: Any) -> str:
    """A value as a string."""
    return value if isinstance(value, str) else json.dumps(value)


def kind_of(column: Any) -> Any:
    """The type of a column from its first block on: "number", "string" or an Arrow type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type):
        extremes = pc.min_max(column).as_py()
        large = max(abs(extremes["min"] or 0), abs(extremes["max"] or 0)) > LARGE
        return "string" if large else "number"
    return "number" if pa.types.is_floating(column.type) else column.type


def converted(column: Any, kind: Any) -> tuple[Any, np.ndarray]:
    """Convert a column to a type, and say which rows cannot be converted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    none = np.zeros(len(column), dtype=bool)
    if pa.types.is_string(column.type) and pa.types.is_string(kind):
        missing = pc.is_in(column, value_set=from_strings(MISSING))
        return (pc.if_else(missing, null(column.type), column) if pc.any(missing).as_py() else column), none
    if column.type == kind:
        return column, none
    if pa.types.is_floating(kind):
        if pa.types.is_string(column.type):
            column, _ = converted(column, pa.string())
        if pa.types.is_nested(column.type):
            return pa.nulls(len(column), kind), ~is_missing(column)
        values, wrong = as_numbers(column)
        return from_numpy(values, is_missing(column) | wrong), wrong
    if pa.types.is_string(kind):
        if pa.types.is_nested(column.type):
            return from_strings([None if value is None else json.dumps(value) for value in column.to_pylist()]), none
        return column.cast(kind), none
    if pa.types.is_boolean(kind):
        return truths(column)
    try:
        return column.cast(kind), none
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(column), kind), ~is_missing(column)


def truths(column: Any) -> tuple[Any, np.ndarray]:
    """Convert a column to booleans, and say which rows are neither true nor false. Arrow would convert any number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return pa.nulls(len(column), pa.bool_()), ~is_missing(column)
    words, _ = converted(column, pa.string())
    # booleans among values of other types are written like this
    true, false = pc.equal(words, scalar("true")), pc.equal(words, scalar("false"))
    either = pc.fill_null(pc.or_(true, false), scalar(True))
    return pc.if_else(either, true, null(pa.bool_())), ~booleans(either)


def named(kind: Any) -> str:
    """The name of a type in messages."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "true or false"
    return f"a {'number' if kind == pa.float64() else kind}"

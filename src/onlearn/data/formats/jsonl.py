"""JSON lines: each line is an object, each key a column.

The first block with a column decides about its kind (see ``json_values``): numbers are float64, values of several
kinds are strings, lists stay lists, objects become columns named ``outer.inner``. Later numbers in a column of strings
become strings; a string in a column of numbers makes its row a bad one. Keys that appear later add columns.

A compiled loop first checks that each line is one object, and how deeply it is nested: Arrow's parser ends the process
at a ``null`` instead of an object, and deep nesting exhausts the stack of any parser. Lines that fail are left out. If
Arrow refuses the others, because a line is malformed or because a column has values of several kinds, they are divided
until it accepts a part, or the part is small and is parsed line by line. Both ways give the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import BITS, eight, equal, trailing_zeros
from onlearn.data.arrow import in_one_piece
from onlearn.data.bad_rows import Bad
from onlearn.data.cut_points import line_starts_near, spans
from onlearn.data.formats.json_values import (
    column_of,
    completed,
    converted,
    in_common,
    kind_of_column,
    kind_of_names,
    kind_of_values,
    named,
    rounded,
)
from onlearn.data.formats.scanning import keep_rows, line_starts, wrong_bytes
from onlearn.data.parts import Part
from onlearn.data.registry import Apply, Format, Options, Parsed, reader
from onlearn.data.sources import Block, Stream, blocks, raw_line
from onlearn.data.table_roles import KEPT_ID, Roles, flat, spread, take_roles

ZERO, ONE = np.uint64(0), np.uint64(1)
NEWLINE, QUOTE, BACKSLASH = 10, 34, 92
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
                finite &= c == 78 and lists == 0
            p += ONE
            c = text[p]
        if whole and depth == 0 and values == 1:
            found[n] = most if finite else NOT_A_NUMBER
        else:
            found[n] = NOT_AN_OBJECT


class Piece(NamedTuple):
    """A block of the file ``where``."""

    block: Block
    where: str


class Span(NamedTuple):
    """Consecutive rows of a piece: by Arrow as columns, or line by line as dicts of plain columns."""

    lines: np.ndarray
    columns: dict[str, Any]  # Arrow arrays; empty if there are dicts
    rows: list[dict[str, Any]] | None = None

    @property
    def names(self) -> list[str]:
        """The columns in order of appearance."""
        return [*self.columns] if self.rows is None else [*dict.fromkeys(name for row in self.rows for name in row)]


@reader("jsonl", extensions=[".jsonl", ".ndjson", ".json"])
class JsonLines(Format):
    """JSON lines, one row a line."""

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.kinds: dict[str, Any] = {}
        self.roles: Roles | None = None

    def pieces(self, stream: Stream) -> Iterator[Piece]:
        for block in blocks(stream, self.options.block_size):
            yield Piece(block, stream.source.name)
            import pyarrow.compute  # noqa: F401  (``settle`` needs it: imported while the first pieces are parsed)

    def parse(self, piece: Piece) -> Parsed:
        block, bad = piece.block, list[Bad]()
        starts = line_starts(block)
        found = parsed_spans(block, starts, bad)
        lines = np.concatenate([np.zeros(0, np.int64), *(span.lines for span in found)])
        parsed = Parsed(no_columns(len(lines)), lines, len(starts), bad=sorted(bad, key=lambda one: one.line))
        parsed.table = piece, starts, found
        return parsed

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        return spans(line_starts_near(stream.source, stream.size, count), stream.size)

    def found(self) -> dict[str, Any]:
        import pyarrow as pa

        if self.roles is None:
            return {}
        said = {pa.float64(): "number", pa.string(): "string"}
        types = {name: said[kind] for name, kind in self.kinds.items() if kind in said}
        return {**self.roles.found(), "types": {n: one for n, one in types.items() if n not in self.roles.columns}}

    def decisions(self) -> Any:
        return None if self.roles is None else (dict(self.kinds), self.roles)

    def resume(self, decisions: Any) -> None:
        kinds, roles = decisions
        self.kinds, self.roles = dict(kinds), roles.with_options(self.options)

    def settle(self, parsed: Parsed) -> Parsed:
        """Convert columns to the kinds that they have in earlier pieces."""
        import pyarrow as pa

        (piece, starts, rows), parsed.table = parsed.table, None
        if not len(parsed.lines):
            return parsed

        def raw(row: int) -> bytes:
            return raw_line(piece.block.text, int(starts[parsed.lines[row]]), piece.block.stop)

        found = Values(rows, piece.block, starts)
        names = dict.fromkeys([*self.kinds, *found.names])
        if names.keys() & {*self.options.expected}:  # a key that no row has gives no column
            names |= dict.fromkeys(self.options.expected)
        if self.roles is None:
            self.roles = Roles(self.options, [*names], piece.where, self.notes, None)
        kept = np.ones(len(parsed.lines), dtype=bool)
        columns: dict[str, Any] = {}
        for name in names:
            columns[name], wrong = found.column(name, kind := self._kind(name, found))
            for row in np.flatnonzero(wrong & kept).tolist():
                reason = f"{name!r} is not {named(kind)}, as it was before"
                parsed.bad.append(Bad(int(parsed.lines[row]), 0, reason, raw(row)))
            kept &= ~wrong
        if self.options.id_kept and self.roles.id in columns:
            columns[KEPT_ID], _ = found.column(self.roles.id, pa.string())
        if columns:
            parsed.rows = pa.table(columns)
        if not kept.all():
            keep_rows(parsed, np.flatnonzero(kept))
            parsed.bad.sort(key=lambda bad: bad.line)
        return take_roles(parsed, self.roles.within(columns), raw) if len(parsed.lines) else parsed

    def _kind(self, name: str, found: Values) -> Any:
        """The kind of a column, which its first values decide unless ``types`` does."""
        import pyarrow as pa

        kind = self.kinds.get(name, pa.null())
        if not (pa.types.is_null(kind) or pa.types.is_nested(kind)):
            return kind
        if name in self.options.types:
            new = pa.float64() if self.options.types[name] == "number" else pa.string()
        else:
            new = found.kind(name)
            if self._holds_names(name):
                new = kind_of_names(new, self.options.multilabel and found.has_lists(name))
        kind = completed(kind, new)
        if not pa.types.is_null(kind):
            self.kinds[name] = kind
        return kind

    def _holds_names(self, name: str) -> bool:
        """Whether the values of a column are labels or ids, which are strings, and not features."""
        assert self.roles is not None
        roles = self.roles
        return name in roles.columns & {roles.id, roles.group, None if self.options.regress else roles.target}


class Values:
    """The values of a piece by column."""

    def __init__(self, spans: list[Span], block: Block, starts: np.ndarray) -> None:
        self._spans, self._block, self._starts = spans, block, starts
        self._rows: dict[int, list[dict[str, Any]]] = {
            n: one.rows for n, one in enumerate(spans) if one.rows is not None
        }
        self.names = dict.fromkeys(name for span in spans for name in span.names)

    def kind(self, name: str) -> Any:
        """The kind that the values of a column have in common."""
        import pyarrow as pa

        kind = pa.null()
        for n, span in enumerate(self._spans):
            column = span.columns.get(name)
            if column is not None and not rounded(column):
                kind = in_common(kind, kind_of_column(column))
            elif column is not None or span.rows is not None:
                kind = in_common(kind, kind_of_values(self._values(n, name)))
        return kind

    def has_lists(self, name: str) -> bool:
        """Whether some values of a column are lists."""
        import pyarrow as pa

        kinds = [span.columns[name].type for span in self._spans if name in span.columns]
        return any(map(pa.types.is_list, kinds)) or any(
            isinstance(row.get(name), list) for span in self._spans for row in span.rows or ()
        )

    def column(self, name: str, kind: Any) -> tuple[Any, np.ndarray]:
        """A column as one of a kind, and which values cannot be."""
        import pyarrow as pa

        parts = [self._part(n, name, kind) for n in range(len(self._spans))]
        if len(parts) == 1:
            return parts[0]
        return pa.concat_arrays([column for column, _ in parts]), np.concatenate([wrong for _, wrong in parts])

    def _part(self, n: int, name: str, kind: Any) -> tuple[Any, np.ndarray]:
        """The part of a column that is in one span."""
        import pyarrow as pa

        span = self._spans[n]
        if span.rows is None:
            column = span.columns.get(name)
            made = converted(pa.nulls(len(span.lines)) if column is None else column, kind)
            if made is not None:
                return made
        return column_of(self._values(n, name), kind)

    def _values(self, n: int, name: str) -> list[Any]:
        """The values of a column in a span as ``json.loads`` has them: whole numbers of any size are exact."""
        if n not in self._rows:
            self._rows[n] = [
                spread(json.loads(raw)) for raw in raw_lines(self._block, self._starts, self._spans[n].lines)
            ]
        return [row.get(name) for row in self._rows[n]]


def parsed_spans(block: Block, starts: np.ndarray, bad: list[Bad]) -> list[Span]:
    """Parse the lines of a block; those that cannot be read go to ``bad``."""
    lines = lines_with_text(block, starts)
    deep = np.empty(len(lines), dtype=np.int64)
    depths(block.text, starts, lines, deep)
    fit = (deep > 0) & (deep <= DEEPEST)
    if wrong_bytes(block, lines):
        fit &= [*map(is_utf8, raw_lines(block, starts, lines))]
    text = block.text[: block.stop]
    if not fit.all():
        by_line(block, starts, lines[~fit], deep[~fit], bad)
        text = blanked(text, starts, lines[~fit])
        lines = lines[fit]
    ends = np.append(starts[1:], block.stop)
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
    short = np.flatnonzero(ends - starts < 100)
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
    for line in lines.tolist():
        text[starts[line] : ends[line] - 1] = ord(" ")
    return text


def by_arrow(text: np.ndarray, count: int) -> dict[str, Any] | None:
    """Parse lines by Arrow; None if it refuses them, or finds another number of rows."""
    import pyarrow as pa

    table = read_json(text, count, {})
    if table is None:
        return None
    kinds = {field.name: without_times(field.type) for field in table.schema}
    kinds = {name: kind for name, kind in kinds.items() if kind != table.schema.field(name).type}
    if kinds:  # a string that looks like a date stays a string
        table = read_json(text, count, kinds)
        if table is None:
            return None
    whole = {name: pa.uint64() for name, column in zip(table.column_names, table.columns) if may_be_unsigned(column)}
    if whole and (exact := read_json(text, count, kinds | whole)) is not None:
        table = exact
    table = flat(table)
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


def by_line(block: Block, starts: np.ndarray, lines: np.ndarray, deep: np.ndarray, bad: list[Bad]) -> Span:
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
    row = json.loads(raw.decode())
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


def no_columns(count: int) -> Any:
    """A table with rows and no columns."""
    import pyarrow as pa

    return pa.table({"": pa.nulls(count)}).select([])

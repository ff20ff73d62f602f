"""JSON lines: each line is an object, each key a column.

The first block with a column decides about its kind (see ``json_values``): numbers are float64, values of several
kinds are strings, lists stay lists, objects become columns named ``outer.inner``. Later numbers in a column of strings
become strings; a string in a column of numbers makes its row a bad one. Keys that appear later add columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from onlearn.data.bad_rows import Bad, PieceBad
from onlearn.data.blocks import Block, blocks, raw_line
from onlearn.data.cut_points import line_starts_near, spans
from onlearn.data.formats.json_spans import Span, parsed_spans, raw_lines
from onlearn.data.formats.json_values import (
    beyond_floats,
    column_of,
    completed,
    converted,
    in_common,
    json_value,
    kind_of_column,
    kind_of_names,
    kind_of_value,
    like,
    named,
    rounded,
)
from onlearn.data.formats.scanning import keep_rows, line_starts
from onlearn.data.parts import Part
from onlearn.data.registry import Apply, Format, Options, Parsed, reader
from onlearn.data.sources import Stream
from onlearn.data.table_roles import KEPT_ID, Roles, spread, take_roles


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
        block, bad = piece.block, PieceBad()
        starts = line_starts(block)
        found = parsed_spans(block, starts, bad)
        lines = np.concatenate([np.zeros(0, np.int64), *(span.lines for span in found)])
        parsed = Parsed(no_columns(len(lines)), lines, len(starts), bad=sorted(bad.all(), key=lambda one: one.line))
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
            if not wrong.any():
                continue
            parsed.bad += PieceBad(
                Bad(int(parsed.lines[row]), 0, why_not(name, kind, line := raw(row)), line)
                for row in np.flatnonzero(wrong & kept).tolist()
            ).all()
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
            new = found.kind(name, kind)
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

    def kind(self, name: str, known: Any) -> Any:
        """The kind that the values of a column have in common, as far as they may be of a ``known`` kind."""
        import pyarrow as pa

        kind = pa.null()
        for n, span in enumerate(self._spans):
            column = span.columns.get(name)
            if column is not None and not rounded(column):
                kind = in_common(kind, like(known, kind_of_column(column)))
            elif column is not None or span.rows is not None:
                kinds = (like(known, kind_of_value(value)) for value in self._values(n, name))
                kind = reduce(in_common, kinds, kind)
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
        """The values of a column in a span as Python has them: whole numbers are exact."""
        if n not in self._rows:
            self._rows[n] = [
                spread(json_value(raw)) for raw in raw_lines(self._block, self._starts, self._spans[n].lines)
            ]
        return [row.get(name) for row in self._rows[n]]


def why_not(name: str, kind: Any, line: bytes) -> str:
    """Why the value of a column in a line is none of a kind."""
    if beyond_floats(spread(json_value(line)).get(name)):
        return f"{name!r} holds a number beyond the range of floats"
    return f"{name!r} is not {named(kind)}, as it was before"


def no_columns(count: int) -> Any:
    """A table with rows and no columns."""
    import pyarrow as pa

    return pa.table({"": pa.nulls(count)}).select([])

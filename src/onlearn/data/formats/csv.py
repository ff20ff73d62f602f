"""CSV and TSV.

Cells are cut by compiled loops and become Arrow columns: numbers (float64) where the cells of the first block are
numbers, but for a stray one, strings elsewhere. That is fixed from then on: a cell that is no number makes its row a
bad one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn.data import csvlayout
from onlearn.data.arrow import from_numpy
from onlearn.data.bad_rows import Bad, DataError
from onlearn.data.csvlayout import Layout
from onlearn.data.detection import is_json
from onlearn.data.registry import Options, Parsed, reader
from onlearn.data.sources import Block, Stream, blocks, first_lines
from onlearn.data.table_roles import KEPT_ID, Roles, take_roles

QUOTE = ord('"')
SAMPLE = 1 << 20  # bytes by which the layout is told
STRAY = 200  # one word among so many numbers does not make them words; its row is a bad one
LONGEST = 1 << 26  # bytes of a row: an open quote must not swallow the file


class Piece(NamedTuple):
    block: Block
    rows: np.ndarray  # as parse.cells.scan lists them
    lines: int
    names: list[str]  # of this file's columns, in its own order
    delimiter: int  # of this file, as is the quote: another may be written differently
    quote: int
    where: str


@reader("csv", extensions=[".csv"])
class Csv:
    delimiter: str | None = None

    def __init__(self, options: Options, notes: list[str]) -> None:
        self.options, self.notes = options, notes
        self.layout: Layout | None = None
        self.roles: Roles | None = None

    def pieces(self, stream: Stream) -> Iterator[Piece]:
        from onlearn.data.parse.cells import scan

        where = stream.source.name
        lines = [line.decode("utf-8", "replace") for line in first_lines(stream, SAMPLE) if line.strip()]
        if not lines:
            return
        if all(is_json(line) for line in lines[:5]):
            raise DataError(f"{where} looks like JSON lines, not like CSV: say format=jsonl")
        delimiter = self.options.delimiter or self.delimiter or csvlayout.guess_delimiter(lines[:200])
        quote = QUOTE if csvlayout.guess_quotes(lines, delimiter) else 0
        if not quote and any(chr(QUOTE) in line for line in lines):
            self.notes.append(f"{where}: quotes are taken as they stand, for they do not enclose cells")
        state: dict[str, Any] = {"width": 0}

        def cut(text: np.ndarray, stop: int, final: bool) -> int:
            final = final or stop > LONGEST
            rows = np.empty((int(np.count_nonzero(text[:stop] == 10)) + 1, 5), dtype=np.int64)
            count, end, lines = scan(text, stop, final, ord(delimiter), quote, state["width"], rows)
            if not state["width"] and count:
                state["width"] = csvlayout.most_common_width(rows[: min(count, 100), 3])
                count, end, lines = scan(text, stop, final, ord(delimiter), quote, state["width"], rows)
            state["rows"], state["lines"] = rows[:count], lines
            return int(end)

        names: list[str] | None = None
        for block in blocks(stream, self.options.block_size, cut):
            rows, lines_here = state["rows"], state["lines"]
            if names is None:
                if state["width"] == 1 and self.options.labelled:
                    csvlayout.refuse_delimiter(delimiter, lines[:200], where)
                names, rows = self._begin(block, rows, ord(delimiter), quote, where)
            yield Piece(block, rows, lines_here, names, ord(delimiter), quote, where)

    def _begin(
        self, block: Block, rows: np.ndarray, delimiter: int, quote: int, where: str
    ) -> tuple[list[str], np.ndarray]:
        """Find out about a file: its header, and of the first file all the rest."""
        from onlearn.data.parse.cells import to_look_at

        good = drop_wrong_bytes(block, rows[rows[:, 4] == 0], [])
        if not len(good):
            raise DataError(f"{where}: not one of the first rows can be read as a row of cells in UTF-8")
        width = int(good[0, 3])
        starts, lengths, kinds = cells(block, good, width, delimiter, quote)
        sample = [strings(block, starts[n, :1000], lengths[n, :1000], kinds[n, :1000], quote) for n in range(width)]
        table = [list(row) for row in zip(*(column.to_pylist() for column in sample))]

        def looks_numeric(n: int, skip: int) -> bool:
            with np.errstate(over="ignore"):  # should it run interpreted
                numbers, texts = to_look_at(block.text, starts[n, skip:], lengths[n, skip:])
            return bool(numbers and texts <= numbers // STRAY)

        header = self.options.header
        if header == "auto":
            # A first line that is bad already cannot be the header; nor can one that the second file lacks.
            possible = bool(rows[0, 0] == good[0, 0])
            header = possible and (
                not self._lacking(csvlayout.heading(table[0]))
                if self.layout is not None and self.layout.header
                else csvlayout.guess_header(table, [looks_numeric(n, 1) for n in range(width)], self.options)
            )
            seen = "the first row names the columns" if header else "there is no header"
            self.notes.append(f"{where}: {seen}; say header={not header} if that is wrong")
        skip = int(bool(header))
        names = csvlayout.heading(table[0]) if header else [f"c{n}" for n in range(width)]
        if self.layout is None:
            numeric = [looks_numeric(n, skip) for n in range(width)]
            numeric = csvlayout.check_types(self.options, names, numeric, where)
            body = table[skip:]
            fallback = csvlayout.guess_target(body, names, numeric) if body and not header and width > 1 else None
            self.roles = Roles(self.options, names, where, self.notes, fallback)
            for name in (self.roles.target, self.roles.id):
                if name is not None and name in self.roles.columns:
                    numeric[names.index(name)] = False  # as written
            self.layout = Layout(names, bool(header), numeric, fallback)
        else:
            self._check_columns(names, where)
        if header:
            rows = rows[rows[:, 0] != good[0, 0]]
        return names, rows

    def _lacking(self, names: list[str]) -> list[str]:
        """Columns of the file before that one with these lacks."""
        assert self.layout is not None
        assert self.roles is not None
        return sorted(set(self.layout.names) - self.roles.dispensable - set(names))

    def _check_columns(self, names: list[str], where: str) -> None:
        if lacking := self._lacking(names):
            raise DataError(f"{where} lacks the column {lacking[0]!r} that the file before it has")

    def parse(self, piece: Piece) -> Parsed:
        import pyarrow as pa

        layout, roles, block = self.layout, self.roles, piece.block
        assert layout is not None
        assert roles is not None
        bad = [self._bad(piece, row) for row in piece.rows[piece.rows[:, 4] != 0].tolist()]
        rows = piece.rows[piece.rows[:, 4] == 0]
        rows = drop_wrong_bytes(block, rows, bad)
        starts, lengths, kinds = cells(block, rows, len(piece.names), piece.delimiter, piece.quote)
        kept = np.ones(len(rows), dtype=bool)
        columns: dict[str, Any] = {}
        order = {name: n for n, name in enumerate(piece.names)}
        for name, numeric in zip(layout.names, layout.numeric):
            if name not in order:
                continue
            n = order[name]
            if numeric:
                columns[name], wrong = numbers(block, starts[n], lengths[n])
                for row in np.flatnonzero(wrong & kept).tolist():
                    start = int(starts[n, row])
                    infinite = is_infinite(block.text[start : start + int(lengths[n, row])].tobytes())
                    what = "is infinite" if infinite else "is not a number, as it was in the first rows"
                    bad.append(self._bad_row(block, rows[row], f"{name!r} {what}", start))
                kept &= ~wrong
            else:
                columns[name] = strings(block, starts[n], lengths[n], kinds[n], piece.quote)
        if self.options.id_kept and roles.id in order:
            n = order[roles.id]
            columns[KEPT_ID] = strings(block, starts[n], lengths[n], kinds[n], piece.quote)
        table = pa.table(columns)
        if not kept.all():
            rows, table = rows[kept], table.filter(from_numpy(kept))
        bad.sort(key=lambda one: one.line)
        parsed = Parsed(table, rows[:, 2], piece.lines, bad=bad)
        return take_roles(parsed, roles.within(order), lambda row: block.text[rows[row, 0] : rows[row, 1]].tobytes())

    def settle(self, parsed: Parsed) -> Parsed:
        return parsed

    def _bad(self, piece: Piece, row: list[int]) -> Bad:
        assert self.layout is not None
        reasons = {
            1: f"there are {row[3]} cells and not {len(piece.names)}",
            2: "a quote is opened and never closed",
            3: "there is text after a closing quote",
        }
        return self._bad_row(piece.block, row, reasons[row[4]], row[0], whole=True)

    @staticmethod
    def _bad_row(block: Block, row: Any, reason: str, place: int, whole: bool = False) -> Bad:
        start, stop = int(row[0]), int(row[1])
        return Bad(int(row[2]), 0 if whole else place - start + 1, reason, block.text[start:stop].tobytes())


@reader("tsv", extensions=[".tsv", ".tab"])
class Tsv(Csv):
    delimiter = "\t"


def cells(
    block: Block, rows: np.ndarray, width: int, delimiter: int, quote: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the cells of some rows are: starts, lengths, kinds; columns by rows."""
    from onlearn.data.parse.cells import cut_cells

    shape = (width, len(rows))
    starts, lengths = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    kinds = np.empty(shape, dtype=np.uint8)
    if len(rows):
        cut_cells(block.text, np.ascontiguousarray(rows), delimiter, quote, starts, lengths, kinds)
    return starts, lengths, kinds


def strings(block: Block, starts: np.ndarray, lengths: np.ndarray, kinds: np.ndarray, quote: int) -> Any:
    """A column as Arrow strings; missing ones are null."""
    import pyarrow as pa

    from onlearn.data.parse.cells import copy, measure

    offsets, valid = np.zeros(len(starts) + 1, dtype=np.int32), np.empty(len(starts), dtype=bool)
    total = int(measure(block.text, starts, lengths, kinds, quote, offsets, valid))
    out = np.empty(total, dtype=np.uint8)
    copy(block.text, starts, lengths, kinds, quote, offsets, out)
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out), bits)


def numbers(block: Block, starts: np.ndarray, lengths: np.ndarray) -> tuple[Any, np.ndarray]:
    """A column as Arrow float64, missing ones null; and which cells are no numbers."""
    from onlearn.data.parse.cells import ASK, MISSING, NUMBER, TEXT, to_numbers

    values, outcomes = np.empty(len(starts)), np.empty(len(starts), dtype=np.uint8)
    to_numbers(block.text, starts, lengths, values, outcomes)
    for row in np.flatnonzero(outcomes == ASK).tolist():
        start = int(starts[row])
        values[row] = float(block.text[start : start + int(lengths[row])].tobytes())
        outcomes[row] = NUMBER if np.isfinite(values[row]) else TEXT
    return from_numpy(values, outcomes == MISSING), outcomes == TEXT


def is_infinite(cell: bytes) -> bool:
    try:
        return bool(np.isinf(float(cell)))
    except ValueError:
        return False


def drop_wrong_bytes(block: Block, rows: np.ndarray, bad: list[Bad]) -> np.ndarray:
    """Rows that are UTF-8; the others become bad ones."""
    from onlearn.data.formats.scanning import first_wrong

    if first_wrong(block.text, 0, block.stop) == block.stop:
        return rows
    kept = np.ones(len(rows), dtype=bool)
    for n, row in enumerate(rows.tolist()):
        place = int(first_wrong(block.text, row[0], row[1]))
        if place < row[1]:
            kept[n] = False
            reason = f"byte {place - row[0] + 1} of the row is not UTF-8"
            bad.append(Bad(row[2], place - row[0] + 1, reason, block.text[row[0] : row[1]].tobytes()))
    return rows[kept]

"""CSV and TSV, read by ``pyarrow.csv`` block by block.

The first block decides about the columns: one whose cells are numbers, with few exceptions, is a column of numbers
(float64), any other is a column of strings. In a column of numbers, a cell that is not a number makes its row a bad
one. ``csv_rows`` first rewrites or removes the rows for which PyArrow has other rules than this reader. A block that
PyArrow still refuses is read row by row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.byte_sizes import size_text
from onlearn.data.arrow import booleans, from_numpy, from_strings, in_one_piece, null, numbers, scalar
from onlearn.data.bad_rows import TOLD, Bad, DataError, PieceBad
from onlearn.data.blocks import Block, blocks, further_bad
from onlearn.data.cut_points import spans
from onlearn.data.formats import csv_cuts, csv_layout
from onlearn.data.formats.csv_cuts import Beginning, RowBlocks
from onlearn.data.formats.csv_layout import Layout
from onlearn.data.formats.csv_rows import (
    AFTER,
    NEWLINE,
    OPEN,
    QUOTE,
    WIDTH,
    CleanText,
    Dialect,
    Lines,
    Row,
    RowTable,
)
from onlearn.data.formats.scanning import first_not_text, not_text_at
from onlearn.data.parts import Part, Span
from onlearn.data.registry import Apply, Format, Options, Parsed, guess_delimiter, is_json, reader
from onlearn.data.sources import Stream, first_lines
from onlearn.data.table_roles import KEPT_ID, MISSING, Roles, take_roles

SAMPLE = 1 << 20  # bytes that decide about delimiter and quotes
SAMPLE_ROWS = 1000  # rows that decide about header and target
STRAY = 200  # a column of numbers may have one text among this many cells; the row of the text is a bad one
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
NUMERIC_BLOCK = 1 << 19  # bytes that PyArrow reads at a time if most columns are numbers
EXACT = 2.0**53  # whole numbers up to this one are exact as floats


class Read(NamedTuple):
    """The good rows of a block as columns, and the bad ones."""

    columns: list[Any]  # Arrow arrays
    bad: list[Bad]


class Piece(NamedTuple):
    """A block of one file, with what is known about the file."""

    block: Block
    lines: Lines
    dialect: Dialect  # of this file; other files may have other ones
    names: list[str]  # the columns in the order of this file
    first: tuple[RowTable, Read] | None = None  # the rows of the first piece, which is read before others are cut

    def row_table(self) -> RowTable:
        return RowTable(self.block.text[: self.block.stop], self.lines, self.dialect, len(self.names))


@reader("csv", extensions=[".csv"])
class Csv(Format):
    """CSV files; their delimiter is guessed."""

    delimiter: ClassVar[str | None] = None

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.layout: Layout | None = None
        self.roles: Roles | None = None

    def pieces(self, stream: Stream) -> Iterator[Piece]:
        source = stream.source
        beginning = source.part.beginning if isinstance(source.part, Span) else None
        lines: list[str] = []
        if not source.begins_inside:
            lines = sample(stream, self.options.max_line)
            if not lines:
                return
            check_lines(lines, source.name)
        dialect = self._dialect(lines) if beginning is None else beginning.dialect
        if not dialect.quote and any(chr(QUOTE) in line for line in lines):
            self.notes.append(f"{source.name}: quotes are taken as they stand, for they do not enclose cells")
        cutter = RowBlocks(dialect, 0 if beginning is None else beginning.width, self.options.block_size)
        names: list[str] | None = None
        for block in blocks(stream, self.options.block_size, cutter.cut, self.options.max_line):
            first = None
            if names is None:
                if cutter.width == 1 and self.options.labelled and lines:
                    csv_layout.refuse_delimiter(chr(dialect.delimiter), lines[:200], source.name)
                rows = cutter.rows(block)
                try:
                    names, read = self._begin(rows, source.name, beginning if source.begins_inside else None)
                except DataError as error:
                    raise DataError(f"{error}{self._hint(block, rows)}") from error
                first = rows, read
            yield Piece(block, cutter.lines, dialect, names, first)

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        lines = sample(stream, self.options.max_line)
        check_lines(lines, stream.source.name)
        beginning = csv_cuts.beginning_of(stream, self._dialect(lines), self.options.block_size) if lines else None
        if beginning is None:
            return []
        size, dialect = stream.size, beginning.dialect
        if dialect.quote == dialect.delimiter or dialect.delimiter == NEWLINE:
            return spans([], size, beginning)
        cuts = csv_cuts.row_starts(stream.source, size, count, beginning, apply)
        # The first shard has the row that may be the header, and no other shard has it.
        return spans([cut for cut in cuts if cut >= beginning.stop], size, beginning)

    def _dialect(self, lines: list[str]) -> Dialect:
        """The dialect of a file that begins with these lines."""
        delimiter = self.options.delimiter or self.delimiter or guess_delimiter(lines[:200])
        quote = QUOTE if csv_layout.guess_quotes(lines, delimiter) else 0
        return Dialect(ord(delimiter), quote, self.options.max_line)

    def _begin(self, rows: RowTable, where: str, beginning: Beginning | None) -> tuple[list[str], Read]:
        """Find the columns of a file in its first rows. The first file also decides about types and roles.

        If these are rows from inside the file, ``beginning`` has its first row.
        """
        width = rows.width
        read = read_rows(rows, width, [])
        columns, bad = read.columns, read.bad
        if beginning is not None:
            columns = with_first_row(columns, beginning)
        elif not len(rows):
            raise DataError(f"{where}: not one of the first rows can be read as a row of cells in UTF-8")
        table = [list(row) for row in zip(*(column.slice(0, SAMPLE_ROWS).to_pylist() for column in columns))]
        below = [count_kinds(column.slice(1)) for column in columns]
        header = self.options.header
        if header == "auto" and beginning is not None and self.layout is not None and not self.layout.header:
            header = False
        if header == "auto":
            # A bad row cannot be the header. In a further file, the header has the columns of the first file.
            possible = all(one.line > rows.lines[0] for one in bad) if beginning is None else beginning.may_be_header
            header = possible and (
                not self._missing_columns(csv_layout.column_names(table[0]))
                if self.layout is not None and self.layout.header
                else csv_layout.guess_header(table, [mostly_numbers(*kinds) for kinds in below], self.options)
            )
            decision = "the first row names the columns" if header else "there is no header"
            self.notes.append(f"{where}: {decision}; say header={not header} if that is wrong")
        skip = int(bool(header) or beginning is not None)
        names = csv_layout.column_names(table[0]) if header else [f"c{n}" for n in range(width)]
        if self.layout is None:
            first = [count_kinds(column.slice(skip, 1 - skip)) for column in columns]
            numeric = [mostly_numbers(a + c, b + d) for (a, b), (c, d) in zip(first, below)]
            numeric = csv_layout.check_types(self.options, names, numeric, where)
            body = table[skip:]
            fallback = csv_layout.guess_target(body, names, numeric) if body and not header and width > 1 else None
            self.roles = Roles(self.options, names, where, self.notes, fallback)
            for name in (self.roles.target, self.roles.id):
                if name is not None and name in self.roles.columns:
                    numeric[names.index(name)] = False  # labels and ids are strings as written
            self.layout = Layout(names, bool(header), numeric, fallback)
        else:
            self._check_columns(names, where)
        if header and beginning is None:
            rows.keep(np.arange(len(rows)) > 0)
            read = read._replace(columns=[column.slice(1) for column in columns])
        return names, read

    def _hint(self, block: Block, rows: RowTable) -> str:
        """What the longest line that is allowed has to do with it if the first rows are not as expected."""
        if block.too_long:
            return f" (line {block.too_long[0].line + 1}: {block.too_long[0].reason})"
        for line, row in rows.bad:
            if row.wrong == OPEN:
                size = size_text(self.options.max_line)
                return f" (line {line + 1}: a quote is opened and not closed within {size}, which max_line= changes)"
        return ""

    def _missing_columns(self, names: list[str]) -> list[str]:
        """The columns of the first file that a file with these columns lacks."""
        assert self.layout is not None
        assert self.roles is not None
        return sorted(set(self.layout.names) - self.roles.dispensable - set(names))

    def _check_columns(self, names: list[str], where: str) -> None:
        if missing := self._missing_columns(names):
            raise DataError(f"{where} lacks the column {missing[0]!r} that the file before it has")

    def parse(self, piece: Piece) -> Parsed:
        import pyarrow as pa

        layout, roles = self.layout, self.roles
        assert layout is not None
        assert roles is not None
        place = {name: n for n, name in enumerate(piece.names)}
        written = roles.id if self.options.id_kept and roles.id in place else None
        numeric = {place[name] for name, number in zip(layout.names, layout.numeric) if number and name in place}
        typed = [n for n in sorted(numeric) if piece.names[n] != written]
        rows = piece.row_table() if piece.first is None else piece.first[0]
        read = read_rows(rows, len(piece.names), typed) if piece.first is None else piece.first[1]
        kept, bad = np.ones(len(rows), dtype=bool), read.bad
        columns: dict[str, Any] = {}
        for name in layout.names:
            if name not in place:
                continue
            column, wrong = read.columns[place[name]], None
            if place[name] in numeric and not pa.types.is_floating(column.type):
                column, wrong = to_numbers(column)
            if wrong is not None:
                found = np.flatnonzero(wrong & kept).tolist()
                bad += PieceBad(not_a_number(rows, row, name, place[name]) for row in found).all()
                kept &= ~wrong
            columns[name] = column
        if written is not None:
            columns[KEPT_ID] = read.columns[place[written]]
        table = pa.table(columns)
        if not kept.all():
            rows.keep(kept)
            table = table.filter(from_numpy(kept))
        bad.sort(key=lambda one: one.line)
        parsed = Parsed(table, rows.lines, rows.line_count, bad=bad)
        return take_roles(parsed, roles.within(place), rows.bytes_of, may_be_infinite=False)

    def found(self) -> dict[str, Any]:
        if self.layout is None or self.roles is None:
            return {}
        types = {
            name: "number" if number else "string"
            for name, number in zip(self.layout.names, self.layout.numeric)
            if name not in self.roles.columns
        }
        return {**self.roles.found(), "header": self.layout.header, "types": types}

    def decisions(self) -> Any:
        return None if self.layout is None else (self.layout, self.roles)

    def resume(self, decisions: Any) -> None:
        self.layout, roles = decisions
        self.roles = roles.with_options(self.options)


@reader("tsv", extensions=[".tsv", ".tab"])
class Tsv(Csv):
    """Files with tabs between cells."""

    delimiter = "\t"


def sample(stream: Stream, longest: int) -> list[str]:
    """The first lines of a file that are not empty, as far as they say something: without those that are too long."""
    found = [line for line in first_lines(stream, SAMPLE, longest) if line.strip()]
    return [line.decode("utf-8", "replace") for line in [one for one in found if len(one) <= longest] or found[:1]]


def check_lines(lines: list[str], where: str) -> None:
    """Refuse a file that is something else than CSV."""
    if lines and all(is_json(line) for line in lines[:5]):
        raise DataError(f"{where} looks like JSON lines, not like CSV: say format=jsonl")


def with_first_row(columns: list[Any], beginning: Beginning) -> list[Any]:
    """Columns of strings with the cells of the first row of the file before them."""
    import pyarrow as pa

    text = np.frombuffer(beginning.first_row.removesuffix(b"\n") + b"\n", dtype=np.uint8)
    cutter = RowBlocks(beginning.dialect, beginning.width)
    cutter.cut(text, len(text), True)
    first = read_rows(cutter.rows(Block(text, len(text))), beginning.width, []).columns
    return [pa.concat_arrays([*both]) for both in zip(first, columns)]


def read_rows(rows: RowTable, width: int, numeric: list[int]) -> Read:
    """Read the columns of the good rows, and remove bad rows from ``rows``. Missing cells are null.

    The ``numeric`` columns are numbers if all of their cells are numbers, else strings.
    """
    bad = PieceBad(bad_row(rows, line, row, width) for line, row in rows.bad).all()
    drop_rows_without_text(rows, bad, width)
    clean = rows.clean() if len(rows) else None
    read = None
    if clean is not None:
        if numeric and not clean.padded:
            read = read_table(clean, width, numeric, len(rows))
        if read is None:
            read = read_table(clean, width, [], len(rows))
    columns, wrong = read or read_by_row(rows, width)
    if wrong:
        for row, cells in islice(wrong, TOLD):
            bad.append(Bad(int(rows.lines[row]), 0, wrong_width(cells, width), rows.bytes_of(row)))
        at, kept = wrong.rows(), np.ones(len(rows), dtype=bool)
        if len(further := at[TOLD:]):
            bad += further_bad(rows.text, int(rows.lines[further[0]]), rows.starts[further], rows.stops[further])
        kept[at] = False
        rows.keep(kept)
    return Read(columns, bad)


class Wrong:
    """The rows of a wrong width, with their numbers of cells."""

    def __init__(self) -> None:
        self._rows, self._widths = array("q"), array("q")  # there may be millions

    def append(self, row: int, width: int) -> None:
        self._rows.append(row)
        self._widths.append(width)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._rows, self._widths)

    def rows(self) -> np.ndarray:
        """The rows alone."""
        return np.frombuffer(self._rows, dtype=np.int64)


Columns = tuple[list[Any], Wrong]


def read_table(clean: CleanText, width: int, numeric: list[int], count: int) -> Columns | None:
    """Read rows by PyArrow; None if it refuses, for example because a cell is not a number."""
    import pyarrow as pa
    from pyarrow import csv

    wrong = Wrong()

    def skip(row: Any) -> str:
        wrong.append(row.number - 1, row.actual_columns)
        return "skip"

    names = [str(n) for n in range(width)]
    types = dict.fromkeys(names, pa.string()) | {names[n]: pa.float64() for n in numeric}
    try:
        table = csv.read_csv(
            pa.py_buffer(clean.text),
            csv.ReadOptions(use_threads=False, block_size=arrow_block_size(clean, width, numeric), column_names=names),
            csv.ParseOptions(
                delimiter=clean.delimiter,
                quote_char=clean.quote,
                newlines_in_values=clean.several_lines,
                invalid_row_handler=skip,
            ),
            csv.ConvertOptions(column_types=types, null_values=MISSING, strings_can_be_null=True, check_utf8=False),
        )
    except pa.ArrowInvalid:
        return None
    columns = [in_one_piece(column) for column in table.columns]
    if table.num_rows + len(wrong) != count or not all(is_finite(columns[n]) for n in numeric):
        return None
    return columns, wrong


def arrow_block_size(clean: CleanText, width: int, numeric: list[int]) -> int:
    """The bytes that PyArrow reads at a time: all of them, but fewer if most columns are numbers.

    PyArrow converts a block column by column, which is faster if the block fits into a processor's cache. But the
    strings of several blocks would have to be concatenated, which takes longer than that saves.
    """
    short_rows = not clean.several_lines and clean.longest_row < NUMERIC_BLOCK // 8  # a row must fit into a block
    if short_rows and 2 * len(numeric) > width:
        return NUMERIC_BLOCK
    return min(len(clean.text) + 1, 2**31 - 1)


def read_by_row(rows: RowTable, width: int) -> Columns:
    """Read rows one by one in Python, cells as strings; for rows that PyArrow refuses."""
    wrong = Wrong()
    cells: list[list[str | None]] = [[] for _ in range(width)]
    for n in range(len(rows)):
        row = rows.scan(n)
        if row.wrong:
            wrong.append(n, row.width)
            continue
        for column, value in zip(cells, rows.scanner.values(rows.raw, row)):
            text = value.decode()
            column.append(None if text in MISSING else text)
    return [from_strings(column) for column in cells], wrong


def is_finite(column: Any) -> bool:
    """Whether all numbers of a column are finite, except missing ones."""
    values = numbers(column)  # NaN where the cell is missing
    return bool(len(values) - np.count_nonzero(np.isfinite(values)) == column.null_count)


def to_numbers(column: Any) -> tuple[Any, np.ndarray | None]:
    """Convert a column of strings to float64, and say which cells are not finite numbers (None: all are)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        amounts = column.cast(pa.float64())
        if is_finite(amounts):
            return amounts, None
    except pa.ArrowInvalid:
        pass
    is_number = pc.match_substring_regex(column, NUMBER)
    amounts = pc.if_else(is_number, column, null(column.type)).cast(pa.float64())
    valid = booleans(pc.coalesce(is_number, scalar(True)))  # a missing cell is valid
    return amounts, ~valid | np.isinf(numbers(amounts))


def count_kinds(cells: Any) -> tuple[int, int]:
    """Count the cells that are numbers and those that are texts; only the first cells if these have too many texts.

    A whole number with leading zeros, or one that a float cannot hold, is a text: it is a name and not an amount.
    """
    if cells.null_count:
        cells = cells.drop_null()
    most = len(cells) // STRAY
    start = cells.slice(0, 2 * most + 100)
    texts = count_texts(start) if len(start) else 0
    if texts > most:
        return len(start) - texts, texts
    if len(start) < len(cells):
        texts = count_texts(cells)
    return len(cells) - texts, texts


def count_texts(cells: Any) -> int:
    """Count the cells that are not numbers."""
    import pyarrow.compute as pc

    amounts, wrong = to_numbers(cells)
    is_name = has_leading_zero(cells)
    large = np.abs(numbers(amounts)) > EXACT
    if large.any():
        is_name |= large & ~booleans(pc.match_substring_regex(cells, "[.eE]"))
    return int(np.count_nonzero(is_name if wrong is None else is_name | wrong))


def has_leading_zero(cells: Any) -> np.ndarray:
    """Which strings begin with a zero and another digit."""
    _, offsets, data = cells.buffers()
    starts = np.frombuffer(offsets, dtype=np.int32)[cells.offset : cells.offset + len(cells) + 1]
    text = np.append(np.frombuffer(data or b"", dtype=np.uint8), np.zeros(2, dtype=np.uint8))
    second = text[starts[:-1] + 1]
    return (np.diff(starts) > 1) & (text[starts[:-1]] == ord("0")) & (second >= ord("0")) & (second <= ord("9"))


def mostly_numbers(numbers: int, texts: int) -> bool:
    """Whether a column with this many numbers and texts is a column of numbers."""
    return bool(numbers and texts <= numbers // STRAY)


def not_a_number(rows: RowTable, row: int, name: str, column: int) -> Bad:
    """The bad row that has a text in a column of numbers."""
    start, stop, _ = rows.scan(row).cells[column]
    reason = "is infinite" if is_infinite(rows.raw[start:stop]) else "is not a number, as it was in the first rows"
    place = start - int(rows.starts[row]) + 1
    return Bad(int(rows.lines[row]), place, f"{name!r} {reason}", rows.bytes_of(row))


def is_infinite(cell: bytes) -> bool:
    try:
        return bool(np.isinf(float(cell)))
    except ValueError:
        return False


def bad_row(rows: RowTable, line: int, row: Row, width: int) -> Bad:
    """The bad row that could not be cut into cells."""
    reasons = {
        WIDTH: wrong_width(row.width, width),
        OPEN: "a quote is opened and never closed",
        AFTER: "there is text after a closing quote",
    }
    return Bad(line, 0, reasons[row.wrong], rows.raw[row.start : row.stop])


def wrong_width(cells: int, width: int) -> str:
    return f"there are {cells} cells and not {width}"


def drop_rows_without_text(rows: RowTable, bad: list[Bad], width: int) -> None:
    """Remove the rows that are not UTF-8 or have NUL bytes, and add them to the bad ones."""
    if is_text(rows.text):
        return
    kept, found = np.ones(len(rows), dtype=bool), PieceBad()
    for n in range(len(rows)):
        raw = rows.bytes_of(n)
        if place := first_not_text(raw):
            kept[n] = False
            line, row = int(rows.lines[n]), rows.scan(n)
            if row.wrong:
                found.append(bad_row(rows, line, row, width))
            else:
                found.append(Bad(line, place, not_text_at(raw, place, "row"), raw))
    bad += found.all()
    rows.keep(kept)


def is_text(text: np.ndarray) -> bool:
    """Whether all bytes of a text are UTF-8, and none is NUL."""
    import pyarrow as pa

    if not len(text):
        return True
    if not text.min():
        return False
    if text.max() < 128:
        return True
    offsets = pa.py_buffer(np.array([0, len(text)], dtype=np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True

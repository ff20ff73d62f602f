"""The layout of a CSV file, guessed from its first rows: quotes, header, types and target."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from onlearn.data.bad_rows import DataError
from onlearn.data.registry import Options, guess_delimiter, without_quoted
from onlearn.data.table_roles import TARGETS

MAX_CLASSES = 50  # a column with more distinct values is not guessed to be the target
HEADINGS = {*TARGETS, "text", "id", "name", "weight"}


@dataclass(slots=True)
class Layout:
    """The columns of a CSV file."""

    names: list[str]
    header: bool
    numeric: list[bool]
    target: str | None  # the guessed target, if no column has the name of one


def refuse_delimiter(given: str, lines: list[str], where: str) -> None:
    """Refuse a delimiter that cuts lines into one cell each, if another one cuts them into several."""
    better = guess_delimiter(lines)
    if better != given and better in without_quoted(lines[0]):
        raise DataError(
            f"{where} has one column only if {given!r} separates them, but {better!r} seems to; say delimiter= if so"
        )


def guess_quotes(lines: list[str], delimiter: str) -> bool:
    """Whether quotes enclose cells.

    Text between tabs often has quotes that enclose nothing. There, at least one cell must be quoted, and every quote
    that opens a cell must be closed on the same line.
    """
    if delimiter != "\t":
        return True
    opened = re.compile(r'(?:^|\t) *"')
    whole = re.compile(r'(?:^|\t) *"[^"]*(?:""[^"]*)*" *(?=\t|\r?$)')
    lines_with_quotes = [line for line in lines if opened.search(line)]
    return bool(lines_with_quotes) and all(
        len(opened.findall(line)) <= len(whole.findall(line)) for line in lines_with_quotes
    )


def guess_header(rows: list[list[str | None]], numeric: list[bool], options: Options) -> bool:
    """Whether the first row names the columns. ``numeric`` says which columns are numbers in the rows below it."""
    first, columns = rows[0], list(zip(*rows[1:]))
    named = [cell.strip() for cell in first if cell and cell.strip()]
    if not named or any(map(is_number, named)):
        return False
    wanted = {name for name in (options.target, options.weight, options.id) if isinstance(name, str)}
    usual = [cell is not None and (cell.strip() in wanted or cell.strip().lower() in HEADINGS) for cell in first]
    if len(set(named)) < len(first):  # a name is missing or appears twice: a header needs more evidence
        sure = any(yes and cell not in column for yes, cell, column in zip(usual, first, columns))
        return sure or (len(set(named)) == len(first) - 1 and is_row_number(first[0], columns))
    if any(numeric) or any(usual):
        return True
    if not columns or any(cell in column for cell, column in zip(first, columns)):
        return False
    return any(2 * len(set(column)) <= len(column) for column in columns)


def is_row_number(name: str | None, columns: list[tuple[str | None, ...]]) -> bool:
    """Whether the first column has no name and counts the rows from 0 or 1, as data frames are written."""
    if name or not columns:
        return False
    return any(list(columns[0]) == [str(first + n) for n in range(len(columns[0]))] for first in (0, 1))


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def guess_target(rows: list[list[str | None]], names: list[str], numeric: list[bool]) -> str:
    """The last column, or the first if it holds named classes and the last does not."""

    def holds_classes(n: int) -> bool:
        cells = [row[n] for row in rows]
        distinct = len(set(cells))
        return not numeric[n] and None not in cells and distinct <= MAX_CLASSES and 2 * distinct <= len(cells)

    return names[0] if holds_classes(0) and not holds_classes(-1) else names[-1]


def column_names(cells: list[str | None]) -> list[str]:
    """Distinct names for the columns, from the cells of the header.

    >>> column_names(["x", "x", None, "x_2", "x"])
    ['x', 'x_3', 'c2', 'x_2', 'x_4']
    """
    given = [cell.strip() if cell and cell.strip() else f"c{n}" for n, cell in enumerate(cells)]
    taken, counts = set(given), dict[str, int]()
    names = []
    for name in given:
        distinct = name
        while name in counts and distinct in taken:  # the first column of a name keeps it
            counts[name] += 1
            distinct = f"{name}_{counts[name]}"
        counts.setdefault(name, 1)
        taken.add(distinct)
        names.append(distinct)
    return names


def check_types(options: Options, names: list[str], numeric: list[bool], where: str) -> list[bool]:
    """The guessed types, replaced where the user gives others."""
    places = {name: n for n, name in enumerate(names)}
    for name, kind in options.types.items():
        if name not in places:
            raise DataError(f"{where} has no column {name!r} to be a {kind}")
        if kind not in ("number", "string"):
            raise ValueError(f"a column's type is 'number' or 'string', not {kind!r}")
        numeric[places[name]] = kind == "number"
    return numeric


def most_common_width(widths: list[int]) -> int:
    return int(Counter(widths).most_common(1)[0][0])

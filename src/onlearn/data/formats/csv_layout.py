"""How a CSV file is laid out, found out from its first rows: delimiter, quotes, header, types, target."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from onlearn.data.bad_rows import DataError
from onlearn.data.registry import Options
from onlearn.data.table_roles import TARGETS

DELIMITERS = (",", "\t", ";", "|")
FEW = 50  # distinct labels that a column of classes has at most
HEADINGS = {*TARGETS, "text", "id", "name", "weight"}


@dataclass(slots=True)
class Layout:
    names: list[str]
    header: bool
    numeric: list[bool]
    target: str | None  # where no name tells


def guess_delimiter(lines: list[str]) -> str:
    """The one that cuts the lines into most cells, as many in each."""
    best, most = ",", 0.0
    for delimiter in DELIMITERS:
        counts = Counter(unquoted(line).count(delimiter) for line in lines)
        count, lines_with = counts.most_common(1)[0]
        score = count * (lines_with / len(lines)) ** 4
        if count and score > most:
            best, most = delimiter, score
    return best


def refuse_delimiter(given: str, lines: list[str], where: str) -> None:
    """Refuse one that cuts lines into one cell each, if another does better."""
    better = guess_delimiter(lines)
    if better != given and better in unquoted(lines[0]):
        raise DataError(
            f"{where} has one column only if {given!r} separates them, but {better!r} seems to; say delimiter= if so"
        )


def unquoted(line: str) -> str:
    return re.sub(r'"(?:[^"]|"")*"', "", line)


def guess_quotes(lines: list[str], delimiter: str) -> bool:
    """Whether a cell that begins with a quote is a quoted one. In text between tabs it often is not: there, some must
    be, and all of them closed on their line."""
    if delimiter != "\t":
        return True
    opened = re.compile(r'(?:^|\t) *"')
    whole = re.compile(r'(?:^|\t) *"(?:[^"]|"")*" *(?=\t|\r?$)')
    begun = [line for line in lines if opened.search(line)]
    return bool(begun) and all(len(opened.findall(line)) <= len(whole.findall(line)) for line in begun)


def guess_header(rows: list[list[str | None]], numeric: list[bool], options: Options) -> bool:
    """Whether the first row names the columns. ``numeric`` is about the rows below it."""
    first, columns = rows[0], list(zip(*rows[1:]))
    named = [cell.strip() for cell in first if cell and cell.strip()]
    if not named or any(map(is_number, named)):
        return False
    wanted = {name for name in (options.target, options.weight, options.id) if isinstance(name, str)}
    usual = [cell is not None and (cell.strip() in wanted or cell.strip().lower() in HEADINGS) for cell in first]
    if len(set(named)) < len(first):  # a name that is missing or there twice: then more must speak for it
        sure = any(yes and cell not in column for yes, cell, column in zip(usual, first, columns))
        return sure or (len(set(named)) == len(first) - 1 and counts_rows(first[0], columns))
    if any(numeric) or any(usual):
        return True
    if not columns or any(cell in column for cell, column in zip(first, columns)):
        return False
    return any(2 * len(set(column)) <= len(column) for column in columns)


def counts_rows(name: str | None, columns: list[tuple[str | None, ...]]) -> bool:
    """Whether the first column has no name and counts the rows from 0 or 1 on, as data frames are written."""
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
    """The last column; or the first, if that holds classes by name and the last does not."""

    def classes(n: int) -> bool:
        cells = [row[n] for row in rows]
        distinct = len(set(cells))
        return not numeric[n] and None not in cells and distinct <= FEW and 2 * distinct <= len(cells)

    return names[0] if classes(0) and not classes(-1) else names[-1]


def heading(cells: list[str | None]) -> list[str]:
    """Names of columns, each of its own."""
    names: list[str] = []
    for n, cell in enumerate(cells):
        name = cell.strip() if cell and cell.strip() else f"c{n}"
        while name in names:
            name += "_"
        names.append(name)
    return names


def check_types(options: Options, names: list[str], numeric: list[bool], where: str) -> list[bool]:
    """The types a user has set, in place of guessed ones."""
    for name, kind in options.types.items():
        if name not in names:
            raise DataError(f"{where} has no column {name!r} to be a {kind}")
        if kind not in ("number", "string"):
            raise ValueError(f"a column's type is 'number' or 'string', not {kind!r}")
        numeric[names.index(name)] = kind == "number"
    return numeric


def most_common_width(widths: list[int]) -> int:
    return int(Counter(widths).most_common(1)[0][0])

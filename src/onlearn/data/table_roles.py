"""The roles of columns in tables: target, weight and id, which are taken out of the features."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from hashlib import blake2b
from typing import Any

import numpy as np

from onlearn.data.arrow import codes, in_one_piece, is_missing, numbers
from onlearn.data.bad_rows import Bad, DataError, PieceBad
from onlearn.data.formats.scanning import keep_rows
from onlearn.data.label_sets import joined
from onlearn.data.names import is_number, number_names
from onlearn.data.registry import Options, Parsed
from onlearn.engine.spec import did_you_mean

TARGETS = ("label", "target", "class", "y")
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")  # cells that stand for a missing value
KEPT_ID = "\0id"  # a second column with the ids as written, if the column of ids is also a feature


def flat(table: Any) -> Any:
    """A PyArrow table with the fields of its structs as columns named ``outer.inner``."""
    import pyarrow as pa

    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def spread(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A row with the keys of nested dicts as ``outer.inner``; raises ValueError if two keys become equal.

    >>> spread({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    if not prefix and not any(isinstance(value, dict) for value in row.values()):
        return row
    made: dict[str, Any] = {}
    for key, value in row.items():
        inner = spread(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        if made.keys() & inner.keys():
            name = next(name for name in inner if name in made)
            raise ValueError(f"there are several columns {name!r}: name them apart")
        made |= inner
    return made


def find_column(names: list[str], wanted: str | int, what: str, where: str) -> str:
    """The name of a column given by name or position."""
    if isinstance(wanted, int) or (wanted not in names and wanted.lstrip("-").isdigit()):
        position = int(wanted)
        if not -len(names) <= position < len(names):
            raise DataError(f"{where} has {len(names)} columns: there is no column {position} to be the {what}")
        return names[position]
    if wanted not in names:
        raise DataError(f"{where} has no column {wanted!r} to be the {what}{did_you_mean(wanted, names)}")
    return wanted


def shown(names: list[str], most: int = 12) -> str:
    """The first names, for a message."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def usual_target(names: list[str]) -> str | None:
    """The column with a usual name of a target."""
    by_name = {name.strip().lower(): name for name in reversed(names)}
    return next((by_name[usual] for usual in TARGETS if usual in by_name), None)


class Roles:
    """The columns that are not features."""

    def __init__(self, options: Options, names: list[str], where: str, notes: list[str], fallback: str | None) -> None:
        self.options: Options = options
        self.target: str | None
        if options.target is not None:
            # Rows to predict need no target.
            absent = not options.target_required and isinstance(options.target, str) and options.target not in names
            self.target = None if absent else find_column(names, options.target, "target", where)
        else:
            self.target = usual_target(names) or fallback
            if self.target is not None:
                notes.append(f"{where}: the target is column {self.target!r}; say target= if it is another")
        if self.target is None and options.target_required:
            raise DataError(f"{where}: which column is the target cannot be told; say target=, one of {shown(names)}")
        self.weight: str | None = (
            None if options.weight is None else find_column(names, options.weight, "weight", where)
        )
        self.group: str | None = None
        if options.group is not None and (options.target_required or options.group in names):
            self.group = find_column(names, options.group, "group", where)
        lacks_id = options.id is None or (not options.id_required and options.id not in names)
        self.id: str | None = None if lacks_id or options.id is None else find_column(names, options.id, "id", where)

    @property
    def columns(self) -> set[str]:
        """The columns that are taken out of the features."""
        id = None if self.options.id_kept else self.id
        return {name for name in (self.target, self.weight, self.group, id) if name is not None}

    @property
    def dispensable(self) -> set[str | None]:
        """The columns that a further file may lack: target and id, if they are optional."""
        return ({self.target, self.group} if not self.options.target_required else set()) | (
            {self.id} if not self.options.id_required else set()
        )

    def found(self) -> dict[str, Any]:
        """The columns by role, as options of ``read``."""
        named = {"target": self.target, "weight": self.weight, "group": self.group, "id": self.id}
        return {role: column for role, column in named.items() if column is not None}

    def with_options(self, options: Options) -> Roles:
        """The same columns for a reader with other options."""
        roles = copy.copy(self)
        roles.options = options
        return roles

    def within(self, names: Collection[str]) -> Roles:
        """The roles in a file that has these columns."""
        absent = {name for name in self.dispensable if name not in names}
        if not absent - {None}:
            return self
        roles = copy.copy(self)
        roles.target = None if self.target in absent else self.target
        roles.group = None if self.group in absent else self.group
        roles.id = None if self.id in absent else self.id
        return roles


def as_strings(column: Any) -> Any:
    """An Arrow column as strings: numbers by their names, NaN is missing."""
    import pyarrow as pa

    try:
        return number_names(column) if is_number(column.type) else column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        several = ": say task=multilabel if these are several labels a row" if is_list(column.type) else ""
        raise DataError(f"a column of {column.type} cannot be a label or an id{several}") from error


def group_number(name: str) -> int:
    """A number for the name of a group, the same in every file: a hash of 63 bits."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") >> 1


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is one of lists."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def tellable(column: Any) -> Any:
    """A column that converts to Python values: times become strings, because those in nanoseconds need pandas."""
    import pyarrow as pa

    if not pa.types.is_temporal(column.type) or pa.types.is_interval(column.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:  # an unknown time zone, or a year that has more than four digits
        return column.cast(pa.int64())


def as_numbers(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """An Arrow column as float64 (NaN for null and for other values), and a mask of values that are not numbers."""
    import pyarrow as pa

    try:
        values = numbers(column.cast(pa.float64(), safe=False))
        return values, np.zeros(len(values), dtype=bool)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values, wrong = np.full(len(column), np.nan), np.zeros(len(column), dtype=bool)
        for row, value in enumerate(as_strings(column).to_pylist()):
            try:
                values[row] = np.nan if value is None else float(value)
            except ValueError:
                wrong[row] = True
        return values, wrong


def take_roles(parsed: Parsed, roles: Roles, raw: Callable[[int], bytes], may_be_infinite: bool = True) -> Parsed:
    """Take target, weight and id out of ``parsed.rows``, a table; rows without what they need become bad.

    ``raw(row)`` gives the bytes of a row for the file of bad rows. Infinite numbers make a row bad, too, as does NaN in
    a list; ``may_be_infinite=False`` says that there are none.
    """
    options, table = roles.options, parsed.rows
    spoiled: dict[int, str] = {}
    if roles.target is not None:
        column = in_one_piece(table.column(roles.target))
        if options.regress:
            values, wrong = as_numbers(column)
            parsed.numbers = values
            spoil(spoiled, wrong, f"the target, {roles.target!r}, is not a number")
            spoil(spoiled, np.isinf(values), f"the target, {roles.target!r}, is infinite")
            absent = np.isnan(values) & ~wrong
        else:
            written = joined(column) if options.multilabel and is_list(column.type) else as_strings(column)
            encoded = written.dictionary_encode()
            parsed.names = encoded.dictionary.to_pylist()
            parsed.codes = codes(encoded)
            absent = parsed.codes < 0
        if options.labelled:
            spoil(spoiled, absent, f"the target, {roles.target!r}, is missing")
    if roles.weight is not None:
        parsed.weight, _ = as_numbers(in_one_piece(table.column(roles.weight)))
        wrong = ~(np.isfinite(parsed.weight) & (parsed.weight >= 0))
        spoil(spoiled, wrong, f"the weight, {roles.weight!r}, is not a number of at least 0")
    if roles.group is not None:
        encoded = as_strings(in_one_piece(table.column(roles.group))).dictionary_encode()
        numbers_of = [group_number(name) for name in encoded.dictionary.to_pylist()]
        parsed.groups = np.array([*numbers_of, -1], dtype=np.int64)[codes(encoded)]
        spoil(spoiled, parsed.groups < 0, f"the group, {roles.group!r}, is missing")
    if roles.id is not None:
        written = KEPT_ID if KEPT_ID in table.column_names else roles.id
        parsed.ids = np.array(as_strings(in_one_piece(table.column(written))).to_pylist(), dtype=object)
    taken = [name for name in table.column_names if name in {KEPT_ID, *roles.columns}]
    parsed.rows = table.drop_columns(taken) if taken else table
    if may_be_infinite:
        spoil_infinite(spoiled, table, roles.target)
    if options.missing == "error":
        for name in parsed.rows.column_names:
            column = parsed.rows.column(name)
            if column.null_count:
                spoil(spoiled, is_missing(in_one_piece(column)), f"{name!r} is missing")
    if spoiled:
        parsed.bad += PieceBad(
            Bad(int(parsed.lines[row]), 0, reason, raw(row)) for row, reason in sorted(spoiled.items())
        ).all()
        parsed.bad.sort(key=lambda bad: bad.line)
        keep_rows(parsed, np.setdiff1d(np.arange(len(parsed.lines)), list(spoiled)))
    return parsed


def spoil_infinite(spoiled: dict[int, str], table: Any, target: str | None) -> None:
    """Mark rows with numbers that no learner accepts and that are no names as bad: infinite ones, and NaN in lists."""
    for name, column in zip(table.column_names, table.columns):
        what = f"the target, {name!r}," if name == target else f"{name!r}"
        holds = "holds an infinite number or NaN" if is_list(column.type) else "is infinite"
        spoil(spoiled, not_finite(in_one_piece(column)), f"{what} {holds}")


def not_finite(column: Any, inside: bool = False) -> np.ndarray:
    """A mask of the values of an Arrow column that are infinite or hold an infinite number or NaN.

    NaN that is ``inside`` no list is a missing value.

    >>> import pyarrow as pa
    >>> not_finite(pa.array([[1.0, None], None, [], [float("nan"), 2.0]])).tolist()
    [False, False, False, True]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    wrong = np.zeros(len(column), dtype=bool)
    if pa.types.is_floating(column.type):
        values = numbers(column)
        return ~np.isfinite(values) & ~is_missing(column) if inside else np.isinf(values)
    if is_list(column.type):
        within = not_finite(column.flatten(), inside=True)
        if within.any():
            lengths = np.nan_to_num(numbers(pc.list_value_length(column))).astype(np.int64)
            wrong[np.repeat(np.arange(len(column)), lengths)[within]] = True
    elif pa.types.is_struct(column.type):
        for part in column.flatten():
            wrong |= not_finite(part, inside)
    return wrong


def spoil(spoiled: dict[int, str], where: np.ndarray, reason: str) -> None:
    """Record the reason for some rows, unless they have one."""
    for row in np.flatnonzero(where).tolist():
        spoiled.setdefault(row, reason)

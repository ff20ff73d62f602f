"""Record batches of files: validated, cut into pieces of limited size, and with plain columns.

PyArrow believes the offsets, indices and lengths in a file: to print, cast, slice or even measure a column with wrong
ones may end the process. So nothing touches a batch before ``is_all_text`` has validated it.

Dictionaries, runs and views stand for values that are much longer than what is stored: a string of a megabyte may stand
in every row. ``cut`` measures values as they are once they are written out, so ``plain`` needs no more than a piece may
take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn.data.arrow import codes, from_numpy, in_one_piece, is_missing, numbers

MEASURED = 1 << 20  # rows that are measured at a time
BITLESS = 1 << 20  # rows that need no bit each: of nulls, or in one run
VIEWS = ("string_view", "binary_view")
LISTS = ("list", "large_list", "fixed_size_list")
LIST_VIEWS = ("list_view", "large_list_view")
SHORT_DECIMALS = ("decimal32", "decimal64")
CLASSLESS = ("month_interval", "day_time_interval")


def is_of(kind: Any, *names: str) -> bool:
    """Whether an Arrow type is one of some kinds, which older versions of PyArrow may not know.

    >>> import pyarrow as pa
    >>> is_of(pa.int64(), "string", "integer")
    True
    """
    import pyarrow.types as kinds

    for name in names:
        asked = getattr(kinds, f"is_{name}", None)
        if asked is not None and asked(kind):
            return True
    return False


def is_fixed(kind: Any) -> bool:
    """Whether each value of an Arrow type is a number, a truth value or a time, which all take the same room."""
    import pyarrow.types as kinds

    return bool(kinds.is_primitive(kind))


def is_extension(kind: Any) -> bool:
    import pyarrow as pa

    return isinstance(kind, pa.BaseExtensionType)


# ----------------------------------------------------------------------------------------------------
# Validation.


def is_all_text(batch: Any) -> bool:
    """Validate a record batch: whether all of its text is UTF-8; raises ``ArrowInvalid`` if it is damaged otherwise.

    What is not UTF-8 concerns only the rows that it stands in: Arrow handles texts as bytes.
    """
    import pyarrow as pa

    for kind in batch.schema.types:
        check_known(kind)
    size = batch.get_total_buffer_size()
    if batch.num_rows > BITLESS + 8 * size:
        raise pa.ArrowInvalid(f"it states {batch.num_rows:,} rows, but holds {size:,} bytes")
    try:
        batch.validate(full=True)
        return True
    except pa.ArrowInvalid as error:
        try:
            columns = [column.view(with_bytes(column.type)) for column in batch.columns]
        except (pa.ArrowException, ValueError):  # of lists of no values, there is no such type
            raise error from None
    pa.record_batch(columns, [str(n) for n in range(len(columns))]).validate(full=True)
    return False


def check_known(kind: Any) -> None:
    """Refuse a type that PyArrow reads but has no class of arrays for, which not even a column can be made of."""
    import pyarrow as pa

    if str(kind) in CLASSLESS:
        raise pa.ArrowNotImplementedError(f"values of type {kind} cannot be read")
    for inner in types_within(kind):
        check_known(inner)


def types_within(kind: Any) -> list[Any]:
    """The types of the values inside the values of an Arrow type."""
    if is_extension(kind):
        return [kind.storage_type]
    if is_of(kind, "map"):
        return [kind.key_type, kind.item_type]
    if is_of(kind, "struct", "union"):
        return [field.type for field in kind]
    if is_of(kind, "dictionary", "run_end_encoded", *LISTS, *LIST_VIEWS):
        return [kind.value_type]
    return []


def with_bytes(kind: Any) -> Any:
    """The Arrow type of the same layout that has bytes in place of text."""
    import pyarrow as pa

    if is_extension(kind):
        return with_bytes(kind.storage_type)
    if is_of(kind, "string"):
        return pa.binary()
    if is_of(kind, "large_string"):
        return pa.large_binary()
    if is_of(kind, "string_view"):
        return pa.binary_view()
    if is_of(kind, "dictionary"):
        return pa.dictionary(kind.index_type, with_bytes(kind.value_type), kind.ordered)
    if is_of(kind, "run_end_encoded"):
        return pa.run_end_encoded(kind.run_end_type, with_bytes(kind.value_type))
    if is_of(kind, "map"):
        return pa.map_(with_bytes(kind.key_type), with_bytes(kind.item_type), kind.keys_sorted)
    if is_of(kind, "fixed_size_list"):
        return pa.list_(with_bytes(kind.value_type), kind.list_size)
    for name in ("list", "large_list", *LIST_VIEWS):
        if is_of(kind, name):
            return getattr(pa, "list_" if name == "list" else name)(with_bytes(kind.value_type))
    if is_of(kind, "struct", "union"):
        fields = [field.with_type(with_bytes(field.type)) for field in kind]
        return pa.struct(fields) if is_of(kind, "struct") else pa.union(fields, kind.mode, kind.type_codes)
    return kind


def not_text(column: Any) -> np.ndarray:
    """A mask of the values of a plain array that hold text which is not UTF-8, anywhere inside."""
    import pyarrow as pa

    kind, wrong = column.type, np.zeros(len(column), bool)
    try:
        column.validate(full=True)
        return wrong
    except pa.ArrowInvalid:
        pass
    if is_of(kind, "list", "large_list", "map"):
        places = numbers(column.offsets)
        first, count = int(places[0]), int(places[-1] - places[0])
        inner = (column.keys, column.items) if is_of(kind, "map") else (column.values,)
        before = sums(np.any([not_text(part.slice(first, count)) for part in inner], axis=0))
        return (np.diff(before[places - first]) > 0) & ~is_missing(column)
    if is_of(kind, "fixed_size_list"):
        size = kind.list_size
        within = not_text(column.values.slice(column.offset * size, len(column) * size))
        return within.reshape(len(column), size).any(axis=1) & ~is_missing(column)
    if is_of(kind, "struct"):
        return np.any([wrong, *map(not_text, column.flatten())], axis=0)
    for row in range(len(column)):
        try:
            column[row].as_py()
        except UnicodeDecodeError:
            wrong[row] = True
        except (ValueError, OverflowError):  # a time that Python has no object for, in a union
            pass
    return wrong


# ----------------------------------------------------------------------------------------------------
# Pieces.


def cut(table: Any, most_rows: int, most_bytes: int) -> Iterator[Any]:
    """The rows of a table in pieces. A piece takes at most ``most_bytes`` once it is written out, or is a single row.

    >>> import pyarrow as pa
    >>> column = pa.DictionaryArray.from_arrays([0, 1, 1, 0], ["a" * 1000, "b"])
    >>> [len(piece) for piece in cut(pa.table({"text": column}), 100, 1500)]
    [3, 1]
    """
    for first in range(0, len(table), MEASURED):
        here = table.slice(first, MEASURED)
        width = sum(field.type.bit_width / 8 for field in table.schema if is_fixed(field.type))
        others = (in_one_piece(column) for column in here.columns if not is_fixed(column.type))
        ends = np.cumsum(sum(map(row_bytes, others), np.full(len(here), width)))
        start = 0
        while start < len(here):
            room = most_bytes + (ends[start - 1] if start else 0.0)
            stop = max(start + 1, min(start + most_rows, int(np.searchsorted(ends, room, "right"))))
            yield here.slice(start, stop - start)
            start = stop


def parts(batch: Any) -> Iterator[Any]:
    """The arrays of which the columns of a batch consist: those without others inside, as Parquet stores them."""
    left = batch.columns[::-1]
    while left:
        values = left.pop()
        kind = values.type
        if is_extension(kind):
            left.append(values.storage)
        elif is_of(kind, "map"):
            left += [values.items, values.keys]
        elif is_of(kind, *LISTS, *LIST_VIEWS):
            left.append(values.values)
        elif is_of(kind, "struct"):
            left += [values.field(n) for n in reversed(range(kind.num_fields))]
        else:
            yield values


def longest(values: Any) -> float:
    """The bytes of the longest value of an array, or in its dictionary."""
    return float(row_bytes(values.dictionary if is_of(values.type, "dictionary") else values).max(initial=0.0))


def row_bytes(values: Any) -> np.ndarray:
    """The bytes of each value of an array once it is written out, about. They are floats, which do not overflow.

    >>> import pyarrow as pa
    >>> row_bytes(pa.array(["word", None, "word"]).dictionary_encode()).tolist()
    [8.0, 4.0, 8.0]
    """
    import pyarrow.compute as pc

    kind = values.type
    if is_fixed(kind):
        return np.full(len(values), kind.bit_width / 8)
    if is_extension(kind):
        return row_bytes(values.storage)
    if is_of(kind, "dictionary", "run_end_encoded"):
        distinct, positions = encoded(values)
        return np.append(row_bytes(distinct), 4.0)[positions]
    if is_of(kind, *VIEWS):
        lengths = np.frombuffer(values.buffers()[1], np.int32, 4 * (values.offset + len(values)))[::4]
        return 4.0 + np.where(is_missing(values), 0, lengths[values.offset :])
    if is_of(kind, "string", "large_string", "binary", "large_binary"):
        return 4.0 + np.nan_to_num(numbers(pc.binary_length(values)))
    if is_of(kind, "list", "large_list", "map"):
        places = numbers(values.offsets)
        first, count = int(places[0]), int(places[-1] - places[0])
        inner = (values.keys, values.items) if is_of(kind, "map") else (values.values,)
        before = sums(sum((row_bytes(part.slice(first, count)) for part in inner), np.zeros(count)))
        return 4.0 + np.diff(before[places - first])
    if is_of(kind, *LIST_VIEWS):
        here = ~is_missing(values)
        first, count = numbers(values.offsets) * here, numbers(values.sizes) * here
        before = sums(row_bytes(values.values))
        return 8.0 + before[first + count] - before[first]
    if is_of(kind, "fixed_size_list"):
        size = kind.list_size
        sizes = row_bytes(values.values.slice(values.offset * size, len(values) * size))
        return sizes.reshape(len(values), size).sum(axis=1)
    if is_of(kind, "struct"):
        return sum((row_bytes(values.field(n)) for n in range(kind.num_fields)), np.zeros(len(values)))
    if is_of(kind, "union"):  # each value may be the longest one
        return np.full(len(values), sum(row_bytes(values.field(n)).max(initial=8) for n in range(kind.num_fields)))
    return np.full(len(values), 0.0 if is_of(kind, "null") else kind.bit_width / 8)


def sums(sizes: np.ndarray) -> np.ndarray:
    """The sums of all before each place, and of all."""
    return np.concatenate([np.zeros(1), np.cumsum(sizes)])


def encoded(values: Any) -> tuple[Any, np.ndarray]:
    """The distinct values of a dictionary array, or those of runs, and the position of each value among them; -1: null.

    >>> import pyarrow as pa
    >>> encoded(pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]))[1].tolist()
    [0, 0, 1]
    """
    if is_of(values.type, "dictionary"):
        return values.dictionary, codes(values)
    rows = np.arange(values.offset, values.offset + len(values))
    return values.values, np.searchsorted(numbers(values.run_ends), rows, "right")


# ----------------------------------------------------------------------------------------------------
# Plain columns.


def plain(values: Any) -> Any:
    """An array with all values written out: without dictionaries, runs, views and other types that few functions take.

    >>> import pyarrow as pa
    >>> plain(pa.array([["a"], ["b", "a"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))).type
    LargeListType(large_list<item: string>)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if is_plain(kind):
        return values
    if is_extension(kind):
        return plain(values.storage)
    if is_of(kind, *SHORT_DECIMALS):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if is_of(kind, *VIEWS):
        return values.cast(pa.large_string() if is_of(kind, "string_view") else pa.large_binary())
    if is_of(kind, "dictionary", "run_end_encoded"):
        distinct, positions = encoded(values)
        if not is_plain(distinct.type):  # nor can they be taken
            used, positions = np.unique(positions, return_inverse=True)
            parts = [distinct.slice(k, 1) if k >= 0 else pa.nulls(1, distinct.type) for k in used.tolist()]
            distinct = pa.concat_arrays(map(plain, parts or [distinct.slice(0, 0)]))
        return distinct.take(from_numpy(positions, positions < 0))
    if is_of(kind, *LISTS, *LIST_VIEWS):
        lengths = np.nan_to_num(numbers(pc.list_value_length(values)))
        ends = from_numpy(sums(lengths).astype(np.int64))
        return pa.LargeListArray.from_arrays(ends, plain(values.flatten()), mask=from_numpy(is_missing(values)))
    if is_of(kind, "struct"):
        parts = [plain(part) for part in values.flatten()]
        names = [field.name for field in kind]
        return pa.StructArray.from_arrays(parts, names, mask=from_numpy(is_missing(values)))
    raise pa.ArrowNotImplementedError(f"values of type {kind} cannot be read")


def is_plain(kind: Any) -> bool:
    """Whether most functions take an Arrow type: there are no dictionaries, runs, views and such, anywhere inside."""
    if is_fixed(kind) or is_of(kind, "string"):
        return True
    if is_extension(kind) or is_of(kind, "dictionary", "run_end_encoded", *VIEWS, *LIST_VIEWS, *SHORT_DECIMALS):
        return False
    if is_of(kind, "map"):
        return is_plain(kind.key_type) and is_plain(kind.item_type)
    if is_of(kind, *LISTS):
        return is_plain(kind.value_type)
    return not is_of(kind, "struct", "union") or all(is_plain(field.type) for field in kind)

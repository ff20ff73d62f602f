"""Conversion between Arrow columns and NumPy arrays by their buffers.

PyArrow's own conversions (``pa.array``, ``pa.scalar``, ``to_numpy``, and compute functions with Python values) import
pandas if it is installed, which takes longer than reading a small file. The functions here do not; only values of
unusual types are left to PyArrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

EXACT = 1 << 53  # whole numbers up to this size are exact as float64


def in_one_piece(column: Any) -> Any:
    """A column of a table as one array. ``combine_chunks`` would copy even a single chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def is_missing(values: Any) -> np.ndarray:
    """A mask of the values of an array that are null."""
    import pyarrow.compute as pc

    return booleans(pc.is_null(values)) if values.null_count else np.zeros(len(values), bool)


def booleans(values: Any) -> np.ndarray:
    """An array of booleans without nulls."""
    _, bits = values.buffers()
    if bits is None:
        return np.zeros(len(values), bool)
    first = values.offset
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=first + len(values), bitorder="little")[first:].view(bool)


def numbers(values: Any) -> np.ndarray:
    """An array of numbers: a view of the same memory, or, with nulls, floats in which null is NaN.

    >>> numbers(from_values([1, None]))
    array([ 1., nan])
    """
    import pyarrow.types as kinds

    kind = values.type
    letter = "f" if kinds.is_floating(kind) else "i" if kinds.is_signed_integer(kind) else "u"
    made = _content(values, f"{letter}{kind.bit_width // 8}")
    if not values.null_count:
        return made
    made = made.copy() if letter == "f" else made.astype(np.float64)
    made[is_missing(values)] = np.nan
    return made


def _content(values: Any, dtype: Any) -> np.ndarray:
    """An array of fixed width as a view of the same memory; null values are undefined."""
    _, content = values.buffers()
    if content is None:
        return np.zeros(len(values), dtype)
    return np.frombuffer(content, dtype, values.offset + len(values))[values.offset :]


def string_parts(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of an array of large strings, and the offsets of the strings."""
    _, offsets, content = values.buffers()
    text = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(0, np.uint8)
    if not len(values):
        return text, np.zeros(1, np.int64)
    return text, np.frombuffer(offsets, np.int64, values.offset + len(values) + 1)[values.offset :]


def codes(encoded: Any) -> np.ndarray:
    """The positions in the dictionary of a dictionary array; -1 for null."""
    import pyarrow as pa

    indices = encoded.indices.cast(pa.int64())  # indices may be unsigned
    made = _content(indices, np.int64).copy()
    made[is_missing(indices)] = -1
    return made


def decoded(values: Any) -> Any:
    """The values of a dictionary array; string views as strings, because PyArrow can neither take nor decode them."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        return decoded(values.dictionary).take(values.indices)
    is_view = getattr(pa.types, "is_string_view", None)
    return values.cast(pa.large_string()) if is_view is not None and is_view(values.type) else values


def from_numpy(values: np.ndarray, missing: np.ndarray | None = None) -> Any:
    """An Arrow array of numbers or booleans; null where ``missing`` is true."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    content = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [_valid(missing), pa.py_buffer(content)])


def from_strings(values: Sequence[str | None], kind: Any = None) -> Any:
    """An Arrow array of strings; None becomes null. ``kind`` is a string type, by default ``pa.string()``.

    >>> from_strings(["a", None]).to_pylist()
    ['a', None]
    """
    import pyarrow as pa

    absent = np.fromiter((value is None for value in values), bool, len(values))
    words = ["" if value is None else value for value in values] if absent.any() else values
    whole = "".join(words)  # type: ignore[arg-type]
    text = whole.encode()
    if len(text) == len(whole):  # ASCII
        lengths = np.fromiter(map(len, words), np.int64, len(words))  # type: ignore[arg-type]
    else:
        lengths = np.fromiter((len(word.encode()) for word in words), np.int64, len(words))  # type: ignore[union-attr]
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    parts = [_valid(absent if absent.any() else None), pa.py_buffer(offsets), pa.py_buffer(text)]
    made = pa.Array.from_buffers(pa.large_string(), len(words), parts)
    wanted = pa.string() if kind is None else kind
    return made if wanted == pa.large_string() else made.cast(wanted)


def from_values(values: list[Any]) -> Any:
    """An Arrow array of Python values, of the type that ``pa.array`` would choose.

    >>> from_values([1, 2.5, None]).type
    DataType(double)
    """
    import pyarrow as pa

    kinds = {*map(type, values)} - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {str}:
        return from_strings(values)
    if kinds in ({bool}, {int}, {float}, {int, float}):
        kind = float if float in kinds else kinds.pop()
        absent = np.fromiter((value is None for value in values), bool, len(values))
        exact = kind is not float or all(abs(value) <= EXACT for value in values if type(value) is int)
        filled = [kind() if value is None else value for value in values] if absent.any() else values
        try:
            made = np.array(filled, {bool: bool, int: np.int64, float: np.float64}[kind]) if exact else None
        except OverflowError:
            made = None
        if made is not None:
            return from_numpy(made, absent if absent.any() else None)
    return pa.array(values)


def scalar(value: str | float | bool) -> Any:
    """An Arrow scalar."""
    return from_values([value])[0]


def null(kind: Any) -> Any:
    """The null of a type."""
    import pyarrow as pa

    return pa.nulls(1, kind)[0]


def _valid(missing: np.ndarray | None) -> Any:
    """The bitmap of the values that are not missing; None if all are there."""
    import pyarrow as pa

    return None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))

"""Arrow columns as names: labels, categories, ids."""

from __future__ import annotations

from typing import Any

from onlearn.data.arrow import from_strings, null
from onlearn.engine.number_names import number_name


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def number_names(column: Any) -> Any:
    """An Arrow column of numbers as strings, each as ``number_name`` spells it; null and NaN become null.

    >>> from onlearn.data.arrow import from_values
    >>> number_names(from_values([1.0, 0.5, None])).to_pylist()
    ['1', '0.5', None]
    """
    import pyarrow as pa

    if not pa.types.is_integer(column.type):
        column = without_nan(column)
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:  # not all of them are whole and of this size
            distinct = column.dictionary_encode()
            names = from_strings([number_name(value) for value in distinct.dictionary.to_pylist()])
            return names.take(distinct.indices)
    return column.cast(pa.string())


def without_nan(column: Any) -> Any:
    """An Arrow column in which NaN becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())  # PyArrow has few functions for the half
    return pc.if_else(pc.is_nan(column), null(column.type), column)

"""Arrow's columns: in one piece; and taken apart if they hold each distinct value once, which PyArrow does in part."""

from __future__ import annotations

from typing import Any

import numpy as np


def in_one_piece(column: Any) -> Any:
    """A column of a table as an array. (``combine_chunks`` copies also what is one already.)"""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def codes(encoded: Any) -> np.ndarray:
    """Which value of its dictionary each row of an array has; -1: none."""
    import pyarrow as pa

    indices = encoded.indices.cast(pa.int64())  # those that are unsigned have no -1
    return np.array(indices.fill_null(-1))


def decoded(values: Any) -> Any:
    """An array with its values in full, if it is a dictionary; strings that are views, which PyArrow can neither select
    nor decode, as plain ones."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        return decoded(values.dictionary).take(values.indices)
    is_view = getattr(pa.types, "is_string_view", None)
    return values.cast(pa.large_string()) if is_view is not None and is_view(values.type) else values

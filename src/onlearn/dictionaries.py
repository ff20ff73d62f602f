"""Arrow's dictionaries, columns that hold each distinct value once: what PyArrow lacks to take all kinds apart."""

from __future__ import annotations

from typing import Any

import numpy as np


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

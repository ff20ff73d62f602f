"""Objects within rows: their fields are columns named ``outer.inner``."""

from __future__ import annotations

from typing import Any


def flat(table: Any) -> Any:
    """A PyArrow table with the fields of its structs as columns."""
    import pyarrow as pa

    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def spread(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A row with the keys of dicts within as its own.

    >>> spread({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    made: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            made |= spread(value, f"{prefix}{key}.")
        else:
            made[prefix + key] = value
    return made

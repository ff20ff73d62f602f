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
    """A row with the keys of dicts within as its own; two that would be the same are a ValueError.

    >>> spread({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    made: dict[str, Any] = {}
    for key, value in row.items():
        inner = spread(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        if made.keys() & inner.keys():
            name = next(name for name in inner if name in made)
            raise ValueError(f"there are several columns {name!r}: name them apart")
        made |= inner
    return made

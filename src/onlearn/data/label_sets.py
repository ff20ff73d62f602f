"""Several labels a row: how files write them, and the one name that readers give to a set of labels.

A set is named by its labels in order, with the control character UNIT SEPARATOR between them, which no label holds. So
sets are encoded as labels are, each distinct one once.
"""

from __future__ import annotations

from typing import Any

from onlearn.data.bad_rows import DataError
from onlearn.engine.number_names import label_name

UNIT = "\x1f"


def set_name(name: str, separator: str | None) -> str:
    """The name of the set that a file writes so: at each ``separator`` a label ends; spaces around labels are cut off.

    >>> set_name("b, a,,b", ",").split(UNIT)
    ['a', 'b']
    """
    parts = name.split(UNIT)
    if separator is not None:
        parts = [label for part in parts for label in part.split(separator)]
    return UNIT.join(sorted({label.strip() for label in parts} - {""}))


def labels_in(name: str) -> tuple[str, ...]:
    """The labels of a set by its name.

    >>> labels_in(set_name("b;a", ";")), labels_in("")
    (('a', 'b'), ())
    """
    return tuple(name.split(UNIT)) if name else ()


def joined(column: Any) -> Any:
    """An Arrow column of lists as one of names of sets, for ``set_name``; null where there is no list."""
    import pyarrow as pa

    from onlearn.data.arrow import from_strings

    try:
        rows = column.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise DataError(f"a column of {column.type} cannot be labels: Python has no object for some of them") from error
    return from_strings([None if row is None else UNIT.join(map(_written, row)) for row in rows])


def _written(label: Any) -> str:
    """A label in a list as a file would write it by itself."""
    return "" if label is None else label_name(label)

"""The spelling of a number that becomes a name: a label, a category, an id, a text among texts.

Equal numbers have one name, whatever their type, the file or the parser they come from, and unequal ones have different
names. Whole numbers are all their digits: 1.0 is ``1``, 1e5 is ``100000``. Other numbers are spelled as Python does, by
the fewest digits that give back the same double: ``0.1``, ``1e-07``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def number_name(value: Any) -> str:
    """The name of a number of Python or NumPy, or of a ``Decimal``.

    >>> [number_name(value) for value in (1.0, -0.0, 1e5, 0.1, 10**30, Decimal("2.50"))]
    ['1', '0', '100000', '0.1', '1000000000000000000000000000000', '2.5']
    """
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, Decimal):
        return _decimal_name(value)
    value = float(value)
    return str(int(value)) if value.is_integer() else repr(value)


def label_name(label: Any) -> str:
    """A label as a file would write it: numbers by their names, anything else as Python writes it.

    >>> [label_name(label) for label in ("1.0", 1.0, True, None)]
    ['1.0', '1', 'True', 'None']
    """
    label = label.item() if hasattr(label, "item") else label
    is_number = isinstance(label, (int, float, Decimal)) and not isinstance(label, bool)
    return number_name(label) if is_number else str(label)


def _decimal_name(value: Decimal) -> str:
    """The name of the double that has the same spelling, if there is one; else all digits."""
    if not value.is_finite():
        return repr(float(value))
    if value == value.to_integral_value():
        return str(int(value))
    usual = repr(float(value))
    return usual if Decimal(usual) == value else f"{value:f}".rstrip("0")

"""What commands ask of ``pyarrow.compute`` for most files, without it: to import it takes 30 ms.

It makes a Python function for each of Arrow's some 300. Those here call Arrow in the same way; for any other, the
module itself is imported (see ``later``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow._compute import CastOptions, DictionaryEncodeOptions, SetLookupOptions, call_function

__all__ = ["DictionaryEncodeOptions", "any", "call_function", "cast", "drop_null", "fill_null", "is_in"]


def any(values: Any) -> Any:
    return call_function("any", [values])


def drop_null(values: Any) -> Any:
    return call_function("drop_null", [values])


def is_in(values: Any, value_set: Any) -> Any:
    return call_function("is_in", [values], SetLookupOptions(value_set))


def cast(values: Any, target_type: Any = None, safe: Any = None, options: Any = None, memory_pool: Any = None) -> Any:
    """``Array.cast`` calls it with all of these."""
    if options is None:
        check = CastOptions.unsafe if safe is False else CastOptions.safe
        options = check(pa.lib.ensure_type(target_type))
    return call_function("cast", [values], options, memory_pool)


def fill_null(values: Any, fill_value: Any) -> Any:
    """With a plain value of Python's, which is all that commands fill in."""
    return call_function("coalesce", [values, pa.scalar(fill_value, values.type)])

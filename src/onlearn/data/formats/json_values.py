"""The kinds of JSON values, and values as Arrow columns of one kind.

A kind is an Arrow type: float64 for all numbers, string, boolean, a list of a kind, a struct (an object in a list), or
null if it is open. Values come as an Arrow column, or as a list of what ``json.loads`` makes of them. A row is the same
by either way: what becomes of a value depends on the value and on the kind, not on other rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from onlearn.data.arrow import booleans, from_numpy, from_strings, is_missing, null, numbers, scalar
from onlearn.data.names import number_names, without_nan
from onlearn.data.table_roles import MISSING, as_numbers
from onlearn.engine.number_names import number_name

LARGE = 2**53  # larger whole numbers are names, not amounts
MISSING_WORDS = frozenset(MISSING)


class OtherKindError(ValueError):
    """A value is not of the kind of its column."""


def json_value(raw: bytes) -> Any:
    """What a JSON text holds. A whole number of more digits than Python reads (some thousands) is infinite."""
    text = raw.decode()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_whole_number)


def _whole_number(digits: str) -> float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


# ----------------------------------------------------------------------------------------------------
# Which kind.


def kind_of_value(value: Any) -> Any:
    """The kind of one value.

    >>> str(kind_of_value([1, 2.5])), str(kind_of_value(2**53 + 1))
    ('list<item: double>', 'string')
    """
    import pyarrow as pa

    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, (int, float)):
        return pa.string() if isinstance(value, int) and abs(value) > LARGE else pa.float64()
    if isinstance(value, list):
        return pa.list_(kind_of_values(value))
    if isinstance(value, dict):
        return pa.struct([(name, kind_of_value(one)) for name, one in value.items()])
    return pa.string()


def kind_of_values(values: Sequence[Any]) -> Any:
    """The kind that values have in common."""
    import pyarrow as pa

    return reduce(in_common, map(kind_of_value, values), pa.null())


def kind_of_column(column: Any) -> Any:
    """The kind of an Arrow column, which holds no number that was ``rounded``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_integer(kind):
        extremes = pc.min_max(column).as_py()
        return pa.string() if max(abs(one or 0) for one in extremes.values()) > LARGE else pa.float64()
    if pa.types.is_list(kind):
        return pa.list_(kind_of_column(column.flatten()))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, kind_of_column(column.field(n))) for n, field in enumerate(kind)])
    return kind


def in_common(one: Any, other: Any) -> Any:
    """The kind of a column that has values of two kinds: strings, unless one is open."""
    import pyarrow as pa

    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(in_common(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return pa.struct(_fields(one, other, in_common))
    return pa.string()


def like(kind: Any, other: Any) -> Any:
    """What a value of another kind says about the open parts of a kind; null where it is no value of that kind.

    >>> import pyarrow as pa
    >>> str(like(pa.list_(pa.null()), pa.list_(pa.string()))), str(like(pa.list_(pa.null()), pa.string()))
    ('list<item: string>', 'null')
    """
    import pyarrow as pa

    if pa.types.is_null(kind):
        return other
    if pa.types.is_list(kind) and pa.types.is_list(other):
        return pa.list_(like(kind.value_type, other.value_type))
    if pa.types.is_struct(kind) and pa.types.is_struct(other):
        known = {field.name: field.type for field in kind}
        return pa.struct([(field.name, like(known.get(field.name, pa.null()), field.type)) for field in other])
    return pa.null()


def completed(kind: Any, more: Any) -> Any:
    """A kind that was decided before, and whose open parts are what ``more`` values say."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return more
    if pa.types.is_list(kind) and pa.types.is_list(more):
        return pa.list_(completed(kind.value_type, more.value_type))
    if pa.types.is_struct(kind) and pa.types.is_struct(more):
        return pa.struct(_fields(kind, more, completed))
    return kind


def _fields(one: Any, other: Any, join: Any) -> list[tuple[str, Any]]:
    """The fields of two structs; the kinds of those that both have are joined."""
    made = {field.name: field.type for field in one}
    for field in other:
        made[field.name] = join(made[field.name], field.type) if field.name in made else field.type
    return [*made.items()]


def kind_of_names(kind: Any, several: bool) -> Any:
    """The kind of a column of labels or ids with values of some kind; ``several``: some rows have lists of them."""
    import pyarrow as pa

    if several:
        return pa.list_(pa.string())
    return kind if pa.types.is_null(kind) or pa.types.is_nested(kind) else pa.string()


def rounded(column: Any) -> bool:
    """Whether Arrow may have rounded whole numbers to floats."""
    import pyarrow as pa

    return any((np.abs(numbers(leaf)) >= LARGE).any() for leaf in _leaves(column) if pa.types.is_floating(leaf.type))


def _leaves(column: Any) -> list[Any]:
    """The columns of plain values in a column of lists."""
    import pyarrow as pa

    if pa.types.is_list(column.type):
        return _leaves(column.flatten())
    if pa.types.is_struct(column.type):
        return [leaf for n in range(column.type.num_fields) for leaf in _leaves(column.field(n))]
    return [column]


# ----------------------------------------------------------------------------------------------------
# Values by the column.


def converted(column: Any, kind: Any) -> tuple[Any, np.ndarray] | None:
    """An Arrow column as one of a kind, and which values cannot be; None: this takes the values one by one."""
    import pyarrow as pa

    none = np.zeros(len(column), dtype=bool)
    from_kind = column.type
    if pa.types.is_null(from_kind):
        return pa.nulls(len(column), kind), none
    if pa.types.is_nested(from_kind) or pa.types.is_nested(kind):
        if not fits(from_kind, kind) or is_infinite(column):
            return None
        return column if from_kind == kind else column.cast(kind, safe=False), none
    if pa.types.is_string(from_kind):
        column = without_missing_words(column)
        if pa.types.is_string(kind):
            return column, none
        if pa.types.is_boolean(kind):
            return truths(column)
        values, wrong = as_numbers(column)
        return from_numpy(values, np.isnan(values)), wrong
    if pa.types.is_boolean(from_kind):
        if pa.types.is_floating(kind):
            return pa.nulls(len(column), kind), ~is_missing(column)
        return column.cast(kind), none
    if pa.types.is_string(kind):
        return None if rounded(column) else (number_names(column), none)
    column = without_nan(column)
    if pa.types.is_boolean(kind):
        return pa.nulls(len(column), kind), ~is_missing(column)
    return column.cast(kind, safe=False), none


def fits(one: Any, kind: Any) -> bool:
    """Whether Arrow converts nested values to a kind as ``fitted`` does, or refuses to."""
    import pyarrow as pa

    if one == kind or pa.types.is_null(one):
        return True
    if pa.types.is_list(one) and pa.types.is_list(kind):
        return fits(one.value_type, kind.value_type)
    return bool(pa.types.is_integer(one) and (pa.types.is_string(kind) or pa.types.is_floating(kind)))


def without_missing_words(column: Any) -> Any:
    """A column of strings in which words that stand for a missing value are null."""
    import pyarrow.compute as pc

    missing = pc.is_in(column, value_set=from_strings(MISSING))
    return pc.if_else(missing, null(column.type), column) if pc.any(missing).as_py() else column


def truths(words: Any) -> tuple[Any, np.ndarray]:
    """Words as booleans, and which words are neither true nor false. Arrow would take others, too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    true, false = pc.equal(words, scalar("true")), pc.equal(words, scalar("false"))
    either = pc.fill_null(pc.or_(true, false), scalar(True))
    return pc.if_else(either, true, null(pa.bool_())), ~booleans(either)


def is_infinite(column: Any) -> bool:
    """Whether a number is infinite."""
    import pyarrow as pa

    return any(np.isinf(numbers(leaf)).any() for leaf in _leaves(column) if pa.types.is_floating(leaf.type))


# ----------------------------------------------------------------------------------------------------
# Values one by one.


def column_of(values: Sequence[Any], kind: Any) -> tuple[Any, np.ndarray]:
    """Values as a column of a kind, and which of them cannot be."""
    import pyarrow as pa

    made, wrong = list[Any](), np.zeros(len(values), dtype=bool)
    types = {*map(type, values)} - {type(None)}
    if pa.types.is_string(kind) and types <= {str}:
        return from_strings([None if value in MISSING_WORDS else value for value in values]), wrong
    if pa.types.is_floating(kind) and types <= {float}:
        return _from_floats([np.nan if value is None else value for value in values]), wrong
    for row, value in enumerate(values):
        try:
            made.append(None if is_absent(value) else fitted(value, kind))
        except OtherKindError:
            made.append(None)
            wrong[row] = True
    if pa.types.is_string(kind):
        return from_strings(made), wrong
    if pa.types.is_floating(kind):
        return _from_floats([np.nan if value is None else value for value in made]), wrong
    return pa.array(made, kind), wrong


def _from_floats(values: list[float]) -> Any:
    """A column of floats, in which NaN is missing."""
    floats = np.array(values, dtype=np.float64)
    absent = np.isnan(floats)
    return from_numpy(floats, absent if absent.any() else None)


def is_absent(value: Any) -> bool:
    """Whether a value stands for a missing one."""
    return value is None or value != value or (isinstance(value, str) and value in MISSING_WORDS)


def fitted(value: Any, kind: Any) -> Any:
    """A value as one of a kind."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_string(kind):
        return text_of(value)
    if pa.types.is_floating(kind):
        return number_of(value)
    if pa.types.is_boolean(kind) and (isinstance(value, bool) or value in ("true", "false")):
        return value in (True, "true")
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_finite(fitted(one, kind.value_type)) for one in value]
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _finite(fitted(value.get(field.name), field.type)) for field in kind}
    raise OtherKindError


def _finite(value: Any) -> Any:
    if isinstance(value, float) and value - value != 0:
        raise OtherKindError
    return value


def number_of(value: Any) -> float:
    """A number as a float: infinite if it is too large; a text may hold it."""
    if isinstance(value, (bool, list, dict)):
        raise OtherKindError
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except ValueError:
        raise OtherKindError from None


def beyond_floats(value: Any) -> bool:
    """Whether a value is, or holds, a number that is infinite as a float.

    >>> beyond_floats([1, {"a": 10**400}]), beyond_floats("1e400")
    (True, False)
    """
    if isinstance(value, (list, dict)):
        return any(map(beyond_floats, value.values() if isinstance(value, dict) else value))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(number_of(value)) == np.inf


def text_of(value: Any) -> str:
    """A value as a string; numbers by their names, lists and objects as JSON.

    >>> text_of(1.0), text_of([True, 2.0, "a"])
    ('1', '[true, 2, "a"]')
    """
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_json(one)}" for name, one in value.items()) + "}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number_name(_finite(value))
    return json.dumps(value)


def named(kind: Any) -> str:
    """The name of a kind in messages."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "true or false"
    return f"a {'number' if pa.types.is_floating(kind) else kind}"

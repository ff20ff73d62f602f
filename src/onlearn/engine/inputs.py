"""Tables and arrays as users pass them in, made plain arrays of numbers."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np


def plain_table(X: Any) -> Any:
    """A PyArrow table as a NumPy array; anything else as it is (scikit-learn takes pandas and polars)."""
    refuse_lazy(X)
    refuse_times(X, "X")
    module = type(X).__module__.partition(".")[0]
    if module != "pyarrow":
        return X
    if not hasattr(X, "column_names"):
        raise TypeError(f"X must be a table or an array, not a pyarrow {type(X).__name__}")
    import pyarrow.types as kinds

    columns = []
    for field, column in zip(X.schema, X.columns, strict=True):
        kind = field.type
        if not any(holds(kind) for holds in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)):
            raise ValueError(f"column {field.name!r} holds {kind}, not numbers: encode it first")
        columns.append(np.asarray(column.cast("float64") if kinds.is_decimal(kind) else column))
    if not columns:
        return np.empty((X.num_rows, 0))
    dtype = np.result_type(*columns)
    single = dtype in (np.float16, np.float32)
    return np.column_stack(columns).astype(np.float32 if single else np.float64, copy=False)


def huge_numbers_told(check: Any) -> Any:
    """A function that makes rows of floats, so that it says what is wrong with a whole number no float can hold."""

    @wraps(check)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return check(*args, **kwargs)
        except OverflowError as error:
            if "too large to convert" not in str(error):
                raise
            raise OverflowError("X holds a whole number that is too large for float64: scale the data") from None

    return told


def refuse_lazy(X: Any) -> None:
    """Refuse what says how to make a table, but is none."""
    if type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame, which holds no rows yet: collect() it first")


def refuse_times(X: Any, name: str) -> None:
    """Refuse dates and times, which NumPy would take for numbers of whatever unit they have."""
    held: Any = np.atleast_1d(X.dtypes) if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    for kind in held:
        if getattr(kind, "kind", None) in ("m", "M") or (hasattr(kind, "is_temporal") and kind.is_temporal()):
            raise ValueError(f"{name} holds dates or times ({kind}), not numbers: make numbers of them first")


def column_names(X: Any) -> list[str] | None:
    """The names of a PyArrow table's columns, which scikit-learn does not look for."""
    return list(getattr(X, "column_names", [])) if type(X).__module__.startswith("pyarrow") else None


def names_of_columns(X: Any) -> list[str] | None:
    """The names of a table's columns, of whatever kind the table is; None if it has none, or they are not strings."""
    names: list[Any] = column_names(X) or []
    if not names and hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2:  # pandas, polars and the like
        names = list(X.columns)
    elif not names and hasattr(X, "__dataframe__"):  # the interchange protocol of data frames
        names = list(X.__dataframe__().column_names())
    strings = [isinstance(name, str) for name in names]
    if any(strings) and not all(strings):
        kinds = sorted({type(name).__qualname__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but the columns have names of "
            f"the types {', '.join(kinds)}: make all of them strings, as by X.columns = X.columns.astype(str), or none"
        )
    return names if names and all(strings) else None


def number_types(X: Any) -> list[Any]:
    """What kinds of numbers X may be made into; the first if it holds others, or does not say what it holds."""
    module, held = type(X).__module__.partition(".")[0], [getattr(X, "dtype", None)]
    if module == "polars" and type(X).__name__ == "DataFrame":  # which does not
        held = [X.head(0).to_numpy().dtype]
    elif module == "pandas" and hasattr(X, "dtypes"):  # where columns of a kind of its own do not
        held = [getattr(kind, "subtype", getattr(kind, "numpy_dtype", kind)) for kind in np.atleast_1d(X.dtypes)]
    single = bool(held) and all(kind in (np.float16, np.float32) for kind in held)
    return [np.float32] if single else [np.float64, np.float32]

"""Tables with categories as numbers: a text becomes a number of 52 bits, made of the text alone.

So there is no list of categories to learn, to keep and to extend: equal texts are equal numbers, and two that differ
are the same number once in 2^52 pairs.
"""

from __future__ import annotations

from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np

from onlearn.engine.inputs import names_of_columns


def has_categories(X: Any) -> bool:
    """Whether a table, or an array of objects, has columns that are not numbers."""
    return any(_is_words(column) for _, column in _columns(X))


def as_numbers(X: Any) -> tuple[np.ndarray, list[int]]:
    """The table as numbers in double precision, and which columns hold categories."""
    names = names_of_columns(X)
    found, words = [], []
    for j, column in _columns(X):
        if _is_words(column):
            words.append(j)
            column = _codes(column, j, None if names is None else names[j])
        found.append(np.asarray(column, np.float64))
    return np.column_stack(found), words


def _columns(X: Any) -> Any:
    """The columns of a table of pandas, polars or PyArrow, or of an array of objects, as arrays; of others none."""
    if isinstance(X, np.ndarray):
        if X.dtype.kind not in "OUS" or X.ndim != 2:
            return
        for j in range(X.shape[1]):
            yield j, X[:, j]
        return
    module = type(X).__module__.partition(".")[0]
    if module not in ("pandas", "polars", "pyarrow") or len(getattr(X, "shape", ())) != 2:
        return
    for j in range(X.shape[1]):
        if hasattr(X, "iloc"):
            column = X.iloc[:, j]
        elif module == "polars":
            column = X.to_series(j)
        else:
            column = X.column(j).to_numpy(zero_copy_only=False) if hasattr(X.column(j), "to_numpy") else X.column(j)
        made = np.asarray(column)
        yield j, made if made.dtype.kind in "biufOUS" else made.astype(object)


def _is_words(column: np.ndarray) -> bool:
    if column.dtype != object:
        return column.dtype.kind in "US"
    return any(isinstance(one, (str, bytes)) for one in column)


def _codes(column: np.ndarray, j: int, name: str | None) -> np.ndarray:
    known: dict[Any, float] = {}
    made = np.empty(len(column))
    for row, value in enumerate(column.tolist()):
        code = known.get(value)
        if code is None:
            code = known[value] = _code(value, row, j, name)
        made[row] = code
    return made


def _code(value: Any, row: int, j: int, name: str | None) -> float:
    if isinstance(value, bytes):
        text = value
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, Real) and value == value:
        text = repr(float(value)).encode()
    else:
        where = f"column {j}" if name is None else f"column {j} ({name!r})"
        raise ValueError(f"X has no value in row {row}, {where}: remove the row, or fill the value in")
    return float(int.from_bytes(blake2b(text, digest_size=8).digest(), "little") >> 12)

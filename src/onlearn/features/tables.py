"""Tables of all makes as PyArrow tables, and their columns as plain arrays."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.inputs import refuse_lazy
from onlearn.named import NamedRows

TEXT = "text"  # the column that a plain list of texts is
PLAIN = {"onlearn": "a list of texts"}


def as_source(rows: Any) -> Any:
    """A PyArrow table, ``NamedRows`` or a CSR matrix of whatever the rows are given as."""
    import pyarrow as pa

    if isinstance(rows, (NamedRows, pa.Table)):
        return rows
    if sp.issparse(rows):
        return rows.tocsr()
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, (pa.Array, pa.ChunkedArray)):
        return _texts(rows)
    refuse_lazy(rows)
    module = type(rows).__module__.partition(".")[0]
    if module == "pandas":
        if hasattr(rows, "columns"):
            return _from_pandas(rows)
        return _texts(pa.Array.from_pandas(rows))
    if module == "polars":
        return rows.to_arrow() if hasattr(rows, "columns") else _texts(rows.to_arrow())
    if isinstance(rows, str):
        raise TypeError("X must be rows, such as a list of texts, not one text: put it in a list")
    if isinstance(rows, np.ndarray):
        if rows.ndim == 2 and rows.dtype.kind in "fiub":
            return sp.csr_matrix(rows)
        if rows.ndim != 1:
            raise TypeError(
                f"an array of {rows.ndim} dimensions and type {rows.dtype} is not a table: name its columns"
            )
        rows = rows.tolist()
    if isinstance(rows, Mapping):
        return pa.table(dict(rows))
    if not hasattr(rows, "__iter__"):
        raise TypeError(f"X must be a table, a list of texts, a list of dicts or a matrix, not a {type(rows).__name__}")
    return _from_list(list(rows))


def _texts(values: Any) -> Any:
    """A table of one column, marked as having been none."""
    import pyarrow as pa

    return pa.table({TEXT: values}).replace_schema_metadata(PLAIN)


def is_plain_texts(table: Any) -> bool:
    return (table.schema.metadata or {}).get(b"onlearn") == PLAIN["onlearn"].encode()


def _from_pandas(frame: Any) -> Any:
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(f"the data frame has a column of mixed types: {error}") from None
    return table.rename_columns([str(name) for name in frame.columns])


def _from_list(rows: list[Any]) -> Any:
    import pyarrow as pa

    if all(row is None or isinstance(row, str) for row in rows):
        return _texts(pa.array(rows, pa.large_string()))
    if not all(isinstance(row, Mapping) for row in rows):
        n, row = next((n, row) for n, row in enumerate(rows) if not isinstance(row, (str, Mapping)))
        raise TypeError(f"X must have texts or dicts as rows, all alike, but row {n} is a {type(row).__name__}")
    columns: dict[str, list[Any]] = {str(name): [] for row in rows for name in row}
    for name, values in columns.items():
        values.extend(row.get(name) for row in rows)
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            arrays[name] = pa.array([None if value is None else str(value) for value in values])
    if not arrays:  # rows without columns are rows still
        return pa.table({TEXT: pa.nulls(len(rows), pa.large_string())})
    return pa.table(arrays)


def column(table: Any, name: str) -> Any:
    """A column by its name, in one piece."""
    if name not in table.column_names:
        close = difflib.get_close_matches(name, table.column_names, n=1)
        there = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(map(repr, table.column_names))}"
        raise ValueError(f"there is no column {name!r}: {there}")
    if table.column_names.count(name) > 1:
        raise ValueError(f"there are several columns {name!r}: name them apart")
    found = table.column(name).combine_chunks()
    if hasattr(found, "chunks"):  # an older PyArrow leaves a list of at most one
        found = found.chunk(0) if found.num_chunks else table.schema.field(name).type
    return found


def is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or (hasattr(kinds, "is_string_view") and kinds.is_string_view(kind))
        or (kinds.is_dictionary(kind) and is_text(kind.value_type))
    )


def strings(table: Any, name: str, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """A column as UTF-8 bytes, the offsets of its rows, and which are missing (None: none is)."""
    import pyarrow as pa

    values = column(table, name)
    missing = None
    if values.null_count:
        missing = values.is_null().to_numpy(zero_copy_only=False)
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):  # texts that happen to be numerals, all of them
        values = as_words(values, name)
    elif not is_text(kind) and not pa.types.is_null(kind):
        raise TypeError(f"column {name!r} holds {kind}, not {what}")
    if values.type != pa.large_string():
        values = values.cast(pa.large_string())
    if missing is not None:
        values = values.fill_null("")
    _, offsets, data = values.buffers()
    if not len(values):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64), missing
    places = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return fixed(text), fixed(places), missing


def as_words(values: Any, name: str) -> Any:
    """Values of any plain type as strings; whole numbers without a decimal point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if is_text(values.type) or pa.types.is_null(values.type):
        return values.cast(pa.large_string())
    if pa.types.is_floating(values.type):
        made = [
            None if v is None or v != v else (str(int(v)) if v.is_integer() else repr(v)) for v in values.to_pylist()
        ]
        return pa.array(made, pa.large_string())
    try:
        return pc.cast(values, pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TypeError(f"column {name!r} holds {values.type}, which cannot be categories") from None


def numbers(table: Any, name: str) -> np.ndarray:
    """A column as float64, NaN where it is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column(table, name)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values.cast(pa.large_string()))
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:
            for n, value in enumerate(values.to_pylist()):
                if value is not None and not _is_number(value):
                    raise ValueError(f"column {name!r}, row {n}: {value!r} is not a number") from None
            values = pa.array([None if v is None else float(v) for v in values.to_pylist()], pa.float64())
    kind = values.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise TypeError(f"column {name!r} holds {kind}, not numbers")
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    made = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    bad = np.isinf(made)
    if bad.any():
        raise ValueError(f"column {name!r}, row {int(bad.argmax())}: {made[bad.argmax()]} is not a finite number")
    return made


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def fixed(array: np.ndarray) -> np.ndarray:
    """Read-only always, so that compiled code meets one type."""
    view = array.view()
    view.flags.writeable = False
    return view

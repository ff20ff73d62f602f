"""What a format made of a piece of a file, as plain arrays and facts that JSON can hold, and back, bit for bit.

Arrays are squeezed where that costs no more than a look at them: whole numbers into as few bytes as they need, those
that ascend (row pointers, line numbers, where names start) as their steps, numbers that are all the same as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data.arrow import from_strings
from onlearn.data.bad_rows import Bad
from onlearn.data.named_rows import NamedRows
from onlearn.data.registry import Parsed
from onlearn.engine.csr import CSR

WHOLE = [np.dtype(name) for name in ("u1", "u2", "u4", "i1", "i2", "i4")]
LOOK_AT = 64  # numbers at the start that tell whether it is worth looking at all
NAMED = ("indptr", "hashes", "values", "starts", "lengths", "groups", "text")
PLAIN = ("codes", "numbers", "weight", "groups", "lines")

Arrays = dict[str, np.ndarray]


def pack(parsed: Parsed) -> tuple[dict[str, Any], Arrays] | None:
    """Facts and arrays; None for rows of a kind that is not kept."""
    rows = parsed.rows
    arrays: Arrays = {name: array for name in PLAIN if (array := getattr(parsed, name)) is not None}
    bad = [[one.line, one.column, one.reason, one.raw.decode("latin-1")] for one in parsed.bad]
    facts: dict[str, Any] = {"line_count": parsed.line_count, "names": parsed.names, "bad": bad}
    if parsed.ids is not None:
        arrays["ids"] = ipc({"ids": parsed.ids.tolist()})
    if isinstance(rows, NamedRows):
        facts["prefixes"] = list(rows.prefixes)
        arrays.update({f"rows.{name}": getattr(rows, name) for name in NAMED})
    elif hasattr(rows, "column_names"):
        arrays["rows.table"] = ipc(rows)
    elif isinstance(rows, CSR):
        facts["shape"] = [int(size) for size in rows.shape]
        facts["unique"], facts["finite"] = rows.unique, rows.finite
        arrays.update({f"rows.{name}": getattr(rows, name) for name in ("data", "indices", "indptr")})
    else:
        return None
    return facts, arrays


def unpack(facts: dict[str, Any], arrays: Arrays) -> Parsed:
    """What ``pack`` was given."""
    bad = [Bad(line, column, reason, raw.encode("latin-1")) for line, column, reason, raw in facts["bad"]]
    plain: dict[str, Any] = {name: arrays[name] for name in PLAIN if name in arrays}
    if "ids" in arrays:
        plain["ids"] = np.array(table_of(arrays["ids"]).column("ids").to_pylist(), dtype=object)
    rows: Any
    if "prefixes" in facts:
        rows = NamedRows(**{name: arrays[f"rows.{name}"] for name in NAMED}, prefixes=tuple(facts["prefixes"]))
    elif "rows.table" in arrays:
        rows = table_of(arrays["rows.table"])
    else:
        rows = matrix(facts, arrays)
    return Parsed(rows, line_count=facts["line_count"], names=facts["names"], bad=bad, **plain)


def matrix(facts: dict[str, Any], arrays: Arrays) -> CSR:
    rows, width = facts["shape"]
    data, indices, indptr = (arrays[f"rows.{name}"] for name in ("data", "indices", "indptr"))
    return CSR(data, indices, indptr, (rows, width), facts["unique"], facts["finite"])


def ipc(table: Any) -> np.ndarray:
    """A table, or columns of strings, as the bytes of an Arrow stream."""
    import pyarrow as pa

    if isinstance(table, dict):
        table = pa.table({name: from_strings(column) for name, column in table.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def table_of(raw: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(pa.py_buffer(raw)).read_all()


def squeezed(array: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """How to get an array back, and what to store of it (nothing, if all is said)."""
    array = np.ascontiguousarray(array)
    how: dict[str, Any] = {"dtype": array.dtype.str, "count": len(array)}
    if len(array) > 1 and array.dtype.kind in "iu" and ascends(array):
        how["first"] = int(array[0])
        array = np.diff(array)
    if len(array) and array.dtype.kind in "iuf":
        bits = array.view(f"u{array.itemsize}")  # so that 0.0 and -0.0 are two
        if np.isfinite(array[0]) and (bits[:LOOK_AT] == bits[0]).all() and (bits == bits[0]).all():
            return {**how, "same": array[0].item()}, array[:0]
        array = narrowed(array)
    how["stored"] = array.dtype.str
    return how, array


def ascends(array: np.ndarray) -> bool:
    """Whether numbers never fall."""
    start = array[:LOOK_AT]
    return bool((start[1:] >= start[:-1]).all() and (array[1:] >= array[:-1]).all())


def narrowed(array: np.ndarray) -> np.ndarray:
    """The same numbers in fewer bytes, if all of them fit."""
    if array.dtype == np.float64:
        with np.errstate(over="ignore"):
            start = array[:LOOK_AT].astype(np.float32)
            if not np.array_equal(start.astype(np.float64).view("u8"), array[:LOOK_AT].view("u8")):
                return array
            small = array.astype(np.float32)
        return small if np.array_equal(small.astype(np.float64).view("u8"), array.view("u8")) else array
    if array.dtype.kind in "iu" and array.itemsize > 1:
        low, high = int(array.min()), int(array.max())
        for dtype in WHOLE:
            if dtype.itemsize < array.itemsize and np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return array.astype(dtype)
    return array


def restored(how: dict[str, Any], stored: np.ndarray) -> np.ndarray:
    """The array that was squeezed."""
    dtype, count = np.dtype(how["dtype"]), int(how["count"])
    if "first" in how:
        made = np.empty(count, dtype=dtype)
        made[0] = how["first"]
        made[1:] = how.get("same", stored)
        return np.cumsum(made, out=made)
    if "same" in how:
        return np.full(count, how["same"], dtype=dtype)
    return stored.astype(dtype, copy=False)

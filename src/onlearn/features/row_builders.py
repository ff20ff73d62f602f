"""Rows of named features cut, put side by side, and made of plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.named_rows import NamedRows, hash_bytes, hash_name
from onlearn.features.tables import fixed


@compiled
def hash_stretches(text: Any, starts: Any, lengths: Any, seed: Any, out: Any) -> None:
    """The hash of each stretch of a text."""
    for k in range(len(starts)):
        out[k] = hash_bytes(text, starts[k], starts[k] + lengths[k], seed)


@compiled
def spread(
    indptr: Any, hashes: Any, values: Any, starts: Any, lengths: Any, groups: Any, text_at: Any, group_at: Any,
    cursor: Any, out_hashes: Any, out_values: Any, out_starts: Any, out_lengths: Any, out_groups: Any,
) -> None:  # fmt: skip
    """Copy each row's features to where the row's cursor is, and move it on."""
    for i in range(len(indptr) - 1):
        at = np.uint64(cursor[i])
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out_hashes[at] = hashes[p]
            out_values[at] = values[p]
            out_starts[at] = starts[p] + text_at
            out_lengths[at] = lengths[p]
            out_groups[at] = groups[p] + group_at
            at += np.uint64(1)
        cursor[i] = np.int64(at)


def side_by_side(parts: Sequence[NamedRows]) -> NamedRows:
    """The same rows with the features of all parts, part after part within each row; groups are counted on."""
    if len(parts) == 1:
        return parts[0]
    if sum(len(part.prefixes) for part in parts) > np.iinfo(np.uint16).max:
        raise ValueError("there are more than 65535 columns or namespaces")
    indptr = np.sum([part.indptr - part.indptr[0] for part in parts], axis=0)
    size = int(indptr[-1])
    hashes, values = np.empty(size, np.uint64), np.empty(size, np.float64)
    starts, lengths, groups = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.uint16)
    cursor, text_at, group_at = indptr[:-1].copy(), 0, 0
    for part in parts:
        spread(
            *(fixed(array) for array in part[:6]), text_at, np.uint16(group_at),
            cursor, hashes, values, starts, lengths, groups,
        )  # fmt: skip
        text_at += len(part.text)
        group_at += len(part.prefixes)
    text = np.concatenate([part.text for part in parts])
    prefixes = tuple(prefix for part in parts for prefix in part.prefixes)
    return NamedRows(indptr, hashes, values, starts, lengths, groups, text, prefixes)


def one_each(present: np.ndarray, values: np.ndarray, name: bytes, prefix: str) -> NamedRows:
    """One and the same feature, in the rows where it is present; ``values`` has those rows' values only."""
    indptr = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=indptr[1:])
    size, text = len(values), np.frombuffer(name, np.uint8)
    return NamedRows(
        indptr,
        np.full(size, hash_name(name, hash_name(prefix))),
        values,
        np.zeros(size, np.int64),
        np.full(size, len(text), np.int64),
        np.zeros(size, np.uint16),
        text,
        (prefix,),
    )


def rows_of_names(rows: Iterable[Iterable[str | tuple[str, float]]], prefix: str = "") -> NamedRows:
    """Rows from names, or from pairs of a name and a value.

    >>> rows_of_names([["a", ("b", 2.0)], []]).name(1)
    'b'
    """
    indptr, names, values = [0], [], []
    for row in rows:
        for item in row:
            name, value = (item, 1.0) if isinstance(item, str) else item
            names.append(name.encode())
            values.append(float(value))
        indptr.append(len(names))
    text = np.frombuffer(b"".join(names), np.uint8)
    lengths = np.array([len(name) for name in names], np.int64)
    starts = np.cumsum(lengths) - lengths
    hashes = np.empty(len(names), np.uint64)
    with np.errstate(over="ignore"):
        hash_stretches(fixed(text), starts, lengths, hash_name(prefix), hashes)
    groups = np.zeros(len(names), np.uint16)
    return NamedRows(np.array(indptr, np.int64), hashes, np.array(values), starts, lengths, groups, text, (prefix,))

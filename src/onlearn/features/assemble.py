"""Rows of features: built from Python values, joined, and assembled to a matrix.

A matrix is made of numbered features: each row is sorted, equal features are summed, and values are weighted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled, prefetch
from onlearn.data.batch import NamedRows, hash_bytes, hash_name
from onlearn.engine.csr import CSR, all_finite
from onlearn.features.tables import fixed

ZERO, ONE, EIGHT, HALF = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(32)
DIGIT, LOW = np.uint64(255), np.uint64(0xFFFFFFFF)
RARE = 256  # document counts whose logarithms are computed once
AHEAD = np.uint64(64)  # features by which memory is prefetched, because it is rarely in a cache
MOST = (1 << 32) - 2  # the largest place in a scratch array
FEW = 24  # features up to which insertion sort is faster than radix sort


class Part(NamedTuple):
    """Rows of numbered features; the group of a feature is its column or namespace."""

    indptr: np.ndarray  # int64
    ids: np.ndarray  # int32; -1: unknown
    values: np.ndarray
    groups: np.ndarray  # uint32


class Weighting(NamedTuple):
    """How the summed values are weighted, one entry for each group."""

    binary: np.ndarray  # bool: the value is 1
    log: np.ndarray  # bool: the value is 1 + log value
    inverse: np.ndarray  # bool: the value is multiplied by the inverse document frequency
    unit: np.ndarray  # int64: groups with the same number form a vector of length 1; -1: no normalisation


@compiled
def sort_keys(keys: Any, spare: Any, starts: Any, n: Any, largest: Any) -> Any:
    """Sort ``keys[:n]`` by their upper half, stably; returns whether the result is in ``spare``."""
    if n <= FEW:
        for i in range(1, n):
            key = keys[i]
            j = i - 1
            while j >= 0 and keys[j] > key:
                keys[j + 1] = keys[j]
                j -= 1
            keys[j + 1] = key
        return False
    shift, moved = HALF, False
    rest = np.uint64(largest)
    while rest != ZERO:
        starts[:] = ZERO
        for i in range(np.uint64(n)):
            starts[(keys[i] >> shift) & DIGIT] += ONE
        total = ZERO
        for d in range(np.uint64(256)):
            size = starts[d]
            starts[d] = total
            total += size
        for i in range(np.uint64(n)):
            key = keys[i]
            d = (key >> shift) & DIGIT
            spare[starts[d]] = key
            starts[d] += ONE
        keys, spare, moved = spare, keys, not moved
        shift += EIGHT
        rest >>= EIGHT
    return moved


@compiled
def sort_rows(
    indptr: Any, ids: Any, values: Any, groups: Any, first_keys: Any, second_keys: Any, starts: Any,
    new: Any, out_ids: Any, out: Any, out_groups: Any,
) -> Any:  # fmt: skip
    """Sort each row, sum equal features, and drop unknown ones and zeros; returns the number of features.

    Both arrays of keys have the size of the longest row.
    """
    at = ZERO
    new[0] = 0
    for i in range(len(indptr) - 1):
        first = np.uint64(indptr[i])
        n, largest = 0, 0
        for p in range(first, np.uint64(indptr[i + 1])):
            if ids[p] >= 0:
                first_keys[np.uint64(n)] = (np.uint64(ids[p]) << HALF) | (np.uint64(p) - first)
                largest = max(largest, ids[p])
                n += 1
        moved = sort_keys(first_keys, second_keys, starts, n, largest)
        keys = second_keys if moved else first_keys
        k, end = ZERO, np.uint64(n)
        while k < end:
            number = keys[k] >> HALF
            p = first + (keys[k] & LOW)
            group = groups[p]
            total = np.float64(values[p])
            k += ONE
            while k < end and keys[k] >> HALF == number:
                total += values[first + (keys[k] & LOW)]
                k += ONE
            if total != 0.0:
                out_ids[at] = np.int32(number)
                out[at] = total
                out_groups[at] = group
                at += ONE
        new[i + 1] = np.int64(at)
    return np.int64(at)


@compiled
def sum_rows(
    indptr: Any, ids: Any, values: Any, groups: Any, places: Any, before: Any,
    new: Any, out_ids: Any, out: Any, out_groups: Any,
) -> Any:  # fmt: skip
    """Sum equal features of each row, in order of appearance, and drop unknown ones.

    ``places`` holds the place of the sum of each feature, counted from ``before``; earlier entries are smaller.
    """
    at = np.uint64(before)
    new[0] = 0
    end = np.uint64(len(ids))
    for i in range(len(indptr) - 1):
        row = at
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            ahead = np.uint64(p) + AHEAD
            if ahead < end and ids[ahead] >= 0:
                prefetch(places, np.uint64(ids[ahead]))
            if ids[p] >= 0:
                number = np.uint64(ids[p])
                place = np.uint64(places[number])
                if place >= row:
                    out[place - before] += values[p]
                else:
                    places[number] = np.uint32(at)
                    out_ids[at - before] = ids[p]
                    out[at - before] = values[p]
                    out_groups[at - before] = groups[p]
                    at += ONE
        new[i + 1] = np.int64(at - before)
    return np.int64(at - before)


@compiled
def inverse_frequency(total: Any, count: Any) -> Any:
    """log((1 + rows) / (1 + rows with the feature)) + 1"""
    return np.log((1.0 + total) / (1.0 + count)) + 1.0


@compiled
def weight_rows(
    indptr: Any, ids: Any, values: Any, groups: Any, weighting: Any, documents: Any, total: Any, squares: Any, rare: Any
) -> None:
    """Weight the values in place; ``documents`` counts the rows with each feature, out of ``total`` rows.

    ``rare`` receives the inverse frequencies of the smallest counts, which are the most common, so that each is
    computed once.
    """
    units = len(squares)
    for n in range(len(rare)):
        rare[n] = inverse_frequency(total, n)
    end = np.uint64(len(ids))
    for i in range(len(indptr) - 1):
        first, past = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        squares[:] = 0.0
        for p in range(first, past):
            group = np.uint64(groups[p])
            ahead = np.uint64(p) + AHEAD
            if ahead < end and len(rare):
                prefetch(documents, np.uint64(ids[ahead]))
            value = np.float64(values[p])
            if weighting.binary[group]:
                value = np.float64(1.0)
            if weighting.log[group] and value > 0.0 and value != 1.0:  # most values are 1
                value = 1.0 + np.log(value)
            if weighting.inverse[group]:
                count = np.uint64(documents[np.uint64(ids[p])])
                value *= rare[count] if count < np.uint64(len(rare)) else inverse_frequency(total, count)
            unit = weighting.unit[group]
            if unit >= 0:
                squares[unit] += value * value
            values[p] = value
        if units == 0:
            continue
        for unit in range(units):
            squares[unit] = 1.0 / np.sqrt(squares[unit]) if squares[unit] > 0.0 else 0.0
        for p in range(first, past):
            unit = weighting.unit[np.uint64(groups[p])]
            if unit >= 0:
                values[p] *= squares[unit]


@compiled
def count_rows(ids: Any, groups: Any, counted: Any, counts: Any) -> None:
    """Count the rows with each feature of some groups; equal features have been summed."""
    end = np.uint64(len(ids))
    for p in range(end):
        ahead = np.uint64(p) + AHEAD
        if ahead < end:
            prefetch(counts, np.uint64(ids[ahead]))
        if counted[np.uint64(groups[p])]:
            counts[np.uint64(ids[p])] += 1


class _Scratch:
    """The places of sums, for ``sum_rows``. It is reused, because clearing it for each block would take longer."""

    def __init__(self) -> None:
        self.places: np.ndarray = np.zeros(0, np.uint32)
        self.before: int = 1

    def reserve(self, width: int, size: int) -> tuple[np.ndarray, np.uint64]:
        if len(self.places) < width:
            self.places, self.before = np.zeros(width + width // 4, np.uint32), 1
        if self.before + size > MOST:
            self.places[:], self.before = 0, 1
        before = self.before
        self.before += size + 1
        return self.places, np.uint64(before)


FREE: list[_Scratch] = []  # not in use by any thread


def summed(part: Part, dtype: Any, ordered: bool = True) -> Part:
    """Sum equal features of each row; sort them by number, or leave them in order of appearance if not ``ordered``.

    Values and sums that are too large for ``dtype`` become its largest value.
    """
    made = _summed(part, dtype, ordered)
    if all_finite(made.values):
        return made
    most = float(np.finfo(dtype).max)
    # A product of 0 and infinity is NaN, although the infinite factor stands for a large finite value.
    held = np.clip(np.nan_to_num(part.values, nan=0.0), -most, most)
    made = _summed(part._replace(values=held), dtype, ordered)
    np.clip(made.values, -most, most, out=made.values)
    return made


def _summed(part: Part, dtype: Any, ordered: bool) -> Part:
    size = len(part.ids)
    new, ids = np.empty(len(part.indptr), np.int64), np.empty(size, np.int32)
    values, groups = np.empty(size, dtype), np.empty(size, np.uint32)
    given = fixed(part.indptr), fixed(part.ids), fixed(part.values), fixed(part.groups)
    if ordered:
        keys = np.empty((2, int(np.diff(part.indptr).max(initial=0))), np.uint64)
        n = sort_rows(*given, *keys, np.empty(256, np.uint64), new, ids, values, groups)
    else:
        scratch = FREE.pop() if FREE else _Scratch()
        n = sum_rows(*given, *scratch.reserve(int(part.ids.max(initial=0)) + 1, size), new, ids, values, groups)
        FREE.append(scratch)
    return Part(new, ids[:n], values[:n], groups[:n])


def matrix(parts: list[Part], width: int, dtype: Any) -> CSR:
    """Concatenate the rows of summed parts to a matrix."""
    if len(parts) == 1:
        indptr, ids, values = parts[0].indptr, parts[0].ids, parts[0].values
    else:
        sizes = np.cumsum([0, *(len(p.ids) for p in parts)])
        indptr = np.concatenate([np.zeros(1, np.int64), *(p.indptr[1:] + s for p, s in zip(parts, sizes))])
        ids = np.concatenate([np.empty(0, np.int32), *(p.ids for p in parts)])
        values = np.concatenate([np.empty(0, dtype), *(p.values for p in parts)])
    if len(ids) < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return CSR(values, ids.astype(indptr.dtype, copy=False), indptr, (len(indptr) - 1, width), unique=True)


def to_matrix(rows: NamedRows, ids: np.ndarray, width: int, dtype: Any) -> CSR:
    """A matrix of rows with numbered features, not weighted."""
    return matrix([summed(Part(rows.indptr, ids, rows.values, rows.groups), dtype)], width, dtype)


@compiled
def hash_parts(text: Any, starts: Any, lengths: Any, seed: Any, out: Any) -> None:
    """Compute the hashes of some parts of a text."""
    for k in range(len(starts)):
        out[k] = hash_bytes(text, starts[k], starts[k] + lengths[k], seed)


@compiled
def copy_rows(
    indptr: Any, hashes: Any, values: Any, starts: Any, lengths: Any, groups: Any, text_at: Any, group_at: Any,
    cursor: Any, out_hashes: Any, out_values: Any, out_starts: Any, out_lengths: Any, out_groups: Any,
) -> None:  # fmt: skip
    """Copy the features of each row to the cursor of the row, and advance the cursor."""
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
    """Join parts with the same rows: each row has the features of all parts, and groups are renumbered."""
    if len(parts) == 1:
        return parts[0]
    indptr = np.sum([part.indptr - part.indptr[0] for part in parts], axis=0)
    size = int(indptr[-1])
    hashes, values = np.empty(size, np.uint64), np.empty(size, np.float64)
    starts, lengths, groups = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.uint32)
    cursor, text_at, group_at = indptr[:-1].copy(), 0, 0
    for part in parts:
        copy_rows(
            *(fixed(array) for array in part[:6]), text_at, np.uint32(group_at),
            cursor, hashes, values, starts, lengths, groups,
        )  # fmt: skip
        text_at += len(part.text)
        group_at += len(part.prefixes)
    text = np.concatenate([part.text for part in parts])
    prefixes = tuple(prefix for part in parts for prefix in part.prefixes)
    return NamedRows(indptr, hashes, values, starts, lengths, groups, text, prefixes)


def single_feature(present: np.ndarray, values: np.ndarray, name: bytes, prefix: str) -> NamedRows:
    """Rows with a single feature, or none; ``values`` are those of the rows in which it is ``present``."""
    indptr = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=indptr[1:])
    size, text = len(values), np.frombuffer(name, np.uint8)
    return NamedRows(
        indptr,
        np.full(size, hash_name(name, hash_name(prefix))),
        values,
        np.zeros(size, np.int64),
        np.full(size, len(text), np.int64),
        np.zeros(size, np.uint32),
        text,
        (prefix,),
    )


def rows_of_names(rows: Iterable[Iterable[str | tuple[str, float]]], prefix: str = "") -> NamedRows:
    """Rows of named features, from names or from pairs of a name and a value.

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
        hash_parts(fixed(text), starts, lengths, hash_name(prefix), hashes)
    groups = np.zeros(len(names), np.uint32)
    return NamedRows(np.array(indptr, np.int64), hashes, np.array(values), starts, lengths, groups, text, (prefix,))

"""Hashes of features to signed columns of a narrow matrix: the compiled part of the hashing trick.

A feature with 64-bit hash h goes to column (h' >> 32) n >> 32, with the sign of the lowest bit of h', where h' is h
mixed with a seed. Values that meet in one column of a row are added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.compile import allocating, compiled
from onlearn.hashing import START, finish, hash_bytes, mix
from onlearn.threads import over_rows

HALF, ONE, ZERO, LOWER = np.uint64(32), np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFF)
COST = 16  # a feature is worth about that many multiplications
SHORT = 48  # rows up to this length are sorted by insertion


@compiled
def hash_split(text: Any, seed: Any, out: Any) -> int:
    """Hash each stretch of a text between zero bytes, as many as ``out`` has room for; returns how many there are."""
    k, start = 0, 0
    for p in range(len(text) + 1):
        if p == len(text) or text[p] == 0:
            if k < len(out):
                out[k] = hash_bytes(text, start, p, seed)
            k += 1
            start = p + 1
    return k


@allocating
def place(indptr: Any, hashes: Any, values: Any, seed: Any, columns: Any, signed: Any, indices: Any, data: Any,
          counts: Any, start: Any, stop: Any) -> None:  # fmt: skip
    """Rows start to stop: columns in order and values, each column once; ``counts`` says how many are left of each."""
    n: Any = np.uint64(columns)
    p: Any
    k: Any
    for i in range(np.uint64(start), np.uint64(stop)):
        first, past = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        for p in range(first, past):
            h = finish(mix(seed, np.uint64(hashes[p])))
            indices[p] = ((h >> HALF) * n) >> HALF
            data[p] = -values[p] if signed and h & ONE else values[p]
        length = past - first
        if length <= np.uint64(SHORT):
            for p in range(first + ONE, past):
                column, value, q = indices[p], data[p], p
                while q > first and indices[q - ONE] > column:
                    indices[q], data[q] = indices[q - ONE], data[q - ONE]
                    q -= ONE
                indices[q], data[q] = column, value
        else:
            keys, before = np.empty(length, np.uint64), data[first:past].copy()
            for k in range(length):  # column and place in one number: sorting those is quicker than an argsort
                keys[k] = (np.uint64(indices[first + k]) << HALF) | k
            keys.sort()
            for k in range(length):
                indices[first + k], data[first + k] = keys[k] >> HALF, before[keys[k] & LOWER]
        kept = first
        for p in range(first, past):
            if p > first and indices[p] == indices[kept]:
                data[kept] += data[p]
            else:
                kept += ONE if p > first else ZERO
                indices[kept], data[kept] = indices[p], data[p]
        counts[i] = kept + ONE - first if past > first else ZERO


@compiled
def close_up(indptr: Any, counts: Any, new_indptr: Any, indices: Any, data: Any, new_indices: Any,
             new_data: Any) -> None:  # fmt: skip
    """Copy what is left of each row to where it belongs."""
    for i in range(np.uint64(len(counts))):
        at = np.uint64(new_indptr[i])
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i]) + np.uint64(counts[i])):
            new_indices[at], new_data[at] = indices[p], data[p]
            at += ONE


def placed(indptr: np.ndarray, hashes: np.ndarray, values: np.ndarray, seed: int, columns: int,
           signed: bool) -> sp.csr_matrix:  # fmt: skip
    """The matrix of rows whose features are known by their hashes."""
    rows = len(indptr) - 1
    indices, data = np.empty(len(hashes), np.int32), np.empty(len(hashes), values.dtype)
    counts = np.zeros(rows, np.int64)
    with np.errstate(over="ignore"):  # should it run interpreted
        start_at = np.uint64(mix(START, np.uint64(seed)))
        over_rows(
            lambda *part: place(indptr, hashes, values, start_at, columns, signed, indices, data, counts, *part),
            rows,
            COST * len(hashes),
        )
    left = np.zeros(rows + 1, np.int64)
    np.cumsum(counts, out=left[1:])
    if left[-1] < len(hashes):
        new_indices, new_data = np.empty(left[-1], np.int32), np.empty(left[-1], values.dtype)
        close_up(indptr, counts, left, indices, data, new_indices, new_data)
        indices, data = new_indices, new_data
    narrow = left.astype(np.int32) if left[-1] <= np.iinfo(np.int32).max else left
    X = sp.csr_matrix((data, indices, narrow), shape=(rows, columns), copy=False)
    X.has_sorted_indices = X.has_canonical_format = True
    return X

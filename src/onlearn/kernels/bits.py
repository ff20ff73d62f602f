"""Examples as rows of bits, packed 64 to a word; or, if they have very many columns and few ones, as sparse rows.

Which of the two it is changes the speed, never the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.kernels.popcount import table_of_differing, table_of_shared
from onlearn.kernels.threads import in_threads
from onlearn.kernels.vectors import Vectors, numeric, same_width, squared_lengths

WIDE = 1 << 14  # columns beyond which sparse rows stay sparse
CHUNK = 1 << 22  # cells that are packed at a time


class Bits:
    """Rows of 0 and 1: words (rows x words) and how many ones each row has."""

    def __init__(self, words: np.ndarray, width: int, counts: np.ndarray, dtype: Any) -> None:
        self.words, self.width, self.counts, self.dtype = words, width, counts, np.dtype(dtype)

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: Any) -> Bits:
        return Bits(self.words[rows], self.width, self.counts[rows], self.dtype)

    def join(self, others: Sequence[Any]) -> Any:
        if not all(isinstance(other, Bits) for other in others):
            return self.sparse.join([sparse_of(other) for other in others])
        for other in others:
            same_width(self, other)
        words = np.concatenate([self.words, *(other.words for other in others)])
        counts = np.concatenate([self.counts, *(other.counts for other in others)])
        return Bits(words, self.width, counts, np.result_type(self.dtype, *(other.dtype for other in others)))

    def in_double(self) -> Bits:
        """The same bits, for kernel values in double precision."""
        return Bits(self.words, self.width, self.counts, np.float64)

    @cached_property
    def turned(self) -> np.ndarray:
        return np.ascontiguousarray(self.words.T)

    @cached_property
    def sparse(self) -> SparseOnes:
        found = np.unpackbits(self.words.view(np.uint8), axis=1, count=self.width, bitorder="little")
        return SparseOnes(sp.csr_matrix(found, dtype=np.float64), self.counts.astype(np.float64))


class SparseOnes(Vectors):
    """Rows of 0 and 1 as sparse rows."""

    @property
    def counts(self) -> np.ndarray:
        return self.squares.astype(np.int64)

    def in_double(self) -> SparseOnes:
        return self

    def effort(self, other: Any) -> float:
        return super().effort(sparse_of(other))

    def take(self, rows: Any) -> SparseOnes:
        return SparseOnes(self.X[rows], self.squares[rows])

    def join(self, others: Sequence[Any]) -> SparseOnes:
        joined = super().join([sparse_of(other) for other in others])
        return SparseOnes(joined.X, joined.squares)


def sparse_of(ones: Bits | SparseOnes) -> SparseOnes:
    return ones.sparse if isinstance(ones, Bits) else ones


def ones_of(X: Any, who: Any) -> Bits | SparseOnes:
    """X as bits; an error that names the first number that is neither 0 nor 1."""
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biu" and X.shape[1]):
        X = numeric(X, who)
    values = X.data if sp.issparse(X) else X
    single = X.dtype == np.float32
    for start in range(0, len(values), 1 << 16):
        some = values[start : start + (1 << 16)]
        good = (some == 0) | (some == 1)
        if not good.all():
            value = some[~good].flat[0]
            raise ValueError(f"{who} works on rows of 0 and 1, but X holds {value:g}: make it binary first")
    if sp.issparse(X) and X.shape[1] > WIDE:
        X = X.astype(np.float64)
        X.eliminate_zeros()
        return SparseOnes(X, squared_lengths(X))
    rows, width = X.shape
    packed = np.zeros((rows, -(-width // 64) * 8), np.uint8)
    counts = np.empty(rows, np.int64)
    step = max(1, CHUNK // width)
    for start in range(0, rows, step):
        some = X[start : start + step]
        some = (some.toarray() if sp.issparse(some) else some) != 0
        counts[start : start + step] = some.sum(axis=1)
        packed[start : start + step, : -(-width // 8)] = np.packbits(some, axis=1, bitorder="little")
    return Bits(packed.view(np.uint64), width, counts, np.float32 if single else np.float64)


def is_binary(X: Any) -> bool:
    """Whether a checked matrix holds nothing but 0 and 1."""
    values = X.data if sp.issparse(X) else X
    step = 1 << 12
    return all(((values[n : n + step] == 0) | (values[n : n + step] == 1)).all() for n in range(0, len(values), step))


def look_up(P: Any, Q: Any, table: np.ndarray, shared: bool, out: np.ndarray) -> None:
    """out = table[how many ones x and z share, or in how many places they differ], for all pairs."""
    same_width(P, Q)
    table = table.astype(out.dtype)
    if isinstance(P, Bits) and isinstance(Q, Bits):
        loop = table_of_shared if shared else table_of_differing
        words, turned = P.words, Q.turned

        def work(start: int, stop: int) -> None:
            loop(words, turned, table, out, start, stop)

        in_threads(work, len(P), 4 * len(P) * turned.size)
        return
    P, Q = sparse_of(P), sparse_of(Q)
    P.dots(Q, out)
    counts = out if shared else P.squares[:, None] + Q.squares - 2 * out
    out[...] = table[counts.astype(np.int64)]

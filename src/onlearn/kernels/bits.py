"""Examples as rows of bits, and tables over counts of bits.

Rows of 0 and 1 are packed 64 to a word. Compiled loops count the places in which two rows differ, or both have a one,
and look the kernel value up in a table. The words of one position are adjacent for all rows of a block, so that the
inner loop runs along the rows and uses vector instructions. Sparse rows with very many columns stay sparse. That
changes the speed, not the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from onlearn.compiler import INTERPRETED, compiled, intrinsic, types
from onlearn.engine.csr import CSR
from onlearn.kernels.base import View
from onlearn.kernels.products import Vectors, dense_rows, number_rows, same_width, squared_lengths, take_rows
from onlearn.kernels.sparse_products import Lines
from onlearn.kernels.tiles import in_threads

WIDE = 1 << 14  # columns beyond which sparse rows stay sparse
CHUNK = 1 << 22  # cells that are packed at a time


class Bits(View):
    """Rows of 0 and 1: words (rows x words) and the number of ones of each row."""

    words: np.ndarray
    width: int
    counts: np.ndarray
    dtype: Any

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
        return SparseOnes(Lines.of(found.astype(np.float64)).to_csr(self.width), self.counts.astype(np.float64))


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
        return SparseOnes(take_rows(self.X, rows), self.squares[rows])

    def join(self, others: Sequence[Any]) -> SparseOnes:
        joined = super().join([sparse_of(other) for other in others])
        return SparseOnes(joined.X, joined.squares)


def sparse_of(ones: Bits | SparseOnes) -> SparseOnes:
    return ones.sparse if isinstance(ones, Bits) else ones


def ones_of(X: Any, who: Any) -> Bits | SparseOnes:
    """X as bits; an error that names the first number that is neither 0 nor 1."""
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biu" and X.shape[1]):
        X = number_rows(X, who)
    values = X.data if isinstance(X, CSR) else X
    single = X.dtype == np.float32
    for start in range(0, len(values), 1 << 16):
        some = values[start : start + (1 << 16)]
        good = (some == 0) | (some == 1)
        if not good.all():
            value = some[~good].flat[0]
            raise ValueError(f"{who} works on rows of 0 and 1, but X holds {value:g}: make it binary first")
    if isinstance(X, CSR) and X.shape[1] > WIDE:
        X = _without_zeros(X)
        return SparseOnes(X, squared_lengths(X))
    rows, width = X.shape
    packed = np.zeros((rows, -(-width // 64) * 8), np.uint8)
    counts = np.empty(rows, np.int64)
    step = max(1, CHUNK // width)
    for start in range(0, rows, step):
        some = dense_rows(take_rows(X, slice(start, start + step))) != 0
        counts[start : start + step] = some.sum(axis=1)
        packed[start : start + step, : -(-width // 8)] = np.packbits(some, axis=1, bitorder="little")
    return Bits(packed.view(np.uint64), width, counts, np.float32 if single else np.float64)


def _without_zeros(X: CSR) -> CSR:
    """The same rows in double precision, without zeros that are stored."""
    stay = X.data != 0
    before = np.concatenate([np.zeros(1, X.indptr.dtype), np.cumsum(stay, dtype=X.indptr.dtype)])
    return CSR(X.data[stay].astype(np.float64), X.indices[stay], before[X.indptr], X.shape)


def is_binary(X: Any) -> bool:
    """Whether checked rows hold nothing but 0 and 1."""
    values = X.data if isinstance(X, CSR) else X
    step = 1 << 12
    return all(((values[n : n + step] == 0) | (values[n : n + step] == 1)).all() for n in range(0, len(values), step))


def look_up(P: Any, Q: Any, table: np.ndarray, shared: bool, out: np.ndarray) -> None:
    """Write table[number of ones that x and z share, or of places where they differ] of all pairs to ``out``."""
    same_width(P, Q)
    table = table.astype(out.dtype)
    if isinstance(P, Bits) and isinstance(Q, Bits):
        loop = table_of_shared if shared else table_of_differing
        words, turned = P.words, Q.turned

        def work(start: int, stop: int) -> None:
            found = np.empty(turned.shape[1], np.uint64)  # the counts of one row
            loop(words, turned, table, out, found, start, stop)

        in_threads(work, len(P), 4 * len(P) * turned.size)
        return
    P, Q = sparse_of(P), sparse_of(Q)
    P.dots(Q, out)
    counts = out if shared else P.squares[:, None] + Q.squares - 2 * out
    out[...] = table[counts.astype(np.int64)]


# -- counting


if INTERPRETED:

    def ones(word: Any) -> Any:
        """The number of bits of a word that are one."""
        return int(word).bit_count()

else:

    @intrinsic
    def ones(context, word):
        """The number of bits of a word that are one."""

        def generate(target, builder, signature, arguments):
            return builder.ctpop(arguments[0])

        return types.uint64(types.uint64), generate


@compiled
def table_of_differing(words, turned, table, out, found, start, stop):
    """out[i, j] = table[number of places where x_i and z_j differ]."""
    count = turned.shape[1]
    for i in range(start, stop):
        x = words[i, 0]
        first = turned[0]
        for j in range(count):
            found[j] = ones(x ^ first[j])
        for n in range(1, turned.shape[0]):
            x, line = words[i, n], turned[n]
            for j in range(count):
                found[j] += ones(x ^ line[j])
        row = out[i]
        for j in range(count):
            row[j] = table[found[j]]


@compiled
def table_of_shared(words, turned, table, out, found, start, stop):
    """out[i, j] = table[number of ones that x_i and z_j have in common]."""
    count = turned.shape[1]
    for i in range(start, stop):
        x = words[i, 0]
        first = turned[0]
        for j in range(count):
            found[j] = ones(x & first[j])
        for n in range(1, turned.shape[0]):
            x, line = words[i, n], turned[n]
            for j in range(count):
                found[j] += ones(x & line[j])
        row = out[i]
        for j in range(count):
            row[j] = table[found[j]]

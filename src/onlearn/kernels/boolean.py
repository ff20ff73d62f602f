"""Kernels of rows of 0 and 1: inner products of all conjunctions, of those of one size, of all products of columns.

A *literal* is a column or its negation; a conjunction of literals is a feature that is 1 where all of them hold. The
number of conjunctions that hold in both x and z follows from the number of columns that agree (Khardon, Roth and
Servedio 2005), so a kernel value is a count of bits and a look into a table. The table is computed with whole numbers.
If its largest entry is beyond 2^960, all entries are divided by the power of two that brings it down to 2^960. That
power depends on the number of columns only, so it does not change the decisions of a perceptron. ``halvings`` tells it
to code that adds something to the kernel, such as the constant feature of an intercept, which must be scaled as well.
Scaled values below the smallest number (2^-1022) count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import comb, ldexp
from typing import Any

import numpy as np

from onlearn.compiler import allocating, compiled
from onlearn.engine.csr import CSR
from onlearn.engine.spec import param
from onlearn.kernels import psd
from onlearn.kernels.base import Kernel, Points, View
from onlearn.kernels.bits import Bits, SparseOnes, is_binary, look_up, ones_of, sparse_of
from onlearn.kernels.family import flag, kernel, spelled
from onlearn.kernels.products import Vectors, number_rows, numeric, same_width, squared_lengths
from onlearn.kernels.tiles import Tile, in_threads

SINGLE = 2.0**100  # larger values need double precision
LARGEST = 960  # leaves room for sums of very many large values
HUGE, TINY = 2.0**400, 2.0**-400  # products are kept between them on the way


class Counting(Kernel):
    """A kernel that is a function of the number of columns that agree, or that are 1 in both."""

    of_bits = grows = True
    shared = False  # whether it counts columns that are 1 in both, instead of those that agree

    def counts(self, width: int) -> list[int]:
        """The values for 0..width columns, as whole numbers."""
        raise NotImplementedError

    def table(self, width: int) -> np.ndarray:
        """The value for each number of shared (or else of differing) columns."""
        values, _ = _table(self, width)
        return values if self.shared else values[::-1]

    def halvings(self, P: Points) -> int:
        return _table(self, self.ones(P).width)[1]

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        ones = next((view for view in views.values() if isinstance(view, (Bits, SparseOnes))), None)
        ones = ones_of(X, self) if ones is None else ones
        views.setdefault(self.key(ones.width), ones if self.fits_single(ones.width) else ones.in_double())

    def key(self, width: int) -> Hashable:
        return "ones" if self.fits_single(width) else "ones in double"

    def fits_single(self, width: int) -> bool:
        """Whether single precision is enough, if the data have it."""
        return bool(self.table(width).max() < SINGLE)

    def ones(self, P: Points) -> Any:
        return P["ones"] if "ones" in P.views and self.fits_single(P["ones"].width) else P["ones in double"]

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = self.ones(tile.P), self.ones(tile.Q)
        look_up(P, Q, self.table(P.width), self.shared, out)

    def diagonal(self, P: Points) -> np.ndarray:
        ones = self.ones(P)
        return self.table(ones.width)[ones.counts if self.shared else np.zeros(len(ones), np.int64)]

    def literals(self, X: Any) -> list[Any]:
        """The literals of each column, as features."""
        self.points(X)  # checks that all numbers are 0 or 1
        columns = psd.columns(numeric(X, self))
        if self.shared:
            return columns
        return [psd.beside([column, psd.complement(column)]) for column in columns]


@lru_cache(maxsize=64)
def _table(kernel: Counting, width: int) -> tuple[np.ndarray, int]:
    """The counts for 0..width columns, scaled if they are too large, and the power of two they are divided by."""
    exact = kernel.counts(width)
    shift = max(0, exact[-1].bit_length() - 1 - LARGEST)
    values = np.array([_scaled(value, shift) for value in exact])
    values.flags.writeable = False
    return values, shift


def _scaled(value: int, shift: int) -> float:
    """value / 2^shift, also where no float can hold the value."""
    spare = max(0, value.bit_length() - 64)
    return ldexp(float(value >> spare), spare - shift)


@kernel("monomials")
class Monomials(Counting):
    """k(x, z) = 2^same(x, z): all 3^n conjunctions of literals

    >>> Monomials()([[1, 1, 0, 0]], [[1, 1, 0, 1]])
    array([[8.]])
    """

    def counts(self, width: int) -> list[int]:
        return [1 << n for n in range(width + 1)]

    def n_features(self, width: int) -> int | None:
        return 3**width

    def features(self, X: Any) -> Any:
        psd.refuse_too_many(self, X)
        literals = self.literals(X)
        made = psd.ones_like(literals[0])
        for pair in literals:
            made = psd.outer(made, psd.beside([psd.ones_like(pair), pair]))
        return made


@kernel("conjunctions")
class Conjunctions(Counting):
    """The number of conjunctions of ``size`` literals that hold in both; of up to that size if not ``exactly``"""

    size: int = param(2, "the number of literals", at_least=1)
    exactly: bool = flag(True, "of that size only; else also of smaller sizes, with the empty conjunction")
    monotone: bool = flag(False, "without negated columns")

    def check(self) -> None:
        self.shared: bool = self.monotone

    def sizes(self) -> range:
        return range(self.size if self.exactly else 0, self.size + 1)

    def counts(self, width: int) -> list[int]:
        # C(n, size), and S(n), the sum of C(n, s) over all s up to size, each from the one before (a new sum for every
        # n takes minutes for wide rows): C(n, size) = C(n - 1, size) n / (n - size), and by Pascal's rule
        # S(n + 1) = 2 S(n) - C(n, size).
        size, chosen, total, found = self.size, 0, 1, []
        for n in range(width + 1):
            if n == size:
                chosen = 1
            elif n > size:
                chosen = chosen * n // (n - size)
            found.append(chosen if self.exactly else total)
            total = 2 * total - chosen
        return found

    def formula(self) -> str:
        rest = {key: value for key, value in self.changed().items() if key != "size"}
        return spelled(self.name, rest, str(self.size))

    def n_features(self, width: int) -> int | None:
        each = 1 if self.monotone else 2
        if self.exactly:
            return comb(width, self.size) * each**self.size
        made = total = 1
        for size in range(1, min(self.size, width) + 1):
            made = made * (width - size + 1) * each // size
            total += made
        return total

    def features(self, X: Any) -> Any:
        psd.refuse_too_many(self, X)
        literals = self.literals(X)
        if self.exactly and self.size > len(literals):  # there are too few columns
            return psd.empty_like(literals[0])
        made: list[Any] = [psd.ones_like(literals[0])]  # the conjunctions of each size, over the columns so far
        for column in literals:
            for size in range(min(len(made), self.size), 0, -1):
                longer = psd.outer(made[size - 1], column)
                if size == len(made):
                    made.append(longer)
                else:
                    made[size] = psd.beside([made[size], longer])
        scaled = float(self.table(len(literals))[-1 if self.shared else 0])
        root = (scaled / self.counts(len(literals))[-1]) ** 0.5
        return psd.beside([psd.scale(made[size], root) for size in self.sizes() if size < len(made)])


# -- all products of columns


class Columns(View):
    """Rows of numbers, as bits if all of them are 0 or 1, and log2 k(x, x) of each row."""

    rows: Bits | SparseOnes | Vectors
    logs: np.ndarray
    dtype: Any

    def __init__(self, rows: Bits | SparseOnes | Vectors, logs: np.ndarray, dtype: Any) -> None:
        self.rows, self.logs, self.dtype = rows, logs, np.dtype(dtype)

    @property
    def binary(self) -> bool:
        return isinstance(self.rows, (Bits, SparseOnes))

    @property
    def plain(self) -> Vectors:
        """The rows as numbers."""
        return sparse_of(self.rows) if isinstance(self.rows, Bits) else self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Any) -> Columns:
        return Columns(self.rows.take(rows), self.logs[rows], self.dtype)

    def join(self, others: Sequence[Columns]) -> Columns:
        dtype = np.result_type(self.dtype, *(other.dtype for other in others))
        logs = np.concatenate([self.logs, *(other.logs for other in others)])
        if self.binary and all(other.binary for other in others):
            binary: list[Any] = [other.rows for other in others]
            return Columns(self.rows.join(binary), logs, dtype)
        return Columns(Vectors.join(self.plain, [other.plain for other in others]), logs, dtype)


@kernel("subsets")
class Subsets(Kernel):
    """k(x, z) = prod(1 + x_i z_i): the products of all sets of columns, 2^n of them"""

    own_cosine = True
    of_bits = grows = True

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        if "columns" in views:
            return
        if not (isinstance(X, np.ndarray) and X.dtype.kind == "b"):
            X = number_rows(X, self)
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        if X.dtype.kind == "b" or is_binary(X):
            rows: Any = ones_of(X, self)
            views["columns"] = Columns(rows, rows.counts.astype(np.float64), dtype)
        else:
            rows = Vectors(X, squared_lengths(X))
            data = X.data if isinstance(X, CSR) else X.reshape(-1)
            starts = X.indptr if isinstance(X, CSR) else np.arange(len(X) + 1) * X.shape[1]
            views["columns"] = Columns(rows, own_subsets(data, starts), dtype)

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = tile.P["columns"], tile.Q["columns"]
        if P.binary and Q.binary and P.rows.width == Q.rows.width:
            with np.errstate(over="ignore"):
                table = np.exp2(np.arange(P.rows.width + 1.0)).astype(out.dtype)
            look_up(P.rows, Q.rows, table, True, out)
        else:
            self.multiply(P, Q, np.zeros(len(P)), np.zeros(len(Q)), out)

    def cosine(self, tile: Tile, out: np.ndarray) -> None:
        """k(x, z) / sqrt(k(x, x) k(z, z)) by logarithms, since k itself soon overflows."""
        P, Q = tile.P["columns"], tile.Q["columns"]
        if P.binary and Q.binary and P.rows.width == Q.rows.width:
            look_up(P.rows, Q.rows, np.arange(P.rows.width + 1.0), True, out)
            out -= (P.logs / 2)[:, None].astype(out.dtype)
            out -= (Q.logs / 2).astype(out.dtype)
            np.exp2(out, out=out)
        else:
            self.multiply(P, Q, P.logs / 2, Q.logs / 2, out)

    def multiply(self, P: Columns, Q: Columns, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        A, B = P.plain, Q.plain
        same_width(A, B)
        if A.sparse and B.sparse:
            lines: tuple[Any, ...] = A.X.data, A.X.indices, A.X.indptr, B.X.data, B.X.indices, B.X.indptr
            step, cost = sparse_subsets, len(A) * B.X.nnz + len(B) * A.X.nnz
        else:
            lines = A.dense, B.dense
            step, cost = dense_subsets, len(A) * len(B) * A.width

        def work(start: int, stop: int) -> None:
            step(*lines, a, b, out, start, stop)

        in_threads(work, len(A), cost)

    def diagonal(self, P: Points) -> np.ndarray:
        return np.exp2(P["columns"].logs)

    def n_features(self, width: int) -> int | None:
        return 1 << width

    def features(self, X: Any) -> Any:
        psd.refuse_too_many(self, X)
        X = numeric(X, self)
        made = psd.ones_like(X)
        for column in psd.columns(X):
            made = psd.beside([made, psd.outer(made, column)])
        return made


# -- compiled products of 1 + x_i z_i over the columns


@allocating
def own_subsets(data, starts):
    """log2 prod(1 + x_i^2) of each row."""
    out = np.empty(len(starts) - 1)
    for i in range(len(out)):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += math.log1p(np.float64(data[p]) * np.float64(data[p]))
        out[i] = total / math.log(2.0)
    return out


@compiled
def finish(product, order, log):
    """product 2^(order - log), in steps of which none but the last overflows."""
    if product == 0.0:
        return 0.0
    left = np.float64(order) - log
    whole = math.floor(left)
    value = product * 2.0 ** (left - whole)
    while whole > 400.0 and abs(value) < HUGE:
        value, whole = value * HUGE, whole - 400.0
    while whole < -400.0 and abs(value) > TINY * TINY:
        value, whole = value * TINY, whole + 400.0
    if abs(whole) > 1000.0:
        return value * np.inf if whole > 0.0 else 0.0
    return value * 2.0**whole


@allocating
def dense_subsets(X, Z, a, b, out, start, stop):
    """prod(1 + x_i z_i) / 2^(a + b) for all pairs."""
    width = np.uint64(X.shape[1])
    for i in range(start, stop):
        x = X[i]
        for j in range(Z.shape[0]):
            z, product, order = Z[j], 1.0, 0
            for n in range(width):
                product *= 1.0 + np.float64(x[n]) * np.float64(z[n])
                if not TINY < abs(product) < HUGE and product != 0.0:
                    product, shift = math.frexp(product)
                    order += shift
            out[i, j] = finish(product, order, a[i] + b[j])


@allocating
def sparse_subsets(data, indices, indptr, values, places, starts, a, b, out, start, stop):
    """The same for sparse rows, which are merged; their columns are in order."""
    for i in range(start, stop):
        for j in range(len(starts) - 1):
            p, q, product, order = indptr[i], starts[j], 1.0, 0
            while p < indptr[i + 1] and q < starts[j + 1]:
                if indices[p] == places[q]:
                    product *= 1.0 + np.float64(data[p]) * np.float64(values[q])
                    if not TINY < abs(product) < HUGE and product != 0.0:
                        product, shift = math.frexp(product)
                        order += shift
                left, right = indices[p], places[q]
                p += left <= right
                q += right <= left
            out[i, j] = finish(product, order, a[i] + b[j])

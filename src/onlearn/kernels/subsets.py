"""The kernel of all products of different columns, prod(1 + x_i z_i): on 0 and 1, two to the ones in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.kernels import explicit
from onlearn.kernels.base import Kernel, Points, Tile
from onlearn.kernels.bits import Bits, SparseOnes, is_binary, look_up, ones_of, sparse_of
from onlearn.kernels.family import kernel
from onlearn.kernels.subsetproducts import dense_subsets, own_subsets, sparse_subsets
from onlearn.kernels.threads import in_threads
from onlearn.kernels.vectors import Vectors, numeric, same_width, squared_lengths


class Columns:
    """Rows of numbers, as bits if they are nothing but 0 and 1, and log2 k(x, x) of each."""

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
            X = numeric(X, self)
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        if X.dtype.kind == "b" or is_binary(X):
            rows: Any = ones_of(X, self)
            views["columns"] = Columns(rows, rows.counts.astype(np.float64), dtype)
        else:
            rows = Vectors(X, squared_lengths(X))
            data, starts = (X.data, X.indptr) if sp.issparse(X) else (X.reshape(-1), np.arange(len(X) + 1) * X.shape[1])
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
        """k(x, z) / sqrt(k(x, x) k(z, z)) by logarithms, for k itself is soon too large for any number."""
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
        explicit.refuse_too_many(self, X)
        X = numeric(X, self)
        made = explicit.ones_like(X)
        for n in range(X.shape[1]):
            made = explicit.beside([made, explicit.outer(made, X[:, [n]])])
        return made

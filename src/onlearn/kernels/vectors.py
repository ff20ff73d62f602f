"""Examples as rows of numbers, dense or sparse (CSR), and the products x.z of all pairs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.inputs import check_finite, plain_table
from onlearn.kernels.passes import sparse_products
from onlearn.kernels.threads import in_threads

QUICKER = 40.0  # how many multiplications the BLAS does while two sparse rows do one (measured: 25 to 100)
MIXED = 20.0  # and while a sparse row and a dense one do one
MOST_DENSE = 1 << 28  # bytes that a sparse matrix may take when it is made dense for speed


class Vectors:
    """Rows of numbers with their squared lengths."""

    def __init__(self, X: Any, squares: np.ndarray) -> None:
        self.X, self.squares = X, squares

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @property
    def width(self) -> int:
        return int(self.X.shape[1])

    @property
    def effort(self) -> int:
        return self.width if not self.sparse else min(self.width, 1 + 8 * self.X.nnz // max(1, len(self)))

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: Any) -> Vectors:
        return Vectors(self.X[rows], self.squares[rows])

    def join(self, others: Sequence[Vectors]) -> Vectors:
        for other in others:
            same_width(self, other)
        parts = [self.X, *(other.X for other in others)]
        squares = np.concatenate([self.squares, *(other.squares for other in others)])
        if any(sp.issparse(part) for part in parts):
            return Vectors(sp.vstack([sp.csr_matrix(part) for part in parts], format="csr"), squares)
        return Vectors(np.concatenate(parts), squares)

    @cached_property
    def longest(self) -> float:
        """The largest squared length."""
        return float(self.squares.max(initial=0.0))

    @cached_property
    def turned(self) -> Any:
        """By columns: the rows in which each column is not zero."""
        return self.X.tocsc()

    @cached_property
    def dense(self) -> np.ndarray:
        return self.X.toarray() if self.sparse else self.X

    def dots(self, other: Vectors, out: np.ndarray) -> None:
        """x.z for all pairs, into ``out``."""
        same_width(self, other)
        if self.sparse and other.sparse and self.is_thin(other):
            by_column, X = other.turned, self.X

            def work(start: int, stop: int) -> None:
                out[start:stop] = 0
                lines = (X.data, X.indices, X.indptr, by_column.data, by_column.indices, by_column.indptr)
                sparse_products(*lines, out, start, stop)

            in_threads(work, len(self), 4 * X.nnz * max(1, other.X.nnz // max(1, other.width)))
        elif self.sparse and not other.sparse and self.X.nnz * MIXED < self.X.shape[0] * self.width:
            out[...] = self.X @ other.X.T
        elif other.sparse and not self.sparse and other.X.nnz * MIXED < other.X.shape[0] * self.width:
            out[...] = (other.X @ self.X.T).T
        else:
            np.matmul(self.dense, other.dense.T, out=out)

    def is_thin(self, other: Vectors) -> bool:
        """Whether so few pairs of values meet that it is not worth making dense rows of them."""
        cells = len(self) * len(other) * self.width
        meetings = self.X.nnz * other.X.nnz / max(1, self.width)
        room = (len(self) + len(other)) * self.width * self.dtype.itemsize
        return room > MOST_DENSE or meetings * QUICKER < cells


STRINGS = "{} works on rows of numbers, not on strings"


def same_width(A: Any, B: Any) -> None:
    if A.width != B.width:
        raise ValueError(f"the rows have {A.width} columns on one side and {B.width} on the other")


def numeric(X: Any, who: Any) -> Any:
    """X as a C-ordered array or a CSR matrix of float32 or float64, without NaN, infinity or repeated entries."""
    from sklearn.utils import check_array

    refuse_strings(X, who)
    X = plain_table(X)
    if getattr(getattr(X, "dtype", None), "kind", "") in ("U", "S"):
        raise TypeError(STRINGS.format(who))
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        ensure_min_samples=0,
        input_name="X",
    )
    check_finite(X)
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def refuse_strings(X: Any, who: Any) -> None:
    """Refuse a list or a column of strings, where each example should be a row of numbers."""
    flat = isinstance(X, (list, tuple)) or (len(getattr(X, "shape", ())) == 1 and not sp.issparse(X))
    if flat and isinstance(next(iter(X), None), (str, bytes)):
        raise TypeError(STRINGS.format(who))


def vectors(X: Any, who: Any) -> Vectors:
    """X checked and prepared."""
    X = numeric(X, who)
    return Vectors(X, squared_lengths(X))


def squared_lengths(X: Any) -> np.ndarray:
    if sp.issparse(X):
        whole = sp.csr_matrix((X.data.astype(np.float64) ** 2, X.indices, X.indptr), shape=X.shape)
        return np.asarray(whole.sum(axis=1)).ravel()
    out = np.empty(len(X))
    for start in range(0, len(X), 1024):  # in double precision, without a copy of all of X
        some = X[start : start + 1024].astype(np.float64, copy=False)
        np.einsum("ij,ij->i", some, some, out=out[start : start + 1024])
    return out

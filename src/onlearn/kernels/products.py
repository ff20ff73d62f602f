"""Examples as rows of numbers, dense or sparse (CSR), and the products x.z of all pairs of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.engine.csr import check_finite
from onlearn.engine.inputs import huge_numbers_told, number_types, plain_table
from onlearn.kernels.sparse_products import Lines, as_table, padded, products, sparse_products, square_rows
from onlearn.kernels.tiles import in_threads

# What ways to multiply rows take, in multiplications of the BLAS: for two numbers of sparse rows that meet, and to look
# whom one meets; for a number of a sparse row and one of a dense row, or of a table; to lay out a number of a table, or
# of a row with its zeros; to turn a product round; and to sort a number of a sparse row by its column.
MEET, LOOK, SPREAD, SUM, LAY, TURN, SORT = 40.0, 100.0, 20.0, 2.2, 30.0, 100.0, 500.0
MOST_DENSE = 1 << 28  # bytes that a sparse matrix may take when it is made dense for speed
THIN = 0.35  # share of numbers that are not zero up to which it is worth leaving the others out
SAMPLE = 200  # rows that tell how many zeros there are
SMALL = 1 << 16  # numbers; fewer are left as they are


class Vectors:
    """Rows of numbers with their squared lengths."""

    lasting: bool = False  # whether products with them will be asked for again and again
    thin: bool = False  # whether their zeros were left out

    def __init__(self, X: Any, squares: np.ndarray) -> None:
        self.X, self.squares = X, squares

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @property
    def width(self) -> int:
        return int(self.X.shape[1])

    def effort(self, other: Vectors) -> float:
        """What all products with some other rows take, in multiplications of the BLAS."""
        return min(self._ways(other).values())

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
    def lines(self) -> Lines:
        return Lines.of(self.X)

    @cached_property
    def table(self) -> np.ndarray:
        return self.as_table(self.dtype)

    def as_table(self, dtype: np.dtype) -> np.ndarray:
        return as_table(self.lines if self.sparse else self.X, self.width, dtype)

    @cached_property
    def dense(self) -> np.ndarray:
        return self.X.toarray() if self.sparse else self.X

    def thinned(self, surely: bool = False) -> Vectors:
        """The same rows without their zeros, if that makes products faster, or ``surely``."""
        if not self.sparse and not surely:
            some = self.X[:: max(1, len(self) // SAMPLE)]
            if self.X.size < SMALL or np.count_nonzero(some) > THIN * some.size:
                return self
        return Thin(self.lines, self.width, self.squares)

    @cached_property
    def numbers(self) -> int:
        """How many numbers are not known to be zero."""
        return self.lines.numbers if self.sparse else int(self.X.size)

    def dots(self, other: Vectors, out: np.ndarray) -> None:
        """x.z for all pairs, into ``out``."""
        same_width(self, other)
        costs = self._ways(other)
        min(costs, key=costs.__getitem__)(self, other, out)

    def _ways(self, other: Vectors) -> dict[Callable[..., None], float]:
        """The ways to multiply these rows, and what they cost.

        It depends on the rows alone, not on what was done with them before: each way rounds in its own way.
        """
        mine, theirs, width = len(self), len(other), max(1, self.width)
        dense = (mine * self.sparse + theirs * other.sparse) * width * self.dtype.itemsize
        ways: dict[Callable[..., None], float] = {}
        if dense <= MOST_DENSE:
            spread = sum(len(rows) for rows in (self, other) if rows.sparse)
            ways[_by_blas] = float(mine) * theirs * width + LAY * spread * width
        if self.sparse and other.sparse:
            sort = SORT * other.numbers * (not other.lasting)
            ways[_where_they_meet] = self.numbers * (LOOK + MEET * other.numbers / width) + sort
        if self.sparse and (not other.sparse or theirs * width * self.dtype.itemsize <= MOST_DENSE):
            lay = LAY * theirs * width * (not other.lasting)
            ways[_by_table] = SUM * self.numbers * padded(theirs, self.dtype) + lay
        if other.sparse and (not self.sparse or mine * width * self.dtype.itemsize <= MOST_DENSE):
            lay = LAY * mine * width * (not self.lasting) + TURN * mine * theirs
            ways[_by_table_turned] = SUM * other.numbers * padded(mine, self.dtype) + lay
        if self.sparse and not other.sparse:
            ways[_by_sparse_rows] = SPREAD * self.numbers * theirs
        if other.sparse and not self.sparse:
            ways[_by_sparse_columns] = SPREAD * other.numbers * mine
        return ways


class Thin(Vectors):
    """Sparse rows of which very many products will be asked for."""

    thin = True

    def __init__(self, lines: Lines, width: int, squares: np.ndarray) -> None:
        self.lines, self.squares, self._width = lines, squares, width

    @cached_property
    def X(self) -> Any:  # noqa: N802
        return self.lines.matrix(self._width)

    @property
    def dtype(self) -> Any:
        return self.lines.data.dtype

    @property
    def width(self) -> int:
        return self._width

    @property
    def sparse(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.squares)

    def take(self, rows: Any) -> Vectors:
        return Thin(self.lines.take(rows), self._width, self.squares[rows])

    def join(self, others: Sequence[Vectors]) -> Vectors:
        for other in others:
            same_width(self, other)
        squares = np.concatenate([self.squares, *(other.squares for other in others)])
        return Thin(Lines.joined([self.lines, *(other.lines for other in others)]), self._width, squares)


def _by_blas(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    np.matmul(A.dense, B.dense.T, out=out)


def _by_table(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    products(A.lines, B.table if B.dtype == out.dtype else B.as_table(out.dtype), A.width, out)


def _by_table_turned(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    turned = np.empty(out.shape[::-1], out.dtype)
    _by_table(B, A, turned)
    out[...] = turned.T


def _by_sparse_rows(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    out[...] = A.X @ B.X.T


def _by_sparse_columns(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    out[...] = (B.X @ A.X.T).T


def _where_they_meet(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    X, by_column = A.X, B.turned

    def work(start: int, stop: int) -> None:
        out[start:stop] = 0
        lines = (X.data, X.indices, X.indptr, by_column.data, by_column.indices, by_column.indptr)
        sparse_products(*lines, out, start, stop)

    in_threads(work, len(A), 4 * X.nnz * max(1, B.X.nnz // max(1, B.width)))


STRINGS = "{} works on rows of numbers, not on strings"


def same_width(A: Any, B: Any) -> None:
    if A.width != B.width:
        raise ValueError(f"the rows have {A.width} columns on one side and {B.width} on the other")


@huge_numbers_told
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
        dtype=number_types(X),
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


def in_precision(X: Any, dtype: np.dtype) -> Any:
    """Numbers in the precision that learning began with; an error if one is too large for it."""
    with np.errstate(over="ignore"):  # looked for below, and told in words
        made = X.astype(dtype, copy=False)
    if np.dtype(dtype).itemsize >= X.dtype.itemsize:
        return made
    before, after = (X.data, made.data) if sp.issparse(X) else (X, made)
    large = np.isinf(after) & np.isfinite(before)
    if large.any():
        row = (
            int(np.searchsorted(X.indptr, np.argmax(large), side="right")) - 1
            if sp.issparse(X)
            else np.argwhere(large)[0, 0]
        )
        raise OverflowError(
            f"X holds {before[large][0]:g} in row {row}, which is too large for {np.dtype(dtype)}, the precision that "
            "learning began with: scale the data, or learn anew from float64"
        )
    return made


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
    """|x|^2 of each row, in double precision, without a copy of X."""
    out = np.empty(X.shape[0])
    if sp.issparse(X):
        in_threads(lambda *part: square_rows(X.data, X.indptr, out, *part), len(out), X.nnz)
    else:
        ends = np.arange(len(out) + 1) * X.shape[1]
        in_threads(lambda *part: square_rows(X.reshape(-1), ends, out, *part), len(out), X.size)
    return out

"""Examples as rows of numbers, dense or sparse, and the products x.z of all pairs of rows.

There are several ways to multiply rows, by the BLAS or by the compiled passes of ``sparse_products``. The cheapest one
is chosen by a model of their costs. The choice depends on the rows alone, since each way rounds differently.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from onlearn.engine.csr import CSR, check_finite, is_sparse, without_duplicates
from onlearn.engine.inputs import huge_numbers_told, number_types, plain_table
from onlearn.kernels import sparse_products
from onlearn.kernels.base import View
from onlearn.kernels.sparse_products import Lines, as_table, padded, products, square_rows, transpose
from onlearn.kernels.tiles import in_threads

# Costs, in multiplications of the BLAS: for two numbers of sparse rows in a common column, and to look one up; for a
# number of a sparse row by one of a dense row, or by one of a table; to lay out a number of a table, or of a row with
# its zeros; to transpose a product; and to sort a number of a sparse row by its column.
MEET, LOOK, SPREAD, SUM, LAY, TURN, SORT = 40.0, 100.0, 20.0, 2.2, 30.0, 100.0, 500.0
MOST_DENSE = 1 << 28  # bytes that sparse rows may take when they are made dense for speed
MOST_KEPT = 1 << 24  # bytes of a product before it is transposed that stay allocated, in each thread
THIN = 0.35  # the share of nonzero numbers up to which leaving out the zeros is faster
SAMPLE = 200  # rows that the share is estimated from
SMALL = 1 << 16  # numbers; dense rows with fewer stay dense

STRINGS = "{} works on rows of numbers, not on strings"


class Vectors(View):
    """Rows of numbers (a C-ordered array, or CSR with columns in order) with their squared lengths."""

    squares: np.ndarray

    def __init__(self, X: Any, squares: np.ndarray) -> None:
        self.X, self.squares = as_csr(X), squares

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @property
    def width(self) -> int:
        return int(self.X.shape[1])

    @property
    def sparse(self) -> bool:
        return isinstance(self.X, CSR)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: Any) -> Vectors:
        return Vectors(take_rows(self.X, rows), self.squares[rows])

    def join(self, others: Sequence[Vectors]) -> Vectors:
        for other in others:
            same_width(self, other)
        parts = [self, *others]
        squares = np.concatenate([part.squares for part in parts])
        if any(part.sparse for part in parts):
            return Vectors(Lines.joined([part.lines for part in parts]).to_csr(self.width), squares)
        return Vectors(np.concatenate([part.X for part in parts]), squares)

    @cached_property
    def longest(self) -> float:
        """The largest squared length."""
        return float(self.squares.max(initial=0.0))

    @cached_property
    def numbers(self) -> int:
        """How many numbers are not known to be zero."""
        return self.lines.numbers if self.sparse else int(self.X.size)

    # -- layouts

    @cached_property
    def turned(self) -> CSR:
        """By columns: the rows in which each column is not zero."""
        return sparse_products.transposed(self.X)

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
        return dense_rows(self.X)

    def thinned(self, surely: bool = False) -> Vectors:
        """The same rows without their zeros, if that makes products faster or ``surely`` says so."""
        if not self.sparse and not surely:
            some = self.X[:: max(1, len(self) // SAMPLE)]
            if self.X.size < SMALL or np.count_nonzero(some) > THIN * some.size:
                return self
        return Thin(self.lines, self.width, self.squares)

    # -- products

    def dots(self, other: Vectors, out: np.ndarray) -> None:
        """Write x.z of all pairs to ``out``."""
        same_width(self, other)
        costs = self._ways(other)
        min(costs, key=costs.__getitem__)(self, other, out)

    def effort(self, other: Vectors) -> float:
        """The cost of all products with other rows, in multiplications of the BLAS."""
        return min(self._ways(other).values())

    def _ways(self, other: Vectors) -> dict[Callable[..., None], float]:
        """The ways to multiply these rows, and their costs."""
        mine, theirs, width = len(self), len(other), max(1, self.width)
        dense = (mine * self.sparse + theirs * other.sparse) * width * self.dtype.itemsize
        ways: dict[Callable[..., None], float] = {}
        if dense <= MOST_DENSE:
            spread = sum(len(rows) for rows in (self, other) if rows.sparse)
            ways[_by_blas] = float(mine) * theirs * width + LAY * spread * width
        if self.sparse and other.sparse:
            sort = SORT * other.numbers * (not other.lasting)
            ways[_by_common_columns] = self.numbers * (LOOK + MEET * other.numbers / width) + sort
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

    squares: np.ndarray

    thin = True

    def __init__(self, lines: Lines, width: int, squares: np.ndarray) -> None:
        self.lines, self.squares, self._width = lines, squares, width

    @cached_property
    def X(self) -> CSR:  # noqa: N802
        return self.lines.to_csr(self._width)

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

    def take(self, rows: Any) -> Thin:
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
    turned = _buffer(out.shape[::-1], out.dtype)
    _by_table(B, A, turned)
    transpose(turned, out)


_kept = threading.local()


def _buffer(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Room for an array of this thread, valid until the next call: new memory takes as long as the products."""
    size = shape[0] * shape[1] * dtype.itemsize
    room = getattr(_kept, "room", None)
    if room is None or room.nbytes < size:
        room = np.empty(size, np.uint8)
        if size <= MOST_KEPT:
            _kept.room = room
    return room[:size].view(dtype).reshape(shape)


def _by_sparse_rows(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    sparse_products.by_rows(A.X, B.X, out)


def _by_sparse_columns(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    turned = np.empty(out.shape[::-1], out.dtype)
    _by_sparse_rows(B, A, turned)
    out[...] = turned.T


def _by_common_columns(A: Vectors, B: Vectors, out: np.ndarray) -> None:
    sparse_products.by_common_columns(A.X, B.turned, out)


def same_width(A: Any, B: Any) -> None:
    if A.width != B.width:
        raise ValueError(f"the rows have {A.width} columns on one side and {B.width} on the other")


# -- rows as users pass them in


@huge_numbers_told
def numeric(X: Any, who: Any) -> Any:
    """X as float32 or float64 without NaN or infinity: a C-ordered array, or sparse rows (CSR, or SciPy's if X is).

    Sparse rows have their columns in order, and no column twice. ``who`` is the kernel that errors name.
    """
    refuse_strings(X, who)
    X = plain_table(X)
    if getattr(getattr(X, "dtype", None), "kind", "") in ("U", "S"):
        raise TypeError(STRINGS.format(who))
    types = number_types(X)
    X = _from_pandas(X, types)
    held = getattr(X, "dtype", None)
    held = held if isinstance(held, np.dtype) else None
    if held is not None and held.kind == "c":
        raise ValueError(f"Complex data not supported: {who} works on rows of real numbers")
    dtype = held if held in types else types[0]
    if isinstance(X, CSR):
        X = replace(X, data=X.data.astype(dtype, copy=False))
    elif is_scipy(X):
        X = X.tocsr().astype(dtype, copy=False) if X.ndim == 2 else X
    elif isinstance(X, np.matrix):
        raise TypeError("np.matrix is not supported: pass np.asarray(X)")
    else:
        X = np.asarray(X, dtype=dtype, order="C")
    _check_shape(X.shape)
    check_finite(X)
    return _in_order(X)


def _from_pandas(X: Any, types: list[Any]) -> Any:
    """A pandas table as numbers of one type, sparse if all of its columns are; anything else unchanged."""
    if type(X).__module__.partition(".")[0] != "pandas" or len(getattr(X, "shape", ())) != 2 or not X.shape[1]:
        return X
    held = list(X.dtypes)
    if all(hasattr(kind, "fill_value") for kind in held):  # pandas.SparseDtype
        return X.sparse.to_coo()
    common = np.result_type(*held) if all(isinstance(kind, np.dtype) for kind in held) else None
    dtype = common if common in types else types[0]
    return np.asarray(X if all(kind == dtype for kind in held) else X.astype(dtype))  # pandas' missing values: NaN


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead: X needs rows and columns. "
            "X.reshape(-1, 1) has one column, X.reshape(1, -1) one row"
        )
    if not shape[1]:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _in_order(X: Any) -> Any:
    """Sparse rows with their columns in order, and the values of each column of a row summed."""
    if isinstance(X, np.ndarray):
        return X
    if not isinstance(X, CSR):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X
    X = without_duplicates(as_csr(X))
    rising = np.diff(X.indices) > 0
    starts = X.indptr[1:-1]
    rising[starts[(starts > 0) & (starts < X.nnz)] - 1] = True  # from row to row columns may fall
    if rising.all():
        return X
    order = np.lexsort((X.indices, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))))
    return replace(X, data=X.data[order], indices=X.indices[order])


def refuse_strings(X: Any, who: Any) -> None:
    """Refuse a list or a column of strings, where each example should be a row of numbers."""
    flat = isinstance(X, (list, tuple)) or (len(getattr(X, "shape", ())) == 1 and not is_scipy(X))
    if flat and isinstance(next(iter(X), None), (str, bytes)):
        raise TypeError(STRINGS.format(who))


def number_rows(X: Any, who: Any) -> Any:
    """X checked: a C-ordered array, or CSR with columns in order."""
    return as_csr(numeric(X, who))


def vectors(X: Any, who: Any) -> Vectors:
    """X checked, with the squared lengths of its rows."""
    X = number_rows(X, who)
    return Vectors(X, squared_lengths(X))


# -- matrices, dense or sparse


def is_scipy(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy, which is not imported for that."""
    return hasattr(X, "tocsr")


def as_csr(X: Any) -> Any:
    """Sparse rows, ours or SciPy's, as CSR over the same memory; a dense array unchanged."""
    if isinstance(X, CSR):
        return X if len(X.data) == X.indptr[-1] and not X.indptr[0] else X.between(0, X.shape[0])
    if not is_scipy(X):
        return X
    X = X.tocsr()
    return as_csr(CSR(X.data, X.indices, X.indptr, X.shape))


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array or of CSR, by a slice (which copies nothing) or an array of row numbers."""
    if not isinstance(X, CSR):
        return X[rows]
    if isinstance(rows, slice):
        start, stop, step = rows.indices(X.shape[0])
        if step == 1:
            return X.between(start, max(start, stop))
    return X.take(np.arange(X.shape[0])[rows])


def dense_rows(X: Any) -> np.ndarray:
    """The rows with their zeros."""
    if not is_sparse(X):
        return X
    out = np.zeros(X.shape, X.dtype)
    sparse_products.spread_rows(X.data, X.indices, X.indptr, X.shape[1], out.reshape(-1))
    return out


def with_values(X: Any, values: np.ndarray) -> Any:
    """The sparse rows X with other values in the same places."""
    if isinstance(X, CSR):
        return replace(X, data=values, finite=False)
    made = X.copy()
    made.data = values
    return made


def in_precision(X: Any, dtype: np.dtype) -> Any:
    """X in the precision that learning began with; an error if a number is too large for it."""
    with np.errstate(over="ignore"):  # reported below
        made = replace(X, data=X.data.astype(dtype)) if isinstance(X, CSR) else X.astype(dtype, copy=False)
    if np.dtype(dtype).itemsize >= X.dtype.itemsize:
        return made
    before: Any = X.data if is_sparse(X) else X
    after: Any = made.data if is_sparse(X) else made
    large = np.isinf(after) & np.isfinite(before)
    if large.any():
        place = np.argwhere(large)[0, 0]
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1 if is_sparse(X) else place
        raise OverflowError(
            f"X holds {before[large][0]:g} in row {row}, which is too large for {np.dtype(dtype)}, the precision that "
            "learning began with: scale the data, or train a new model on float64"
        )
    return made


def squared_lengths(X: Any) -> np.ndarray:
    """|x|^2 of each row, in double precision, without a copy of X."""
    out = np.empty(X.shape[0])
    if is_sparse(X):
        in_threads(lambda *part: square_rows(X.data, X.indptr, out, *part), len(out), X.nnz)
    else:
        ends = np.arange(len(out) + 1) * X.shape[1]
        in_threads(lambda *part: square_rows(X.reshape(-1), ends, out, *part), len(out), X.size)
    return out

"""Sparse rows: one CSR type for everything below the estimators, and what is done to whole matrices.

Functions here take dense arrays and sparse matrices alike. A sparse matrix is anything with ``data``, ``indices``,
``indptr`` and ``shape``: ``CSR``, or a SciPy matrix that a user passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlearn.compiler.inlining import Loop
from onlearn.engine.rows import ONE, Dense, Sparse

FEW = 1 << 21
LAST = float(np.finfo(np.float64).max)  # beyond it is infinity
BUFFER = 1 << 22  # bytes of rows gathered at a time where they do not lie one after another


@dataclass(frozen=True, slots=True, eq=False)
class CSR:
    """Compressed sparse rows: row i has ``data[indptr[i]:indptr[i + 1]]`` in the columns ``indices`` of that range.

    >>> X = CSR(np.array([1.0, 2.0]), np.array([0, 2]), np.array([0, 1, 2]), (2, 3))
    >>> X.take(np.array([1])).toarray()
    array([[0., 0., 2.]])
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]
    unique: bool = False  # whether it is known that every column exists and no row has one twice
    finite: bool = False  # whether it is known that no value is NaN or infinite

    @classmethod
    def of(cls, X: Any) -> CSR:
        """A SciPy matrix, over the same memory if it is in CSR format; or a dense array, without its zeros."""
        if isinstance(X, np.ndarray):
            rows, columns = np.nonzero(X)
            indptr = np.zeros(X.shape[0] + 1, np.int32)
            np.cumsum(np.count_nonzero(X, axis=1), out=indptr[1:])
            return cls(X[rows, columns], columns.astype(np.int32), indptr, X.shape, unique=True)
        X = X.tocsr()
        return cls(X.data, X.indices, X.indptr, X.shape)

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def between(self, start: int, stop: int) -> CSR:
        """Some rows that lie one after another, over the same memory."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - self.indptr[start]
        shape = (stop - start, self.shape[1])
        return replace(self, data=self.data[first:last], indices=self.indices[first:last], indptr=indptr, shape=shape)

    def take(self, rows: np.ndarray) -> CSR:
        """The given rows, in the given order."""
        starts, lengths = self.indptr[rows], np.diff(self.indptr)[rows]
        indptr = np.concatenate([np.zeros(1, self.indptr.dtype), np.cumsum(lengths, dtype=self.indptr.dtype)])
        places = np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])
        shape = (len(rows), self.shape[1])
        return replace(self, data=self.data[places], indices=self.indices[places], indptr=indptr, shape=shape)

    def toarray(self) -> np.ndarray:
        """The same as a dense array; values of one place are summed."""
        dense = np.zeros(self.shape, self.dtype)
        held = slice(int(self.indptr[0]), int(self.indptr[-1]))
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        np.add.at(dense, (rows, self.indices[held]), self.data[held])
        return dense

    def of_width(self, width: int) -> CSR:
        """The same rows with columns added or cut off at the end."""
        if self.shape[1] <= width:
            return self if self.shape[1] == width else replace(self, shape=(self.shape[0], width))
        return select(self, np.where(np.arange(self.shape[1]) < width, np.arange(self.shape[1]), -1), width)

    def with_sorted_columns(self) -> CSR:
        """The same rows with the columns of each in order."""
        X = self.between(0, self.shape[0])  # whose arrays hold nothing but the rows
        order = _by_column(X, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)))
        return replace(X, data=X.data[order], indices=X.indices[order])

    def to_scipy(self) -> Any:
        """The same as a SciPy matrix, over the same memory."""
        import scipy.sparse as sp

        X = sp.csr_matrix(self.shape, dtype=self.dtype)  # the constructor with parts would look all of them over
        X.data, X.indices, X.indptr = self.data, self.indices, self.indptr.astype(self.indices.dtype, copy=False)
        return X


def is_sparse(X: Any) -> bool:
    """Whether X is a matrix in compressed sparse rows, ours or SciPy's."""
    return hasattr(X, "indptr")


def stacked(parts: Sequence[CSR]) -> CSR:
    """Rows of several matrices, one matrix below the other; as wide as the widest of them."""
    width = max(X.shape[1] for X in parts)
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(X.nnz for X in parts)])
    indices, data = in_one([X.indices for X in parts]), in_one([X.data for X in parts])
    kind = indices.dtype if starts[-1] < 2**31 else np.int64
    indptr = np.concatenate([[0], *(X.indptr[1:] + start for X, start in zip(parts, starts))]).astype(kind)
    unique, finite = all(X.unique for X in parts), all(X.finite for X in parts)
    return CSR(data, indices.astype(kind, copy=False), indptr, (len(indptr) - 1, width), unique, finite)


def select(X: CSR, new: np.ndarray, width: int) -> CSR:
    """Some columns only, numbered anew: column k becomes ``new[k]``, unless that is -1. No two may become the same."""
    columns = new[X.indices]
    stay = columns >= 0
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(stay)])
    indptr, indices = before[X.indptr].astype(X.indptr.dtype), columns[stay].astype(X.indices.dtype)
    return replace(X, data=X.data[stay], indices=indices, indptr=indptr, shape=(X.shape[0], width))


def in_one(arrays: list[np.ndarray]) -> np.ndarray:
    """Arrays one behind another as one; those that lie so already are not copied."""
    base = arrays[0].base
    if (
        isinstance(base, np.ndarray)
        and base.ndim == 1
        and all(a.base is base and a.dtype == base.dtype and a.flags.c_contiguous for a in arrays)
        and base.flags.c_contiguous
    ):
        starts = [(a.ctypes.data - base.ctypes.data) // a.itemsize for a in arrays]
        if all(a + len(one) == b for a, one, b in zip(starts, arrays, starts[1:])):
            return base[starts[0] : starts[-1] + len(arrays[-1])]
    return np.concatenate(arrays)


def check_finite(X: Any, names: Any = None) -> None:
    """Refuse NaN and infinity, saying where the first one is; a matrix that is known to be finite is not read."""
    if known_finite(X):
        return
    values = X.data if is_sparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if values.flags.c_contiguous or values.flags.f_contiguous:
            flat = values.ravel(order="K")
            # For many, the fastest sum that NaN and infinity show in is BLAS's; for few, its threads take too long.
            sound = np.isfinite(flat @ flat) if flat.size > FEW else all_finite(flat)
        else:
            sound = np.isfinite(values.sum())
    if sound:
        return
    if is_sparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if not bad.size:
            return
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        col, value = int(X.indices[bad[0]]), X.data[bad[0]]
    else:
        for start in range(0, len(X), 1 << 14):
            bad_rows, bad_cols = np.nonzero(~np.isfinite(X[start : start + (1 << 14)]))
            if bad_rows.size:
                row, col = start + int(bad_rows[0]), int(bad_cols[0])
                value = X[row, col]
                break
        else:
            return
    what = "NaN" if np.isnan(value) else "infinity"
    where = f"column {col}" if names is None else f"column {col} ({names[col]!r})"
    raise ValueError(f"X contains {what} in row {row}, {where}: remove the row, or fill the value in")


@Loop
def all_finite(values: Any) -> bool:
    strange = 0
    for n in range(len(values)):
        strange += not abs(values[n]) <= LAST
    return strange == 0


def known_finite(X: Any) -> bool:
    """Whether it is known, without a look, that X holds neither NaN nor infinity."""
    return X.finite if isinstance(X, CSR) else bool(getattr(X, "known_finite", False))


def without_duplicates(X: Any) -> Any:
    """X, or a copy in which values of one row and column are summed: as two they would count as two features.

    Indices need not be in order, so nothing is sorted unless there are duplicates.
    """
    ours = isinstance(X, CSR)
    if X.unique if ours else getattr(X, "free_of_duplicates", False):
        return X
    ordered = not ours and bool(X.has_canonical_format)
    _check_columns(X, ordered)
    if ordered:
        return X
    if X.shape[1] <= 16 * max(X.nnz, 1 << 16):
        met = np.full(X.shape[1], -1, dtype=np.int32 if X.shape[0] < 1 << 31 else np.int64)
        if not _repeats(X.indices, X.indptr, met):
            return replace(X, unique=True) if ours else X
    if ours:
        return summed(X)
    X = X.copy()
    X.sum_duplicates()
    return X


def summed(X: CSR) -> CSR:
    """X with its columns in order, and values of one row and column summed."""
    X = X.between(0, X.shape[0])
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = _by_column(X, rows)
    rows, indices, data = rows[order], X.indices[order], X.data[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (indices[1:] != indices[:-1])
    sums, again = data[first], ~first
    np.add.at(sums, (np.cumsum(first) - 1)[again], data[again])
    counts = np.bincount(rows[first], minlength=X.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(X.indptr.dtype)
    return CSR(sums, indices[first], indptr, X.shape, unique=True, finite=False)


def _by_column(X: CSR, rows: np.ndarray) -> np.ndarray:
    """The places of the values, row after row, those of a row by their columns; equal ones stay in order."""
    if X.shape[0] * X.shape[1] < 1 << 62:
        return np.argsort(rows * X.shape[1] + X.indices, kind="stable")
    return np.lexsort((X.indices, rows))


def _check_columns(X: Any, ordered: bool) -> None:
    """Refuse columns that the matrix does not have: compiled code would read and write elsewhere in memory."""
    size = min(len(X.indices), len(X.data))
    if len(X.indptr) != X.shape[0] + 1 or not _in_order(X.indptr, size):
        raise ValueError("X is not a sound CSR matrix: its indptr does not cut its values into rows one after another")
    if _columns_are_there(X.indices, X.indptr, X.shape[1], ordered):
        return
    wrong = int(np.flatnonzero((X.indices < 0) | (X.indices >= X.shape[1]))[0])
    row = int(np.searchsorted(X.indptr, wrong, side="right")) - 1
    raise ValueError(f"X has {X.shape[1]} columns, but row {row} has a value in column {X.indices[wrong]}")


@Loop
def _in_order(indptr: Any, size: Any) -> bool:
    """Whether places of values, of which there are so many, never go back."""
    back = (indptr[0] < 0) | (indptr[len(indptr) - 1] > size)
    for i in range(len(indptr) - 1):
        back |= indptr[i + 1] < indptr[i]
    return not back


@Loop
def _columns_are_there(indices: Any, indptr: Any, width: Any, ordered: Any) -> bool:
    """Whether all columns are from 0 to below width; of a row in order, the first and the last tell."""
    outside = 0
    for i in range(len(indptr) - 1):
        first, past = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if past > first:
            if ordered:
                outside += (indices[first] < 0) | (indices[past - ONE] >= width)
            else:
                for p in range(first, past):
                    outside += (indices[p] < 0) | (indices[p] >= width)
    return outside == 0


@Loop
def _repeats(indices: Any, indptr: Any, met: Any) -> bool:
    """Whether a row has a column twice. ``met`` holds the last row that each column was met in."""
    for i in range(len(indptr) - 1):
        again = 0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[p])
            again += met[j] == i
            met[j] = i
        if again:
            return True
    return False


def check_positive(X: Any, who: str) -> None:
    """Refuse negative features, saying where the first one is."""
    values = X.data if is_sparse(X) else X
    if not values.size or values.min() >= 0:
        return
    if is_sparse(X):
        n = int(np.flatnonzero(X.data < 0)[0])
        row, col, value = int(np.searchsorted(X.indptr, n, side="right")) - 1, int(X.indices[n]), X.data[n]
    else:
        row, col = (int(v) for v in np.argwhere(X < 0)[0])
        value = X[row, col]
    raise ValueError(
        f"Negative values in data passed to {who}: it needs features of at least 0, "
        f"but row {row}, column {col} holds {value:g}"
    )


def as_rows(X: Any, bias: float) -> Dense | Sparse | None:
    """Rows over the memory of X itself; None when a dense X does not lie row after row."""

    def fixed(array: np.ndarray) -> np.ndarray:
        """Read-only always, so that compiled code meets one type whether the user's array is or not."""
        view = array.view()
        view.flags.writeable = False
        return view

    if is_sparse(X):
        return Sparse(fixed(X.data), fixed(X.indices), fixed(X.indptr), float(bias))
    if X.flags.c_contiguous:
        return Dense(fixed(X.reshape(-1)), X.shape[1], float(bias))
    return None


def row_batches(X: Any, order: np.ndarray, bias: float, size: int) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Rows, the order in which to take them, and which row of X each of those is.

    At most ``size`` examples a batch. Rows that do not lie one after another (a data frame's columns do) are
    gathered a few megabytes at a time.
    """
    rows = as_rows(X, bias)
    if rows is None:
        size = max(1, min(size, BUFFER // max(1, X.shape[1] * X.itemsize)))
    for start in range(0, len(order), size):
        part = order[start : start + size]
        if rows is not None:
            yield rows, part, part
        else:
            yield as_rows(np.ascontiguousarray(X[part]), bias), np.arange(len(part)), part


def radius(X: Any) -> float:
    """max |x|_2 over the rows."""
    values = X.data if is_sparse(X) else X
    size = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    # Squares beyond all numbers, or too small for any: in units of a power of two, which rounds nothing.
    unit = 1.0 if 1e-100 < size < 1e100 else 2.0 ** min(max(np.frexp(size)[1], -1000), 1000)
    if is_sparse(X):
        scaled = X.data.astype(np.float64) / unit
        squares = np.add.reduceat(np.append(scaled**2, 0.0), np.minimum(X.indptr[:-1], X.nnz))
        squares[np.diff(X.indptr) == 0] = 0.0
    else:
        scaled = X if unit == 1.0 else X / unit
        squares = np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64)
    return float(np.sqrt(squares.max(initial=0.0))) * unit


def rows_at(X: Any, rows: np.ndarray) -> Any:
    """The given rows of a dense or a sparse matrix."""
    return X.take(rows) if isinstance(X, CSR) else X[rows]


def dense_rows(X: Any, rows: np.ndarray) -> np.ndarray:
    """The given rows as a dense array."""
    chosen = rows_at(X, rows)
    return np.asarray(chosen.toarray() if is_sparse(chosen) else chosen)


def as_floats(X: Any) -> Any:
    """X as a dense array or in compressed sparse rows, of single or double precision; as it is if it is so."""
    if is_sparse(X):
        X = X if getattr(X, "format", "csr") == "csr" else X.tocsr()  # SciPy's other formats have an indptr, too
        if X.dtype in (np.float64, np.float32):
            return X
        return replace(X, data=X.data.astype(np.float64)) if isinstance(X, CSR) else X.astype(np.float64)
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns, not {X.ndim}")
    return X if X.dtype in (np.float64, np.float32) else X.astype(np.float64)


def of_width(X: Any, width: int) -> Any:
    """X with columns of zeros added, or with those beyond a width left out."""
    if not is_sparse(X):
        return X[:, :width] if X.shape[1] > width else np.pad(X, ((0, 0), (0, width - X.shape[1])))
    if X.shape[1] <= width:
        return CSR(X.data, X.indices, X.indptr, (X.shape[0], width), finite=known_finite(X))
    stay = X.indices < width
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(stay)])
    indptr = before[X.indptr].astype(X.indptr.dtype)
    return CSR(X.data[stay], X.indices[stay], indptr, (X.shape[0], width), finite=known_finite(X))

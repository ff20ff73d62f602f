"""What users pass in, made into rows: NumPy, SciPy sparse, pandas, polars, PyArrow; checked, never copied in vain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.rows import ONE, Dense, Sparse
from onlearn.weave import Loop

FEW = 1 << 21
LAST = float(np.finfo(np.float64).max)  # beyond it is infinity
BUFFER = 1 << 22  # bytes of rows gathered at a time where they do not lie one after another


def plain_table(X: Any) -> Any:
    """A PyArrow table as a NumPy array; anything else as it is (scikit-learn takes pandas and polars)."""
    refuse_lazy(X)
    refuse_times(X, "X")
    module = type(X).__module__.partition(".")[0]
    if module != "pyarrow":
        return X
    if not hasattr(X, "column_names"):
        raise TypeError(f"X must be a table or an array, not a pyarrow {type(X).__name__}")
    import pyarrow.types as kinds

    columns = []
    for field, column in zip(X.schema, X.columns, strict=True):
        kind = field.type
        if not any(holds(kind) for holds in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)):
            raise ValueError(f"column {field.name!r} holds {kind}, not numbers: encode it first")
        columns.append(np.asarray(column.cast("float64") if kinds.is_decimal(kind) else column))
    if not columns:
        return np.empty((X.num_rows, 0))
    dtype = np.result_type(*columns)
    single = dtype in (np.float16, np.float32)
    return np.column_stack(columns).astype(np.float32 if single else np.float64, copy=False)


def huge_numbers_told(check: Any) -> Any:
    """A function that makes rows of floats, so that it says what is wrong with a whole number no float can hold."""

    @wraps(check)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return check(*args, **kwargs)
        except OverflowError as error:
            if "too large to convert" not in str(error):
                raise
            raise OverflowError("X holds a whole number that is too large for float64: scale the data") from None

    return told


def refuse_lazy(X: Any) -> None:
    """Refuse what says how to make a table, but is none."""
    if type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame, which holds no rows yet: collect() it first")


def refuse_times(X: Any, name: str) -> None:
    """Refuse dates and times, which NumPy would take for numbers of whatever unit they have."""
    held: Any = np.atleast_1d(X.dtypes) if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    for kind in held:
        if getattr(kind, "kind", None) in ("m", "M") or (hasattr(kind, "is_temporal") and kind.is_temporal()):
            raise ValueError(f"{name} holds dates or times ({kind}), not numbers: make numbers of them first")


def column_names(X: Any) -> list[str] | None:
    """The names of a PyArrow table's columns, which scikit-learn does not look for."""
    return list(getattr(X, "column_names", [])) if type(X).__module__.startswith("pyarrow") else None


def names_of_columns(X: Any) -> list[str] | None:
    """The names of a table's columns, of whatever kind the table is; None if they are not strings."""
    from sklearn.utils.validation import _get_feature_names

    names = column_names(X) or _get_feature_names(X)
    return None if names is None else list(names)


def number_types(X: Any) -> list[Any]:
    """What kinds of numbers X may be made into; the first if it holds others, or does not say what it holds."""
    module, held = type(X).__module__.partition(".")[0], [getattr(X, "dtype", None)]
    if module == "polars" and type(X).__name__ == "DataFrame":  # which does not
        held = [X.head(0).to_numpy().dtype]
    elif module == "pandas" and hasattr(X, "dtypes"):  # where columns of a kind of its own do not
        held = [getattr(kind, "subtype", getattr(kind, "numpy_dtype", kind)) for kind in np.atleast_1d(X.dtypes)]
    single = bool(held) and all(kind in (np.float16, np.float32) for kind in held)
    return [np.float32] if single else [np.float64, np.float32]


def check_finite(X: Any, names: Any = None) -> None:
    """Refuse NaN and infinity, saying where the first one is; a matrix that is ``known_finite`` need not be read."""
    if getattr(X, "known_finite", False):
        return
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if values.flags.c_contiguous or values.flags.f_contiguous:
            flat = values.ravel(order="K")
            # For many, the fastest sum that NaN and infinity show in is BLAS's; for few, its threads take too long.
            sound = np.isfinite(flat @ flat) if flat.size > FEW else all_finite(flat)
        else:
            sound = np.isfinite(values.sum())
    if sound:
        return
    if sp.issparse(X):
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


def without_duplicates(X: sp.csr_matrix) -> sp.csr_matrix:
    """X, or a copy in which values of one row and column are summed: as two they would count as two features.

    Indices need not be in order, so nothing is sorted unless there are duplicates.
    """
    if getattr(X, "free_of_duplicates", False):
        return X
    _check_columns(X)
    if X.has_canonical_format:
        return X
    if X.shape[1] <= 16 * max(X.nnz, 1 << 16):
        met = np.full(X.shape[1], -1, dtype=np.int32 if X.shape[0] < 1 << 31 else np.int64)
        if not _repeats(X.indices, X.indptr, met):
            return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _check_columns(X: sp.csr_matrix) -> None:
    """Refuse columns that the matrix does not have: compiled code would read and write elsewhere in memory."""
    size = min(len(X.indices), len(X.data))
    if len(X.indptr) != X.shape[0] + 1 or not _in_order(X.indptr, size):
        raise ValueError("X is not a sound CSR matrix: its indptr does not cut its values into rows one after another")
    if _columns_are_there(X.indices, X.indptr, X.shape[1], X.has_canonical_format):
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
    values = X.data if sp.issparse(X) else X
    if not values.size or values.min() >= 0:
        return
    coo = X.tocoo() if sp.issparse(X) else None
    if coo is not None:
        n = int(np.flatnonzero(coo.data < 0)[0])
        row, col = int(coo.row[n]), int(coo.col[n])
    else:
        row, col = (int(v) for v in np.argwhere(X < 0)[0])
    raise ValueError(
        f"Negative values in data passed to {who}: it needs features of at least 0, "
        f"but row {row}, column {col} holds {X[row, col]:g}"
    )


def as_rows(X: Any, bias: float) -> Dense | Sparse | None:
    """Rows over the memory of X itself; None when a dense X does not lie row after row."""

    def fixed(array: np.ndarray) -> np.ndarray:
        """Read-only always, so that compiled code meets one type whether the user's array is or not."""
        view = array.view()
        view.flags.writeable = False
        return view

    if sp.issparse(X):
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


def largest_of_rows(X: Any) -> np.ndarray:
    """The largest absolute value of each row."""
    highest, lowest = X.max(axis=1), X.min(axis=1)
    if sp.issparse(X):
        highest, lowest = highest.toarray().ravel(), lowest.toarray().ravel()
    return np.asarray(np.maximum(highest, -lowest), dtype=np.float64)


def radius(X: Any) -> float:
    """max |x|_2 over the rows."""
    values = X.data if sp.issparse(X) else X
    size = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    # Squares beyond all numbers, or too small for any: in units of a power of two, which rounds nothing.
    unit = 1.0 if 1e-100 < size < 1e100 else 2.0 ** min(max(np.frexp(size)[1], -1000), 1000)
    if sp.issparse(X):
        scaled = X.data.astype(np.float64) / unit
        squares = np.add.reduceat(np.append(scaled**2, 0.0), np.minimum(X.indptr[:-1], X.nnz))
        squares[np.diff(X.indptr) == 0] = 0.0
    else:
        scaled = X if unit == 1.0 else X / unit
        squares = np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64)
    return float(np.sqrt(squares.max(initial=0.0))) * unit

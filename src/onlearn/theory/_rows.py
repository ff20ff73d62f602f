"""What the theory needs to know of rows, dense or sparse: scores and norms, a block of rows at a time.

Blocks keep the extra memory small: no dense copy of sparse rows, no float64 copy of all of a float32 matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_BLOCK = 1 << 20  # numbers a block holds, 8 MB as float64


def as_rows(X: Any) -> Any:
    """X as a 2-D array or a CSR matrix with at least one row and one column, all of it finite."""
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns, but its shape is {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, but its type is {X.dtype}.")
    for start, block in blocks(X):
        finite = np.isfinite(block.data if sp.issparse(block) else block)
        if not finite.all():
            where = int(np.argmin(finite))
            if sp.issparse(block):
                row = int(np.searchsorted(block.indptr, where, side="right")) - 1
                column = int(block.indices[where])
            else:
                row, column = divmod(where, X.shape[1])
            raise ValueError(f"X has NaN or infinity in row {start + row}, column {column}.")
    return X


def signs(y: ArrayLike, n_rows: int) -> tuple[Floats, NDArray[Any]]:
    """The labels as -1.0 and +1.0, and the labels themselves (the second of them, in order, is the +1)."""
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise ValueError(f"y must hold one label for each of the {n_rows} rows, but its shape is {y.shape}.")
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise ValueError(f"y has NaN in row {int(np.argmax(np.isnan(y)))}.")
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y must hold two classes, but it holds {len(classes)}.")
    return np.where(y == classes[1], 1.0, -1.0), classes


def blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """(first row, block of rows as float64) for all of X."""
    n_rows, n_columns = X.shape
    per_row = max(1, X.nnz // n_rows) if sp.issparse(X) else n_columns
    step = max(1, _BLOCK // per_row)
    for start in range(0, n_rows, step):
        # A copy (a view where X is dense float64): bool and float32 rows become numbers that add up exactly.
        yield start, X[start : start + step].astype(np.float64, copy=False)


def scores(X: Any, w: Floats) -> Floats:
    """X @ w in float64."""
    return np.concatenate([block @ w for _, block in blocks(X)])


def radii(X: Any) -> tuple[float, float]:
    """(max |x|_2, max |x|_inf) over the rows; no square overflows."""
    radius, peak = 0.0, 0.0
    for _, block in blocks(X):
        top = float(abs(block).max())
        if top > 0.0:
            scaled = block / top
            if sp.issparse(block):
                squares = scaled.multiply(scaled).sum(axis=1)
            else:
                squares = np.einsum("ij,ij->i", scaled, scaled)
            radius = max(radius, top * float(np.sqrt(squares.max())))
            peak = max(peak, top)
    return radius, peak

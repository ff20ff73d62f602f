"""Kernels whose compiled code goes from pair to pair: tiles gain nothing, and half of a symmetric block will do.

``fill`` gets the whole block. Where the two sides are the same points, it may compute each pair once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import numpy as np

from onlearn.kernels.base import ROWS, Kernel, Points, Room, Tile
from onlearn.kernels.tiles import in_threads

MULTIPLICATIONS = 16  # that a nanosecond stands for when we ask whether threads are worthwhile
DECAY = "choose a smaller decay"
TOO_LARGE = "{} is too large for float64 at row {} by row {}: " + DECAY


def share(work: Callable[[int, int], Any], rows: int, nanoseconds: float) -> None:
    """``work(start, stop)`` over all rows, in threads if it takes long enough."""
    in_threads(work, rows, int(MULTIPLICATIONS * nanoseconds))


class Pairwise(Kernel):
    """A kernel of strings or trees, in double precision."""

    def block(self, P: Points, Q: Points, out: np.ndarray | None = None, safe: bool = False) -> np.ndarray:
        """As of other kernels; whether values are too large shows when they are there, so ``safe`` saves nothing."""
        shape = len(P), len(Q)
        if out is None:
            out = np.empty(shape)
        elif out.shape != shape or out.dtype != np.float64 or (out.size and out.strides[1] != out.itemsize):
            raise ValueError(
                f"out must be float64 of shape {shape} with adjacent columns, not {out.dtype} of shape {out.shape}"
            )
        self.fill(Tile(P, Q, Counter(), Room(out.dtype)), out)
        for top in range(0, shape[0], ROWS):
            finite = np.isfinite(out[top : top + ROWS])
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                raise OverflowError(TOO_LARGE.format(self, top + row, column))
        return out

    def diag(self, X: Any) -> np.ndarray:
        values = self.diagonal(self.points(X))
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise OverflowError(TOO_LARGE.format(self, row, row))
        return values

    def remedy(self) -> str:
        return DECAY

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        return False  # in a composite kernel: looking at the values costs less than the diagonal


def listed(X: Any, who: str, what: str) -> list[Any]:
    """The examples one by one; never the characters of one string or the names of the columns of a table."""
    if len(getattr(X, "shape", ())) == 2 and X.shape[1] == 1:  # a table of one column is that column
        X = _column(X)
    if isinstance(X, (str, bytes, bytearray, Mapping, Set)) or not isinstance(X, Iterable):
        raise TypeError(f"{who}: X must be a list of {what}, not {shown(X)}")
    shape = getattr(X, "shape", (0,))
    if len(shape) != 1:
        raise TypeError(f"{who}: X must be a flat list of {what}, or one column of a table, but its shape is {shape}")
    return X.to_pylist() if hasattr(X, "to_pylist") else list(X)


def _column(table: Any) -> Any:
    """The first column, of pandas, PyArrow, polars or NumPy."""
    if hasattr(table, "iloc"):
        return table.iloc[:, 0]
    return table.column(0) if hasattr(table, "column_names") else table[:, 0]


def shown(value: Any) -> str:
    """A value in an error message."""
    if value is None:
        return "None"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"

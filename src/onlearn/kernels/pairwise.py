"""Kernels that compiled code computes pair by pair, such as those of strings and trees.

Tiles gain nothing here, so ``fill`` gets the whole block. Where both sides are the same points, it may compute each
pair once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import numpy as np

from onlearn.kernels.base import Kernel, Points
from onlearn.kernels.tiles import ROWS, Tile, TileArrays, check_out, in_threads

MULTIPLICATIONS = 16  # a nanosecond, to express a cost as ``in_threads`` expects it
DECAY = "choose a smaller decay"


def share(work: Callable[[int, int], Any], rows: int, nanoseconds: float) -> None:
    """Call ``work(start, stop)`` until all rows are done, in threads if it takes long enough."""
    in_threads(work, rows, int(MULTIPLICATIONS * nanoseconds))


class Pairwise(Kernel):
    """A kernel of strings or trees, in double precision."""

    def block(self, P: Points, Q: Points, out: np.ndarray | None = None, safe: bool = False) -> np.ndarray:
        """As for other kernels. The values are always checked, so ``safe`` saves nothing."""
        values = check_out(out, (len(P), len(Q)), np.dtype(np.float64))
        self.fill(Tile(P, Q, Counter(), TileArrays(values.dtype)), values)
        for top in range(0, len(P), ROWS):
            finite = np.isfinite(values[top : top + ROWS])
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                raise self.too_large(values.dtype, f"row {top + row} by row {column}")
        return values

    def diag(self, X: Any) -> np.ndarray:
        values = self.diagonal(self.points(X))
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise self.too_large(values.dtype, f"row {row} by row {row}")
        return values

    def remedy(self) -> str:
        return DECAY

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        return False  # in a composite kernel, checking the values takes less time than the diagonal


def listed(X: Any, who: str, what: str) -> list[Any]:
    """The examples as a list; one string is not a list of characters, and a table not one of column names."""
    if len(getattr(X, "shape", ())) == 2 and X.shape[1] == 1:  # a table of one column is that column
        X = _first_column(X)
    if isinstance(X, (str, bytes, bytearray, Mapping, Set)) or not isinstance(X, Iterable):
        raise TypeError(f"{who}: X must be a list of {what}, not {shown(X)}")
    shape = getattr(X, "shape", (0,))
    if len(shape) != 1:
        raise TypeError(f"{who}: X must be a flat list of {what}, or one column of a table, but its shape is {shape}")
    return X.to_pylist() if hasattr(X, "to_pylist") else list(X)


def _first_column(table: Any) -> Any:
    """The first column of a table of pandas, PyArrow, polars or NumPy."""
    if hasattr(table, "iloc"):
        return table.iloc[:, 0]
    return table.column(0) if hasattr(table, "column_names") else table[:, 0]


def shown(value: Any) -> str:
    """A value in an error message."""
    if value is None:
        return "None"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"

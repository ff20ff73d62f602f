"""The numbers that regression is to predict, as users pass them in: checked, and refused with the row that is wrong."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from sklearn.utils.validation import _ensure_no_complex_data, column_or_1d

from onlearn.inputs import refuse_times
from onlearn.labels import from_nullable, plain


def check_targets(y: Any) -> np.ndarray:
    """y as doubles, all finite."""
    y = column_or_1d(from_nullable(y, "number"), warn=True)
    refuse_times(y, "y")
    _ensure_no_complex_data(y)
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array([_refused(value, row) for row, value in enumerate(y)])
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        what = y[row] if y.dtype == object and y[row] is None else "NaN" if np.isnan(numbers[row]) else "infinity"
        raise ValueError(f"y contains {what} in row {row}: remove the row, or fill the value in")
    return numbers


def _refused(value: Any, row: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"y holds a whole number in row {row} that is too large for float64: scale it") from None
    except (TypeError, ValueError):
        raise ValueError(f"y holds {reprlib.repr(plain(value))} in row {row}, which is not a number") from None

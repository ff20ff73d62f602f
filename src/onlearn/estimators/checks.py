"""Targets and weights as users pass them in: checked, and refused with the row that is wrong."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _ensure_no_complex_data, column_or_1d

from onlearn.engine.inputs import refuse_times
from onlearn.engine.labels import balanced, from_nullable, plain

# ----------------------------------------------------------------------------------------------------
# The numbers that regression is to predict, as users pass them in: checked, and refused with the row that is wrong.


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


# ----------------------------------------------------------------------------------------------------
# How much examples count: the weights users give to examples and classes, checked and multiplied.


HEAVIEST = 1e100  # times the longest step, and the sum of very many such weights, are finite


def check_weights(sample_weight: Any, rows: int, *, sees_all: bool) -> np.ndarray:
    """One weight a row, as floats; a stretch of a stream may be all zeros, a whole data set may not."""
    if sample_weight is None:
        return np.ones(rows)
    weight = _as_numbers(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.shape != (rows,):
        raise ValueError(
            f"Sample weights must be 1D, one a row: sample_weight.shape == {weight.shape}, expected ({rows},)"
        )
    if not np.isfinite(weight).all():
        raise ValueError(f"sample_weight contains NaN or infinity in row {int(np.argmin(np.isfinite(weight)))}")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative; row {int(np.argmin(weight))} has {weight.min():g}")
    check_heaviest(weight, "sample_weight")
    if sees_all and not weight.any():
        raise ValueError("every sample_weight is zero, so there is nothing to learn from")
    return weight


def check_heaviest(weight: np.ndarray, what: str) -> None:
    """Refuse weights that would make steps infinite, saying where the first one is."""
    if not weight.max(initial=0.0) <= HEAVIEST:
        row = int(np.argmin(weight <= HEAVIEST))
        raise ValueError(
            f"{what} is {weight[row]:g} in row {row}, but must be at most {HEAVIEST:g}: "
            "divide all weights by the same number"
        )


def class_weights(given: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A weight a class: those given by label, or what balances the counts."""
    if isinstance(given, str):
        return balanced(counts)
    for label, weight in given.items():
        if _as_numbers(weight, f"class_weight of {label!r}").ndim:
            raise ValueError(f"class_weight of {label!r} must be one number, not {weight!r}")
    weights = compute_class_weight(given, classes=classes, y=classes)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"class weights must be numbers of at least 0, and not all 0: {given}")
    return weights


def multiplied(weight: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Weights of examples times those of their classes."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.where(weight > 0, weight * factors, 0.0)
    check_heaviest(product, "sample_weight times the weight of the class")
    return product


def _as_numbers(given: Any, what: str) -> np.ndarray:
    """Anything that holds real numbers, as floats."""
    given = np.asarray(given)
    if given.dtype.kind in "iubf":
        return given.astype(np.float64, copy=False)
    try:
        if given.dtype.kind != "O":  # of text NumPy would make numbers where it can, of complex ones half
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must hold numbers, not {given.reshape(-1)[:1].tolist()}") from None

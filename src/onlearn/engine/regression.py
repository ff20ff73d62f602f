"""What a regressor learns: numbers, checked; and whether it learned more than their mean."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlearn.engine.inputs import refuse_times
from onlearn.engine.labels import plain
from onlearn.engine.loops import HIGHEST_LOSS, LOSS

ALIKE = 1e-9  # a deviation of y, as a part of its size, that is as good as none


@dataclass(frozen=True)
class Regression:
    """Numbers to predict: a part of a learner, with the same methods as ``Classification`` where these have a use."""

    classifies = False

    def check(self, y: Any, rows: int) -> np.ndarray:
        """Numbers, one a row, as doubles that are all finite."""
        return check_numbers(np.asarray(y))

    def expected(self, named: Any, grows: bool, outputs: int | None) -> None:
        return None

    def of_all(self, y: np.ndarray, weight: np.ndarray) -> Regression:
        return self

    def of_stream(self, y: np.ndarray, weight: np.ndarray, classes: None, grows: bool) -> Regression:
        return self

    def numbered(self, counts: np.ndarray) -> Regression:
        return self

    def with_classes(self, count: int) -> Regression:
        return self

    def uncounted(self) -> Regression:
        return self

    def numbers(self, y: np.ndarray, weight: np.ndarray, grows: bool = True) -> np.ndarray:
        return y

    def targets(self, numbers: np.ndarray, output: str | None) -> np.ndarray:
        return numbers

    def weighted(self, numbers: np.ndarray, weight: np.ndarray, class_weight: Any) -> np.ndarray:
        return weight

    def pack(self, separable: bool | None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {}


def check_numbers(y: np.ndarray) -> np.ndarray:
    """y as doubles, all finite; what is wrong is refused with its row."""
    refuse_times(y, "y")
    if y.ndim != 1:
        raise ValueError(f"y must be a plain list of numbers, not an array of {y.ndim} dimensions")
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers")
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


def check_choices(choices: dict[str, Any], epochs: int | None, tol: float | None) -> None:
    """Refuse what has no meaning in regression."""
    rule, geometry, stabilizer = (choices[name] for name in ("rule", "geometry", "stabilizer"))
    if not rule.regression:
        raise ValueError(f"the rule {rule!r} is for classification; regression has 'lms' and 'epsilon', or your own")
    if geometry.undecided:
        raise ValueError(f"{geometry!r} is estimated from examples of two classes; for regression give the number")
    if stabilizer.name not in ("last", "averaged"):
        raise ValueError(
            f"stabilizer {stabilizer.name!r} counts mistakes, which regression has not: use 'last' or 'averaged'"
        )
    if epochs is None and tol is None:
        raise ValueError("epochs=None needs tol in regression, where no pass is free of error")


def worse_than_mean(training: Any, y: np.ndarray, weight: np.ndarray, predict: Any) -> str | None:
    """A sentence if the mean of y would have been a better prediction of the rows learned from.

    ``predict`` makes the predictions for these rows, if they are needed.
    """
    total, highest = weight.sum(), np.abs(y).max()
    if highest == 0.0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # all in units of the highest y, whose square may overflow
        relative = y / highest
        variance = weight @ (relative - weight @ relative / total) ** 2 / total
        if variance <= ALIKE**2:
            return None
        # An average of hypotheses is no worse than they were on average, so that most often no row need be scored.
        known = training.rule.name == "lms" and training.tally[LOSS] < HIGHEST_LOSS  # else some loss was cut short
        losses = training.record(np.zeros(len(training.tally)))["loss"], training.by_pass[-1]["loss"]
        if known and 2 * max(losses) / highest / highest < variance:
            return None
        error = weight @ (predict() / highest - relative) ** 2 / total
        ratio = error / variance
    if ratio <= 1.0:
        return None
    return (
        "the mean squared error on the rows learned from is more than the variance of y, "
        + (f"{ratio:#.4g} times as large" if np.isfinite(ratio) else "and beyond all numbers")
        + ": the steps do not suit the scale of X or y, so standardise them "
        "(y by TransformedTargetRegressor), give more epochs or another rate"
    )

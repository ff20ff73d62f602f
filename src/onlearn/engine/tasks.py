"""The two tasks of a learner, parts of it with the same methods: ``Classification`` and ``Regression``.

A task turns what users give as y into what the engine learns: labels into classes, or checked numbers.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onlearn.engine.inputs import (
    check_classes,
    check_labels,
    class_weights,
    encode,
    joined,
    multiplied,
    plain,
    refuse_times,
    running_balance,
    unique_labels,
)
from onlearn.engine.loops import HIGHEST_LOSS, LOSS, OUTPUTS
from onlearn.model_file import pack_labels, unpack_labels
from onlearn.model_schema import ANYTHING, TRUTH, Arrays, Record, check_array, check_facts, either


@dataclass(frozen=True)
class Classification:
    """The labels of the classes, and how often they came: a part of a learner, replaced when it changes."""

    classes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    counts: np.ndarray = field(default_factory=lambda: np.zeros(1))  # of all examples, then of each class

    classifies = True

    # ------------------------------------------------------------------ labels

    def check(self, y: Any, rows: int) -> np.ndarray:
        """Labels, one a row."""
        y = np.asarray(y)
        if y.ndim != 1:
            raise ValueError(f"y must be a plain list of labels, not an array of {y.ndim} dimensions")
        if y.dtype.kind not in "iubU":  # what could be anything but labels
            check_labels(y)
        return y

    def expected(self, named: Any, grows: bool, outputs: int | None) -> np.ndarray | None:
        """The classes that ``partial_fit`` is told, checked; ``outputs`` is None on its first call."""
        classes = None if named is None else check_classes(named)
        if grows and outputs == 1:
            raise ValueError(
                "learning began with two classes and without grow=True, so that there is no room for more: set grow "
                "back, or fit anew with grow=True"
            )
        if classes is None and outputs is None and not grows:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if outputs is not None and classes is not None and not np.array_equal(classes, np.sort(self.classes)):
            raise ValueError(f"`classes={classes}` is not the same as on the last call to partial_fit: {self.classes}")
        return classes

    def of_all(self, y: np.ndarray, weight: np.ndarray) -> Classification:
        """The classes of a whole data set; the labels of examples without weight do not count."""
        classes = unique_labels(y if weight.all() else y[weight > 0])
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs examples of two classes or more; y holds only one class, {plain(classes[0])!r}"
            )
        return Classification(classes, np.zeros(len(classes) + 1))

    def of_stream(self, y: np.ndarray, weight: np.ndarray, classes: np.ndarray | None, grows: bool) -> Classification:
        """The classes at the beginning of a stream: those named, or those of the first rows."""
        known = classes if classes is not None else unique_labels(y[weight > 0])
        if not known.size:
            raise ValueError("every sample_weight is zero, so that there is no class yet: pass classes")
        if len(known) < 2 and not grows:
            raise ValueError(
                f"a classifier needs two classes or more; classes holds only one class, {plain(known[0])!r}"
            )
        return Classification(known, np.zeros(len(known) + 1))

    def numbered(self, counts: np.ndarray) -> Classification:
        """Classes 0 to K - 1, which come so often."""
        return Classification(np.arange(len(counts)), np.concatenate([[counts.sum()], counts]).astype(np.float64))

    def with_labels(self, y: np.ndarray, weight: np.ndarray) -> tuple[Classification, np.ndarray]:
        """The classes with those that new labels make, where examples count; and y in the type of the classes."""
        counted = weight > 0
        classes, labels = joined(self.classes, y[counted])
        counts = np.concatenate([self.counts, np.zeros(1 + len(classes) - len(self.counts))])
        y = np.full(len(y), classes[0], dtype=classes.dtype)
        y[counted] = labels
        return Classification(classes, counts), y

    def with_classes(self, count: int) -> Classification:
        """Classes 0 to K - 1, some of which may be known already."""
        new = max(0, count - len(self.classes))
        if not new:
            return self
        return Classification(np.arange(count), np.concatenate([self.counts, np.zeros(new)]))

    # ------------------------------------------------------------------ outputs

    def outputs(self, rule: Any, multiclass: str, grows: bool) -> tuple[str | None, int]:
        """The kind of multiclass (None for two classes that stay two), and how many outputs there are."""
        if not rule.classification:
            raise ValueError(f"the rule {rule!r} is for regression; use it with OnlineRegressor")
        output = rule.multiclass if multiclass == "auto" else multiclass
        if not isinstance(output, str) or output not in OUTPUTS:
            raise ValueError(f"multiclass must be 'auto', {', '.join(map(repr, OUTPUTS))}, not {multiclass!r}")
        if output == "softmax" and rule.name != "logistic":
            raise ValueError(f"multiclass='softmax' is the logistic rule's; {rule!r} goes with 'true' or 'one-vs-all'")
        one = len(self.classes) == 2 and not grows
        return (None, 1) if one else (output, max(2, len(self.classes)))

    def signs(self, y: np.ndarray) -> np.ndarray:
        """-1 and +1 of the labels of two classes."""
        return np.where(y == self.classes[-1], 1.0, -1.0)

    # ------------------------------------------------------------------ targets

    def numbers(self, y: np.ndarray, weight: np.ndarray, grows: bool = True) -> np.ndarray:
        """Class indices; the label of an example of weight 0 is not looked at."""
        return encode(y if weight.all() else np.where(weight > 0, y, self.classes[0]), self.classes, grows)

    def targets(self, codes: np.ndarray, output: str | None) -> np.ndarray:
        """What ``Training.learn`` takes: class indices, or -1 and +1."""
        return codes if output is not None else 2.0 * codes - 1.0

    def counted(self, codes: np.ndarray, weight: np.ndarray) -> Classification:
        """The classes with the counts of a data set, over which all passes go: its rows count once."""
        counts = np.bincount(codes, weights=weight, minlength=len(self.classes))
        return replace(self, counts=np.concatenate([[counts.sum()], counts]))

    def uncounted(self) -> Classification:
        """The classes before any example came."""
        return replace(self, counts=np.zeros_like(self.counts))

    def met(self, counts: np.ndarray) -> Classification:
        """The classes with the counts of more examples, so many of each class."""
        return replace(self, counts=self.counts + np.concatenate([[counts.sum()], counts]))

    def weighted(self, codes: np.ndarray, weight: np.ndarray, class_weight: Any) -> np.ndarray:
        """Weights of examples times those of their classes."""
        if class_weight is None:
            return weight
        return multiplied(weight, class_weights(class_weight, self.classes, self.counts[1:])[codes])

    def balanced(self, codes: np.ndarray, weight: np.ndarray) -> tuple[Classification, np.ndarray]:
        """The "balanced" weights of the next rows of a stream, and the classes with these counted."""
        counts = self.counts.copy()
        return replace(self, counts=counts), multiplied(weight, running_balance(codes, weight, counts))

    # ------------------------------------------------------------------ answers

    def columns(self, values: np.ndarray) -> np.ndarray:
        """A learner that may grow keeps two columns for two classes; users expect their difference."""
        two = values.shape[1] == 2 and len(self.classes) == 2
        return values[:, 1:] - values[:, :1] if two else values[:, : max(1, len(self.classes))]

    def shaped(self, scores: np.ndarray) -> np.ndarray:
        """One score a row for two classes (positive: the second), one a class for more."""
        scores = self.columns(scores)
        return scores[:, 0] if scores.shape[1] == 1 and len(self.classes) == 2 else scores

    def chosen(self, scores: np.ndarray) -> np.ndarray:
        """The class of each row by its shaped scores; on a tie the first of them."""
        return self.classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)]

    def named(self, best: np.ndarray) -> np.ndarray:
        """The classes of these numbers, in place where that goes: fresh memory takes longer than the rest."""
        return np.take(self.classes, best, out=best if best.dtype == self.classes.dtype else None, mode="clip")

    # ------------------------------------------------------------------ the model file

    def pack(self, separable: bool | None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        spelled, labels = pack_labels(self.classes)
        arrays = {"counts": self.counts, **({} if labels is None else {"classes": labels})}
        return {"classes": spelled, "separable": separable}, arrays

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: Arrays, training: Any) -> Classification:
        check_facts(facts, CLASSES)
        classes = unpack_labels(facts["classes"], arrays.get("classes"))
        count, outputs, counts = len(classes), training.outputs, arrays["counts"]
        # a learner that has grown has room for two classes when it has met one
        fits = count == 2 if training.output is None else max(2, count) == outputs
        if not fits:
            raise ValueError(f"{count} classes do not go with {outputs} outputs")
        check_array("counts", counts, "float64", (count + 1,), low=0)
        return cls(classes, counts)


CLASSES = Record(classes=ANYTHING, separable=either(None, TRUTH))  # ``unpack_labels`` checks the classes


# ----------------------------------------------------------------------------------------------------
# Regression: numbers, and whether more than their mean was learned.


ALIKE = 1e-9  # a deviation of y, as a part of its size, that is as good as none


@dataclass(frozen=True)
class Regression:
    """Numbers to predict; of the methods of ``Classification`` it has those that have a use."""

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

    def met(self, counts: np.ndarray) -> Regression:
        return self

    def numbers(self, y: np.ndarray, weight: np.ndarray, grows: bool = True) -> np.ndarray:
        return y

    def targets(self, numbers: np.ndarray, output: str | None) -> np.ndarray:
        return numbers

    def weighted(self, numbers: np.ndarray, weight: np.ndarray, class_weight: Any) -> np.ndarray:
        return weight

    def columns(self, values: np.ndarray) -> np.ndarray:
        return values

    def shaped(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 0]

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


def check_regression_choices(choices: dict[str, Any], epochs: int | None, tol: float | None) -> None:
    """Refuse what has no meaning in regression."""
    rule, geometry, stabilizer = (choices[name] for name in ("rule", "geometry", "stabilizer"))
    if not rule.regression:
        raise ValueError(
            f"the rule {rule!r} is for classification; regression has "
            "'lms', 'nlms', 'epsilon' and 'pa_epsilon', or your own"
        )
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
        known = (
            training.rule.name in ("lms", "nlms") and training.tally[LOSS] < HIGHEST_LOSS
        )  # else some loss was cut short
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

"""What happens on a drift: a detector watches the progressive loss, and a policy acts on the model."""

from __future__ import annotations

import math
from typing import Any, Protocol

from onlearn.drift import DETECTORS, Detector

WARNING_ROWS = 1000  # scored rows after which a warning that was not confirmed has passed


class DriftWarning(UserWarning):
    """The mean loss of a stream has risen."""


class Policy(Protocol):
    """What is done on a drift."""

    warns: bool  # whether the caller is warned, or learns of it from the records
    warnings: list[int]  # rows at which a drift was suspected

    def watch(self, loss: float, row: int) -> None:
        """A row was scored."""

    def learn(self, *example: Any) -> None:
        """The model learns from an example."""

    def confirm(self) -> None:
        """There is a drift."""


class Warn:
    """The model stays as it is, and the caller is warned."""

    warns = True

    def __init__(self, model: Any, detector: Detector) -> None:
        self.warnings: list[int] = []

    def watch(self, loss: float, row: int) -> None:
        """Nothing to do."""

    def learn(self, *example: Any) -> None:
        """Nothing to do."""

    def confirm(self) -> None:
        """Nothing to do: the caller is warned."""


class Reset:
    """The model starts anew."""

    warns = False

    def __init__(self, model: Any, detector: Detector) -> None:
        self.model = model
        self.warnings: list[int] = []

    def watch(self, loss: float, row: int) -> None:
        """Nothing to do."""

    def learn(self, *example: Any) -> None:
        """Nothing to do."""

    def confirm(self) -> None:
        """Forget what was learned."""
        self.model.become(self.model.renewed())


class Replace:
    """A challenger that learns from the rows since a warning takes the model's place.

    The warning comes from a more sensitive detector. If the drift is not confirmed within ``WARNING_ROWS`` scored rows,
    the challenger is dropped. A drift without a warning resets the model.
    """

    warns = False

    def __init__(self, model: Any, detector: Detector) -> None:
        self.model, self.sensitive = model, detector.more_sensitive()
        self.warnings: list[int] = []
        self.challenger: Any = None
        self._since = 0  # rows scored since the warning

    def watch(self, loss: float, row: int) -> None:
        """Start a challenger at a warning, and drop it when the warning has passed."""
        self._since += 1
        if self.challenger is not None and self._since > WARNING_ROWS:
            self.challenger = None
        if self.sensitive.update(loss) and self.challenger is None:
            self.challenger, self._since = self.model.renewed(), 0
            self.warnings.append(row)

    def learn(self, *example: Any) -> None:
        """The challenger learns what the model learns."""
        if self.challenger is not None:
            self.challenger.learn_one(*example)

    def confirm(self) -> None:
        """The challenger becomes the model."""
        self.model.become(self.model.renewed() if self.challenger is None else self.challenger)
        self.challenger = None
        self.sensitive.reset()


POLICIES: dict[str, Any] = {"warn": Warn, "reset": Reset, "replace": Replace}


class DriftWatch:
    """A detector on the progressive loss of a stream, and the policy for when it detects a drift."""

    def __init__(self, model: Any, detector: Detector, on_drift: str) -> None:
        if on_drift != "warn" and not (hasattr(model, "renewed") and hasattr(model, "become")):
            raise TypeError(
                f"on_drift={on_drift!r} needs a model with the methods renewed and become, "
                f"which {type(model).__name__} has not: use 'warn'"
            )
        self.detector = detector
        self.policy: Policy = POLICIES[on_drift](model, detector)
        self.drifts: list[int] = []

    def observe(self, loss: float, row: int) -> bool:
        """Take in the loss of a scored row, from 0 to 1, before it is learned from; whether there is a drift."""
        self.policy.watch(loss, row)
        drifted = self.detector.update(loss)
        if drifted:
            self.drifts.append(row)
            self.policy.confirm()
            self.detector.reset()  # one change, one alarm
        return drifted


def parse_detector(drift: Any) -> Detector:
    """A detector from its spelling; an object that is one stays the same object."""
    if isinstance(drift, (str, type)):
        found: Detector = DETECTORS.get(drift)
        return found
    if not isinstance(drift, Detector):
        raise TypeError(f"drift must be a detector, its spelling such as 'adwin(0.002)', or None, not {drift!r}")
    return drift


class ClassificationLoss:
    """1 for a wrong label, 0 for a right one."""

    def __call__(self, y: Any, predicted: Any) -> float:
        return float(predicted != y)


class RegressionLoss:
    """a / (a + s), where a is the absolute error and s the standard deviation of the labels so far.

    Monotone in a and within 0 and 1, as ADWIN needs it; 1/2 for an error as large as the deviation. The deviation
    settles as labels come, whatever their unit.
    """

    def __init__(self) -> None:
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def __call__(self, y: float, predicted: float) -> float:
        y = float(y)
        self.count += 1
        off = y - self.mean
        self.mean += off / self.count
        self.squares += off * (y - self.mean)
        a, s = abs(float(predicted) - y), math.sqrt(self.squares / self.count)
        return a / (a + s) if math.isfinite(a) and a > 0.0 else float(a != 0.0)

"""Metrics of a stream: one number a row, and three means of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from onlearn.engine.spec import did_you_mean

LEAST = 1e-15  # what a probability counts as in the logarithmic loss, if it is lower


class Metric(NamedTuple):
    """A number for each row: a function of its label and what was predicted, a label or probabilities by label."""

    name: str
    value: Callable[[Any, Any], float]
    task: str | None = None  # None: either
    of_probabilities: bool = False


def accuracy(y: Any, predicted: Any) -> float:
    """1 for a right label, 0 for a wrong one."""
    return float(predicted == y)


def error(y: Any, predicted: Any) -> float:
    """1 for a wrong label, 0 for a right one."""
    return float(predicted != y)


def log_loss(y: Any, probabilities: Mapping[Any, float]) -> float:
    """-ln of the probability of the label; that of a label never met is taken as 1e-15."""
    return -math.log(max(LEAST, probabilities.get(y, 0.0)))


def brier(y: Any, probabilities: Mapping[Any, float]) -> float:
    """The squared distance of the probabilities from 1 for the label and 0 for the others: from 0 to 2."""
    others = math.fsum(p * p for label, p in probabilities.items() if label != y)
    return (1.0 - probabilities.get(y, 0.0)) ** 2 + others


def absolute_error(y: float, predicted: float) -> float:
    """|prediction - y|"""
    return abs(float(predicted) - float(y))


def squared_error(y: float, predicted: float) -> float:
    """(prediction - y)^2"""
    return (float(predicted) - float(y)) ** 2


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", accuracy, "classify"),
        Metric("error", error, "classify"),
        Metric("log_loss", log_loss, "classify", of_probabilities=True),
        Metric("brier", brier, "classify", of_probabilities=True),
        Metric("absolute_error", absolute_error, "regress"),
        Metric("squared_error", squared_error, "regress"),
    )
}
USUAL = {"classify": "accuracy", "regress": "absolute_error"}


def parse_metrics(metrics: Any, task: str) -> list[Metric]:
    """Metrics from names, functions of (y, prediction), and pairs of a name and a function."""
    if metrics is None:
        metrics = [USUAL[task]]
    elif isinstance(metrics, str) or callable(metrics) or _is_pair(metrics):
        metrics = [metrics]
    found = [_parse_metric(one, task) for one in metrics]
    names = [metric.name for metric in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"metrics has {twice!r} twice: give functions names of their own, as (name, function)")
    return found


def _parse_metric(one: Any, task: str) -> Metric:
    if isinstance(one, str):
        if one not in METRICS:
            raise ValueError(f"there is no metric {one!r}{did_you_mean(one, list(METRICS))}")
        metric = METRICS[one]
        if metric.task != task:
            usual = [name for name, other in METRICS.items() if other.task == task]
            what = "classification" if metric.task == "classify" else "regression"
            raise ValueError(f"the metric {one!r} is for {what}; this model has {', '.join(usual)}")
        return metric
    if callable(one):
        return Metric(getattr(one, "__name__", type(one).__name__), one)
    if _is_pair(one):
        if one[0] in METRICS:
            raise ValueError(
                f"{one[0]!r} is a metric already: give the function another name, or make a list of the two"
            )
        return Metric(*one)
    raise TypeError(f"a metric is a name, a function of (y, prediction), or (name, function), not {one!r}")


def _is_pair(one: Any) -> bool:
    """Whether it is a name and a function."""
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and callable(one[1])


class Means:
    """The mean of each metric over all rows, over the latest ``window`` rows, and one that fades.

    In the fading mean, (sum of w f^age v) / (sum of w f^age), a row counts f = ``fading`` times as much with every row
    that comes after it. Rows count by their weight w in all three.

    >>> means = Means(["error"], window=2, fading=0.5)
    >>> for value in (1.0, 0.0, 0.0):
    ...     means.add([value], 1.0)
    >>> means.mean(), means.windowed(), means.faded()
    ({'error': 0.3333333333333333}, {'error': 0.0}, {'error': 0.14285714285714285})
    """

    def __init__(self, names: Sequence[str], window: int, fading: float) -> None:
        self.names: list[str] = list(names)
        self.fading = fading
        columns = len(self.names) + 1  # the first is that of the weights
        self._sums = [0.0] * columns
        self._fading = [0.0] * columns
        self._latest: deque[tuple[float, ...]] = deque(maxlen=window)

    def add(self, values: Sequence[float], weight: float) -> None:
        """Take in the values of the metrics for one row."""
        row = (weight, *[weight * value for value in values])
        fading, sums, faded = self.fading, self._sums, self._fading
        for column, value in enumerate(row):
            sums[column] += value
            faded[column] = fading * faded[column] + value
        self._latest.append(row)

    def mean(self) -> dict[str, float]:
        """Over all rows."""
        return self._means(self._sums)

    def windowed(self) -> dict[str, float]:
        """Over the latest rows. Summed anew, so that no error adds up over a stream."""
        return self._means([math.fsum(column) for column in zip(*self._latest)] or [0.0])

    def faded(self) -> dict[str, float]:
        """With less and less weight for older rows."""
        return self._means(self._fading)

    def _means(self, sums: Sequence[float]) -> dict[str, float]:
        """Sums of weighted values over that of the weights; NaN if no row counts."""
        if sums[0] <= 0.0:
            return dict.fromkeys(self.names, math.nan)
        return {name: total / sums[0] for name, total in zip(self.names, sums[1:])}

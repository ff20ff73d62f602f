"""Decision thresholds: from which probability on a label is predicted, and the threshold that suits a criterion best.

With two labels, ``positive`` one of them, the answer is the positive label where P(positive | x) >= threshold, and the
other one elsewhere. A false positive that costs a and a missed positive that costs b make a / (a + b) the best
threshold for probabilities that are right (Elkan 2001); where they are not, or where the criterion is no sum over rows,
such as F1, the best threshold is searched for. With three labels or more the threshold is one of rejection (Chow 1970):
the best label where its probability is at least the threshold, and no label elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.calibration import fit_curve
from onlearn.engine.inputs import positions
from onlearn.engine.multilabel import MultilabelLearner
from onlearn.engine.spec import did_you_mean

NO_LABEL = -1  # the class of a row whose best label is not probable enough


class Threshold(NamedTuple):
    """The least probability of the class ``positive``; None with several classes: the least of whichever is best."""

    probability: float
    positive: int | None = None

    def decide(self, proba: np.ndarray) -> np.ndarray:
        """The class of each row by its probabilities; ``NO_LABEL`` where none is probable enough.

        >>> Threshold(0.2, positive=1).decide(np.array([[0.7, 0.3], [0.9, 0.1]])).tolist()
        [1, 0]
        >>> Threshold(0.6).decide(np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3]])).tolist()
        [0, -1]
        """
        if self.positive is not None:
            return np.where(proba[:, self.positive] >= self.probability, self.positive, 1 - self.positive)
        best = np.argmax(proba, axis=1)
        return np.where(proba[np.arange(len(best)), best] >= self.probability, best, NO_LABEL)

    def facts(self, labels: Sequence[str]) -> dict[str, Any]:
        """What a model file and a report say of it."""
        return {
            "probability": self.probability,
            "positive": None if self.positive is None else labels[self.positive],
        }


def threshold_of(probability: Any, positive: Any, labels: Sequence[str] | None, several: bool = False) -> Threshold:
    """A threshold for a model of these labels, checked; by default the second of two labels is the positive one.

    If a row may have ``several`` of them, the threshold is that of each.

    >>> threshold_of(0.3, None, ["ham", "spam"])
    Threshold(probability=0.3, positive=1)
    """
    if labels is None:
        raise ValueError("a threshold is for labels, but a regression model predicts numbers")
    if several and positive is not None:
        raise ValueError("a positive label is for two labels, of which a row has one; here it may have several")
    place = None if several else positive_place(positive, labels)
    try:
        number = float(probability)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"a threshold is a probability from 0 to 1, not {probability!r}")
    return Threshold(number, place)


def positive_place(positive: Any, labels: Sequence[str]) -> int | None:
    """Which of two labels is the positive one; None for several labels, where none can be named."""
    if len(labels) != 2:
        if positive is not None:
            raise ValueError(f"a positive label is for two labels, and the model has {len(labels)}")
        return None
    if positive is None:
        return 1
    place = positions([str(positive)], labels, dots=False)[0]
    if place < 0:
        hint = did_you_mean(str(positive), list(labels))
        raise ValueError(f"there is no label {str(positive)!r} to be the positive one{hint}")
    return place


# ---------------------------------------------------------------------- the best threshold


class Criterion(NamedTuple):
    """What a threshold is to make best: "f1", "balanced" (accuracy) or "cost", of false and of missed positives."""

    name: str
    false_positive: float = 1.0
    false_negative: float = 1.0

    def __str__(self) -> str:
        return f"cost({self.false_positive:g},{self.false_negative:g})" if self.name == "cost" else self.name

    def gain(self, hits: np.ndarray, false: np.ndarray, positive: int, negative: int) -> np.ndarray:
        """What to make large, for counts of right and of false positives among so many positive and negative rows."""
        if self.name == "f1":
            return 2.0 * hits / (hits + false + positive)
        if self.name == "balanced":
            return (hits / positive + 1.0 - false / negative) / 2.0
        return -(self.false_positive * false + self.false_negative * (positive - hits)) / (positive + negative)


COST = re.compile(r"cost\(\s*([^,\s]+)\s*,\s*([^,\s]+)\s*\)")


def parse_criterion(text: str) -> Criterion:
    """``f1``, ``balanced`` or ``cost(1,5)``: a missed positive costs five times as much as a false one.

    >>> parse_criterion("cost(1, 5)")
    Criterion(name='cost', false_positive=1.0, false_negative=5.0)
    """
    text = text.strip().lower()
    if text in ("f1", "balanced"):
        return Criterion(text)
    found = COST.fullmatch(text)
    try:
        costs = [float(one) for one in found.groups()] if found else []
    except ValueError:
        costs = []
    if not (costs and all(0.0 <= one < np.inf for one in costs) and sum(costs) > 0.0):
        raise ValueError(f"{text!r} is not f1, balanced or cost(FP,FN), such as cost(1,5), which a threshold can suit")
    return Criterion("cost", *costs)


KEPT = 4_000_000  # probabilities that are kept as they are
GRID = 1 << 20  # more of them are counted in so many equally wide bins


class ThresholdSearch:
    """Finds the threshold that is best on rows whose labels are known; the rows may come in batches.

    >>> search = ThresholdSearch()
    >>> search.add(np.array([False, True, False, True]), np.array([0.1, 0.3, 0.2, 0.9]))
    >>> search.best(Criterion("f1"))
    0.25
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.most: int = kept
        self.count: int = 0
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.bins: np.ndarray | None = None  # negative and positive rows of each bin

    def add(self, positive: np.ndarray, probability: np.ndarray) -> None:
        """Add rows: whether they are positive, and the probability that they are."""
        part = np.asarray(positive, dtype=bool), np.array(probability, dtype=np.float64)
        self.count += len(part[0])
        if self.bins is None and self.count <= self.most:
            self.parts.append(part)
            return
        self._begin_bins()
        self._count(*part)

    def include(self, other: ThresholdSearch) -> None:
        """Add the rows of another search."""
        for part in other.parts:
            self.add(*part)
        if other.bins is not None:
            self._begin_bins()
            self.bins += other.bins
            self.count += other.count

    def _begin_bins(self) -> None:
        """Count probabilities in bins from now on, those that are kept first."""
        if self.bins is None:
            self.bins = np.zeros((2, GRID), dtype=np.int64)
            for part in self.parts:
                self._count(*part)
            self.parts = []

    def _count(self, positive: np.ndarray, probability: np.ndarray) -> None:
        assert self.bins is not None
        places = np.clip((probability * GRID).astype(np.int64), 0, GRID - 1)
        for side, mine in enumerate((~positive, positive)):
            self.bins[side] += np.bincount(places[mine], minlength=GRID)

    def _steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The thresholds that tell rows apart, from 0 upward, and the positive and negative rows at or above each."""
        if self.bins is not None:
            there = np.flatnonzero(self.bins.sum(axis=0))
            negative, positive = self.bins[:, there]
            between = there / GRID  # the lower edges of bins
        else:
            gold = np.concatenate([part[0] for part in self.parts] or [np.zeros(0, bool)])
            values, place = np.unique(
                np.concatenate([part[1] for part in self.parts] or [np.zeros(0)]), return_inverse=True
            )
            positive = np.bincount(place[gold], minlength=len(values))
            negative = np.bincount(place[~gold], minlength=len(values))
            between = np.concatenate([values[:1], (values[:-1] + values[1:]) / 2])
            between = np.where(
                between <= np.concatenate([[-1.0], values[:-1]]), values, between
            )  # neighbouring numbers
        between[:1] = 0.0  # all rows are positive
        hits, false = (np.cumsum(one[::-1])[::-1] for one in (positive, negative))
        last = (values[-1:] if self.bins is None else (there[-1:] + 1) / GRID) + 0.0
        if len(last) and last[0] < 1.0:  # and above all rows, where none is positive
            above = (last + 1.0) / 2
            return np.append(between, above), np.append(hits, 0), np.append(false, 0)
        return between, hits, false

    def best(self, criterion: Criterion) -> float:
        """The threshold that is best by the criterion; among equals the one next to 1/2."""
        thresholds, hits, false = self._steps()
        positive, negative = (int(one[0]) if len(one) else 0 for one in (hits, false))
        if not positive or not negative:
            which = "positive" if not positive else "negative"
            raise ValueError(f"no threshold can be chosen: none of the {self.count:,} rows is {which}")
        gain = criterion.gain(hits, false, positive, negative)
        equals = np.flatnonzero(gain >= gain.max() - 1e-12)
        return float(thresholds[equals[np.argmin(np.abs(thresholds[equals] - 0.5))]])

    def figures(self, threshold: float) -> dict[str, float]:
        """Precision, recall, F1, accuracy and balanced accuracy of the positive label at a threshold."""
        _, above, false_above = self._steps()
        total, others = int(above[0]), int(false_above[0])
        if self.bins is not None:
            place = min(int(np.ceil(threshold * GRID)), GRID)
            negative, positive = self.bins[:, place:].sum(axis=1).tolist()
        else:
            positive = sum(int(np.count_nonzero(gold & (p >= threshold))) for gold, p in self.parts)
            negative = sum(int(np.count_nonzero(~gold & (p >= threshold))) for gold, p in self.parts)
        return {
            "precision": positive / max(1, positive + negative),
            "recall": positive / max(1, total),
            "f1": 2 * positive / max(1, positive + negative + total),
            "accuracy": (positive + others - negative) / max(1, total + others),
            "balanced_accuracy": (positive / max(1, total) + 1 - negative / max(1, others)) / 2,
        }


def figures_at(threshold: Threshold, labels: Sequence[str], report: dict[str, Any]) -> dict[str, Any]:
    """What an evaluation's report says of a threshold that its predictions were made with.

    For two labels precision, recall and F1 of the positive one; for several, the share of the rows that have an answer,
    and the accuracy among those.
    """
    made = threshold.facts(labels)
    if "micro_f1" in report:  # several labels a row
        names = {"precision": "micro_precision", "recall": "micro_recall", "f1": "micro_f1"}
        return {**made, **{name: report[key] for name, key in names.items()}}
    if threshold.positive is not None:
        mine = report["per_class"][labels[threshold.positive]]
        return {**made, **{name: mine[name] for name in ("precision", "recall", "f1")}}
    answered = report["n"] - report.get("rejected", 0)
    right = report["accuracy"] * report["n"] if report["n"] else 0.0
    return {
        **made,
        "answered": answered / report["n"] if report["n"] else None,
        "accuracy": min(1.0, right / answered) if answered else None,
    }


class Unlearned(NamedTuple):
    """Probabilities of rows that were not learned from before they were scored, their classes, and which they are."""

    probabilities: np.ndarray
    codes: np.ndarray
    rows: str


def unlearned_rows(learner: Any) -> Unlearned | None:
    """The rows to choose a threshold by that a linear learner keeps the scores of; None for other learners.

    They are those held out or given for calibration, if some of them are of each class. Else they are those kept back
    in several passes, or a part of the latter half of the first pass. For several labels a row they are those of
    every label: 0 is without it, and 1 with it.
    """
    if isinstance(learner, MultilabelLearner) and learner.training is not None:
        parts = [one for member in learner.training.members if (one := unlearned_rows(member)) is not None]
        if not parts:
            return None
        codes = np.concatenate([part.codes for part in parts])
        return Unlearned(np.concatenate([part.probabilities for part in parts]), codes, parts[0].rows)
    found = learner.scores_before_learning()
    if found is None:
        return None
    held = learner.held_out
    if held is not None and len(np.unique(held.codes)) > 1 and held.scores.shape[1] == 1:
        curve = fit_curve(learner.choices["calibration"], learner.training, learner.task.columns, held)
        rows = "rows of calibrate=, which are not learned from" if held.given else "rows held out for calibration"
        return Unlearned(curve.probabilities(held.scores[:, 0]), held.codes, rows)
    kept = "rows kept back and scored by the last hypothesis, before it learned from them"
    first = "rows of the first pass, each before it was learned from"
    return Unlearned(found[2], found[0], kept if learner.training.audits_last else first)

"""Predictions of a batch, and how good they are: figures that add up over batches.

Memory does not grow with the number of rows (but see ``Ranking``). All rows count the same, whatever their weight. A
row whose label the model does not know counts as an error, and is left out of what is computed from probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn.data import BadRows, Batch, DataError
from onlearn.engine.inputs import positions
from onlearn.models.model import Model, predicted_codes
from onlearn.models.multilabel import MULTILABEL, truth_of
from onlearn.models.reliability import Reliability
from onlearn.models.threshold import ThresholdSearch, figures_at


class Predictions(NamedTuple):
    """``answers`` are positions in the labels of the model (-1: no label); numbers in regression.

    If rows may have several labels, they are truth values, one column a label. The rest is None unless asked for.

    ``scores`` has one column for two classes (positive: the second label), else one for each.
    """

    answers: np.ndarray
    scores: np.ndarray | None = None
    proba: np.ndarray | None = None


class Observer(Protocol):
    """Sees what is evaluated: batches, the classes of their rows (-1: none, or unknown) or numbers, and predictions.

    If rows may have several labels, their classes are truth values, one column a label.
    """

    def observe(self, batch: Batch, gold: np.ndarray, made: Predictions) -> None: ...


def usable_rows(model: Model, batch: Batch, bad: BadRows) -> Batch:
    """The rows of a batch that the model can take; those that its kernel refuses are added to the bad ones."""
    if model.kernel is None:
        return batch
    from onlearn.models.unfit_rows import usable  # few models have a kernel, and kernels take long to import

    return usable(model, batch, bad)


@contextmanager
def unusable_as_data_error(names: str) -> Iterator[None]:
    """Errors about rows that a model cannot take become a ``DataError`` that names their files."""
    try:
        yield
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"{names} cannot be used with this model: {error}") from error


def predictions(model: Model, rows: Any, *, scores: bool = False, proba: bool = False) -> Predictions:
    """Predict a batch, or rows of any kind that the model takes."""
    try:
        return _predictions(model, rows, scores, proba)
    except ValueError as error:
        # kernels.ExampleError is not imported: few models have a kernel, and kernels take long to import
        row, why = getattr(error, "row", None), getattr(error, "why", "")
        if row is None or not isinstance(rows, Batch):
            raise
        raise DataError(f"{rows.file}, line {rows.lines[row]}: {why}") from None


def _predictions(model: Model, rows: Any, scores: bool, proba: bool) -> Predictions:
    learner, X = model.learner_for(model.numbered(rows))
    if model.labels is None:
        return Predictions(model.numbers(learner, X))
    if model.task == MULTILABEL:
        likely = np.asarray(learner.predict_proba(X)) if proba else None
        found = np.asarray(learner.decision_function(X)) if scores else None
        return Predictions(truth_of(model, learner, X, likely), found, likely)
    if model.threshold is not None:
        probabilities = np.asarray(learner.predict_proba(X))
        scored = np.asarray(learner.decision_function(X)).reshape(len(probabilities), -1) if scores else None
        return Predictions(model.threshold.decide(probabilities), scored, probabilities if proba else None)
    if not (scores or proba):
        return Predictions(predicted_codes(learner, X))
    made = np.asarray(learner.decision_function(X))
    # As ``predict`` does: the second class if the score is above zero; of several, the first of the best.
    codes = (made > 0).astype(np.int64) if made.ndim == 1 else np.argmax(made, axis=1)
    return Predictions(codes, made.reshape(len(codes), -1), np.asarray(learner.predict_proba(X)) if proba else None)


MOST = 4_000_000  # scores that are kept
BITS = 20  # of the 32 of a single-precision number: a bin is 1 part in 2,000 wide


class Ranking:
    """The area under the ROC curve: how often an example of the second class scores above one of the first.

    Up to ``most`` scores are kept, four bytes each, and the area is exact. More are counted in narrow bins, and scores
    in the same bin count as equal.

    >>> ranking = Ranking()
    >>> ranking.add(np.array([False, True, True]), np.array([0.1, 0.4, 0.05]))
    >>> ranking.area()
    0.5
    """

    def __init__(self, most: int = MOST) -> None:
        self.most: int = most
        self.kept: int = 0
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.counts: np.ndarray | None = None  # negative and positive examples of each bin

    @property
    def rough(self) -> bool:
        """Whether the area is an estimate."""
        return self.counts is not None

    def add(self, positive: np.ndarray, scores: np.ndarray) -> None:
        """Add rows: whether they are of the second class, and their scores."""
        scores = scores.astype(np.float32)  # a copy: the caller may reuse its array
        if self.counts is None and self.kept + len(scores) <= self.most:
            self.kept += len(scores)
            self.parts.append((positive.astype(bool), scores))
            return
        self._begin_counts()
        self._count(positive.astype(bool), scores)

    def include(self, other: Ranking) -> None:
        """Add the rows of another ranking."""
        for part in other.parts:
            self.add(*part)
        if other.counts is not None:
            self._begin_counts()
            self.counts += other.counts

    def _begin_counts(self) -> None:
        """Count scores from now on, those that are kept first."""
        if self.counts is None:
            self.counts = np.zeros((2, 1 << BITS), dtype=np.int64)
            for part in self.parts:
                self._count(*part)
            self.parts = []

    def _count(self, positive: np.ndarray, scores: np.ndarray) -> None:
        assert self.counts is not None
        bins = in_order(scores) >> np.uint32(32 - BITS)
        for side, mine in enumerate((~positive, positive)):
            self.counts[side] += np.bincount(bins[mine], minlength=1 << BITS)

    def area(self) -> float | None:
        """The area, or None if there are no two classes."""
        if self.counts is not None:
            negative, positive = self.counts
        elif self.parts:
            is_positive = np.concatenate([part[0] for part in self.parts])
            scores = np.concatenate([part[1] for part in self.parts])
            order = np.argsort(scores, kind="stable")
            scores, is_positive = scores[order], is_positive[order]
            starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
            positive = np.add.reduceat(is_positive.astype(np.int64), starts)
            negative = np.diff(np.append(starts, len(scores))) - positive
        else:
            return None
        below = np.cumsum(negative) - negative
        pairs = int(negative.sum()) * int(positive.sum())
        # Twice the pairs in order, in whole numbers: two for each negative below, one for each that ties.
        return float((positive * (2.0 * below + negative)).sum() / (2.0 * pairs)) if pairs else None


def in_order(scores: np.ndarray) -> np.ndarray:
    """Integers in the same order as single-precision numbers: their bits, inverted for negative numbers."""
    bits = (scores + np.float32(0.0)).view(np.uint32)  # -0.0 becomes 0.0
    return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))


BINS = 15  # of the top probability, equally wide, for the calibration error
SQUARE = 256  # classes up to which the confusion matrix is kept
TINY = float(np.finfo(np.float64).eps)  # the least distance of probabilities from 0 and 1, so that no loss is infinite


class Evaluation:
    """The evaluation of a classifier with these labels.

    >>> evaluation = Evaluation(["ham", "spam"])
    >>> evaluation.add(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    >>> evaluation.report()["accuracy"], evaluation.report()["per_class"]["ham"]["recall"]
    (0.75, 0.5)
    """

    def __init__(self, labels: list[str]) -> None:
        count = len(labels)
        self.labels: list[str] = list(labels)
        self.n: int = 0
        self.unlabelled: int = 0
        self.unknown: dict[str, int] = {}
        self.taken_for: dict[str, str] = {}
        self._names: list[str] | None = None  # of the present reader; the list grows from batch to batch
        self._classes: list[int] = []
        self.right: np.ndarray = np.zeros(count, dtype=np.int64)
        self.support: np.ndarray = np.zeros(count, dtype=np.int64)
        self.predicted: np.ndarray = np.zeros(count, dtype=np.int64)
        self.rejected: int = 0  # rows for which no label was predicted
        square = np.zeros((count, count), dtype=np.int64) if count <= SQUARE else None
        self.confusion: np.ndarray | None = square
        self.rated: int = 0  # rows whose probabilities count
        self.loss: float = 0.0
        self.bins: np.ndarray = np.zeros((3, BINS))  # rows, those predicted right, sum of the top probability
        self.ranking: Ranking | None = Ranking() if count == 2 else None
        self.search: tuple[int, ThresholdSearch] | None = None  # the positive class, and what looks for its threshold
        self.reliability: Reliability = Reliability(count)
        self.uncalibrated: Reliability = Reliability(count)  # of scores taken for log-odds as they are

    def add(
        self,
        gold: np.ndarray,
        predicted: np.ndarray,
        proba: np.ndarray | None = None,
        scores: np.ndarray | None = None,
    ) -> None:
        """Add rows: their classes (-1: unknown to the model), the predicted ones, and probabilities if there are any.

        A row for which no label is predicted (-1) is an error.
        ``scores`` rank the rows of two classes, which probabilities rounded to 1 could not.
        """
        count = len(self.labels)
        known = gold >= 0
        self.n += len(gold)
        self.predicted += np.bincount(predicted[predicted >= 0], minlength=count)
        self.rejected += int(np.count_nonzero(predicted < 0))
        if not known.all():
            gold, predicted = gold[known], predicted[known]
            proba, scores = (None if one is None else one[known] for one in (proba, scores))
        self.support += np.bincount(gold, minlength=count)
        hit = gold == predicted
        self.right += np.bincount(gold[hit], minlength=count)
        if self.confusion is not None:
            pairs = np.bincount((gold * count + predicted)[predicted >= 0], minlength=count * count)
            self.confusion += pairs.reshape(count, count)
        if proba is None or not len(gold):
            return
        self.reliability.add(gold, proba)
        self.rated += len(gold)
        self.loss -= float(np.log(np.clip(proba[np.arange(len(gold)), gold], TINY, 1 - TINY)).sum())
        best = np.argmax(proba, axis=1)  # what is predicted, unless there is a threshold
        top, hit = proba[np.arange(len(gold)), best], gold == best
        places = np.clip((top * BINS).astype(np.int64), 0, BINS - 1)
        for row, amounts in zip(self.bins, (None, hit, top)):
            row += np.bincount(places, weights=amounts, minlength=BINS)
        if self.ranking is not None:
            self.ranking.add(gold == 1, proba[:, 1] if scores is None else scores.reshape(-1))
        if self.search is not None:
            positive, search = self.search
            search.add(gold == positive, proba[:, positive])

    def add_batch(self, model: Model, batch: Batch, observer: Observer | None = None) -> None:
        """Predict a batch and add it; rows without a label are counted separately."""
        if batch.codes is None:
            self.unlabelled += len(batch)
            return
        names = batch.label_names or []
        gold = self._table(names)[batch.codes]
        made = predictions(model, batch, scores=True, proba=True)
        if observer is not None:
            observer.observe(batch, gold, made)
        raw = None if made.scores is None else model.learner.own_probabilities(made.scores)
        if raw is not None:
            self.uncalibrated.add(gold[gold >= 0], raw[gold >= 0])
        labelled = batch.codes >= 0
        for code in np.unique(batch.codes[labelled & (gold < 0)]).tolist():
            self.unknown[names[code]] = self.unknown.get(names[code], 0) + int(np.count_nonzero(batch.codes == code))
        parts = (gold, made.answers, made.proba, made.scores if len(self.labels) == 2 else None)
        if not labelled.all():
            self.unlabelled += int(np.count_nonzero(~labelled))
            self.add(*(None if part is None else part[labelled] for part in parts))  # type: ignore[arg-type]
        else:
            self.add(*parts)

    def include(self, other: Evaluation) -> None:
        """Add the rows of another evaluation of the same labels: counts exactly, sums to rounding."""
        self.n += other.n
        self.unlabelled += other.unlabelled
        add_counts(self.unknown, other.unknown)
        self.taken_for.update(other.taken_for)
        self.right += other.right
        self.support += other.support
        self.predicted += other.predicted
        self.rejected += other.rejected
        if self.confusion is not None:
            self.confusion += other.confusion
        self.rated += other.rated
        self.loss += other.loss
        self.bins += other.bins
        if self.ranking is not None and other.ranking is not None:
            self.ranking.include(other.ranking)
        if self.search is not None and other.search is not None:
            self.search[1].include(other.search[1])
        self.reliability.include(other.reliability)
        self.uncalibrated.include(other.uncalibrated)

    def _table(self, names: list[str]) -> np.ndarray:
        """The class of each label of a reader, -1 for unknown ones; a last -1 is for rows without a label."""
        if self._names is not names:
            self._names, self._classes = names, []
        new = names[len(self._classes) :]
        for name, k in zip(new, positions(new, self.labels)):
            self._classes.append(k)
            if k >= 0 and name == f"{self.labels[k]}.":
                self.taken_for[name] = self.labels[k]
        return np.array([*self._classes, -1], dtype=np.int64)

    def report(self) -> dict[str, Any]:
        """Everything, ready for JSON; None where there is nothing to compute it from."""
        precision, recall = share(self.right, self.predicted).tolist(), share(self.right, self.support).tolist()
        f1 = share(2 * self.right, self.predicted + self.support)
        there = self.predicted + self.support > 0
        classes = int(np.count_nonzero(there)) + len(self.unknown)  # those not learned have an F1 of 0
        made: dict[str, Any] = {
            "n": self.n,
            "accuracy": self.right.sum() / self.n if self.n else None,
            "majority": self.support.max(initial=0) / self.n if self.n else None,
            "macro_f1": f1[there].sum() / classes if classes else None,
            "log_loss": self.loss / self.rated if self.rated else None,
            "calibration_error": self._calibration_error() if self.rated else None,
        }
        if self.rejected:
            made["rejected"] = self.rejected
        figures = self.reliability.report()
        made.update({name: figures.get(name) for name in ("class_calibration_error", "brier")})
        made["uncalibrated"] = self.uncalibrated.report() or None
        if self.ranking is not None:
            made["auc"], made["auc_is_estimate"] = self.ranking.area(), self.ranking.rough
        made["per_class"] = {
            label: {"precision": precision[k], "recall": recall[k], "f1": float(f1[k]), "support": int(self.support[k])}
            for k, label in enumerate(self.labels)
        }
        made["calibration_by_class"] = dict(zip(self.labels, self.reliability.class_errors())) or None
        made["labels"] = self.labels
        made["confusion"] = None if self.confusion is None else self.confusion.tolist()
        made["unknown_labels"] = dict(self.unknown)
        made["labels_taken_for"] = dict(self.taken_for)
        made["unlabelled"] = self.unlabelled
        return {key: value.item() if isinstance(value, np.generic) else value for key, value in made.items()}

    def _calibration_error(self) -> float:
        """The mean difference between the top probability and the share of right predictions, over bins of it."""
        rows, hits, expected = self.bins
        return float(np.abs(hits - expected).sum() / rows.sum())


class RegressionEvaluation:
    """The evaluation of predicted numbers.

    >>> evaluation = RegressionEvaluation()
    >>> evaluation.add(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    >>> round(evaluation.report()["r2"], 2)
    0.5
    """

    def __init__(self) -> None:
        self.n: int = 0
        self.unlabelled: int = 0
        self.absolute: float = 0.0  # sum of absolute errors
        self.squared: float = 0.0  # sum of squared errors
        self.mean: float = 0.0  # of the true numbers
        self.spread: float = 0.0  # sum of their squared distances from the mean

    def add(self, gold: np.ndarray, predicted: np.ndarray) -> None:
        """Add rows: their numbers, and the predicted ones."""
        if not len(gold):
            return
        error = predicted - gold
        self.absolute += float(np.abs(error).sum())
        self.squared += float((error * error).sum())
        mean = float(gold.mean())
        self._join(len(gold), mean, float(((gold - mean) ** 2).sum()))

    def include(self, other: RegressionEvaluation) -> None:
        """Add the rows of another evaluation."""
        self.unlabelled += other.unlabelled
        self.absolute += other.absolute
        self.squared += other.squared
        if other.n:
            self._join(other.n, other.mean, other.spread)

    def _join(self, count: int, mean: float, spread: float) -> None:
        """Add a group of true numbers (Chan, Golub, LeVeque): sums of squares would cancel when the mean is large."""
        total, away = self.n + count, mean - self.mean
        self.spread += spread + away * away * self.n * count / total
        self.mean += away * count / total
        self.n = total

    def add_batch(self, model: Model, batch: Batch, observer: Observer | None = None) -> None:
        """Predict a batch and add it; rows without a number are counted separately."""
        if batch.y is None:
            self.unlabelled += len(batch)
            return
        gold = np.asarray(batch.y, dtype=np.float64)
        known = ~np.isnan(gold)
        self.unlabelled += int(np.count_nonzero(~known))
        made = predictions(model, batch)
        if observer is not None:
            observer.observe(batch, gold, made)
        self.add(gold[known], made.answers[known])

    def report(self) -> dict[str, Any]:
        """Everything, ready for JSON; None where there is nothing to compute it from."""
        known = self.n > 0
        return {
            "n": self.n,
            "rmse": float(np.sqrt(self.squared / self.n)) if known else None,
            "mae": self.absolute / self.n if known else None,
            "r2": 1 - self.squared / self.spread if self.spread > 0 else None,
            "unlabelled": self.unlabelled,
        }


def evaluation_of(model: Model) -> Any:
    """An empty evaluation of the kind that suits a model."""
    if model.task == MULTILABEL:
        from onlearn.models.multilabel_evaluation import MultilabelEvaluation

        return MultilabelEvaluation(model.labels or [])
    if model.task == "rank":
        from onlearn.models.rank_evaluation import RankEvaluation

        return RankEvaluation()
    return RegressionEvaluation() if model.labels is None else Evaluation(model.labels)


def evaluate(
    model: Model, batches: Iterable[Batch], bad: BadRows | None = None, observer: Observer | None = None
) -> Any:
    """Predict everything, such as a reader's batches, and compare; rows that the model cannot take are ``bad``.

    An ``observer``, such as the evidence of a report, sees all that is predicted.
    """
    evaluation = evaluation_of(model)
    add_batches(evaluation, model, batches, bad, observer)
    return evaluation


def add_batches(
    evaluation: Any,
    model: Model,
    batches: Iterable[Batch],
    bad: BadRows | None = None,
    observer: Observer | None = None,
) -> None:
    """Predict everything, and add it to an evaluation: see ``evaluate``."""
    bad = BadRows(limit=1.0) if bad is None else bad
    for batch in batches:
        some = usable_rows(model, batch, bad)
        if len(some):
            evaluation.add_batch(model, some, observer)


def report_of(
    evaluation: Any, model: Model, bad_rows: int, names: str, target: str | int | None = None
) -> dict[str, Any]:
    """The report of an evaluation, with bad rows and the threshold of the model.

    ``names`` are those of the files, ``target`` the column of labels if it was named.
    """
    report = {**evaluation.report(), "bad_rows": bad_rows}
    if not report["n"] or report.get("labels_a_row") == 0:
        where = "" if target is None else f" in a column {target!r}"
        raise DataError(
            f"{names}: no row has a label{where}, so there is nothing to compare with (target= names the column)"
        )
    if model.threshold is not None:
        report["threshold"] = figures_at(model.threshold, model.labels or [], report)
    return report


def add_counts(counts: dict[str, int], more: dict[str, int]) -> None:
    """Add counts by name to others."""
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, and 0 where there is no whole."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)

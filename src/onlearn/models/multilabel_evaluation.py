"""How good predictions of several labels a row are: figures that add up over batches.

With Y the labels of a row and Z the predicted ones, of L labels in all:

    Hamming loss     mean |Y symmetric difference Z| / L        subset accuracy   share of rows with Y = Z
    micro F1         2 sum |Y & Z| / (sum |Y| + sum |Z|)        macro F1          mean of the labels' own F1
    precision at k   mean share of Y among the k best labels

A label that the model does not know is one that it missed: it counts in micro F1, Hamming loss and subset accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data import Batch
from onlearn.engine.inputs import positions
from onlearn.engine.multilabel import LabelSets
from onlearn.models.evaluation import TINY, Observer, add_counts, predictions, share
from onlearn.models.model import Model
from onlearn.models.threshold import ThresholdSearch
from onlearn.models.top_labels import top_labels

BEST = (1, 3, 5)  # k of the precisions at k


class MultilabelEvaluation:
    """The evaluation of predicted sets of these labels.

    >>> evaluation = MultilabelEvaluation(["a", "b"])
    >>> evaluation.add(np.array([[True, True], [False, True]]), np.array([[True, False], [False, True]]))
    >>> report = evaluation.report()
    >>> report["hamming_loss"], report["subset_accuracy"], report["micro_f1"]
    (0.25, 0.5, 0.8)
    """

    def __init__(self, labels: list[str]) -> None:
        count = len(labels)
        self.labels: list[str] = list(labels)
        self.n: int = 0
        self.unlabelled: int = 0
        self.unknown: dict[str, int] = {}
        self.exact: int = 0  # rows predicted right in every label
        self.right: np.ndarray = np.zeros(count, dtype=np.int64)
        self.support: np.ndarray = np.zeros(count, dtype=np.int64)
        self.predicted: np.ndarray = np.zeros(count, dtype=np.int64)
        self.loss: float = 0.0  # sum over labels of the mean log-loss, over rows
        self.rated: int = 0
        self.top: dict[int, float] = {k: 0.0 for k in BEST if k <= count}
        self.search: ThresholdSearch | None = None
        self._names: list[tuple[str, ...]] | None = None  # the sets of the present reader, a list that grows
        self._sets: LabelSets = LabelSets()
        self._missed: list[list[str]] = [[]]  # unknown labels of each set

    def add(
        self,
        gold: np.ndarray,
        predicted: np.ndarray,
        proba: np.ndarray | None = None,
        scores: np.ndarray | None = None,
        missed: np.ndarray | None = None,
    ) -> None:
        """Add rows: truth values of their labels and of the predicted ones, and probabilities if there are any.

        ``missed`` counts labels of each row that the model does not know.
        """
        self.n += len(gold)
        same = (gold == predicted).all(axis=1)
        self.exact += int(np.count_nonzero(same if missed is None else same & (missed == 0)))
        self.right += (gold & predicted).sum(axis=0)
        self.support += gold.sum(axis=0)
        self.predicted += predicted.sum(axis=0)
        if proba is None or not gold.size:
            return
        self.rated += len(gold)
        told = np.where(gold, proba, 1 - proba)
        self.loss -= float(np.log(np.clip(told, TINY, 1 - TINY)).mean(axis=1).sum())
        best = top_labels(proba, proba if scores is None else scores, max(self.top)).codes
        hits = np.cumsum(np.take_along_axis(gold, best, axis=1), axis=1)
        for k in self.top:
            self.top[k] += float(hits[:, k - 1].sum()) / k
        if self.search is not None:
            self.search.add(gold.ravel(), proba.ravel())

    def add_batch(self, model: Model, batch: Batch, observer: Observer | None = None) -> None:
        """Predict a batch and add it; an observer sees truth values, one column a label."""
        if batch.codes is None or batch.label_sets is None:
            self.unlabelled += len(batch)
            return
        self._take_sets(batch.label_sets)
        codes = batch.codes + 1
        for code, count in zip(*(one.tolist() for one in np.unique(codes, return_counts=True))):
            for name in self._missed[code]:
                self.unknown[name] = self.unknown.get(name, 0) + count
        made = predictions(model, batch, scores=True, proba=True)
        missed = np.array([len(one) for one in self._missed], dtype=np.int64)[codes]
        gold = self._sets.indicator(codes, len(self.labels))
        if observer is not None:
            observer.observe(batch, gold, made)
        self.add(gold, made.answers, made.proba, made.scores, missed)

    def include(self, other: MultilabelEvaluation) -> None:
        """Add the rows of another evaluation of the same labels: counts exactly, sums to rounding."""
        self.n += other.n
        self.unlabelled += other.unlabelled
        add_counts(self.unknown, other.unknown)
        self.exact += other.exact
        self.right += other.right
        self.support += other.support
        self.predicted += other.predicted
        self.loss += other.loss
        self.rated += other.rated
        for k in self.top:
            self.top[k] += other.top[k]
        if self.search is not None and other.search is not None:
            self.search.include(other.search)

    def _take_sets(self, sets: list[tuple[str, ...]]) -> None:
        """Number the label sets of a reader, as far as they are new; 0 is the empty one."""
        if self._names is not sets:
            self._names, self._sets, self._missed = sets, LabelSets(), [[]]
        for one in sets[len(self._sets) - 1 :]:
            places = positions(list(one), self.labels)
            self._sets.append(sorted({place for place in places if place >= 0}))
            self._missed.append([name for name, place in zip(one, places) if place < 0])

    def report(self) -> dict[str, Any]:
        """Everything, ready for JSON; None where there is nothing to compute it from."""
        precision, recall = share(self.right, self.predicted), share(self.right, self.support)
        f1 = share(2 * self.right, self.predicted + self.support)
        there = self.predicted + self.support > 0
        missed = sum(self.unknown.values())
        right, said, gold = int(self.right.sum()), int(self.predicted.sum()), int(self.support.sum()) + missed
        wrong = said + gold - 2 * right
        labels = int(np.count_nonzero(there)) + len(self.unknown)
        return {
            "n": self.n,
            "subset_accuracy": self.exact / self.n if self.n else None,
            "hamming_loss": wrong / (self.n * len(self.labels)) if self.n else None,
            "micro_f1": 2 * right / (said + gold) if said + gold else None,
            "micro_precision": right / said if said else None,
            "micro_recall": right / gold if gold else None,
            "macro_f1": float(f1[there].sum()) / labels if labels else None,
            "log_loss": self.loss / self.rated if self.rated else None,
            **{f"precision_at_{k}": total / self.rated if self.rated else None for k, total in self.top.items()},
            "labels_a_row": gold / self.n if self.n else None,
            "per_class": {
                label: {
                    "precision": float(precision[k]),
                    "recall": float(recall[k]),
                    "f1": float(f1[k]),
                    "support": int(self.support[k]),
                }
                for k, label in enumerate(self.labels)
            },
            "labels": self.labels,
            "unknown_labels": dict(self.unknown),
            "unlabelled": self.unlabelled,
        }

"""What a model says about some rows: classes or numbers, and where asked for, scores and probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.pipeline.model import Model


class Predictions(NamedTuple):
    """``answers`` are positions in the model's labels, or for regression numbers. What was not asked for is None.

    ``scores`` has one column for two classes (positive: the second label), else one for each.
    """

    answers: np.ndarray
    scores: np.ndarray | None = None
    proba: np.ndarray | None = None


def predictions(model: Model, rows: Any, *, scores: bool = False, proba: bool = False) -> Predictions:
    """Predict a batch, or rows of any kind that the model takes."""
    try:
        return _predictions(model, rows, scores, proba)
    except ValueError as error:
        # of kernels.ExampleError, which is not imported: few models have a kernel, and those take a while to load
        row, why = getattr(error, "row", None), getattr(error, "why", "")
        if row is None or not isinstance(rows, data.Batch):
            raise
        raise data.DataError(f"{rows.file}, line {rows.lines[row]}: {why}") from None


def _predictions(model: Model, rows: Any, scores: bool, proba: bool) -> Predictions:
    X = model.matrix(rows)
    learner = model.learner
    if model.labels is None:
        return Predictions(model.named(learner.predict(X)))
    if not (scores or proba):
        return Predictions(_positions(learner.predict(X), learner.classes_))
    made = np.asarray(learner.decision_function(X))
    # The rule of ``predict``: above zero is the second class, else the first of the best.
    codes = (made > 0).astype(np.int64) if made.ndim == 1 else np.argmax(made, axis=1)
    probabilities = np.asarray(learner.predict_proba(X)) if proba else None
    return Predictions(codes, made.reshape(len(codes), -1), probabilities)


def _positions(predicted: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Positions among the classes; those of a model are their own positions."""
    if classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
        return predicted
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, predicted, sorter=order)]

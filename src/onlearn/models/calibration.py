"""Calibration of a model by rows that it has not learned from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.data import BadRows, Batch, DataError
from onlearn.engine.inputs import positions
from onlearn.engine.number_names import label_name

if TYPE_CHECKING:
    from onlearn.models.model import Model


def calibrate(model: Model, batches: Iterable[Batch], bad: BadRows) -> int:
    """Fit the probabilities of a model to the labelled rows of these batches; returns how many there are.

    Rows without a label, or with one that the model does not know, are left out.
    """
    from onlearn.models.evaluation import predictions, usable_rows

    scores: list[np.ndarray] = []
    codes: list[np.ndarray] = []
    for batch in batches:
        some = usable_rows(model, batch, bad)
        if not len(some) or some.codes is None:
            continue
        gold = np.array([*positions(some.label_names or [], model.labels or []), -1], dtype=np.int64)[some.codes]
        known = gold >= 0
        found = predictions(model, some, scores=True).scores
        assert found is not None  # they were asked for
        scores.append(found[known])
        codes.append(gold[known])
    if not sum(map(len, codes)):
        raise DataError("there is no row with a label of the model to calibrate by")
    check(model)
    model.learner.calibrate_by(np.concatenate(scores), np.concatenate(codes))
    return sum(map(len, codes))


def check(model: Model) -> None:
    """Refuse a model whose probabilities cannot be calibrated."""
    if model.labels is None:
        raise DataError("a model that predicts numbers has no probabilities to calibrate")
    if not hasattr(model.learner, "calibrate_by"):
        raise DataError(f"the probabilities of {model.learner.name} are its own: they cannot be calibrated")
    if model.learner.choices["calibration"].name == "own":
        raise DataError("calibration='own' takes scores for log-odds: it cannot be calibrated by rows")


def calibrate_by_files(model: Model, sources: Any) -> str:
    """Calibrate by labelled files; a note about it."""
    check(model)
    with model.read(sources, labels="required", weight=None) as reader:
        count = calibrate(model, reader, reader.bad)
    return f"probabilities are calibrated by {count:,} rows that are not learned from"


def calibrate_by_rows(model: Model, rows: Any, y: Any) -> None:
    """Calibrate by rows at hand, as ``Model.predict`` takes them, and their labels."""
    from onlearn.models.evaluation import predictions

    check(model)
    gold = np.array(positions([label_name(label) for label in y], model.labels or []), dtype=np.int64)
    found = predictions(model, rows, scores=True).scores
    assert found is not None  # they were asked for
    if len(found) != len(gold):
        raise ValueError(f"there are {len(found)} rows but {len(gold)} labels")
    if not (gold >= 0).any():
        raise ValueError("there is no row with a label of the model to calibrate by")
    model.learner.calibrate_by(found[gold >= 0], gold[gold >= 0])

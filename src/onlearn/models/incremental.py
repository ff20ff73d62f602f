"""Learning from rows at hand, and scoring on them: ``Model.partial_fit`` and ``Model.score``."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn import data
from onlearn.engine.csr import is_sparse
from onlearn.engine.labels import distinct, in_order, positions
from onlearn.models.model import Model, as_in_files, as_written, refuse_sentences
from onlearn.models.plan import Plan, default_learner
from onlearn.models.run import learn_from, sound_rows


def partial_fit(model: Model, rows: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> None:
    """Learn from rows once, in their order; a model that has learned nothing begins with what suits the rows."""
    if model.learner is not None and model.learner.representation is not None:
        raise ValueError("a model with a kernel does not learn row by row: use onlearn.train with resume=")
    source = as_rows(model, rows)
    labels = written(y) if model.task == "classify" else []
    if model.learner is None:
        _begin(model, source, y, labels if classes is None else written(classes))
    codes = _codes(model, labels) if model.task == "classify" else None
    if is_sparse(source):
        source = model.far.narrow(source, learn=True)
    X = sound_rows(model.features.learn_transform(source, ordered=False), model.learner)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if codes is None:
        mean, deviation = model.target
        learn_from(model, X, (np.asarray(y, dtype=np.float64) - mean) / deviation, weight)
    else:
        learn_from(model, X, codes, weight)
    model.trained["examples"] = int(model.learner.n_seen_)


def score(model: Model, rows: Any, y: Any, sample_weight: Any = None) -> float:
    """The share of labels predicted rightly, or for regression R2."""
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    predicted = model.predict(rows)
    if len(predicted) != len(y):
        raise ValueError(f"there are {len(predicted)} rows but {len(y)} entries in y")
    if model.labels is None:
        gold = np.asarray(y, dtype=np.float64)
        spread = np.average((gold - np.average(gold, weights=weight)) ** 2, weights=weight)
        return float(1 - np.average((gold - predicted) ** 2, weights=weight) / spread) if spread else 0.0
    answers = np.array(positions(list(predicted), model.labels))
    return float(np.average(np.array(positions(written(y), model.labels)) == answers, weights=weight))


def as_rows(model: Model, rows: Any) -> Any:
    """Rows as readers give them."""
    if isinstance(rows, (list, tuple)) and not rows:
        raise ValueError("there are no rows: X is empty")
    if isinstance(rows, data.Batch):
        refuse_sentences(rows)
        return rows.rows
    if is_sparse(rows):
        return rows.tocsr() if hasattr(rows, "tocsr") else rows
    from onlearn.features.tables import as_source

    return as_source(rows) if model.learner is None else as_in_files(rows, model.features, model.columns)


def written(y: Any) -> list[str]:
    """Labels as files have them."""
    return [label if isinstance(label, str) else as_written(label) for label in y]


def _begin(model: Model, source: Any, y: Any, labels: list[str]) -> None:
    """Choose features and learner by the first rows, as training does."""
    model.features, notes = Plan([]).features(source)
    model.trained["notes"] = notes
    if model.task == "classify":
        model.labels = in_order(distinct(list(dict.fromkeys(labels))))
        if len(model.labels) < 2:
            raise ValueError("the first rows have only one label: name all labels with classes=")
    else:
        gold = np.asarray(y, dtype=np.float64)
        model.target = float(np.mean(gold)), float(np.std(gold)) or 1.0
    learner = default_learner(model.task, model.features)
    model.learner = learner.set_params(random_state=0, grow="features" if len(model.labels or ()) == 2 else True)


def _codes(model: Model, labels: list[str]) -> np.ndarray:
    """The classes of labels; new ones are taken in, if the learner takes in new classes."""
    assert model.labels is not None
    if model.learner.settings.grow is True:
        found = positions(labels, model.labels, dots=False)
        new = dict.fromkeys(label for label, place in zip(labels, found) if place < 0)
        model.labels += distinct(list(new))
    found = positions(labels, model.labels, dots=False)
    unknown = [label for label, place in zip(labels, found) if place < 0]
    if unknown:
        raise ValueError(f"the model does not know the label {unknown[0]!r}; it knows {', '.join(model.labels[:10])}")
    return np.array(found, dtype=np.int64)

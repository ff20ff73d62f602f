"""Models of several labels a row: their predictions as lists of labels, and learning from such lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.engine.inputs import distinct, in_order, positions
from onlearn.engine.multilabel import LabelSets, MultilabelLearner
from onlearn.engine.number_names import label_name

if TYPE_CHECKING:
    from onlearn.models.model import Model

MULTILABEL = "multilabel"  # the task


def has_several(y: Any) -> bool:
    """Whether targets are lists of labels, not labels; the first one tells."""
    first = next(iter(y), None) if hasattr(y, "__iter__") and not isinstance(y, str) else None
    return isinstance(first, (list, tuple, set, frozenset))


def label_lists(labels: Sequence[str], truth: np.ndarray) -> np.ndarray:
    """The labels of each row as a list; ``truth`` has a column for each label.

    >>> label_lists(["a", "b"], np.array([[True, True], [False, False]])).tolist()
    [['a', 'b'], []]
    """
    made = np.empty(len(truth), dtype=object)
    made[:] = [[labels[k] for k in np.flatnonzero(row).tolist()] for row in truth]
    return made


def truth_of(model: Model, learner: Any, X: Any, proba: np.ndarray | None = None) -> np.ndarray:
    """Which labels rows of features have: those with a score above zero, or as probable as the threshold."""
    if model.threshold is None:
        return np.asarray(learner.predict(X))
    proba = np.asarray(learner.predict_proba(X)) if proba is None else proba
    return proba >= model.threshold.probability


def as_label_sets(y: Iterable[Any]) -> list[list[str]]:
    """Lists of labels as files have them; a label that is given twice counts once."""
    made = []
    for row, labels in enumerate(y):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise ValueError(f"y holds {labels!r} in row {row}, which is not a list of labels")
        made.append(list(dict.fromkeys(one if isinstance(one, str) else label_name(one) for one in labels)))
    return made


def indicator_of(sets: list[list[str]], labels: Sequence[str]) -> np.ndarray:
    """Which of the labels each row has; those that are not among them are an error."""
    names = list(dict.fromkeys(label for one in sets for label in one))
    places = dict(zip(names, positions(names, labels, dots=False)))
    unknown = [name for name in names if places[name] < 0]
    if unknown:
        raise ValueError(f"the model does not know the label {unknown[0]!r}; it knows {', '.join(labels[:10])}")
    table = LabelSets([[places[label] for label in one] for one in sets])
    return table.indicator(np.arange(len(sets)), len(labels))


def add_labels(labels: list[str], names: list[str]) -> None:
    """Add names that are not among the labels."""
    labels += distinct([name for name, place in zip(names, positions(names, labels, dots=False)) if place < 0])


def first_labels(sets: list[list[str]]) -> list[str]:
    """The labels of the first rows, in order."""
    labels = in_order(distinct(list(dict.fromkeys(label for one in sets for label in one))))
    if not labels:
        raise ValueError("none of the first rows has a label: name all labels with classes=")
    return labels


def multilabel_learner(member: Any, *, grow: bool = True) -> MultilabelLearner:
    """A learner of several labels a row, each by a copy of the given one."""
    return MultilabelLearner(learner=member, grow=True if grow else "features", random_state=0)

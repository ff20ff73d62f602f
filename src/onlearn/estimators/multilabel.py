"""Several labels a row as an estimator: one binary learner for each label."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from onlearn.engine.compositions import Composition
from onlearn.engine.inputs import unique_labels
from onlearn.engine.multilabel import MULTILABEL, USUAL, LabelSets, MultilabelLearner, check_indicator
from onlearn.estimators.base import LearnerEstimator
from onlearn.estimators.mixture import spelled


class MultilabelClassifier(ClassifierMixin, LearnerEstimator):
    """Rows that may have several labels, or none: each label is learned by a learner of its own.

    Parameters
    ----------
    learner : linear classifier or its spelling, by default 'AROW'
        What learns each label, such as ``onlearn.LogisticRegression(rate=0.5)`` or ``"LinearSVM(epochs=10)"``. Passes
        and weights of classes are its own.
    grow : bool or "features", by default False
        Take in labels and features that come later (True), or features only. A label that comes late is learned as if
        it had been known before.
    random_state : int, Generator or None
        The same for all labels.

    Attributes
    ----------
    classes_ : array of (labels,)
        The labels; the numbers of columns, if y was a matrix.

    Examples
    --------
    y is a matrix of 0 and 1, one column a label (dense or sparse), or a list of lists of labels; ``predict`` answers
    in kind.

    >>> from onlearn import MultilabelClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]] * 10
    >>> y = [["red"], ["blue"], ["red", "blue"], []] * 10
    >>> model = MultilabelClassifier("AROW", random_state=0).fit(X, y)
    >>> model.classes_.tolist(), model.predict(X[:4]).tolist()
    (['blue', 'red'], [['red'], ['blue'], ['blue', 'red'], []])
    """

    _composition: ClassVar[Composition] = MULTILABEL
    _families: ClassVar[dict[str, Any]] = {}
    _learner: MultilabelLearner

    def __init__(self, learner: Any = USUAL, grow: bool | str = False, random_state: Any = None) -> None:
        self.learner = learner
        self.grow = grow
        self.random_state = random_state

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        return {**values, "learner": spelled(values["learner"])}

    def _takes_positive_only(self) -> bool:
        return MultilabelLearner(**self._values()).positive_only

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output, tags.target_tags.multi_output = False, True
        tags.classifier_tags.multi_class, tags.classifier_tags.multi_label = False, True
        return tags

    def _check_targets(self, y: Any) -> Any:
        return y  # truth values by now

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultilabelClassifier:
        """Learn from all rows, anew, in the passes of the learner of each label."""
        truth, names, lists = encoded(y, None, grow=True)
        self._fit(X, truth, sample_weight)
        self._learner.label_names, self._learner.takes_lists = names, lists
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> MultilabelClassifier:
        """Learn from the rows once, in their order; ``classes`` names all labels on the first call with lists."""
        before = self.__dict__.get("_learner")
        known = None if before is None else before.label_names
        if before is None and classes is not None:
            known = unique_labels(np.asarray(classes))
        elif before is None and is_lists(y) and self.grow is not True:
            raise ValueError("classes must name all labels on the first call to partial_fit, unless grow=True")
        truth, names, lists = encoded(y, known, grow=self.grow is True)
        self._partial_fit(X, truth, sample_weight)
        self._learner.label_names, self._learner.takes_lists = names, lists
        return self

    # ------------------------------------------------------------------ what was learned

    @property
    def classes_(self) -> np.ndarray:
        """The labels; the numbers of columns, if y was a matrix."""
        names = self._known("label_names")
        return np.asarray(self._known("classes_") if names is None else names)

    @property
    def n_mistakes_(self) -> int:
        """Labels that rows were given wrongly, or not given, while learning; over all passes."""
        return int(self._known("n_mistakes_"))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, one column a label; above zero speaks for it."""
        learner, X = self._fitted(X)
        return learner.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each label; those of a row need not sum to 1."""
        learner, X = self._fitted(X)
        return learner.predict_proba(X)

    def predict(self, X: Any) -> np.ndarray:
        """The labels of each row: 0 and 1, one column a label; lists of labels, if y was such."""
        learner, X = self._fitted(X)
        truth = learner.predict(X)
        if not learner.takes_lists:
            return np.asarray(truth.astype(np.int64))
        names, made = self.classes_, np.empty(len(truth), dtype=object)
        made[:] = [names[row].tolist() for row in truth]
        return made

    def predict_one(self, x: Any) -> Any:
        """The labels of one row of numbers, as ``predict`` gives them."""
        return self.predict(np.asarray(x, dtype=np.float64).reshape(1, -1))[0]

    def score_one(self, x: Any) -> dict[Any, float]:
        """The score of each label for one row of numbers, by label."""
        scores = self.decision_function(np.asarray(x, dtype=np.float64).reshape(1, -1))[0]
        return dict(zip(self.classes_.tolist(), scores.tolist()))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows with all labels right (subset accuracy)."""
        predicted = self.predict(X)
        if self._learner.takes_lists:
            same = np.array([{*labels} == {*found} for labels, found in zip(y, predicted, strict=True)])
        else:
            same = (check_indicator(y, len(predicted)) == predicted.astype(bool)).all(axis=1)
        return float(np.average(same, weights=sample_weight))


def is_lists(y: Any) -> bool:
    """Whether y is a list of lists of labels, and not a matrix; a list of equally long rows of 0 and 1 is a matrix."""
    if hasattr(y, "toarray") or len(getattr(y, "shape", ())) == 2 or not hasattr(y, "__iter__"):
        return False
    rows = list(y)
    if not rows or not all(isinstance(row, (list, tuple, set, frozenset)) for row in rows):
        return False
    widths = {len(row) for row in rows}
    flags = all(not isinstance(one, str) and one in (0, 1) for row in rows for one in row)
    return len(widths) > 1 or not flags or widths == {0}


def encoded(y: Any, known: np.ndarray | None, grow: bool) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """y as truth values, the labels of its columns (None: their numbers), and whether it was a list of lists."""
    if y is None:
        raise ValueError("MultilabelClassifier requires y to be passed, but the target y is None")
    if not is_lists(y):
        y = y if hasattr(y, "toarray") else np.asarray(y)
        return check_indicator(y, y.shape[0]), known, False
    sets = [list(dict.fromkeys(row)) for row in y]
    labels = [label for row in sets for label in row]
    names = known
    if names is None:
        if not labels:
            raise ValueError("y holds no label at all: there is nothing to learn")
        names = unique_labels(np.asarray(labels))
    places = {label: place for place, label in enumerate(names.tolist())}
    new = [label for label in dict.fromkeys(labels) if label not in places]
    if new and not grow:
        raise ValueError(f"y holds the label {new[0]!r}, which was not among the labels when learning began")
    if new:
        places |= {label: len(places) + n for n, label in enumerate(new)}
        names = np.asarray([*names.tolist(), *new])
    table = LabelSets([[places[label] for label in row] for row in sets])
    return table.indicator(np.arange(len(sets)), len(names)), names, True

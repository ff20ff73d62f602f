"""``Model``: a learner, the features it sees, and how its files are read. What ``onlearn train`` writes.

Raw rows go in (a table, texts, dicts, a matrix, a batch of a reader), labels come out. Inside, the learner knows
classes by number: class k is ``labels[k]``.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn import data, model_file
from onlearn.data.batch import as_parsed, as_public
from onlearn.engine.base_learner import BaseLearner
from onlearn.engine.csr import CSR
from onlearn.engine.inputs import positions
from onlearn.features import FeatureMap
from onlearn.features.feature_map import MATRIX, Strings
from onlearn.inert_text import facts_html, number, number_of
from onlearn.model_schema import (
    FINITE,
    NAMES,
    NESTED,
    TEXT,
    Arrays,
    OrMissing,
    Record,
    TupleOf,
    check_facts,
    either,
    finite,
    one_of,
    under,
)
from onlearn.models import far_indices, raw_rows
from onlearn.models.far_indices import FarIndices, HashedFar
from onlearn.models.multilabel import (
    MULTILABEL,
    label_lists,
    truth_of,
)
from onlearn.models.stored_reading import READING, check_reading
from onlearn.models.threshold import Threshold, threshold_of
from onlearn.models.trained_facts import check_trained

if TYPE_CHECKING:
    from onlearn.models.explain import Explanation


class Model:
    """Predicts from raw rows; a file holds all of it.

    ``features`` makes the matrix, and ``learner`` (a ``Learner``) predicts from it. ``labels`` names its classes (None
    in regression); ``target`` is the mean and the deviation that scale the targets of regression. ``reading`` holds the
    options its files were read with, ``trained`` how it was trained, and ``far`` maps indices that are too large for a
    weight each. ``threshold`` is the least probability of a label that is predicted (see ``set_threshold``); None: that
    of the best label does. ``before`` is, while a run that continues a model is unfinished, ``features`` and ``far`` as
    they were when it began. ``report_`` is the report of ``onlearn.train``; files do not hold it.
    """

    def __init__(self) -> None:
        self.features: Any = FeatureMap()  # or Strings
        self.learner: Any = None
        self.task: str = "classify"
        self.labels: list[str] | None = None
        self.reading: dict[str, Any] = {}
        self.trained: dict[str, Any] = {}
        self.target: tuple[float, float] = (0.0, 1.0)
        self.far: FarIndices = HashedFar()
        self.threshold: Threshold | None = None
        self.before: tuple[Any, FarIndices] | None = None
        self.report_: dict[str, Any] = {}
        self._lock = threading.RLock()  # held while features are learned, and while rows become features

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:  # copies, for another thread may go on learning while they are pickled
            learner, features = copy.deepcopy((self.learner, self.features))
            state = {**self.__dict__, "learner": learner, "features": features}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def __repr__(self) -> str:
        if self.learner is None:
            return "<Model that has learned nothing yet>"
        labels = self.labels or []
        what = f"of {len(labels)} labels ({', '.join(labels[:3])}{', ...' if len(labels) > 3 else ''})"
        count = "no" if self.compares_texts else self.learner.n_features_in_
        predicts = "of numbers" if self.labels is None else what
        return f"<Model {predicts} by {self.learner.name}, from {count} features of {self.features.kind_}>"

    def _repr_html_(self) -> str:
        if self.learner is None:
            return facts_html("Model", [("learned", "nothing yet")])
        trained = self.trained
        facts: list[tuple[str, object]] = [("learner", repr(self.learner))]
        if self.labels is not None:
            facts.append(("labels", number_of(self.labels)))
        facts += [("rows", f"{self.features.kind_}"), *((n, v) for n, v in self.learner.facts() if n != "classes")]
        if trained.get("sources"):
            facts.append(("learned from", number_of(trained["sources"])))
        figures: dict[str, Any] = next((self.report_[name] for name in ("test", "holdout") if name in self.report_), {})
        told = {"accuracy": "accuracy", "log_loss": "log-loss", "auc": "AUC", "rmse": "RMSE", "r2": "R2"}
        facts += [(f"test {told[key]}", number(figures[key])) for key in told if figures.get(key) is not None]
        return facts_html("Model", facts)

    @property
    def compares_texts(self) -> bool:
        """Whether a kernel compares texts, so that there are no features."""
        return isinstance(self.features, Strings)

    @property
    def kernel(self) -> Any:
        """The kernel that compares examples as they are; None without one, or if its features have weights."""
        learner = self.learner
        return None if learner is None or learner.representation == "primal" else learner.kernel

    # ------------------------------------------------------------------ predicting

    def matrix(self, rows: Any) -> Any:
        """Numbered features of raw rows, as a SciPy matrix; or texts as they are, for a kernel that compares those."""
        return as_public(self.numbered(rows))

    def numbered(self, rows: Any) -> Any:
        """Numbered features of raw rows; words such as ``?`` and ``NA`` are missing values, as they are in files."""
        if isinstance(rows, (list, tuple)) and not rows:
            raise ValueError("there are no rows: X is empty")
        if isinstance(rows, data.Batch):
            raw_rows.refuse_sentences(rows)
            rows = rows.parsed
        else:
            rows = as_parsed(rows)
            if not isinstance(rows, CSR):
                return self.features.transform(raw_rows.as_in_files(rows, self.features.extractors_, self.columns))
        return self.features.transform(self.far.narrow(rows) if isinstance(rows, CSR) else rows)

    def learner_for(self, X: Any) -> tuple[Any, Any]:
        """A learner that predicts for these rows of features, and the rows as it takes them."""
        return self.learner, X

    def scores(self, rows: Any) -> np.ndarray:
        """The learner's scores: one a row for two classes (positive: the second label), else one a class."""
        return np.asarray(self.learner.decision_function(self._features_of(rows)))

    def _features_of(self, rows: Any) -> Any:
        """The features of rows as they are numbered now; what another thread teaches the model comes before or after.

        New features have numbers after those there are, so that the learner may have learned more of them since.
        """
        with self._lock:
            return self.numbered(rows)

    def predict(self, rows: Any) -> np.ndarray:
        """The label of each row, or for regression the number; None where no label is as probable as the threshold.

        Where rows may have several labels, a list of labels: those more probable than not, or as probable as the
        threshold.
        """
        if self.task == MULTILABEL:
            return label_lists(self.labels or [], truth_of(self, self.learner, self._features_of(rows)))
        if self.threshold is not None:
            return self.named(self.threshold.decide(self.predict_proba(rows)))
        if self.labels is None:
            return self.numbers(self.learner, self._features_of(rows))
        return self.named(predicted_codes(self.learner, self._features_of(rows)))

    def numbers(self, learner: Any, X: Any) -> np.ndarray:
        """The numbers that a learner predicts for rows of features; of one that ranks, the scores that order them."""
        if self.task == "rank":
            return np.asarray(learner.decision_function(X), dtype=np.float64)
        return self.named(learner.predict(X))

    def predict_proba(self, rows: Any) -> np.ndarray:
        """The probability of each label, in the order of ``labels``."""
        if self.labels is None:
            raise ValueError("a regression model has no probabilities")
        return np.asarray(self.learner.predict_proba(self._features_of(rows)))

    def predict_top(self, rows: Any, k: int = 5) -> list[list[tuple[str, float]]]:
        """The ``k`` most probable labels of each row with their probabilities, the best first; all if there are fewer.

        The first is what ``predict`` answers without a threshold.

        >>> texts = ["cheap pills", "see you at lunch", "the goal counts"]
        >>> model = Model().partial_fit(texts * 4, ["ad", "ham", "news"] * 4)
        >>> [[label for label, probability in row] for row in model.predict_top(["cheap lunch", "a goal"], 2)]
        [['ad', 'ham'], ['news', 'ad']]
        """
        from onlearn.models.top_labels import top_labels

        if self.labels is None:
            raise ValueError("a regression model has no labels")
        X = self._features_of(rows)
        proba, scores = np.asarray(self.learner.predict_proba(X)), np.asarray(self.learner.decision_function(X))
        best = top_labels(proba, scores, k)
        names = [[self.labels[code] for code in row] for row in best.codes.tolist()]
        return [list(zip(row, numbers)) for row, numbers in zip(names, best.proba.tolist())]

    def set_threshold(self, probability: float | None, positive: str | None = None) -> Model:
        """Predict a label from this probability on; None: predict the best label again.

        Of two labels, ``positive`` is predicted where its probability is at least that, and the other one elsewhere; it
        is the second label unless named. Of several, the best label is predicted where its probability is at least
        that, and None elsewhere. Where rows may have several labels, it is the threshold of every label. Probabilities
        and scores stay as they are. The model file holds the threshold.

        >>> model = Model().partial_fit(["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4)
        >>> model.set_threshold(0.01, positive="spam").predict(["see you at lunch"]).tolist()
        ['spam']
        """
        several = self.task == MULTILABEL
        self.threshold = None if probability is None else threshold_of(probability, positive, self.labels, several)
        return self

    # ------------------------------------------------------------------ one row at a time

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Model:
        """Learn from one raw row (a dict, a text, a row of numbers or of a matrix), as ``partial_fit`` does.

        The first rows choose the features and must show all labels, so a model begins with ``partial_fit``.

        >>> model = Model().partial_fit([{"size": 1.5, "colour": "red"}, {"size": 9.0}], ["apple", "melon"])
        >>> model.learn_one({"size": 2.0, "colour": "green"}, "apple").predict_one({"colour": "green"})
        'apple'
        """
        return self.partial_fit(raw_rows.one_row(x), [y], None if type(weight) is float and weight == 1.0 else [weight])

    def predict_one(self, x: Any) -> Any:
        """The label of one raw row, or for regression the number; by the threshold, as ``predict`` does."""
        if self.task in (MULTILABEL, "rank"):
            return self.predict(raw_rows.one_row(x))[0]
        if self.threshold is not None:
            proba = np.array([list(self.predict_proba_one(x).values())])
            return self.named(self.threshold.decide(proba))[0]
        found = self.learner.predict_one(self._features_of_one(x))
        return found * self.target[1] + self.target[0] if self.labels is None else self.labels[found]

    def score_one(self, x: Any) -> Any:
        """The score of one raw row: a number for two labels and in regression, else a dict by label."""
        if self.task == MULTILABEL:
            return dict(zip(self.labels or (), self.scores(raw_rows.one_row(x))[0].tolist()))
        score = self.learner.score_one(self._features_of_one(x))
        return dict(zip(self.labels or (), score.values())) if isinstance(score, dict) else score

    def predict_proba_one(self, x: Any) -> dict[str, float]:
        """The probability of each label, for one raw row."""
        if self.labels is None:
            raise ValueError("a regression model has no probabilities")
        if self.task == MULTILABEL:
            return dict(zip(self.labels, self.predict_proba(raw_rows.one_row(x))[0].tolist()))
        return dict(zip(self.labels, self.learner.predict_proba_one(self._features_of_one(x)).values()))

    def _features_of_one(self, x: Any) -> Any:
        """The features of one raw row; of a model that compares texts, the text."""
        X = self._features_of(raw_rows.one_row(x))
        count = len(X) if self.compares_texts else X.shape[0]
        if count != 1:
            raise ValueError(f"one row is predicted at a time, not {count}")
        return X[0] if self.compares_texts else X

    # ------------------------------------------------------------------ learning, scoring, explaining

    def partial_fit(self, rows: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Model:
        """Learn from rows once, in their order. Takes rows as ``predict`` does, and their labels or numbers.

        A model that has learned nothing yet chooses features and learner by these rows, as ``onlearn.train`` does; all
        labels must be among them, or named by ``classes``, unless there are three or more. If y holds lists of labels,
        each row may have several labels, or none; new ones may come at any time.

        >>> model = Model().partial_fit(["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4)
        >>> model.predict(["cheap cheap pills"]).tolist()
        ['spam']
        >>> model.score(["pills", "lunch"], ["spam", "ham"])
        1.0
        """
        with self._lock:
            raw_rows.partial_fit(self, rows, y, sample_weight, classes)
        return self

    def calibrate(self, rows: Any, y: Any = None) -> Model:
        """Fit probabilities to rows that were not learned from: files, or rows as of ``predict`` with their labels.

        >>> model = Model().partial_fit(["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4)
        >>> model = model.calibrate(["pills", "lunch", "pills", "lunch"], ["spam", "ham", "ham", "ham"])
        >>> bool(model.predict_proba(["pills"])[0].max() < 0.9)
        True
        """
        from onlearn.models.calibration import calibrate_by_files, calibrate_by_rows

        with self._lock:
            if y is None:
                calibrate_by_files(self, rows)
            else:
                calibrate_by_rows(self, rows, y)
        return self

    def renewed(self) -> Model:
        """A model with the same parameters, labels and features that has learned nothing."""
        with self._lock:
            made = copy.copy(self)
            made.features, made.far = copy.deepcopy(self.features), copy.deepcopy(self.far)
            made.labels = None if self.labels is None else list(self.labels)
            made.trained, made.before, made.report_ = copy.deepcopy(self.trained), None, {}
            made.learner = None if self.learner is None else self.learner.renewed()
        return made

    def become(self, other: Model) -> Model:
        """Take over all that another model has learned, which is not to be used any more."""
        with self._lock:
            self.__dict__.update({**other.__dict__, "_lock": self._lock})
        return self

    def score(self, rows: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels that are predicted right; for regression, R2; for several labels, of rows all right."""
        return raw_rows.score(self, rows, y, sample_weight)

    def explain(self, row: Any) -> Explanation:
        """Which features moved the prediction of one row, the largest contribution first.

        The row is a dict, a text, or rows as ``predict`` takes them, of which there is one.

        >>> model = Model().partial_fit(["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4)
        >>> found = model.explain("cheap lunch")
        >>> found.prediction, [part.feature for part in found.parts]
        ('spam', ['cheap', 'lunch'])
        """
        from onlearn.models.explain import explain

        return explain(self, raw_rows.one_row(row) if not isinstance(row, dict) or not _is_table(row) else row)

    def named(self, predicted: np.ndarray) -> np.ndarray:
        """What the learner predicted as labels, or as numbers in the units of the target."""
        if self.labels is None:
            # In double precision: single precision loses a small deviation from a large mean.
            return np.asarray(predicted, dtype=np.float64) * self.target[1] + self.target[0]
        return np.array([*self.labels, None], dtype=object)[predicted]  # class -1 is no label

    def encode(self, batch: data.Batch) -> np.ndarray:
        """The classes of a batch's labels; -1 for a label this model does not know, or none."""
        table = np.array([*positions(batch.label_names or (), self.labels or ()), -1], dtype=np.int64)
        return np.full(len(batch), -1) if batch.codes is None else table[batch.codes]

    def read(self, source: Any, **options: Any) -> data.Reader:
        """Read files as the training files were read; labels, and ids unless asked for, may be missing."""
        return data.read(source, **self.reading_options(**options))

    def reading_options(self, **options: Any) -> dict[str, Any]:
        """The options with which ``read`` reads, these ones among them."""
        usual: dict[str, Any] = {"labels": "optional", "task": self.task, "id_required": "id" in options}
        usual["expected"] = self.columns
        usual["table_required"] = False  # a model of CSV files takes other tables, too
        if "types" in self.reading and all(one.column is not None for one in self.features.extractors_):
            # files need not have columns that are no features
            columns = {*self.columns}
            usual["types"] = {name: kind for name, kind in self.reading["types"].items() if name in columns}
        usual["id_kept"] = "id" in options and options["id"] != self.reading.get("id")  # it may be a feature as well
        return {**self.reading, **usual, **options}

    @property
    def columns(self) -> list[str]:
        """The columns of a table that features are made of."""
        return list(dict.fromkeys(one.column for one in self.features.extractors_ if one.column is not None))

    # ------------------------------------------------------------------ explaining

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """(outputs, features) weights and (outputs,) intercepts; one output for two classes and for regression.

        Of a mixture they are those of its leader.
        """
        learner = self.learner.explained
        return np.atleast_2d(learner.coef_), np.atleast_1d(learner.intercept_)

    # ------------------------------------------------------------------ the model file

    def save(self, path: Any) -> None:
        """Write the model to a ``.onl`` file, with all that it needs to go on learning."""
        with self._lock:  # learning waits, so that the file holds one state
            self._check()
            with as_learner(self.learner).lock:
                model_file.save(self, path)

    def _check(self) -> None:
        """Refuse a model whose parts do not fit each other, before it is written and after it is read."""
        if self.labels is not None and len(self.labels) != len(self.learner.classes_):
            raise model_file.ModelFileError(
                f"{len(self.labels)} labels do not go with {len(self.learner.classes_)} classes"
            )
        classes = self.learner.classes_ if self.task == "classify" else np.zeros(0, np.int64)
        if classes.dtype.kind not in "iu" or classes.tolist() != list(range(len(classes))):
            raise model_file.ModelFileError("the classes of the learner are not the numbers of the labels")
        width = 1 if self.compares_texts else self.learner.n_features_in_
        if not 0 < width <= self.features.n_features_out_:
            raise model_file.ModelFileError(
                f"a learner of {width} features does not go with {self.features.n_features_out_} names"
            )

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """No parameters: the facts hold everything."""
        return {}

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        learner, own = model_file.describe(self.learner)
        arrays = {f"learner.{key}": array for key, array in own.items()}
        features, far, made = _pack_features(self.features, self.far)
        arrays.update(made)
        facts = {
            "task": self.task,
            "labels": self.labels,
            "reading": self.reading,
            "trained": self.trained,
            "target": list(self.target),
            "far": far,
        }
        if self.threshold is not None:
            facts["threshold"] = self.threshold.facts(self.labels or [])
        if self.before is not None:
            *facts["before"], made = _pack_features(*self.before)
            arrays.update({f"before.{key}": array for key, array in made.items()})
        return {"model": facts, "features": features, "inner": learner}, arrays

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, FILED)
        self.learner = model_file.rebuild(facts["inner"], under("learner.", arrays))
        if not isinstance(self.learner, BaseLearner):
            raise model_file.ModelFileError(
                f"it holds a {facts['inner']['learner']} where a model has a learner of rows"
            )
        self._unpack_rest(facts, arrays)
        self._check()

    def _unpack_rest(self, facts: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """All but the learner."""
        check_facts(facts, FILED)
        mine = facts["model"]
        check_reading(mine["reading"])
        check_trained(mine["trained"], "model.trained")
        self.task, self.labels, self.reading, self.trained = (
            mine[key] for key in ("task", "labels", "reading", "trained")
        )
        mean, deviation = mine["target"]
        self.target = float(mean), float(deviation)
        self.features, self.far = _unpack_features(facts["features"], mine.get("far", far_indices.UNSAID), arrays)
        if mine.get("threshold") is not None:
            self.set_threshold(mine["threshold"]["probability"], mine["threshold"]["positive"])
        if mine.get("before") is not None:
            features, far = mine["before"]
            self.before = _unpack_features(features, far, under("before.", arrays))


def _is_table(columns: dict[str, Any]) -> bool:
    """Whether the values of a dict are columns, not single cells."""
    return any(hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict)) for value in columns.values())


def _pack_features(features: Any, far: FarIndices) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """The features in a model file: their facts, facts about far indices, and arrays."""
    (facts, made), (about, seen) = features.pack(), far.pack()
    arrays = {f"features.{key}": array for key, array in made.items()}
    return facts, about, {**arrays, **{f"far.{key}": array for key, array in seen.items()}}


def _unpack_features(facts: Any, about: Any, arrays: Mapping[str, np.ndarray]) -> tuple[Any, FarIndices]:
    kind: Any = Strings if "strings" in facts else FeatureMap
    return kind.restore(facts, under("features.", arrays)), far_indices.unpack(about, under("far.", arrays))


FEATURES = NESTED  # which features and far indices check themselves
FILED = Record(
    model=Record(
        task=one_of("classify", "regress", "rank", MULTILABEL),
        labels=either(None, NAMES),
        reading=READING,
        trained=NESTED,
        target=TupleOf(FINITE, FINITE),
        far=OrMissing(FEATURES),
        threshold=OrMissing(Record(probability=finite(0, 1), positive=either(None, TEXT))),
        before=OrMissing(TupleOf(FEATURES, FEATURES)),
    ),
    features=FEATURES,
    inner=NESTED,
)


def predicted_codes(learner: Any, X: Any) -> np.ndarray:
    """The positions of what a learner predicts among its classes, which in a model are the positions themselves."""
    predicted, classes = learner.predict(X), learner.classes_
    if classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
        return predicted
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, predicted, sorter=order)]


def as_learner(learner: Any) -> Any:
    """The learner inside an estimator; learners and None are returned as they are."""
    return learner if learner is None or isinstance(learner, BaseLearner) else learner._as_learner()


def feature_name(model: Model, number: int) -> str:
    """The name of a feature: that of the feature map, or of the data frame's column that the learner learned from."""
    if model.learner.names is not None:
        return str(model.learner.names[number])
    far = model.far.name_of(number) if model.features.kind_ == MATRIX else None
    return far or str(model.features.name_of(number))

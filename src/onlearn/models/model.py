"""``Model``: a learner, the features it sees, and how its files are read. What ``onlearn train`` writes.

Raw rows go in (a table, texts, dicts, a matrix, a batch of a reader), labels come out. Inside, the learner knows
classes by number: class k is ``labels[k]``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn import data, model_file
from onlearn.data.arrow import decoded, from_strings, null
from onlearn.data.batch import as_parsed, as_public
from onlearn.data.table_roles import MISSING, flat
from onlearn.engine.csr import CSR
from onlearn.engine.labels import positions
from onlearn.features import Category, FeatureMap
from onlearn.features.feature_map import MATRIX, Strings
from onlearn.features.tables import as_source, column, is_plain_texts, is_text
from onlearn.models import far_indices
from onlearn.models.far_indices import Plain

if TYPE_CHECKING:
    from onlearn.models.explain import Explanation

# ----------------------------------------------------------------------------------------------------
# Rows from Python as readers give those of files: words for a missing value are one, dicts within are columns.


def as_in_files(rows: Any, features: Any, columns: list[str]) -> Any:
    """Rows that are a flat table, with ``?``, ``NA`` and the like missing in the columns that are looked at.

    A list of texts is taken as it is. So is a column of categories whose missing values have no feature: a category
    that was never seen has none either. Dicts that have some of the ``columns`` may lack others, as JSON lines may.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = as_source(rows)
    if not hasattr(table, "column_names") or is_plain_texts(table):
        return table
    table = flat(table)
    if isinstance(rows, (list, tuple)) and not {*columns}.isdisjoint(table.column_names):
        for name in columns:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows))
    for one in features.extractors_:
        name = str(one.column)
        if name not in table.column_names or (isinstance(one, Category) and one.missing == "absent"):
            continue
        values = column(table, name)
        if is_text(values.type):
            values = decoded(values).cast(pa.large_string())
            absent = pc.is_in(values, value_set=from_strings(MISSING, pa.large_string()))
            place = table.column_names.index(name)
            table = table.set_column(place, name, pc.if_else(absent, null(pa.large_string()), values))
    return table


class Model:
    """Predicts from raw rows, and is stored whole.

    ``features`` makes the matrix, ``learner`` is a ``Learner``, ``labels`` names its classes (None for
    regression), ``reading`` holds the options its files were read with, ``trained`` tells how that went, ``target`` the
    mean and the deviation that regression takes off its targets, and ``far`` where indices go that are too large for a
    weight each. ``before`` is, of an unfinished run that went on from a model, ``features`` and ``far`` as they were
    when it began. ``report_`` is what ``onlearn.train`` found out while it made the model; files do not hold it.
    """

    def __init__(self) -> None:
        self.features: Any = FeatureMap()  # or Strings
        self.learner: Any = None
        self.task = "classify"
        self.labels: list[str] | None = None
        self.reading: dict[str, Any] = {}
        self.trained: dict[str, Any] = {}
        self.target: tuple[float, float] = (0.0, 1.0)
        self.far: far_indices.Plain = far_indices.Behind()
        self.before: tuple[Any, far_indices.Plain] | None = None
        self.report_: dict[str, Any] = {}

    def __repr__(self) -> str:
        if self.learner is None:
            return "<Model that has learned nothing yet>"
        labels = self.labels or []
        what = f"of {len(labels)} labels ({', '.join(labels[:3])}{', ...' if len(labels) > 3 else ''})"
        from_what = f"{getattr(self.learner, 'n_features_in_', 'no')} features of {self.features.kind_}"
        told = "of numbers" if self.labels is None else what
        return f"<Model {told} by {name_of(self.learner)}, from {from_what}>"

    # ------------------------------------------------------------------ predicting

    def matrix(self, rows: Any) -> Any:
        """Numbered features of raw rows, as a SciPy matrix; or texts as they are, for a kernel that compares those."""
        return as_public(self.numbered(rows))

    def numbered(self, rows: Any) -> Any:
        """Numbered features of raw rows; words such as ``?`` and ``NA`` are missing values, as they are in files."""
        if isinstance(rows, (list, tuple)) and not rows:
            raise ValueError("there are no rows: X is empty")
        if isinstance(rows, data.Batch):
            refuse_sentences(rows)
            rows = rows.parsed
        else:
            rows = as_parsed(rows)
            if not isinstance(rows, CSR):
                return self.features.transform(as_in_files(rows, self.features, self.columns))
        return self.features.transform(self.far.narrow(rows) if isinstance(rows, CSR) else rows)

    def learner_for(self, X: Any) -> tuple[Any, Any]:
        """A learner that predicts for these rows of features, and the rows as it takes them."""
        return self.learner, X

    def scores(self, rows: Any) -> np.ndarray:
        """The learner's scores: one a row for two classes (positive: the second label), else one a class."""
        return np.asarray(self.learner.decision_function(self.numbered(rows)))

    def predict(self, rows: Any) -> np.ndarray:
        """The label of each row, or for regression the number."""
        return self.named(self.learner.predict(self.numbered(rows)))

    def predict_proba(self, rows: Any) -> np.ndarray:
        """The probability of each label, in the order of ``labels``."""
        if self.labels is None:
            raise ValueError("a regression model has no probabilities")
        return np.asarray(self.learner.predict_proba(self.numbered(rows)))

    # ------------------------------------------------------------------ learning, scoring, explaining

    def partial_fit(self, rows: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Model:
        """Learn from rows once, in their order. Takes rows as ``predict`` does, and their labels or numbers.

        A model that has learned nothing yet chooses features and learner by these rows, as ``onlearn.train`` does; all
        labels must be among them, or named by ``classes``, unless there are three or more.

        >>> model = Model().partial_fit(["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4)
        >>> model.predict(["cheap cheap pills"]).tolist()
        ['spam']
        >>> model.score(["pills", "lunch"], ["spam", "ham"])
        1.0
        """
        from onlearn.models.incremental import partial_fit

        partial_fit(self, rows, y, sample_weight, classes)
        return self

    def score(self, rows: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels predicted rightly; for regression, R2."""
        from onlearn.models.incremental import score

        return score(self, rows, y, sample_weight)

    def explain(self, row: Any) -> Explanation:
        """Which features moved the prediction of one row, the largest contribution first.

        The row is a dict, a text, or rows as ``predict`` takes them, of which there is one.

        >>> model = Model().partial_fit(["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4)
        >>> found = model.explain("cheap lunch")
        >>> found.prediction, [part.feature for part in found.parts]
        ('spam', ['cheap', 'lunch'])
        """
        from onlearn.models.explain import explain

        one = isinstance(row, str) or (isinstance(row, dict) and not any(map(_is_column, row.values())))
        return explain(self, [row] if one else row)

    def named(self, predicted: np.ndarray) -> np.ndarray:
        """What the learner predicted, in the words of the data."""
        if self.labels is None:
            # Wide, for single precision has no room for a small spread around a large mean.
            return np.asarray(predicted, dtype=np.float64) * self.target[1] + self.target[0]
        return np.array(self.labels, dtype=object)[predicted]

    def encode(self, batch: data.Batch) -> np.ndarray:
        """The classes of a batch's labels; -1 for a label this model does not know, or none."""
        table = np.array([*positions(batch.label_names or (), self.labels or ()), -1], dtype=np.int64)
        return np.full(len(batch), -1) if batch.codes is None else table[batch.codes]

    def read(self, source: Any, **options: Any) -> data.Reader:
        """Read files as those it was trained on were read; labels, and ids unless asked for, need not be there."""
        usual: dict[str, Any] = {"labels": "optional", "task": self.task, "id_required": "id" in options}
        usual["expected"] = self.columns
        usual["table_required"] = False  # a model of CSV files takes other tables, too
        usual["id_kept"] = "id" in options and options["id"] != self.reading.get("id")  # it may be a feature as well
        return data.read(source, **{**self.reading, **usual, **options})

    @property
    def columns(self) -> list[str]:
        """The columns of a table that it looks at."""
        return list(dict.fromkeys(one.column for one in self.features.extractors_ if one.column is not None))

    # ------------------------------------------------------------------ explaining

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """(outputs, features) weights and (outputs,) intercepts; one output for two classes and for regression."""
        return np.atleast_2d(self.learner.coef_), np.atleast_1d(self.learner.intercept_)

    # ------------------------------------------------------------------ the model file

    def save(self, path: Any) -> None:
        """Write the model to a ``.onl`` file, with all that it needs to go on learning."""
        self._check()
        model_file.save(self, path)

    def _check(self) -> None:
        """What must be true of a model before it is written, and after it is read."""
        if self.labels is not None and len(self.labels) != len(self.learner.classes_):
            raise model_file.ModelFileError(
                f"{len(self.labels)} labels do not go with {len(self.learner.classes_)} classes"
            )
        width = getattr(self.learner, "n_features_in_", 1)  # strings have no columns
        if not 0 < width <= self.features.n_features_out_:
            raise model_file.ModelFileError(
                f"a learner of {width} features does not go with {self.features.n_features_out_} names"
            )

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """None: all is in the facts."""
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
        if self.before is not None:
            *facts["before"], made = _pack_features(*self.before)
            arrays.update({f"before.{key}": array for key, array in made.items()})
        return {"model": facts, "features": features, "inner": learner}, arrays

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.learner = model_file.rebuild(facts["inner"], _under("learner.", arrays))
        self._unpack_rest(facts, arrays)
        self._check()

    def _unpack_rest(self, facts: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """All but the learner."""
        mine = facts["model"]
        self.task, self.labels, self.reading, self.trained = (
            mine[key] for key in ("task", "labels", "reading", "trained")
        )
        mean, deviation = mine["target"]
        self.target = float(mean), float(deviation)
        self.features, self.far = _unpack_features(facts["features"], mine.get("far", far_indices.BEFORE), arrays)
        if mine.get("before") is not None:
            features, far = mine["before"]
            self.before = _unpack_features(features, far, _under("before.", arrays))


def _is_column(value: Any) -> bool:
    """Whether a value of a dict is a column of a table, not a single cell."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict))


def refuse_sentences(batch: data.Batch) -> None:
    """Readers have them, and no learner does yet."""
    if isinstance(batch.parsed, data.Sentences):
        raise data.DataError(f"{batch.file} holds sentences, and no model here predicts from those")


def _pack_features(features: Any, far: far_indices.Plain) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """What the model file holds of features: facts of them, facts about indices that are far, and arrays."""
    (facts, made), (about, seen) = features.pack(), far.pack()
    arrays = {f"features.{key}": array for key, array in made.items()}
    return facts, about, {**arrays, **{f"far.{key}": array for key, array in seen.items()}}


def _unpack_features(facts: Any, about: Any, arrays: Mapping[str, np.ndarray]) -> tuple[Any, far_indices.Plain]:
    kind: Any = Strings if "strings" in facts else FeatureMap
    return kind.restore(facts, _under("features.", arrays)), far_indices.unpack(about, _under("far.", arrays))


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}


# ----------------------------------------------------------------------------------------------------
# ``open_model``: any model file as a ``Model``, also one that holds a bare learner saved from Python.


def open_model(path: str | os.PathLike[str]) -> Model:
    """The model in a file. A bare learner takes matrices: column k is feature k of an svmlight file.

    One that was taught strings takes the column ``text``.
    """
    found = load_learner(path)
    return found if isinstance(found, Model) else around(found)


def load_learner(path: str | os.PathLike[str]) -> Any:
    """What a file holds, a ``Model`` or a bare learner; transformers are saved in files of the same kind."""
    found = model_file.load_learner(path)
    if not hasattr(found, "predict"):
        raise model_file.ModelFileError(
            f"{path} holds a transformer ({type(found).__name__}), not a learner: "
            "it makes features for one, and predicts nothing itself"
        )
    return found


def as_learner(learner: Any) -> Any:
    """The learner inside an estimator; anything else as it is."""
    return learner.as_learner() if hasattr(learner, "as_learner") else learner


def name_of(learner: Any) -> str:
    """What a learner, or an estimator, is called."""
    return str(getattr(learner, "name", type(learner).__name__))


def around(learner: Any) -> Model:
    """A model around a learner, with the features it was taught in Python."""
    model = Model()
    model.learner, model.far = learner, Plain()
    if hasattr(learner, "n_features_in_"):
        model.features = FeatureMap()
        nothing = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(1, np.int32)
        model.features.learn(CSR(*nothing, (0, int(learner.n_features_in_))))
    else:  # it compares strings or trees
        model.features = Strings("text")
    if hasattr(learner, "classes_"):
        model.labels = [as_written(label) for label in learner.classes_]
    else:
        model.task = "regress"
    return model


def as_written(label: Any) -> str:
    """A class as a file would write it: whole numbers without a decimal point."""
    label = label.item() if hasattr(label, "item") else label
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def feature_name(model: Model, number: int) -> str:
    """The name of a feature: that of the pipeline, or the column's in the data frame a learner was taught with."""
    names = getattr(model.learner, "feature_names_in_", None)
    if names is not None:
        return str(names[number])
    far = model.far.name_of(number) if model.features.kind_ == MATRIX else None
    return far or model.features.name_of(number)

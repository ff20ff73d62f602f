"""Models from files: ``open_model``, and ``open_for_prediction``, which reads of a large file only what is needed.

To predict a few rows, the vocabulary is read, but of the weights only those of the features that occur. When there are
many rows, all weights are read.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from onlearn import model_file
from onlearn.engine.base_learner import BaseLearner
from onlearn.engine.csr import CSR, is_sparse, select
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.number_names import label_name
from onlearn.engine.stabilizers import STABILIZERS
from onlearn.features.feature_map import Strings
from onlearn.models.far_indices import AllColumns
from onlearn.models.model import Model
from onlearn.models.tag_files import is_tagger_file

LARGE = 8 << 20  # bytes of a file from which on it is read in parts
FEW = 16  # batches for which weights are read in parts; then all are read
PART = 8  # all weights are read for a batch that has more values than one in so many features


def open_model(path: str | os.PathLike[str]) -> Model:
    """The model in a file. A bare learner takes matrices: column k is feature k of an svmlight file.

    One that learned from strings takes the column ``text``.
    """
    found = load_learner(path)
    return found if isinstance(found, Model) else bare_model(found)


def load_learner(path: str | os.PathLike[str]) -> Any:
    """The ``Model`` or the bare learner in a file; a transformer, which files of the same kind hold, is refused."""
    if is_tagger_file(path):
        raise model_file.ModelFileError(f"{path} holds a tagger, which takes sentences and no rows")
    found = model_file.load_learner(path)
    if not isinstance(found, (Model, BaseLearner)):
        raise model_file.ModelFileError(
            f"{path} holds a transformer ({type(found).__name__}), not a learner: "
            "it makes features for one, and predicts nothing itself"
        )
    return found


def bare_model(learner: Any) -> Model:
    """A model of a learner that was trained in Python, on a matrix or on texts."""
    model = Model()
    model.learner, model.far = learner, AllColumns()
    if learner.takes_objects():
        model.features = Strings("text")
    else:
        nothing = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(1, np.int32)
        model.features.learn(CSR(*nothing, (0, int(learner.n_features_in_))))
    if learner.task.classifies:
        model.labels = [label_name(label) for label in learner.classes_]
    else:
        model.task = "regress"
    return model


class StoredModel(Model):
    """A model that predicts; the weights of its learner are read when they are needed."""

    kernel: Any = None  # only linear learners are read in parts

    def __init__(self, arrays: model_file.StoredArrays) -> None:
        self._learner: Any = None
        super().__init__()
        self._arrays, self._facts = arrays, arrays.header["inner"]
        self._times = 0
        self._unpack_rest(arrays.header, arrays)

    @property
    def learner(self) -> Any:
        """The whole learner."""
        if self._learner is None:
            own = {key: self._arrays[key] for key in self._arrays if key.startswith("learner.")}
            self._learner = model_file.rebuild(self._facts, {key.removeprefix("learner."): own[key] for key in own})
            self._check()
        return self._learner

    @learner.setter
    def learner(self, learner: Any) -> None:
        self._learner = learner

    def learner_for(self, X: Any) -> tuple[Any, Any]:
        """A learner of the features that these rows have, and the rows as it takes them."""
        known = int(self._facts["estimator"]["n_features_in"])
        self._times += 1
        if self._learner is not None or self._times > FEW or not is_sparse(X) or X.nnz * PART > known:
            return self.learner, X
        columns = np.unique(X.indices)
        columns = columns[columns < known]
        made = self._learner_of(columns)
        if made is None:
            return self.learner, X
        places = np.full(X.shape[1], -1, np.int64)
        places[columns] = np.arange(len(columns))
        return made, select(X, places, len(columns))

    def _learner_of(self, columns: np.ndarray) -> Any:
        """A learner of some features only; None if its weights depend on each other."""
        training = self._facts["training"]
        outputs = int(training["outputs"])
        size = (int(training["capacity"]) + 1) * outputs
        rows = np.concatenate([[0], columns.astype(np.int64) + 1])  # row 0 is the intercept
        arrays = {}
        for key in self._arrays:
            if key.startswith("learner."):
                of_weights = key.startswith(("learner.training.g.", "learner.training.st."))
                whole = of_weights and self._arrays.size(key) == size
                array = self._arrays.rows(key, rows, outputs) if whole else self._arrays[key]
                arrays[key.removeprefix("learner.")] = array
        facts = {
            **self._facts,
            "training": {**training, "features": len(columns), "capacity": len(columns)},
            "estimator": {**self._facts["estimator"], "n_features_in": len(columns), "feature_names_in": None},
        }
        try:
            return model_file.rebuild(facts, arrays)
        except ValueError:  # the whole learner may load, or its error says what is wrong
            return None


def open_for_prediction(path: str | os.PathLike[str]) -> Model:
    """The model in a file, to predict with; of a large file no more is read than rows need."""
    if not os.path.isfile(path) or os.path.getsize(path) < LARGE:
        return open_model(path)
    header = model_file.read_header(path)
    if header.get("learner") != "Model" or not _can_be_split(header.get("inner", {})):
        return open_model(path)
    try:
        return StoredModel(model_file.StoredArrays(path))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return open_model(path)  # which says what is wrong


def _can_be_split(inner: dict[str, Any]) -> bool:
    """Whether the weights of some features can be used without those of others."""
    if "dual" in inner or "training" not in inner or "estimator" not in inner:
        return False
    if "geometry" not in inner["training"]:  # not a linear learner
        return False
    geometry = GEOMETRIES.get(inner["training"]["geometry"])
    stabilizer = STABILIZERS.get(inner["training"]["stabilizer"])
    return not (geometry.normalised or stabilizer.every_hypothesis)

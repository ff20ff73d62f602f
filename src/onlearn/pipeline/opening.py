"""``open_model``: any model file as a ``Model``, also one that holds a bare learner saved from Python."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn import store
from onlearn.features import Features
from onlearn.features.transformer import MATRIX
from onlearn.pipeline.farindices import Plain
from onlearn.pipeline.model import Model
from onlearn.pipeline.strings import Strings


def open_model(path: str | os.PathLike[str]) -> Model:
    """The model in a file. A bare learner takes matrices: column k is feature k of an svmlight file.

    One that was taught strings takes the column ``text``.
    """
    found = load_learner(path)
    return found if isinstance(found, Model) else around(found)


def load_learner(path: str | os.PathLike[str]) -> Any:
    """What a file holds, a ``Model`` or a bare learner; transformers are saved in files of the same kind."""
    found = store.load(path)
    if not hasattr(found, "predict"):
        raise store.ModelFileError(
            f"{path} holds a transformer ({type(found).__name__}), not a learner: "
            "it makes features for one, and predicts nothing itself"
        )
    return found


def around(learner: Any) -> Model:
    """A model around a learner, with the features it was taught in Python."""
    model = Model()
    model.learner, model.far = learner, Plain()
    if hasattr(learner, "n_features_in_"):
        model.features = Features().fit(sp.csr_matrix((1, int(learner.n_features_in_)), dtype=np.float32))
        model.features.n_seen_ = 0
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

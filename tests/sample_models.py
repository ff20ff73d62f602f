"""Models for tests of what is done with them, made without the command that trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import onlearn
from onlearn import data
from onlearn.features import FeatureMap
from onlearn.models import Model

MESSAGES = [
    ("spam", "win cash now, buy cheap pills"),
    ("ham", "see you at lunch tomorrow, my friend"),
    ("spam", "cheap pills and free cash prizes"),
    ("ham", "are you coming to lunch with my sister"),
]


def trained(path: Path, learner: Any = None, extractors: Any = "auto", task: str = "classify", **reading: Any) -> Model:
    """A model of all rows of a file, in one pass and in their order."""
    X, y = data.load(path, task=task, **reading)
    model = Model()
    model.task, model.reading = task, dict(reading)
    model.features = FeatureMap(extractors)
    matrix = model.features.learn_transform(X).to_scipy()
    if task == "regress":
        model.learner = learner or onlearn.OnlineRegressor("lms", "adagrad(0.5)", random_state=0)
        model.target = float(np.mean(y)), float(np.std(y))
        model.learner.partial_fit(matrix, (y - model.target[0]) / model.target[1])
    else:
        model.labels = sorted(set(y))
        model.learner = learner or onlearn.AdaGrad(random_state=0)
        codes = np.searchsorted(np.array(model.labels, dtype=object), y)
        model.learner.partial_fit(matrix, codes, classes=np.arange(len(model.labels)))
    model.trained = {"sources": [str(path)], "rows": len(y)}
    return model

"""What support examples say about a row: in the dual, a row's features are its kernel values with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.pipeline.model import Model
from onlearn.pipeline.opening import feature_name

WORDS = 60  # characters of a text that are shown
SHOWN = 4  # features of an example


def is_dual(model: Model) -> bool:
    """Whether the weights of a model belong to support examples."""
    return getattr(model.learner, "representation_", None) == "dual"


def kernel_values(model: Model, X: Any) -> np.ndarray:
    """The kernel values of rows with the support examples, one line a row."""
    learner = model.learner
    points = learner._check_rows(X, reset=False).points
    return np.asarray(learner._training.supports.products(points), dtype=np.float64)


def dual_weights(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Weights (outputs x support examples) and intercepts."""
    return np.atleast_2d(model.learner.dual_coef_), np.atleast_1d(model.learner.intercept_)


def example_name(model: Model, number: int) -> str:
    """A support example in a few words: the beginning of a text, or its largest features."""
    examples = model.learner.support_examples_
    if not hasattr(examples, "shape"):
        text = " ".join(str(examples[number]).split())
        return text if len(text) <= WORDS else f"{text[: WORDS - 3]}..."
    row = examples[number]
    if sp.issparse(row):
        columns, values = row.indices, row.data
    else:
        columns = np.flatnonzero(row)
        values = row[columns]
    largest = np.argsort(-np.abs(values), kind="stable")[:SHOWN]
    parts = [with_value(feature_name(model, int(columns[k])), float(values[k])) for k in largest]
    return ", ".join([*parts, *(["..."] if len(values) > SHOWN else [])]) or "an empty row"


def with_value(name: str, value: float) -> str:
    """A feature and its value; that something is there, which is 1, goes without saying."""
    return name if value == 1.0 else f"{name} {value:.3g}"

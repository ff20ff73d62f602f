"""Explanations: the largest weights of a model, and the contribution of each feature to one prediction.

A linear score is a sum: intercept + sum of value x weight. In the dual, the features of a row are its kernel values
with the support examples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.data.batch import rows_in
from onlearn.engine.base_learner import Contributions
from onlearn.engine.csr import is_sparse
from onlearn.models.model import Model, feature_name

WORDS = 60  # characters of a text that are shown
SHOWN = 4  # features of an example


def is_dual(model: Model) -> bool:
    """Whether the weights of a model belong to support examples."""
    return bool(model.learner.representation == "dual") or model.learner.example_weights() is not None


def dual_weights(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Weights (outputs x support examples) and intercepts."""
    if (found := model.learner.example_weights()) is not None:
        return found
    return np.atleast_2d(model.learner.dual_coef_), np.atleast_1d(model.learner.intercept_)


def example_name(model: Model, number: int) -> str:
    """A short name of a support example: the beginning of its text, or its largest features."""
    examples = model.learner.kept_examples()
    if model.compares_texts:
        text = " ".join(str(examples[number]).split())
        return text if len(text) <= WORDS else f"{text[: WORDS - 3]}..."
    if is_sparse(examples):
        held = slice(examples.indptr[number], examples.indptr[number + 1])
        columns, values = examples.indices[held], examples.data[held]
    else:
        columns = np.flatnonzero(examples[number])
        values = examples[number, columns]
    largest = np.argsort(-np.abs(values), kind="stable")[:SHOWN]
    parts = [with_value(feature_name(model, int(columns[k])), float(values[k])) for k in largest]
    return ", ".join([*parts, *(["..."] if len(values) > SHOWN else [])]) or "an empty row"


def with_value(name: str, value: float) -> str:
    """A feature and its value, unless that is 1."""
    return name if value == 1.0 else f"{name} {value:.3g}"


VOTED = "a voted learner is many hypotheses, so no single weights explain it"
PRIMAL = "its weights are of the kernel's features, which are products of ours and have no names"


class Part(NamedTuple):
    """The contribution of one feature, or support example, to a score."""

    feature: str
    value: float
    weight: float
    contribution: float


class Explanation(NamedTuple):
    """``total`` is the sum of the intercept and all contributions. Those above zero speak for ``favours``, others for
    ``against``: of two classes the second and the first, of several the predicted one and the runner-up. Regression
    has neither; its total is the prediction.
    """

    prediction: Any
    probability: float | None
    favours: str | None
    against: str | None
    intercept: float
    total: float
    parts: list[Part]  # by absolute contribution, the largest first
    of: str = "features"  # or "examples": the parts are support examples
    by: str | None = None  # of a mixture, the leader: it is explained, and its prediction may differ from the mixture's
    value_name: str | None = None  # what the values of the parts are, if not values of features or kernel values
    note: str | None = None  # what a reader has to know, such as that it is an approximation


def explain(model: Model, rows: Any) -> Explanation:
    """The explanation of the prediction of one row."""
    X = model.numbered(rows)
    count = rows_in(X)
    if count != 1:
        raise ValueError(f"one row is explained at a time, not {count}")
    if not (model.learner.explained.is_linear or model.learner.representation):
        return explain_parts(model, rows, model.learner.contributions(X))
    coef, intercepts = weights(model)
    name_of = feature_name
    if is_dual(model):
        columns, values = np.arange(coef.shape[1]), model.learner.kernel_values(X)[0]
        name_of = example_name
    else:
        columns, values = X.indices[: X.nnz], X.data[: X.nnz].astype(np.float64)
    known = columns < coef.shape[1]
    columns, values = columns[known], values[known]
    favours = against = None
    probability = None
    if len(intercepts) == 1:
        weight, intercept = coef[0, columns], float(intercepts[0])
        if model.labels is not None:
            against, favours = model.labels
    else:
        scores = np.asarray(coef[:, columns] @ values + intercepts)
        best, second = np.argsort(-scores, kind="stable")[:2]
        weight, intercept = coef[best, columns] - coef[second, columns], float(intercepts[best] - intercepts[second])
        assert model.labels is not None
        favours, against = model.labels[best], model.labels[second]
    amounts = values * weight + 0.0  # -0 is 0
    total = float(amounts.sum()) + intercept
    prediction: Any = total
    if favours is not None:
        prediction = favours if total > 0 or len(intercepts) > 1 else against
        assert model.labels is not None
        probability = float(model.predict_proba(rows)[0, model.labels.index(prediction)])
    order = np.argsort(-np.abs(amounts), kind="stable")
    parts = [
        Part(name_of(model, int(columns[k])), float(values[k]), float(weight[k]), float(amounts[k])) for k in order
    ]
    of = "examples" if is_dual(model) else "features"
    return Explanation(prediction, probability, favours, against, intercept, total, parts, of, leader(model))


def explain_parts(model: Model, rows: Any, found: Contributions) -> Explanation:
    """The explanation that a learner gives itself, in terms of features or of examples that it keeps."""
    mean, size = model.target if model.labels is None else (0.0, 1.0)
    if found.are_shares:  # of a mean of targets: the mean of all is in each of them
        intercept, weight = found.intercept, found.weights
        amounts = found.amounts * size + found.weights * mean
    else:
        intercept = found.intercept * size + mean
        amounts, weight = found.amounts * size, found.weights * size
    prediction = model.predict(rows)[0]
    favours = against = probability = None
    if model.labels is not None:
        favours, against = model.labels[found.favours], model.labels[found.against]
        probability = float(model.predict_proba(rows)[0, model.labels.index(prediction)])
    name_of = example_name if found.of == "examples" else feature_name
    order = np.argsort(-np.abs(amounts), kind="stable")
    parts = [
        Part(name_of(model, int(found.numbers[k])), float(found.values[k]), float(weight[k]), float(amounts[k]))
        for k in order
    ]
    total = float(amounts.sum()) + intercept
    return Explanation(
        prediction, probability, favours, against, intercept, total, parts, found.of, None, found.value_name, found.note
    )


def leader(model: Model) -> str | None:
    """Of a mixture the learner whose weights are shown, and how much it counts."""
    explained = model.learner.explained
    if explained is model.learner:
        return None
    return f"{' '.join(repr(explained).split())}, which counts {model.learner.weights_.max():.3g}"


def weights(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Weights (outputs x features, or x support examples) and intercepts in double precision; an error for learners
    that have none. In regression they are in the units of the target, not of what was learned."""
    if model.learner.representation == "primal":
        raise ValueError(PRIMAL)
    try:
        coef, intercepts = dual_weights(model) if is_dual(model) else model.weights()
    except AttributeError as error:
        raise ValueError(VOTED if model.learner.explained.is_linear else str(error)) from error
    coef, intercepts = coef.astype(np.float64, copy=False), intercepts.astype(np.float64, copy=False)
    if model.labels is None:
        mean, size = model.target
        return coef * size, intercepts * size + mean
    return coef, intercepts


def top_weights(model: Model, count: int, label: str | None = None) -> dict[str, list[tuple[str, float]]]:
    """For each label the features with the largest weights; in regression, those with the largest absolute weights.

    With a kernel they are support examples. Two classes share one row of weights: positive ones are for the second
    label, negative ones for the first.
    """
    coef, _ = weights(model)
    if len(coef) > 1 and not (model.learner.explained.is_linear or is_dual(model)):
        coef = coef - coef.mean(axis=0)  # logarithms of probabilities speak by how much they differ
    name_of = example_name if is_dual(model) else feature_name
    if model.labels is None:
        places = largest(np.abs(coef[0]), count)
        return {"target": [(name_of(model, k), float(coef[0, k])) for k in places]}
    found = {}
    for k, name in enumerate(model.labels):
        if label is None or label == name:
            line = coef[k] if len(coef) > 1 else coef[0] * (1 if k else -1)
            found[name] = [(name_of(model, n), float(line[n])) for n in largest(line, count) if line[n] > 0]
    return found


def largest(values: np.ndarray, count: int) -> list[int]:
    """The positions of the largest values, in descending order; the first among equals."""
    if count < len(values):
        least = np.partition(values, len(values) - count)[len(values) - count] if count else np.inf
        places = np.flatnonzero(values >= least)
    else:
        places = np.arange(len(values))
    return places[np.argsort(-values[places], kind="stable")][:count].tolist()

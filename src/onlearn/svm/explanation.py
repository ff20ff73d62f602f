"""Explanations of predictions by support vectors: which of them decided."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.engine.base_learner import Contributions
from onlearn.svm.hypothesis import Hypothesis
from onlearn.svm.multiclass import ballots, class_scores, pairs


def class_weights(of: Hypothesis, classes: int, kind: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights of the support vectors, one row a class (one for two classes), and intercepts.

    With one-vs-one those of a class are the sums over its pairs. None in the primal.
    """
    if of.supports is None:
        return None
    if classes > 2 and kind == "one-vs-one":
        which = ballots(classes).T
        return which @ of.coefs.T, which @ of.intercepts
    return of.coefs.T, of.intercepts


def explained(of: Hypothesis, points: Any, classes: int, kind: str) -> Contributions:
    """What the support vectors add to the score of one example; with several classes, to the best over the second."""
    assert of.supports is not None
    values = np.asarray(of.supports.products(points), dtype=np.float64)[0]
    weights, intercept, favours, against = _deciding(of, values @ of.coefs + of.intercepts, classes, kind)
    numbers = np.arange(len(values))
    return Contributions(numbers, values, weights, values * weights, intercept, favours, against, "examples")


def _deciding(of: Hypothesis, decisions: np.ndarray, classes: int, kind: str) -> tuple[np.ndarray, float, int, int]:
    """The weights and the intercept that decide, and the classes that they speak for and against."""
    if classes <= 2:
        return of.coefs[:, 0], float(of.intercepts[0]), 1, 0
    scores = class_scores(decisions[None], classes, kind)[0]
    best, second = (int(one) for one in np.argsort(-scores, kind="stable")[:2])
    if kind == "one-vs-all":
        weights = of.coefs[:, best] - of.coefs[:, second]
        return weights, float(of.intercepts[best] - of.intercepts[second]), best, second
    problem = pairs(classes, kind).index((min(best, second), max(best, second)))
    sign = 1.0 if best > second else -1.0
    return sign * of.coefs[:, problem], sign * float(of.intercepts[problem]), best, second

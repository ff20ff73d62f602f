"""The best labels of each row, by probability; scores decide where probabilities are equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class TopLabels(NamedTuple):
    """Classes, probabilities and scores of the best labels of each row, the best first: (rows, k) each."""

    codes: np.ndarray
    proba: np.ndarray
    scores: np.ndarray


def top_labels(proba: np.ndarray, scores: np.ndarray, k: int) -> TopLabels:
    """The ``k`` best labels of each row, all if there are fewer; ``scores`` as ``decision_function`` gives them.

    Probabilities of labels that have none to speak of may all be rounded to 0: then the order is that of the scores,
    and of the labels where even those are equal.

    >>> top_labels(np.array([[0.2, 0.5, 0.3]]), np.array([[0.1, 0.9, 0.4]]), 2).codes.tolist()
    [[1, 2]]
    """
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"the number of best labels must be a whole number of at least 1, not {k!r}")
    scores = scores.reshape(len(proba), -1)
    if scores.shape[1] == 1 and proba.shape[1] == 2:  # of two labels, positive for the second
        scores = np.concatenate([-scores, scores], axis=1)
    k = min(k, proba.shape[1])
    order = np.lexsort((-scores, -proba), axis=1)[:, :k]
    rows = np.arange(len(proba))[:, None]
    return TopLabels(order, proba[rows, order], scores[rows, order])

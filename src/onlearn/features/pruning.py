"""Fewer features: those that are too rare before training, those that weigh next to nothing after."""

from __future__ import annotations

from typing import Any

import numpy as np


class Counts:
    """In how many rows each feature is, in all or by class, counted batch by batch.

    >>> from scipy.sparse import csr_matrix
    >>> counts = Counts()
    >>> counts.add(csr_matrix([[1, 0, 3], [0, 0, 1]]))
    >>> counts.often(2)
    array([2])
    """

    def __init__(self) -> None:
        self.classes: dict[Any, int] = {}
        self.by_class: list[np.ndarray] = []

    def add(self, X: Any, y: Any = None) -> None:
        """Count these rows, a matrix in CSR format; without labels all are of one class."""
        labels = np.zeros(X.shape[0], np.int64) if y is None else np.asarray(y)
        if len(labels) != X.shape[0]:
            raise ValueError(f"there are {X.shape[0]} rows but {len(labels)} labels")
        counted = X.data != 0
        for label in dict.fromkeys(labels.tolist()):
            chosen = counted if y is None else counted & np.repeat(labels == label, np.diff(X.indptr))
            found = np.bincount(X.indices[chosen], minlength=X.shape[1])
            place = self.classes.setdefault(label, len(self.by_class))
            if place == len(self.by_class):
                self.by_class.append(np.zeros(0, np.int64))
            self.by_class[place] = _sum(self.by_class[place], found)

    def often(self, min_count: int, per_class: bool = False) -> np.ndarray:
        """The features that are in at least so many rows; with ``per_class`` in so many of at least one class."""
        if not self.by_class:
            return np.zeros(0, np.int64)
        width = max(map(len, self.by_class))
        counts = np.array([_sum(one, np.zeros(width, np.int64)) for one in self.by_class])
        return np.flatnonzero((counts.max(axis=0) if per_class else counts.sum(axis=0)) >= min_count)


def _sum(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The sum of arrays, the shorter one continued by zeros."""
    long, short = (first, second) if len(first) >= len(second) else (second, first)
    made = long.astype(np.int64)
    made[: len(short)] += short
    return made


def prune(features: Any, X: Any, y: Any = None, min_count: int = 2, per_class: bool = False) -> np.ndarray:
    """Keep the features that are in at least ``min_count`` rows (of one class, with ``per_class``).

    Numbers the vocabulary of ``features`` anew and returns the columns that remain, so that ``X[:, kept]`` goes with
    it. From then on no new names are taken in.
    """
    if per_class and y is None:
        raise ValueError("per_class counts rows of each class: give their labels, y")
    counts = Counts()
    counts.add(X, y if per_class else None)
    return np.asarray(features.keep(counts.often(min_count, per_class)))


def prune_weights(features: Any, weights: np.ndarray, size: float) -> np.ndarray:
    """Keep the features that weigh more than ``size`` for some output; ``weights`` is (outputs, features) as ``coef_``.

    Numbers the vocabulary anew and returns the columns that remain, so that ``weights[:, kept]`` goes with it.
    """
    weights = np.atleast_2d(weights)
    if weights.shape[1] != features.n_features_out_:
        raise ValueError(f"there are weights for {weights.shape[1]} features, but {features.n_features_out_} features")
    return np.asarray(features.keep(np.flatnonzero(np.abs(weights).max(axis=0) > size)))

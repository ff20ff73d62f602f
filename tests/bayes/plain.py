"""Naive Bayes as a textbook has it: plain loops over dense rows, the oracle of the tests."""

from __future__ import annotations

import numpy as np


def class_weights(y, weight, classes):
    return np.array([weight[y == c].sum() for c in range(classes)])


def sums(X, y, weight, classes):
    return np.array([(weight[y == c, None] * X[y == c]).sum(axis=0) for c in range(classes)])


def multinomial(X, y, weight, classes, alpha, T, groups=None):
    """log p(x | class) of the rows T."""
    n = sums(X, y, weight, classes) + alpha
    groups = np.zeros(X.shape[1], int) if groups is None else groups
    theta = np.empty_like(n)
    for g in np.unique(groups):
        mine = groups == g
        theta[:, mine] = n[:, mine] / n[:, mine].sum(axis=1, keepdims=True)
    return T @ np.log(theta).T


def bernoulli(X, y, weight, classes, alpha, T, threshold=0.0):
    n, N = sums((threshold < X) * 1.0, y, weight, classes), class_weights(y, weight, classes)
    theta = (n + alpha) / (N + 2 * alpha)[:, None]
    B = (threshold < T) * 1.0
    return B @ np.log(theta).T + (1 - B) @ np.log(1 - theta).T


def complement(X, y, weight, classes, alpha, T, norm=False):
    n = sums(X, y, weight, classes)
    other = n.sum(axis=0) - n + alpha
    w = -np.log(other / other.sum(axis=1, keepdims=True))
    if norm:  # of one column nothing can be said
        w = w / w.sum(axis=1, keepdims=True) if X.shape[1] > 1 else 0 * w
    return T @ w.T


def gaussian(X, y, weight, classes, smoothing, T):
    scores = np.empty((len(T), classes))
    mean = np.average(X, axis=0, weights=weight)
    floor = smoothing * np.average((X - mean) ** 2, axis=0, weights=weight).max()
    for c in range(classes):
        mine = y == c
        m = np.average(X[mine], axis=0, weights=weight[mine])
        v = np.average((X[mine] - m) ** 2, axis=0, weights=weight[mine]) + floor
        scores[:, c] = -0.5 * (np.log(2 * np.pi * v) + (T - m) ** 2 / v).sum(axis=1)
    return scores

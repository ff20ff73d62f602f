"""String kernels on DNA: promoters, and the borders between what a gene keeps and what it cuts out (splice)."""

from __future__ import annotations

import numpy as np

from onlearn.kernels import Substrings


def sequences(path):
    """Label and sequence of each line."""
    rows = [line.split(",") for line in path.read_text().splitlines() if line.strip()]
    return [row[-1].strip().upper() for row in rows], np.array([row[0].strip() for row in rows])


def perceptron(K, y, passes=10):
    """Coefficients of a kernel perceptron, averaged over all steps."""
    a, total = np.zeros(len(y)), np.zeros(len(y))
    for i in [*range(len(y))] * passes:
        a[i] += y[i] * (y[i] * (K[i] @ a) <= 0)
        total += a
    return total


def normalized(k, X, Z):
    return k(X, Z) / np.sqrt(np.outer(k.diag(X), k.diag(Z)))


def test_promoters(data):
    X, labels = sequences(data("promoters") / "promoters.data")
    y = np.where(labels == "+", 1, -1)
    K = normalized(Substrings(3, 6), X, X)
    order = np.random.default_rng(0).permutation(len(X))
    right = 0
    for fold in np.array_split(order, 5):
        rest = np.setdiff1d(order, fold)
        rest = rest[np.random.default_rng(1).permutation(len(rest))]
        a = perceptron(K[np.ix_(rest, rest)], y[rest])
        right += np.sum(np.sign(K[np.ix_(fold, rest)] @ a) == y[fold])
    assert right / len(X) >= 0.75  # half of them are promoters


def test_splice(data):
    X, labels = sequences(data("splice") / "splice.data")
    # The border is in the middle: where a substring stands matters, which this kernel cannot see but in a short window.
    X = [x[24:36] for x in X]
    y = np.where(labels == "N", -1, 1)  # 1,655 of 3,190 are no border
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:800], order[800:1600]
    few, others = [X[i] for i in train], [X[i] for i in test]
    k = Substrings(1, 6)
    a = perceptron(normalized(k, few, few), y[train])
    plain = np.sign(normalized(k, others, few) @ a)
    assert np.mean(plain == y[test]) >= 0.75
    merged = k.merged(k.points(few), a / np.sqrt(k.diag(few))).scores(k.points(others))[:, 0]
    assert (np.sign(merged) == plain).all()

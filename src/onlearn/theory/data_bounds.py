"""Mistake bounds of data: each function checks the assumptions of its theorem on the rows, and computes the rest.

| function | what is checked | what is computed |
|---|---|---|
| `perceptron` | a vector separates the classes | R, the largest margin |
| `perceptron_noisy` | nothing | R, and the best margin and D2 of the target |
| `winnow` | the labels are a monotone disjunction | n, k |
| `normalized_winnow` | u >= 0 separates, max|x|_inf <= 1 | p, the margin at |u|_1 = 1 |
| `normalized_winnow_noisy` | u >= 0, max|x|_inf <= 1 | p, and the best margin, D1 and eta |
| `elimination` | the labels are a conjunction | n |
| `consistent`, `halving` | a concept of the class gives the labels | the size of the class |

Rows are dense or sparse; y is -1 or +1, or any two labels. A constant feature for the intercept is a column like the
others. A target u that is not given is the best there is. An assumption that fails raises ``ValueError``. `additive`
and `multiplicative` in `bounds` are such functions, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.theory import bounds
from onlearn.theory.max_margin import maximum_margin
from onlearn.theory.separable import Floats, as_rows, blocks, radii, scores, signed_labels, simplex_margin, stored
from onlearn.theory.theorems import smallest_disjunction


def perceptron(X: Any, y: ArrayLike, u: ArrayLike | None = None) -> float:
    """(R / g)^2 of rows that a vector u through the origin separates; without u, the one with the largest margin.

    >>> round(perceptron([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]], [0, 0, 0, 1]), 6)  # logical and
    51.0
    """
    X = as_rows(X)
    labels = signed_labels(y, X.shape[0])
    if u is not None:
        return bounds.additive(u, X, labels)
    found = maximum_margin(X, labels)
    if found is None:
        raise ValueError("No vector was found that separates the classes: use perceptron_noisy.")
    return bounds.perceptron(radii(X)[0], found[0])


def perceptron_noisy(X: Any, y: ArrayLike, u: ArrayLike, passes: float = 1) -> bounds.NoisyBound:
    """The smallest ((R + D2) / g)^2 over all margins g, for a target u that need not separate the rows.

    >>> perceptron_noisy([[1.0], [1.0], [1.0], [-1.0]] * 5, [1, 1, 1, 1] * 5, [1.0]).value < 20
    True
    """
    X = as_rows(X)
    labels, weights = signed_labels(y, X.shape[0]), _weights(u, X)
    norm = float(np.linalg.norm(weights))
    if norm == 0.0:
        raise ValueError("u must not be zero.")
    return bounds.perceptron_noisy_best(radii(X)[0], labels * scores(X, weights / norm), passes)


def winnow(X: Any, y: ArrayLike, alpha: float = 2.0, threshold: float | None = None) -> float:
    """Winnow's bound, for the smallest monotone disjunction found that explains the labels of 0/1 rows.

    >>> winnow([[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 1]], [1, 1, 0])  # x1 or x2
    20.0
    """
    X = as_rows(X)
    k = smallest_disjunction(X, signed_labels(y, X.shape[0]) > 0.0)
    if k is None:
        raise ValueError("The labels are not a monotone disjunction of 0/1 features.")
    return bounds.winnow(X.shape[1], k, alpha, threshold)


def normalized_winnow(X: Any, y: ArrayLike, u: ArrayLike | None = None, eta: float | None = None) -> float:
    """Normalised Winnow's bound for a target u >= 0 that separates, by default that with the largest margin.

    >>> round(normalized_winnow([[1, 0, 1], [0, 1, -1]], [1, 1]), 2)  # a margin of 1/2
    8.4
    """
    p, signed = _on_simplex(X, y, u)
    margin = float(signed.min())
    if margin <= 0.0:
        raise ValueError(f"u does not separate the rows: its smallest y u.x is {margin:g}.")
    return bounds.normalized_winnow(p, min(1.0, margin), eta)


def normalized_winnow_noisy(
    X: Any, y: ArrayLike, u: ArrayLike, passes: float = 1, eta: float | None = None
) -> bounds.NoisyWinnowBound:
    """The smallest bound of normalised Winnow over all margins, for a target u >= 0 that need not separate the rows.

    >>> X, y = [[1.0, -1.0], [-1.0, 1.0]] * 50 + [[1.0, 1.0]], [1, -1] * 50 + [-1]
    >>> normalized_winnow_noisy(X, y, [1.0, 0.0]).value < 10
    True
    """
    p, signed = _on_simplex(X, y, u)
    return bounds.normalized_winnow_noisy_best(p, signed, passes, eta)


def elimination(X: Any, y: ArrayLike, monotone: bool = False) -> float:
    """Elimination's bound for rows of 0 and 1 whose labels are a conjunction of attributes, or of their negations too.

    >>> elimination([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 0], monotone=True)
    3.0
    """
    X = as_rows(X)
    positive = signed_labels(y, X.shape[0]) > 0.0
    ones, count = np.zeros(X.shape[1]), int(positive.sum())
    for start, block in blocks(X):
        row, column, value = stored(block)
        if not ((value == 0.0) | (value == 1.0)).all():
            raise ValueError("X must hold 0 and 1 only.")
        ones += np.bincount(column[positive[start + row]], value[positive[start + row]], X.shape[1])
    # The longest conjunction that no positive example denies; the labels are one only if it denies all negative ones.
    held, absent = (ones == count).astype(np.float64), ((ones == 0.0) & (count > 0)).astype(np.float64)
    truth = scores(X, held) == held.sum()
    if not monotone:
        truth &= scores(X, absent) == 0.0
        truth &= count > 0  # x1 and not x1: the conjunction that is never true
    if (truth & ~positive).any():
        kind = "monotone conjunction of attributes" if monotone else "conjunction of literals"
        raise ValueError(f"The labels are not a {kind}: see row {int(np.argmax(truth & ~positive))}.")
    return bounds.elimination(X.shape[1], monotone)


def consistent(X: Any, y: ArrayLike, concepts: Any) -> float:
    """|C| - 1 for rows of 0 and 1 that a concept of the class agrees with; ``concepts`` as for `Consistent`.

    >>> from onlearn.theory import conjunctions
    >>> consistent([[1, 1, 0], [0, 1, 1]], [1, 0], conjunctions(3))
    26.0
    """
    from onlearn.theory.halving import Consistent

    return _learned(Consistent, X, y, concepts)


def halving(X: Any, y: ArrayLike, concepts: Any) -> float:
    """log2 |C| for rows of 0 and 1 that a concept of the class agrees with; ``concepts`` as for `Halving`.

    >>> from onlearn.theory import conjunctions
    >>> round(halving([[1, 1, 0], [0, 1, 1]], [1, 0], conjunctions(3)), 2)
    4.75
    """
    from onlearn.theory.halving import Halving

    return _learned(Halving, X, y, concepts)


def _learned(learner: Any, X: Any, y: ArrayLike, concepts: Any) -> float:
    """The bound of a learner of concepts that has learned the rows, so that none contradicts its class."""
    X = as_rows(X)
    return float(learner(concepts, X.shape[1]).fit(X, signed_labels(y, X.shape[0]) > 0.0).bound)


def _weights(u: ArrayLike, X: Any) -> Floats:
    weights = np.asarray(u, dtype=np.float64)
    if weights.shape != (X.shape[1],) or not np.isfinite(weights).all():
        raise ValueError(f"u must hold {X.shape[1]} finite weights, one a column, but its shape is {weights.shape}.")
    return weights


def _on_simplex(X: Any, y: ArrayLike, u: ArrayLike | None) -> tuple[int, Floats]:
    """The number of weights, and y u.x of every row at |u|_1 = 1."""
    X = as_rows(X)
    labels, peak = signed_labels(y, X.shape[0]), radii(X)[1]
    if peak > 1.0:
        raise ValueError(f"The theorem is for max|x|_inf <= 1, but it is {peak:g}: divide the rows by it.")
    weights = simplex_margin(X, labels)[1] if u is None else _weights(u, X)
    if (weights < 0.0).any() or not weights.any():
        raise ValueError("u must not be negative, nor zero: a signed target needs columns for x and for -x.")
    return X.shape[1], np.asarray(labels * scores(X, weights / weights.sum()))

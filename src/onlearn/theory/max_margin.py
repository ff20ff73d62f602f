"""The maximum-margin separator: the target u for which the Perceptron's bound (R / g)^2 is smallest.

Let z_i = y_i x_i. The u with |u|_2 = 1 and the largest g = min u.z_i is w / |w| for the shortest w with w.z_i >= 1. It
is w = sum a_i z_i with the a >= 0 that minimise |w|^2 / 2 - sum a_i, which coordinate ascent finds, a row at a time
(C. Hildreth, A quadratic programming procedure, 1957; C.-J. Hsieh et al., A dual coordinate descent method for
large-scale linear SVM, 2008):

    a_i <- max(0, a_i + (1 - w.z_i) / |z_i|^2),   w moves along.

Every w on the way is a target for which bounds hold, and w / sum a_i is a point of the convex hull of the z_i, so its
length is at least the largest margin: how much is missing is known, and the ascent may be stopped at any time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.compiler import compiled
from onlearn.theory.separable import Floats, as_rows, blocks, radii, scores, signed_labels, stored

PASSES = 10  # over some of the rows, before all are looked at
WORK = 1 << 27  # numbers of rows visited in all: about a second
VISIT, PASS = 10, 1 << 13  # numbers that visiting a row takes as long as, and beginning a pass
GAP = 1e-9  # of the largest margin, that may be missing
NOTHING = 1e-9  # a margin, in units of the longest row, that is taken for zero


@compiled
def ascend(values: Any, columns: Any, starts: Any, squares: Any, w: Any, a: Any, order: Any) -> int:
    """One pass of coordinate ascent over sparse rows in the given order; returns how many multipliers changed."""
    changes = 0
    for n in range(len(order)):
        i = order[n]
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += values[k] * w[columns[k]]
        change = max(0.0, a[i] + (1.0 - s) / squares[i]) - a[i]
        if change != 0.0:
            a[i] += change
            changes += 1
            for k in range(starts[i], starts[i + 1]):
                w[columns[k]] += change * values[k]
    return changes


class _Rows:
    """The rows z_i = y_i (x_i, constant), sparse, divided by the length of the longest."""

    def __init__(self, X: Any, labels: Floats, constant: float) -> None:
        self.size = math.hypot(radii(X)[0], constant) or 1.0
        n_rows, n_columns = X.shape
        parts = [(start + row, column, value) for start, block in blocks(X) for row, column, value in [stored(block)]]
        row, column, value = (np.concatenate([part[n] for part in parts]) for n in range(3))
        if constant:
            row = np.concatenate([row, np.arange(n_rows)])
            column = np.concatenate([column, np.full(n_rows, n_columns)])
            value = np.concatenate([value, np.full(n_rows, constant)])
        order = np.argsort(row, kind="stable")
        self.row, self.columns = row[order], column[order].astype(np.int64)
        self.values = labels[self.row] * (value[order] / self.size)
        self.starts = np.searchsorted(self.row, np.arange(n_rows + 1)).astype(np.int64)
        self.squares = np.bincount(self.row, self.values**2, n_rows)
        self.width = n_columns + (constant != 0.0)

    def scores(self, w: Floats) -> Floats:
        return np.asarray(np.bincount(self.row, self.values * w[self.columns], len(self.squares)), dtype=np.float64)


def _ascent(rows: _Rows, above: float) -> tuple[Floats, Floats] | None:
    """(w, a): the best w found and its multipliers; None if its margin, in units of the longest row, is not above.

    Rows that are beyond the margin and have no multiplier are left out for some passes.
    """
    if not rows.squares.all():  # a row of zeros is on no side
        return None
    w, a = np.zeros(rows.width), np.zeros(len(rows.squares))
    best: tuple[Floats, Floats] | None = None
    rng, work, active = np.random.default_rng(0), 0, np.arange(len(a))
    while work < WORK:
        for _ in range(PASSES):
            work += int((rows.starts[active + 1] - rows.starts[active]).sum()) + VISIT * len(active) + PASS
            if not ascend(rows.values, rows.columns, rows.starts, rows.squares, w, a, rng.permutation(active)):
                break
        length = float(np.linalg.norm(w))
        longest = length / float(a.sum())  # no margin is larger
        if not longest > max(above, NOTHING):
            break
        s = rows.scores(w)
        work += len(rows.values)
        margin = float(s.min()) / length
        if margin > above:
            best, above = (w.copy(), a.copy()), margin
        if margin >= longest * (1.0 - GAP):
            break
        active = np.flatnonzero((a > 0.0) | (s < 1.0))
    return best


def maximum_margin(X: Any, y: ArrayLike, *, constant: float = 0.0, above: float = 0.0) -> tuple[float, Floats] | None:
    """(g, u): the largest g with y_i u.x_i >= g for all i, over |u|_2 = 1, and such a u; None if no such g is positive.

    y is -1 or +1, or any two labels. With a ``constant`` every row ends in a feature of that size, and u in its weight.
    Classes that hardly have a margin may take too long; then g is the largest found, which is a margin of u all the
    same. None also if g is not ``above`` a margin that is known already.

    >>> g, u = maximum_margin([[1, 0], [0, 1]], [1, 1])
    >>> round(g, 6), u.round(6).tolist()
    (0.707107, [0.707107, 0.707107])
    """
    X = as_rows(X)
    labels = signed_labels(y, X.shape[0])
    rows = _Rows(X, labels, constant)
    found = _ascent(rows, above / rows.size)
    if found is None:
        return None
    u = found[0] / np.linalg.norm(found[0])
    s = scores(X, u[: X.shape[1]]) + (constant * u[-1] if constant else 0.0)
    g = float((labels * s).min())
    return (g, u) if g > above else None


def maximum_margin_scores(gram: ArrayLike, y: ArrayLike, *, constant: float = 0.0, above: float = 0.0) -> Floats | None:
    """y_i u.x_i of all examples for the u of `maximum_margin`, where only the products x_i.x_j are known.

    Rows with these products are made of the eigenvectors of their matrix.

    >>> maximum_margin_scores([[1.0, 0.0], [0.0, 1.0]], [1, 1]).round(6).tolist()
    [0.707107, 0.707107]
    """
    products = np.asarray(gram, dtype=np.float64) + constant**2
    labels = signed_labels(y, len(products))
    values, vectors = np.linalg.eigh(products)
    rows = _Rows(vectors * np.sqrt(np.maximum(values, 0.0)), labels, 0.0)
    found = _ascent(rows, above / rows.size)
    if found is None:
        return None
    signed = found[1] * labels
    s = products @ signed  # by the products themselves, whatever the eigenvectors lost
    square = float(signed @ s)
    return np.asarray(labels * s / math.sqrt(square)) if square > 0.0 else None

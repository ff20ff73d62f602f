"""Learning from one mistake of the whole data set at a time, until there is none: "locate any mistake".

The perceptron's theorem lets anyone choose which mistake comes next: the first in the order of the rows, a random one,
or the one of the worst margin, min y s (among several classes, the score of the right one less that of its best rival).
To find it, all rows are scored after each step.

Rows that are right, but by no more than rounding, are shown to the learner too, whose own loop decides; so a run that
ends without a mistake has found none by the arithmetic of the learner, either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.engine.csr import CSR, is_sparse
from onlearn.engine.passes import PassSettings, progress_bar, warn_caller
from onlearn.engine.scoring import linear_scores
from onlearn.engine.trace import last_weights
from onlearn.engine.training import Training

ORDERS = ("pass", "first", "random", "worst")
ROUNDING = 1e-13  # of a score, as a part of |w|_inf |x|_1


def check_order(order: Any, settings: PassSettings, classifies: bool) -> None:
    """Refuse an order that there is not, or that has no meaning here."""
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(map(repr, ORDERS))}, not {order!r}")
    if order != "pass" and not classifies:
        raise ValueError(f"order={order!r} looks for mistakes, which regression has not")
    if order != "pass" and settings.tol is not None:
        raise ValueError(f"order={order!r} makes no passes whose loss tol could compare: leave tol out")


def learn_located(training: Training, X: Any, y: np.ndarray, weight: np.ndarray, order: str, settings: PassSettings,
                  seed: int, warning: type[Warning]) -> bool | None:  # fmt: skip
    """Learn from one mistake at a time, at most as often as passes would show rows; True: none is left."""
    passes = settings.max_epochs if settings.epochs is None else settings.epochs
    draw = np.random.default_rng([seed, training.passes, 2])  # 2: none of the other random numbers of a learner
    doubles, lengths = in_double(X), row_lengths(X) + training.bias
    shown = weight == 0.0  # rows that the present hypothesis was shown and that did not change it, or without weight
    missed = False  # whether one of them is a mistake for which the rule makes no step
    separable: bool | None = None
    training.begin_pass()
    with progress_bar(settings.verbose, passes, len(y)) as advance:
        for _ in range(passes * len(y)):
            margins, slack = margins_of(training, doubles, y, lengths)
            left = np.flatnonzero((margins <= slack) & ~shown)
            if not len(left):
                separable = None if missed else True
                break
            row = left[0] if order == "first" else draw.choice(left) if order == "random" else _worst(margins, left)
            steps, mistakes = training.n_updates, training.n_mistakes
            training.learn(X, y, weight, np.array([row]), audit=False, progress=advance)
            if training.n_updates > steps:
                shown, missed = weight == 0.0, False
            else:
                shown[row], missed = True, missed or training.n_mistakes > mistakes
        else:
            text = f"there are mistakes left after {passes} x {len(y)} steps; the data may not be separable"
            warn_caller(text, warning)
    training.end_pass()["chosen_of"] = float(len(y))
    return separable


def _worst(margins: np.ndarray, left: np.ndarray) -> Any:
    return left[np.argmin(margins[left])]


def margins_of(training: Training, X: Any, y: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The margin of each row by the last hypothesis, and by how much rounding may have changed it."""
    handed = last_weights(training, (training.features + 1) * training.outputs).reshape(-1, training.outputs)
    scores, _ = linear_scores(X, handed[1:], handed[0] * training.bias - training.theta)
    if training.output is None:
        margins = scores[:, 0] * y
    else:
        every, gold = np.arange(len(y)), y.astype(np.int64)
        right = scores[every, gold]
        scores[every, gold] = -np.inf
        margins = right - scores.max(axis=1)
    top = float(np.abs(handed).max(initial=0.0))
    return margins, ROUNDING * (top * lengths if top else np.zeros(len(y)))


def in_double(X: Any) -> Any:
    """Rows in double precision, as the loops compute."""
    if X.dtype == np.float64:
        return X
    return CSR(X.data.astype(np.float64), X.indices, X.indptr, X.shape) if is_sparse(X) else X.astype(np.float64)


def row_lengths(X: Any) -> np.ndarray:
    """|x|_1 of each row."""
    if not is_sparse(X):
        return np.abs(X).sum(axis=1, dtype=np.float64)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    values = np.abs(X.data[X.indptr[0] : X.indptr[-1]]).astype(np.float64)
    return np.bincount(rows, weights=values, minlength=X.shape[0])

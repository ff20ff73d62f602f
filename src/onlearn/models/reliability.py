"""How far probabilities can be relied on: figures that add up over batches.

log-loss                 mean of -log p of the right class
Brier score              mean of sum_c (p_c - [c is right])^2 (Brier 1950); of two classes half of that, (p - y)^2
calibration error        rows are put into bins by the probability of the likeliest class; in each, the distance between
                         the mean of these and the share of rows of that class; the mean of that over rows (Naeini,
                         Cooper & Hauskrecht 2015)
class calibration error  the same for every class by its own probability, whether or not it is the likeliest; the mean
                         over classes (Kull, Perello-Nieto, Kaengsepp, Silva Filho, Song & Flach 2019)
"""

from __future__ import annotations

import numpy as np

BINS = 15  # of equal width
TINY = float(np.finfo(np.float64).eps)  # the least distance of probabilities from 0 and 1, so that no loss is infinite


class Reliability:
    """The figures of probabilities for so many classes; memory does not grow with the number of rows.

    >>> one = Reliability(2)
    >>> one.add(np.array([0, 1]), np.array([[0.8, 0.2], [0.4, 0.6]]))
    >>> {name: round(value, 4) for name, value in one.report().items()}
    {'log_loss': 0.367, 'brier': 0.1, 'calibration_error': 0.3, 'class_calibration_error': 0.3}
    """

    def __init__(self, classes: int) -> None:
        self.classes: int = classes
        self.rows: int = 0
        self.loss: float = 0.0
        self.squares: float = 0.0
        self.top: np.ndarray = np.zeros((3, BINS))  # rows, those of the likeliest class, sum of its probability
        self.each: np.ndarray = np.zeros((3, classes, BINS))  # rows, those of the class, sum of its probability

    def add(self, gold: np.ndarray, proba: np.ndarray) -> None:
        """Add rows: the numbers of their classes, and the probability of each class."""
        if not len(gold):
            return
        rows = np.arange(len(gold))
        mine = proba[rows, gold]
        self.rows += len(gold)
        self.loss -= float(np.log(np.clip(mine, TINY, 1 - TINY)).sum())
        squares = float((proba * proba).sum() + (1.0 - 2.0 * mine).sum())
        self.squares += squares / 2 if self.classes == 2 else squares
        best = np.argmax(proba, axis=1)
        _count(self.top, proba[rows, best], gold == best)
        for k in range(self.classes):
            _count(self.each[:, k], proba[:, k], gold == k)

    def include(self, other: Reliability) -> None:
        """Add the rows of another one of the same classes."""
        self.rows += other.rows
        self.loss += other.loss
        self.squares += other.squares
        self.top += other.top
        self.each += other.each

    def report(self) -> dict[str, float]:
        """The figures by name; empty if there are no rows."""
        if not self.rows:
            return {}
        return {
            "log_loss": self.loss / self.rows,
            "brier": self.squares / self.rows,
            "calibration_error": float(_error(self.top)),
            "class_calibration_error": float(np.mean(_error(self.each))),
        }

    def class_errors(self) -> list[float]:
        """The calibration error of each class."""
        return [float(error) for error in _error(self.each)] if self.rows else []


def _count(bins: np.ndarray, probability: np.ndarray, right: np.ndarray) -> None:
    places = np.clip((probability * BINS).astype(np.int64), 0, BINS - 1)
    for row, amounts in zip(bins, (None, right, probability)):
        row += np.bincount(places, weights=amounts, minlength=BINS)


def _error(bins: np.ndarray) -> np.ndarray:
    rows, right, expected = bins
    return np.asarray(np.abs(right - expected).sum(axis=-1) / rows.sum(axis=-1))

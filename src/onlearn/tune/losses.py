"""One yardstick for learners of any kind: what their scores, probabilities or mere answers cost on rows with labels.

Scores of different rules are not comparable as they are: those of a passive-aggressive learner are margins, those of a
Perceptron are of any size, and only those of logistic regression are log-odds. So each learner's scores z are
multiplied by the number a (the inverse temperature; Guo et al. 2017) that is best on the rows that are judged,

    loss = min over a of the mean of  log sum_c exp(a z_c) - a z_y

which is convex in a. One number of hundreds of rows cannot flatter a learner; and it is chosen for all alike.

Mistakes are what users count, but they are coarse: on a thousand rows, two learners that differ by a hundredth are told
apart by luck. The log-loss is finer but answers another question: a hinge loss makes fewer mistakes on some data than
the logistic loss, whose log-loss is better. The ``cost`` of a row is the log-loss, and 4 more if it is a mistake: it
ranks by mistakes where these differ clearly, and by the log-loss where they do not, as with rare classes. In regression
the cost is the squared error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

MISTAKE = 4.0  # what a mistake costs besides its log-loss
TINY = 1e-12  # the smallest probability
STEPS = 40  # of Newton's method, at most


class Losses(NamedTuple):
    """What rows cost, one number a row: their loss, and 1 where the answer was wrong (in regression always 0).

    ``weight`` has the weights of the rows; None: each has weight 1.

    >>> some = Losses(np.array([1.0, 3.0]), np.array([0.0, 1.0]), np.array([3.0, 1.0]))
    >>> some.mean(some.loss), some.total(some.mistakes), some.total()
    (1.5, 1.0, 4.0)
    """

    loss: np.ndarray
    mistakes: np.ndarray
    weight: np.ndarray | None = None

    @property
    def cost(self) -> np.ndarray:
        """What learners are ranked by."""
        return self.loss + MISTAKE * self.mistakes

    @property
    def mean_cost(self) -> float:
        """The mean of the cost."""
        return self.mean(self.cost)

    def mean(self, values: np.ndarray) -> float:
        """The weighted mean of a number of each row; 0 if no row has a weight."""
        return mean(values, self.weight)

    def total(self, values: np.ndarray | None = None) -> float:
        """The sum of a number of each row times its weight; by default that of the weights."""
        values = np.ones(len(self.loss)) if values is None else values
        return float(values.sum() if self.weight is None else values @ self.weight)


def mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    """The weighted mean; 0 if nothing has a weight."""
    if weight is None:
        return float(values.mean())
    total = float(weight.sum())
    return float(values @ weight) / total if total > 0 else 0.0


def joined(parts: list[Losses]) -> Losses:
    """The losses of several parts of the rows, all of which have weights, or none."""
    weights = [one.weight for one in parts if one.weight is not None]
    return Losses(
        np.concatenate([one.loss for one in parts]),
        np.concatenate([one.mistakes for one in parts]),
        np.concatenate(weights) if weights else None,
    )


def of_scores(scores: np.ndarray, numbers: np.ndarray, weight: np.ndarray | None = None) -> Losses:
    """Losses of scores, a column for each class or one for the second of two; ``numbers`` are those of the classes.

    >>> of_scores(np.array([2.0, -1.0, 0.5]), np.array([1, 0, 0])).mistakes
    array([0., 0., 1.])
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1 or scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores.reshape(-1)])
    if not len(scores):
        return Losses(np.zeros(0), np.zeros(0), weight)
    if not np.isfinite(scores).all():
        return Losses(np.full(len(scores), np.nan), np.ones(len(scores)), weight)
    wrong = np.argmax(scores, axis=1) != numbers
    scores = scores - scores.max(axis=1, keepdims=True)
    own = scores[np.arange(len(scores)), numbers]
    factor = best_factor(scores, own, weight)
    loss = np.log(np.exp(factor * scores).sum(axis=1)) - factor * own
    return Losses(np.minimum(loss, -np.log(TINY)), wrong.astype(np.float64), weight)


def best_factor(scores: np.ndarray, own: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The number by which to multiply scores, whose largest is 0 in each row, for the least log-loss.

    Newton's method in log a, which is safe where a is far off; ``own`` are the scores of the right classes.
    """
    size = float(np.abs(scores).mean())
    if size == 0:
        return 1.0
    low, high = 1e-4 / size, 1e4 / size
    factor = 1.0 / size
    for _ in range(STEPS):
        shares = np.exp(factor * scores)
        shares /= shares.sum(axis=1, keepdims=True)
        expected = (shares * scores).sum(axis=1)
        slope = mean(expected - own, weight)
        if slope > 0:
            high = factor
        else:
            low = factor
        bend = mean((shares * scores * scores).sum(axis=1) - expected * expected, weight)
        new = factor - slope / bend if bend > 0 else 0.0
        if not low < new < high:
            new = float(np.sqrt(low * high))
        if abs(new - factor) <= 1e-6 * factor:
            return new
        factor = new
    return factor


def of_probabilities(probabilities: np.ndarray, numbers: np.ndarray, weight: np.ndarray | None = None) -> Losses:
    """Losses of probabilities, a column for each class."""
    return of_scores(np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), TINY)), numbers, weight)


def of_answers(right: np.ndarray, classes: int, weight: np.ndarray | None = None) -> Losses:
    """Losses of answers without scores: as if each had the probability that answers are right."""
    wrong = 1.0 - np.asarray(right, dtype=np.float64)
    share = 0.5
    if len(wrong):
        share = float(np.clip(mean(wrong, weight), 0.5 / len(wrong), 1 - 1 / max(2, classes)))
    loss = np.where(wrong > 0, -np.log(share / max(1, classes - 1)), -np.log(1 - share))
    return Losses(loss, wrong, weight)


def of_numbers(predicted: Any, targets: Any, weight: np.ndarray | None = None) -> Losses:
    """Squared errors."""
    loss = (np.asarray(predicted, dtype=np.float64) - np.asarray(targets, dtype=np.float64)) ** 2
    return Losses(loss, np.zeros(len(loss)), weight)

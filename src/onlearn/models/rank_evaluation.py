"""How good an order within groups is: the share of pairs in the right order, and NDCG.

With relevance r_1, r_2, ... of a group's rows from the highest score down,

    DCG@k = sum_{i <= k} (2^r_i - 1) / log2(i + 1),     NDCG@k = DCG@k / (DCG@k of the best order)

(Jarvelin & Kekalainen 2002; Burges et al. 2005). Rows of the same score share the mean of the places they take. A group
without a row of a gain has no NDCG, and one whose rows are all as relevant no pairs: they are left out of the means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data import Batch, DataError
from onlearn.models.evaluation import Observer
from onlearn.models.model import Model

AT = (1, 5, 10)  # k of NDCG@k
HIGHEST = 60.0  # relevance: beyond, gains are no ratings


def ndcg(relevance: np.ndarray, scores: np.ndarray, k: int) -> float | None:
    """NDCG@k of one group; None if no row has a gain.

    >>> round(ndcg(np.array([2.0, 0.0, 1.0]), np.array([0.3, 0.9, 0.1]), 2), 4)
    0.5214
    """
    gains = np.exp2(relevance) - 1.0
    discount = 1.0 / np.log2(np.arange(len(gains)) + 2.0)
    discount[k:] = 0.0
    best = float(np.sort(gains)[::-1] @ discount)
    if best <= 0.0:
        return None
    _, place, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    totals = np.bincount(place.reshape(-1), weights=gains)
    ends = np.cumsum(counts)
    sums = np.concatenate([[0.0], np.cumsum(discount)])
    return float((totals / counts) @ (sums[ends] - sums[ends - counts])) / best


def pairs_in_order(relevance: np.ndarray, scores: np.ndarray) -> tuple[float, int]:
    """How many pairs of different relevance the scores put in order (equal scores count half), and how many there are.

    >>> pairs_in_order(np.array([2.0, 0.0, 1.0]), np.array([0.3, 0.9, 0.3]))
    (0.5, 3)
    """
    better, worse = np.nonzero(relevance[:, None] > relevance)
    ahead = scores[better] - scores[worse]
    return float(np.count_nonzero(ahead > 0) + 0.5 * np.count_nonzero(ahead == 0)), len(better)


class RankEvaluation:
    """The evaluation of scores within groups, which may come in several batches.

    >>> evaluation = RankEvaluation()
    >>> evaluation.add(np.array([1.0, 0.0]), np.array([0.4, 0.1]), np.array([3, 3]))
    >>> evaluation.report()["pairwise_accuracy"]
    1.0
    """

    def __init__(self) -> None:
        self.unlabelled: int = 0
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, relevance: np.ndarray, scores: np.ndarray, groups: np.ndarray) -> None:
        """Add rows: their relevance, their scores and their groups."""
        self.parts.append((relevance, scores, groups))

    def add_batch(self, model: Model, batch: Batch, observer: Observer | None = None) -> None:
        """Score a batch and add it; rows without a relevance are counted separately.

        An observer sees nothing: scores mean something only beside others of their group.
        """
        if batch.y is None:
            self.unlabelled += len(batch)
            return
        if batch.groups is None:
            raise DataError(f"{batch.file}: the rows have no groups to rank within")
        relevance = np.asarray(batch.y, dtype=np.float64)
        known = ~np.isnan(relevance)
        self.unlabelled += int(np.count_nonzero(~known))
        self.add(relevance[known], model.predict(batch)[known], batch.groups[known])

    def include(self, other: RankEvaluation) -> None:
        """Add the rows of another evaluation, which may be of the same groups."""
        self.unlabelled += other.unlabelled
        self.parts += other.parts

    def report(self) -> dict[str, Any]:
        """Everything, ready for JSON; None where there is nothing to compute it from."""
        empty = np.zeros(0)
        relevance, scores = (np.concatenate([empty, *(part[n] for part in self.parts)]) for n in (0, 1))
        groups = np.concatenate([np.zeros(0, dtype=np.int64), *(part[2] for part in self.parts)])
        order = np.argsort(groups, kind="stable")
        ends = np.flatnonzero(np.diff(groups[order])) + 1
        right, pairs = 0.0, 0
        found: dict[int, list[float]] = {k: [] for k in AT}
        rated = bool(len(relevance)) and relevance.min() >= 0 and relevance.max() <= HIGHEST
        each = [one for one in np.split(order, ends) if len(one)]
        for rows in each:
            good, count = pairs_in_order(relevance[rows], scores[rows])
            right, pairs = right + good, pairs + count
            for k in AT if rated else ():
                value = ndcg(relevance[rows], scores[rows], k)
                found[k] += [] if value is None else [value]
        return {
            "n": len(relevance),
            "groups": len(each),
            "pairs": pairs,
            "pairwise_accuracy": right / pairs if pairs else None,
            **{f"ndcg_at_{k}": float(np.mean(values)) if values else None for k, values in found.items()},
            "unlabelled": self.unlabelled,
        }

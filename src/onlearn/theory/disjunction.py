"""Labels as a monotone disjunction of 0/1 features: which of them, and how few, explain the labels.

A feature active in a negative example is in no such disjunction. Of the others few must cover the positive
examples: set cover, which greed solves within a factor of ln(positives) + 1 (D. Haussler, Quantifying
inductive bias, 1988).
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from onlearn.theory._rows import blocks


def smallest_disjunction(X: Any, positive: NDArray[np.bool_]) -> int | None:
    """How many literals a monotone disjunction needs, by greedy cover (never fewer than the fewest), or None.

    None: a value is not 0 or 1, or no disjunction gives these labels.

    >>> smallest_disjunction(np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1]]), np.array([True, True, False]))
    2
    """
    harmless = np.ones(X.shape[1], dtype=bool)
    for start, block in blocks(X):
        values = block.data if sp.issparse(block) else block
        if not ((values == 0.0) | (values == 1.0)).all():
            return None
        negatives = block[~positive[start : start + block.shape[0]]]
        harmless &= np.asarray(negatives.sum(axis=0)).ravel() == 0.0
    candidates = np.flatnonzero(harmless)
    covers = [
        sp.csr_array(block[positive[start : start + block.shape[0]]][:, candidates], dtype=bool)
        for start, block in blocks(X)
    ]
    return _greedy_cover(sp.vstack(covers, format="csc"))


def _greedy_cover(covers: Any) -> int | None:
    """How many columns greed takes to cover all rows, or None if a row is in no column.

    A column's count of rows not yet covered only falls, so the top of the heap is looked at again only when
    stale.
    """
    covers.eliminate_zeros()
    left = covers.shape[0]
    covered = np.zeros(left, dtype=bool)
    heap = [(-count, column) for column, count in enumerate(np.diff(covers.indptr).tolist()) if count]
    heapq.heapify(heap)
    taken = 0
    while left and heap:
        promised, column = heapq.heappop(heap)
        rows = covers.indices[covers.indptr[column] : covers.indptr[column + 1]]
        fresh = rows[~covered[rows]]
        if len(fresh) == -promised:
            covered[fresh] = True
            left -= len(fresh)
            taken += 1
        elif len(fresh):
            heapq.heappush(heap, (-len(fresh), column))
    return taken if left == 0 else None

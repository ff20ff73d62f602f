"""Set cover: the fewest columns of which every row holds one.

It is NP-hard. The greedy algorithm, which always takes the column that covers most of the rows left, needs at most
ln(rows) + 1 times the fewest (D. Johnson, Approximation algorithms for combinatorial problems, 1974); an integer
program finds the fewest where there are not too many columns.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray


def greedy_cover(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int], left: int) -> list[int] | None:
    """The columns that the greedy algorithm takes to cover `left` rows, or None if a row is in no column.

    Column ``columns[i]`` covers row ``rows[i]``. The number of rows that a column would still cover only falls, so
    the top of the heap is counted again only if it is out of date.

    >>> greedy_cover(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 1, 2, 2]), (3, 3), left=3)
    [0, 1]
    """
    rows = rows[np.argsort(columns, kind="stable")]
    counts = np.bincount(columns, minlength=shape[1])
    ends = np.concatenate([[0], np.cumsum(counts)])
    covered = np.zeros(shape[0], dtype=bool)
    heap = [(-count, column) for column, count in enumerate(counts.tolist()) if count]
    heapq.heapify(heap)
    taken = []
    while left and heap:
        promised, column = heapq.heappop(heap)
        mine = rows[ends[column] : ends[column + 1]]
        fresh = mine[~covered[mine]]
        if len(fresh) == -promised:
            covered[fresh] = True
            left -= len(fresh)
            taken.append(column)
        elif len(fresh):
            heapq.heappush(heap, (-len(fresh), column))
    return taken if left == 0 else None


def fewest_cover(
    rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int], time_limit: float | None = None
) -> list[int]:
    """The fewest columns that cover every row that some column covers, proven by SciPy's integer program.

    `ArithmeticError` if the proof takes longer than `time_limit` seconds.

    >>> fewest_cover(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 1, 2, 2]), (3, 3)) in ([0, 1], [1, 2])
    True
    """
    import scipy.sparse as sp
    from scipy.optimize import Bounds, LinearConstraint, milp

    present, rows = np.unique(rows, return_inverse=True)
    if not len(present):
        return []
    covering = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(present), shape[1]))
    answer = milp(
        np.ones(shape[1]),
        constraints=LinearConstraint(covering, lb=1.0),
        integrality=np.ones(shape[1]),
        bounds=Bounds(0.0, 1.0),
        options={} if time_limit is None else {"time_limit": time_limit},
    )
    if answer.status != 0:
        raise ArithmeticError(f"The fewest columns were not found: {answer.message}")
    taken = np.flatnonzero(answer.x > 0.5)
    if not (covering[:, taken].sum(axis=1) >= 1.0).all():
        raise ArithmeticError("The integer program for a set cover left a row uncovered.")
    return [int(column) for column in taken]

"""Rows kept back for calibration while several passes go over the others.

Probabilities are fitted to scores that the hypothesis handed out gives to rows it has not learned from. In a single
pass every row is such a row when it comes, and the scores of the later ones will do. After several passes there are
none: scores from the first are those of a smaller and worse hypothesis, and how much the scores of new rows have
grown since cannot be told from rows learned from. So a few rows are kept back. The last hypothesis scores them, and
then learns from them at the end of the last pass.

Which rows these are depends on their numbers alone, the same in a run that is resumed. While a stream is read whose
length is not known, more rows are kept back than are needed in the end; the others are learned from at the end of the
first pass.
"""

from __future__ import annotations

import numpy as np

LARGEST_SHARE = 1 / 16  # of all rows that is kept back
RESERVE = 960  # rows that are kept back, about, unless that is more
SMALL_SHARE = 1 / 100  # that is kept back of more rows
LARGEST_RESERVE = 4096
FEWEST_ROWS = 1 << 12  # with fewer, none is kept back
ENOUGH = 128  # rows kept back that tell more than the scores of the first pass
CERTAIN = 1 << 20  # rows, of which many more than enough are kept back
RARE = 8  # no row of a class with fewer rows is kept back


def share_of(rows: int) -> float:
    """The share of so many rows to keep back.

    >>> [int(rows * share_of(rows)) for rows in (1000, 8000, 64_000, 200_000, 1_000_000)]
    [0, 500, 960, 2000, 4096]
    """
    return float(shares_of(np.array([rows]))[0])


def shares_of(rows: np.ndarray) -> np.ndarray:
    """The same for many numbers of rows; of more rows it is no larger a share."""
    some = np.maximum(rows, 1)
    shares = np.minimum(LARGEST_SHARE, np.maximum(RESERVE / some, np.minimum(SMALL_SHARE, LARGEST_RESERVE / some)))
    return np.where(rows >= FEWEST_ROWS, shares, 0.0)


def luck(start: int, stop: int) -> np.ndarray:
    """A number from 0 to 1 for each row from ``start`` to ``stop``; those with one below their share are kept back."""
    numbers = np.arange(start + 1, stop + 1, dtype=np.uint64)
    for factor in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F):
        numbers = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(factor)
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


def while_reading(start: int, stop: int) -> np.ndarray:
    """Which rows of a stream are kept back as they are read, before it is known how many there are."""
    return luck(start, stop) < shares_of(np.arange(start, stop))


def in_the_end(rows: int, first: int = 0) -> np.ndarray:
    """The numbers of the rows that are kept back of so many, none before ``first``; none if they would be too few.

    Those of a stream, where ``first`` is ``FEWEST_ROWS``, were all kept back as they were read.
    """
    kept = np.flatnonzero(luck(0, rows) < share_of(rows))
    kept = kept[kept >= first]
    return kept if len(kept) >= ENOUGH else kept[:0]


def among(first: int, stop: int, rows: int) -> np.ndarray:
    """The rows from ``first`` to ``stop`` that are kept back of so many, counted from ``first``.

    >>> whole = in_the_end(50_000)
    >>> parts = [among(first, first + 10_000, 50_000) + first for first in range(0, 50_000, 10_000)]
    >>> np.array_equal(np.concatenate(parts), whole)
    True
    """
    return np.flatnonzero(luck(first, stop) < share_of(rows))


def keeps_any(rows: int) -> bool:
    """Whether any rows are kept back of so many; of very many, this is sure without a look at each."""
    return rows >= CERTAIN or len(in_the_end(rows)) > 0


def of_rows(codes: np.ndarray, weight: np.ndarray | None, share: float | None = None) -> np.ndarray:
    """The rows to keep back of a data set with these classes and weights; ``share`` says how many, if that is given."""
    if share is not None:
        return shared_out(codes, weight, share)
    kept = in_the_end(len(codes))
    if not len(kept):
        return kept
    kept = kept[np.bincount(codes)[codes[kept]] >= RARE]
    return kept if weight is None else kept[weight[kept] > 0]


def shared_out(codes: np.ndarray, weight: np.ndarray | None, share: float) -> np.ndarray:
    """About this share of the rows that have weight: one or more, and never all of them; none of a single row.

    Rows of rare classes are not among them, unless there are no others.

    >>> shared_out(np.array([0, 1, 0, 1]), None, 0.01).size, shared_out(np.array([0, 1, 0, 1]), None, 0.99).size
    (1, 3)
    """
    usable = np.arange(len(codes)) if weight is None else np.flatnonzero(weight > 0)
    if len(usable) < 2:
        return usable[:0]
    common = usable[np.bincount(codes)[codes[usable]] >= RARE]
    some = common if len(common) else usable
    drawn = luck(0, len(codes))[some]
    order = np.argsort(drawn, kind="stable")
    count = min(max(1, int(np.count_nonzero(drawn < share))), len(usable) - 1)
    return np.sort(some[order[:count]])

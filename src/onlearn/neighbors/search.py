"""The search for neighbours: queries in blocks, on all cores.

An index holds the rows of one kind of distance, ready for search: see ``distances``. ``nearest`` asks it block by
block, each block in one thread, and sorts what it found.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn.kernels.tiles import over_tiles
from onlearn.neighbors.selection import arrange
from onlearn.threads import cores

QUERIES = 512  # of a block
FEWEST = 16  # queries of a block that is cut so that every thread has one
WORTHWHILE = 1 << 22  # multiplications below which a second thread costs more than it saves


class Heaps(NamedTuple):
    """The nearest rows so far of each query: distances (or what is ordered alike), row numbers, and how many."""

    values: np.ndarray
    numbers: np.ndarray
    held: np.ndarray

    def part(self, start: int, stop: int) -> Heaps:
        return Heaps(*(array[start:stop] for array in self))


class Index(Protocol):
    """Rows in which neighbours are searched."""

    approximate: bool
    alone: bool  # whether it uses all cores by itself, so that blocks come one after another

    def __len__(self) -> int: ...

    def prepare(self) -> None:
        """Make what the first search would make."""

    def queries(self, X: Any) -> Any:
        """Rows to search the neighbours of, prepared."""

    def effort(self, queries: Any) -> float:
        """The multiplications that all queries take."""

    def take(self, queries: Any, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        """Take the nearest rows of queries ``top`` to ``stop`` into their heaps; query i passes over row skip[i]."""

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        """Distances of what heaps hold."""


def nearest(index: Index, X: Any, k: int, skip: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Distances and numbers of the k nearest rows of each query, the nearest first; at one distance, by number.

    ``skip`` has for each query the number of a row that it passes over. Where fewer than k rows are left, distances are
    infinite and numbers -1.
    """
    queries = index.queries(X)
    count = len(queries)
    heaps = Heaps(np.full((count, k), np.inf), np.full((count, k), -1, np.int64), np.zeros(count, np.int64))
    skip = np.full(count, -1, np.int64) if skip is None else np.asarray(skip, np.int64)
    threads = not index.alone and index.effort(queries) > WORTHWHILE
    size = min(QUERIES, max(FEWEST, -(-count // cores()))) if threads else QUERIES

    def block(n: int) -> None:
        top, stop = n * size, min(count, (n + 1) * size)
        part = heaps.part(top, stop)
        index.take(queries, top, stop, skip[top:stop], part)
        arrange(*part)

    blocks = range(-(-count // size))
    if index.alone:
        for n in blocks:
            block(n)
    else:
        over_tiles(block, len(blocks), threads)
    return index.distances(queries, heaps.values), heaps.numbers

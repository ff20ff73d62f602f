"""The search by FAISS, an optional package, for millions of dense rows.

Up to ``FLAT`` rows its index compares all of them. With more, rows are sorted into about 4 sqrt(n) cells, and only the
cells nearest to a query are searched: neighbours in other cells are missed. Either finds a few more than are asked for,
in single precision; they are measured by differences in double precision, and ranked by that.
"""

from __future__ import annotations

from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from onlearn.neighbors.distances import Cosine, Euclidean
from onlearn.neighbors.search import Heaps
from onlearn.neighbors.selection import take_listed

FLAT = 100_000
CELLS = 4  # times the square root of the rows
SEARCHED = 32  # cells a query
SAMPLE = 64  # rows for each cell that the cells are made of
MORE = 16  # neighbours that are asked for beyond 2 k


def check_installed() -> None:
    if not is_installed():
        raise ImportError("engine='faiss' needs the package faiss-cpu, which is missing: pip install onlearn[faiss]")


def is_installed() -> bool:
    return find_spec("faiss") is not None


def refuse_metric(settings: Any) -> None:
    if settings.kernel is not None or settings.metric not in ("euclidean", "mixed", "cosine"):
        what = "a kernel" if settings.kernel is not None else f"metric={settings.metric!r}"
        raise ValueError(f"engine='faiss' searches Euclidean and cosine neighbours, not those of {what}")


def serves(index: Any) -> bool:
    """Whether FAISS is there and can search these rows."""
    return is_installed() and _is_dense(index)


def _is_dense(index: Any) -> bool:
    inner = index.inner if isinstance(index, Cosine) else index
    return isinstance(inner, Euclidean) and not len(inner.weights)


class FaissIndex:
    """Dense rows in an index of FAISS, made of our own."""

    alone = True

    def __init__(self, index: Any) -> None:
        if not _is_dense(index):
            raise ValueError("engine='faiss' searches dense rows of numbers: make X dense, or use engine='exact'")
        self.index = index
        self.inner: Euclidean = index.inner if isinstance(index, Cosine) else index
        self.approximate: bool = len(index) > FLAT

    def __len__(self) -> int:
        return len(self.index)

    @property
    def description(self) -> str:
        return "faiss, approximate" if self.approximate else "faiss, all rows compared"

    @cached_property
    def found_by(self) -> Any:
        import faiss

        rows = self.inner.coarse[0]
        count, width = rows.shape
        if not self.approximate:
            made: Any = faiss.IndexFlatL2(width)
        else:
            cells = int(CELLS * np.sqrt(count))
            made = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, cells)
            made.train(rows[:: max(1, count // (SAMPLE * cells))])
            made.nprobe = min(cells, SEARCHED)
        made.add(rows)
        return made

    def prepare(self) -> None:
        self.found_by  # noqa: B018  made when it is first asked for

    def queries(self, X: Any) -> Any:
        return self.index.queries(X)

    def effort(self, queries: Any) -> float:
        return float(self.inner.effort(queries))

    def take(self, queries: Any, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        k = heaps.values.shape[1]
        few = queries.coarse(top, stop)[0] * np.float32(-0.5)
        _, listed = self.found_by.search(few, min(len(self), 2 * k + MORE))
        take_listed(queries.pairs, np.asarray(listed, np.int64), top, skip, *heaps)

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        return np.asarray(self.index.distances(queries, values))

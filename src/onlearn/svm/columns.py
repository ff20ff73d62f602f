"""Kernel rows of the examples of a data set, computed in blocks and cached, shared by many problems."""

from __future__ import annotations

from typing import Any

import numpy as np


class KernelColumns:
    """Kernel rows of examples with all examples, by number; the most recently used ones are cached.

    The values of a row are those of a column: the kernel matrix is symmetric.
    """

    def __init__(self, kernel: Any, points: Any, cache_bytes: int, dtype: Any = None) -> None:
        self.kernel, self.points = kernel, points.lasts()
        self.n = len(points)
        self.dtype = np.dtype(points.dtype if dtype is None else dtype)
        self.diagonal = np.asarray(kernel.diagonal(points), dtype=np.float64)
        self.cache_bytes = int(cache_bytes)
        self.hits = self.misses = 0

    @property
    def nbytes(self) -> int:
        return 0

    def rows(self, indices: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Kernel rows of some examples with all examples, or with a subset of them."""
        self.misses += len(indices)
        others = self.points if subset is None else self.points.take(subset)
        return self.kernel.block(self.points.take(indices), others).astype(self.dtype, copy=False)

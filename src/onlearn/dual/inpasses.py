"""What a run over files asks of a learner, in the dual: to start, and to learn from rows pass after pass.

A support example is a row as it was learned from, so all rows must have their final width before the first is learned
from, and they stay in memory: their kernel values will be needed again.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from onlearn import kernels
from onlearn.dual.standing import Examples

ON_NUMBERS = ("vectors", "matrix")  # kinds of data that have columns


class InPasses:
    """The part of a kernel classifier that learns from rows it is given once, in as many passes as are made."""

    kernel: Any
    representation: str
    epochs: int | None
    cache_mb: float
    _training: Any
    _points: Any
    _constant_feature: Any

    def start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width, of classes 0 to K - 1 which come so often."""
        if self.representation == "primal":
            raise ValueError("rows that come in passes are learned from in the dual: leave representation='primal' out")
        self._kernel = copy.copy(kernels.get(self.kernel))
        self.representation_, self.representation_reason_ = "dual", "the rows come in passes"
        super().start(features, counts, dtype)  # type: ignore[misc]
        if self._kernel.data not in ON_NUMBERS:  # strings and trees have no columns
            del self.n_features_in_  # type: ignore[attr-defined]

    def stand(self, X: Any) -> Any:
        """All rows that there will be, checked, in the form that ``learn_rows`` takes them in.

        Before each pass call ``begin_pass`` of what is returned.
        """
        points = self._points(X)
        self._check_kernel(points)  # type: ignore[attr-defined]
        self.__dict__["_dtype"] = np.dtype(points.dtype)  # one precision for all
        self._training.in_pieces = True
        if not self._training.n_seen:
            self._training.bias = self._constant_feature(points)
        room = 0 if self.epochs == 1 else int(self.cache_mb * 2**20)
        return self._training.stand(Examples(X, points, X.shape[1] if hasattr(X, "shape") else 1), room)

    def take_in(self, features: int, classes: int) -> None:
        raise ValueError("a kernel classifier cannot take in features or classes: its support examples lack them")

    def keep_features(self, kept: np.ndarray) -> None:
        raise ValueError("a kernel classifier cannot let go of features: it has weights of examples, not of features")

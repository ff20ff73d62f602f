"""What a run over files asks of a learner, in the dual: to start, and to learn from rows pass after pass.

A support example is a row as it was learned from, so all rows must have their final width before the first is learned
from, and they stay in memory: their kernel values will be needed again. A run that is left off goes on bit for bit, so
the model file holds how its rows stood: their sums are rounded by the order in which they came about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn import kernels
from onlearn.dual.slots import Slots
from onlearn.dual.standing import Examples
from onlearn.dual.supports import Supports, pick
from onlearn.kernels.owned import own

ON_NUMBERS = ("vectors", "matrix")  # kinds of data that have columns
TRIED = 64  # support examples whose kernel values must stay what they are when columns are added


class InPasses:
    """The part of a kernel classifier that learns from rows it is given once, in as many passes as are made."""

    kernel: Any
    representation: str
    epochs: int | None
    cache_mb: float
    budget: int | None
    _kernel: Any
    _training: Any
    _points: Any
    _standing: Any  # of the rows of a run that is not over
    _left_off: tuple[dict[str, Any], dict[str, np.ndarray]]  # the same as it was read from a file
    _constant_feature: Any

    def start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width, of classes 0 to K - 1 which come so often."""
        if self.representation == "primal":
            raise ValueError("rows that come in passes are learned from in the dual: leave representation='primal' out")
        self._kernel = own(kernels.get(self.kernel))
        self.representation_, self.representation_reason_ = "dual", "the rows come in passes"
        super().start(features, counts, dtype)  # type: ignore[misc]
        if self._kernel.data not in ON_NUMBERS:  # strings and trees have no columns
            del self.__dict__["n_features_in_"]

    def go_on(self, features: int, counts: np.ndarray) -> None:
        """Make ready to learn from more rows, which may be wider, of the same classes, which come so often."""
        self.leave()
        if self._kernel.data in ON_NUMBERS and features > self.__dict__["n_features_in_"]:
            self._widen(features)
        self.__dict__["_counts"] = self.__dict__["_counts"] + np.concatenate([[counts.sum()], counts])
        supports = self._training.supports
        if self.budget is None and len(supports):  # they are prepared as the rows will be
            examples = supports.examples()
            self._training.attach(Supports(self._kernel, examples, self._points(examples)))

    def _widen(self, features: int) -> None:
        """Give the support examples columns of zeros, if that means nothing to the kernel."""
        supports, new = self._training.supports, features - self.__dict__["n_features_in_"]
        if len(supports):
            wider = _widened(supports.examples(), features)
            few = np.arange(min(TRIED, len(supports)))
            values = [self._kernel(pick(some, few)) for some in (supports.examples(), wider)]
            if not np.allclose(*values):
                raise ValueError(
                    f"the rows have {new} features that the model has not met, and to {self._kernel} it matters how "
                    "many there are that two rows do not have: train anew on all data"
                )
            made = Supports(self._kernel, wider) if self.budget is None else Slots(self._kernel, self.budget, wider)
            self._training.attach(made)
        self.__dict__["n_features_in_"] = features

    def stand(self, X: Any) -> Any:
        """All rows that there will be, checked, in the form that ``learn_rows`` takes them in.

        Before each pass call ``begin_pass`` of what is returned; when all is learned, ``leave``. Should the learner be
        saved before, and be given the same rows when it is loaded, they stand as they stood: see ``is_left_off``.
        """
        points = self._points(X)
        self._check_kernel(points)  # type: ignore[attr-defined]
        self.__dict__["_dtype"] = np.dtype(points.dtype)  # one precision for all
        self._training.in_pieces = True
        if not self._training.n_seen:
            self._training.bias = self._constant_feature(points)
        room = 0 if self.epochs == 1 else int(self.cache_mb * 2**20)
        examples = Examples(X, points, X.shape[1] if hasattr(X, "shape") else 1)
        if self.is_left_off():
            self._standing = self._training.stand_again(examples, room, self._points, self._left_off)
            del self._left_off
        else:
            self._standing = self._training.stand(examples, room)
        return self._standing

    def is_left_off(self) -> bool:
        """Whether this was read from a file in the middle of passes, and nothing was learned since."""
        return "_left_off" in self.__dict__ and int(self._left_off[0]["seen"]) == self._training.n_seen

    def leave(self) -> None:
        """The passes over the rows are over: let go of them."""
        for name in ("_standing", "_left_off"):
            self.__dict__.pop(name, None)

    def _pack_standing(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """How the rows stand, in the middle of passes."""
        if "_standing" in self.__dict__:
            facts, arrays = self._standing.pack()
            return {**facts, "seen": self._training.n_seen}, arrays
        return self._left_off if self.is_left_off() else None

    def take_in(self, features: int, classes: int) -> None:
        raise ValueError("a kernel classifier cannot take in features or classes: its support examples lack them")

    def keep_features(self, kept: np.ndarray) -> None:
        raise ValueError("a kernel classifier cannot let go of features: it has weights of examples, not of features")


def _widened(X: Any, width: int) -> Any:
    """Rows with columns of zeros added."""
    if sp.issparse(X):
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return np.pad(X, ((0, 0), (0, width - X.shape[1])))

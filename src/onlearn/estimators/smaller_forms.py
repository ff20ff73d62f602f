"""Smaller forms of a fitted kernel classifier: ``to_primal`` and ``reduce``."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any

from sklearn.utils.validation import check_is_fitted

from onlearn.dual.collapse import Reduction, collapse, reduce_supports, worth_collapsing


class SmallerForms:
    """The methods of a kernel classifier that make smaller ones of it."""

    budget: int | None
    _training: Any
    representation_: str
    _dual: Any
    release_rows: Any
    score: Any

    def to_primal(self, force: bool = False) -> Any:
        """The same classifier as weights of the kernel's features, if that is smaller or faster.

        ``representation_reason_`` of the new classifier says which. If it is neither, that is an error, unless
        ``force``. This classifier does not change, whatever the new one learns later.
        """
        check_is_fitted(self)
        if self.representation_ == "primal":
            return self._copy_with(copy.deepcopy(self._training))
        training = self._dual("to_primal")
        verdict = worth_collapsing(training, self.n_features_in_ if hasattr(self, "n_features_in_") else 1)
        if verdict.name == "dual" and not force:
            raise ValueError(f"weights of features would be {verdict.reason}; force=True collapses nevertheless")
        made = self._copy_with(collapse(training))
        made.representation_, made.representation_reason_ = "primal", verdict.reason
        return made

    def reduce(self, n: int, X: Any = None, y: Any = None) -> Any:
        """A classifier with at most n support examples whose hypothesis is near this one, by projection.

        ``reduction_`` of the new classifier says how near; with X and y also what accuracy was lost on them.
        """
        check_is_fitted(self)
        training = self._dual("reduce")
        if self.budget is not None:
            raise ValueError("this classifier has a budget already: learn with a smaller budget instead")
        if isinstance(n, bool) or not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n must be a whole number of at least 1, not {n!r}")
        if (X is None) != (y is None):
            raise ValueError("the loss of accuracy is measured on X and y: give both, or neither")
        smaller, lost = reduce_supports(training, int(n))
        made = self._copy_with(smaller)
        measured = X is not None
        made.reduction_ = Reduction(
            len(training.supports),
            len(smaller.supports),
            lost,
            float(self.score(X, y)) if measured else None,
            float(made.score(X, y)) if measured else None,
        )
        return made

    def _copy_with(self, training: Any) -> Any:
        """A classifier that differs from this one only in its training."""
        made = copy.copy(self)
        made._training = training
        made.release_rows()
        return made

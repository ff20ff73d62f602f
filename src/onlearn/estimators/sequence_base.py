"""What the estimators of sequences share: a facade with scikit-learn's manners over a ``SequenceLearner``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from onlearn.engine.compositions import FAMILIES, Composition
from onlearn.engine.registry import make_learner
from onlearn.engine.rules import with_rule, without_rule
from onlearn.estimators.base import NestedEstimator


class SequenceEstimator(NestedEstimator):
    """A learner of sequences as an estimator; all that it has learned is in its learner.

    ``X`` is a list of sequences, ``y`` a list with the labels of each, so scikit-learn's cross-validation and searches
    take them as they are. A subclass has a signature, and the ``_composition`` of the learner with the same parameters.
    """

    _composition: ClassVar[Composition]
    _families: ClassVar[dict[str, Any]] = FAMILIES  # of the parameters that are choices
    _learner: Any  # once it has learned

    # ------------------------------------------------------------------ parameters

    def _as_learner(self) -> Any:
        """The learner inside, with the present parameters; a new one if nothing was learned yet."""
        learner = self.__dict__.get("_learner")
        if learner is None:
            learner = make_learner(self._composition.name)
        learner.configure({name: getattr(self, name) for name in self._composition.parameters})
        return learner

    def _begun(self) -> Any:
        """The learner, which has learned something, with the present parameters."""
        check_is_fitted(self)
        return self._as_learner()

    def __getstate__(self) -> dict[str, Any]:
        return with_rule(super().__getstate__(), getattr(self, "rule", None))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(without_rule(state))

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in self.__dict__

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from all sequences, anew. A call that fails changes nothing."""
        self._learner = self._as_learner().fit(X, y)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Any:
        """Learn from sequences once, and go on from what was learned; ``classes`` are labels that may come later."""
        self._learner = self._as_learner().partial_fit(X, y, classes)
        return self

    # ------------------------------------------------------------------ what was learned

    @property
    def learner_(self) -> Any:
        """The learner inside, as ``inspect`` and ``explain`` take it: it says what was learned, and why."""
        return self._begun()

    @property
    def classes_(self) -> np.ndarray:
        """The labels, in the order of the learner."""
        if "_learner" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no classes_ before fit")
        return np.array(self._learner.labels, dtype=object)

    def predict(self, X: Any) -> list[list[str]]:
        """The labels of the best path of each sequence."""
        made: list[list[str]] = self._begun().predict(X)
        return made

    def predict_marginals(self, X: Any) -> list[list[dict[str, float]]]:
        """The probability of each label at each token."""
        made: list[list[dict[str, float]]] = self._begun().predict_marginals(X)
        return made

    def predict_k_best(self, X: Any, k: int = 5) -> list[list[tuple[list[str], float]]]:
        """The k best paths of each sequence, best first: labels and score.

        The score of a CRF or HMM is the logarithm of the path's probability among all paths of the sequence.
        """
        made: list[list[tuple[list[str], float]]] = self._begun().predict_k_best(X, k)
        return made

    def predict_fixed(self, X: Any, y: Any) -> list[list[str]]:
        """The labels of the best path of each sequence among those with the labels of ``y``, where it is not None."""
        made: list[list[str]] = self._begun().predict_fixed(X, y)
        return made

    def log_probability(self, X: Any, y: Any) -> np.ndarray:
        """The log-probability of the labels of each sequence, given the sequence; of CRF and HMM."""
        return np.asarray(self._begun().log_probability(X, y))

    def score(self, X: Any, y: Any) -> float:
        """The share of tokens that are labelled right."""
        return float(self._begun().score(X, y))

    # ------------------------------------------------------------------ the model file

    def save(self, path: Any) -> None:
        """Write the learner to a ``.onl`` file, with all that it needs to go on learning."""
        self._begun().save(path)

    @classmethod
    def _around(cls, learner: Any) -> Any:
        """The estimator of a learner that was read from a file."""
        made = cls(**learner.get_params())
        made._learner = learner
        return made

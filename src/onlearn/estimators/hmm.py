"""The hidden Markov model as an estimator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from onlearn.engine.compositions import Composition
from onlearn.estimators.sequence_base import SequenceEstimator
from onlearn.sequence.hmm import COMPOSITION


class HMM(SequenceEstimator):
    """The hidden Markov model: each label depends on the one before, each token on its label.

    With labels it counts; without (``fit(X)``), or where ``y`` has None for some tokens, Baum-Welch finds the
    probabilities that make the sequences most likely.

    Parameters
    ----------
    smoothing : "witten-bell" or "add-k"
        How probability is left for what was not seen with a label. What Baum-Welch finds is not smoothed.
    k : float
        With ``smoothing="add-k"``: what is added to each count.
    max_suffix : int
        The most letters at the end of an unknown word that tell its label; its shape always does.
    emissions : "categorical" or "gaussian"
        What a label emits: words, or rows of numbers. For these ``X`` is a list of arrays (tokens, numbers), one for
        each sequence.
    min_variance : float
        The least variance with ``emissions="gaussian"``.
    n_states : int
        Labels (s0, s1, ...) that ``fit`` finds if none are given.
    iterations : int
        The most iterations of Baum-Welch.
    tol : float
        Baum-Welch ends when an iteration raises the log-likelihood of a token by less.
    random_state : int, RandomState or None
        What the start of Baum-Welch without labels depends on.

    Examples
    --------
    >>> from onlearn import HMM
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> HMM().fit(X, y).predict([["the", "cat", "barks"], ["a", "bird", "sings"]])
    [['DET', 'NOUN', 'VERB'], ['DET', 'NOUN', 'VERB']]
    >>> HMM(n_states=3, random_state=0).fit(X).classes_.tolist()
    ['s0', 's1', 's2']
    """

    _composition: ClassVar[Composition] = COMPOSITION

    def __init__(
        self,
        smoothing: str = "witten-bell",
        k: float = 0.01,
        max_suffix: int = 5,
        emissions: str = "categorical",
        min_variance: float = 1e-3,
        n_states: int = 2,
        iterations: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.smoothing = smoothing
        self.k = k
        self.max_suffix = max_suffix
        self.emissions = emissions
        self.min_variance = min_variance
        self.n_states = n_states
        self.iterations = iterations
        self.tol = tol
        self.random_state = random_state

    def log_likelihood(self, X: Any) -> np.ndarray:
        """The log-probability of each sequence, summed over all labels that it may have."""
        return np.asarray(self._begun().log_likelihood(X))

    def score(self, X: Any, y: Any = None) -> float:
        """The share of tokens that are labelled right; without labels the log-probability of all sequences."""
        return float(self._begun().score(X, y))

    def sample(self, n: int = 1, length: int | None = None, random_state: Any = None) -> tuple[list[Any], list[Any]]:
        """Draw n sequences and their labels; each of a length, or until it ends by itself."""
        made: tuple[list[Any], list[Any]] = self._begun().sample(n, length, random_state)
        return made

    @property
    def log_likelihoods_(self) -> list[float]:
        """The log-likelihood before each iteration of Baum-Welch; none if all tokens had labels."""
        return list(self._begun().log_likelihoods_)

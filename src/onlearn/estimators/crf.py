"""Conditional random fields as an estimator."""

from __future__ import annotations

from typing import Any, ClassVar

from onlearn.engine.compositions import Composition
from onlearn.estimators.sequence_base import SequenceEstimator
from onlearn.sequence.crf import COMPOSITION


class CRF(SequenceEstimator):
    """A linear-chain conditional random field: learns the probability of label sequences.

    ``solver="lbfgs"`` minimises the penalised likelihood of all sequences; with ``l1`` many weights are exactly zero.
    The other solvers learn on-line, and so does ``partial_fit``. ``X`` and ``y`` are as those of
    `StructuredPerceptron`.

    Parameters
    ----------
    l2 : float
        Weight of |w|_2^2 / 2 beside the sum of all losses.
    l1 : float
        Weight of |w|_1 beside the sum of all losses.
    solver : "lbfgs", "adagrad" or "sgd"
        How fit minimises.
    epochs : int
        The most iterations of 'lbfgs', or passes of the other solvers, that fit makes.
    tol : float
        Fit ends when ten iterations, or one pass, lower the objective by less than this part.
    rate : float
        Learning rate of on-line learning.
    prior_size : int
        On-line, l1 and l2 are spread over so many sequences.
    shuffle : bool
        Whether on-line solvers visit the sequences in a random order.
    template : str or None
        What attributes tokens have, if they are words.
    min_count : int
        Fit leaves out attributes of fewer tokens.
    early_stopping : bool
        Whether fit holds sequences out and ends with the weights that are best on them.
    validation_fraction : float
        The part of the sequences that is held out.
    patience : int
        Looks at them without progress after which early stopping ends.
    random_state : int, RandomState or None
        What the order of the sequences depends on.

    Examples
    --------
    >>> from onlearn import CRF
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> crf = CRF(l2=0.1).fit(X, y)
    >>> crf.predict([["the", "cat", "barks"]])
    [['DET', 'NOUN', 'VERB']]
    >>> max(crf.predict_marginals([["the", "cat"]])[0][1].items(), key=lambda one: one[1])[0]
    'NOUN'
    """

    _composition: ClassVar[Composition] = COMPOSITION

    def __init__(
        self,
        l2: float = 1.0,
        l1: float = 0.0,
        solver: str = "lbfgs",
        epochs: int = 300,
        tol: float = 1e-5,
        rate: float = 0.1,
        prior_size: int = 10000,
        shuffle: bool = True,
        template: str | None = None,
        min_count: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 3,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.solver = solver
        self.epochs = epochs
        self.tol = tol
        self.rate = rate
        self.prior_size = prior_size
        self.shuffle = shuffle
        self.template = template
        self.min_count = min_count
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state

    @property
    def objective_(self) -> list[float]:
        """The objective after each iteration (on-line: the sum of losses of each pass) of the last ``fit``."""
        return list(self._begun().objective)

    @property
    def stopped_(self) -> str | None:
        """Why the last ``fit`` ended: "tol", "epochs" or "validation"."""
        reason: str | None = self._begun().stopped
        return reason

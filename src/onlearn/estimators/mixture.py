"""The mixture of learners as an estimator."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from onlearn.engine.compositions import Composition
from onlearn.engine.learner import Learner
from onlearn.engine.mixture import MIXTURE, MixtureLearner, Theorem
from onlearn.engine.registry import spell_learner
from onlearn.estimators.linear import MistakeDrivenClassifier, OnlineClassifier


class Mixture(MistakeDrivenClassifier):
    """Several learners side by side, each believed by how well it predicted so far: the Bayes mixture.

    The probability of a class is the mean of the learners' probabilities, each weighted by e^-L, where L is the
    learner's log-loss on all examples so far, each scored before it was learned from. So the total log-loss of the
    mixture is at most that of the best learner plus ln K, on every stream: a learning rate need not be chosen, but
    tried. Learners that differ in their rate only learn together, in less than three times the time of one.

    Parameters
    ----------
    learners : list of linear classifiers or their spellings, or None
        For instance ``[onlearn.AROW(), "LogisticRegression(rate=0.1)"]``. None: eight logistic regressions by AdaGrad,
        of rates from 0.001 to 3. Scores of rules other than "logistic" are taken for log-odds. What is about passes,
        weights of classes and growth is the mixture's, and the learners must leave it as it is.
    epochs : int or None
        Passes over the data. Only the first, whose rows are new, changes how much a learner counts.
    max_epochs, shuffle, tol, class_weight, grow, max_names, random_state, warm_start, verbose
        As those of `OnlineClassifier`. An example of weight w, by its own or its class's, counts w times in L.

    Attributes
    ----------
    losses_ : array of (learners,)
        The log-loss L of each learner.
    weights_ : array of (learners,)
        How much each counts in a prediction; they sum to 1.
    loss_ : float
        The log-loss of the mixture, at most ``losses_.min() + ln K``; ``certificate()`` shows it.
    leader_ : estimator
        The learner with the smallest loss, by itself: it predicts, is saved and goes on learning as any other.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onlearn import Mixture
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = Mixture(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.85 and model.certificate().holds()
    True
    """

    _composition: ClassVar[Composition] = MIXTURE
    _learner: MixtureLearner

    def __init__(
        self,
        learners: Any = None,
        epochs: int | None = 5,
        max_epochs: int = 1000,
        shuffle: bool = True,
        tol: float | None = None,
        class_weight: Any = None,
        grow: bool | str = False,
        max_names: int = 1 << 21,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.learners = learners
        self.epochs = epochs
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.tol = tol
        self.class_weight = class_weight
        self.grow = grow
        self.max_names = max_names
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        given = values["learners"]
        if isinstance(given, (list, tuple)):
            values["learners"] = [spelled(one) for one in given]
        return values

    def _new_learner(self) -> MixtureLearner:
        return MixtureLearner(warning=ConvergenceWarning)

    def _calibration(self) -> Any:
        return "own"

    def _geometry(self) -> Any:
        return MixtureLearner(**self._values()).choices["geometry"]

    def save(self, path: Any) -> None:
        """Write the mixture to a ``.onl`` file, with all that its learners need to go on."""
        self._fitted_learner().save(path)

    # ------------------------------------------------------------------ what was learned

    @property
    def losses_(self) -> np.ndarray:
        """The log-loss of each learner, summed over the examples met, each before it was learned from."""
        return np.asarray(self._known("losses_"))

    @property
    def weights_(self) -> np.ndarray:
        """How much each learner counts: e^-loss, divided by their sum."""
        return np.asarray(self._known("weights_"))

    @property
    def loss_(self) -> float:
        """The log-loss of the mixture, summed likewise."""
        return float(self._known("loss_"))

    @property
    def leader_(self) -> OnlineClassifier:
        """The learner with the smallest loss, by itself; what it learns from now on does not change the mixture."""
        leader: Learner = self._known("leader_")
        made: OnlineClassifier = getattr(importlib.import_module("onlearn"), leader.name)._around(leader)
        return made

    def certificate(self) -> Theorem:  # type: ignore[override]
        """The theorem on the losses met so far; it holds on every stream, so that no rows are asked for."""
        return self._fitted_learner().certificate()

    def _fitted_learner(self) -> MixtureLearner:
        check_is_fitted(self)
        return self._learner


def spelled(given: Any) -> Any:
    """A linear classifier as text, parameters and all; anything else as it is, for the mixture to refuse."""
    if not isinstance(given, OnlineClassifier):
        return given
    return spell_learner(Learner(given._composition.name, **given._values()))

"""Multi-layer perceptrons as estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from onlearn.engine.compositions import Composition
from onlearn.estimators.base import IncrementalClassifier, IncrementalRegressor, LearnerEstimator
from onlearn.mlp.learner import COMPOSITIONS
from onlearn.mlp.optimizers import OPTIMIZERS


class Network(LearnerEstimator):
    """What a fitted network tells of itself, whatever it predicts."""

    _families: ClassVar[dict[str, Any]] = {"optimizer": OPTIMIZERS}

    @property
    def coefs_(self) -> list[np.ndarray]:
        """The weights of each layer, a row for each unit before and a column for each of its own."""
        return list(self._known("coefs_"))

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """The bias of each unit, by layer."""
        return list(self._known("intercepts_"))

    @property
    def loss_curve_(self) -> list[float]:
        """The mean loss of each pass, of examples before they were learned from."""
        return list(self._known("loss_curve_"))

    @property
    def validation_scores_(self) -> list[float]:
        """Accuracy or R^2 of the rows held out, after each pass of ``fit`` with ``early_stopping``."""
        return list(self._known("validation_scores_"))

    @property
    def stopped_(self) -> str | None:
        """Why ``fit`` ended: "epochs", "tol", "validation", "time_limit", "interrupted" or "diverged"."""
        reason: str | None = self._known("stopped_")
        return reason

    @property
    def n_iter_(self) -> int:
        """Passes over the data."""
        return len(self.loss_curve_)


class MLPClassifier(IncrementalClassifier, Network):
    """A multi-layer perceptron for classes, learned by back-propagation.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int
        Units of the hidden layers, from the first.
    activation : "relu", "tanh" or "logistic"
        What the units of hidden layers compute.
    loss : "auto", "logistic", "softmax" or "squared"
        What is minimised; "auto" is "logistic" for two classes and "softmax" for more. "squared" is the textbook's
        (o - t)^2 / 2 of logistic output units.
    optimizer : choice or its spelling
        "sgd(rate=0.01, momentum=0.0)", "adagrad(rate=0.02)" or "adam(rate=0.001)", each with ``schedule`` "constant",
        "1/sqrt(t)" or "1/(lambda t)", t counting steps.
    l2 : float
        Weight of |w|^2 / 2 in the objective; biases are left out.
    batch_size : int
        Examples of a step; 1 learns on-line.
    epochs : int
        The most passes over the data that ``fit`` makes.
    tol, patience : float, int
        ``fit`` ends after ``patience`` passes in which the loss (with ``early_stopping`` the score of the rows held
        out) did not become better by ``tol``.
    early_stopping, validation_fraction : bool, float
        Whether ``fit`` holds out this part of the rows, and ends with the network that is best on them.
    time_limit : float or None
        The most seconds that ``fit`` takes.
    standardize : bool
        Whether columns are brought to one size: dense ones to mean 0 and deviation 1, sparse ones by their largest
        value where that is above 10 (or all are below 0.01). On a stream by the rows that came so far.
    dtype : "float32" or "float64"
        Precision of the weights.
    shuffle, class_weight, random_state, warm_start, verbose
        As those of `OnlineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from onlearn import MLPClassifier
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), [0, 1, 1, 0]
    >>> MLPClassifier(8, activation="tanh", optimizer="adam(0.05)", random_state=0).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    _composition: ClassVar[Composition] = COMPOSITIONS["MLPClassifier"]

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        loss: str = "auto",
        optimizer: Any = "adam",
        l2: float = 0.0,
        batch_size: int = 32,
        epochs: int = 100,
        tol: float = 1e-4,
        patience: int = 10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        time_limit: float | None = None,
        standardize: bool = True,
        dtype: str = "float32",
        shuffle: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.loss = loss
        self.optimizer = optimizer
        self.l2 = l2
        self.batch_size = batch_size
        self.epochs = epochs
        self.tol = tol
        self.patience = patience
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.time_limit = time_limit
        self.standardize = standardize
        self.dtype = dtype
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start: bool = warm_start
        self.verbose = verbose


class MLPRegressor(IncrementalRegressor, Network):
    """A multi-layer perceptron for numbers, learned by back-propagation of the squared error of a linear output unit.

    The parameters are those of `MLPClassifier`, but for ``loss`` and ``class_weight``. With ``standardize`` the numbers
    to predict are brought to mean 0 and deviation 1 as well, while learning.

    Examples
    --------
    >>> import numpy as np
    >>> from onlearn import MLPRegressor
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> model = MLPRegressor(32, optimizer="adam(0.01)", random_state=0).fit(X, 1000 * X[:, 0] ** 2)
    >>> model.score(X, 1000 * X[:, 0] ** 2) > 0.99
    True
    """

    _composition: ClassVar[Composition] = COMPOSITIONS["MLPRegressor"]

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        optimizer: Any = "adam",
        l2: float = 0.0,
        batch_size: int = 32,
        epochs: int = 100,
        tol: float = 1e-4,
        patience: int = 10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        time_limit: float | None = None,
        standardize: bool = True,
        dtype: str = "float32",
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.optimizer = optimizer
        self.l2 = l2
        self.batch_size = batch_size
        self.epochs = epochs
        self.tol = tol
        self.patience = patience
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.time_limit = time_limit
        self.standardize = standardize
        self.dtype = dtype
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start: bool = warm_start
        self.verbose = verbose
